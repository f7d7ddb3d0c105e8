//! The copies in advance that a path may carry in any minute.

use plait_base::{Span, Time};

/// Length of a period.
const PERIOD: Span = Span::from_secs(10);
/// Periods that always contain the latest minute.
pub(super) const PERIODS: usize = 7;

/// The copies of the latest minute, by period.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Allowance {
    /// The latest period with a copy, counted from time zero.
    pub(super) latest: u64,
    /// Bytes of copies in that period and those before it; each period has its place in turn.
    pub(super) copied: [u64; PERIODS],
}

impl Allowance {
    /// Returns the bytes of copies in the latest minute. Up to ten seconds more may be included.
    pub(super) fn in_a_minute(&self, now: Time) -> u64 {
        let passed = period(now).saturating_sub(self.latest);
        let first = self.latest.saturating_sub((PERIODS as u64 - 1).saturating_sub(passed));
        if passed >= PERIODS as u64 {
            return 0;
        }
        (first..=self.latest).map(|it| self.copied[place(it)]).fold(0, u64::saturating_add)
    }

    /// Notes a copy of `len` bytes.
    pub(super) fn on_copied(&mut self, now: Time, len: u64) {
        let period = period(now);
        let passed = period.saturating_sub(self.latest).min(PERIODS as u64);
        for old in 1..=passed {
            self.copied[place(self.latest + old)] = 0;
        }
        self.latest = period.max(self.latest);
        let copied = &mut self.copied[place(self.latest)];
        *copied = copied.saturating_add(len);
    }
}

fn period(now: Time) -> u64 {
    now.as_nanos() / PERIOD.as_nanos()
}

const fn place(period: u64) -> usize {
    (period % PERIODS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    #[test]
    fn copies_count_for_a_minute() {
        let mut allowance = Allowance::default();
        assert_eq!(allowance.in_a_minute(at(1_000)), 0);
        allowance.on_copied(at(1_003), 5);
        allowance.on_copied(at(1_019), 7);
        assert_eq!(allowance.in_a_minute(at(1_019)), 12);
        assert_eq!(allowance.in_a_minute(at(1_063)), 12);
        // 1,003 s is more than a minute ago, and 1,019 is not.
        assert_eq!(allowance.in_a_minute(at(1_070)), 7);
        assert_eq!(allowance.in_a_minute(at(1_079)), 7);
        assert_eq!(allowance.in_a_minute(at(1_090)), 0);
    }

    #[test]
    fn a_place_is_used_again() {
        let mut allowance = Allowance::default();
        for second in 0..700 {
            allowance.on_copied(at(second), 1);
        }
        // Six whole periods, and the present one.
        assert_eq!(allowance.in_a_minute(at(699)), 70);
        assert_eq!(allowance.in_a_minute(at(705)), 60);
        allowance.on_copied(at(5_000), 3);
        assert_eq!(allowance.in_a_minute(at(5_000)), 3);
    }
}
