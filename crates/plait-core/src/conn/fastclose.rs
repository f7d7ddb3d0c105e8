//! The abrupt end of a whole connection (RFC 8684 section 3.5): MP_FASTCLOSE on an ACK of one
//! subflow while the others are reset, told again until the peer answers with a RST; in the end, and
//! where the peer may not know our key, on RSTs.

use super::timeouts::ConnectionTimers;
use super::{Connection, Context};
use crate::tcp::pending::{Cause, ControlSegment, Pending};
use crate::tcp::state::State;
use crate::tcp::timer::Timer;
use plait_base::SubflowId;
use plait_wire::{Key, Mptcp, ResetReason, Segment};

/// How often MP_FASTCLOSE is told again before a RST ends the wait (RFC 8684 section 3.5: three).
const MAX_FASTCLOSE_RETRIES: u8 = 3;

/// An MP_FASTCLOSE that waits for the peer's RST.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastClose {
    /// The subflow that carries it.
    carrier: SubflowId,
    retries: u8,
}

/// The key in an MP_FASTCLOSE.
fn told_key(option: Option<&Mptcp>) -> Option<Key> {
    option?.all().iter().find_map(|option| match option {
        Mptcp::FastClose(key) => Some(*key),
        _ => None,
    })
}

impl Connection {
    /// Ends the connection at once: no more is sent, delivered or acknowledged.
    pub(crate) fn abort(&mut self, ctx: &mut Context<'_>) {
        if self.closing.fast.is_some() {
            return;
        }
        self.failed = true;
        self.timers = ConnectionTimers::new();
        // A server that has not answered with a DSS may not know our key, and this one's last ACK
        // may have to prove it: then a RST has to do.
        let known = !self.falls_back()
            && self.speaks_multipath()
            && (!self.client || self.joins.peer_dss_seen);
        let chosen = self.best_for_signal().filter(|_| known);
        for index in (0..self.subflows.len()).filter(|index| Some(*index) != chosen) {
            let cause = if known { Cause::Reason(ResetReason::Unspecified) } else { Cause::Close };
            self.reset_subflow(ctx, index, cause);
        }
        let Some(index) = chosen else { return };
        let subflow = &mut self.subflows[index];
        self.closing.fast = Some(FastClose { carrier: subflow.id, retries: 0 });
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
        self.failed = true;
        self.timers = ConnectionTimers::new();
        self.closing.fast = None;
        for index in 0..self.subflows.len() {
            if self.subflows[index].state == State::TimeWait {
                self.kill_subflow(ctx, index, false);
            }
            self.reset_subflow(ctx, index, Cause::Close);
        }
    }

    /// The peer ends the connection: every subflow is reset.
    pub(super) fn on_fast_close(&mut self, ctx: &mut Context<'_>) {
        for index in 0..self.subflows.len() {
            self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Unspecified));
        }
        self.timers = ConnectionTimers::new();
        (self.failed, self.news) = (true, true);
    }

    /// Whether `option` is an MP_FASTCLOSE with our key; with another it says nothing.
    pub(super) fn is_fast_close(&self, option: Option<&Mptcp>) -> bool {
        !self.falls_back() && self.speaks_multipath() && told_key(option) == Some(self.keys.local)
    }

    /// A segment that is no RST while ours waits: only the peer's own MP_FASTCLOSE ends the wait.
    pub(super) fn on_segment_after_fast_close(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
    ) {
        if self.is_fast_close(segment.options.mptcp.as_deref()) {
            self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Unspecified));
        }
    }

    /// No RST has come within a timeout.
    pub(super) fn on_fast_close_timeout(&mut self, ctx: &mut Context<'_>, index: usize) {
        let Some(fast) = self.closing.fast.as_mut().filter(|fast| fast.carrier.index() == index)
        else {
            return;
        };
        if fast.retries == MAX_FASTCLOSE_RETRIES {
            return self.reset_subflow(ctx, index, Cause::Close);
        }
        fast.retries += 1;
        let subflow = &mut self.subflows[index];
        subflow.rtt.back_off();
        subflow.timers.set(Timer::Rto, ctx.now + subflow.rtt.rto());
        subflow.pending.add(ControlSegment::FastClose);
    }

    /// Resets a subflow and tells why.
    pub(super) fn reset_subflow(&mut self, ctx: &mut Context<'_>, index: usize, cause: Cause) {
        if self.subflows[index].state != State::Closed {
            self.kill_subflow(ctx, index, true);
            self.subflows[index].pending.cause = cause;
        }
    }

    /// What a RST of ours carries (RFC 8684 sections 3.5 to 3.7); nothing once the connection is
    /// plain TCP.
    pub(super) fn reset_option(&self, cause: Cause) -> Option<Mptcp> {
        if self.falls_back() && !matches!(cause, Cause::Failed(_)) {
            return None;
        }
        let reset = |reason, transient| Mptcp::Reset { reason, transient };
        Some(match (cause, self.keys.peer) {
            (Cause::Close, Some(key)) => Mptcp::FastClose(key),
            (Cause::Failed(dsn), _) => Mptcp::Fail(self.keys.theirs.wire(dsn)),
            (Cause::Close, None) => reset(ResetReason::Unspecified, false),
            // Another attempt may do better on a path that was only silent.
            (Cause::Reason(reason), _) => reset(reason, reason == ResetReason::Performance),
        })
    }
}
