//! Congestion windows: effects of the scheduler, idle and unused windows, and data in the host's
//! queue.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use plait_base::{SubflowId, SubflowSet, Time};
use plait_sched::Effect;

impl Paths {
    /// Applies an effect of the scheduler to the window of a subflow.
    pub(crate) fn apply(&mut self, ctx: &mut Context<'_>, effect: Effect) {
        let (Effect::Penalise { subflow, .. } | Effect::Cap { subflow, .. }) = effect;
        if let Some(subflow) = self.subflows.get_mut(subflow.index()) {
            subflow.window().apply(ctx, effect);
        }
    }

    /// Notes the subflows that rest because of their prices.
    #[cold]
    #[inline(never)]
    pub(crate) fn let_rest(&mut self, resting: SubflowSet) {
        self.subflows.let_rest(resting);
    }

    /// Reduces the windows of idle subflows, as
    /// [`idle_restart`](crate::WindowRules::idle_restart) requires. Returns the idle subflows.
    #[inline(never)]
    pub(crate) fn validate_idle_windows(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
    ) -> SubflowSet {
        let mode = self.spec.config.window.idle_restart;
        let idle = self.subflows.iter_mut().filter_map(|subflow| {
            subflow.window().validate_idle(ctx, data, mode).then_some(subflow.id())
        });
        idle.collect()
    }

    /// Reduces the window of the subflow `id` if it was not filled for one RTO. Keeps it if
    /// the application is `blocked` by a full send buffer (Linux: `tcp_cwnd_validate`). Returns the
    /// subflow if it was reduced.
    #[cold]
    pub(crate) fn validate_window(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        id: SubflowId,
        blocked: bool,
    ) -> SubflowSet {
        let subflow = &mut self.subflows[id];
        let reduced = subflow.window().validate(ctx, data, blocked);
        if reduced { SubflowSet::one(subflow.id()) } else { SubflowSet::EMPTY }
    }

    /// Removes segments that have left the host from the queue of the subflow `id`, if small
    /// queues are enabled.
    #[inline]
    pub(crate) fn drain_host_queue(&mut self, now: Time, id: SubflowId) {
        if self.spec.config.tsq {
            self.subflows[id].drain_host_queue(now);
        }
    }

    /// Removes segments that have left the host from the queues of all subflows.
    pub(crate) fn drain_host_queues(&mut self, now: Time) {
        self.subflows.ids().for_each(|id| self.drain_host_queue(now, id));
    }

    /// Resets every window to its initial value; thresholds stay.
    #[cfg(feature = "laboratory")]
    pub(crate) fn reset_windows(&mut self, ctx: &mut Context<'_>) {
        let initial = u64::from(self.spec.config.window.initial) * self.mss();
        for subflow in self.subflows.iter_mut() {
            subflow.window().reset(ctx, initial);
        }
    }
}
