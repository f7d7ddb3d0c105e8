//! A run as a capture at the sender of the data, for the incidents of `plait explain`.

use super::encoded::Encoder;
use crate::{Contents, Error};
use plait_app::Role;
use plait_base::{PathId, Time};
use plait_capture::{ConnectionReport, FileKind, Held, Recording};
use plait_core::{Block, Event};
use plait_lab::Cell;
use plait_lab::explain::Explanation;
use plait_sim::{Direction, Hop, Watch, Who};
use plait_wire::Segment;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The waits of a run and the time that its transfer lost.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ExplainedRun {
    /// The waits and their decisions.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// The main cause of the lost time.
    pub sentence: String,
    /// The transfer as a capture at the sender shows it, with the sender's own state. Packets have the numbers of
    /// their lines in the file of events; without a file, those of `plait run --pcap`. `null` if the run has no data.
    pub transfer: Option<ConnectionReport>,
}

/// The observer of a run.
pub struct Transfer {
    recording: Recording,
    encoder: Encoder,
    vantage: Role,
    /// Number of the latest line of a file of events.
    line: Option<Arc<AtomicU64>>,
    packets: u64,
}

impl Transfer {
    /// Observes a run of a cell. `events` is the file with the events of the run, and the number of its latest line.
    #[must_use]
    pub fn new(cell: &Cell, seed: u64, events: Option<(&Path, Arc<AtomicU64>)>) -> Transfer {
        let scenario = &cell.scenario;
        let vantage = scenario.workload.sender();
        let paths: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
        let (name, kind) = match &events {
            Some((file, _)) => (*file, FileKind::Events),
            None => (Path::new("the run"), FileKind::Run),
        };
        Transfer {
            recording: Recording::new(name, kind, vantage == Role::Server, &paths),
            encoder: Encoder::new(cell, seed),
            vantage,
            line: events.map(|(_, line)| line),
            packets: 0,
        }
    }

    /// Returns the number of the present event.
    fn number(&self) -> u64 {
        self.line.as_ref().map_or(self.packets, |line| line.load(Ordering::Relaxed))
    }

    /// Adds the lost time of the transfer to the explanation of the run.
    ///
    /// # Errors
    /// If a segment cannot be a packet, which is an error of plait.
    pub fn explained(self, explanation: Explanation) -> Result<ExplainedRun, Error> {
        if let Some(refused) = self.encoder.refused {
            return Err(Error::Internal(format!("{}: {refused}", Contents::Capture)));
        }
        let mut capture = self.recording.explained(explanation.command.clone());
        let mut transfer = capture.connections.drain(..).next();
        if let Some(transfer) = &mut transfer {
            // The links of a run are known.
            transfer.fit = None;
        }
        Ok(ExplainedRun { explanation, sentence: capture.sentence, transfer })
    }
}

/// Returns the state of a sender in the words of captures.
const fn held(block: Block) -> Held {
    match block {
        Block::ReceiveWindow => Held::ReceiveWindow,
        Block::SendBuffer => Held::SendBuffer,
        Block::Scheduler => Held::Scheduler,
        Block::CongestionWindow => Held::CongestionWindow,
        Block::NoSubflow => Held::NoPath,
    }
}

impl Watch for Transfer {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if let Event::Blocked(block) = event
            && who.host == self.vantage
            && who.connection == 0
        {
            self.recording.held(self.number(), now.as_nanos(), block.map(held));
        }
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let sender = if way == Direction::Up { Role::Client } else { Role::Server };
        let wanted = if sender == self.vantage { Hop::Sent } else { Hop::Delivered };
        if hop != wanted {
            return;
        }
        self.packets += 1;
        let number = self.number();
        if let Some(packet) = self.encoder.packet(path, way, segment) {
            let path = path.index() as u32;
            self.recording.packet(number, path, now.as_nanos(), packet.headers, packet.length);
        }
    }
}
