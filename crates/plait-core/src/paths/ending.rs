//! The end of subflows: FINs in both directions, resets, MP_FASTCLOSE, TIME-WAIT.

use crate::context::Context;
use crate::data::agreement::dsn_in_step;
use crate::data::fastclose::FastClose;
use crate::data::level::DataLevel;
use crate::notices::Notices;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::paths::remnant::{Remnant, WaitingSubflow};
use crate::tcp::address::Address;
use crate::tcp::remembered::Remembered;
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::{ClosedSubflow, Subflow};
use crate::tcp::timer::Timer;
use crate::timers::ConnectionTimer;
use alloc::vec::Vec;
use plait_base::{RecvSsn, SubflowId, Time};
use plait_wire::{Flags, Mptcp, ResetReason, Segment, WireSeq};

impl Paths {
    /// Returns true if the user has aborted the connection and the peer has not confirmed it.
    pub(crate) const fn is_fast_closing(&self) -> bool {
        self.fast_close.is_some()
    }

    /// Ends the wait for the peer's confirmation of an abort.
    pub(crate) const fn forget_fast_close(&mut self) {
        self.fast_close = None;
    }

    /// Sends MP_FASTCLOSE, and nothing else, on the subflow `id`.
    pub(crate) fn begin_fast_close(&mut self, now: Time, id: SubflowId) {
        let subflow = &mut self.subflows[id];
        subflow.begin_fast_close(now);
        self.fast_close = Some(FastClose::on(subflow.id()));
    }

    /// Handles a SYN for a subflow in TIME-WAIT. Returns the sequence number after the last used one
    /// if the address is free ([`Subflow::make_way`]).
    pub(crate) fn reuse_time_wait(
        &mut self,
        notices: &mut Notices,
        address: Address,
        syn: &Segment,
    ) -> Option<WireSeq> {
        let at_rest = |s: &&mut Subflow| s.address() == address && s.state() == State::TimeWait;
        let after = self.subflows.iter_mut().find(at_rest)?.make_way(syn)?;
        notices.tell_endpoint();
        Some(after)
    }

    /// Closes the subflow `id` at once ([`Subflow::close`]), and schedules its new join.
    pub(crate) fn close(
        &mut self,
        parts: &mut Parts<'_>,
        id: SubflowId,
        tell_peer: bool,
    ) -> Option<ClosedSubflow> {
        let closed = self.subflows.close(&mut parts.ctx, id, tell_peer)?;
        parts.notices.tell_endpoint();
        self.rejoin_later(parts, id, closed.was_proven);
        Some(closed)
    }

    /// Limits the time in FIN-WAIT-2 after both directions have ended. The peer has nothing more to
    /// send there, and its FIN may be lost for good.
    pub(crate) fn arm_fin_wait(&mut self, data: &DataLevel, now: Time) {
        if !data.closing().done() {
            return;
        }
        let until = now + self.spec.config.timeouts.fin;
        for subflow in self.subflows.iter_mut() {
            subflow.arm_fin_wait(until);
        }
    }

    /// Handles the acknowledgement of our FIN on the subflow `id`.
    #[cold]
    pub(crate) fn on_fin_acked(&mut self, parts: &mut Parts<'_>, id: SubflowId) {
        parts.notices.tell_endpoint();
        self.subflows[id].on_leave(&mut parts.ctx, Step::FinAcked);
        if parts.data.sends_plain() {
            parts.data.on_fin_acked(parts.notices);
        }
        self.arm_fin_wait(parts.data, parts.ctx.now);
        // Our FIN followed the DATA_FINs, together with our DATA_ACK.
        parts.data.settle();
        parts.timers.arm_release(&mut parts.ctx, &self.spec.config, parts.data);
    }

    /// Handles the peer's FIN at `seq` of the subflow `id`. In plain TCP it ends the data.
    #[cold]
    pub(crate) fn on_fin(&mut self, parts: &mut Parts<'_>, id: SubflowId, seq: RecvSsn) {
        let subflow = &mut self.subflows[id];
        if !subflow.take_fin(seq) {
            return;
        }
        parts.notices.tell_endpoint();
        subflow.on_leave(&mut parts.ctx, Step::FinReceived);
        if parts.data.receives_plain()
            && let Some(end) = dsn_in_step(seq)
        {
            parts.data.on_plain_fin(end);
            self.on_peer_finished(parts.data, parts.notices, parts.ctx.now);
        }
    }

    /// Handles the end of the peer's data after all of it has arrived.
    pub(crate) fn on_peer_finished(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        now: Time,
    ) {
        if data.on_peer_finished(notices) {
            self.arm_fin_wait(data, now);
        }
    }

    /// Returns the meaning of a reset on the subflow `id`; `alone` is true if no other
    /// subflow is left.
    pub(crate) fn classify_reset(
        &mut self,
        data: &DataLevel,
        id: SubflowId,
        segment: &Segment,
        alone: bool,
    ) -> ResetMeans {
        let subflow = &self.subflows[id];
        let next = subflow.negotiated().irs.wire(subflow.rx().nxt());
        let acceptable = match subflow.state() {
            State::SynSent => {
                segment.flags.has(Flags::ACK)
                    && WireSeq(segment.ack) == subflow.negotiated().iss.after_syn()
            }
            // RFC 5961 section 3.2: only the exact sequence number resets.
            _ => WireSeq(segment.seq) == next,
        };
        let option = segment.options.mptcp.as_deref();
        if !acceptable {
            // A reset inside the window gets a challenge ACK; any other is dropped.
            let ahead = u64::from(WireSeq(segment.seq).since(next));
            let inside = subflow.state().synchronised() && ahead < data.reassembly().window();
            return if inside { ResetMeans::Challenge } else { ResetMeans::Nothing };
        }
        if self.client && self.subflows.unknown_to_peer(data, id) {
            return ResetMeans::Redial;
        }
        if data.is_fast_close(option) {
            return ResetMeans::FastClose;
        }
        if alone && self.is_forgotten(id, segment) {
            return ResetMeans::Forgotten;
        }
        let meddled = Mptcp::Reset { reason: ResetReason::Middlebox, transient: false };
        if option.is_some_and(|it| it.all().contains(&meddled)) {
            self.joins.bar(self.subflows[id].address().path());
        }
        ResetMeans::Gone
    }

    /// Returns the remnants of waiting subflows, which leave their values in the path memory.
    pub(crate) fn remnants(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
    ) -> Vec<WaitingSubflow> {
        let mut remnants = Vec::new();
        for id in self.subflows.ids() {
            let subflow = &self.subflows[id];
            let (state, address, clock) = (subflow.state(), subflow.address(), subflow.clock());
            if state == State::Closed {
                continue;
            }
            Remembered(subflow).leave_at_wait(ctx);
            let (until, owes) = (subflow.timers().at(Timer::TimeWait), subflow.pending().ack());
            let last = self.writer(ctx, data, id).pure_ack();
            let remnant = Remnant::new(&last.segment, clock, state == State::FinWait2, until);
            let answer = owes.then_some(last);
            remnants.push(WaitingSubflow { address, remnant, answer });
        }
        remnants
    }

    /// Handles the end of a subflow. If it was the last one, the connection waits for another one,
    /// or has ended.
    pub(crate) fn on_gone(&self, parts: &mut Parts<'_>) {
        if self.subflows.has_subflow() || parts.timers.awaits_subflow() {
            return;
        }
        if self.may_await_subflow(parts.data) {
            let until = parts.ctx.now + self.spec.config.timeouts.close;
            parts.timers.set(ConnectionTimer::NoSubflow, until);
        } else if parts.data.closing().done() {
            parts.data.settle();
        } else if self.subflows.iter().all(|s| s.state() == State::Closed) {
            parts.data.fail(parts.notices);
        }
    }

    /// Moves the data of the ended subflow `id` to the other subflows.
    pub(crate) fn abandon(&mut self, data: &mut DataLevel, id: SubflowId) {
        self.subflows[id].abandon();
        data.on_subflow_ended(self.subflows.carriers());
    }

    /// Reclaims data that was assigned to another set of subflows. Linux leaves data with its
    /// subflow as long as that subflow can send.
    pub(crate) fn unassign_stranded(&self, data: &mut DataLevel) {
        let strands = |it: &Subflow| !it.state().sends_data() && data.queue().assigned(it.id()) > 0;
        if !self.spec.config.kernel_rules.keep_data || self.subflows.iter().any(strands) {
            data.withdraw_plan();
        }
    }

    /// Handles a timeout of MP_FASTCLOSE on the subflow `id` without a RST of the peer.
    /// Returns true if a RST must end the wait.
    pub(super) fn fast_close_expired(&mut self, now: Time, id: SubflowId) -> bool {
        let fast = self.fast_close.as_mut();
        let Some(fast) = fast.filter(|fast| fast.carrier() == id) else { return false };
        if !fast.retry() {
            return true;
        }
        self.subflows[id].repeat_fast_close(now);
        false
    }

    /// Handles the end of TIME-WAIT or of the wait in FIN-WAIT-2 on the subflow `id`. Returns
    /// true if the subflow must be closed without the peer's FIN.
    pub(super) fn wait_over(
        &mut self,
        data: &mut DataLevel,
        notices: &mut Notices,
        id: SubflowId,
    ) -> bool {
        notices.tell_endpoint();
        let subflow = &mut self.subflows[id];
        let waits_for_fin = subflow.state() == State::FinWait2;
        if waits_for_fin {
            data.settle();
        } else {
            subflow.step(Step::WaitOver);
        }
        waits_for_fin
    }
}

/// The meaning of a reset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ResetMeans {
    Nothing,
    /// It may be forged: send a challenge ACK.
    Challenge,
    /// The peer has no state of the connection: start again.
    Redial,
    /// The peer ends the connection.
    FastClose,
    /// The peer has lost the state of the connection.
    Forgotten,
    /// The subflow has ended.
    Gone,
}
