//! A connection whose user is done with it.

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::State;
use plait_base::Slim;

impl Connection {
    /// The user is done: this end finishes, and nobody reads any more. False if it was released before.
    pub(crate) fn release(&mut self, ctx: &mut Context<'_>) -> bool {
        let first = !self.data.is_released();
        if first {
            self.data.closing.released = Slim::some(self.data.queue.una());
            self.notices.changed = true;
            self.finish(ctx.now);
            self.timers.arm_release(ctx, &self.spec.config, &self.data);
        }
        first
    }

    /// Aborts the connection if the peer has acknowledged no data since the timer was set.
    pub(super) fn on_release_timer(&mut self, ctx: &mut Context<'_>) {
        let una = self.data.queue.una();
        if self.data.closing.done() {
            // Each subflow has a timer of its own.
        } else if self.data.closing.released.value().is_some_and(|before| before < una) {
            self.data.closing.released = Slim::some(una);
            self.timers.arm_release(ctx, &self.spec.config, &self.data);
        } else {
            self.abort(ctx);
        }
    }

    /// Throws away what nobody reads.
    pub(crate) fn discard(&mut self) {
        if self.data.recv.readable() > 0 {
            self.skip(None, u64::MAX);
        }
        self.notices.news = false;
    }

    /// Nothing more comes or goes: every subflow is closed, TIME-WAIT included, and none is waited
    /// for.
    pub(crate) fn is_gone(&self) -> bool {
        !self.timers.awaits_subflow()
            && self
                .paths
                .subflows
                .iter()
                .all(|s| s.state == State::Closed && !s.pending.has(ControlSegment::Rst))
    }
}
