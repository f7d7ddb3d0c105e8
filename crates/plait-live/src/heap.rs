//! Returns freed memory to the operating system.
//!
//! The allocator of glibc returns only the end of its heap. After a burst of connections a few blocks that stay
//! in use keep all free pages below them.

use crate::sys;
use plait_base::{Span, Time};

/// Interval of the checks while memory may have to be returned.
const CHECK_INTERVAL: Span = Span::from_secs(5);
/// Memory is returned only after connections have used this much of it.
const MIN_PEAK_BYTES: u64 = 64 << 10;

/// Decides when freed memory is returned: once connections use less than half of what they used at most.
#[derive(Debug)]
pub(crate) struct Heap {
    /// Most memory of connections since memory was last returned.
    peak_bytes: u64,
    checks_at: Time,
    /// Whether connections may have used more memory since the last check.
    unchecked: bool,
}

impl Heap {
    pub(crate) const fn new() -> Heap {
        Heap { peak_bytes: 0, checks_at: Time::ZERO, unchecked: false }
    }

    /// Returns when to check next.
    pub(crate) fn next(&self) -> Time {
        let waits = self.unchecked || self.peak_bytes >= MIN_PEAK_BYTES;
        if waits { self.checks_at } else { Time::NEVER }
    }

    /// Returns freed memory if it is time. `used_bytes` measures the memory of connections.
    pub(crate) fn check(&mut self, now: Time, used_bytes: impl FnOnce() -> u64) {
        self.unchecked = now < self.checks_at;
        if self.unchecked {
            return;
        }
        self.checks_at = now + CHECK_INTERVAL;
        if self.falls_to(used_bytes()) {
            sys::return_free_memory();
        }
    }

    /// Returns whether the memory of connections has fallen to less than half of the peak.
    fn falls_to(&mut self, used_bytes: u64) -> bool {
        let falls = self.peak_bytes >= MIN_PEAK_BYTES && used_bytes < self.peak_bytes / 2;
        self.peak_bytes = if falls { used_bytes } else { self.peak_bytes.max(used_bytes) };
        falls
    }
}

#[cfg(test)]
mod tests {
    use super::{CHECK_INTERVAL, Heap, MIN_PEAK_BYTES};
    use plait_base::Time;

    #[test]
    fn memory_returns_once_after_each_burst() {
        let mut heap = Heap::new();
        let falls: Vec<bool> =
            [0, MIN_PEAK_BYTES, MIN_PEAK_BYTES / 2, 100, 0, 4 * MIN_PEAK_BYTES, 0]
                .map(|used_bytes| heap.falls_to(used_bytes))
                .into();
        assert_eq!(falls, [false, false, false, true, false, false, true]);
    }

    #[test]
    fn an_idle_server_is_not_woken() {
        let mut heap = Heap::new();
        assert_eq!(heap.next(), Time::NEVER);
        heap.check(Time::ZERO, || 0);
        assert_eq!(heap.next(), Time::NEVER);
        let next = Time::ZERO + CHECK_INTERVAL;
        heap.check(Time::from_nanos(1), || unreachable!());
        assert_eq!(heap.next(), next);
        heap.check(next, || MIN_PEAK_BYTES);
        let next = next + CHECK_INTERVAL;
        assert_eq!(heap.next(), next);
        heap.check(next, || 0);
        assert_eq!(heap.next(), Time::NEVER);
    }
}
