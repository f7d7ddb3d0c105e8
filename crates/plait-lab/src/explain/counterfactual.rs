//! Wrappers around the scheduler of a connection: one changes a single decision, the other also queries
//! further schedulers.

use plait_base::{DataRange, SubflowId, Time};
use plait_core::SchedulerFactory;
use plait_sched::{Decision, Needs, Notice, Number, Outcome, Reason, Scheduler, Spec, View, What};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// One decision of a run, and its replacement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Number of the decision at the sender.
    pub number: u64,
    /// Time of the decision. Together with the number it identifies the decision, even if a client has
    /// restarted its connection.
    pub at: Time,
    /// The segment that the decision concerns.
    pub data: DataRange,
    /// The subflow that gets the segment. If it has no room, the segment is assigned to it and sent later.
    pub to: SubflowId,
}

/// Returns a factory of schedulers that decide as the schedulers of `inner`, except for one
/// decision. The second value is true afterwards if the change was made.
pub(super) fn overridden(
    inner: SchedulerFactory,
    change: Change,
) -> (SchedulerFactory, Arc<AtomicBool>) {
    let made = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&made);
    let factory: SchedulerFactory =
        Arc::new(move || Box::new(Override { inner: inner(), change, made: Arc::clone(&told) }));
    (factory, made)
}

/// Decides as another scheduler, except for one decision.
#[derive(Debug)]
struct Override {
    inner: Box<dyn Scheduler>,
    change: Change,
    made: Arc<AtomicBool>,
}

impl Override {
    /// Returns the replacement of `decision`; `None` if it is impossible.
    fn otherwise(
        &self,
        view: &View<'_>,
        out: &mut Outcome,
        decision: Decision,
    ) -> Option<Decision> {
        let Change { data, to, .. } = self.change;
        let subflow = view.subflow(to).filter(|subflow| !subflow.hard_down())?;
        let mss = u64::from(view.connection.mss.max(1));
        let new = |offset| view.queue.unsent_at(offset, mss).filter(|range| *range == data);
        let (offset, reason) = match decision {
            Decision::Send { what: What::New { offset }, reason, .. } => {
                new(offset)?;
                (offset, reason)
            }
            Decision::Wait { reason, .. } => {
                new(0)?;
                (0, reason)
            }
            Decision::Assign { .. } => return reassigned(out, data, to).then_some(decision),
            // A copy needs a subflow with room; otherwise there is no copy.
            Decision::Send { what, grant, reason, .. } => {
                let able = subflow.usable(data.len(), view.tsq);
                return able.then_some(Decision::Send { subflow: to, what, grant, reason });
            }
            Decision::Idle => return None,
        };
        let now = subflow.queued == 0
            && subflow.usable(data.len(), view.tsq)
            && data.end <= view.connection.wnd_end;
        out.plan.clear();
        if now {
            let what = What::New { offset };
            return Some(Decision::Send { subflow: to, what, grant: mss, reason });
        }
        out.plan.push((data, to));
        Some(Decision::Assign { reason })
    }
}

/// Reassigns `data` to another subflow in a plan; returns false if the plan does not contain it.
fn reassigned(out: &mut Outcome, data: DataRange, to: SubflowId) -> bool {
    let Some(at) = out.plan.iter().position(|(range, _)| range.covers(data)) else { return false };
    let (range, from) = out.plan.remove(at);
    let parts = [
        (DataRange::new(range.start, data.start), from),
        (data, to),
        (DataRange::new(data.end, range.end), from),
    ];
    let parts = parts.into_iter().filter(|(part, _)| !part.is_empty());
    out.plan.splice(at..at, parts);
    true
}

impl Scheduler for Override {
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        // The decision may be part of an earlier grant.
        let segment = u64::from(view.connection.mss.max(1));
        let decision = self.inner.schedule(view, out).one_segment(segment);
        if (out.number, view.now) != (self.change.number, self.change.at) {
            return decision;
        }
        match self.otherwise(view, out, decision) {
            Some(other) => {
                self.made.store(true, Ordering::Relaxed);
                other
            }
            None => decision,
        }
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        self.inner.on_notice(view, notice);
    }

    fn needs(&self) -> Needs {
        self.inner.needs()
    }
}

/// The decision of another scheduler in the same state.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Opinion {
    /// send, assign, wait or idle.
    pub(super) word: &'static str,
    /// The subflow that it chose, or would wait for.
    pub(super) subflow: Option<SubflowId>,
    pub(super) reason: Option<Reason>,
    pub(super) numbers: Vec<Number>,
}

/// Opinions by the number of the decision and its time, in the order of the queried schedulers.
pub(super) type Opinions = BTreeMap<(u64, Time), Vec<Opinion>>;

/// Returns a factory of schedulers that decide as the schedulers of `inner` and query `others` in
/// each state. They keep the answers for the decisions `wanted`.
pub(super) fn shadowed(
    inner: SchedulerFactory,
    others: &[Spec],
    wanted: BTreeSet<(u64, Time)>,
) -> (SchedulerFactory, Arc<Mutex<Opinions>>) {
    let kept = Arc::new(Mutex::new(Opinions::new()));
    let (told, wanted, others) = (Arc::clone(&kept), Arc::new(wanted), others.to_vec());
    let factory: SchedulerFactory = Arc::new(move || {
        Box::new(Shadow {
            inner: inner(),
            others: others.iter().map(Spec::build).collect(),
            wanted: Arc::clone(&wanted),
            kept: Arc::clone(&told),
            outcome: Outcome { explain: true, ..Outcome::default() },
        })
    });
    (factory, kept)
}

/// Decides as one scheduler and queries others. These get the same states and notices, but their decisions
/// are not carried out.
#[derive(Debug)]
struct Shadow {
    inner: Box<dyn Scheduler>,
    others: Vec<Box<dyn Scheduler>>,
    wanted: Arc<BTreeSet<(u64, Time)>>,
    kept: Arc<Mutex<Opinions>>,
    outcome: Outcome,
}

impl Scheduler for Shadow {
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let Shadow { others, wanted, kept, outcome, .. } = self;
        let key = (out.number, view.now);
        let mut said = Vec::new();
        for other in others {
            outcome.clear();
            let decision = other.schedule(view, outcome);
            if wanted.contains(&key) {
                said.push(opinion(decision, outcome));
            }
        }
        if !said.is_empty()
            && let Ok(mut kept) = kept.lock()
        {
            kept.insert(key, said);
        }
        let segment = u64::from(view.connection.mss.max(1));
        self.inner.schedule(view, out).one_segment(segment)
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        let wants = |scheduler: &dyn Scheduler| {
            !matches!(notice, Notice::DataAck { .. }) || scheduler.needs().data_acks
        };
        for scheduler in std::iter::once(&mut self.inner).chain(&mut self.others) {
            if wants(&**scheduler) {
                scheduler.on_notice(view, notice);
            }
        }
    }

    fn needs(&self) -> Needs {
        Needs::ALL
    }
}

fn opinion(decision: Decision, outcome: &Outcome) -> Opinion {
    let (word, subflow, reason) = match decision {
        Decision::Send { subflow, reason, .. } => ("send", Some(subflow), Some(reason)),
        Decision::Assign { reason } => {
            ("assign", outcome.plan.first().map(|(_, subflow)| *subflow), Some(reason))
        }
        Decision::Wait { on, reason } => ("wait", on, Some(reason)),
        Decision::Idle => ("idle", None, None),
    };
    Opinion { word, subflow, reason, numbers: outcome.numbers.clone() }
}
