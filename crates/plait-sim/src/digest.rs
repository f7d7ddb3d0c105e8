//! The running hash that identifies a run.

use crate::network::Direction;
use plait_base::{PathId, RunningHash, Time};
use plait_wire::Segment;

/// 64-bit hash of time, path, direction, sequence numbers, length and flags of every segment sent
/// and delivered, in the order of these events. Observers do not change it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RunDigest {
    hash: RunningHash,
    segments: u64,
}

impl RunDigest {
    #[inline(always)]
    pub(crate) fn push(
        &mut self,
        now: Time,
        delivered: bool,
        path: PathId,
        direction: Direction,
        segment: &Segment,
    ) {
        let what = u64::from(segment.flags.0)
            | u64::from(delivered) << 8
            | u64::from(direction == Direction::Up) << 9
            | u64::from(path.0) << 16
            | u64::from(segment.payload.len()) << 32;
        self.hash.push(now.as_nanos());
        self.hash.push(what);
        self.hash.push(u64::from(segment.seq) | u64::from(segment.ack) << 32);
        self.segments += 1;
    }

    /// Returns the hash so far.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.hash.value()
    }

    /// Returns the number of segments sent plus the number of segments delivered.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.segments
    }
}
