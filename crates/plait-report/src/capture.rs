//! `--pcap`: the segments of a run as packets, as the host that sends the data sees them, each with
//! the reason why its data went there.

use super::pcapng::{CaptureFile, Frame};
use super::reasons::Reasons;
use crate::{Contents, Error};
use plait_app::Role;
use plait_base::{PathId, Time};
use plait_core::Event;
use plait_lab::Cell;
use plait_sim::{Addresses, Direction, Hop, Watch, Who};
use plait_wire::Segment;
use plait_wire::codec::{TcpChecksum, encode};
use std::collections::VecDeque;
use std::path::Path;

/// The observer that writes the file.
pub struct Capture {
    file: CaptureFile,
    addresses: Addresses,
    /// The instant that `packets` and `said` are of.
    now: Time,
    /// Where the capture is made.
    vantage: Role,
    reasons: Reasons,
    /// Packets of this instant.
    packets: Vec<Packet>,
    /// What was told of this instant and no packet has claimed: bytes of payload, and why.
    said: VecDeque<(u64, String)>,
    /// A segment that is no packet.
    refused: Option<String>,
}

struct Packet {
    path: PathId,
    outbound: bool,
    bytes: Vec<u8>,
    /// Bytes of payload that somebody has to explain; zero once that is done.
    unexplained: u64,
    comment: String,
}

impl Capture {
    /// Creates the file for a run of a cell.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn create(file: &Path, cell: &Cell, seed: u64, command: &str) -> Result<Capture, Error> {
        let scenario = &cell.scenario;
        let comment = format!("{cell}, {}, {}, seed {seed}\n{command}", cell.cc, scenario.workload);
        let names = scenario.paths.iter().map(|path| path.name.as_str());
        Ok(Capture {
            file: CaptureFile::create(file, &comment, names)?,
            addresses: Addresses::new(&plait_lab::setup(cell, seed)),
            now: Time::ZERO,
            vantage: scenario.workload.sender(),
            reasons: Reasons::default(),
            packets: Vec::new(),
            said: VecDeque::new(),
            refused: None,
        })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If a packet of it could not be written.
    pub fn finish(mut self) -> Result<(), Error> {
        self.settle(Time::NEVER);
        if let Some(refused) = self.refused {
            return Err(Error::Internal(format!("{}: {refused}", Contents::Capture)));
        }
        self.file.finish()
    }

    /// Writes the packets of instants before `now`: all that explains them has been told.
    fn settle(&mut self, now: Time) {
        if now == self.now {
            return;
        }
        let before = std::mem::replace(&mut self.now, now);
        self.said.clear();
        for packet in self.packets.drain(..) {
            self.file.write(&Frame {
                interface: packet.path.index(),
                at_ns: before.as_nanos(),
                outbound: packet.outbound,
                bytes: &packet.bytes,
                comment: &packet.comment,
            });
        }
    }

    /// Gives what was told to the packet that it is about: both come in the same order, whichever
    /// comes first.
    fn explain(&mut self, len: u64, why: String) {
        let mut packets = self.packets.iter_mut();
        match packets.find(|packet| packet.unexplained == len) {
            Some(packet) => (packet.unexplained, packet.comment) = (0, why),
            None => self.said.push_back((len, why)),
        }
    }

    fn claim(&mut self, len: u64) -> Option<String> {
        let place = self.said.iter().position(|(said, _)| *said == len)?;
        Some(self.said.remove(place)?.1)
    }
}

impl Watch for Capture {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if who.host != self.vantage {
            return;
        }
        self.settle(now);
        if let Some((len, why)) = self.reasons.hear(event) {
            self.explain(len, why);
        }
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let sender = if way == Direction::Up { Role::Client } else { Role::Server };
        let outbound = sender == self.vantage;
        if hop != if outbound { Hop::Sent } else { Hop::Delivered } {
            return;
        }
        self.settle(now);
        let headers = self.addresses.headers(0, path, way, segment.server);
        let mut bytes = Vec::new();
        if let Err(error) = encode(&headers, segment, TcpChecksum::Full, &mut bytes) {
            self.refused.get_or_insert_with(|| format!("{error}: {segment:?}"));
            return;
        }
        let mut unexplained = if outbound { u64::from(segment.payload.len()) } else { 0 };
        let comment = self.claim(unexplained).filter(|_| unexplained > 0);
        if comment.is_some() {
            unexplained = 0;
        }
        let comment = comment.unwrap_or_default();
        self.packets.push(Packet { path, outbound, bytes, unexplained, comment });
    }
}
