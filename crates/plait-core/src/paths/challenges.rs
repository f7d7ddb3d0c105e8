//! A limit for challenge ACKs (RFC 5961 section 7), so that a blind attacker cannot trigger
//! segments at will. Each connection has its own unpredictable limit. A shared or fixed one would
//! reveal other connections' traffic to an attacker.

use crate::context::Context;
use plait_base::{Span, Time};

/// Period of the limit.
const CHALLENGE_PERIOD: Span = Span::from_secs(1);
/// Lower bound of challenges per period; the limit is between this and twice as many.
const MIN_CHALLENGES_PER_PERIOD: u64 = 40;

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Challenges {
    until: Time,
    left: u64,
}

impl Challenges {
    /// Returns true if another challenge may be sent.
    pub(crate) fn take(&mut self, ctx: &mut Context<'_>) -> bool {
        if ctx.now >= self.until {
            self.until = ctx.now + CHALLENGE_PERIOD;
            self.left = MIN_CHALLENGES_PER_PERIOD + ctx.draw() % MIN_CHALLENGES_PER_PERIOD;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}
