//! The abrupt end of a whole connection (RFC 8684 section 3.5): MP_FASTCLOSE on an ACK of one
//! subflow while the others are reset, told again until the peer answers with a RST; in the end, and
//! where the peer may not know our key, on RSTs.

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::conn::timers::ConnectionTimers;
use crate::data::fastclose::{FastClose, MAX_FASTCLOSE_RETRIES};
use crate::tcp::pending::{Cause, ControlSegment, Pending};
use crate::tcp::state::State;
use crate::tcp::timer::Timer;
use plait_wire::{ResetReason, Segment};

impl Connection {
    /// Ends the connection at once: no more is sent, delivered or acknowledged.
    pub(crate) fn abort(&mut self, ctx: &mut Context<'_>) {
        if self.data.closing.fast.is_some() {
            return;
        }
        self.data.closing.failed = true;
        self.timers = ConnectionTimers::new();
        // A server that has not answered with a DSS may not know our key, and this one's last ACK
        // may have to prove it: then a RST has to do.
        let known = !self.data.falls_back()
            && self.data.speaks_multipath()
            && (!self.paths.client || self.data.agreed.peer_dss_seen);
        let chosen = self.paths.best_for_signal().filter(|_| known);
        for index in (0..self.paths.subflows.len()).filter(|index| Some(*index) != chosen) {
            let cause = if known { Cause::Reason(ResetReason::Unspecified) } else { Cause::Close };
            self.reset_subflow(ctx, index, cause);
        }
        let Some(index) = chosen else { return };
        let subflow = &mut self.paths.subflows[index];
        self.data.closing.fast = Some(FastClose { carrier: subflow.id, retries: 0 });
        subflow.tx.abandon();
        subflow.timers.clear_all();
        subflow.pending = Pending::only(ControlSegment::FastClose);
        // The timeout of data that was never acknowledged may have grown to two minutes. With it, the
        // retransmissions would hold the connection for eight.
        subflow.rtt.clear_backoff();
        subflow.timers.set(Timer::Rto, ctx.now + subflow.rtt.rto());
    }

    /// Ends the connection without waiting for the peer to confirm it: every subflow is reset.
    pub(crate) fn cut_off(&mut self, ctx: &mut Context<'_>) {
        self.data.closing.failed = true;
        self.timers = ConnectionTimers::new();
        self.data.closing.fast = None;
        for index in 0..self.paths.subflows.len() {
            if self.paths.subflows[index].state == State::TimeWait {
                self.kill_subflow(ctx, index, false);
            }
            self.reset_subflow(ctx, index, Cause::Close);
        }
    }

    /// The peer ends the connection: every subflow is reset.
    pub(super) fn on_fast_close(&mut self, ctx: &mut Context<'_>) {
        for index in 0..self.paths.subflows.len() {
            self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Unspecified));
        }
        self.timers = ConnectionTimers::new();
        (self.data.closing.failed, self.notices.news) = (true, true);
    }

    /// A segment that is no RST while ours waits: only the peer's own MP_FASTCLOSE ends the wait.
    pub(super) fn on_segment_after_fast_close(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
    ) {
        if self.data.is_fast_close(segment.options.mptcp.as_deref()) {
            self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Unspecified));
        }
    }

    /// No RST has come within a timeout.
    pub(super) fn on_fast_close_timeout(&mut self, ctx: &mut Context<'_>, index: usize) {
        let Some(fast) =
            self.data.closing.fast.as_mut().filter(|fast| fast.carrier.index() == index)
        else {
            return;
        };
        if fast.retries == MAX_FASTCLOSE_RETRIES {
            return self.reset_subflow(ctx, index, Cause::Close);
        }
        fast.retries += 1;
        let subflow = &mut self.paths.subflows[index];
        subflow.rtt.back_off();
        subflow.timers.set(Timer::Rto, ctx.now + subflow.rtt.rto());
        subflow.pending.add(ControlSegment::FastClose);
    }

    /// Resets a subflow and tells why.
    pub(super) fn reset_subflow(&mut self, ctx: &mut Context<'_>, index: usize, cause: Cause) {
        if self.paths.subflows[index].state != State::Closed {
            self.kill_subflow(ctx, index, true);
            self.paths.subflows[index].pending.cause = cause;
        }
    }
}
