//! What happens when time passes.

use super::{Connection, Context};
use crate::data::send_memory::PIECE_BYTES;
use crate::event::{Event, WindowCause};
use crate::planted::{Planted, planted};
use crate::stats::TimedOut;
use crate::tcp::ack_processing::AckEffects;
use crate::tcp::host_queue;
use crate::tcp::pending::{Cause, ControlSegment};
use crate::tcp::state::State;
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::{Timer, Timers};
use core::ops::{Deref, DerefMut};
use plait_base::{DataRange, Span, SubflowId, Time};
use plait_wire::ResetReason;

/// SYNs of a join before the path is given up (Linux: six retransmissions).
const SYN_RETRIES: u8 = 6;
/// SYN/ACKs after the first one before a half-open subflow is given up (Linux:
/// `net.ipv4.tcp_synack_retries`).
const SYN_ACK_RETRIES: u8 = 5;
/// Timeouts of data in a row before a subflow is given up (RFC 9293 section 3.8.3: R2; Linux's
/// default).
const DATA_RETRIES: u32 = 15;
/// Time for which a FIN is retransmitted once both directions of the data have ended: eight retransmissions
/// from a timeout of 200 ms on (Linux: `net.ipv4.tcp_orphan_retries`, which `retransmits_timed_out` counts as
/// time). A count would be three times as long on a path with an RTT of 400 ms.
const FIN_TIME: Span = Span::from_secs(102);
/// Retransmission timer of the connection where no subflow has one (schedulers 3.13).
const CONNECTION_RTO: Span = Span::from_millis(200);

/// Timers that transfers set often.
const FREQUENT_TIMERS: usize = 3;

/// What a connection as a whole may wait for; the first [`FREQUENT_TIMERS`] often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Awaited {
    /// Data or DATA_FIN is not DATA_ACKed.
    Retransmission,
    /// A scheduler waits for a subflow that may be silent.
    Safety,
    /// The peer's window is closed.
    WindowProbe,
    /// Paths whose subflow is gone are joined anew.
    Rejoin,
    /// An address is announced again.
    Address,
    /// MP_FAIL is not answered.
    Fail,
    /// The user has released the connection: until then it is to be over.
    Release,
    /// No subflow is left: until then there must be one.
    NoSubflow,
    /// Whether the peer takes anything is looked at.
    UserTimeout,
    /// Whether anything is heard of the peer is.
    KeepAlive,
}

impl From<Awaited> for usize {
    fn from(awaited: Awaited) -> usize {
        awaited as usize
    }
}

/// Timers of the connection as a whole.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionTimers {
    timers: Timers<Awaited, FREQUENT_TIMERS>,
    backoff: u32,
    probe_backoff: u32,
}

impl ConnectionTimers {
    pub(super) const fn new() -> ConnectionTimers {
        ConnectionTimers { timers: Timers::new(), backoff: 0, probe_backoff: 0 }
    }

    pub(super) fn arm_retransmission(&mut self, now: Time, rto: Span) {
        if !self.is_set(Awaited::Retransmission) {
            let wait = rto.times(1 << self.backoff.min(6));
            self.set(Awaited::Retransmission, now + wait);
        }
    }

    /// How often the connection's retransmission timer has expired since the last DATA_ACK.
    pub(super) const fn retries(&self) -> u32 {
        self.backoff
    }
}

impl Deref for ConnectionTimers {
    type Target = Timers<Awaited, FREQUENT_TIMERS>;

    fn deref(&self) -> &Timers<Awaited, FREQUENT_TIMERS> {
        &self.timers
    }
}

impl DerefMut for ConnectionTimers {
    fn deref_mut(&mut self) -> &mut Timers<Awaited, FREQUENT_TIMERS> {
        &mut self.timers
    }
}

impl Connection {
    /// When [`Connection::handle_timeout`] is to be called: never late, perhaps early.
    pub(crate) fn poll_timeout(&self) -> Time {
        self.subflows.iter().fold(self.timers.next(), |first, it| first.min(it.timers.next()))
    }

    /// Notes when the last timer of a subflow expires, before data is handed out. Linux sends data again,
    /// on a subflow that is idle, after as long without a DATA_ACK. A subflow has one timer for its tail
    /// probe, its reordering and its timeout (`mptcp_timeout_from_subflow`, `icsk_pending`); one without
    /// progress does not count.
    pub(super) fn note_data_timeout(&mut self, now: Time) {
        let live = |it: &&Subflow| it.state.sends_data() && it.status.joined;
        let mut longest = Span::ZERO;
        for subflow in self.subflows.iter().filter(live) {
            if self.queue.stands_still(subflow.id) {
                continue;
            }
            let timers = [Timer::Tail, Timer::Reorder, Timer::Rto];
            let at = timers.map(|timer| subflow.timers.at(timer)).into_iter().min();
            let left = at.filter(|at| *at != Time::NEVER).map(|at| at.since(now));
            longest = longest.max(left.unwrap_or_default());
        }
        if let Some(memory) = self.queue.memory() {
            memory.note_timeout(longest);
        }
    }

    /// The longest timeout of a live subflow: until then the data may yet be acknowledged.
    pub(super) fn longest_rto(&self) -> Span {
        if self.spec.config.kernel_rules.data_timer
            && let Some(timeout) = self.queue.data_timeout()
        {
            return timeout;
        }
        let live = self.subflows.iter().filter(|s| s.state.synchronised() && s.status.joined);
        live.map(|s| s.rtt.rto()).max().unwrap_or(CONNECTION_RTO)
    }

    /// DATA_ACK moved: the connection's retransmission timer starts afresh.
    pub(super) fn on_data_progress(&mut self, now: Time) {
        self.timers.backoff = 0;
        self.timers.clear(Awaited::Retransmission);
        self.timers.probe_backoff = 0;
        self.timers.clear(Awaited::WindowProbe);
        let fin_pending = self.closing.fin_sent && !self.closing.fin_acked;
        if self.queue.una() < self.queue.nxt() || fin_pending {
            self.timers.arm_retransmission(now, self.longest_rto());
        }
    }

    /// The window is closed: ask for it, ever less often (RFC 9293 section 3.8.6.1).
    pub(super) fn arm_window_probe(&mut self, now: Time) {
        let nothing_under_way = self.subflows.iter().all(|s| s.tx.is_empty());
        let due = nothing_under_way && !planted(Planted::NoWindowProbe);
        if due && !self.timers.is_set(Awaited::WindowProbe) {
            let wait = self.longest_rto().times(1 << self.timers.probe_backoff.min(8));
            self.timers.set(Awaited::WindowProbe, now + wait.min(Span::from_secs(120)));
        }
    }

    /// Expires every timer that is due.
    pub(crate) fn handle_timeout(&mut self, ctx: &mut Context<'_>) {
        for index in 0..SubflowId::MAX {
            for timer in Timer::ALL {
                // A timer may end the connection's attempt on one path and begin another.
                let subflow = self.subflows.get_mut(index);
                if subflow.is_some_and(|subflow| subflow.timers.take_due(timer, ctx.now)) {
                    self.on_timer(ctx, index, timer);
                }
            }
        }
        self.on_connection_timers(ctx);
        self.subflows.iter_mut().for_each(|subflow| subflow.timers.on_looked());
        self.timers.on_looked();
    }

    fn on_timer(&mut self, ctx: &mut Context<'_>, index: usize, timer: Timer) {
        match timer {
            Timer::Rto => self.on_rto(ctx, index),
            Timer::Tail => self.subflows[index].pending.add(ControlSegment::TailProbe),
            Timer::Ack => self.subflows[index].pending.ack = true,
            Timer::TimeWait => self.on_wait_over(ctx, index),
            Timer::Reorder => self.on_reorder(ctx, index),
            Timer::Probe => self.on_probe_timer(ctx, index),
            Timer::HostQueue => self.on_host_queue_timer(ctx.now, index),
            Timer::Pace => {
                let subflow = &mut self.subflows[index];
                if let Some(pacer) = &mut subflow.pacer {
                    pacer.release();
                }
                self.scheduling.on_released(subflow.id);
            }
        }
    }

    /// A segment of `len` payload bytes leaves the host at `departs`.
    pub(crate) fn on_departure(&mut self, now: Time, id: SubflowId, len: u32, departs: Time) {
        let mss = self.mss();
        let Some(subflow) = self.subflows.get_mut(id.index()) else { return };
        let queue = subflow.host_queue.get_or_insert_default();
        queue.push(now, departs, host_queue::truesize(len));
        let next = queue.next_departure();
        if subflow.tsq_blocked(mss) {
            subflow.timers.set(Timer::HostQueue, next);
        }
    }

    fn on_host_queue_timer(&mut self, now: Time, index: usize) {
        let mss = self.mss();
        let subflow = &mut self.subflows[index];
        subflow.drain_host_queue(now);
        match &subflow.host_queue {
            Some(queue) if subflow.tsq_blocked(mss) => {
                subflow.timers.set(Timer::HostQueue, queue.next_departure());
            }
            _ => self.scheduling.wake(),
        }
    }

    fn on_reorder(&mut self, ctx: &mut Context<'_>, index: usize) {
        let (now, mss) = (ctx.now, self.mss());
        let mut effects = AckEffects::default();
        self.with_flows(index, |subflow, flows| subflow.detect_loss(now, flows, mss, &mut effects));
        self.scheduling.wake();
        if effects.entered_recovery {
            self.report_window(ctx, index, WindowCause::Loss);
        }
    }

    fn report_window(&self, ctx: &mut Context<'_>, index: usize, cause: WindowCause) {
        let subflow = &self.subflows[index];
        let (cwnd, ssthresh) = (subflow.cwnd(), subflow.cc.ssthresh());
        ctx.emit(Event::Window { subflow: subflow.id, cwnd, ssthresh, cause });
    }

    fn on_rto(&mut self, ctx: &mut Context<'_>, index: usize) {
        if self.closing.fast.is_some() {
            return self.on_fast_close_timeout(ctx, index);
        }
        let subflow = &mut self.subflows[index];
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
        let frto = self.plain();
        self.with_flows(index, |subflow, flows| subflow.on_timeout(now, flows, frto));
        self.report_window(ctx, index, WindowCause::Timeout);
        self.probe_smaller_size(now, index);
        let rtt = &self.subflows[index].rtt;
        let given_up = match self.closing.done() {
            true => rtt.retransmitted_for() >= FIN_TIME,
            false => rtt.backoff() > DATA_RETRIES,
        };
        if given_up {
            return self.reset_subflow(ctx, index, Cause::Reason(ResetReason::Performance));
        }
        self.arm_path_probe(now, index);
        // With another subflow at hand, what is stuck here goes there (schedulers 4.12).
        let others = self.subflows.iter().filter(|s| s.status.joined).count() > 1;
        if others && !self.spec.config.kernel_rules.keep_data && !planted(Planted::NoReinjection) {
            self.reinject_outstanding(index);
        }
        self.notify_subflows(ctx);
        self.start_joins(ctx);
    }

    fn on_syn_timeout(&mut self, ctx: &mut Context<'_>, index: usize) {
        let subflow = &mut self.subflows[index];
        subflow.rtt.back_off();
        subflow.shake.retries = subflow.shake.retries.saturating_add(1);
        if subflow.shake.join && self.closing.done() && !self.awaits_subflow() {
            // Nothing is left that it could be used for.
            return self.kill_subflow(ctx, index, false);
        }
        let rounds = self.rounds_dialled();
        let subflow = &mut self.subflows[index];
        let dials = subflow.shake.initiator;
        let patient = subflow.shake.join && dials && self.spec.config.probe.is_some();
        let most = if dials { SYN_RETRIES } else { SYN_ACK_RETRIES };
        if subflow.shake.retries > most && !patient || rounds > usize::from(SYN_RETRIES) {
            return self.kill_subflow(ctx, index, false);
        }
        subflow.pending.add(ControlSegment::Syn);
        // A join may have taken the place of a first subflow that is gone.
        let first = index == 0 && !subflow.shake.join;
        if first && subflow.state == State::SynSent && self.client {
            self.weigh_silence(ctx);
            if self.ways_to_dial() > 1 {
                self.try_next_path(ctx);
            }
        }
    }

    fn on_connection_timers(&mut self, ctx: &mut Context<'_>) {
        if self.failed {
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
        if self.timers.take_due(Awaited::UserTimeout, ctx.now) && self.user_timeout_expired(ctx.now)
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
            if let Some(index) = self.signal_path(repeats) {
                self.subflows[index].pending.add(ControlSegment::WindowProbe);
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
        if self.sends_plain() {
            return;
        }
        // A peer that has fallen back takes the same bytes on the same subflow for new ones.
        let again = self.spec.config.kernel_rules.data_timer && !self.is_in_doubt();
        if again && !self.queue.is_drained() {
            return self.send_again_when_idle(ctx);
        }
        self.timers.backoff += 1;
        let fin_pending = self.closing.fin_sent && !self.closing.fin_acked;
        if fin_pending && self.queue.is_drained() {
            self.closing.fin_due = !planted(Planted::DataFinOnce);
        }
        let head = self.queue.sent().next().map(|sent| sent.range);
        if let Some(range) = head
            && self.live().len() > 1
        {
            self.queue.queue_reinjection(range);
            self.scheduling.wake();
        }
        if self.queue.una() < self.queue.nxt() || fin_pending {
            self.timers.arm_retransmission(ctx.now, self.longest_rto());
        }
    }

    /// The rest of the first piece of data that is not DATA_ACKed goes out again if a subflow has nothing
    /// at all to send; else the timer starts afresh (`__mptcp_retrans` of Linux).
    fn send_again_when_idle(&mut self, ctx: &mut Context<'_>) {
        let mut idle = false;
        for subflow in self.subflows.iter().filter(|it| it.state.sends_data() && it.status.joined) {
            if subflow.tx.is_empty() && self.queue.assigned(subflow.id) == 0 {
                idle = true;
            } else if let Some(memory) = self.queue.memory() {
                memory.note_progress(subflow.id, subflow.rtt.sampled_at());
            }
        }
        if idle {
            let una = self.queue.una();
            let piece = DataRange::with_len(una, PIECE_BYTES - una.get() % PIECE_BYTES);
            self.queue.queue_reinjection(piece);
            self.scheduling.wake();
        }
        if self.queue.una() < self.queue.nxt() {
            self.timers.arm_retransmission(ctx.now, self.longest_rto());
        }
    }
}
