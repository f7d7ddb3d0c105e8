use alloc::sync::Arc;

use super::{NANOS_PER_MILLI, OPPORTUNITY_BYTES};
use crate::schedule::first_from;

/// A transmitter that sends at the delivery opportunities of a recording.
///
/// As in Mahimahi, an opportunity serves only packets that were queued before it. A packet that is offered
/// at the time of an opportunity waits for the next one.
#[derive(Clone, Debug)]
pub(crate) struct OpportunityCursor {
    /// Milliseconds within a lap, not decreasing. The last one is the length of a lap.
    stamps: Arc<[u32]>,
    /// Start of the lap, in nanoseconds.
    base: u64,
    /// The first unused opportunity of the lap; the length of the list if all are used.
    next: usize,
    /// Unused bytes of the last opportunity, while the queue is not empty.
    left: u32,
    /// Departure of the last packet.
    free: u64,
}

impl OpportunityCursor {
    pub(crate) fn new(stamps: Arc<[u32]>) -> OpportunityCursor {
        OpportunityCursor { stamps, base: 0, next: 0, left: 0, free: 0 }
    }

    #[inline]
    pub(crate) fn free_at(&self) -> u64 {
        self.free
    }

    /// Sends `size` bytes that are available from `at` on, after all earlier bytes. Returns the departure.
    #[inline]
    pub(crate) fn serve(&mut self, at: u64, size: u32) -> u64 {
        if at >= self.free {
            self.seek(at);
        }
        if size <= self.left {
            self.left -= size;
        } else {
            self.take(u64::from(size - self.left));
        }
        self.free
    }

    /// Uses as many opportunities as `need` bytes take, at least one.
    fn take(&mut self, need: u64) {
        let per = u64::from(OPPORTUNITY_BYTES);
        let count = need.div_ceil(per);
        self.left = (count * per - need) as u32;
        let len = self.stamps.len() as u64;
        let last = self.next as u64 + count - 1;
        let (laps, index) =
            if last < len { (0, last) } else { (last / len.max(1), last % len.max(1)) };
        self.base = self.base.saturating_add(laps.saturating_mul(self.period()));
        self.next = index as usize + 1;
        let stamp = self.stamps.get(index as usize).map_or(u64::MAX, |stamp| nanos(*stamp));
        self.free = self.base.saturating_add(stamp);
    }

    /// Discards unused bytes and all opportunities up to `at`, when the queue is empty.
    fn seek(&mut self, at: u64) {
        self.left = 0;
        let Some(mut within) = at.checked_sub(self.base) else { return };
        let period = self.period().max(1);
        if within >= period {
            self.base += within / period * period;
            within %= period;
            self.next = 0;
        }
        self.next += first_from(&self.stamps[self.next..], |stamp| nanos(*stamp) > within);
    }

    fn period(&self) -> u64 {
        self.stamps.last().map_or(0, |stamp| nanos(*stamp))
    }
}

fn nanos(millis: u32) -> u64 {
    u64::from(millis) * NANOS_PER_MILLI
}
