//! A connection whose last subflow is gone before both ends know that its data has ended: it is kept
//! for a while, for the client may open another one (RFC 8684 section 3.3.6 lets data be sent on any
//! subflow, later ones included).

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::conn::timers::{Awaited, ConnectionTimers};
use crate::tcp::state::State;

impl Connection {
    /// A subflow is gone, perhaps the last one.
    pub(super) fn on_subflow_gone(&mut self, ctx: &mut Context<'_>) {
        if self.paths.has_subflow() || self.timers.awaits_subflow() {
            return;
        }
        if self.paths.may_await_subflow(&self.spec, &self.data) {
            self.timers.set(Awaited::NoSubflow, ctx.now + self.spec.config.close_timeout);
        } else if self.data.closing.done() {
            self.data.closing.settle();
        } else if self.paths.subflows.iter().all(|s| s.state == State::Closed) {
            self.data.closing.failed = true;
            self.notices.news = true;
        }
    }

    /// There is a subflow again: what is outstanding goes there.
    pub(super) fn on_subflow_regained(&mut self) {
        self.timers.clear(Awaited::NoSubflow);
        self.data.closing.fin_due |= self.data.closing.fin_sent && !self.data.closing.fin_acked;
    }

    /// Nobody came. An end that has all data and whose own was all acknowledged has not failed: the
    /// peer has closed, or must do without the last DATA_ACK.
    pub(super) fn on_no_subflow_timeout(&mut self, ctx: &mut Context<'_>) {
        self.timers = ConnectionTimers::new();
        self.notices.changed = true;
        if self.data.closing.done() {
            self.data.closing.settle();
        } else {
            self.data.closing.failed = true;
            self.notices.news = true;
        }
        for index in 0..self.paths.subflows.len() {
            let tell = self.paths.subflows[index].state != State::SynSent;
            self.kill_subflow(ctx, index, tell);
        }
    }
}
