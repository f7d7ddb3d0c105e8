//! Timer expiry.

use crate::conn::Connection;
use crate::context::Context;
use crate::data::fastclose::Cause;
use crate::paths::fallback::{Fallback, OverdueAck, UnansweredFail};
use crate::paths::timeouts::TimerEffect;
use crate::sched::SchedulerInputs;
use crate::stats::TimedOut;
use crate::tcp::state::State;
use crate::tcp::timer::Timer;
use crate::timers::liveness::KeepAlive;
use crate::timers::{ConnectionTimer, ConnectionTimers};
use plait_base::{SubflowId, Time};
use plait_wire::ResetReason;

impl Connection {
    /// Returns when to call [`Connection::handle_timeout`]. It is never late, but may be early.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.timers.next().min(self.paths.subflows().next_timer())
    }

    /// Expires every timer that is due.
    pub(crate) fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        for id in (0..SubflowId::MAX as u8).map(SubflowId) {
            for timer in Timer::ALL {
                // A timer may end the attempt on one path and start another.
                if self.paths.take_due(ctx.now, id, timer) {
                    self.on_timer(ctx, id, timer);
                }
            }
        }
        self.on_connection_timers(ctx);
        self.paths.on_timers_checked();
        self.timers.on_looked();
    }

    fn on_connection_timers(&mut self, ctx: &mut Context<'_>) {
        if self.data.closing().failed() {
            self.timers = ConnectionTimers::new();
            return;
        }
        if self.timers.take_due(ConnectionTimer::Safety, ctx.now) {
            self.scheduling.wake();
        }
        if self.timers.take_due(ConnectionTimer::Fail, ctx.now) {
            let (paths, mut parts) = self.split(ctx);
            if let Some(UnansweredFail { id, dsn }) = paths.repeat_fail(&mut parts) {
                self.reset_subflow(ctx, id, Cause::Failed(dsn));
            }
        }
        if self.timers.take_due(ConnectionTimer::Rejoin, ctx.now) {
            self.start_joins(ctx);
        }
        if self.timers.at(ConnectionTimer::NoSubflow) <= ctx.now {
            return self.on_no_subflow_timeout(ctx);
        }
        if self.timers.take_due(ConnectionTimer::Release, ctx.now)
            && self.timers.release_expired(ctx, &self.paths.spec.config, &self.data)
        {
            return self.abort(ctx);
        }
        if self.timers.take_due(ConnectionTimer::UserTimeout, ctx.now)
            && self.timers.user_timeout_expired(&self.paths.spec.config, &self.data, ctx.now)
        {
            return self.give_up_on_peer(ctx, TimedOut::User);
        }
        if self.timers.take_due(ConnectionTimer::KeepAlive, ctx.now) && self.is_peer_dead(ctx) {
            return self.give_up_on_peer(ctx, TimedOut::KeepAlive);
        }
        if self.timers.at(ConnectionTimer::Address) <= ctx.now {
            let silent = self.paths.check_again(ctx.now);
            self.reset_subflows(ctx, silent, ResetReason::Unspecified);
            self.paths.repeat_announcements(ctx.now, &self.data);
            self.paths.set_address_timer(&mut self.timers);
        }
        if self.timers.take_due(ConnectionTimer::WindowProbe, ctx.now) {
            self.paths.probe_window(self.timers.count_window_probe());
            self.scheduling.on_window_probe();
        }
        if self.timers.take_due(ConnectionTimer::Retransmission, ctx.now) {
            // No DATA_ACK has arrived for longer than the timeout of every subflow.
            self.on_data_ack_overdue(ctx);
            let (paths, mut parts) = self.split(ctx);
            if !parts.data.sends_plain() && paths.on_overdue_data(&mut parts) {
                self.scheduling.wake();
            }
        }
    }

    /// Handles the timeout without a new subflow.
    pub(super) fn on_no_subflow_timeout(&mut self, ctx: &mut Context<'_>) {
        if self.scheduling.is_over_quota(SchedulerInputs { data: &self.data, paths: &self.paths }) {
            return self.give_up_on_peer(ctx, TimedOut::Quota);
        }
        self.timers = ConnectionTimers::new();
        self.notices.tell_endpoint();
        self.data.end_alone(&mut self.notices);
        for id in self.paths.subflows().ids() {
            let tell = self.paths.subflow(id).state() != State::SynSent;
            self.kill_subflow(ctx, id, tell);
        }
    }

    /// Checks whether the peer is still alive, and sends probes if it was silent. Returns true if
    /// all probes stayed unanswered.
    fn is_peer_dead(&mut self, ctx: &mut Context<'_>) -> bool {
        let Connection { data, paths, timers, .. } = self;
        let life =
            timers.keep_alive_expired(&paths.spec.config, paths.peer_activity(data), ctx.now);
        if life == KeepAlive::Probe {
            let silent = paths.send_keep_alives();
            self.reset_subflows(ctx, silent, ResetReason::Performance);
            self.timers.on_keep_alives_sent(
                &self.paths.spec.config,
                self.paths.subflows().heard(),
                ctx.now,
            );
        }
        life == KeepAlive::Dead
    }

    /// Ends the connection at once, and records the reason for the user.
    fn give_up_on_peer(&mut self, ctx: &mut Context<'_>, why: TimedOut) {
        self.data.on_timed_out(why);
        self.notices.tell_user();
        self.notices.tell_endpoint();
        self.abort(ctx);
    }

    fn on_timer(&mut self, ctx: &mut Context<'_>, id: SubflowId, timer: Timer) {
        let (paths, mut parts) = self.split(ctx);
        match paths.on_timer(&mut parts, id, timer) {
            TimerEffect::Nothing => {}
            TimerEffect::Wake => self.scheduling.wake(),
            TimerEffect::Closed => self.scheduling.give_back(),
            TimerEffect::Released => self.scheduling.on_released(id),
            TimerEffect::Gone { tell_peer } => self.kill_subflow(ctx, id, tell_peer),
            TimerEffect::Reset(cause) => self.reset_subflow(ctx, id, cause),
            TimerEffect::Silent { reinject } => {
                if reinject {
                    self.reinject_outstanding(id);
                }
                self.notify_subflows(ctx, None);
                self.start_joins(ctx);
            }
        }
    }

    /// Handles a long time without a DATA_ACK. If acknowledgements arrived without a DSS, the
    /// connection may fall back and use them instead.
    fn on_data_ack_overdue(&mut self, ctx: &mut Context<'_>) {
        let overdue = self.paths.on_overdue_ack(&mut self.data, self.timers.retries());
        let Some(OverdueAck { id, decision }) = overdue else { return };
        self.apply_fallback(ctx, id, decision);
        if matches!(decision, Fallback::Step(_)) {
            let (paths, mut parts) = self.split(ctx);
            if paths.follow_peer(&mut parts, id) {
                self.scheduling.on_subflows_changed();
            }
        }
    }
}
