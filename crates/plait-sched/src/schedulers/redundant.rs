//! Redundant: each segment on each subflow.

use crate::rules;
use crate::{
    About, Decision, Entry, Needs, Notice, Outcome, Reason, Scheduler, SubflowView, View, What,
};
use alloc::boxed::Box;
use plait_base::{DataRange, Dsn, SubflowId};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
        name: "redundant",
        aliases: &[],
        idea: "send every segment on every subflow: lowest latency, no aggregation",
        page: "\
Each subflow goes through the data on its own, from the first byte that is not acknowledged at the
data level. The subflow that is furthest ahead sends new data; the others send copies. New data
therefore goes out at the speed of the fastest subflow.

    next segment of s  the first range after the last one given to s
                       (from snd_una, if that one has been acknowledged)
    turns              the subflows in cyclic order; one without room is skipped
    backup subflows    get no copies; they get new data only while every other subflow is down

A slow subflow does not resend acknowledged data. When its last segment is acknowledged, it
continues at snd_una, so it carries only a part of the data.

Source   the `redundant` module of the out-of-tree Linux MPTCP, from version 0.90 on.
Good at  small messages over paths with loss or variable delay.
Bad at   throughput: all paths together are only as fast as the best one. Small receive windows and
         metered data plans.
",
        params: &[],
        state: &[
            ("next", "id of the subflow whose turn it is"),
            ("ptr.ID", "end (DSN, bytes) of the last range given to the subflow"),
        ],
    },
    queues_ahead: false,
    spreads_bursts: false,
    build: |_| Box::new(Redundant::default()),
};

/// The scheduler.
#[derive(Default, Debug)]
struct Redundant {
    /// End (DSN) of the last range given to each subflow, by id; zero before the first. If that
    /// range has been DATA_ACKed, the subflow continues at the left edge.
    ptr: [Dsn; SubflowId::MAX],
    next: SubflowId,
}

/// The next segment of a subflow.
struct Turn {
    range: DataRange,
    copy: bool,
}

impl Redundant {
    /// Returns the first segment after the last one given to `subflow`.
    fn turn(&self, view: &View<'_>, subflow: &SubflowView) -> Option<Turn> {
        let handed = self.ptr.get(subflow.id.index()).copied()?;
        let from = handed.max(view.connection.snd_una);
        match view.queue.sent_from(from) {
            Some(sent) => {
                let rest = DataRange::new(sent.range.start.max(from), sent.range.end);
                let end = rest.end.min(rest.start.saturating_add(rules::segment_len(view)));
                Some(Turn { range: DataRange::new(rest.start, end), copy: true })
            }
            None => rules::next_segment(view).map(|range| Turn { range, copy: false }),
        }
    }

    fn hand(&mut self, view: &View<'_>, subflow: &SubflowView, range: DataRange) {
        if let Some(ptr) = self.ptr.get_mut(subflow.id.index()) {
            *ptr = range.end;
        }
        let above = view.subflows.iter().find(|other| other.id > subflow.id);
        self.next = above.or(view.subflows.first()).map_or(SubflowId(0), |other| other.id);
    }

    fn choose(&mut self, view: &View<'_>) -> Decision {
        let candidates = view.candidates();
        let split = view.subflows.partition_point(|subflow| subflow.id < self.next);
        let (after, from) = view.subflows.split_at(split);
        let mut refusal = Decision::Idle;
        for subflow in from.iter().chain(after) {
            // Once there is known to be data, subflows without room are skipped: their next segment
            // is not needed.
            if refusal != Decision::Idle && !subflow.usable(1, view.tsq) {
                continue;
            }
            let Some(Turn { range, copy }) = self.turn(view, subflow) else { continue };
            let allowed = if copy { !subflow.backup } else { candidates.contains(subflow.id) };
            if !allowed || !subflow.usable(range.len(), view.tsq) {
                if refusal == Decision::Idle {
                    refusal = rules::none_usable(view);
                }
                continue;
            }
            let decision = if copy {
                let (subflow, what) = (subflow.id, What::Redundant(range));
                Decision::Send { subflow, what, grant: range.len(), reason: Reason::Copy }
            } else {
                rules::new_on(view, subflow.id, range, Reason::Turn)
            };
            if let Decision::Send { .. } = decision {
                self.hand(view, subflow, range);
                return decision;
            }
            refusal = decision;
        }
        refusal
    }
}

impl Scheduler for Redundant {
    fn needs(&self) -> Needs {
        Needs { pacing_rate: false, ..Needs::ALL }
    }

    fn schedule(&mut self, view: &View<'_>, _: &mut Outcome) -> Decision {
        if let Some(decision) = rules::reinjection(view) {
            return decision;
        }
        let [only] = view.subflows else { return self.choose(view) };
        let Some(segment) = rules::next_segment(view) else { return Decision::Idle };
        // The grant is one segment, so that `ptr` is up to date when a second subflow joins.
        let decision =
            rules::new_on_only(view, only, segment).one_segment(rules::segment_len(view));
        if let Decision::Send { .. } = decision {
            self.hand(view, only, segment);
        }
        decision
    }

    fn on_notice(&mut self, _: &View<'_>, notice: Notice) {
        crate::state::forget(notice, &mut self.ptr);
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        write("next", f64::from(self.next.0));
        crate::state::save_each("ptr.", "", &self.ptr, write, |ptr| {
            (*ptr > Dsn::ZERO).then_some(ptr.get() as f64)
        });
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        if name == "next" {
            self.next = crate::state::subflow(value).unwrap_or_default();
            return true;
        }
        match crate::state::slot("ptr.", "", name, &mut self.ptr) {
            Some(ptr) => *ptr = Dsn::new(crate::exact::nearest(value)),
            None => return false,
        }
        true
    }
}
