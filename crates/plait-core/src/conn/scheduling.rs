//! The scheduler's place in a connection: views in, decisions and effects out.

use super::timeouts::Awaited;
use super::{Connection, Context, Mode};
use crate::event::{Block, Detail, Event, WindowCause};
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use plait_base::{Span, SubflowId, SubflowSet, Time};
use plait_sched::{
    CaState, ConnectionView, Decision, Effect, Notice, Outcome, Reason, Scheduler, SubflowView,
    View,
};

/// MP_CAPABLE with data takes 24 bytes, a DSS 20 (RFC 8684 sections 3.1 and 3.3).
const KEYS_OVER_DSS: u64 = 4;
/// A wait for a subflow ends at the latest after its RTO or this (schedulers 1.3).
pub(crate) const SAFETY_WAIT: Span = Span::from_millis(200);

#[derive(Debug)]
pub(crate) struct Scheduling {
    scheduler: Box<dyn Scheduler>,
    /// It does not want to know of every DATA_ACK.
    ignores_data_acks: bool,
    /// While a measurement warms up, segments go to the subflows in strict turn instead.
    warm_up: Option<WarmUp>,
    outcome: Outcome,
    views: Vec<SubflowView>,
    /// Which of the views no longer tell the truth.
    stale: Stale,
    /// What all views have in common: the size of a segment, and whether this is plain TCP.
    common: (u64, bool),
    /// The candidates among which the last assignment chose.
    assigned_among: SubflowSet,
    /// Something happened that can change the answer.
    due: bool,
    pub(crate) app_blocked: bool,
    /// The window has been too small for a full segment for so long that a smaller one may go.
    pub(crate) small_segments: bool,
    block: Option<Block>,
    last_wait: Option<(Option<SubflowId>, Reason)>,
}

/// The parts that make a decision, lent beside a view of the rest.
struct Deciding<'a> {
    scheduler: &'a mut dyn Scheduler,
    warm_up: &'a mut Option<WarmUp>,
    outcome: &'a mut Outcome,
}

/// Views that are out of date.
#[derive(Clone, Copy, Debug)]
struct Stale {
    /// All of them, and perhaps the list of them.
    all: bool,
    /// Those of subflows that took in an acknowledgement.
    acked: SubflowSet,
    /// Those of subflows that sent.
    sent: SubflowSet,
}

impl Stale {
    const NOTHING: Stale = Stale { all: false, acked: SubflowSet::EMPTY, sent: SubflowSet::EMPTY };
    const ALL: Stale = Stale { all: true, ..Stale::NOTHING };
}

/// Strict turns: every subflow gets the same number of segments, whatever its window.
#[derive(Clone, Copy, Default, Debug)]
struct WarmUp {
    next: u8,
}

impl Scheduling {
    pub(crate) fn new(scheduler: Box<dyn Scheduler>) -> Scheduling {
        Scheduling {
            ignores_data_acks: scheduler.ignores_data_acks(),
            scheduler,
            warm_up: None,
            outcome: Outcome::default(),
            views: Vec::with_capacity(SubflowId::MAX),
            stale: Stale::ALL,
            common: (0, false),
            assigned_among: SubflowSet::EMPTY,
            due: false,
            app_blocked: false,
            small_segments: false,
            block: None,
            last_wait: None,
        }
    }

    /// Whether [`Notice::DataAck`] need not be told.
    pub(super) const fn ignores_data_acks(&self) -> bool {
        self.ignores_data_acks
    }

    /// Something happened that can change the scheduler's answer, whatever it was.
    pub(crate) fn wake(&mut self) {
        self.due = true;
        self.stale.all = true;
    }

    /// Subflows changed in a way that gives no reason to ask the scheduler again.
    pub(super) fn on_subflows_changed(&mut self) {
        self.stale.all = true;
    }

    /// `subflow` took in an acknowledgement; the others are as they were.
    pub(super) fn on_acked(&mut self, subflow: SubflowId) {
        self.due = true;
        self.stale.acked.insert(subflow);
    }

    /// Pacing lets `subflow` send again.
    pub(super) fn on_released(&mut self, subflow: SubflowId) {
        self.due = true;
        self.stale.sent.insert(subflow);
    }

    /// The connection's own queue or window changed; the subflows are as they were.
    pub(super) fn on_data(&mut self) {
        self.due = true;
    }

    /// A segment was sent on `subflow`.
    pub(super) fn on_sent(&mut self, subflow: SubflowId) {
        self.stale.sent.insert(subflow);
    }

    /// Payload bytes of the next full segment, as the last decision had it.
    pub(super) const fn segment_size(&self) -> u64 {
        self.common.0
    }

    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }
}

/// What [`Connection::next_decision`] leaves to do.
pub(super) enum Todo {
    /// Carry out this.
    Send(Decision),
    /// Nothing now.
    Nothing,
}

impl Connection {
    /// Lets segments go to the subflows in strict turn (`on`), or hands over to a fresh scheduler.
    pub(crate) fn set_warm_up(&mut self, on: bool) {
        self.scheduling.warm_up = on.then(WarmUp::default);
        if !on {
            self.scheduling.scheduler = (self.spec.scheduler)();
            self.scheduling.ignores_data_acks = self.scheduling.scheduler.ignores_data_acks();
        }
        self.scheduling.wake();
    }

    /// State of a subflow's loss recovery, as a scheduler sees it.
    pub(super) fn ca(&self, subflow: &Subflow) -> CaState {
        match subflow.phase.ca() {
            // Plain TCP has no other subflow to leave the rest to: after a timeout it goes on as
            // its window allows (RFC 5681 section 3.1).
            CaState::Loss if self.sends_plain() => CaState::Recovery,
            ca => ca,
        }
    }

    fn subflow_view(&self, index: usize) -> SubflowView {
        let subflow = &self.subflows[index];
        SubflowView {
            id: subflow.id,
            open: subflow.state.sends_data(),
            joined: subflow.standing.joined,
            backup: subflow.is_backup(),
            pf: subflow.standing.pf,
            ca: self.ca(subflow),
            mss: self.segment_size() as u32,
            cwnd: subflow.uncapped_cwnd(),
            cap: subflow.standing.cap.unwrap_or(u64::MAX),
            ssthresh: subflow.cc.ssthresh(),
            inflight: subflow.tx.inflight(),
            outstanding: subflow.tx.outstanding(),
            queued: self.queue.assigned(subflow.id),
            srtt: subflow.rtt.srtt(),
            rttvar: subflow.rtt.rttvar(),
            last_rtt: subflow.rtt.latest(),
            min_rtt: subflow.rtt.min(),
            rtt_at: subflow.rtt.sampled_at(),
            rto: subflow.rtt.rto(),
            tsq_blocked: self.held_back(subflow),
            rec_cwnd: subflow.standing.rec_cwnd,
            pacing_rate: match subflow.rtt.srtt() {
                Some(_) => subflow.pacing_rate(),
                // RFC 6298 section 2.1 takes an unknown RTT for a second.
                None => subflow.cwnd(),
            },
            delivery_rate: subflow.delivery.bytes_per_second(),
            timeouts: if subflow.standing.pf { subflow.rtt.backoff() } else { 0 },
            last_send: subflow.last_send,
        }
    }

    /// Payload bytes of the next full segment: less than usual where the peer's whole window is
    /// smaller, or where it has stayed nearly closed for long (RFC 9293 section 3.8.6.2.1).
    pub(super) fn segment_size(&self) -> u64 {
        let mss = self.mss() - if self.keys_ride_along() { KEYS_OVER_DSS } else { 0 };
        let mss = mss.min(self.window.largest()).max(1);
        let left = self.window.end().saturating_sub(self.queue.nxt());
        if self.scheduling.small_segments && left > 0 { mss.min(left) } else { mss }
    }

    /// Whether the next new segment is the first one of a client whose peer may not have the keys.
    fn keys_ride_along(&self) -> bool {
        let told = self.joins.peer_dss_seen || self.queue.nxt() > 0;
        self.client && self.mode == Mode::Multipath && !told
    }

    /// Whether small queues or pacing make subflows wait.
    fn holds_back(&self) -> bool {
        self.spec.config.tsq || self.spec.config.pacing.is_some()
    }

    /// Whether `subflow` waits for the host's queue or for its release time.
    pub(super) fn held_back(&self, subflow: &Subflow) -> bool {
        subflow.pacer.is_held() || self.spec.config.tsq && subflow.tsq_blocked(self.mss())
    }

    /// Brings the views of the subflows that carry data up to date.
    #[inline(always)]
    fn refresh_views(&mut self, now: Time) {
        let common = (self.segment_size(), self.sends_plain());
        let stale = core::mem::replace(&mut self.scheduling.stale, Stale::NOTHING);
        if stale.all || self.spec.config.tsq || self.scheduling.common != common {
            self.scheduling.common = common;
            return self.refresh_all_views(now);
        }
        if (stale.acked.0 | stale.sent.0) == 0 {
            return;
        }
        for at in 0..self.scheduling.views.len() {
            let id = self.scheduling.views[at].id;
            if stale.acked.contains(id) {
                self.scheduling.views[at] = self.subflow_view(id.index());
            } else if stale.sent.contains(id) {
                let subflow = &self.subflows[id.index()];
                let view = &mut self.scheduling.views[at];
                view.cwnd = subflow.uncapped_cwnd();
                view.inflight = subflow.tx.inflight();
                view.outstanding = subflow.tx.outstanding();
                view.queued = self.queue.assigned(id);
                view.last_send = subflow.last_send;
                view.tsq_blocked = subflow.pacer.is_held();
            }
        }
    }

    #[inline(never)]
    fn refresh_all_views(&mut self, now: Time) {
        let mut views = core::mem::take(&mut self.scheduling.views);
        views.clear();
        for index in 0..self.subflows.len() {
            if self.spec.config.tsq {
                self.subflows[index].host_queue.drain(now);
            }
            let subflow = &self.subflows[index];
            if subflow.standing.joined && subflow.state.synchronised() {
                views.push(self.subflow_view(index));
            }
        }
        self.scheduling.views = views;
    }

    /// Whether every view tells what one made now would.
    fn views_are_fresh(&self) -> bool {
        let live = self.subflows.iter().filter(|s| s.standing.joined && s.state.synchronised());
        live.map(|s| self.subflow_view(s.id.index())).eq(self.scheduling.views.iter().copied())
    }

    /// Lends the scheduler and a view of the connection to `f`. The subflows' views are those of
    /// the last [`Connection::refresh_views`].
    fn with_view<R>(&mut self, now: Time, f: impl FnOnce(&mut Deciding<'_>, &View<'_>) -> R) -> R {
        let (mss, tsq) = (self.scheduling.common.0 as u32, self.holds_back());
        let Connection { scheduling, queue, spec, started, window, .. } = self;
        let Scheduling { scheduler, warm_up, outcome, views, app_blocked, .. } = scheduling;
        // Built in place: a copy of what was just written costs more than all the rest.
        let view = View {
            now,
            tsq,
            connection: ConnectionView {
                mss,
                start: *started,
                snd_una: queue.una(),
                snd_nxt: queue.nxt(),
                wnd_end: window.end(),
                unsent: queue.unsent(),
                reinject: queue.next_reinjection(),
                app_blocked: *app_blocked,
                sndbuf_free: spec.config.sndbuf.saturating_sub(queue.occupied()),
                sndbuf: spec.config.sndbuf,
            },
            subflows: views,
            queue: &*queue,
        };
        f(&mut Deciding { scheduler: &mut **scheduler, warm_up, outcome }, &view)
    }

    /// Tells the scheduler of an event.
    #[inline(never)]
    pub(super) fn notify_scheduler(&mut self, ctx: &Context<'_>, notice: Notice) {
        if self.scheduling.warm_up.is_none() {
            self.refresh_views(ctx.now);
            self.with_view(ctx.now, |deciding, view| deciding.scheduler.on_notice(view, notice));
        }
    }

    /// Windows of subflows that have been idle are brought down before the scheduler looks at them
    /// (schedulers 4.9).
    #[inline(never)]
    fn validate_idle(&mut self, ctx: &mut Context<'_>) {
        let mode = self.spec.config.idle_restart;
        for subflow in &mut self.subflows {
            if !subflow.standing.joined || !subflow.is_quiet() || subflow.last_send == Time::ZERO {
                continue;
            }
            let idle = ctx.now.since(subflow.last_send);
            self.scheduling.stale.acked.insert(subflow.id);
            if let Some(reset) = subflow.cc.idle(ctx.now, idle, subflow.rtt.base_rto(), mode) {
                let standing = &mut subflow.standing;
                standing.rec_cwnd = standing.rec_cwnd.max(reset.before);
                let (before, after) = (reset.before, reset.after);
                ctx.log.emit(Event::IdleReset { subflow: subflow.id, before, after });
            }
        }
    }

    /// Asks the scheduler until it wants something sent, or has nothing to say.
    pub(super) fn next_decision(&mut self, ctx: &mut Context<'_>) -> Todo {
        if self.rounds.idle {
            self.validate_idle(ctx);
        }
        while self.scheduling.due {
            self.refresh_views(ctx.now);
            debug_assert!(self.views_are_fresh());
            if self.scheduling.views.is_empty() {
                self.scheduling.due = false;
                break;
            }
            if self.queue.has_plan() && self.candidates(ctx.now) != self.scheduling.assigned_among {
                // A subflow recovered from a timeout, or lost its rank: what was assigned ahead was
                // planned for others.
                self.queue.unassign_all();
                self.scheduling.stale.all = true;
                self.refresh_views(ctx.now);
            }
            let decision = self.ask(ctx.now);
            self.apply_effects(ctx);
            self.log_decision(ctx, decision);
            match decision {
                Decision::Send { .. } => {
                    self.note_block(ctx, None);
                    return Todo::Send(decision);
                }
                Decision::Assign { .. } => self.take_plan(ctx.now),
                Decision::Wait { on, reason } => self.on_wait(ctx, on, reason),
                Decision::Idle => self.on_idle(ctx),
            }
        }
        Todo::Nothing
    }

    fn ask(&mut self, now: Time) -> Decision {
        self.with_view(now, |deciding, view| {
            deciding.outcome.clear();
            match deciding.warm_up {
                Some(turns) => turns.schedule(view),
                None => deciding.scheduler.schedule(view, deciding.outcome),
            }
        })
    }

    fn candidates(&mut self, now: Time) -> SubflowSet {
        self.with_view(now, |_, view| view.candidates())
    }

    #[inline(never)]
    fn take_plan(&mut self, now: Time) {
        self.scheduling.assigned_among = self.candidates(now);
        let Connection { scheduling, queue, .. } = self;
        let mut touched = SubflowSet::EMPTY;
        for (range, subflow) in &scheduling.outcome.plan {
            touched.0 |= queue.assign(*range, *subflow).0;
        }
        scheduling.stale.sent.0 |= touched.0;
        // A plan that assigns nothing would be asked for for ever.
        scheduling.due = !touched.is_empty();
    }

    fn usable(&self) -> SubflowSet {
        let len = self.queue.unsent().clamp(1, self.scheduling.common.0.max(1));
        let tsq = self.holds_back();
        self.scheduling.views.iter().filter(|s| s.usable(len, tsq)).map(|s| s.id).collect()
    }

    fn on_wait(&mut self, ctx: &mut Context<'_>, on: Option<SubflowId>, reason: Reason) {
        self.scheduling.due = false;
        let usable = self.usable();
        let alive = self.scheduling.views.iter().any(SubflowView::alive);
        let block = match reason {
            Reason::SendWindow => Block::ReceiveWindow,
            _ if !alive => Block::NoSubflow,
            _ if usable.is_empty() => Block::CongestionWindow,
            _ => Block::Scheduler,
        };
        self.note_block(ctx, Some(block));
        if reason == Reason::SendWindow {
            self.notify_scheduler(ctx, Notice::WindowLimited);
            self.arm_window_probe(ctx.now);
        }
        if let Some(subflow) = on.and_then(|id| self.subflows.get(id.index())) {
            let wait = subflow.rtt.rto().max(SAFETY_WAIT);
            self.timers.set(Awaited::Safety, ctx.now + wait);
        }
    }

    #[inline(never)]
    fn on_idle(&mut self, ctx: &mut Context<'_>) {
        self.scheduling.due = false;
        let stalled = self.scheduling.app_blocked && !self.usable().is_empty();
        self.note_block(ctx, stalled.then_some(Block::SendBuffer));
        if stalled {
            self.notify_scheduler(ctx, Notice::WindowLimited);
        }
    }

    fn note_block(&mut self, ctx: &mut Context<'_>, block: Option<Block>) {
        let before = core::mem::replace(&mut self.scheduling.block, block);
        // Full windows come and go with every acknowledgement, and no measure reads them.
        let wanted = ctx.log.detail == Detail::Everything
            || [before, block].iter().flatten().any(|cause| cause.is_measured());
        if before != block && wanted {
            ctx.emit(Event::Blocked(block));
        }
    }

    fn apply_effects(&mut self, ctx: &mut Context<'_>) {
        for at in 0..self.scheduling.outcome.effects.len() {
            let effect = self.scheduling.outcome.effects[at];
            self.scheduling.stale = Stale::ALL;
            ctx.emit(Event::Effect(effect));
            match effect {
                Effect::Penalise { subflow, cwnd, ssthresh } => {
                    let Some(subflow) = self.subflows.get_mut(subflow.index()) else { continue };
                    subflow.cc.penalise(cwnd, ssthresh);
                    let (id, cwnd) = (subflow.id, subflow.cwnd());
                    let cause = WindowCause::Effect;
                    ctx.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
                }
                Effect::Cap { subflow, bytes } => {
                    if let Some(subflow) = self.subflows.get_mut(subflow.index()) {
                        subflow.standing.cap = bytes;
                    }
                }
            }
        }
    }

    /// Reports a decision; a wait that repeats the last one is not reported again.
    fn log_decision(&mut self, ctx: &mut Context<'_>, decision: Decision) {
        if ctx.log.detail != Detail::Everything {
            return;
        }
        let (chosen, waits_for, reason) = match decision {
            Decision::Send { subflow, reason, .. } => (Some(subflow), None, reason),
            Decision::Assign { reason } => {
                let first = self.scheduling.outcome.plan.first();
                (first.map(|(_, subflow)| *subflow), None, reason)
            }
            Decision::Wait { on, reason } => (None, on, reason),
            Decision::Idle => return,
        };
        let wait = matches!(decision, Decision::Wait { .. }).then_some((waits_for, reason));
        if wait.is_some() && wait == self.scheduling.last_wait {
            return;
        }
        self.scheduling.last_wait = wait;
        let candidates = self.candidates(ctx.now);
        let usable = self.usable();
        ctx.emit(Event::Decision { chosen, waits_for, candidates, usable, reason });
    }
}

impl WarmUp {
    fn schedule(&mut self, view: &View<'_>) -> Decision {
        let len = view.next_len();
        if len == 0 {
            return Decision::Idle;
        }
        let count = view.subflows.len();
        let turn = &view.subflows[usize::from(self.next) % count];
        if !turn.usable(len, false) || view.connection.snd_nxt + len > view.connection.wnd_end {
            return Decision::Wait { on: Some(turn.id), reason: Reason::TurnBusy };
        }
        self.next = ((usize::from(self.next) + 1) % count) as u8;
        let what = plait_sched::What::New { offset: 0 };
        Decision::Send { subflow: turn.id, what, grant: len, reason: Reason::Turn }
    }
}
