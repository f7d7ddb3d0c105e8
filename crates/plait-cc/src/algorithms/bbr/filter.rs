//! Maxima over recent time, and the lowest RTT.

use super::rules::Periods;
use plait_base::{Span, Time};

/// The largest rate of this cycle of ProbeBW and of the one before (draft-ietf-ccwg-bbr section 5.5.5).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct MaxBandwidth {
    before: u64,
    now: u64,
}

impl MaxBandwidth {
    pub(super) fn value(self) -> u64 {
        self.before.max(self.now)
    }

    pub(super) fn add(&mut self, rate: u64) {
        self.now = self.now.max(rate);
    }

    /// Begins a cycle. A cycle without a sample does not displace an older one.
    pub(super) fn advance(&mut self) {
        if self.now > 0 {
            *self = MaxBandwidth { before: self.now, now: 0 };
        }
    }
}

/// The largest value of the last round trips. Of the values that may become the largest it keeps three, each
/// later than the one before and no larger.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct WindowedMax {
    /// Values with the number of their round trip.
    kept: [(u64, u64); 3],
}

impl WindowedMax {
    pub(super) fn value(self) -> u64 {
        self.kept[0].1
    }

    /// Adds a value of the round trip `round`. Values older than `window` round trips are dropped.
    pub(super) fn add(&mut self, round: u64, value: u64, window: u64) {
        let new = (round, value);
        let old = |kept: (u64, u64)| round.saturating_sub(kept.0) > window;
        if value >= self.kept[0].1 || old(self.kept[2]) {
            self.kept = [new; 3];
            return;
        }
        if value >= self.kept[1].1 {
            (self.kept[1], self.kept[2]) = (new, new);
        } else if value >= self.kept[2].1 {
            self.kept[2] = new;
        }
        while old(self.kept[0]) {
            self.kept = [self.kept[1], self.kept[2], new];
        }
        // Candidates of different times, so that there is one when the largest expires.
        let age = round.saturating_sub(self.kept[0].0);
        if self.kept[1].0 == self.kept[0].0 && age > window / 4 {
            (self.kept[1], self.kept[2]) = (new, new);
        } else if self.kept[2].0 == self.kept[1].0 && age > window / 2 {
            self.kept[2] = new;
        }
    }
}

/// The lowest RTT, and the lowest of the shorter time that decides about ProbeRTT (section 5.3.4.3).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LowestRtt {
    /// The lowest RTT of the long time; `None` before the first sample.
    pub(super) value: Option<Span>,
    at: Time,
    recent: Option<Span>,
    recent_at: Time,
    /// True if the recent one was due for renewal at the last acknowledgement.
    pub(super) expired: bool,
}

impl LowestRtt {
    /// Begins at `now` with the smoothed RTT of the handshake, if there is one.
    pub(super) fn begin(&mut self, now: Time, srtt: Option<Span>) {
        *self = LowestRtt { value: srtt, at: now, recent_at: now, ..LowestRtt::default() };
    }

    pub(super) fn update(&mut self, now: Time, rtt: Option<Span>, periods: &Periods) {
        self.expired = now > self.recent_at + periods.probe_rtt;
        if let Some(rtt) = rtt
            && (self.expired || self.recent.is_none_or(|recent| rtt < recent))
        {
            (self.recent, self.recent_at) = (Some(rtt), now);
        }
        let Some(recent) = self.recent else { return };
        let stale = now > self.at + periods.min_rtt;
        if stale || self.value.is_none_or(|lowest| recent < lowest) {
            (self.value, self.at) = (Some(recent), self.recent_at);
        }
    }

    /// Schedules the next ProbeRTT, after one that ended at `now`.
    pub(super) fn renew(&mut self, now: Time) {
        self.recent_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window is 10 round trips. The 50 of round 0 lasts to round 10. The 30 of round 5 is next.
    #[test]
    fn the_largest_value_lasts_for_its_window() {
        let mut max = WindowedMax::default();
        max.add(0, 50, 10);
        for round in 1..=10 {
            max.add(round, if round == 5 { 30 } else { 10 }, 10);
            assert_eq!(max.value(), 50, "{round}");
        }
        max.add(11, 10, 10);
        assert_eq!(max.value(), 30);
        max.add(16, 10, 10);
        assert_eq!(max.value(), 10);
        // With a window of one round trip, as in Startup.
        max.add(17, 9, 1);
        max.add(18, 8, 1);
        assert_eq!(max.value(), 9);
        max.add(19, 7, 1);
        assert_eq!(max.value(), 8);
    }

    /// The RTT of 100 ms at the start is replaced after 10 s, by the lowest one of the time since ProbeRTT was
    /// due. A lower one counts at once.
    #[test]
    fn the_lowest_rtt_lasts_for_ten_seconds() {
        let periods = super::super::Rules::new(&crate::Params::default()).periods;
        let ms = Span::from_millis;
        let at = |nanos| Time::ZERO + Span::from_nanos(nanos);
        let mut rtt = LowestRtt::default();
        rtt.begin(at(0), Some(ms(100)));
        for (now, sample, lowest, expired) in [
            (1_000_000_000, 120, 100, false),
            (6_000_000_000, 200, 100, false),
            // After more than 5 s, any sample is the recent one.
            (6_000_000_001, 200, 100, true),
            (10_000_000_000, 250, 100, false),
            (10_000_000_001, 250, 200, false),
            (10_500_000_000, 150, 150, false),
        ] {
            rtt.update(at(now), Some(ms(sample)), &periods);
            assert_eq!((rtt.value, rtt.expired), (Some(ms(lowest)), expired), "{now}");
        }
    }

    #[test]
    fn two_cycles_count_and_empty_ones_do_not() {
        let mut max = MaxBandwidth::default();
        max.add(100);
        max.advance();
        max.add(80);
        assert_eq!(max.value(), 100);
        max.advance();
        max.advance();
        assert_eq!(max.value(), 80);
    }
}
