//! Congestion windows: effects of the scheduler, idle and unused windows, and data in the host's
//! queue.

use crate::context::Context;
use crate::data::level::DataLevel;
use crate::event::{Event, WindowCause};
use crate::paths::Paths;
use crate::tcp::subflow::Subflow;
use plait_base::{SubflowId, SubflowSet, Time};
use plait_cc::IdleReset;
use plait_sched::CaState;

impl Subflow {
    /// Emits an event with the congestion window.
    pub(super) fn report_window(&self, ctx: &mut Context<'_>, cause: WindowCause) {
        let (cwnd, ssthresh) = (self.sender.cwnd(), self.sender.cc.ssthresh());
        ctx.emit(Event::Window { subflow: self.id(), cwnd, ssthresh, cause });
    }

    /// Notes a reduction of an idle or unused window, and emits an event.
    fn on_reduced(&mut self, ctx: &mut Context<'_>, IdleReset { before, after }: IdleReset) {
        self.sender.limits.remember_window(before);
        ctx.emit(Event::IdleReset { subflow: self.id(), before, after });
    }
}

impl Paths {
    /// Reduces the window of a subflow as the scheduler requests it.
    pub(crate) fn penalise(
        &mut self,
        ctx: &mut Context<'_>,
        id: SubflowId,
        cwnd: u64,
        ssthresh: Option<u64>,
    ) {
        let Some(subflow) = self.subflows.get_mut(id.index()) else { return };
        subflow.sender.cc.penalise(cwnd, ssthresh);
        let (cwnd, cause) = (subflow.sender.cwnd(), WindowCause::Effect);
        ctx.emit(Event::Window { subflow: id, cwnd, ssthresh, cause });
    }

    /// Limits the bytes in flight of a subflow, or removes the limit.
    pub(crate) fn cap(&mut self, id: SubflowId, bytes: Option<u64>) {
        if let Some(subflow) = self.subflows.get_mut(id.index()) {
            subflow.sender.limits.set_cap(bytes);
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
        let mut idle = SubflowSet::EMPTY;
        for subflow in self.subflows.iter_mut() {
            let last = subflow.sender.last_send();
            if !subflow.status.joined() || !subflow.is_quiet() || last == Time::ZERO {
                continue;
            }
            idle.insert(subflow.id());
            let rto = subflow.sender.rtt.base_rto();
            if let Some(reset) = subflow.sender.cc.idle(ctx.now, ctx.now.since(last), rto, mode) {
                let unused_cwnd = data.queue.memory().and_then(|it| it.unused_cwnd(subflow.id()));
                if let Some(unused_cwnd) = unused_cwnd {
                    unused_cwnd.restart(ctx.now);
                }
                subflow.on_reduced(ctx, reset);
            }
        }
        idle
    }

    /// Reduces the window of the subflow at `index` if it was not filled for one RTO. Keeps it if
    /// the application is `blocked` by a full send buffer (Linux: `tcp_cwnd_validate`). Returns the
    /// subflow if it was reduced.
    #[cold]
    pub(crate) fn validate_window(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        index: usize,
        blocked: bool,
    ) -> SubflowSet {
        let subflow = &mut self.subflows[index];
        let id = subflow.id();
        let sender = &mut subflow.sender;
        let limited = sender.is_cwnd_limited();
        let (outstanding, rto) = (sender.tx.outstanding(), sender.rtt.rto());
        let unused_cwnd = data.queue.memory().and_then(|it| it.unused_cwnd(id));
        if let Some(used) =
            unused_cwnd.and_then(|it| it.on_sent(ctx.now, outstanding, limited, rto))
            && sender.ca() == CaState::Open
            && !blocked
            && let Some(reset) = sender.cc.reduce_unused(used)
        {
            subflow.on_reduced(ctx, reset);
            return SubflowSet::one(subflow.id());
        }
        SubflowSet::EMPTY
    }

    /// Removes segments that have left the host from the queue of the subflow at `index`, if small
    /// queues are enabled.
    #[inline]
    pub(crate) fn drain_host_queue(&mut self, now: Time, index: usize) {
        if self.spec.config.tsq {
            self.subflows[index].sender.drain_host_queue(now);
        }
    }

    /// Removes segments that have left the host from the queues of all subflows.
    pub(crate) fn drain_host_queues(&mut self, now: Time) {
        (0..self.subflows.len()).for_each(|index| self.drain_host_queue(now, index));
    }

    /// Resets every window to its initial value; thresholds stay.
    #[cfg(feature = "laboratory")]
    pub(crate) fn reset_windows(&mut self, ctx: &mut Context<'_>) {
        let initial = u64::from(self.spec.config.window.initial) * self.mss();
        for subflow in self.subflows.iter_mut() {
            subflow.sender.cc.set_cwnd(initial);
            let ssthresh = subflow.sender.cc.ssthresh();
            let cause = WindowCause::Set;
            ctx.emit(Event::Window { subflow: subflow.id(), cwnd: initial, ssthresh, cause });
        }
    }
}
