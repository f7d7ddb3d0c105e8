//! Calls of the scheduler: the view it gets, its decision, and the checks of the decision.

use crate::context::Context;
use crate::event::{Block, Event};
use crate::paths::Paths;
use crate::sched::views::Stale;
use crate::sched::{SchedulerInputs, Scheduling};
use plait_base::{SubflowSet, Time};
use plait_sched::{ConnectionView, Decision, Scheduler, SubflowView, View, WhenFull};

impl Scheduling {
    /// Calls `f` with the scheduler and a view of the connection. The views of subflows are as of
    /// the last [`Scheduling::refresh_views`].
    pub(crate) fn with_view<R>(
        &mut self,
        seen: SchedulerInputs<'_>,
        now: Time,
        f: impl FnOnce(&mut dyn Scheduler, &View<'_>) -> R,
    ) -> R {
        let (mss, tsq) = (self.views.segment_size() as u32, seen.paths.holds_back());
        let reinject = seen
            .data
            .queue()
            .next_reinjection()
            .map(|next| seen.paths.subflows().beside_silence(next));
        let queue = seen.data.queue();
        let Scheduling { scheduler, views, app_blocked, started, .. } = self;
        // Built in place: copying the fields costs more than the rest of the function.
        let view = View {
            now,
            tsq,
            connection: ConnectionView {
                mss,
                start: *started,
                snd_una: queue.una(),
                snd_nxt: queue.nxt(),
                wnd_end: seen.data.window().end(),
                unsent: queue.unsent(),
                reinject,
                app_blocked: *app_blocked,
                sndbuf_free: queue.size().saturating_sub(queue.occupied()),
                sndbuf: queue.size(),
            },
            subflows: &views.list,
            queue,
        };
        f(&mut **scheduler, &view)
    }

    /// Calls the scheduler. If `explained`, it also reports the numbers that influenced its
    /// decision.
    pub(crate) fn ask(
        &mut self,
        ctx: &mut Context<'_>,
        seen: SchedulerInputs<'_>,
        explained: bool,
    ) -> Decision {
        let (now, number) = (ctx.now, self.decisions);
        let outcome = ctx.outcome();
        self.views.unseen = false;
        self.with_view(seen, now, |scheduler, view| {
            outcome.clear();
            (outcome.explain, outcome.number) = (explained, number);
            scheduler.schedule(view, outcome)
        })
    }

    /// Returns a hash of the scheduler's state.
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

    /// Checks a call that a release build skips. The decision must be the assumed one, and the call
    /// must not change the scheduler's state.
    #[cfg(debug_assertions)]
    pub(crate) fn confirm(
        &mut self,
        ctx: &mut Context<'_>,
        seen: SchedulerInputs<'_>,
        wanted: impl Fn(Decision) -> bool,
    ) {
        // Only in checked builds: some schedulers build the names of their state, which allocates.
        let before = ctx.is_checked().then(|| self.scheduler_state());
        let decision = self.ask(ctx, seen, false);
        assert!(wanted(decision), "{decision:?} is not what was said in its place");
        let after = ctx.is_checked().then(|| self.scheduler_state());
        assert_eq!(after, before, "to be asked changed the scheduler");
    }

    /// Returns the subflows among which a scheduler may choose.
    pub(crate) fn candidates(&mut self, seen: SchedulerInputs<'_>, now: Time) -> SubflowSet {
        self.with_view(seen, now, |_, view| view.candidates())
    }

    /// Returns the subflows that can take the next segment now.
    pub(crate) fn usable(&self, seen: SchedulerInputs<'_>) -> SubflowSet {
        let len = seen.data.queue().unsent().clamp(1, self.views.segment_size().max(1));
        let tsq = seen.paths.holds_back();
        self.views.list.iter().filter(|s| s.usable(len, tsq)).map(|s| s.id).collect()
    }

    /// Returns true if any subflow can take the next segment.
    pub(crate) fn takes_more(&self, seen: SchedulerInputs<'_>) -> bool {
        let len = seen.data.queue().unsent().min(self.views.segment_size());
        let tsq = seen.paths.holds_back();
        self.views.list.iter().any(|it| it.usable(len, tsq))
    }

    /// Returns true if the scheduler would certainly wait: there is only new data, and no subflow
    /// can take a segment of it. If every detail is logged, the scheduler is always called.
    pub(crate) fn is_full(&self, ctx: &Context<'_>, seen: SchedulerInputs<'_>) -> bool {
        let known = match self.needs.when_full {
            WhenFull::Never => true,
            WhenFull::Anew => !self.views.unseen,
            WhenFull::Always => false,
        };
        known
            && !ctx.has_every_detail()
            && seen.data.queue().unsent() > 0
            && seen.data.queue().next_reinjection().is_none()
            && !self.takes_more(seen)
    }

    /// Stores why the connection does not send, and emits an event if the cause is new.
    pub(crate) fn note_block(&mut self, ctx: &mut Context<'_>, block: Option<Block>) {
        let before = core::mem::replace(&mut self.block, block);
        // Full windows come and go with every acknowledgement, and no measure uses them.
        let wanted = ctx.has_every_detail()
            || [before, block].iter().flatten().any(|cause| cause.is_measured());
        if before != block && wanted {
            ctx.emit(Event::Blocked(block));
        }
    }

    /// Applies the effects of a decision to subflows, and notes which of them rest.
    pub(crate) fn apply_effects(&mut self, ctx: &mut Context<'_>, paths: &mut Paths) {
        let resting = ctx.outcome().resting;
        if resting != self.resting {
            self.resting = resting;
            paths.let_rest(resting);
        }
        if !ctx.outcome().effects.is_empty() {
            self.apply_to_subflows(ctx, paths);
        }
    }

    #[inline(never)]
    fn apply_to_subflows(&mut self, ctx: &mut Context<'_>, paths: &mut Paths) {
        for at in 0..ctx.outcome().effects.len() {
            let effect = ctx.outcome().effects[at];
            self.views.stale = Stale::ALL;
            ctx.emit(Event::Effect(effect));
            paths.apply(ctx, effect);
        }
    }

    /// Returns true if any subflow that carries data is alive.
    pub(crate) fn any_alive(&self) -> bool {
        self.views.list.iter().any(SubflowView::alive)
    }
}
