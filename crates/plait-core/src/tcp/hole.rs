//! Whether a path lets only small segments through (RFC 4821 section 7.7, RFC 8899 section 4.3): what
//! one subflow has seen of it. A timeout alone says nothing; long segments that vanish while short
//! ones arrive do.

use plait_base::Time;

/// How often short segments have to arrive between long ones that do not.
const ROUNDS: u8 = 2;

/// What is suspected of a path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspicion {
    /// Since then; [`Time::NEVER`] where nothing is.
    since: Time,
    /// The longest segment sent since then that was delivered, in payload bytes.
    passed: u32,
    /// How often short ones were delivered after a timeout.
    rounds: u8,
    /// Short ones have been sent after a timeout, and none of them is delivered.
    asked: bool,
}

/// What an acknowledgement makes of a suspicion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// It is not known yet.
    Open,
    /// Nothing longer than this many payload bytes gets through, as far as was seen.
    Hole(u32),
}

impl Default for Suspicion {
    fn default() -> Suspicion {
        Suspicion { since: Time::NEVER, passed: 0, rounds: 0, asked: false }
    }
}

impl Suspicion {
    /// What was sent from here on counts; [`Time::NEVER`] where nothing is suspected.
    pub(crate) const fn since(&self) -> Time {
        self.since
    }

    /// Short segments have passed since a long one did last.
    pub(crate) const fn is_grave(&self) -> bool {
        self.rounds > 0
    }

    /// After a timeout short segments go out in place of a long one.
    pub(crate) fn ask(&mut self, now: Time) {
        self.since = self.since.min(now);
        self.asked = true;
    }

    /// Segments of at most `longest` bytes sent since were delivered, where the present size is at
    /// stake: more than `below` bytes prove it.
    pub(crate) fn on_passed(&mut self, longest: u32, below: u32) -> Verdict {
        if longest > below {
            *self = Suspicion::default();
            return Verdict::Open;
        }
        self.passed = self.passed.max(longest);
        self.rounds += u8::from(self.asked);
        self.asked = false;
        if self.rounds < ROUNDS { Verdict::Open } else { Verdict::Hole(self.passed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R63: short ones have to pass twice, with long ones lost before and between.
    #[test]
    fn one_answer_is_not_enough_and_a_long_one_clears() {
        let mut it = Suspicion::default();
        assert_eq!(it.since(), Time::NEVER);
        it.ask(Time::from_nanos(7));
        it.ask(Time::from_nanos(9));
        assert_eq!((it.since(), it.is_grave()), (Time::from_nanos(7), false));
        assert_eq!(it.on_passed(500, 1_128), Verdict::Open);
        assert_eq!(it.on_passed(900, 1_128), Verdict::Open);
        assert!(it.is_grave());
        let mut other = it;
        it.ask(Time::from_nanos(20));
        assert_eq!(it.on_passed(500, 1_128), Verdict::Hole(900));
        assert_eq!(other.on_passed(1_129, 1_128), Verdict::Open);
        assert!(!other.is_grave() && other.since() == Time::NEVER);
    }
}
