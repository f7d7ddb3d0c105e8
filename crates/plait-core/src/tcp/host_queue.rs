//! What a subflow has in the host's own queue, before the path (TCP small queues, schedulers 4.10).

use crate::config::Pacing;
use crate::tcp::pace::rate;
use alloc::collections::VecDeque;
use plait_base::{Span, Time};

/// Most bytes in the host's queue, whatever the rate: `tcp_limit_output_bytes` (1 MiB here).
pub const TSQ_CAP_BYTES: u64 = 1 << 20;

/// Memory that a segment of `payload` bytes takes in Linux's queue: its buffer, rounded up to a
/// power of two with the headers, and the buffer's own record.
#[must_use]
pub const fn truesize(payload: u32) -> u64 {
    const HEADERS: u64 = 320;
    const RECORD: u64 = 256;
    (payload as u64 + HEADERS).next_power_of_two() + RECORD
}

/// Bytes that a subflow may have in the host's queue: two segments or what it sends in about a
/// millisecond (1/1024 s), whichever is more, up to `cap`.
#[must_use]
pub const fn limit(pacing_rate: u64, truesize: u64, cap: u64) -> u64 {
    let millisecond = pacing_rate >> 10;
    let floor = 2 * truesize;
    let wanted = if millisecond > floor { millisecond } else { floor };
    if wanted < cap { wanted } else { cap }
}

/// The rate at which Linux would pace, in bytes per second: 200 % of a window a round trip while
/// the window is below half the threshold, 120 % after.
#[must_use]
pub fn pacing_rate(cwnd: u64, ssthresh: Option<u64>, srtt: Option<Span>) -> u64 {
    rate(cwnd, ssthresh, srtt, Pacing::default())
}

/// Segments that have not left the host, with the time at which they will.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostQueue {
    waiting: VecDeque<(Time, u64)>,
    bytes: u64,
}

impl HostQueue {
    /// A segment leaves the host at `departs`.
    pub(crate) fn push(&mut self, now: Time, departs: Time, truesize: u64) {
        if departs > now {
            self.waiting.push_back((departs, truesize));
            self.bytes += truesize;
        }
    }

    /// Forgets what has left.
    pub(crate) fn drain(&mut self, now: Time) {
        while let Some((departs, truesize)) = self.waiting.front().copied() {
            if departs > now {
                break;
            }
            self.waiting.pop_front();
            self.bytes -= truesize;
        }
    }

    /// Bytes that have not left.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// When the next segment leaves.
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
