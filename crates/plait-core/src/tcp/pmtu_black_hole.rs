//! Whether a path lets only small segments through (RFC 4821 section 7.7, RFC 8899 section 4.3): what
//! one subflow has seen of it. A timeout alone says nothing; long segments that vanish while short
//! ones arrive do.

use plait_base::Time;

/// How often short segments have to arrive between long ones that do not.
const MIN_ROUNDS: u8 = 2;

/// Finds out whether a path swallows long segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlackHoleDetector {
    /// Long segments have been missing since then; [`Time::NEVER`] where nothing is.
    since: Time,
    /// The longest segment sent since then that was delivered, in payload bytes.
    longest_delivered: u32,
    /// How often short ones were delivered after a timeout.
    rounds: u8,
    /// Short ones have been sent after a timeout, and none of them is delivered.
    short_sent: bool,
}

/// What an acknowledgement tells of a black hole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It is not known yet.
    Unknown,
    /// Nothing longer than this many payload bytes gets through, as far as was seen.
    BlackHole(u32),
}

impl Default for BlackHoleDetector {
    fn default() -> BlackHoleDetector {
        BlackHoleDetector { since: Time::NEVER, longest_delivered: 0, rounds: 0, short_sent: false }
    }
}

impl BlackHoleDetector {
    /// What was sent from here on counts; [`Time::NEVER`] where nothing is suspected.
    pub(crate) const fn since(&self) -> Time {
        self.since
    }

    /// Short segments have arrived since a long one did last.
    pub(crate) const fn is_likely(&self) -> bool {
        self.rounds > 0
    }

    /// After a timeout short segments go out in place of a long one.
    pub(crate) fn on_short_sent(&mut self, now: Time) {
        self.since = self.since.min(now);
        self.short_sent = true;
    }

    /// Segments of at most `longest` bytes sent since were delivered, where the present size is at
    /// stake: more than `below` bytes prove it.
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

    /// R63: short ones have to pass twice, with long ones lost before and between.
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
