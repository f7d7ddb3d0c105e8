//! A limit for challenge ACKs (RFC 5961 section 7), so that a blind attacker cannot make an endpoint
//! send at will. Each connection has its own, and it cannot be foretold: a shared or fixed one tells
//! the attacker what others do.

use crate::conn::context::Context;
use plait_base::{Span, Time};

/// The limit holds for this long.
const CHALLENGE_PERIOD: Span = Span::from_secs(1);
/// Between this many challenges a period and twice as many.
const MIN_CHALLENGES_PER_PERIOD: u64 = 40;

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Challenges {
    until: Time,
    left: u64,
}

impl Challenges {
    /// Whether one more challenge may be sent.
    pub(crate) fn take(&mut self, ctx: &mut Context<'_>) -> bool {
        if ctx.now >= self.until {
            self.until = ctx.now + CHALLENGE_PERIOD;
            self.left = MIN_CHALLENGES_PER_PERIOD + ctx.entropy.bits() % MIN_CHALLENGES_PER_PERIOD;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}
