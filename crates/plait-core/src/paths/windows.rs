//! Congestion windows: effects of the scheduler, idle and unused windows, and data in the host's
//! queue.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use plait_base::{SubflowId, SubflowSet, Time};

impl Paths {
    /// Reduces the window of a subflow as the scheduler requests it.
    pub(crate) fn penalise(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        cwnd: u64,
        ssthresh: Option<u64>,
    ) {
        if let Some(subflow) = self.subflows.get_mut(id.index()) {
            subflow.window().penalise(ctx, cwnd, ssthresh);
        }
    }

    /// Limits the bytes in flight of a subflow, or removes the limit.
    pub(crate) fn cap(&mut self, id: SubflowId, bytes: Option<u64>) {
        if let Some(subflow) = self.subflows.get_mut(id.index()) {
            subflow.window().cap(bytes);
        }
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
