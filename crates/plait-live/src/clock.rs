#![expect(clippy::disallowed_types, reason = "here real time comes in")]

use plait_base::{Span, Time};
use std::time::{Duration, Instant, SystemTime};

/// The host's monotonic clock, counted from when this was made: jumps of the wall clock do not
/// touch it.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that shows zero.
    #[must_use]
    pub fn start() -> Clock {
        Clock { start: Instant::now() }
    }

    /// What the host's wall clock showed at zero, as far as it has not been set since, in nanoseconds
    /// since 1970.
    #[must_use]
    pub fn epoch_ns(&self) -> u64 {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        now.saturating_sub(self.now().as_nanos())
    }

    /// What it shows.
    #[must_use]
    pub fn now(&self) -> Time {
        let nanos = self.start.elapsed().as_nanos();
        Time::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// How long to wait for `at`, at most `longest`.
    #[must_use]
    pub fn until(&self, at: Time, longest: Span) -> Duration {
        Duration::from_nanos(at.since(self.now()).min(longest).as_nanos())
    }
}
