//! The scheduler's place in a connection: views in, decisions and effects out.

mod explain;
pub(crate) mod views;

use crate::config::Config;
use crate::conn::context::Context;
use crate::data::level::DataLevel;
use crate::event::{Block, Carry, Detail, Event, WindowCause};
use crate::paths::Paths;
use crate::sched::views::{Stale, Views};
use crate::tcp::subflow::Subflow;
use alloc::boxed::Box;
use alloc::vec::Vec;
use plait_base::{DataRange, Span, Ssn, SubflowId, SubflowSet, Time};
use plait_sched::{
    CaState, ConnectionView, Decision, Effect, Needs, Notice, Reason, Scheduler, SubflowView, View,
    What, WhenFull,
};

/// A wait for a subflow ends at the latest after its RTO or this (schedulers 1.3).
pub(crate) const SAFETY_WAIT: Span = Span::from_millis(200);

#[derive(Debug)]
pub(crate) struct Scheduling {
    pub(crate) scheduler: Box<dyn Scheduler>,
    /// When the connection began.
    pub(crate) started: Time,
    pub(crate) needs: Needs,
    /// While a measurement warms up, segments go to the subflows in strict turn instead.
    pub(crate) warm_up: Option<WarmUp>,
    /// Decisions so far.
    pub(crate) decisions: u64,
    pub(crate) views: Views,
    /// What the last decision allows beyond its own segment.
    pub(crate) grant: Grant,
    /// The candidates among which the last assignment chose.
    pub(crate) assigned_among: SubflowSet,
    /// Something happened that can change the answer.
    pub(crate) due: bool,
    pub(crate) app_blocked: bool,
    /// The window has been too small for a full segment for so long that a smaller one may go.
    pub(crate) small_segments: bool,
    pub(crate) block: Option<Block>,
    /// The last decision, if it was to wait: for what, why, and which subflows had room.
    pub(crate) last_wait: Option<(Option<SubflowId>, Reason, SubflowSet)>,
}

/// Data that is to go out.
pub(crate) struct Order {
    pub(crate) subflow: SubflowId,
    pub(crate) range: DataRange,
    pub(crate) carry: Carry,
    /// More new data may go with it.
    pub(crate) whole: bool,
}

/// What a decision may look at: the settings, the data level and the subflows.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    pub(crate) data: &'a DataLevel,
    pub(crate) paths: &'a Paths,
}

/// The parts that make a decision, lent beside a view of the rest.
pub(crate) struct Deciding<'a> {
    pub(crate) scheduler: &'a mut dyn Scheduler,
    pub(crate) warm_up: &'a mut Option<WarmUp>,
}

/// New data that a subflow may take without another question, until something happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) subflow: SubflowId,
    pub(crate) bytes: u64,
    pub(crate) reason: Reason,
}

impl Grant {
    pub(crate) const NOTHING: Grant =
        Grant { subflow: SubflowId(0), bytes: 0, reason: Reason::OnlySubflow };
}

/// Strict turns: every subflow gets the same number of segments, whatever its window.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct WarmUp {
    pub(crate) next: u8,
}

impl Scheduling {
    pub(crate) fn new(scheduler: Box<dyn Scheduler>, started: Time) -> Scheduling {
        Scheduling {
            needs: scheduler.needs(),
            scheduler,
            started,
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

    /// Gives the memory of views back, which are made anew when somebody looks.
    pub(crate) fn give_back(&mut self) {
        self.views.list = Vec::new();
        self.views.stale = Stale::ALL;
    }

    /// Something happened that can change the scheduler's answer, whatever it was.
    pub(crate) fn wake(&mut self) {
        self.grant.bytes = 0;
        self.due = true;
        self.views.stale.all = true;
    }

    /// Subflows changed in a way that gives no reason to ask the scheduler again.
    pub(crate) fn on_subflows_changed(&mut self) {
        self.grant.bytes = 0;
        self.views.stale.all = true;
    }

    /// `subflow` took in an acknowledgement; the others are as they were.
    pub(crate) fn on_acked(&mut self, subflow: SubflowId) {
        self.grant.bytes = 0;
        self.due = true;
        self.views.stale.acked.insert(subflow);
    }

    /// Pacing lets `subflow` send again.
    pub(crate) fn on_released(&mut self, subflow: SubflowId) {
        self.grant.bytes = 0;
        self.due = true;
        self.views.stale.sent.insert(subflow);
    }

    /// The connection's own queue or window changed; the subflows are as they were.
    pub(crate) fn on_data(&mut self) {
        self.grant.bytes = 0;
        self.due = true;
    }

    /// A segment was sent on `subflow`.
    pub(crate) fn on_sent(&mut self, subflow: SubflowId) {
        self.views.stale.sent.insert(subflow);
    }

    /// Payload bytes of the next full segment, as the last decision had it.
    pub(crate) const fn segment_size(&self) -> u64 {
        self.views.segment_size()
    }

    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }

    /// Lends the scheduler and a view of the connection to `f`. The subflows' views are those of
    /// the last [`Scheduling::refresh_views`].
    pub(crate) fn with_view<R>(
        &mut self,
        seen: Seen<'_>,
        now: Time,
        f: impl FnOnce(&mut Deciding<'_>, &View<'_>) -> R,
    ) -> R {
        let (mss, tsq) = (self.views.segment_size() as u32, seen.paths.holds_back());
        let reinject =
            seen.data.queue.next_reinjection().map(|next| seen.paths.beside_silence(next));
        let DataLevel { queue, window, .. } = seen.data;
        let Scheduling { scheduler, warm_up, views, app_blocked, started, .. } = self;
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
                sndbuf_free: seen.paths.spec.config.sndbuf.saturating_sub(queue.occupied()),
                sndbuf: seen.paths.spec.config.sndbuf,
            },
            subflows: &views.list,
            queue: &*queue,
        };
        f(&mut Deciding { scheduler: &mut **scheduler, warm_up }, &view)
    }

    /// Tells the scheduler of an event.
    #[inline(never)]
    pub(crate) fn notify(
        &mut self,
        ctx: &Context<'_>,
        data: &DataLevel,
        paths: &mut Paths,
        notice: Notice,
    ) {
        if self.warm_up.is_none() {
            self.refresh_views(data, paths, ctx.now);
            let seen = Seen { data, paths };
            self.with_view(seen, ctx.now, |deciding, view| {
                deciding.scheduler.on_notice(view, notice);
            });
        }
    }

    /// Lets segments go to the subflows in strict turn (`on`), or hands over to `fresh`.
    pub(crate) fn set_warm_up(&mut self, on: bool, fresh: impl FnOnce() -> Box<dyn Scheduler>) {
        self.warm_up = on.then(WarmUp::default);
        if !on {
            self.scheduler = fresh();
            self.needs = self.scheduler.needs();
        }
        self.wake();
    }

    /// Asks the scheduler until it wants something sent, or has nothing to say.
    pub(crate) fn decide(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        paths: &mut Paths,
    ) -> Todo {
        while self.due {
            self.refresh_views(data, paths, ctx.now);
            debug_assert!(self.views_are_fresh(Seen { data, paths }));
            if self.views.list.is_empty() {
                self.due = false;
                break;
            }
            self.withdraw_plan(ctx.now, data, paths);
            self.decisions += 1;
            let seen = Seen { data, paths };
            if self.is_full(ctx, seen) {
                #[cfg(debug_assertions)]
                self.confirm(ctx, seen, |it| matches!(it, Decision::Wait { on: None, .. }));
                self.due = false;
                let block =
                    if self.any_alive() { Block::CongestionWindow } else { Block::NoSubflow };
                self.note_block(ctx, Some(block));
                break;
            }
            if paths.spec.config.kernel_rules.data_timer && data.queue.unsent() > 0 {
                paths.note_data_timeout(data, ctx.now);
            }
            let explained = ctx.log.detail == Detail::Everything;
            let decision = self.ask(ctx, Seen { data, paths }, explained);
            self.apply_effects(ctx, paths);
            if explained {
                self.tell_decision(ctx, Seen { data, paths }, decision);
            }
            match decision {
                Decision::Send { subflow, what, grant, reason } => {
                    self.note_block(ctx, None);
                    if what == (What::New { offset: 0 }) {
                        // With small queues another subflow becomes free as time passes: then the
                        // answer for the next segment may be another.
                        let further = if paths.spec.config.tsq { 0 } else { grant };
                        let bytes = further.saturating_sub(self.views.segment_size());
                        self.grant = Grant { subflow, bytes, reason };
                    }
                    return Todo::Send(decision);
                }
                Decision::Assign { .. } => self.take_plan(ctx, data, paths),
                Decision::Wait { on, reason } => {
                    self.on_wait(ctx, Seen { data, paths }, reason);
                    let window_closed = reason == Reason::SendWindow;
                    if window_closed {
                        self.notify(ctx, data, paths, Notice::WindowLimited);
                    }
                    return Todo::Wait { on, window_closed };
                }
                Decision::Idle => self.on_idle(ctx, data, paths),
            }
        }
        Todo::Nothing
    }

    /// Takes back what was assigned ahead if a subflow has recovered from a timeout or lost its rank since:
    /// it was planned for others.
    fn withdraw_plan(&mut self, now: Time, data: &mut DataLevel, paths: &mut Paths) {
        if data.queue.has_plan()
            && !paths.spec.config.kernel_rules.keep_data
            && self.candidates(Seen { data, paths }, now) != self.assigned_among
        {
            data.queue.unassign_all();
            self.views.stale.all = true;
            self.refresh_views(data, paths, now);
        }
    }

    /// Whether any subflow that carries data is not silent.
    fn any_alive(&self) -> bool {
        self.views.list.iter().any(SubflowView::alive)
    }

    #[inline(never)]
    fn take_plan(&mut self, ctx: &Context<'_>, data: &mut DataLevel, paths: &Paths) {
        self.assigned_among = self.candidates(Seen { data, paths }, ctx.now);
        let touched = data.queue.assign_all(&ctx.outcome.plan);
        self.views.stale.sent.0 |= touched.0;
        // A plan that assigns nothing would be asked for for ever.
        self.due = !touched.is_empty();
    }

    fn on_wait(&mut self, ctx: &mut Context<'_>, seen: Seen<'_>, reason: Reason) {
        self.due = false;
        let block = match reason {
            Reason::SendWindow => Block::ReceiveWindow,
            _ if !self.any_alive() => Block::NoSubflow,
            _ if self.usable(seen).is_empty() => Block::CongestionWindow,
            _ => Block::Scheduler,
        };
        self.note_block(ctx, Some(block));
    }

    #[inline(never)]
    fn on_idle(&mut self, ctx: &mut Context<'_>, data: &DataLevel, paths: &mut Paths) {
        self.due = false;
        let stalled = self.app_blocked && !self.usable(Seen { data, paths }).is_empty();
        self.note_block(ctx, stalled.then_some(Block::SendBuffer));
        if stalled {
            self.notify(ctx, data, paths, Notice::WindowLimited);
        }
    }

    /// The next full segment of what was granted: what the scheduler would say again. Whoever listens
    /// to decisions hears it say so.
    #[inline(always)]
    pub(crate) fn take_granted(
        &mut self,
        ctx: &mut Context<'_>,
        data: &DataLevel,
        paths: &mut Paths,
    ) -> Option<Decision> {
        let Grant { subflow, bytes, reason } = self.grant;
        let grant = self.views.segment_size();
        if bytes < grant {
            return None;
        }
        let takes = |it: &Subflow| it.cwnd() >= it.tx.inflight() + grant && !paths.held_back(it);
        let same = ctx.log.detail != Detail::Everything
            && self.next_segment_size(Seen { data, paths }) == grant
            && data.queue.unsent() >= grant
            && data.queue.nxt() + grant <= data.window.end()
            && !data.queue.has_plan()
            && data.queue.next_reinjection().is_none()
            && paths.subflows.get(subflow.index()).is_some_and(takes);
        if !same {
            return None;
        }
        self.grant.bytes -= grant;
        self.decisions += 1;
        let decision = Decision::Send { subflow, what: What::New { offset: 0 }, grant, reason };
        #[cfg(debug_assertions)]
        {
            let alike = |it: Decision| match it {
                Decision::Send { subflow, what, reason, .. } => Some((subflow, what, reason)),
                _ => None,
            };
            self.refresh_views(data, paths, ctx.now);
            let seen = Seen { data, paths };
            self.confirm(ctx, seen, |it| alike(it) == alike(decision));
        }
        Some(decision)
    }

    /// Takes a full segment of what was granted to `subflow`. Returns false if it was granted no more.
    #[inline(never)]
    pub(crate) fn take_granted_to(
        &mut self,
        ctx: &mut Context<'_>,
        data: &DataLevel,
        paths: &mut Paths,
        subflow: SubflowId,
    ) -> bool {
        self.grant.subflow == subflow && self.take_granted(ctx, data, paths).is_some()
    }

    pub(crate) fn ask(
        &mut self,
        ctx: &mut Context<'_>,
        seen: Seen<'_>,
        explained: bool,
    ) -> Decision {
        let (now, number) = (ctx.now, self.decisions);
        let outcome = &mut ctx.outcome;
        self.views.unseen = false;
        self.with_view(seen, now, |deciding, view| {
            outcome.clear();
            (outcome.explain, outcome.number) = (explained, number);
            match deciding.warm_up {
                Some(turns) => turns.schedule(view),
                None => deciding.scheduler.schedule(view, outcome),
            }
        })
    }

    /// A hash of what the scheduler remembers.
    #[cfg(debug_assertions)]
    pub(crate) fn scheduler_state(&self) -> u64 {
        let mut hash = 0_u64;
        let mut fold = |it: u64| hash = (hash ^ it).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
        self.scheduler.save_state(&mut |name, value| {
            name.bytes().for_each(|it| fold(u64::from(it)));
            fold(value.to_bits());
        });
        hash
    }

    /// Asks what need not be asked. The answer must be what was said in its place, and to be asked must
    /// change nothing: a build without these assertions does not ask.
    #[cfg(debug_assertions)]
    pub(crate) fn confirm(
        &mut self,
        ctx: &mut Context<'_>,
        seen: Seen<'_>,
        wanted: impl Fn(Decision) -> bool,
    ) {
        // Some schedulers put the names of what they remember together, which allocates.
        let before = ctx.checked.then(|| self.scheduler_state());
        let decision = self.ask(ctx, seen, false);
        assert!(wanted(decision), "{decision:?} is not what was said in its place");
        let after = ctx.checked.then(|| self.scheduler_state());
        assert_eq!(after, before, "to be asked changed the scheduler");
    }

    pub(crate) fn candidates(&mut self, seen: Seen<'_>, now: Time) -> SubflowSet {
        self.with_view(seen, now, |_, view| view.candidates())
    }

    pub(crate) fn usable(&self, seen: Seen<'_>) -> SubflowSet {
        let len = seen.data.queue.unsent().clamp(1, self.views.segment_size().max(1));
        let tsq = seen.paths.holds_back();
        self.views.list.iter().filter(|s| s.usable(len, tsq)).map(|s| s.id).collect()
    }

    /// Whether any subflow can take the next segment.
    pub(crate) fn takes_more(&self, seen: Seen<'_>) -> bool {
        let len = seen.data.queue.unsent().min(self.views.segment_size());
        let tsq = seen.paths.holds_back();
        self.views.list.iter().any(|it| it.usable(len, tsq))
    }

    /// Whether the answer is known without a question: there is new data and nothing else, and no
    /// subflow can take a segment of it. Whoever listens to decisions hears the scheduler itself.
    pub(crate) fn is_full(&self, ctx: &Context<'_>, seen: Seen<'_>) -> bool {
        let known = match self.needs.when_full {
            WhenFull::Never => true,
            WhenFull::Anew => !self.views.unseen,
            WhenFull::Always => false,
        };
        known
            && self.warm_up.is_none()
            && ctx.log.detail != Detail::Everything
            && seen.data.queue.unsent() > 0
            && seen.data.queue.next_reinjection().is_none()
            && !self.takes_more(seen)
    }

    pub(crate) fn note_block(&mut self, ctx: &mut Context<'_>, block: Option<Block>) {
        let before = core::mem::replace(&mut self.block, block);
        // Full windows come and go with every acknowledgement, and no measure reads them.
        let wanted = ctx.log.detail == Detail::Everything
            || [before, block].iter().flatten().any(|cause| cause.is_measured());
        if before != block && wanted {
            ctx.emit(Event::Blocked(block));
        }
    }

    pub(crate) fn apply_effects(&mut self, ctx: &mut Context<'_>, paths: &mut Paths) {
        for at in 0..ctx.outcome.effects.len() {
            let effect = ctx.outcome.effects[at];
            self.views.stale = Stale::ALL;
            ctx.emit(Event::Effect(effect));
            match effect {
                Effect::Penalise { subflow, cwnd, ssthresh } => {
                    let Some(subflow) = paths.subflows.get_mut(subflow.index()) else {
                        continue;
                    };
                    subflow.cc.penalise(cwnd, ssthresh);
                    let (id, cwnd) = (subflow.id, subflow.cwnd());
                    let cause = WindowCause::Effect;
                    ctx.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
                }
                Effect::Cap { subflow, bytes } => {
                    if let Some(subflow) = paths.subflows.get_mut(subflow.index()) {
                        subflow.status.cap = bytes.unwrap_or(u64::MAX);
                    }
                }
            }
        }
    }

    /// Whether Nagle's algorithm holds back `range`, the next that `subflow` was given.
    pub(crate) fn waits_to_grow(
        &self,
        config: &Config,
        data: &DataLevel,
        subflow: &Subflow,
        range: DataRange,
    ) -> bool {
        config.kernel_rules.nagle
            && range.len() < self.segment_size()
            && data.queue.short_end(subflow.id) > subflow.tx.una()
            && data.queue.assigned(subflow.id) == range.len()
    }

    /// The next data that was assigned ahead to a subflow which has room now, and the subflow's index.
    pub(crate) fn next_assigned(
        &mut self,
        now: Time,
        data: &mut DataLevel,
        paths: &mut Paths,
    ) -> Option<(usize, DataRange)> {
        let mss = self.next_segment_size(Seen { data, paths });
        for index in 0..paths.subflows.len() {
            let id = paths.subflows[index].id;
            let Some(range) = data.queue.next_assigned(id, mss) else { continue };
            if paths.spec.config.tsq {
                paths.subflows[index].drain_host_queue(now);
            }
            let subflow = &paths.subflows[index];
            let room = subflow.tx.inflight() + range.len() <= subflow.cwnd();
            // Linux leaves data with its subflow whatever happens there.
            let stays = paths.spec.config.kernel_rules.keep_data;
            let well = stays || !subflow.status.pf && data.ca(subflow) != CaState::Loss;
            let live = subflow.state.sends_data() && subflow.status.joined && well;
            let held = paths.held_back(subflow)
                || self.waits_to_grow(&paths.spec.config, data, subflow, range);
            if live && room && !held && range.end <= data.window.end() {
                data.queue.take_assigned(range, id);
                return Some((index, range));
            }
        }
        None
    }

    /// Takes the data of a decision out of the queue.
    pub(crate) fn take_order(&mut self, data: &mut DataLevel, decision: Decision) -> Option<Order> {
        let Decision::Send { subflow, what, .. } = decision else { return None };
        let mss = self.segment_size();
        let (range, carry) = match what {
            What::New { offset } => (data.queue.take_new(offset, mss, subflow)?, Carry::New),
            What::Reinject => {
                let next = data.queue.next_reinjection()?;
                if next.carried.contains(subflow) {
                    data.queue.forget_carried(next.range);
                }
                (next.range, Carry::Reinjection)
            }
            What::Redundant(range) => (data.still_needed(range, mss)?, Carry::Redundant),
            What::OppRetx(range) => match self.take_waiting(data, range, subflow) {
                Some(range) => {
                    return Some(Order { subflow, range, carry: Carry::New, whole: false });
                }
                None => (data.still_needed(range, mss)?, Carry::Opportunistic),
            },
        };
        if core::mem::take(&mut self.small_segments) {
            self.wake();
        }
        if carry != Carry::New {
            data.queue.mark_carried(range, subflow);
        }
        if matches!(carry, Carry::Reinjection | Carry::Opportunistic) {
            data.queue.note_again(range);
        }
        Some(Order { subflow, range, carry, whole: carry == Carry::New })
    }

    /// A full segment goes out for the first time. Returns its sequence number.
    pub(crate) fn note_sent(
        &mut self,
        ctx: &mut Context<'_>,
        paths: &mut Paths,
        index: usize,
        data: DataRange,
    ) -> Ssn {
        let (subflow, mss) = (SubflowId(index as u8), paths.mss());
        ctx.emit(Event::DataSent { subflow, data, carry: Carry::New });
        self.on_sent(subflow);
        paths.subflows[index].on_sent(ctx.now, data.start, data.len() as u32, false, mss)
    }

    /// Takes as much of what follows `first` as the subflow at `index` was granted, up to a superpacket, and
    /// returns all of it.
    pub(crate) fn grow(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        paths: &mut Paths,
        index: usize,
        first: DataRange,
    ) -> DataRange {
        let (id, cut) = (SubflowId(index as u8), first.len());
        let most =
            u64::from(paths.spec.config.superpacket).min(data.queue.in_one_piece(first.start));
        let mut range = first;
        while range.len() + cut <= most
            && data.queue.first_unsent(cut) == Some(DataRange::with_len(range.end, cut))
            && self.take_granted_to(ctx, data, paths, id)
            && let Some(next) = data.queue.take_new(0, cut, id)
        {
            self.note_sent(ctx, paths, index, next);
            range.end = next.end;
        }
        range
    }

    /// The part of `range` that waited in the queue of another subflow and is `subflow`'s now.
    #[inline(never)]
    pub(crate) fn take_waiting(
        &mut self,
        data: &mut DataLevel,
        range: DataRange,
        subflow: SubflowId,
    ) -> Option<DataRange> {
        if range.end > data.window.end() {
            return None;
        }
        let (range, owner) = data.queue.take_waiting(range, subflow)?;
        self.on_sent(owner);
        Some(range)
    }
}

/// What [`Scheduling::decide`] leaves to do.
pub(crate) enum Todo {
    /// Carry out this.
    Send(Decision),
    /// Wait, for a subflow perhaps, or because the peer's window is closed.
    Wait { on: Option<SubflowId>, window_closed: bool },
    /// Nothing now.
    Nothing,
}

impl WarmUp {
    pub(crate) fn schedule(&mut self, view: &View<'_>) -> Decision {
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
