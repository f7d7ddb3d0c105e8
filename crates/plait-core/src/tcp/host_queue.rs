//! The bytes of a subflow in the host's own queue, before the path (TCP small queues, schedulers
//! 4.10).

use crate::config::Pacing;
use crate::tcp::pace::rate;
use alloc::collections::VecDeque;
use plait_base::{Span, Time};

/// Largest number of bytes in the host's queue at any rate: `tcp_limit_output_bytes` (1 MiB here).
pub const TSQ_CAP_BYTES: u64 = 1 << 20;

/// Returns the memory of a segment of `payload` bytes in Linux's queue: its buffer with headers,
/// rounded up to a power of two, and the buffer's descriptor.
#[must_use]
pub const fn truesize(payload: u32) -> u64 {
    const HEADERS: u64 = 320;
    const RECORD: u64 = 256;
    (payload as u64 + HEADERS).next_power_of_two() + RECORD
}

/// Returns the bytes that a subflow may have in the host's queue, up to `cap`. The limit is the
/// larger of two segments and the data of about a millisecond (1/1024 s).
#[must_use]
pub const fn limit(pacing_rate: u64, truesize: u64, cap: u64) -> u64 {
    let millisecond = pacing_rate >> 10;
    let floor = 2 * truesize;
    let wanted = if millisecond > floor { millisecond } else { floor };
    if wanted < cap { wanted } else { cap }
}

/// Returns the rate at which Linux would pace, in bytes per second: 200 % of a window per round
/// trip while the window is below half of ssthresh, 120 % after.
#[must_use]
pub fn pacing_rate(cwnd: u64, ssthresh: Option<u64>, srtt: Option<Span>) -> u64 {
    rate(cwnd, ssthresh, srtt, Pacing::default())
}

/// Segments that have not left the host, with their departure times.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostQueue {
    waiting: VecDeque<(Time, u64)>,
    bytes: u64,
}

impl HostQueue {
    /// Adds a segment that leaves the host at `departs`.
    pub(crate) fn push(&mut self, now: Time, departs: Time, truesize: u64) {
        if departs > now {
            self.waiting.push_back((departs, truesize));
            self.bytes += truesize;
        }
    }

    /// Removes segments that have left.
    pub(crate) fn drain(&mut self, now: Time) {
        while let Some((departs, truesize)) = self.waiting.front().copied() {
            if departs > now {
                break;
            }
            self.waiting.pop_front();
            self.bytes -= truesize;
        }
    }

    /// Returns the bytes that have not left.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns when the next segment leaves.
    pub(crate) fn next_departure(&self) -> Time {
        self.waiting.front().map_or(Time::NEVER, |(departs, _)| *departs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_segment_passes_and_the_fourth_waits() {
        let size = truesize(1_448);
        assert_eq!(size, 2_304);
        let limit = limit(2_896_000, size, TSQ_CAP_BYTES);
        let mut queue = HostQueue::default();
        let mut sent = 0;
        while queue.bytes() <= limit {
            queue.push(Time::ZERO, Time::from_nanos(100 + sent), size);
            sent += 1;
        }
        assert_eq!(sent, 3);
        queue.drain(Time::from_nanos(100));
        assert!(queue.bytes() <= limit);
    }
}
