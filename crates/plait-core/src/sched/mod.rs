//! The scheduler's part of a connection: it gives the scheduler views and takes decisions and
//! effects.

mod asking;
mod explain;
pub(crate) mod orders;
mod views;

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::event::{Block, Event};
use crate::paths::Paths;
use crate::prices::Prices;
use crate::sched::views::{Stale, Views};
use crate::tcp::ack_processing::AckEffects;
use crate::tcp::remembered::Remembered;
use crate::timers::WaitCause;
use alloc::boxed::Box;
use alloc::vec::Vec;
use plait_base::{DataRange, SubflowId, SubflowSet, Time};
use plait_sched::{Decision, Needs, Notice, Reason, Scheduler, Unacked, What};

#[derive(Debug)]
pub(crate) struct Scheduling {
    scheduler: Box<dyn Scheduler>,
    /// When the connection started.
    started: Time,
    needs: Needs,
    /// Decisions so far.
    decisions: u64,
    views: Views,
    /// The prices of its paths.
    prices: Prices,
    /// New data that the last decision allows beyond its own segment.
    grant: Grant,
    /// The candidates of the last assignment.
    assigned_among: SubflowSet,
    /// The subflows that rest because of their prices.
    resting: SubflowSet,
    /// Something happened that can change the scheduler's decision.
    due: bool,
    /// The application waits until it can write more.
    app_blocked: bool,
    /// The window stayed too small for a full segment for so long that a smaller one may be sent.
    small_segments: bool,
    block: Option<Block>,
    /// The last decision if it was a wait.
    last_wait: Option<Wait>,
}

/// Most plans of a scheduler at one instant: more than segments fit a send buffer. A scheduler that moves the same segments
/// back and forth would otherwise never end. The data goes where it is then.
const MOST_PLANS: u32 = 1 << 16;

/// A decision to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wait {
    /// The subflow that the scheduler waits for.
    on: Option<SubflowId>,
    reason: Reason,
    /// The subflows with room.
    usable: SubflowSet,
}

/// The inputs of a decision: the settings, the data level and the subflows.
#[derive(Clone, Copy)]
pub(crate) struct SchedulerInputs<'a> {
    pub(crate) data: &'a DataLevel,
    pub(crate) paths: &'a Paths,
}

/// New data that a subflow may send without another call of the scheduler, until something happens.
#[derive(Clone, Copy, Debug)]
struct Grant {
    subflow: SubflowId,
    bytes: u64,
    /// Only checked builds read it.
    #[cfg_attr(not(debug_assertions), expect(dead_code))]
    reason: Reason,
}

impl Grant {
    const NOTHING: Grant = Grant { subflow: SubflowId(0), bytes: 0, reason: Reason::OnlySubflow };
}

impl Scheduling {
    pub(crate) fn new(scheduler: Box<dyn Scheduler>, started: Time, prices: Prices) -> Scheduling {
        Scheduling {
            needs: scheduler.needs(),
            scheduler,
            started,
            decisions: 0,
            views: Views::new(),
            prices,
            grant: Grant::NOTHING,
            assigned_among: SubflowSet::EMPTY,
            resting: SubflowSet::EMPTY,
            due: false,
            app_blocked: false,
            small_segments: false,
            block: None,
            last_wait: None,
        }
    }

    /// Frees the memory of views. They are built again before the next decision.
    pub(crate) fn give_back(&mut self) {
        self.views.list = Vec::new();
        self.views.stale = Stale::ALL;
    }

    /// Notes that something may have changed the scheduler's decision and every view.
    pub(crate) fn wake(&mut self) {
        self.grant.bytes = 0;
        self.due = true;
        self.views.stale.all = true;
    }

    /// Notes that subflows changed, but not in a way that requires another decision.
    pub(crate) fn on_subflows_changed(&mut self) {
        self.grant.bytes = 0;
        self.views.stale.all = true;
    }

    /// Notes that `subflow` processed an acknowledgement and that the other subflows did not change.
    pub(crate) fn on_acked(
        &mut self,
        ctx: &Context<'_>,
        data: &DataLevel,
        paths: &mut Paths,
        subflow: SubflowId,
        effects: &AckEffects,
    ) {
        self.grant.bytes = 0;
        self.due = true;
        self.views.stale.acked.insert(subflow);
        if self.needs.acks && effects.delivered > 0 {
            self.tell_of_ack(ctx, data, paths, subflow, effects);
        }
    }

    /// Notes that the windows of `subflows` may have changed, but in no way that requires another
    /// decision.
    pub(crate) fn on_windows_changed(&mut self, subflows: SubflowSet) {
        self.views.stale.acked.0 |= subflows.0;
    }

    /// Notes that pacing lets `subflow` send again.
    pub(crate) fn on_released(&mut self, subflow: SubflowId) {
        self.grant.bytes = 0;
        self.due = true;
        self.views.stale.sent.insert(subflow);
    }

    /// Notes that the connection's queue or window changed and that the subflows did not.
    pub(crate) fn on_data(&mut self) {
        self.grant.bytes = 0;
        self.due = true;
    }

    /// Notes that the application has written `written` bytes, and whether it waits to write more.
    pub(crate) fn on_write(&mut self, written: u64, blocked: bool) {
        self.app_blocked = blocked;
        if written > 0 {
            self.on_data();
        }
    }

    /// Notes that the application writes no more.
    pub(crate) fn on_finish(&mut self) {
        self.app_blocked = false;
        self.wake();
    }

    /// Returns true if the application waits until it can write more.
    pub(crate) const fn is_app_blocked(&self) -> bool {
        self.app_blocked
    }

    /// Notes that a segment was sent on `subflow`.
    pub(crate) fn on_sent(&mut self, subflow: SubflowId) {
        self.views.stale.sent.insert(subflow);
    }

    /// Returns the payload bytes of the next full segment, as of the last decision.
    pub(crate) const fn segment_size(&self) -> u64 {
        self.views.segment_size()
    }

    /// Returns true if the scheduler must be called.
    pub(crate) const fn is_due(&self) -> bool {
        self.due
    }

    /// Notifies the scheduler of an event.
    #[inline(never)]
    pub(crate) fn notify(
        &mut self,
        ctx: &Context<'_>,
        data: &DataLevel,
        paths: &mut Paths,
        notice: Notice,
    ) {
        self.refresh_views(data, paths, ctx.now);
        let seen = SchedulerInputs { data, paths };
        self.with_view(seen, ctx.now, |scheduler, view| {
            scheduler.on_notice(view, notice);
        });
    }

    /// Tells the scheduler of an acknowledgement, and of the first segments that count as lost.
    #[inline(never)]
    fn tell_of_ack(
        &mut self,
        ctx: &Context<'_>,
        data: &DataLevel,
        paths: &mut Paths,
        subflow: SubflowId,
        effects: &AckEffects,
    ) {
        let AckEffects { delivered: bytes, rtt, .. } = *effects;
        let sender = paths.subflow(subflow).sender();
        let bandwidth = sender.bandwidth();
        let first = sender.tx.first_data(2 * self.segment_size());
        let first_unacked = first.map(|(dsn, pair_at)| Unacked { dsn, pair_at });
        let acked = Notice::Acked { subflow, bytes, rtt, bandwidth, first_unacked };
        self.notify(ctx, data, paths, acked);
        let mut lost = [None; Notice::MAX_LOST];
        let waiting = paths.subflow(subflow).sender().tx.lost_data();
        lost.iter_mut().zip(waiting).for_each(|(place, range)| *place = Some(range));
        for range in lost.into_iter().flatten() {
            self.notify(ctx, data, paths, Notice::Lost { subflow, range });
        }
    }

    /// Returns the subflows whose data needs no reinjection when `failed` carries it too.
    pub(crate) fn trusted_with_copies(&self, paths: &Paths, failed: SubflowId) -> SubflowSet {
        if self.needs.reinjected_copies {
            return SubflowSet::EMPTY;
        }
        let mut others = paths.subflows().live();
        others.remove(failed);
        others
    }

    /// Replaces the scheduler.
    pub(crate) fn replace(&mut self, scheduler: Box<dyn Scheduler>) {
        self.needs = scheduler.needs();
        self.scheduler = scheduler;
        self.wake();
    }

    /// Calls the scheduler until it sends data or waits, or until nothing is due.
    pub(crate) fn decide(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        paths: &mut Paths,
    ) -> NextStep {
        let mut plans = 0;
        while self.due {
            self.refresh_views(data, paths, ctx.now);
            debug_assert!(self.views_are_fresh(SchedulerInputs { data, paths }));
            if self.views.list.is_empty() {
                self.due = false;
                break;
            }
            if data.queue().has_plan() {
                self.withdraw_plan(ctx.now, data, paths);
            }
            self.decisions += 1;
            let seen = SchedulerInputs { data, paths };
            if self.is_full(ctx, seen) {
                #[cfg(debug_assertions)]
                self.confirm(ctx, seen, |it| matches!(it, Decision::Wait { on: None, .. }));
                self.due = false;
                let block =
                    if self.any_alive() { Block::CongestionWindow } else { Block::NoSubflow };
                self.note_block(ctx, Some(block));
                break;
            }
            if paths.spec.config.kernel_rules.data_timer && data.queue().unsent() > 0 {
                paths.subflows().note_data_timeout(data, ctx.now);
            }
            let explained = ctx.has_every_detail();
            let decision = self.ask(ctx, SchedulerInputs { data, paths }, explained);
            self.apply_effects(ctx, paths);
            if explained {
                self.tell_decision(ctx, SchedulerInputs { data, paths }, decision);
            }
            match decision {
                Decision::Send { subflow, what, grant, reason } => {
                    self.note_block(ctx, None);
                    if what == (What::New { offset: 0 }) {
                        // With TSQ another subflow becomes free as time passes, and may be the
                        // better choice for the next segment.
                        let further = if paths.spec.config.tsq { 0 } else { grant };
                        let bytes = further.saturating_sub(self.views.segment_size());
                        self.grant = Grant { subflow, bytes, reason };
                    }
                    return NextStep::Send(decision);
                }
                Decision::Assign { .. } => {
                    self.take_plan(ctx, data, paths);
                    plans += 1;
                    self.due &= plans < MOST_PLANS;
                }
                Decision::Wait { on, reason } => {
                    self.on_wait(ctx, SchedulerInputs { data, paths }, reason);
                    let window_closed = reason == Reason::SendWindow;
                    if window_closed {
                        self.notify(ctx, data, paths, Notice::WindowLimited);
                    }
                    let spent = reason == Reason::Quota
                        && self.is_over_quota(SchedulerInputs { data, paths });
                    return NextStep::Wait { on, why: WaitCause { window_closed, spent } };
                }
                Decision::Idle => self.on_idle(ctx, data, paths),
            }
        }
        NextStep::Nothing
    }

    /// Returns true if there is data that no path may send, because the quotas of all of them are used up. A
    /// server does not know what other paths its client has.
    #[inline(never)]
    pub(crate) fn is_over_quota(&self, seen: SchedulerInputs<'_>) -> bool {
        let (queue, segment) = (seen.data.queue(), self.segment_size());
        let spent = |path| self.prices.left(path).is_some_and(|left| left < segment);
        let mut open = seen.paths.subflows().open_addresses();
        let joins = seen.paths.client && !seen.data.sends_plain();
        !self.prices.is_empty()
            && queue.unsent() > 0
            && seen.paths.subflows().has_subflow()
            && queue.una() == queue.nxt()
            && !queue.has_plan()
            && open.all(|it| spent(it.path()))
            && (!joins || seen.paths.spec.paths.iter().all(|it| spent(it.path)))
    }

    #[inline(never)]
    fn on_wait(&mut self, ctx: &mut Context<'_>, seen: SchedulerInputs<'_>, reason: Reason) {
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
        let stalled = self.app_blocked && !self.usable(SchedulerInputs { data, paths }).is_empty();
        self.note_block(ctx, stalled.then_some(Block::SendBuffer));
        if stalled {
            self.notify(ctx, data, paths, Notice::WindowLimited);
        }
    }

    /// Lets the next segment be as small as the window, because a closed window is probed.
    pub(crate) fn on_window_probe(&mut self) {
        self.small_segments = true;
        self.wake();
    }

    /// Notes a change in the set of live subflows; `began` is new.
    pub(crate) fn on_set_changed(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        paths: &mut Paths,
        began: Option<SubflowId>,
    ) {
        if let Some(id) = began {
            self.resting.remove(id);
            ctx.price(&mut self.prices, paths.subflow(id).address().path());
        }
        self.wake();
        let live = paths.subflows().live();
        self.notify(ctx, data, paths, Notice::SubflowsChanged { live, began });
        if let Some(subflow) = began
            && let Some(notice) = Remembered(paths.subflow(subflow)).notice(ctx)
        {
            self.notify(ctx, data, paths, notice);
        }
    }

    /// Processes a DATA_ACK of the data `acked`.
    #[inline]
    pub(crate) fn on_data_acked(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        paths: &mut Paths,
        acked: DataRange,
    ) {
        let DataRange { start: old, end: new } = acked;
        ctx.emit(Event::DataAcked { old, new });
        if self.needs.data_acks {
            let edge = data.queue().last_edge();
            self.notify(ctx, data, paths, Notice::DataAck { old, new, edge });
        }
    }
}

/// The result of [`Scheduling::decide`].
pub(crate) enum NextStep {
    /// Send this.
    Send(Decision),
    /// Wait, perhaps for a subflow.
    Wait { on: Option<SubflowId>, why: WaitCause },
    /// Do nothing now.
    Nothing,
}
