//! Processing of incoming segments: dispatches each part of a segment to its owner.

use crate::config::MemoryLimit;
use crate::conn::Connection;
use crate::context::Context;
use crate::data::fastclose::Cause;
use crate::data::receiving::Reading;
use crate::event::SizeCause;
use crate::paths::early_join::EarlyJoin;
use crate::paths::ending::ResetMeans;
use crate::paths::opening::{AcceptedSegment, JoinFate, SynAck, ThirdAck};
use crate::paths::removal::Removed;
use crate::tcp::ack_processing::AckEffects;
use crate::tcp::address::Address;
use crate::tcp::arrival::Received;
use crate::tcp::state::State;
use crate::tcp::subflow::Numbers;
use crate::timers::ConnectionTimers;
use plait_base::{DataRange, Dsn, RecvSsn, SendSsn, SubflowId};
use plait_wire::{Flags, Mptcp, ResetReason, Segment, WireSeq};

/// Processes a segment that seldom comes.
#[inline(never)]
fn handle_apart(conn: &mut Connection, ctx: &mut Context<'_>, id: SubflowId, segment: &Segment) {
    conn.handle(ctx, id, segment);
}

impl Connection {
    /// Processes a segment for the subflow `id`.
    #[inline(always)]
    pub(crate) fn handle(&mut self, ctx: &mut Context<'_>, id: SubflowId, segment: &Segment) {
        if !self.try_fast_path(ctx, id, segment) {
            self.handle_any(ctx, id, segment);
            self.rounds.set_quiet(false);
        }
    }

    /// Processes a segment by the slow path.
    #[inline(never)]
    fn handle_any(&mut self, ctx: &mut Context<'_>, id: SubflowId, segment: &Segment) {
        if segment.flags.has(Flags::RST) {
            return self.on_reset(ctx, id, segment);
        }
        if self.paths.is_fast_closing() {
            // Only the peer's own MP_FASTCLOSE ends the wait.
            if self.data.is_fast_close(segment.options.mptcp.as_deref()) {
                self.reset_subflow(ctx, id, Cause::Reason(ResetReason::Unspecified));
            }
            return;
        }
        let state = self.paths.subflow(id).state();
        match state {
            State::Closed => return,
            State::SynSent => return self.on_syn_sent(ctx, id, segment),
            State::SynReceived if !self.on_syn_received(ctx, id, segment) => return,
            _ => {}
        }
        if segment.flags.has(Flags::SYN) {
            // A retransmitted SYN/ACK because our ACK was lost, or an attack (RFC 5961 section 4).
            return self.paths.challenge(ctx, id);
        }
        if !segment.flags.has(Flags::ACK) {
            return;
        }
        self.on_synchronised(ctx, id, segment);
    }

    fn on_synchronised(&mut self, ctx: &mut Context<'_>, id: SubflowId, segment: &Segment) {
        let numbers @ Numbers { seq, ack } = Numbers::of(self.paths.subflow(id), segment);
        if !self.paths.is_acceptable(ctx, &self.data, id, segment, numbers) {
            return;
        }
        let AcceptedSegment { revived, asked, joined } = self.paths.on_accepted(ctx.now, id);
        if asked {
            let heard = self.paths.subflows().heard();
            self.timers.listen_anew(&self.paths.spec.config, heard, ctx.now);
        }
        if joined {
            self.subflow_up(ctx, id);
        } else if revived {
            self.notify_subflows(ctx, None);
        }
        if let Some(option) = segment.options.mptcp.as_deref() {
            self.on_mptcp_option(ctx, id, option);
        }
        if self.data.closing().failed() {
            return;
        }
        if segment.options.dss.is_some() {
            self.on_dss_seen(ctx);
        }
        let decision = self.paths.evidence(&mut self.data, id).on_mapping(segment, numbers);
        self.apply_fallback(ctx, id, decision);
        if self.data.closing().failed() {
            return;
        }
        let edge = self.data.acknowledged_data(segment, ack);
        self.on_acknowledgements(ctx, id, segment, ack, edge);
        self.on_payload(ctx, id, segment, seq);
        let (paths, mut parts) = self.split(ctx);
        if let Some(seq) = paths.fin(id, segment, seq) {
            paths.on_fin(&mut parts, id, seq);
        }
    }

    #[cold]
    fn on_mptcp_option(&mut self, ctx: &mut Context<'_>, id: SubflowId, option: &Mptcp) {
        match option {
            Mptcp::JoinAck(_) | Mptcp::Capable(_) => self.paths.answer(&self.data, id, option),
            Mptcp::Prio { backup } if self.paths.take_priority(id, *backup) => {
                self.notify_subflows(ctx, None);
            }
            Mptcp::RemoveAddr(ids) => self.on_remove_addr(ctx, ids),
            Mptcp::AddAddr(add) => {
                let (paths, mut parts) = self.split(ctx);
                if paths.on_add_addr(&mut parts, id, add) {
                    self.start_joins(ctx);
                }
            }
            Mptcp::Fail(dsn) => {
                let dsn = self.data.keys().own.read(*dsn);
                let decision = self.paths.on_mp_fail(&mut self.data, id, dsn);
                self.apply_fallback(ctx, id, decision);
            }
            Mptcp::FastClose(_) if self.data.is_fast_close(Some(option)) => self.on_fast_close(ctx),
            Mptcp::Several(options) => {
                options.iter().for_each(|option| self.on_mptcp_option(ctx, id, option));
            }
            _ => {}
        }
    }

    /// Processes the payload of a segment, and its DATA_FIN if it has one.
    fn on_payload(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        segment: &Segment,
        seq: RecvSsn,
    ) {
        let Connection { data, paths, notices, .. } = self;
        if let Some(dss) = segment.options.dss.as_ref().filter(|dss| dss.data_fin) {
            paths.take_data_fin(data, notices, ctx.now, id, dss);
        }
        match self.paths.take_payload(ctx, &mut self.data, id, segment, seq) {
            Received::Nothing => {}
            Received::Accepted { before } => {
                if self.data.agreed().checksums()
                    && let Some(dsn) = self.paths.subflow(id).failed_checksum()
                {
                    let next = self.paths.evidence(&mut self.data, id).on_wrong_checksum(dsn);
                    self.apply_fallback(ctx, id, next);
                }
                let Connection { data, paths, notices, .. } = self;
                paths.after_data(data, notices, ctx.now, id, before);
            }
            Received::Refused(reason) => self.reset_subflow(ctx, id, Cause::Reason(reason)),
        }
    }

    /// Processes the acknowledgements of a segment: sequence numbers below `ack`, and data below
    /// `edge` if it has a DATA_ACK.
    #[inline(always)]
    pub(super) fn on_acknowledgements(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        segment: &Segment,
        ack: SendSsn,
        edge: Option<Dsn>,
    ) {
        let old = self.data.queue().una();
        if self.paths.spec.config.buffers.subflow_windows
            && self.paths.update_window(id, segment, ack)
        {
            self.scheduling.on_released(id);
        }
        if let Some(effects) = self.paths.take_ack(ctx.now, id, segment, ack) {
            self.after_ack(ctx, id, &effects);
        }
        if let Some(edge) = edge {
            self.on_data_ack(ctx, id, segment, edge);
        }
        let new = self.data.queue().una();
        if new > old {
            let Connection { data, paths, scheduling, .. } = self;
            scheduling.on_data_acked(ctx, data, paths, DataRange::new(old, new));
            while let Some(id) = self.paths.subflows().next_early_join(&self.data, old) {
                self.subflow_up(ctx, id);
            }
        }
    }

    fn after_ack(&mut self, ctx: &mut Context<'_>, id: SubflowId, effects: &AckEffects) {
        effects.report(ctx, self.paths.subflow(id));
        if effects.undone == Some(true) {
            self.paths.withdraw_reinjections(&mut self.data, id);
        }
        if effects.longest > 0 {
            let size = self.paths.size_after_delivery(&self.data, id, effects.longest);
            self.lower_size(ctx, id, size, SizeCause::BlackHole);
        }
        self.paths.settle_ack(&mut self.data, id);
        // The user may wait until nothing is in flight.
        if self.paths.subflow(id).is_quiet() && self.data.queue().is_drained() {
            self.notices.tell_user();
        }
        if effects.fin_acked {
            let (paths, mut parts) = self.split(ctx);
            paths.on_fin_acked(&mut parts, id);
            self.scheduling.wake();
        }
        let Connection { data, paths, scheduling, .. } = self;
        scheduling.on_acked(ctx, data, paths, id, effects);
        if self.data.queue().counts_memory() {
            self.paths.expand_send_memory(&mut self.data, &mut self.notices, id);
        }
    }

    /// Processes a segment in SYN-SENT. Only the SYN/ACK to our SYN counts.
    #[cold]
    fn on_syn_sent(&mut self, ctx: &mut Context<'_>, id: SubflowId, segment: &Segment) {
        let (paths, mut parts) = self.split(ctx);
        let joins = match paths.read_syn_ack(&mut parts, id, segment) {
            SynAck::Ignored => return,
            SynAck::Refused => return self.kill_subflow(ctx, id, true),
            SynAck::Accepted(joins) => joins,
        };
        let ending = self.paths.ending(joins);
        self.kill_subflows(ctx, ending, joins == JoinFate::Dropped);
        self.paths.take_offer(id, segment);
        let is_join = self.paths.subflow(id).origin().join;
        if !is_join {
            self.paths.drop_waiting_dials(&mut self.notices, |_| true);
            self.data.judge(&self.paths.spec.config, &mut self.notices);
            self.data.on_syn_window(segment);
        }
        self.paths.on_handshake_answered(&mut self.data, ctx.now, id);
        self.size_segments(id);
        if !is_join || self.paths.await_fourth_ack(&mut self.data, ctx.now, id) {
            self.subflow_up(ctx, id);
        }
        for early in self.paths.take_early_answers() {
            handle_apart(self, ctx, early.id, &early.segment);
        }
        self.start_joins(ctx);
    }

    /// Processes the third ACK in SYN-RECEIVED. Returns true if the segment must be processed
    /// further.
    #[cold]
    fn on_syn_received(&mut self, ctx: &mut Context<'_>, id: SubflowId, segment: &Segment) -> bool {
        let (paths, mut parts) = self.split(ctx);
        let initiator = paths.subflow(id).origin().initiator;
        if segment.flags.has(Flags::SYN.with(Flags::ACK)) && initiator {
            if paths.on_simultaneous_syn_ack(id, segment) {
                self.subflow_answered(ctx, id);
            }
            return false;
        }
        match paths.read_third_ack(&mut parts, id, segment) {
            ThirdAck::Ignored => return false,
            ThirdAck::Refused => {
                self.kill_subflow(ctx, id, true);
                return false;
            }
            ThirdAck::Stripped => {
                self.reset_subflow(ctx, id, Cause::Reason(ResetReason::Middlebox));
                return false;
            }
            ThirdAck::Accepted => {}
            ThirdAck::AcceptedWithKey => paths.announce_all(&mut parts),
        }
        self.subflow_answered(ctx, id);
        true
    }

    /// Processes a segment for the subflow at `address`, which is likely in the slot `likely`.
    #[inline(never)]
    pub(crate) fn handle_at(
        &mut self,
        ctx: &mut Context<'_>,
        address: Address,
        likely: SubflowId,
        segment: &Segment,
    ) {
        if let Some(id) = self.paths.subflows().find(address, likely) {
            return self.handle(ctx, id, segment);
        }
        let (paths, mut parts) = self.split(ctx);
        if let Some(id) = paths.late_answer(&mut parts, address, segment) {
            handle_apart(self, ctx, id, segment);
            self.rounds.set_quiet(false);
        }
    }

    /// Completes the handshake of the subflow `id`.
    fn subflow_answered(&mut self, ctx: &mut Context<'_>, id: SubflowId) {
        self.paths.on_handshake_answered(&mut self.data, ctx.now, id);
        self.size_segments(id);
        self.subflow_up(ctx, id);
    }

    /// Handles a DSS: the peer has our key.
    fn on_dss_seen(&mut self, ctx: &mut Context<'_>) {
        if self.data.on_dss() {
            self.paths.tell_first_is_backup(&self.data);
            self.start_joins(ctx);
        }
    }

    /// Restarts the connection on the path of the subflow `id`.
    fn redial_here(&mut self, ctx: &mut Context<'_>, id: SubflowId) {
        let size = self.paths.size_after_lost_start(&self.data);
        self.lower_size(ctx, id, size, SizeCause::BlackHole);
        let (paths, mut parts) = self.split(ctx);
        paths.redial(&mut parts, id);
    }

    /// Handles REMOVE_ADDR: no further subflow is opened to these addresses. Their subflows are
    /// probed and closed if they do not answer, because the option can be forged.
    fn on_remove_addr(&mut self, ctx: &mut Context<'_>, ids: &[u8]) {
        if !self.data.speaks_multipath() {
            return;
        }
        for id in ids {
            let Removed { ending, doubtful } = self.paths.remove_address(ctx.now, *id);
            self.kill_subflows(ctx, ending, false);
            for subflow in doubtful.iter() {
                self.reinject_outstanding(subflow);
                self.notify_subflows(ctx, None);
            }
        }
        self.paths.set_address_timer(&mut self.timers);
    }

    /// Ends the connection by the peer's MP_FASTCLOSE: every subflow is reset.
    fn on_fast_close(&mut self, ctx: &mut Context<'_>) {
        for id in self.paths.subflows().ids() {
            self.reset_subflow(ctx, id, Cause::Reason(ResetReason::Unspecified));
        }
        self.timers = ConnectionTimers::new();
        self.data.fail(&mut self.notices);
    }

    /// Shortens segments from now on, if there is a new size ([`crate::paths::Paths::lower_size`]).
    fn lower_size(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        size: Option<u64>,
        cause: SizeCause,
    ) {
        if let Some(size) = size {
            self.paths.lower_size(ctx, &mut self.data, id, size, cause);
            self.scheduling.wake();
        }
    }

    #[cold]
    fn on_reset(&mut self, ctx: &mut Context<'_>, id: SubflowId, segment: &Segment) {
        let alone = self.timers.awaits_subflow();
        match self.paths.classify_reset(&self.data, id, segment, alone) {
            ResetMeans::Nothing => {}
            ResetMeans::Challenge => self.paths.challenge(ctx, id),
            ResetMeans::Redial => self.redial_here(ctx, id),
            ResetMeans::FastClose => {
                self.kill_subflow(ctx, id, false);
                self.on_fast_close(ctx);
            }
            ResetMeans::Forgotten => self.on_no_subflow_timeout(ctx),
            ResetMeans::Gone => self.kill_subflow(ctx, id, false),
        }
    }

    /// Handles a router's message that a segment was too long. Returns true if the message is accepted.
    #[cold]
    pub(crate) fn on_too_big(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        seq: WireSeq,
        mtu: u32,
    ) -> bool {
        let size = self.paths.size_as_told(&self.data, id, seq, mtu);
        self.lower_size(ctx, id, size.flatten(), SizeCause::TooBig);
        size.is_some()
    }

    /// Processes a DATA_ACK of the data below `edge`, and the window of its segment.
    #[inline(always)]
    fn on_data_ack(&mut self, ctx: &mut Context<'_>, id: SubflowId, segment: &Segment, edge: Dsn) {
        let Connection { data, paths, scheduling, timers, notices, .. } = self;
        let window = u64::from(segment.window) << paths.subflow(id).negotiated().peer_scale;
        let Some(acked) = data.take_data_ack(notices, edge, window) else { return };
        if acked.fin {
            paths.arm_fin_wait(data, ctx.now);
        }
        if acked.freed {
            timers.on_data_progress(data, ctx.now, || paths.longest_rto(data));
            let waited_for = scheduling.is_app_blocked() || data.queue().is_drained();
            if waited_for {
                notices.tell_user();
            }
        }
        if acked.freed || acked.opened {
            scheduling.on_data();
        }
    }

    /// Reads, and returns the number of bytes read.
    #[inline(always)]
    pub(crate) fn read(&mut self, limit: Option<MemoryLimit>, reading: Reading<'_>) -> u64 {
        let taken = self.data.read(reading);
        if taken > 0 {
            self.paths.after_read(&mut self.data, limit);
        }
        self.rounds.set_quiet(true);
        taken
    }

    /// Accepts an admitted SYN with MP_JOIN (RFC 8684 section 3.2). Returns false if no slot is free.
    pub(crate) fn accept_join(
        &mut self,
        ctx: &mut Context<'_>,
        address: Address,
        syn: &Segment,
    ) -> bool {
        let Some(Mptcp::JoinSyn(join)) = syn.options.mptcp.as_deref() else { return false };
        if let Some(id) = self.paths.subflows().replaceable_join() {
            ctx.counters().on_join_replaced();
            self.kill_subflow(ctx, id, false);
        }
        let Some(id) = self.paths.take_slot(&mut self.data) else { return false };
        let (paths, mut parts) = self.split(ctx);
        paths.answer_join(&mut parts, id, address, syn, join);
        true
    }

    /// Takes over a join that arrived before this connection existed.
    pub(crate) fn adopt(&mut self, ctx: &mut Context<'_>, early: EarlyJoin) {
        let Some(id) = self.paths.take_slot(&mut self.data) else { return };
        if let Some(answer) = self.paths.adopt(ctx.now, &mut self.notices, id, early) {
            handle_apart(self, ctx, id, &answer);
        }
    }
}
