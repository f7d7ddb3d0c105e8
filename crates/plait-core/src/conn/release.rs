//! A connection whose user is done with it.

use super::timeouts::Awaited;
use super::{Connection, Context};
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use plait_base::Slim;

impl Connection {
    /// The user is done: this end finishes, and nobody reads any more. False if it was released before.
    pub(crate) fn release(&mut self, ctx: &mut Context<'_>) -> bool {
        let first = !self.is_released();
        if first {
            self.closing.released = Slim::some(self.queue.una());
            self.changed = true;
            self.finish(ctx.now);
            self.arm_release(ctx);
        }
        first
    }

    /// Starts the time within which the peer has to end its direction.
    pub(super) fn arm_release(&mut self, ctx: &mut Context<'_>) {
        if self.is_released() && !self.failed && !self.closing.done() {
            self.timers.set(Awaited::Release, ctx.now + self.spec.config.close_timeout);
        }
    }

    /// Aborts the connection if the peer has acknowledged no data since the timer was set.
    pub(super) fn on_release_timer(&mut self, ctx: &mut Context<'_>) {
        let una = self.queue.una();
        if self.closing.done() {
            // Each subflow has a timer of its own.
        } else if self.closing.released.value().is_some_and(|before| before < una) {
            self.closing.released = Slim::some(una);
            self.arm_release(ctx);
        } else {
            self.abort(ctx);
        }
    }

    pub(crate) fn is_released(&self) -> bool {
        self.closing.released.is_some()
    }

    /// Throws away what nobody reads.
    pub(crate) fn discard(&mut self) {
        if self.recv.readable() > 0 {
            self.skip(None, u64::MAX);
        }
        self.news = false;
    }

    /// Whether all that this end has sent was acknowledged.
    pub(crate) fn is_drained(&self) -> bool {
        self.queue.is_drained()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Nothing more comes or goes: every subflow is closed, TIME-WAIT included, and none is waited
    /// for.
    pub(crate) fn is_gone(&self) -> bool {
        !self.awaits_subflow()
            && self
                .subflows
                .iter()
                .all(|s| s.state == State::Closed && !s.pending.has(ControlSegment::Rst))
    }
}
