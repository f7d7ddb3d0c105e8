//! Limits for the joins of a peer, and the options of the resets that refuse joins (flag C of RFC 8684
//! section 3.1, and section 3.6).

use plait_base::{Span, Time};
use plait_wire::{Mptcp, ResetReason};

/// Joins of one connection that are accepted per second.
pub(crate) const JOINS_PER_SECOND: u64 = 10;

/// A rate limit of events per second, with a burst of one second's events.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Allowance {
    /// When the full allowance is available again.
    pub(crate) even: Time,
}

impl Allowance {
    /// Takes one of `per_second` events. Returns false if none is left.
    pub(crate) fn take(&mut self, now: Time, per_second: u64) -> bool {
        let each = Span::from_nanos(1_000_000_000 / per_second.max(1));
        let even = self.even.max(now) + each;
        let may = even <= now + each.times(per_second);
        if may {
            self.even = even;
        }
        may
    }
}

/// The reset option for a join beyond a limit: the peer may retry (RFC 8684 section 3.6).
pub(crate) const LIMIT_REACHED: Mptcp =
    Mptcp::Reset { reason: ResetReason::Prohibited, transient: true };

/// The reset option for a join of an address that denies joins.
pub(crate) const DENIED: Mptcp = Mptcp::Reset { reason: ResetReason::Prohibited, transient: false };

#[cfg(test)]
mod tests {
    use super::*;

    /// R24: a burst of ten, then one each tenth of a second; the allowance has an upper bound.
    #[test]
    pub(crate) fn an_allowance_is_a_rate() {
        let mut allowance = Allowance::default();
        let mut taken = |millis: u64| {
            let now = Time::ZERO + Span::from_millis(millis);
            (0..100).filter(|_| allowance.take(now, 10)).count()
        };
        assert_eq!([taken(0), taken(99), taken(100), taken(349)], [10, 0, 1, 2]);
        assert_eq!([taken(400), taken(60_000), taken(60_999), taken(61_000)], [1, 10, 9, 1]);
    }
}
