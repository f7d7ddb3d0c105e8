//! A connection whose user is done with it.

use super::timeouts::Awaited;
use super::{Connection, Context};
use crate::tcp::owes::Debt;
use crate::tcp::state::State;
use plait_base::Slim;

impl Connection {
    /// The user is done: this end finishes, and nobody reads any more.
    pub(crate) fn release(&mut self, ctx: &mut Context<'_>) {
        if !self.is_released() {
            self.closing.released = Slim::some(self.queue.una());
            self.changed = true;
            self.finish(ctx.now);
            self.arm_release(ctx);
        }
    }

    /// The peer has this long to end its direction, and every subflow.
    pub(super) fn arm_release(&mut self, ctx: &mut Context<'_>) {
        let ended = self.closing.done() && !self.is_half_closed();
        if self.is_released() && !self.failed && !ended {
            self.timers.set(Awaited::Release, ctx.now + self.spec.config.close_timeout);
        }
    }

    /// Our data may go on for as long as it gets anywhere.
    pub(super) fn on_release_timer(&mut self, ctx: &mut Context<'_>) {
        let una = self.queue.una();
        if self.closing.done() {
            self.leave_half_closed(ctx);
        } else if self.closing.released.value().is_some_and(|before| before < una) {
            self.closing.released = Slim::some(una);
            self.arm_release(ctx);
        } else {
            self.abort(ctx);
        }
    }

    /// Whether a subflow waits for nothing but the peer's FIN.
    fn is_half_closed(&self) -> bool {
        self.subflows.iter().any(|it| it.state == State::FinWait2)
    }

    /// A peer that has told the end of its data and not that of a subflow has nothing more to say there
    /// (Linux: `net.ipv4.tcp_fin_timeout`, of sockets that nobody holds).
    fn leave_half_closed(&mut self, ctx: &mut Context<'_>) {
        self.closing.settle();
        for index in 0..self.subflows.len() {
            if self.subflows[index].state == State::FinWait2 {
                self.kill_subflow(ctx, index, false);
            }
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

    pub(crate) fn has_failed(&self) -> bool {
        self.failed
    }

    /// Nothing more comes or goes: every subflow is closed, TIME-WAIT included, and none is waited
    /// for.
    pub(crate) fn is_gone(&self) -> bool {
        !self.waits()
            && self.subflows.iter().all(|s| s.state == State::Closed && !s.owes.has(Debt::Rst))
    }
}
