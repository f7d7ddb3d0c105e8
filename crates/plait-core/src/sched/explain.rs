//! The events of a decision, if the log has every detail.

use crate::context::Context;
use crate::event::Event;
use crate::sched::{SchedulerInputs, Scheduling, Wait};
use plait_base::{DataRange, SubflowId, Time};
use plait_sched::{Decision, QueueView, What};

impl Scheduling {
    /// Returns the data of a decision; `planned` is the first assignment.
    pub(crate) fn data_at_hand(
        &self,
        seen: SchedulerInputs<'_>,
        decision: Decision,
        planned: Option<&(DataRange, SubflowId)>,
    ) -> DataRange {
        let mss = self.segment_size().max(1);
        let new = |offset| seen.data.queue().unsent_at(offset, mss).unwrap_or_default();
        let again = || seen.data.queue().next_reinjection().map(|sent| sent.range);
        let part = |range: DataRange| range.intersect(DataRange::with_len(range.start, mss));
        match decision {
            Decision::Send { what: What::New { offset }, .. } => new(offset),
            Decision::Send { what: What::Reinject, .. } => part(again().unwrap_or_default()),
            Decision::Send { what: What::Redundant(range) | What::OppRetx(range), .. } => {
                part(range)
            }
            Decision::Assign { .. } => part(planned.map(|it| it.0).unwrap_or_default()),
            Decision::Wait { .. } => again().map_or_else(|| new(0), part),
            Decision::Idle => DataRange::default(),
        }
    }

    /// Emits a decision with all numbers that influenced it. A wait is omitted if it repeats the
    /// last one and the same subflows have room.
    #[cold]
    pub(crate) fn tell_decision(
        &mut self,
        ctx: &mut Context<'_>,
        seen: SchedulerInputs<'_>,
        decision: Decision,
    ) {
        let (chosen, waits_for, reason) = match decision {
            Decision::Send { subflow, reason, .. } => (Some(subflow), None, reason),
            Decision::Assign { reason } => {
                let first = ctx.outcome().plan.first();
                (first.map(|(_, subflow)| *subflow), None, reason)
            }
            Decision::Wait { on, reason } => (None, on, reason),
            Decision::Idle => return,
        };
        let usable = self.usable(seen);
        let waits = matches!(decision, Decision::Wait { .. });
        let wait = waits.then_some(Wait { on: waits_for, reason, usable });
        if wait.is_some() && wait == self.last_wait {
            return;
        }
        self.last_wait = wait;
        // Taken out, because the context also emits the events.
        let outcome = core::mem::take(ctx.outcome());
        let range = self.data_at_hand(seen, decision, outcome.plan.first());
        let candidates = self.candidates(seen, ctx.now);
        for view in &self.views.list {
            let arrival = view.plain_arrival(range.len()).map_or(Time::NEVER, |it| ctx.now + it);
            ctx.emit(Event::Considered {
                subflow: view.id,
                srtt: view.srtt,
                cwnd: view.cwnd.min(view.cap),
                inflight: view.inflight,
                room: view.room(),
                arrival,
            });
        }
        for number in &outcome.numbers {
            ctx.emit(Event::Weighed(*number));
        }
        if matches!(decision, Decision::Assign { .. }) {
            for (data, subflow) in &outcome.plan {
                ctx.emit(Event::Assigned { subflow: *subflow, data: *data });
            }
        }
        let number = outcome.number;
        *ctx.outcome() = outcome;
        ctx.emit(Event::Decision {
            number,
            data: range,
            chosen,
            waits_for,
            candidates,
            usable,
            reason,
        });
    }
}
