//! `--pcap`: the segments of a run as packets, captured at the data's sender. Each packet has the
//! reason for its scheduling as a comment.

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
    /// Time of `packets` and `said`.
    now: Time,
    /// The host of the capture.
    vantage: Role,
    reasons: Reasons,
    /// Packets of this instant.
    packets: Vec<Packet>,
    /// Reasons at `now` that are not yet matched to a packet: payload bytes, and the reason.
    said: VecDeque<(u64, String)>,
    /// The error of a segment that cannot be written as a packet.
    refused: Option<String>,
}

struct Packet {
    path: PathId,
    outbound: bool,
    bytes: Vec<u8>,
    /// Payload bytes without a reason yet; zero after a match.
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
    /// If a packet could not be written.
    pub fn finish(mut self) -> Result<(), Error> {
        self.settle(Time::NEVER);
        if let Some(refused) = self.refused {
            return Err(Error::Internal(format!("{}: {refused}", Contents::Capture)));
        }
        self.file.finish()
    }

    /// Writes the packets from before `now`; all their reasons have arrived.
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

    /// Assigns a reason to its packet. Reasons and packets arrive in the same order, but either may
    /// come first.
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
