//! The scheduler's place in a connection: views in, decisions and effects out.

use super::timeouts::Awaited;
use super::views::{Stale, Views};
use super::{Connection, Context};
use crate::event::{Block, Detail, Event, WindowCause};
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use plait_base::{Span, SubflowId, SubflowSet, Time};
use plait_sched::{
    ConnectionView, Decision, Effect, Needs, Notice, Reason, Scheduler, SentRange, SubflowView,
    View, What, WhenFull,
};

/// A wait for a subflow ends at the latest after its RTO or this (schedulers 1.3).
pub(crate) const SAFETY_WAIT: Span = Span::from_millis(200);

#[derive(Debug)]
pub(crate) struct Scheduling {
    scheduler: Box<dyn Scheduler>,
    pub(super) needs: Needs,
    /// While a measurement warms up, segments go to the subflows in strict turn instead.
    warm_up: Option<WarmUp>,
    /// Decisions so far.
    decisions: u64,
    pub(super) views: Views,
    /// What the last decision allows beyond its own segment.
    grant: Grant,
    /// The candidates among which the last assignment chose.
    assigned_among: SubflowSet,
    /// Something happened that can change the answer.
    due: bool,
    pub(crate) app_blocked: bool,
    /// The window has been too small for a full segment for so long that a smaller one may go.
    pub(crate) small_segments: bool,
    block: Option<Block>,
    /// The last decision, if it was to wait: for what, why, and which subflows had room.
    pub(super) last_wait: Option<(Option<SubflowId>, Reason, SubflowSet)>,
}

/// The parts that make a decision, lent beside a view of the rest.
struct Deciding<'a> {
    scheduler: &'a mut dyn Scheduler,
    warm_up: &'a mut Option<WarmUp>,
}

/// New data that a subflow may take without another question, until something happens.
#[derive(Clone, Copy, Debug)]
struct Grant {
    subflow: SubflowId,
    bytes: u64,
    reason: Reason,
}

impl Grant {
    const NOTHING: Grant = Grant { subflow: SubflowId(0), bytes: 0, reason: Reason::OnlySubflow };
}

/// Strict turns: every subflow gets the same number of segments, whatever its window.
#[derive(Clone, Copy, Default, Debug)]
struct WarmUp {
    next: u8,
}

impl Scheduling {
    pub(crate) fn new(scheduler: Box<dyn Scheduler>) -> Scheduling {
        Scheduling {
            needs: scheduler.needs(),
            scheduler,
            warm_up: None,
            decisions: 0,
            views: Views::new(),
            grant: Grant::NOTHING,
            assigned_among: SubflowSet::EMPTY,
            due: false,
            app_blocked: false,
            small_segments: false,
            block: None,
            last_wait: None,
        }
    }

    /// Something happened that can change the scheduler's answer, whatever it was.
    pub(crate) fn wake(&mut self) {
        self.grant.bytes = 0;
        self.due = true;
        self.views.stale.all = true;
    }

    /// Subflows changed in a way that gives no reason to ask the scheduler again.
    pub(super) fn on_subflows_changed(&mut self) {
        self.grant.bytes = 0;
        self.views.stale.all = true;
    }

    /// `subflow` took in an acknowledgement; the others are as they were.
    pub(super) fn on_acked(&mut self, subflow: SubflowId) {
        self.grant.bytes = 0;
        self.due = true;
        self.views.stale.acked.insert(subflow);
    }

    /// Pacing lets `subflow` send again.
    pub(super) fn on_released(&mut self, subflow: SubflowId) {
        self.grant.bytes = 0;
        self.due = true;
        self.views.stale.sent.insert(subflow);
    }

    /// The connection's own queue or window changed; the subflows are as they were.
    pub(super) fn on_data(&mut self) {
        self.grant.bytes = 0;
        self.due = true;
    }

    /// A segment was sent on `subflow`.
    pub(super) fn on_sent(&mut self, subflow: SubflowId) {
        self.views.stale.sent.insert(subflow);
    }

    /// Payload bytes of the next full segment, as the last decision had it.
    pub(super) const fn segment_size(&self) -> u64 {
        self.views.segment_size()
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
            self.scheduling.needs = self.scheduling.scheduler.needs();
        }
        self.scheduling.wake();
    }

    /// Lends the scheduler and a view of the connection to `f`. The subflows' views are those of
    /// the last [`Connection::refresh_views`].
    fn with_view<R>(&mut self, now: Time, f: impl FnOnce(&mut Deciding<'_>, &View<'_>) -> R) -> R {
        let (mss, tsq) = (self.scheduling.views.segment_size() as u32, self.holds_back());
        let reinject = self.queue.next_reinjection().map(|next| self.beside_silence(next));
        let Connection { scheduling, queue, spec, started, window, .. } = self;
        let Scheduling { scheduler, warm_up, views, app_blocked, .. } = scheduling;
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
                reinject,
                app_blocked: *app_blocked,
                sndbuf_free: spec.config.sndbuf.saturating_sub(queue.occupied()),
                sndbuf: spec.config.sndbuf,
            },
            subflows: &views.list,
            queue: &*queue,
        };
        f(&mut Deciding { scheduler: &mut **scheduler, warm_up }, &view)
    }

    /// What is to be sent again as a scheduler sees it: where one subflow of a path has fallen silent,
    /// its siblings there have probably as well, and count as having carried it.
    fn beside_silence(&self, mut next: SentRange) -> SentRange {
        if self.subflows.len() > 2 {
            let silent =
                |path| self.subflows.iter().any(|it| it.status.pf && it.address.path() == path);
            for subflow in self.subflows.iter().filter(|it| silent(it.address.path())) {
                next.carried.insert(subflow.id);
            }
        }
        next
    }

    /// Tells the scheduler of an event.
    #[inline(never)]
    pub(super) fn notify_scheduler(&mut self, ctx: &Context<'_>, notice: Notice) {
        if self.scheduling.warm_up.is_none() {
            self.refresh_views(ctx.now);
            self.with_view(ctx.now, |deciding, view| deciding.scheduler.on_notice(view, notice));
        }
    }

    /// Asks the scheduler until it wants something sent, or has nothing to say.
    pub(super) fn next_decision(&mut self, ctx: &mut Context<'_>) -> Todo {
        if let Some(decision) = self.take_granted(ctx) {
            return Todo::Send(decision);
        }
        if self.rounds.idle {
            self.validate_idle(ctx);
        }
        while self.scheduling.due {
            self.refresh_views(ctx.now);
            debug_assert!(self.views_are_fresh());
            if self.scheduling.views.list.is_empty() {
                self.scheduling.due = false;
                break;
            }
            if self.queue.has_plan()
                && !self.spec.config.kernel_rules.keep_data
                && self.candidates(ctx.now) != self.scheduling.assigned_among
            {
                // A subflow recovered from a timeout, or lost its rank: what was assigned ahead was
                // planned for others.
                self.queue.unassign_all();
                self.scheduling.views.stale.all = true;
                self.refresh_views(ctx.now);
            }
            self.scheduling.decisions += 1;
            if self.is_full(ctx) {
                #[cfg(debug_assertions)]
                self.confirm(ctx, |it| matches!(it, Decision::Wait { on: None, .. }));
                self.scheduling.due = false;
                let alive = self.scheduling.views.list.iter().any(SubflowView::alive);
                let block = if alive { Block::CongestionWindow } else { Block::NoSubflow };
                self.note_block(ctx, Some(block));
                break;
            }
            let explained = ctx.log.detail == Detail::Everything;
            if self.spec.config.kernel_rules.data_timer && self.queue.unsent() > 0 {
                self.note_data_timeout(ctx.now);
            }
            let decision = self.ask(ctx, explained);
            self.apply_effects(ctx);
            if explained {
                self.tell_decision(ctx, decision);
            }
            match decision {
                Decision::Send { subflow, what, grant, reason } => {
                    self.note_block(ctx, None);
                    if what == (What::New { offset: 0 }) {
                        // With small queues another subflow becomes free as time passes: then the
                        // answer for the next segment may be another.
                        let further = if self.spec.config.tsq { 0 } else { grant };
                        let bytes = further.saturating_sub(self.scheduling.views.segment_size());
                        self.scheduling.grant = Grant { subflow, bytes, reason };
                    }
                    return Todo::Send(decision);
                }
                Decision::Assign { .. } => self.take_plan(ctx),
                Decision::Wait { on, reason } => self.on_wait(ctx, on, reason),
                Decision::Idle => self.on_idle(ctx),
            }
        }
        Todo::Nothing
    }

    /// The next full segment of what was granted: what the scheduler would say again. Whoever listens
    /// to decisions hears it say so.
    #[inline(always)]
    fn take_granted(&mut self, ctx: &mut Context<'_>) -> Option<Decision> {
        let Grant { subflow, bytes, reason } = self.scheduling.grant;
        let grant = self.scheduling.views.segment_size();
        if bytes < grant {
            return None;
        }
        let takes = |it: &Subflow| it.cwnd() >= it.tx.inflight() + grant && !self.held_back(it);
        let same = ctx.log.detail != Detail::Everything
            && self.segment_size() == grant
            && self.queue.unsent() >= grant
            && self.queue.nxt() + grant <= self.window.end()
            && !self.queue.has_plan()
            && self.queue.next_reinjection().is_none()
            && self.subflows.get(subflow.index()).is_some_and(takes);
        if !same {
            return None;
        }
        self.scheduling.grant.bytes -= grant;
        self.scheduling.decisions += 1;
        let decision = Decision::Send { subflow, what: What::New { offset: 0 }, grant, reason };
        #[cfg(debug_assertions)]
        {
            let alike = |it: Decision| match it {
                Decision::Send { subflow, what, reason, .. } => Some((subflow, what, reason)),
                _ => None,
            };
            self.refresh_views(ctx.now);
            self.confirm(ctx, |it| alike(it) == alike(decision));
        }
        Some(decision)
    }

    /// Takes a full segment of what was granted to `subflow`. False where it was granted no more.
    #[inline(never)]
    pub(super) fn take_granted_to(&mut self, ctx: &mut Context<'_>, subflow: SubflowId) -> bool {
        self.scheduling.grant.subflow == subflow && self.take_granted(ctx).is_some()
    }

    /// Asks what need not be asked. The answer must be what was said in its place, and to be asked must
    /// change nothing: a build without these assertions does not ask.
    #[cfg(debug_assertions)]
    fn confirm(&mut self, ctx: &mut Context<'_>, wanted: impl Fn(Decision) -> bool) {
        // Some schedulers put the names of what they remember together, which allocates.
        let before = ctx.checked.then(|| self.scheduler_state());
        let decision = self.ask(ctx, false);
        assert!(wanted(decision), "{decision:?} is not what was said in its place");
        let after = ctx.checked.then(|| self.scheduler_state());
        assert_eq!(after, before, "to be asked changed the scheduler");
    }

    /// A hash of what the scheduler remembers.
    #[cfg(debug_assertions)]
    fn scheduler_state(&self) -> u64 {
        let mut hash = 0_u64;
        let mut fold = |it: u64| hash = (hash ^ it).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        self.scheduling.scheduler.save_state(&mut |name, value| {
            name.bytes().for_each(|it| fold(u64::from(it)));
            fold(value.to_bits());
        });
        hash
    }

    /// Whether the answer is known without a question: there is new data and nothing else, and no
    /// subflow can take a segment of it. Whoever listens to decisions hears the scheduler itself.
    fn is_full(&self, ctx: &Context<'_>) -> bool {
        let known = match self.scheduling.needs.when_full {
            WhenFull::Never => true,
            WhenFull::Anew => !self.scheduling.views.unseen,
            WhenFull::Always => false,
        };
        known
            && self.scheduling.warm_up.is_none()
            && ctx.log.detail != Detail::Everything
            && self.queue.unsent() > 0
            && self.queue.next_reinjection().is_none()
            && !self.takes_more()
    }

    /// Whether any subflow can take the next segment.
    fn takes_more(&self) -> bool {
        let len = self.queue.unsent().min(self.scheduling.views.segment_size());
        let tsq = self.holds_back();
        self.scheduling.views.list.iter().any(|it| it.usable(len, tsq))
    }

    fn ask(&mut self, ctx: &mut Context<'_>, explained: bool) -> Decision {
        let (now, number) = (ctx.now, self.scheduling.decisions);
        let outcome = &mut ctx.outcome;
        self.scheduling.views.unseen = false;
        self.with_view(now, |deciding, view| {
            outcome.clear();
            (outcome.explain, outcome.number) = (explained, number);
            match deciding.warm_up {
                Some(turns) => turns.schedule(view),
                None => deciding.scheduler.schedule(view, outcome),
            }
        })
    }

    pub(super) fn candidates(&mut self, now: Time) -> SubflowSet {
        self.with_view(now, |_, view| view.candidates())
    }

    #[inline(never)]
    fn take_plan(&mut self, ctx: &Context<'_>) {
        self.scheduling.assigned_among = self.candidates(ctx.now);
        let Connection { scheduling, queue, .. } = self;
        let touched = queue.assign_all(&ctx.outcome.plan);
        scheduling.views.stale.sent.0 |= touched.0;
        // A plan that assigns nothing would be asked for for ever.
        scheduling.due = !touched.is_empty();
    }

    pub(super) fn usable(&self) -> SubflowSet {
        let len = self.queue.unsent().clamp(1, self.scheduling.views.segment_size().max(1));
        let tsq = self.holds_back();
        self.scheduling.views.list.iter().filter(|s| s.usable(len, tsq)).map(|s| s.id).collect()
    }

    fn on_wait(&mut self, ctx: &mut Context<'_>, on: Option<SubflowId>, reason: Reason) {
        self.scheduling.due = false;
        let usable = self.usable();
        let alive = self.scheduling.views.list.iter().any(SubflowView::alive);
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
        for at in 0..ctx.outcome.effects.len() {
            let effect = ctx.outcome.effects[at];
            self.scheduling.views.stale = Stale::ALL;
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
                        subflow.status.cap = bytes.unwrap_or(u64::MAX);
                    }
                }
            }
        }
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
        let what = What::New { offset: 0 };
        Decision::Send { subflow: turn.id, what, grant: len, reason: Reason::Turn }
    }
}
