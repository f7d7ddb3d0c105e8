//! Expired timers of a subflow, and the retransmissions that follow.

use crate::context::Context;
use crate::data::fastclose::Cause;
use crate::data::level::DataLevel;
use crate::data::send_memory::PIECE_BYTES;
use crate::event::{Event, WindowCause};
use crate::parts::Parts;
use crate::paths::Paths;
use crate::paths::sizing::Rules;
use crate::tcp::ack_processing::AckEffects;
use crate::tcp::pending::ControlSegment;
use crate::tcp::reports::report_window;
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use crate::timers::liveness::PeerActivity;
use crate::timers::{
    ConnectionTimer, DATA_RETRIES, FIN_TIME, SYN_ACK_RETRIES, SYN_RETRIES, WaitCause, syn_retries,
};
use plait_base::{DataRange, SubflowId, SubflowSet, Time};
use plait_wire::ResetReason;

/// What follows from an expired timer for the rest of the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimerEffect {
    Nothing,
    /// The scheduler may choose again.
    Wake,
    /// The subflow has left TIME-WAIT. Its view must go.
    Closed,
    /// Pacing no longer holds the subflow.
    Released,
    /// The subflow is given up.
    Gone {
        tell_peer: bool,
    },
    /// It is reset.
    Reset(Cause),
    /// The subflow is silent, and its data may be sent elsewhere.
    Silent {
        reinject: bool,
    },
}

impl Paths {
    /// Notes that a segment of `len` payload bytes leaves the host at `departs`.
    pub(crate) fn on_departure(&mut self, now: Time, id: SubflowId, len: u32, departs: Time) {
        let mss = self.mss();
        let Some(subflow) = self.subflows.get_mut(id.index()) else { return };
        subflow.on_departure(now, departs, len, mss);
    }

    /// Sends a keep-alive probe on every subflow. Returns the subflows that have reached the limit
    /// of unanswered probes.
    pub(crate) fn send_keep_alives(&mut self) -> SubflowSet {
        let silent =
            self.subflows.iter_mut().filter_map(|s| s.send_keep_alives().then_some(s.id()));
        silent.collect()
    }

    /// Clears `timer` of the subflow `id` and returns true if it was due.
    pub(crate) fn take_due(&mut self, now: Time, id: SubflowId, timer: Timer) -> bool {
        self.subflows.get_mut(id.index()).is_some_and(|subflow| subflow.take_due(timer, now))
    }

    /// Sets the next check of each subflow's timers after all due ones were handled.
    pub(crate) fn on_timers_checked(&mut self) {
        self.subflows.iter_mut().for_each(Subflow::on_timers_checked);
    }

    /// Handles a timeout of the subflow `id` after its handshake. Returns true if it is given
    /// up.
    fn on_data_timeout(&mut self, ctx: &mut Context<'_>, data: &DataLevel, id: SubflowId) -> bool {
        let (now, frto) = (ctx.now, data.plain());
        let subflow = &self.subflows[id];
        ctx.emit(Event::Timeout { subflow: subflow.id(), rto: subflow.sender().rtt.rto() });
        self.subflows.with_flows(id, |subflow, flows| subflow.on_timeout(now, flows, frto));
        report_window(ctx, &self.subflows[id], WindowCause::Timeout);
        let (subflow, Rules { config, sizes }) = self.at(id);
        if sizes.may_shrink(config, data) {
            subflow.segment_size().probe_smaller(data, config, sizes.mss() as u32, now);
        }
        let rtt = &self.subflows[id].sender().rtt;
        match data.closing().done() {
            true => rtt.retransmitted_for() >= FIN_TIME,
            false => rtt.backoff() > DATA_RETRIES,
        }
    }

    /// Retransmits an unanswered SYN or SYN/ACK. Returns false if the subflow is given up. `alone`
    /// is true if no other subflow is left.
    fn repeat_syn(&mut self, data: &DataLevel, id: SubflowId, alone: bool) -> bool {
        let rounds = {
            let subflow = &mut self.subflows[id];
            self.redial.count_timeout(subflow, self.spec.config.kernel_rules);
            if subflow.origin().join && data.closing().done() && !alone {
                // The subflow has no further use.
                return false;
            }
            self.redial.rounds_before(self.spec.ways_to_dial())
        };
        let subflow = &mut self.subflows[id];
        let dials = subflow.origin().initiator;
        let patient = subflow.origin().join && dials && self.spec.config.joins.probe.is_some();
        let most = if dials { syn_retries(self.spec.config.kernel_rules) } else { SYN_ACK_RETRIES };
        if subflow.handshake_retries() > most && !patient || rounds > usize::from(SYN_RETRIES) {
            return false;
        }
        subflow.queue_control(ControlSegment::Syn);
        true
    }

    /// Handles the expired `timer` of the subflow `id`. `timers` are the connection's.
    pub(crate) fn on_timer(
        &mut self,
        parts: &mut Parts<'_>,
        id: SubflowId,
        timer: Timer,
    ) -> TimerEffect {
        let subflow = &mut self.subflows[id];
        match timer {
            Timer::Reorder => {
                self.on_reorder(&mut parts.ctx, id);
                return TimerEffect::Wake;
            }
            Timer::Tail => subflow.proof().queue(ControlSegment::TailProbe),
            Timer::Rto => {
                return self.on_rto(parts, id);
            }
            Timer::Ack => subflow.queue_ack(),
            Timer::TimeWait => {
                let gone = self.wait_over(parts.data, parts.notices, id);
                let left = TimerEffect::Closed;
                return if gone { TimerEffect::Gone { tell_peer: false } } else { left };
            }
            Timer::Probe => subflow.on_probe_timer(parts.data, &self.spec.config, parts.ctx.now),
            Timer::HostQueue => {
                if subflow.on_host_queue_timer(parts.ctx.now, self.sizes.mss()) {
                    return TimerEffect::Wake;
                }
            }
            Timer::Pace => {
                subflow.release(parts.ctx.now);
                return TimerEffect::Released;
            }
        }
        TimerEffect::Nothing
    }

    /// Sends a window probe, the `repeats`-th retry.
    pub(crate) fn probe_window(&mut self, repeats: u32) {
        if let Some(id) = self.subflows.signal_path(repeats) {
            self.subflows[id].queue_control(ControlSegment::WindowProbe);
        }
    }

    /// Handles the end of the reordering window on the subflow `id`: undelivered segments are
    /// lost.
    fn on_reorder(&mut self, ctx: &mut Context<'_>, id: SubflowId) {
        let (now, mss) = (ctx.now, self.mss());
        let mut effects = AckEffects::default();
        self.subflows
            .with_flows(id, |subflow, flows| subflow.detect_loss(now, flows, mss, &mut effects));
        if effects.entered_recovery {
            report_window(ctx, &self.subflows[id], WindowCause::Loss);
        }
    }

    /// Returns the state that a keep-alive check uses.
    pub(crate) fn peer_activity(&self, data: &DataLevel) -> PeerActivity {
        PeerActivity {
            over: data.closing().done(),
            under_way: data.has_to_take() && self.subflows.iter().any(|it| !it.is_quiet()),
            alone: !self.subflows.iter().any(Subflow::is_reachable),
            sum: self.subflows.heard(),
        }
    }

    /// Handles a DATA_ACK that is overdue for longer than the timeout of every subflow. The first
    /// range (RFC 8684 section 3.3.6) or the DATA_FIN is sent again on another subflow. Returns
    /// true if there is something to send.
    pub(crate) fn on_overdue_data(&self, parts: &mut Parts<'_>) -> bool {
        // A peer that has fallen back would take the same bytes on the same subflow for new ones.
        let again = self.spec.config.kernel_rules.data_timer && !parts.data.is_in_doubt();
        let fin_pending = parts.data.closing().fin_pending();
        let piece = if again && !parts.data.queue().is_drained() {
            // If a subflow has nothing to send, the rest of the first piece is retransmitted;
            // otherwise the timer restarts (`__mptcp_retrans` of Linux).
            let una = parts.data.queue().una();
            let rest = DataRange::with_len(una, PIECE_BYTES - una.get() % PIECE_BYTES);
            self.subflows.any_idle(parts.data).then_some(rest)
        } else {
            parts.timers.back_off();
            if fin_pending && parts.data.queue().is_drained() {
                parts.data.signal_fin_again();
            }
            let head = parts.data.queue().sent().next().map(|sent| sent.range);
            head.filter(|_| self.subflows.live().len() > 1)
        };
        if let Some(range) = piece {
            parts.data.reinject([range], SubflowSet::EMPTY);
        }
        if parts.data.queue().una() < parts.data.queue().nxt() || fin_pending {
            parts.timers.arm_retransmission(parts.ctx.now, self.longest_rto(parts.data));
        }
        piece.is_some()
    }

    /// Handles the retransmission timeout of the subflow `id`.
    fn on_rto(&mut self, parts: &mut Parts<'_>, id: SubflowId) -> TimerEffect {
        if self.is_fast_closing() {
            return match self.fast_close_expired(parts.ctx.now, id) {
                true => TimerEffect::Reset(Cause::Close),
                false => TimerEffect::Nothing,
            };
        }
        let subflow = &self.subflows[id];
        if matches!(subflow.state(), State::SynSent | State::SynReceived) {
            let alone = parts.timers.awaits_subflow();
            if !self.repeat_syn(parts.data, id, alone) {
                return TimerEffect::Gone { tell_peer: false };
            }
            if self.client && self.subflows.is_dialling(id) {
                self.dial_again(parts);
            }
            return TimerEffect::Nothing;
        }
        let (quiet, unproven) = (subflow.is_quiet(), subflow.awaits_fourth_ack());
        if unproven && self.subflows[id].proof().repeat(parts.ctx.now) > SYN_RETRIES {
            return TimerEffect::Gone { tell_peer: true };
        }
        if quiet && unproven && self.subflows[id].status().joined() {
            return TimerEffect::Silent { reinject: false };
        }
        if quiet {
            return TimerEffect::Nothing;
        }
        if self.on_data_timeout(&mut parts.ctx, parts.data, id) {
            return TimerEffect::Reset(Cause::Reason(ResetReason::Performance));
        }
        self.subflows[id].arm_path_probe(parts.data, &self.spec.config, parts.ctx.now);
        // If there is another subflow, the outstanding data is sent there.
        let others = self.subflows.iter().filter(|s| s.status().joined()).count() > 1;
        let moves = others && !self.spec.config.kernel_rules.keep_data;
        TimerEffect::Silent { reinject: moves }
    }

    /// Sets the timers that end a wait of the scheduler for a subflow, for the peer's window to open, or for
    /// a path with room for its quota.
    #[inline(never)]
    pub(crate) fn arm_wait(&self, parts: &mut Parts<'_>, on: Option<SubflowId>, why: WaitCause) {
        if why.spent {
            parts.timers.await_quota(&self.spec.config, parts.ctx.now, self.client);
        }
        if self.client && !parts.data.agreed().peer_dss_seen() && self.subflows.first_is_stuck() {
            parts.timers.set(ConnectionTimer::Rejoin, parts.ctx.now);
        }
        if why.window_closed && self.subflows.iter().all(Subflow::is_quiet) {
            parts.timers.arm_window_probe(parts.ctx.now, self.longest_rto(parts.data));
        }
        if let Some(subflow) = on.and_then(|id| self.subflows.get(id.index())) {
            parts.timers.arm_safety(parts.ctx.now, subflow.sender().rtt.rto());
        }
    }
}
