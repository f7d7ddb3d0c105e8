//! A connection whose last subflow is gone before both ends know that its data has ended: it is kept
//! for a while, for the client may open another one (RFC 8684 section 3.3.6 lets data be sent on any
//! subflow, later ones included).

use super::timeouts::{Awaited, ConnectionTimers};
use super::{Connection, Context, Mode};
use crate::config::PathConfig;
use crate::tcp::state::State;
use plait_base::Span;
use plait_wire::{Mptcp, ResetReason, Segment};

impl Connection {
    /// Whether the connection outlives its last subflow: both ends have the keys, and neither has
    /// given it up.
    pub(super) fn may_await_subflow(&self) -> bool {
        let agreed = self.mode == Mode::Multipath && self.keys.peer.is_some() && !self.falls_back();
        let known = !self.client || self.joins.peer_dss_seen;
        let kept = self.spec.config.close_timeout > Span::ZERO;
        // A client whose paths are all barred has nowhere to open one.
        let barred = |config: &PathConfig| self.joins.is_barred(config.path);
        let hopeless =
            self.client && self.spec.paths.iter().all(barred) || self.has_no_address_to_join();
        agreed && known && kept && !hopeless && !self.failed && !self.closing.settled()
    }

    /// Whether it waits for a subflow.
    pub(crate) fn awaits_subflow(&self) -> bool {
        self.timers.is_set(Awaited::NoSubflow)
    }

    /// Whether a subflow has come through its handshake and is not closed.
    pub(super) fn has_subflow(&self) -> bool {
        self.subflows.iter().any(|s| s.state.synchronised())
    }

    /// A subflow is gone, perhaps the last one.
    pub(super) fn on_subflow_gone(&mut self, ctx: &mut Context<'_>) {
        if self.has_subflow() || self.awaits_subflow() {
            return;
        }
        if self.may_await_subflow() {
            self.timers.set(Awaited::NoSubflow, ctx.now + self.spec.config.close_timeout);
        } else if self.closing.done() {
            self.closing.settle();
        } else if self.subflows.iter().all(|s| s.state == State::Closed) {
            self.failed = true;
            self.news = true;
        }
    }

    /// There is a subflow again: what is outstanding goes there.
    pub(super) fn on_subflow_regained(&mut self) {
        self.timers.clear(Awaited::NoSubflow);
        self.closing.fin_due |= self.closing.fin_sent && !self.closing.fin_acked;
    }

    /// Nobody came. An end that has all data and whose own was all acknowledged has not failed: the
    /// peer has closed, or must do without the last DATA_ACK.
    pub(super) fn on_no_subflow_timeout(&mut self, ctx: &mut Context<'_>) {
        self.timers = ConnectionTimers::new();
        self.changed = true;
        if self.closing.done() {
            self.closing.settle();
        } else {
            self.failed = true;
            self.news = true;
        }
        for index in 0..self.subflows.len() {
            let tell = self.subflows[index].state != State::SynSent;
            self.kill_subflow(ctx, index, tell);
        }
    }

    /// The peer refuses a join, for it does not know the connection any more.
    pub(super) fn is_forgotten(&self, index: usize, reset: &Segment) -> bool {
        let subflow = &self.subflows[index];
        let refused = Mptcp::Reset { reason: ResetReason::Mptcp, transient: false };
        let told = reset.options.mptcp.as_deref();
        let for_good = told.is_some_and(|option| option.all().contains(&refused));
        self.awaits_subflow() && subflow.shake.join && subflow.state == State::SynSent && for_good
    }
}
