//! Sending, in this order: handshakes and resets, lost segments, scheduled data, the end of the
//! data, acknowledgements.

use crate::conn::Connection;
use crate::context::Context;
use crate::data::sending::Written;
use crate::error::Error;
use crate::event::Carry;
use crate::paths::control::{Built, Control, Dispatch, LostSegment, PendingAck, SentData};
use crate::paths::writing::{Write, WriteRoom};
use crate::sched::NextStep;
use crate::sched::orders::{AssignedData, SendOrder};
use crate::segments::Transmit;
use crate::tcp::send::Sent;
use plait_base::{DataRange, SubflowId};
use plait_sched::Decision;

impl Connection {
    /// Notes an input. Returns false if it has certainly caused nothing to send.
    pub(crate) fn on_touched(&mut self) -> bool {
        self.rounds.on_input(&self.data, &self.paths, &self.scheduling)
    }

    /// Returns true if the last segment is known to be the last one for now.
    pub(crate) fn is_spent(&self) -> bool {
        self.rounds.is_spent()
    }

    /// Returns the next segment to send, if there is any.
    pub(crate) fn poll_transmit(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        self.rounds.begin(&self.paths);
        let ending = self.data.closing().is_ending();
        if self.rounds.round().control {
            if let Some(transmit) = self.poll_control(ctx) {
                return Some(transmit);
            }
            self.rounds.on_no_control();
        }
        if self.data.closing().failed() {
            return None;
        }
        if self.rounds.round().lost {
            if let Some(transmit) = self.poll_lost(ctx) {
                return Some(transmit);
            }
            self.rounds.on_no_loss();
        }
        if self.paths.has_signals()
            && let Some(transmit) = self.poll_signal(ctx)
        {
            return Some(transmit);
        }
        if let Some(transmit) = self.poll_data(ctx) {
            return Some(transmit);
        }
        if ending && let Some(transmit) = self.poll_end(ctx) {
            return Some(transmit);
        }
        let transmit = if self.rounds.round().acks { self.poll_ack(ctx) } else { None };
        if ending || self.paths.has_signals() {
            self.rounds.on_more_pending();
        }
        debug_assert!(transmit.is_some() || !self.paths.subflows().any_urgent());
        transmit
    }

    /// Returns the next SYN, reset or probe.
    #[cold]
    fn poll_control(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        let (paths, mut parts) = self.split(ctx);
        match paths.next_control(&mut parts)? {
            Control::Ready(transmit) => Some(transmit),
            Control::Again { id, sent, carry } => Some(self.resend(ctx, id, &sent, carry)),
        }
    }

    /// Returns the next retransmission, on the subflow that lost the segment.
    #[inline(never)]
    fn poll_lost(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        let LostSegment { id, sent } = self.paths.next_lost()?;
        Some(self.resend(ctx, id, &sent, Carry::Retransmission))
    }

    #[inline(never)]
    fn resend(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        sent: &Sent,
        carry: Carry,
    ) -> Transmit {
        let Sent { seq, dsn, len, fin, .. } = *sent;
        self.paths.note_resent(ctx.now, id, sent, carry);
        if fin {
            self.scheduling.on_sent(id);
            return self.paths.writer(ctx, &mut self.data, id).fin(seq);
        }
        let range = DataRange::with_len(dsn, u64::from(len));
        self.data.on_retransmitted(range);
        let mut built = self.emit_data(ctx, id, Dispatch { seq, range, carry });
        if let Some(mapping) = self.paths.subflow(id).superpacket_mapping(seq) {
            mapping.repeat(&self.data, &mut built.segment);
        }
        built.on(&self.paths, ctx.conn(), id)
    }

    /// Returns the next segment of data chosen by the scheduler.
    fn poll_data(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        if self.data.is_offered() {
            return None;
        }
        loop {
            if self.data.queue().has_plan()
                && let Some(transmit) = self.poll_assigned(ctx)
            {
                return Some(transmit);
            }
            if !self.scheduling.is_due() {
                return None;
            }
            let mut order = self.scheduling.granted_order(ctx, &mut self.data, &mut self.paths);
            if order.is_none() {
                let Some(decision) = self.next_decision(ctx) else {
                    let planned = self.data.queue().has_plan();
                    return if planned { self.poll_assigned(ctx) } else { None };
                };
                order = self.scheduling.take_order(&mut self.data, decision);
            }
            if let Some(order) = order {
                return Some(self.carry_out(ctx, &order));
            }
        }
    }

    /// Returns the scheduler's next decision, or `None` if there is nothing to send now.
    fn next_decision(&mut self, ctx: &mut Context<'_>) -> Option<Decision> {
        let Connection { data, paths, scheduling, rounds, .. } = self;
        if rounds.has_idle() {
            scheduling.on_windows_changed(paths.validate_idle_windows(ctx, data));
        }
        match scheduling.decide(ctx, data, paths) {
            NextStep::Send(decision) => return Some(decision),
            NextStep::Wait { on, why } => {
                let (paths, mut parts) = self.split(ctx);
                paths.arm_wait(&mut parts, on, why);
            }
            NextStep::Nothing => {}
        }
        None
    }

    /// Sends assigned data of a subflow that has room now.
    #[inline(never)]
    fn poll_assigned(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        let Connection { data, paths, scheduling, .. } = self;
        let AssignedData { id, range } = scheduling.next_assigned(ctx.now, data, paths)?;
        let built = self.send_range(ctx, id, range, Carry::New);
        Some(built.on(&self.paths, ctx.conn(), id))
    }

    fn carry_out(&mut self, ctx: &mut Context<'_>, order: &SendOrder) -> Transmit {
        let SendOrder { subflow: id, range, carry, whole } = *order;
        let Connection { data, paths, scheduling, .. } = self;
        let grows = whole
            && paths.may_grow(data, id, range, scheduling.segment_size())
            && !self.tells_infinite(id);
        let built = match grows {
            true => self.send_superpacket(ctx, id, range),
            false => self.send_range(ctx, id, range, carry),
        };
        built.on(&self.paths, ctx.conn(), id)
    }

    #[inline(always)]
    fn send_range(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        range: DataRange,
        carry: Carry,
    ) -> Built {
        let full = self.scheduling.segment_size();
        let seq = self.paths.note_sent(ctx.now, &mut self.data, id, range, full);
        if self.paths.spec.config.kernel_rules.reduce_unused {
            let Connection { data, paths, scheduling, .. } = self;
            let blocked = scheduling.is_app_blocked();
            scheduling.on_windows_changed(paths.validate_window(ctx, data, id, blocked));
        }
        self.timers.await_data_ack(ctx.now, || self.paths.longest_rto(&self.data));
        self.emit_data(ctx, id, Dispatch { seq, range, carry })
    }

    /// Sends `first` and the following data, up to the subflow's grant.
    #[inline(never)]
    fn send_superpacket(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        first: DataRange,
    ) -> Built {
        let seq = self.scheduling.note_sent(ctx, &mut self.paths, id, first);
        self.timers.await_data_ack(ctx.now, || self.paths.longest_rto(&self.data));
        let Connection { data, paths, scheduling, .. } = self;
        let range = scheduling.grow(ctx, data, paths, id, first);
        let segment = paths.writer(ctx, data, id).data_segment(seq, range);
        if range.len() > first.len() {
            self.paths.remember_superpacket(id, seq, range, &segment);
        }
        Built { segment, cut: first.len() as u16 }
    }

    /// Returns true if data segments of the subflow `id` still carry the infinite mapping.
    fn tells_infinite(&mut self, id: SubflowId) -> bool {
        let Connection { data, paths, scheduling, notices, .. } = self;
        if paths.stop_telling(data, notices, id) {
            scheduling.on_subflows_changed();
        }
        data.agreed().is_telling()
    }

    /// Ends the data: DATA_FIN, then a FIN on each subflow.
    #[inline(never)]
    fn poll_end(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        let (paths, mut parts) = self.split(ctx);
        if parts.data.owes_data_fin()
            && let Some(transmit) = paths.next_data_fin(&mut parts)
        {
            return Some(transmit);
        }
        let transmit = paths.next_fin(&mut parts)?;
        self.scheduling.on_subflows_changed();
        Some(transmit)
    }

    /// Returns the next signal about addresses and priorities.
    #[cold]
    fn poll_signal(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        let Connection { data, paths, rounds, .. } = self;
        let transmit = paths.next_signal(ctx, data);
        if transmit.is_some() {
            rounds.forget();
        }
        transmit
    }

    fn poll_ack(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        let PendingAck { transmit, is_last } = self.paths.next_ack(ctx, &mut self.data)?;
        self.rounds.on_ack_sent(is_last);
        Some(transmit)
    }

    /// Writes data into the send buffer, as far as there is room. Returns the number of bytes.
    ///
    /// # Errors
    /// If this end has finished or the connection has failed.
    #[inline(always)]
    pub(crate) fn write(&mut self, ctx: &Context<'_>, written: &Written<'_>) -> Result<u64, Error> {
        let Connection { data, paths, scheduling, timers, .. } = self;
        data.closing().takes_data()?;
        let write = Write { len: written.len(), waited: scheduling.is_app_blocked() };
        let WriteRoom { room, blocked } = paths.room_to_write(data, ctx.memory_limit(), write);
        scheduling.on_write(room, blocked);
        if room > 0 {
            data.write(written, room);
            timers.arm_user_timeout(&paths.spec.config, data, ctx.now);
        }
        Ok(room)
    }

    #[inline(always)]
    fn emit_data(&mut self, ctx: &mut Context<'_>, id: SubflowId, dispatch: Dispatch) -> Built {
        let Connection { data, paths, scheduling, notices, .. } = self;
        scheduling.on_data_sent(paths, id, dispatch);
        let SentData { segment, resized } = paths.emit(ctx, data, notices, id, dispatch);
        if resized {
            scheduling.on_subflows_changed();
        }
        Built { segment, cut: 0 }
    }
}
