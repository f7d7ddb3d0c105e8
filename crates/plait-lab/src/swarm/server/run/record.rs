//! The record of a run: a hash of its packets, and the last events.

use crate::swarm::run::segment_line;
use plait_base::Time;
use plait_wire::Segment;
use plait_wire::codec::{self, Verify};
use std::collections::VecDeque;

pub(super) struct Record {
    pub(super) packets: u64,
    pub(super) hash: u64,
    /// Number of lines to keep.
    keep: usize,
    /// The last events, one a line.
    pub(super) lines: VecDeque<String>,
}

impl Record {
    /// Returns a record that keeps the last `keep` lines.
    pub(super) fn new(keep: usize) -> Record {
        Record { packets: 0, hash: 0xcbf2_9ce4_8422_2325, keep, lines: VecDeque::new() }
    }

    pub(super) fn keeps_lines(&self) -> bool {
        self.keep > 0
    }

    /// Adds a packet to the counter and the hash.
    pub(super) fn note(&mut self, now: Time, bytes: &[u8]) {
        self.packets += 1;
        let mut mix =
            |byte: u8| self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        bytes.iter().take(60).for_each(|byte| mix(*byte));
        now.as_nanos().to_le_bytes().into_iter().for_each(mix);
        if self.keeps_lines() {
            let mut segment = Segment::default();
            if let Ok(packet) = codec::parse_into(bytes, Verify::Checksum, &mut segment) {
                let (src, dst) = (packet.headers.src, packet.headers.dst);
                let line = format!(
                    "{src} > {dst} len {}: {}",
                    packet.payload.len(),
                    segment_line(&segment)
                );
                self.tell(now, &line);
            }
        }
    }

    /// Adds a line.
    pub(super) fn tell(&mut self, now: Time, line: &str) {
        if self.keep > 0 {
            if self.lines.len() >= self.keep {
                self.lines.pop_front();
            }
            self.lines.push_back(format!("{:>14.6} s  {line}", now.as_nanos() as f64 / 1e9));
        }
    }
}
