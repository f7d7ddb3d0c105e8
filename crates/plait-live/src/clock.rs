#![expect(clippy::disallowed_types, reason = "here real time comes in")]

use plait_base::{Span, Time};
use std::time::{Duration, Instant, SystemTime};

/// The time since its start on the host's monotonic clock. Jumps of the wall clock do not affect it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// Starts a clock at zero.
    #[must_use]
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Returns the wall-clock time of zero in nanoseconds since 1970. If the wall clock is set, later results
    /// change by the same amount.
    #[must_use]
    pub fn epoch_ns(&self) -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        now.saturating_sub(self.now().as_nanos())
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Time {
        let nanos = self.start.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Returns the time until `at`, at most `longest`.
    #[must_use]
    pub fn until(&self, at: Time, longest: Span) -> Duration {
        Duration::from_nanos(at.since(self.now()).min(longest).as_nanos())
    }
}

/// Returns the seconds since 1970.
#[must_use]
pub fn now_s() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
