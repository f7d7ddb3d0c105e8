//! One run of a comparison, with every packet on its way.

use crate::packets::{self, Packets, micros, word};
use plait_app::measure::{MEASURES, Value};
use plait_app::{AppEvent, Role};
use plait_base::{DataRangeSet, Dsn, PathId, Span, SubflowId, Time};
use plait_core::{Block, Event};
use plait_lab::Scenario;
use plait_sim::{Direction, Hop, Snapshot, Watch, Who};
use plait_wire::Segment;
use serde::Serialize;

/// Words of a packet.
pub const PACKET_WORDS: usize = packets::WORDS;
/// Interval of the samples. It is doubled when there are too many.
const FINEST: Span = Span::from_millis(1);
/// Greatest number of samples, and of changes at the receiver.
const MAX_SAMPLES: usize = 20_000;
const MAX_CHANGES: usize = 300_000;

/// A run in words.
#[derive(Serialize, Clone, Debug)]
pub struct About {
    /// The row: a scheduler, or `tcp:PATH`.
    pub row: String,
    /// Names of the paths.
    pub paths: Vec<String>,
    /// Start of the measured part in ms.
    pub begin_ms: f64,
    /// End of the run in ms.
    pub end_ms: f64,
    /// True if the workload finished.
    pub complete: bool,
    /// When and why the connection broke.
    pub broke: Option<String>,
    /// The measure that ranks the rows: name, unit and value.
    pub measure: (String, String, Option<f64>),
    /// The hash of `plait run`.
    pub segment_hash: String,
    /// Time from which packets are not recorded, because there are too many.
    pub recorded_until_ms: Option<f64>,
}

/// A run with its records.
#[derive(Debug)]
pub struct Race {
    /// The run in words.
    pub about: About,
    /// [`PACKET_WORDS`] words for each packet.
    pub packets: Vec<u32>,
    /// Time, readable bytes, bytes held behind a gap.
    pub receiver: Vec<u32>,
    /// Time, and three words for each path.
    pub samples: Vec<u32>,
    /// Time and cause.
    pub blocked: Vec<u32>,
}

/// Runs a row of a comparison with the seed of the scenario.
///
/// # Errors
/// If there is no such row, or an invariant is violated.
pub fn run(scenario: &Scenario, row: usize) -> Result<Race, String> {
    let cells = plait_lab::cells(scenario);
    let cell = cells.get(row).ok_or_else(|| format!("row {row}: there are {}", cells.len()))?;
    let mut record = Record::new(scenario.workload.sender(), scenario.paths.len());
    let outcome = plait_lab::simulate(cell, scenario.seed, &mut record);
    if let Some(violation) = outcome.violation {
        return Err(format!("invariant violated: {violation}"));
    }
    let broke = plait_lab::broke(cell, &outcome);
    let measures = outcome.pairs.first().and_then(|pair| pair.first()).map(|it| &it.measures);
    let name = scenario.workload.primary();
    let entry = MEASURES.iter().find(|entry| entry.name == name);
    let value = entry.and_then(|entry| match entry.value {
        Value::Run(of) => of(measures?),
        Value::Path(_) => None,
    });
    let ms = |at: Time| at.since(Time::ZERO).as_millis_f64();
    let about = About {
        row: cell.to_string(),
        paths: scenario.paths.iter().map(|path| path.name.clone()).collect(),
        begin_ms: ms(record.begin),
        end_ms: ms(outcome.ended),
        complete: outcome.complete(),
        broke,
        measure: (name.to_owned(), entry.map_or("", |it| it.unit).to_owned(), value),
        segment_hash: format!("{:016x}", outcome.digest.value()),
        recorded_until_ms: record.packets.full_at.map(ms),
    };
    Ok(Race {
        about,
        packets: record.packets.words,
        receiver: record.receiver.words,
        samples: record.samples,
        blocked: record.blocked,
    })
}

/// A subflow at the sender.
#[derive(Clone, Copy, Default, Debug)]
struct Flow {
    path: PathId,
    cwnd: u64,
    in_flight: u64,
}

/// The data at the receiver.
#[derive(Default, Debug)]
struct Receiver {
    /// First byte that is drawn, and first byte that is not readable.
    base: Dsn,
    frontier: Dsn,
    held: DataRangeSet,
    words: Vec<u32>,
}

impl Receiver {
    /// Records the state at `now`. It replaces the record of the same microsecond.
    fn note(&mut self, now: Time) {
        let readable = word(self.frontier.saturating_sub(self.base));
        let state = [micros(now), readable, word(self.held.len())];
        let last = self.words.len().saturating_sub(3);
        if self.words.get(last) == Some(&state[0]) {
            self.words[last..].copy_from_slice(&state);
        } else if self.words.len() < 3 * MAX_CHANGES {
            self.words.extend(state);
        }
    }
}

/// Records a run.
struct Record {
    sender: Role,
    begin: Time,
    /// True if the workload began with a warm-up.
    warmed: bool,
    packets: Packets,
    receiver: Receiver,
    flows: [Option<Flow>; SubflowId::MAX],
    paths: usize,
    samples: Vec<u32>,
    /// Samples to leave out between two that are kept, and until the next.
    skip: (u64, u64),
    blocked: Vec<u32>,
}

impl Record {
    fn new(sender: Role, paths: usize) -> Record {
        Record {
            sender,
            begin: Time::ZERO,
            warmed: false,
            packets: Packets::new(paths),
            receiver: Receiver::default(),
            flows: [None; SubflowId::MAX],
            paths,
            samples: Vec::new(),
            skip: (0, 0),
            blocked: Vec::new(),
        }
    }

    fn flow(&mut self, subflow: SubflowId) -> Option<&mut Flow> {
        self.flows.get_mut(subflow.index())?.as_mut()
    }

    fn on_sender(&mut self, now: Time, event: &Event) {
        match *event {
            Event::SubflowUp { subflow, path, .. } => {
                if let Some(slot) = self.flows.get_mut(subflow.index()) {
                    *slot = Some(Flow { path, ..Flow::default() });
                }
            }
            Event::SubflowDown { subflow } => {
                if let Some(slot) = self.flows.get_mut(subflow.index()) {
                    *slot = None;
                }
            }
            Event::DataSent { subflow, data, carry } => {
                let Some(flow) = self.flow(subflow) else { return };
                flow.in_flight += data.len();
                let path = flow.path;
                self.packets.carries(path, data.start.saturating_sub(Dsn::ZERO), carry);
            }
            Event::Acked { subflow, cwnd, inflight, .. } => {
                if let Some(flow) = self.flow(subflow) {
                    (flow.cwnd, flow.in_flight) = (cwnd, inflight);
                }
            }
            Event::Window { subflow, cwnd, .. } | Event::IdleReset { subflow, after: cwnd, .. } => {
                if let Some(flow) = self.flow(subflow) {
                    flow.cwnd = cwnd;
                }
            }
            Event::Timeout { subflow, .. } => {
                if let Some(flow) = self.flow(subflow) {
                    flow.in_flight = 0;
                }
            }
            Event::Blocked(block) if self.blocked.len() < 2 * MAX_CHANGES => {
                self.blocked.extend([micros(now), block.map_or(0, cause)]);
            }
            _ => {}
        }
    }

    fn on_receiver(&mut self, now: Time, event: &Event) {
        let receiver = &mut self.receiver;
        match *event {
            Event::DataArrived { data, .. } => {
                receiver.held.insert(data);
            }
            Event::DataReadable { data, .. } => receiver.frontier = receiver.frontier.max(data.end),
            _ => return,
        }
        receiver.held.remove_below(receiver.frontier);
        receiver.note(now);
    }
}

impl Watch for Record {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        // Of several connections, only the first is drawn.
        if who.pair != 0 || who.connection != 0 {
        } else if who.host == self.sender {
            self.on_sender(now, event);
        } else {
            self.on_receiver(now, event);
        }
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        if (who.pair, who.connection, who.host) != (0, 0, self.sender) {
            return;
        }
        match *event {
            AppEvent::WarmUp { .. } => self.warmed = true,
            AppEvent::MeasureFrom { offset } if self.warmed => {
                self.begin = now;
                (self.receiver.base, self.receiver.frontier) = (offset, offset);
                self.receiver.words.clear();
            }
            _ => {}
        }
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let with_data = packets::with_data(way, self.sender == Role::Server);
        match hop {
            Hop::Sent => self.packets.sent(now, path, with_data, segment),
            Hop::Delivered => self.packets.ended(now, path, with_data, segment, None),
            Hop::Dropped(why) => self.packets.ended(now, path, with_data, segment, Some(why)),
        }
    }

    fn interval(&self) -> Option<Span> {
        Some(FINEST)
    }

    fn on_sample(&mut self, at: Time, snapshot: &Snapshot) {
        if self.skip.1 > 0 {
            self.skip.1 -= 1;
            return;
        }
        self.skip.1 = self.skip.0;
        let queues = snapshot.queued_from(self.sender);
        self.samples.push(micros(at));
        for path in 0..self.paths {
            let of_path = self.flows.iter().flatten().filter(|flow| flow.path.index() == path);
            let (cwnd, in_flight) = of_path.fold((0, 0), |(cwnd, in_flight), flow| {
                (cwnd + flow.cwnd, in_flight + flow.in_flight)
            });
            let queue = queues.get(path).copied().unwrap_or(0);
            self.samples.extend([queue, cwnd, in_flight].map(word));
        }
        let words = 1 + 3 * self.paths;
        if self.samples.len() >= MAX_SAMPLES * words {
            let kept = self.samples.chunks_exact(words).step_by(2);
            self.samples = kept.flatten().copied().collect();
            self.skip.0 = 2 * self.skip.0 + 1;
        }
    }
}

/// Returns the code of a cause that blocks the sender.
fn cause(block: Block) -> u32 {
    match block {
        Block::ReceiveWindow => 1,
        Block::SendBuffer => 2,
        Block::Scheduler => 3,
        Block::CongestionWindow => 4,
        Block::NoSubflow => 5,
    }
}
