//! Decisions for several segments: on a fast path, those that leave within a short time.

use super::estimate::Estimate;
use super::memory::Memory;
use crate::rules::{Task, segment_len};
use crate::{Decision, Reason, View, What};
use plait_base::{DataRange, Dsn, SubflowId};

/// New data in order that a subflow carries by one decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Burst {
    data: DataRange,
    subflow: SubflowId,
}

impl Burst {
    /// Returns the decision for the next segment, if it is one of the burst and can be sent.
    pub(super) fn next(self, view: &View<'_>, task: Task) -> Option<Decision> {
        let Task::Place(segment) = task else { return None };
        let last = self.data.end.min(view.connection.wnd_end);
        let within = self.data.start <= segment.start && segment.end <= last;
        let full = segment.len() == segment_len(view);
        let usable = |view: &View<'_>| {
            view.subflow(self.subflow).is_some_and(|it| it.usable(segment.len(), view.tsq))
        };
        let (what, reason) = (What::New { offset: 0 }, Reason::EarliestArrival);
        (within && full && usable(view)).then(|| Decision::Send {
            subflow: self.subflow,
            what,
            grant: self.data.end.get() - segment.start.get(),
            reason,
        })
    }

    /// Writes the state. Zeroes are left out.
    pub(super) fn save(burst: Option<&Burst>, write: &mut dyn FnMut(&str, f64)) {
        let Some(Burst { data, subflow }) = burst else { return };
        for (name, value) in [
            ("burst.start", data.start.get()),
            ("burst.end", data.end.get()),
            ("burst.subflow", u64::from(subflow.0)),
        ] {
            if value > 0 {
                write(name, value as f64);
            }
        }
    }

    /// Restores a value. Returns false if the name is unknown.
    pub(super) fn load(burst: &mut Option<Burst>, name: &str, value: f64) -> bool {
        let nothing = DataRange::new(Dsn::ZERO, Dsn::ZERO);
        let at = |value: f64| Dsn::new(value as u64);
        let burst = match name {
            "burst.start" | "burst.end" | "burst.subflow" => {
                burst.get_or_insert(Burst { data: nothing, subflow: SubflowId(0) })
            }
            _ => return false,
        };
        match name {
            "burst.start" => burst.data = DataRange::new(at(value), at(value)),
            "burst.end" => burst.data = DataRange::new(burst.data.start, at(value)),
            _ => burst.subflow = SubflowId(value as u8),
        }
        true
    }
}

impl Memory {
    /// Notes full segments of up to `len` bytes that `path` carries by one decision. The first one is noted
    /// already. Returns their bytes, or `None` if there is no second one.
    #[inline(never)]
    pub(super) fn begin_burst(
        &mut self,
        view: &View<'_>,
        path: &Estimate<'_>,
        len: u64,
    ) -> Option<u64> {
        let (mss, subflow) = (segment_len(view), path.view.id);
        let first = view.queue.unsent_at(0, len)?;
        let end = first.end.min(view.connection.wnd_end).get();
        let count = end.saturating_sub(first.start.get()) / mss;
        if count < 2 {
            return None;
        }
        for at in 1..count {
            let range = DataRange::with_len(first.start.saturating_add(at * mss), mss);
            let arrives = view.now + path.last_arrives_in((at + 1) * mss);
            let lane = &mut self.lanes[subflow.index()];
            lane.spare.sent += mss;
            self.flights.sent(range, (subflow, lane.spare.sent), arrives);
            lane.backlog.on_sent(view.now, mss, path.rate, false);
        }
        let data = DataRange::with_len(first.start, count * mss);
        self.burst = Some(Burst { data, subflow });
        Some(data.len())
    }

    /// Ends the burst. Its segments that were not sent have no prediction.
    #[inline(always)]
    pub(super) fn end_burst(&mut self, view: &View<'_>) {
        if let Some(burst) = self.burst {
            self.forget_unsent(view, burst);
        }
    }

    #[inline(never)]
    fn forget_unsent(&mut self, view: &View<'_>, burst: Burst) {
        self.burst = None;
        let next = view.queue.unsent_at(0, 1).map_or(burst.data.end, |it| it.start);
        let from = next.max(burst.data.start);
        if from < burst.data.end {
            let left = DataRange::new(from, burst.data.end);
            self.flights.not_sent(left);
            let lane = &mut self.lanes[burst.subflow.index()];
            lane.backlog.not_sent(left.len());
            lane.spare.not_sent(left.len());
        }
    }
}
