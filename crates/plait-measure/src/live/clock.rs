//! Real time.
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "here real time comes in")]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The wall clock at its start, and the monotonic clock since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
    epoch_ns: u64,
}

impl Clock {
    pub(super) fn start() -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch_ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Clock { start: Instant::now(), epoch_ns }
    }

    /// Returns nanoseconds since 1970. Two processes of one host agree about them.
    pub(super) fn now_ns(&self) -> u64 {
        self.epoch_ns.saturating_add(self.elapsed_ns())
    }

    /// Returns nanoseconds since the start.
    pub(super) fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }
}

/// Waits.
pub(super) fn sleep(time: Duration) {
    std::thread::sleep(time);
}
