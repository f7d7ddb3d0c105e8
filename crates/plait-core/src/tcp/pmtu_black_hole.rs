//! Detection of paths that deliver small segments only (RFC 4821 section 7.7, RFC 8899 section
//! 4.3), for one subflow. A timeout alone proves nothing. Long segments must be lost while short
//! ones arrive.

use plait_base::Time;

/// How often short segments must arrive between lost long ones.
const MIN_ROUNDS: u8 = 2;

/// Detects that a path drops long segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlackHoleDetector {
    /// Time since which long segments are missing; [`Time::NEVER`] if none is.
    since: Time,
    /// Longest delivered segment sent since then, in payload bytes.
    longest_delivered: u32,
    /// How often short segments were delivered after a timeout.
    rounds: u8,
    /// Short segments were sent after a timeout, and none has been delivered.
    short_sent: bool,
}

/// The verdict of an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Undecided.
    Unknown,
    /// No segment with more payload bytes was delivered.
    BlackHole(u32),
}

impl Default for BlackHoleDetector {
    fn default() -> BlackHoleDetector {
        BlackHoleDetector { since: Time::NEVER, longest_delivered: 0, rounds: 0, short_sent: false }
    }
}

impl BlackHoleDetector {
    /// Returns the time from which sent segments count; [`Time::NEVER`] without a suspicion.
    pub(crate) const fn since(&self) -> Time {
        self.since
    }

    /// Returns true if short segments have arrived since the last long one.
    pub(crate) const fn is_likely(&self) -> bool {
        self.rounds > 0
    }

    /// Notes that short segments replace a long one after a timeout.
    pub(crate) fn on_short_sent(&mut self, now: Time) {
        self.since = self.since.min(now);
        self.short_sent = true;
    }

    /// Notes delivered segments of at most `longest` bytes sent since then. More than `below` bytes
    /// prove that the current size passes.
    pub(crate) fn on_delivered(&mut self, longest: u32, below: u32) -> Verdict {
        if longest > below {
            *self = BlackHoleDetector::default();
            return Verdict::Unknown;
        }
        self.longest_delivered = self.longest_delivered.max(longest);
        self.rounds += u8::from(self.short_sent);
        self.short_sent = false;
        if self.rounds < MIN_ROUNDS {
            Verdict::Unknown
        } else {
            Verdict::BlackHole(self.longest_delivered)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R63: short segments must arrive twice, with long ones lost before and between.
    #[test]
    fn one_answer_is_not_enough_and_a_long_one_clears() {
        let mut it = BlackHoleDetector::default();
        assert_eq!(it.since(), Time::NEVER);
        it.on_short_sent(Time::from_nanos(7));
        it.on_short_sent(Time::from_nanos(9));
        assert_eq!((it.since(), it.is_likely()), (Time::from_nanos(7), false));
        assert_eq!(it.on_delivered(500, 1_128), Verdict::Unknown);
        assert_eq!(it.on_delivered(900, 1_128), Verdict::Unknown);
        assert!(it.is_likely());
        let mut other = it;
        it.on_short_sent(Time::from_nanos(20));
        assert_eq!(it.on_delivered(500, 1_128), Verdict::BlackHole(900));
        assert_eq!(other.on_delivered(1_129, 1_128), Verdict::Unknown);
        assert!(!other.is_likely() && other.since() == Time::NEVER);
    }
}
