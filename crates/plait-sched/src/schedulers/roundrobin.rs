//! Round robin: equal turns.

use crate::rules::{self, Task};
use crate::{
    About, Decision, Entry, Needs, Notice, Outcome, Param, ParamKind, Params, Reason, Scheduler,
    SubflowView, View, WhenFull,
};
use alloc::boxed::Box;
use plait_base::{DataRange, SubflowId, SubflowSet};

const NUM_SEGMENTS: Param = Param {
    name: "num_segments",
    kind: ParamKind::Whole { min: 1, max: 1_000_000, default: 1 },
    unit: "segments",
    help: "consecutive segments of one turn",
    clause: "CSWS 2014, section 3.1",
};
const CWND_LIMITED: Param = Param {
    name: "cwnd_limited",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "on: a subflow without room loses its turn; off: the other subflows wait for it",
    clause: "CSWS 2014, section 3.1",
};

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
        name: "roundrobin",
        aliases: &["rr"],
        idea: "equal turns, one segment each",
        page: "\
The subflows take turns of `num_segments` segments in the order of their ids.

    choose  a subflow in the middle of its turn; else the next one after the last sender that has
            not had its turn in this round; when all have had their turn, a new round begins
    wait    if the subflow of the turn has no room (cwnd_limited=off), or if none has room

With `cwnd_limited=on`, a subflow without room is skipped. In a bulk transfer the windows are nearly
always full. The acknowledgements then decide the split, not the turns.

Papers   \"Experimental Evaluation of Multipath TCP Schedulers\" (CSWS 2014), section 3.1.
Good at  an equal share on equal paths; a baseline.
Bad at   heterogeneous paths, in every respect: the slow path gets as much of the data as the fast
         one, as long as both have room.
",
        params: &[NUM_SEGMENTS, CWND_LIMITED],
        state: &[
            ("last", "id of the subflow that sent last; absent before the first segment"),
            ("quota.ID", "segments that the subflow has sent in this round"),
        ],
    },
    queues_ahead: false,
    spreads_bursts: false,
    build: |params| Box::new(RoundRobin::new(params)),
};

/// The scheduler.
#[derive(Debug)]
struct RoundRobin {
    num_segments: u64,
    cwnd_limited: bool,
    /// Segments sent in this round, by id.
    quota: [u64; SubflowId::MAX],
    last: Option<SubflowId>,
}

impl RoundRobin {
    fn new(params: &Params) -> RoundRobin {
        RoundRobin {
            num_segments: params.whole(&NUM_SEGMENTS).max(1),
            cwnd_limited: params.switch(&CWND_LIMITED),
            quota: [0; SubflowId::MAX],
            last: None,
        }
    }

    fn quota(&self, id: SubflowId) -> u64 {
        self.quota.get(id.index()).copied().unwrap_or(0)
    }

    /// Returns the subflow whose turn it is, among `eligible`. Begins a new round if all have had
    /// their turn.
    fn turn<'a>(&mut self, view: &View<'a>, eligible: SubflowSet) -> Option<&'a SubflowView> {
        // The first subflow without a segment in this round, and the first such one after `last`.
        // The other two are the same for all subflows; a new round needs them.
        let (mut fresh, mut fresh_after, mut any, mut any_after) = (None, None, None, None);
        for subflow in view.subflows.iter().filter(|s| eligible.contains(s.id)) {
            let (quota, after) = (self.quota(subflow.id), Some(subflow.id) > self.last);
            if quota != 0 && quota < self.num_segments {
                return Some(subflow);
            }
            if quota == 0 {
                fresh = fresh.or(Some(subflow));
                fresh_after = fresh_after.or(Some(subflow).filter(|_| after));
            }
            any = any.or(Some(subflow));
            any_after = any_after.or(Some(subflow).filter(|_| after));
        }
        if fresh.is_some() {
            return fresh_after.or(fresh);
        }
        for (id, quota) in self.quota.iter_mut().enumerate() {
            if eligible.contains(SubflowId(id as u8)) {
                *quota = 0;
            }
        }
        any_after.or(any)
    }

    fn place(&mut self, view: &View<'_>, segment: DataRange, out: &mut Outcome) -> Decision {
        let len = segment.len();
        let mut eligible = view.candidates();
        if self.cwnd_limited {
            for busy in view.subflows.iter().filter(|s| !s.usable(len, view.tsq)) {
                eligible.remove(busy.id);
            }
        }
        let Some(pick) = self.turn(view, eligible) else { return rules::none_usable(view) };
        out.note("quota_segments", Some(pick.id), self.quota(pick.id) as f64);
        if !pick.usable(len, view.tsq) {
            return Decision::Wait { on: Some(pick.id), reason: Reason::TurnBusy };
        }
        // The grant is one segment, because turns are counted in segments.
        let decision = rules::new_on(view, pick.id, segment, Reason::Turn);
        if let (Decision::Send { .. }, Some(quota)) =
            (decision, self.quota.get_mut(pick.id.index()))
        {
            *quota = quota.saturating_add(len.div_ceil(rules::segment_len(view)));
            self.last = Some(pick.id);
        }
        decision
    }

    /// Counts segments on an only subflow as turns: they matter once a second subflow joins.
    fn alone(&mut self, view: &View<'_>, decision: Decision) -> Decision {
        let Decision::Send { subflow, reason: Reason::OnlySubflow, .. } = decision else {
            return decision;
        };
        let len = rules::segment_len(view);
        if let Some(quota) = self.quota.get_mut(subflow.index()) {
            let before = if *quota < self.num_segments { *quota } else { 0 };
            *quota = before + view.next_len().div_ceil(len);
        }
        self.last = Some(subflow);
        // With one segment per turn, each segment begins and ends a round, so a longer grant leaves
        // the same state.
        if self.num_segments == 1 { decision } else { decision.one_segment(len) }
    }

    /// Places a reinjection on the usable candidate with the lowest id that has not carried the
    /// range. If all have carried it, it goes to the usable one with the lowest id.
    fn reinjection(view: &View<'_>) -> Option<Decision> {
        let waiting = view.connection.reinject?;
        let len = waiting.range.len().min(rules::segment_len(view));
        let candidates = view.candidates();
        let usable = || {
            let group = view.subflows.iter().filter(|s| candidates.contains(s.id));
            group.filter(|s| s.usable(len, view.tsq))
        };
        let untried = usable().find(|s| !waiting.carried.contains(s.id));
        Some(match (untried, usable().next()) {
            (Some(subflow), _) => rules::reinject_on(view, subflow.id, Reason::Reinjection),
            (None, Some(subflow)) => rules::reinject_on(view, subflow.id, Reason::ReinjectionAgain),
            (None, None) => rules::none_usable(view),
        })
    }
}

impl Scheduler for RoundRobin {
    fn needs(&self) -> Needs {
        let when_full = if self.cwnd_limited { WhenFull::Never } else { WhenFull::Always };
        Needs { when_full, ..Needs::LEAST }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        if let Some(decision) = RoundRobin::reinjection(view) {
            return decision;
        }
        match rules::task(view) {
            Task::Settled(decision) => self.alone(view, decision),
            Task::Place(segment) => self.place(view, segment, out),
        }
    }

    fn on_notice(&mut self, _: &View<'_>, notice: Notice) {
        crate::state::forget(notice, &mut self.quota);
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        if let Some(last) = self.last {
            write("last", f64::from(last.0));
        }
        crate::state::save_each("quota.", "", &self.quota, write, |quota| {
            (*quota != 0).then_some(*quota as f64)
        });
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        if name == "last" {
            self.last = crate::state::subflow(value);
            return true;
        }
        match crate::state::slot("quota.", "", name, &mut self.quota) {
            Some(quota) => *quota = crate::exact::nearest(value),
            None => return false,
        }
        true
    }
}
