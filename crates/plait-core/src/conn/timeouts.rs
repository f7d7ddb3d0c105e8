//! What happens when time passes.

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::conn::liveness::Life;
use crate::conn::timers::{Awaited, ConnectionTimers};
use crate::data::fallback::{FallbackCause, Mode, dsn_in_step};
use crate::data::fastclose::MAX_FASTCLOSE_RETRIES;
use crate::data::send_memory::PIECE_BYTES;
use crate::paths::fallback::Fall;
use crate::planted::{Planted, planted};
use crate::stats::TimedOut;
use crate::tcp::pending::{Cause, ControlSegment};
use crate::tcp::state::{State, Step};
use crate::tcp::timer::Timer;
use plait_base::{DataRange, Dsn, Slim, SubflowId, Time};
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
        if self.timers.take_due(Awaited::KeepAlive, ctx.now) && self.is_peer_dead(ctx) {
            return self.give_up_on_peer(ctx, TimedOut::KeepAlive);
        }
        if self.timers.at(Awaited::Address) <= ctx.now {
            let silent = self.paths.check_again(ctx.now);
            self.reset_subflows(ctx, silent, ResetReason::Unspecified);
            self.paths.repeat_announcements(ctx.now, &self.data);
            self.paths.set_address_timer(&mut self.timers);
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
            return self.send_again_when_idle(ctx.now);
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

    fn on_rto(&mut self, ctx: &mut Context<'_>, index: usize) {
        if self.data.closing.fast.is_some() {
            return self.on_fast_close_timeout(ctx, index);
        }
        let subflow = &self.paths.subflows[index];
        if matches!(subflow.state, State::SynSent | State::SynReceived) {
            return self.on_syn_timeout(ctx, index);
        }
        if !subflow.status.joined {
            if !planted(Planted::ProofOnce) && self.paths.repeat_proof(ctx.now, index) {
                self.kill_subflow(ctx, index, true);
            }
            return;
        }
        if subflow.is_quiet() {
            return;
        }
        let Connection { spec, data, paths, .. } = self;
        if paths.on_data_timeout(ctx, &spec.config, data, index) {
            return self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Performance));
        }
        paths.arm_path_probe(&spec.config, data, ctx.now, index);
        // With another subflow at hand, what is stuck here goes there (schedulers 4.12).
        let others = paths.subflows.iter().filter(|s| s.status.joined).count() > 1;
        if others && !spec.config.kernel_rules.keep_data && !planted(Planted::NoReinjection) {
            self.reinject_outstanding(index);
        }
        self.notify_subflows(ctx, None);
        self.start_joins(ctx);
    }

    fn on_syn_timeout(&mut self, ctx: &mut Context<'_>, index: usize) {
        let alone = self.timers.awaits_subflow();
        if !self.paths.repeat_syn(&self.spec, &self.data, index, alone) {
            return self.kill_subflow(ctx, index, false);
        }
        if !self.paths.is_dialling(index) {
            return;
        }
        let offered = self.data.agreed.mode == Mode::Offered;
        if offered && self.paths.finds_silence(&self.spec) {
            let Connection { spec, data, notices, .. } = self;
            data.start_plain(ctx, &spec.config, notices, FallbackCause::Silence);
        }
        if self.paths.ways_to_dial(&self.spec) > 1 {
            self.try_next_path(ctx);
        }
    }

    /// No RST has come within a timeout.
    fn on_fast_close_timeout(&mut self, ctx: &mut Context<'_>, index: usize) {
        let fast = self.data.closing.fast.as_mut();
        let Some(fast) = fast.filter(|fast| fast.carrier.index() == index) else { return };
        if fast.retries == MAX_FASTCLOSE_RETRIES {
            return self.reset_subflow(ctx, index, Cause::Close);
        }
        fast.retries += 1;
        self.paths.repeat_fast_close(ctx.now, index);
    }

    /// TIME-WAIT is over, or the peer's FIN has not come in time.
    fn on_wait_over(&mut self, ctx: &mut Context<'_>, index: usize) {
        self.notices.changed = true;
        if self.paths.subflows[index].state == State::FinWait2 {
            self.data.closing.settle();
            self.kill_subflow(ctx, index, false);
        } else {
            self.paths.subflows[index].step(Step::WaitOver);
        }
    }

    /// Nobody came. An end that has all data and whose own was all acknowledged has not failed: the
    /// peer has closed, or must do without the last DATA_ACK.
    pub(super) fn on_no_subflow_timeout(&mut self, ctx: &mut Context<'_>) {
        self.timers = ConnectionTimers::new();
        self.notices.changed = true;
        if self.data.closing.done() {
            self.data.closing.settle();
        } else {
            (self.data.closing.failed, self.notices.news) = (true, true);
        }
        for index in 0..self.paths.subflows.len() {
            let tell = self.paths.subflows[index].state != State::SynSent;
            self.kill_subflow(ctx, index, tell);
        }
    }

    /// Aborts the connection if the peer has acknowledged no data since the timer was set.
    fn on_release_timer(&mut self, ctx: &mut Context<'_>) {
        let una = self.data.queue.una();
        if self.data.closing.done() {
            // Each subflow has a timer of its own.
        } else if self.data.closing.released.value().is_some_and(|before| before < una) {
            self.data.closing.released = Slim::some(una);
            self.timers.arm_release(ctx, &self.spec.config, &self.data);
        } else {
            self.abort(ctx);
        }
    }

    /// Looks whether the peer is still there, and asks where nothing tells. Returns true if it was asked
    /// often enough.
    fn is_peer_dead(&mut self, ctx: &mut Context<'_>) -> bool {
        let Connection { spec, data, paths, timers, .. } = self;
        let life = timers.keep_alive_expired(&spec.config, data, paths, ctx.now);
        if life == Life::Asked {
            let silent = paths.ask_for_life();
            self.reset_subflows(ctx, silent, ResetReason::Performance);
            self.timers.on_asked_for_life(&self.spec.config, &self.paths, ctx.now);
        }
        life == Life::Over
    }

    /// The connection ends at once, and its user is told.
    fn give_up_on_peer(&mut self, ctx: &mut Context<'_>, why: TimedOut) {
        self.data.closing.timed_out = Some(why);
        (self.notices.changed, self.notices.news) = (true, true);
        self.abort(ctx);
    }

    /// The rest of the first piece of data that is not DATA_ACKed goes out again if a subflow has nothing
    /// at all to send; else the timer starts afresh (`__mptcp_retrans` of Linux).
    fn send_again_when_idle(&mut self, now: Time) {
        if self.paths.any_idle(&mut self.data) {
            let una = self.data.queue.una();
            let piece = DataRange::with_len(una, PIECE_BYTES - una.get() % PIECE_BYTES);
            self.data.queue.queue_reinjection(piece);
            self.scheduling.wake();
        }
        if self.data.queue.una() < self.data.queue.nxt() {
            let longest = self.paths.longest_rto(&self.spec.config, &self.data);
            self.timers.arm_retransmission(now, longest);
        }
    }
}
