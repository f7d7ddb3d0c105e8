//! How the time and the bytes of a measurement are divided.

use std::time::Duration;

/// Times of the parts of a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Schedule {
    /// Probes of an idle path.
    pub(super) idle: Duration,
    /// Load above the rate, for each path and direction.
    pub(super) full: Duration,
    /// Load below the rate, for each path and direction.
    pub(super) light: Duration,
    /// Load on all paths together.
    pub(super) together: Duration,
    /// Load above the rate once more, for each path: it shows how the rate varies.
    pub(super) again: Duration,
}

/// The loads that remain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rest {
    /// Ways of paths to search and to load.
    pub(super) ways: u32,
    /// Whether all paths are to be loaded together.
    pub(super) together: bool,
    /// Paths to be loaded again.
    pub(super) again: u32,
}

/// Parts of the time for each path: idle, and full and light load in both directions.
const PARTS: [u32; 3] = [10, 24, 18];
/// Part of the time for the last load of each path.
const AGAIN_PART: u32 = 12;
/// Part of the time for all paths together.
const TOGETHER_PART: u32 = 24;
/// Time of the search for the rate of a direction.
const SEARCH: Duration = Duration::from_millis(1_100);
/// Largest share of the time for all searches.
const MAX_SEARCH_PERCENT: u32 = 60;
/// Share of the other time that the waits between the loads take.
const WAITS_PERCENT: u32 = 20;
/// Least part of a load that remains if the time is short.
const MIN_PART: f64 = 0.1;

impl Schedule {
    /// Divides a time between so many paths.
    pub(super) fn of(time: Duration, paths: usize) -> Schedule {
        let paths = u32::try_from(paths).unwrap_or(u32::MAX).max(1);
        let each = PARTS[0] + 2 * (PARTS[1] + PARTS[2]) + AGAIN_PART;
        let all = if paths > 1 { paths * each + TOGETHER_PART } else { each };
        let searches = (2 * paths * SEARCH).min(time * MAX_SEARCH_PERCENT / 100);
        let unit = (time - searches) * (100 - WAITS_PERCENT) / 100 / all;
        let together = if paths > 1 { unit * TOGETHER_PART } else { Duration::ZERO };
        Schedule {
            idle: (unit * PARTS[0]).min(Duration::from_secs(5)),
            full: (unit * PARTS[1]).min(Duration::from_secs(8)),
            light: (unit * PARTS[2]).min(Duration::from_secs(8)),
            together: together.min(Duration::from_secs(8)),
            again: (unit * AGAIN_PART).min(Duration::from_secs(4)),
        }
    }

    /// Returns the overhead of a way of a path, which is a search and the waits, before one was measured.
    pub(super) fn usual_overhead(&self) -> Duration {
        SEARCH + (self.full + self.light) * WAITS_PERCENT / 100
    }

    /// Shortens the loads, so that those that remain fit into the time that is left. `overhead` is that of the latest
    /// way.
    pub(super) fn within(self, left: Duration, rest: Rest, overhead: Duration) -> Schedule {
        let together = if rest.together { self.together } else { Duration::ZERO };
        let loads = (self.full + self.light) * rest.ways + together + self.again * rest.again;
        let free = left.saturating_sub(overhead * rest.ways).as_secs_f64();
        let part = (free / loads.as_secs_f64().max(1e-3)).clamp(MIN_PART, 1.0);
        Schedule {
            idle: self.idle,
            full: self.full.mul_f64(part),
            light: self.light.mul_f64(part),
            together: self.together.mul_f64(part),
            again: self.again.mul_f64(part),
        }
    }
}

/// Returns the time of a load that has at most so many bytes.
pub(super) fn affordable(time: Duration, rate_bps: f64, bytes: u64) -> Duration {
    let most = bytes as f64 * 8.0 / rate_bps.max(1.0);
    time.min(Duration::try_from_secs_f64(most).unwrap_or(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_fit_the_time() {
        for (seconds, paths) in [(10, 1), (20, 2), (30, 2), (60, 4)] {
            let time = Duration::from_secs(seconds);
            let schedule = Schedule::of(time, paths);
            let each = schedule.idle + 2 * (schedule.full + schedule.light) + schedule.again;
            let all = each * u32::try_from(paths).unwrap() + schedule.together;
            let searches = SEARCH * 2 * u32::try_from(paths).unwrap();
            assert!(all + searches <= time && all * 4 > time, "{schedule:?}");
        }
        let schedule = Schedule::of(Duration::from_secs(15), 2);
        let rest = Rest { ways: 4, together: true, again: 2 };
        assert_eq!(
            schedule.within(Duration::from_secs(15), rest, schedule.usual_overhead()),
            schedule
        );
        // Long waits leave less time for the loads, which still fit.
        let (left, overhead) = (Duration::from_secs(9), Duration::from_millis(1_800));
        let short = schedule.within(left, rest, overhead);
        let all = (overhead + short.full + short.light) * 4 + short.together + short.again * 2;
        assert!(all <= left && all * 10 > left * 9, "{short:?}");
        assert!(short.full < schedule.full && short.full > schedule.full / 10, "{short:?}");
        // What is over takes no time from the last load.
        let last = Rest { ways: 0, together: false, again: 1 };
        assert_eq!(schedule.within(schedule.again, last, overhead).again, schedule.again);
        assert_eq!(affordable(Duration::from_secs(9), 8e6, 2_000_000), Duration::from_secs(2));
        assert_eq!(affordable(Duration::from_secs(1), 8e6, 2_000_000), Duration::from_secs(1));
    }
}
