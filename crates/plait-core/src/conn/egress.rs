//! What goes out, in this order: handshakes and resets, what was lost, what the scheduler wants,
//! the end, acknowledgements.

use super::scheduling::Todo;
use super::segments::{Report, Transmit};
use super::timeouts::Awaited;
use super::{Connection, Context, Mode};
use crate::event::{Carry, Event};
use crate::planted::{Planted, planted};
use crate::tcp::pending::ControlSegment;
use crate::tcp::send::Sent;
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use plait_base::{DataRange, Ssn, SubflowId};
use plait_sched::{CaState, Decision, What};
use plait_wire::{Flags, Payload};

/// Which kinds of segments may be found; one look at every subflow tells, and sending changes
/// nothing about it but that a kind runs out.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Rounds {
    /// The look was taken after the last thing that happened.
    known: bool,
    control: bool,
    lost: bool,
    acks: bool,
    /// The last acknowledgement that was pending has just been made, and there was nothing else.
    spent: bool,
    /// A subflow that has sent before has nothing under way.
    pub(super) idle: bool,
}

impl Connection {
    /// Something happened: there may be other segments to send than before.
    pub(crate) fn on_touched(&mut self) {
        self.rounds.known = false;
    }

    #[inline(always)]
    fn look(&mut self) {
        let (mut control, mut lost, mut acks, mut idle) = (0, 0, false, false);
        for subflow in &self.subflows {
            control |= subflow.pending.control_bits();
            lost |= subflow.tx.lost_segments();
            acks |= subflow.pending.ack;
            idle |= subflow.is_quiet();
        }
        let (control, lost) = (control != 0, lost != 0);
        self.rounds = Rounds { known: true, control, lost, acks, spent: false, idle };
    }

    /// Whether the segment that was made last is known to be the last one for now.
    pub(crate) fn is_spent(&self) -> bool {
        self.rounds.spent
    }

    /// The next segment to send, if there is any.
    pub(crate) fn poll_transmit(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        if !self.rounds.known {
            self.look();
        }
        let Rounds { control, lost, acks, .. } = self.rounds;
        let ending = self.closing.asked || self.closing.peer_finished;
        if control {
            let transmit = self.poll_owed(ctx);
            if transmit.is_some() {
                return transmit;
            }
            self.rounds.control = false;
        }
        if self.failed {
            return None;
        }
        if lost {
            let transmit = self.poll_lost(ctx);
            if transmit.is_some() {
                return transmit;
            }
            self.rounds.lost = false;
        }
        if self.addresses.has_signals()
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
        let transmit = if acks { self.poll_ack(ctx) } else { None };
        self.rounds.spent &= !ending && !self.addresses.has_signals();
        debug_assert!(transmit.is_some() || !self.subflows.iter().any(|s| s.pending.urgent()));
        transmit
    }

    /// SYNs, resets and probes.
    #[cold]
    fn poll_owed(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        for index in 0..self.subflows.len() {
            let subflow = &mut self.subflows[index];
            if !subflow.pending.urgent() {
                continue;
            }
            if subflow.pending.take(ControlSegment::Rst) {
                // It may have been all that the connection was kept for.
                self.changed = true;
                return Some(self.build_rst(index));
            }
            if subflow.pending.take(ControlSegment::FastClose) {
                return Some(self.build_fast_close(ctx, index));
            }
            if let Some(seq) = subflow.pending.take_unacceptable_ack() {
                return Some(self.build_stray_rst(index, seq));
            }
            if subflow.pending.has(ControlSegment::Fail)
                || subflow.pending.has(ControlSegment::Infinite)
            {
                return Some(self.build_fallback_signal(ctx, index));
            }
            if subflow.pending.take(ControlSegment::Syn) {
                let again = ctx.now + self.syn_retry(index);
                self.subflows[index].timers.set(Timer::Rto, again);
                return Some(self.build_syn(ctx.now, index));
            }
            if subflow.pending.take(ControlSegment::JoinAck) {
                let seq = subflow.tx.nxt();
                return Some(self.pure_ack(ctx, index, seq));
            }
            if subflow.pending.take(ControlSegment::WindowProbe) {
                // One below the left edge: the peer answers with its window and takes nothing.
                let seq = subflow.tx.una().before();
                return Some(self.pure_ack(ctx, index, seq));
            }
            if subflow.pending.take(ControlSegment::PathProbe)
                && let Some(sent) = subflow.tx.first().copied()
            {
                return Some(self.resend(ctx, index, &sent, Carry::Retransmission));
            }
            if subflow.pending.take(ControlSegment::TailProbe)
                && let Some(sent) = subflow.tx.last().copied()
            {
                return Some(self.resend(ctx, index, &sent, Carry::TailProbe));
            }
        }
        None
    }

    /// What was lost, on the subflow that lost it.
    #[inline(never)]
    fn poll_lost(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        for index in 0..self.subflows.len() {
            if self.subflows[index].tx.lost_segments() == 0 {
                continue;
            }
            if let Some(lost) = self.subflows[index].next_retransmission() {
                return Some(self.resend(ctx, index, &lost, Carry::Retransmission));
            }
        }
        None
    }

    #[inline(never)]
    fn resend(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        sent: &Sent,
        carry: Carry,
    ) -> Transmit {
        let Sent { seq, dsn, len, fin, .. } = *sent;
        let mss = self.mss();
        let subflow = &mut self.subflows[index];
        if carry == Carry::TailProbe {
            subflow.rack.tail.on_sent(subflow.tx.nxt());
        }
        subflow.on_retransmitted(ctx.now, seq, len, mss);
        if fin {
            self.scheduling.on_sent(SubflowId(index as u8));
            return self.build_fin(ctx, index, seq);
        }
        let dsn = if planted(Planted::WrongMapping) { self.queue.una() } else { dsn };
        let data = DataRange::with_len(dsn, u64::from(len));
        self.queue.note_again(data);
        let mut transmit = self.emit_data(ctx, index, seq, data, carry);
        self.repeat_superpacket_mapping(index, seq, &mut transmit.segment);
        transmit
    }

    /// What the scheduler wants.
    fn poll_data(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        if self.mode == Mode::Offered {
            return None;
        }
        loop {
            if self.queue.has_plan()
                && let Some(transmit) = self.poll_assigned(ctx)
            {
                return Some(transmit);
            }
            if !self.scheduling.is_due() {
                return None;
            }
            let Todo::Send(decision) = self.next_decision(ctx) else {
                return if self.queue.has_plan() { self.poll_assigned(ctx) } else { None };
            };
            if let Some(transmit) = self.carry_out(ctx, decision) {
                return Some(transmit);
            }
        }
    }

    /// Sends what was assigned ahead to a subflow that has room now.
    #[inline(never)]
    fn poll_assigned(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        let mss = self.segment_size();
        for index in 0..self.subflows.len() {
            let id = self.subflows[index].id;
            let Some(range) = self.queue.next_assigned(id, mss) else { continue };
            if self.spec.config.tsq {
                self.subflows[index].drain_host_queue(ctx.now);
            }
            let subflow = &self.subflows[index];
            let room = subflow.tx.inflight() + range.len() <= subflow.cwnd();
            // Linux leaves data with its subflow whatever happens there.
            let stays = self.spec.config.kernel_rules.keep_data;
            let well = stays || !subflow.status.pf && self.ca(subflow) != CaState::Loss;
            let live = subflow.state.sends_data() && subflow.status.joined && well;
            let held = self.held_back(subflow) || self.waits_to_grow(subflow, range);
            if live && room && !held && range.end <= self.window.end() {
                self.queue.take_assigned(range, id);
                return Some(self.send_range(ctx, index, range, Carry::New));
            }
        }
        None
    }

    /// Whether Nagle's algorithm holds back `range`, the next that `subflow` was given.
    fn waits_to_grow(&self, subflow: &Subflow, range: DataRange) -> bool {
        self.spec.config.kernel_rules.nagle
            && range.len() < self.scheduling.segment_size()
            && self.queue.short_end(subflow.id) > subflow.tx.una()
            && self.queue.assigned(subflow.id) == range.len()
    }

    fn carry_out(&mut self, ctx: &mut Context<'_>, decision: Decision) -> Option<Transmit> {
        let Decision::Send { subflow, what, .. } = decision else { return None };
        let index = subflow.index();
        let mss = self.scheduling.segment_size();
        let (range, carry) = match what {
            What::New { offset } => (self.queue.take_new(offset, mss, subflow)?, Carry::New),
            What::Reinject => {
                let next = self.queue.next_reinjection()?;
                if next.carried.contains(subflow) {
                    self.queue.forget_carried(next.range);
                }
                (next.range, Carry::Reinjection)
            }
            What::Redundant(range) => (self.still_needed(range, mss)?, Carry::Redundant),
            What::OppRetx(range) => match self.take_waiting(range, subflow) {
                Some(range) => return Some(self.send_range(ctx, index, range, Carry::New)),
                None => (self.still_needed(range, mss)?, Carry::Opportunistic),
            },
        };
        if core::mem::take(&mut self.scheduling.small_segments) {
            self.scheduling.wake();
        }
        if carry != Carry::New {
            self.queue.mark_carried(range, subflow);
        }
        if matches!(carry, Carry::Reinjection | Carry::Opportunistic) {
            self.queue.note_again(range);
        }
        if carry == Carry::New && self.may_grow(index, range) {
            return Some(self.send_superpacket(ctx, index, range));
        }
        Some(self.send_range(ctx, index, range, carry))
    }

    /// The part of `range` that waited in the queue of another subflow and is `subflow`'s now.
    #[inline(never)]
    fn take_waiting(&mut self, range: DataRange, subflow: SubflowId) -> Option<DataRange> {
        if range.end > self.window.end() {
            return None;
        }
        let (range, owner) = self.queue.take_waiting(range, subflow)?;
        self.scheduling.on_sent(owner);
        Some(range)
    }

    /// The part of `range` that is sent and not DATA_ACKed, at most a segment.
    fn still_needed(&self, range: DataRange, mss: u64) -> Option<DataRange> {
        let range = range.intersect(DataRange::new(self.queue.una(), self.queue.nxt()));
        let range = range.intersect(DataRange::with_len(range.start, mss));
        (!range.is_empty()).then_some(range)
    }

    #[inline(always)]
    fn send_range(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        data: DataRange,
        carry: Carry,
    ) -> Transmit {
        let mss = self.mss();
        let subflow = &mut self.subflows[index];
        let seq = subflow.on_sent(ctx.now, data.start, data.len() as u32, false, mss);
        if data.len() < self.scheduling.segment_size()
            && let Some(memory) = self.queue.memory()
        {
            memory.note_short(SubflowId(index as u8), seq + data.len());
        }
        if self.spec.config.kernel_rules.reduce_unused {
            self.validate_window(ctx, index);
        }
        if !self.timers.is_set(Awaited::Retransmission) {
            self.timers.arm_retransmission(ctx.now, self.longest_rto());
        }
        self.emit_data(ctx, index, seq, data, carry)
    }

    #[inline(always)]
    fn emit_data(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        seq: Ssn,
        data: DataRange,
        carry: Carry,
    ) -> Transmit {
        let subflow = SubflowId(index as u8);
        ctx.emit(Event::DataSent { subflow, data, carry });
        self.scheduling.on_sent(subflow);
        let payload = self.queue.payload(data);
        let mapping = (!self.sends_plain()).then_some(data);
        let mut segment = self.build_segment(ctx, index, seq, Flags::PSH, payload, mapping);
        if self.tells_infinite(index) {
            self.tell_infinite(&mut segment);
        }
        let report = Report { conn: ctx.log.speaker, subflow };
        let report = if self.spec.config.tsq { Some(report) } else { None };
        Transmit { path: self.subflows[index].address.path(), segment, report, cut: 0 }
    }

    /// The end: DATA_FIN, then a FIN on each subflow.
    #[inline(never)]
    fn poll_end(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        if !self.sends_plain() && self.at_end() && !self.closing.fin_acked {
            let first = !self.closing.fin_sent;
            if (first || self.closing.fin_due)
                && let Some(index) = self.signal_path(if first { 0 } else { self.timers.retries() })
            {
                // Our keys go first: beside a DATA_FIN there is no room for them.
                if self.ack_option(index, None, None).is_some() && !self.closing.keys_told {
                    self.closing.keys_told = true;
                    let seq = self.subflows[index].tx.nxt();
                    return Some(self.pure_ack(ctx, index, seq));
                }
                self.closing.keys_told = false;
                self.closing.fin_due = false;
                self.closing.on_fin_signalled();
                self.timers.arm_retransmission(ctx.now, self.longest_rto());
                return Some(self.build_data_fin(ctx, index));
            }
        }
        for index in 0..self.subflows.len() {
            if self.owes_fin(index) {
                let (mss, end) = (self.mss(), self.queue.written());
                let subflow = &mut self.subflows[index];
                let seq = subflow.on_sent(ctx.now, end, 1, true, mss);
                subflow.step(Step::FinSent);
                self.scheduling.on_subflows_changed();
                return Some(self.build_fin(ctx, index, seq));
            }
        }
        None
    }

    /// The live subflow with the least smoothed RTT, for a signal that takes no window.
    pub(super) fn best_for_signal(&self) -> Option<usize> {
        self.signal_path(0)
    }

    /// For a signal that has had no answer `repeats` times: each live subflow has its turn, the one
    /// with the least smoothed RTT first. An end that sends no data would never learn that a path is
    /// silent.
    pub(super) fn signal_path(&self, repeats: u32) -> Option<usize> {
        let live = |index: &usize| {
            let subflow = &self.subflows[*index];
            subflow.state.synchronised()
                && subflow.state != State::TimeWait
                && subflow.status.joined
        };
        let key = |index: &usize| {
            let subflow = &self.subflows[*index];
            let status = subflow.status;
            (status.pf, subflow.is_backup(), subflow.rtt.srtt(), *index)
        };
        let all = || (0..self.subflows.len()).filter(live);
        if repeats == 0 {
            return all().min_by_key(key);
        }
        let turn = repeats as usize % all().count().max(1);
        all().find(|index| all().filter(|other| key(other) < key(index)).count() == turn)
    }

    fn poll_ack(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        let ack_pending = |s: &Subflow| s.pending.ack && s.state.synchronised();
        let index = self.subflows.iter().position(ack_pending)?;
        let seq = self.subflows[index].tx.nxt();
        let transmit = self.pure_ack(ctx, index, seq);
        self.rounds.spent = !self.subflows[index..].iter().any(ack_pending);
        Some(transmit)
    }

    pub(super) fn pure_ack(&mut self, ctx: &mut Context<'_>, index: usize, seq: Ssn) -> Transmit {
        self.build_ack(ctx, index, seq, Flags::default(), Payload::Empty, None)
    }
}
