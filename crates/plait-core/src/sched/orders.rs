//! Carries out decisions: takes granted, assigned or chosen data from the send queue.

use crate::config::Config;
use crate::context::Context;
use crate::data::level::DataLevel;
use crate::event::{Carry, Event};
use crate::paths::Paths;
use crate::paths::control::Dispatch;
use crate::sched::{Grant, SchedulerInputs, Scheduling};
use crate::tcp::subflow::Subflow;
use plait_base::{DataRange, SendSsn, SubflowId, Time};
use plait_sched::{CaState, Decision, What};

impl Scheduling {
    /// Takes the next full segment of the grant, for which the scheduler would repeat its decision.
    /// Returns `None` if every detail is logged, so that the scheduler is called.
    #[inline(always)]
    pub(crate) fn take_granted(
        &mut self,
        ctx: &mut Context<'_>,
        data: &DataLevel,
        paths: &mut Paths,
    ) -> Option<SubflowId> {
        let Grant { subflow, bytes, .. } = self.grant;
        let grant = self.views.segment_size();
        if bytes < grant {
            return None;
        }
        let takes = |it: &Subflow| {
            it.sender().cwnd() >= it.sender().tx.inflight() + grant && !paths.held_back(it)
        };
        let same = !ctx.has_every_detail()
            && self.next_segment_size(SchedulerInputs { data, paths }) == grant
            && data.queue().unsent() >= grant
            && data.queue().nxt() + grant <= data.window().end()
            && !data.queue().has_plan()
            && data.queue().next_reinjection().is_none()
            && paths.subflows().get(subflow.index()).is_some_and(takes);
        if !same {
            return None;
        }
        self.grant.bytes -= grant;
        self.decisions += 1;
        #[cfg(debug_assertions)]
        {
            let (to, why) = (subflow, self.grant.reason);
            self.refresh_views(data, paths, ctx.now);
            self.confirm(ctx, SchedulerInputs { data, paths }, |it| {
                matches!(it, Decision::Send { subflow, what: What::New { offset: 0 }, reason, .. }
                    if (subflow, reason) == (to, why))
            });
        }
        Some(subflow)
    }

    /// Takes the data of the next full segment of the grant from the queue.
    #[inline(always)]
    pub(crate) fn granted_order(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        paths: &mut Paths,
    ) -> Option<SendOrder> {
        let subflow = self.take_granted(ctx, data, paths)?;
        self.order_new(data, 0, subflow)
    }

    /// Takes a segment of new data, which begins `offset` bytes into the unsent data, from the queue.
    #[inline(always)]
    fn order_new(
        &mut self,
        data: &mut DataLevel,
        offset: u64,
        subflow: SubflowId,
    ) -> Option<SendOrder> {
        let range = data.take_new(offset, self.segment_size(), subflow)?;
        self.on_order();
        Some(SendOrder { subflow, range, carry: Carry::New, whole: true })
    }

    /// Notes that data was taken. Only one segment may be small.
    fn on_order(&mut self) {
        if core::mem::take(&mut self.small_segments) {
            self.wake();
        }
    }

    /// Takes a full segment of the grant of `subflow`. Returns false if the grant is used up.
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

    /// Returns true if Nagle's algorithm holds back `range`, the next data assigned to `subflow`.
    pub(crate) fn waits_to_grow(
        &self,
        config: &Config,
        data: &DataLevel,
        subflow: &Subflow,
        range: DataRange,
    ) -> bool {
        config.kernel_rules.nagle
            && range.len() < self.segment_size()
            && data.queue().short_end(subflow.id()) > subflow.sender().tx.una()
            && data.queue().assigned(subflow.id()) == range.len()
    }

    /// Returns the next assigned data whose subflow has room now, and the subflow's id.
    pub(crate) fn next_assigned(
        &mut self,
        now: Time,
        data: &mut DataLevel,
        paths: &mut Paths,
    ) -> Option<AssignedData> {
        let mss = self.next_segment_size(SchedulerInputs { data, paths });
        for id in paths.subflows().ids() {
            let Some(range) = data.queue().next_assigned(id, mss) else { continue };
            paths.drain_host_queue(now, id);
            let subflow = paths.subflow(id);
            let room = subflow.sender().tx.inflight() + range.len() <= subflow.sender().cwnd();
            // Linux leaves data on its subflow in any state.
            let stays = paths.spec.config.kernel_rules.keep_data;
            let well =
                stays || !subflow.status().pf() && data.ca(subflow.sender().ca()) != CaState::Loss;
            let live = subflow.state().sends_data() && subflow.status().joined() && well;
            let held = paths.held_back(subflow)
                || self.waits_to_grow(&paths.spec.config, data, subflow, range);
            if live && room && !held && range.end <= data.window().end() {
                data.take_assigned(range, id);
                return Some(AssignedData { id, range });
            }
        }
        None
    }

    /// Takes the data of a decision from the queue.
    pub(crate) fn take_order(
        &mut self,
        data: &mut DataLevel,
        decision: Decision,
    ) -> Option<SendOrder> {
        let Decision::Send { subflow, what, .. } = decision else { return None };
        let mss = self.segment_size();
        let (range, carry) = match what {
            What::New { offset } => return self.order_new(data, offset, subflow),
            What::Reinject => (data.take_reinjection(subflow)?, Carry::Reinjection),
            What::Redundant(range) => (data.still_needed(range, mss)?, Carry::Redundant),
            What::OppRetx(range) => match self.take_waiting(data, range, subflow) {
                Some(range) => {
                    return Some(SendOrder { subflow, range, carry: Carry::New, whole: false });
                }
                None => (data.still_needed(range, mss)?, Carry::Opportunistic),
            },
        };
        self.on_order();
        data.on_sent_again(range, subflow, carry);
        Some(SendOrder { subflow, range, carry, whole: false })
    }

    /// Notes that the subflow `id` sends data. Its quota does not count TCP retransmissions.
    #[inline(always)]
    pub(crate) fn on_data_sent(&mut self, paths: &Paths, id: SubflowId, sent: Dispatch) {
        self.on_sent(id);
        if !self.prices.is_empty() {
            self.spend(paths, id, sent);
        }
    }

    #[cold]
    #[inline(never)]
    fn spend(&self, paths: &Paths, id: SubflowId, Dispatch { range, carry, .. }: Dispatch) {
        if !matches!(carry, Carry::Retransmission | Carry::TailProbe) {
            self.prices.on_sent(paths.subflow(id).address().path(), range.len());
        }
    }

    /// Notes that a full segment is sent for the first time. Returns its sequence number.
    pub(crate) fn note_sent(
        &mut self,
        ctx: &mut Context<'_>,
        paths: &mut Paths,
        id: SubflowId,
        data: DataRange,
    ) -> SendSsn {
        ctx.emit(Event::DataSent { subflow: id, data, carry: Carry::New });
        let seq = paths.on_sent(ctx.now, id, data);
        self.on_data_sent(paths, id, Dispatch { seq, range: data, carry: Carry::New });
        seq
    }

    /// Extends `first` by granted data of the subflow `id`, up to a superpacket, and returns
    /// the whole range.
    pub(crate) fn grow(
        &mut self,
        ctx: &mut Context<'_>,
        data: &mut DataLevel,
        paths: &mut Paths,
        id: SubflowId,
        first: DataRange,
    ) -> DataRange {
        let cut = first.len();
        let most = u64::from(paths.spec.config.packets.superpacket)
            .min(data.queue().in_one_piece(first.start));
        let mut range = first;
        while range.len() + cut <= most
            && !paths.subflow(id).sender().is_paced()
            && data.queue().first_unsent(cut) == Some(DataRange::with_len(range.end, cut))
            && self.take_granted_to(ctx, data, paths, id)
            && let Some(next) = data.take_new(0, cut, id)
        {
            self.note_sent(ctx, paths, id, next);
            range.end = next.end;
        }
        range
    }

    /// Moves assigned data in `range` from another subflow to `subflow`, and returns the moved
    /// part.
    #[inline(never)]
    pub(crate) fn take_waiting(
        &mut self,
        data: &mut DataLevel,
        range: DataRange,
        subflow: SubflowId,
    ) -> Option<DataRange> {
        let (range, owner) = data.take_waiting(range, subflow)?;
        self.on_sent(owner);
        Some(range)
    }

    /// Applies a plan, which assigns data to subflows before it is sent.
    #[inline(never)]
    pub(crate) fn take_plan(&mut self, ctx: &mut Context<'_>, data: &mut DataLevel, paths: &Paths) {
        self.assigned_among = self.candidates(SchedulerInputs { data, paths }, ctx.now);
        let touched = data.apply_plan(&ctx.outcome().plan);
        self.views.stale.sent.0 |= touched.0;
        // If the plan assigns nothing, another call would return the same plan.
        self.due = !touched.is_empty();
    }

    /// Withdraws assignments if the set of candidates has changed since, for example because a
    /// subflow has recovered from a timeout. They were planned for other candidates.
    #[inline(never)]
    pub(crate) fn withdraw_plan(&mut self, now: Time, data: &mut DataLevel, paths: &mut Paths) {
        if !paths.spec.config.kernel_rules.keep_data
            && self.candidates(SchedulerInputs { data, paths }, now) != self.assigned_among
        {
            data.withdraw_plan();
            self.views.stale.all = true;
            self.refresh_views(data, paths, now);
        }
    }
}

/// Assigned data that the subflow `id` sends now.
pub(crate) struct AssignedData {
    pub(crate) id: SubflowId,
    pub(crate) range: DataRange,
}

/// Data to be sent.
pub(crate) struct SendOrder {
    pub(crate) subflow: SubflowId,
    pub(crate) range: DataRange,
    pub(crate) carry: Carry,
    /// More new data may be sent in the same superpacket.
    pub(crate) whole: bool,
}
