//! What happens when time passes.

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::conn::timers::{
    Awaited, ConnectionTimers, DATA_RETRIES, FIN_TIME, SYN_ACK_RETRIES, SYN_RETRIES,
};
use crate::data::fallback::{FallbackCause, Mode, dsn_in_step};
use crate::data::send_memory::PIECE_BYTES;
use crate::event::{Event, WindowCause};
use crate::paths::fallback::Fall;
use crate::planted::{Planted, planted};
use crate::stats::TimedOut;
use crate::tcp::pending::{Cause, ControlSegment};
use crate::tcp::state::State;
use crate::tcp::timer::Timer;
use plait_base::{DataRange, Dsn, SubflowId, Time};
use plait_wire::ResetReason;

impl Connection {
    /// When [`Connection::handle_timeout`] is to be called: never late, perhaps early.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.paths.subflows.iter().fold(self.timers.next(), |first, it| first.min(it.timers.next()))
    }

    /// Expires every timer that is due.
    pub(crate) fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        for index in 0..SubflowId::MAX {
            for timer in Timer::ALL {
                // A timer may end the connection's attempt on one path and begin another.
                let subflow = self.paths.subflows.get_mut(index);
                if subflow.is_some_and(|subflow| subflow.timers.take_due(timer, ctx.now)) {
                    self.on_timer(ctx, index, timer);
                }
            }
        }
        self.on_connection_timers(ctx);
        self.paths.subflows.iter_mut().for_each(|subflow| subflow.timers.on_looked());
        self.timers.on_looked();
    }

    fn on_timer(&mut self, ctx: &mut Context<'_>, index: usize, timer: Timer) {
        match timer {
            Timer::Rto => self.on_rto(ctx, index),
            Timer::Tail => self.paths.subflows[index].pending.add(ControlSegment::TailProbe),
            Timer::Ack => self.paths.subflows[index].pending.ack = true,
            Timer::TimeWait => self.on_wait_over(ctx, index),
            Timer::Reorder => {
                self.paths.on_reorder(ctx, index);
                self.scheduling.wake();
            }
            Timer::Probe => self.paths.on_probe_timer(ctx, &self.spec.config, &self.data, index),
            Timer::HostQueue => {
                if self.paths.on_host_queue_timer(ctx.now, index) {
                    self.scheduling.wake();
                }
            }
            Timer::Pace => {
                let subflow = &mut self.paths.subflows[index];
                if let Some(pacer) = &mut subflow.pacer {
                    pacer.release();
                }
                self.scheduling.on_released(subflow.id);
            }
        }
    }

    fn on_rto(&mut self, ctx: &mut Context<'_>, index: usize) {
        if self.data.closing.fast.is_some() {
            return self.on_fast_close_timeout(ctx, index);
        }
        let subflow = &mut self.paths.subflows[index];
        let rto = subflow.rtt.rto();
        if matches!(subflow.state, State::SynSent | State::SynReceived) {
            return self.on_syn_timeout(ctx, index);
        }
        if !subflow.status.joined {
            if planted(Planted::ProofOnce) {
                return;
            }
            // The third ACK with our HMAC was not answered.
            subflow.rtt.back_off();
            let again = ctx.now + subflow.rtt.rto();
            subflow.timers.set(Timer::Rto, again);
            subflow.pending.add(ControlSegment::JoinAck);
            subflow.shake.retries += 1;
            if subflow.shake.retries > SYN_RETRIES {
                self.kill_subflow(ctx, index, true);
            }
            return;
        }
        if subflow.is_quiet() {
            return;
        }
        let id = subflow.id;
        ctx.emit(Event::Timeout { subflow: id, rto });
        let now = ctx.now;
        let frto = self.data.plain();
        self.paths.with_flows(index, |subflow, flows| subflow.on_timeout(now, flows, frto));
        self.paths.report_window(ctx, index, WindowCause::Timeout);
        self.paths.probe_smaller_size(&self.spec.config, &self.data, now, index);
        let rtt = &self.paths.subflows[index].rtt;
        let given_up = match self.data.closing.done() {
            true => rtt.retransmitted_for() >= FIN_TIME,
            false => rtt.backoff() > DATA_RETRIES,
        };
        if given_up {
            return self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Performance));
        }
        self.paths.arm_path_probe(&self.spec.config, &self.data, now, index);
        // With another subflow at hand, what is stuck here goes there (schedulers 4.12).
        let others = self.paths.subflows.iter().filter(|s| s.status.joined).count() > 1;
        if others && !self.spec.config.kernel_rules.keep_data && !planted(Planted::NoReinjection) {
            self.reinject_outstanding(index);
        }
        self.notify_subflows(ctx);
        self.start_joins(ctx);
    }

    fn on_syn_timeout(&mut self, ctx: &mut Context<'_>, index: usize) {
        let subflow = &mut self.paths.subflows[index];
        subflow.rtt.back_off();
        subflow.shake.retries = subflow.shake.retries.saturating_add(1);
        if subflow.shake.join && self.data.closing.done() && !self.timers.awaits_subflow() {
            // Nothing is left that it could be used for.
            return self.kill_subflow(ctx, index, false);
        }
        let rounds = self.paths.rounds_dialled(&self.spec);
        let subflow = &mut self.paths.subflows[index];
        let dials = subflow.shake.initiator;
        let patient = subflow.shake.join && dials && self.spec.config.probe.is_some();
        let most = if dials { SYN_RETRIES } else { SYN_ACK_RETRIES };
        if subflow.shake.retries > most && !patient || rounds > usize::from(SYN_RETRIES) {
            return self.kill_subflow(ctx, index, false);
        }
        subflow.pending.add(ControlSegment::Syn);
        // A join may have taken the place of a first subflow that is gone.
        let first = index == 0 && !subflow.shake.join;
        if first && subflow.state == State::SynSent && self.paths.client {
            let offered = self.data.agreed.mode == Mode::Offered;
            if offered && self.paths.finds_silence(&self.spec) {
                let Connection { spec, data, notices, .. } = self;
                data.start_plain(ctx, &spec.config, notices, FallbackCause::Silence);
            }
            if self.paths.ways_to_dial(&self.spec) > 1 {
                self.try_next_path(ctx);
            }
        }
    }

    fn on_connection_timers(&mut self, ctx: &mut Context<'_>) {
        if self.data.closing.failed {
            self.timers = ConnectionTimers::new();
            return;
        }
        if self.timers.take_due(Awaited::Safety, ctx.now) {
            self.scheduling.wake();
        }
        if self.timers.take_due(Awaited::Fail, ctx.now) {
            self.on_fail_timeout(ctx);
        }
        if self.timers.take_due(Awaited::Rejoin, ctx.now) {
            self.start_joins(ctx);
        }
        if self.timers.at(Awaited::NoSubflow) <= ctx.now {
            return self.on_no_subflow_timeout(ctx);
        }
        if self.timers.take_due(Awaited::Release, ctx.now) {
            return self.on_release_timer(ctx);
        }
        if self.timers.take_due(Awaited::UserTimeout, ctx.now)
            && self.timers.user_timeout_expired(&self.spec.config, &self.data, ctx.now)
        {
            return self.give_up_on_peer(ctx, TimedOut::User);
        }
        if self.timers.take_due(Awaited::KeepAlive, ctx.now) && self.keep_alive_expired(ctx) {
            return self.give_up_on_peer(ctx, TimedOut::KeepAlive);
        }
        if self.timers.at(Awaited::Address) <= ctx.now {
            self.on_address_timer(ctx);
        }
        if self.timers.take_due(Awaited::WindowProbe, ctx.now) {
            let repeats = self.timers.probe_backoff;
            self.timers.probe_backoff += 1;
            self.scheduling.small_segments = true;
            if let Some(index) = self.paths.signal_path(repeats) {
                self.paths.subflows[index].pending.add(ControlSegment::WindowProbe);
            }
            self.scheduling.wake();
        }
        if self.timers.take_due(Awaited::Retransmission, ctx.now) {
            self.on_connection_rto(ctx);
        }
    }

    /// Nothing was DATA_ACKed for longer than every subflow's timeout: the first range goes out
    /// again on another subflow (RFC 8684 section 3.3.6), or the DATA_FIN does.
    fn on_connection_rto(&mut self, ctx: &mut Context<'_>) {
        self.on_data_ack_overdue(ctx);
        if self.data.sends_plain() {
            return;
        }
        // A peer that has fallen back takes the same bytes on the same subflow for new ones.
        let again = self.spec.config.kernel_rules.data_timer && !self.data.is_in_doubt();
        if again && !self.data.queue.is_drained() {
            return self.send_again_when_idle(ctx);
        }
        self.timers.backoff += 1;
        let fin_pending = self.data.closing.fin_sent && !self.data.closing.fin_acked;
        if fin_pending && self.data.queue.is_drained() {
            self.data.closing.fin_due = !planted(Planted::DataFinOnce);
        }
        let head = self.data.queue.sent().next().map(|sent| sent.range);
        if let Some(range) = head
            && self.paths.live().len() > 1
        {
            self.data.queue.queue_reinjection(range);
            self.scheduling.wake();
        }
        if self.data.queue.una() < self.data.queue.nxt() || fin_pending {
            self.timers
                .arm_retransmission(ctx.now, self.paths.longest_rto(&self.spec.config, &self.data));
        }
    }

    /// The rest of the first piece of data that is not DATA_ACKed goes out again if a subflow has nothing
    /// at all to send; else the timer starts afresh (`__mptcp_retrans` of Linux).
    fn send_again_when_idle(&mut self, ctx: &mut Context<'_>) {
        let mut idle = false;
        for subflow in
            self.paths.subflows.iter().filter(|it| it.state.sends_data() && it.status.joined)
        {
            if subflow.tx.is_empty() && self.data.queue.assigned(subflow.id) == 0 {
                idle = true;
            } else if let Some(memory) = self.data.queue.memory() {
                memory.note_progress(subflow.id, subflow.rtt.sampled_at());
            }
        }
        if idle {
            let una = self.data.queue.una();
            let piece = DataRange::with_len(una, PIECE_BYTES - una.get() % PIECE_BYTES);
            self.data.queue.queue_reinjection(piece);
            self.scheduling.wake();
        }
        if self.data.queue.una() < self.data.queue.nxt() {
            self.timers
                .arm_retransmission(ctx.now, self.paths.longest_rto(&self.spec.config, &self.data));
        }
    }

    /// No infinite mapping has come.
    fn on_fail_timeout(&mut self, ctx: &mut Context<'_>) {
        let Some((index, dsn, again)) = self.paths.repeat_fail(&mut self.data) else { return };
        match again {
            Some(timeouts) => {
                let wait = self.paths.subflows[index].rtt.rto().times(timeouts);
                self.timers.set(Awaited::Fail, ctx.now + wait);
            }
            None => self.reset_subflow(ctx, index, Cause::Failed(dsn)),
        }
    }

    /// Nothing was DATA_ACKed for long: where acknowledgements came without a DSS, those have to
    /// do.
    fn on_data_ack_overdue(&mut self, ctx: &mut Context<'_>) {
        let timeouts = self.timers.retries();
        let Some((index, fall)) = self.paths.weigh_overdue_ack(&self.data, timeouts) else {
            return;
        };
        self.fall(ctx, index, fall);
        if !matches!(fall, Fall::Back(_)) {
            return;
        }
        if let Some(end) = self.paths.unsaid_end(&self.data, index) {
            self.receive_plain(ctx, index);
            self.data.recv.set_fin(end);
            self.on_peer_finished(ctx.now);
        }
        let edge = dsn_in_step(self.paths.subflows[index].tx.una()).unwrap_or(Dsn::ZERO);
        if self.data.queue.on_data_ack(edge.min(self.data.queue.nxt())) > 0 {
            self.timers.on_data_progress(&self.spec.config, &self.data, &self.paths, ctx.now);
            self.notices.news = true;
        }
    }
}
