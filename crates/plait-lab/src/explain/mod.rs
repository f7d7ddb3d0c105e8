//! Explains why data waited in a run: the responsible decision, the state it was based on, its cost, and the
//! decisions of other schedulers.
//!
//! A run is a function of its scenario and seed, so it can be repeated. It is repeated once with a [`Ledger`]
//! that records everything, and once with other schedulers beside its own. It is also repeated once for each
//! subflow that a decision could have chosen and did not, with that one decision changed.

mod counterfactual;
mod replay;
mod report;

pub use counterfactual::Change;
pub use replay::{Replay, replay};
pub use report::{
    Alternative, Bytes, Explained, Explanation, Judged, Opinion, SCHEMA, Seen, Sending,
};

use crate::compare::Cell;
use crate::simulated::setup_unless;
use crate::workers::on_threads;
use plait_app::Role;
use plait_app::provenance::{Decided, Ledger, Stall};
use plait_base::{DataRange, Span, SubflowId, SubflowSet, Time};
use plait_core::Carry;
use plait_sched::{Number, Spec};
use plait_sim::Watch;
use replay::{Bookkeeper, Frontier, measures, scheduler_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Limit of explained stalls.
pub const MOST_STALLS: usize = 100;

/// The part of a run to explain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which {
    /// The data that waited at this time; if none did, the last decision before it.
    At {
        /// The time.
        at: Time,
        /// Number of stalls: the longest that cover the time, at most [`MOST_STALLS`].
        most: usize,
    },
    /// The longest stalls: this many, at most [`MOST_STALLS`].
    Slowest(usize),
}

/// A question about a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// The part of the run to explain.
    pub which: Which,
    /// The schedulers to query in the states of the responsible decisions.
    pub schedulers: Vec<Spec>,
}

/// Why a run cannot be explained.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unexplained {
    /// An invariant was broken; the text describes it.
    Violated(String),
    /// The run ended before the requested time.
    Over {
        /// End of the run.
        ended: Time,
    },
    /// The sender made no decision before the requested time.
    NothingYet {
        /// Time of the first decision, if there was one.
        first: Option<Time>,
    },
    /// [`ExplainControl::cancelled`] became true.
    Cancelled,
}

impl fmt::Display for Unexplained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |time: Time| time.since(Time::ZERO);
        match self {
            Unexplained::Violated(what) => write!(f, "invariant violated: {what}"),
            Unexplained::Over { ended } => write!(
                f,
                "the run had ended by then\n  allowed: an instant up to {:.6}s",
                span(*ended).as_secs_f64()
            ),
            Unexplained::NothingYet { first: Some(first) } => write!(
                f,
                "the sender had made no decision by then\n  allowed: an instant from {:.6}s",
                span(*first).as_secs_f64()
            ),
            Unexplained::NothingYet { first: None } => {
                f.write_str("the sender made no decision in this run")
            }
            Unexplained::Cancelled => f.write_str("the explanation was cancelled"),
        }
    }
}

impl std::error::Error for Unexplained {}

/// Reports the progress of an explanation and stops it. Several threads call the functions.
#[derive(Clone, Copy)]
pub struct ExplainControl<'a> {
    /// Called after every replay with the number of finished replays and their total.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Called on every thread that makes replays. It must call its argument, which makes them. The other runs are
    /// made on the thread that calls [`explain`].
    pub on_thread: &'a (dyn Fn(&(dyn Fn() + Sync)) + Sync),
    /// Once true, no further run begins and each run stops within [`plait_sim::EVENTS_BETWEEN_LOOKS`] events.
    pub cancelled: &'a AtomicBool,
}

impl<'a> ExplainControl<'a> {
    /// Returns a control that reports nothing.
    #[must_use]
    pub const fn unwatched(cancelled: &'a AtomicBool) -> ExplainControl<'a> {
        ExplainControl { progress: &|_, _| (), on_thread: &|work| work(), cancelled }
    }
}

/// The inputs of an explanation.
struct Inquiry<'a> {
    cell: &'a Cell,
    seed: u64,
    control: &'a ExplainControl<'a>,
    ledger: Ledger,
    /// The primary measure of the workload.
    primary: &'static str,
}

/// A stall and the responsible decisions.
struct Suspected {
    kind: &'static str,
    stall: Stall,
    decisions: Vec<Decided>,
}

/// Replays by the index of the stall and of the decision in it, each with the subflow that it chose instead.
type Replays = BTreeMap<(usize, usize), Vec<(SubflowId, Replay)>>;

/// Runs a cell and explains why data waited in it. `beside` watches the run.
///
/// # Errors
/// If an invariant is broken, if there is nothing to explain at the requested time, or if the explanation is
/// cancelled.
pub fn explain(
    cell: &Cell,
    seed: u64,
    question: &Question,
    beside: Option<&mut dyn Watch>,
    control: &ExplainControl<'_>,
) -> Result<Explanation, Unexplained> {
    let workload = &cell.scenario.workload;
    let mut keeper = Bookkeeper { ledger: Ledger::new(workload), beside };
    let outcome = setup_unless(cell, seed, control.cancelled)
        .and_then(|setup| plait_sim::run_unless(&setup, &mut keeper, control.cancelled))
        .ok_or(Unexplained::Cancelled)?;
    if let Some(violation) = outcome.violation {
        return Err(Unexplained::Violated(violation));
    }
    let (ended, complete) = (outcome.ended, outcome.complete());
    let measures = measures(outcome);
    let (ledger, primary) = (keeper.ledger, workload.primary());
    let inquiry = Inquiry { cell, seed, control, ledger, primary };
    let stalls = inquiry.ledger.stalls();
    let found = stalls.len();
    let (asked, suspected) = inquiry.suspects(stalls, question.which, ended)?;
    let opinions = inquiry.ask(&suspected, &question.schedulers).ok_or(Unexplained::Cancelled)?;
    let replays = inquiry.replay_all(&suspected).ok_or(Unexplained::Cancelled)?;
    let explained = suspected.iter().enumerate().map(|(at, it)| {
        let of = |nth: usize| replays.get(&(at, nth)).map_or(&[][..], Vec::as_slice);
        inquiry.explained(it, &of, &opinions, &question.schedulers)
    });
    Ok(Explanation {
        schema: SCHEMA,
        command: String::new(),
        seed,
        scheduler: cell.to_string(),
        cc: cell.cc.to_string(),
        workload: workload.to_string(),
        paths: cell.scenario.paths.iter().map(|path| path.name.clone()).collect(),
        ended_ms: millis(ended),
        complete,
        primary_measure: inquiry.primary.to_owned(),
        primary_value: measures.value(inquiry.primary),
        stalls_found: found,
        stalls_asked: asked,
        stalls: explained.collect(),
    })
}

impl Inquiry<'_> {
    /// Returns the number of requested stalls, and the explained ones with the responsible decisions.
    fn suspects(
        &self,
        mut stalls: Vec<Stall>,
        which: Which,
        ended: Time,
    ) -> Result<(usize, Vec<Suspected>), Unexplained> {
        let mut asked = stalls.len();
        match which {
            Which::Slowest(count) => stalls.truncate(count.min(MOST_STALLS)),
            Which::At { at, most } => {
                if at > ended {
                    return Err(Unexplained::Over { ended });
                }
                stalls.retain(|stall| stall.from <= at && at <= stall.to);
                asked = stalls.len();
                stalls.truncate(most.min(MOST_STALLS));
                if stalls.is_empty() {
                    return self.last_choice(at).map(|it| (0, vec![it]));
                }
            }
        }
        let suspected = |stall: Stall| {
            let dsn = stall.blocking.start;
            let placed = self.ledger.placed(dsn).map(|(decided, _)| decided);
            let declined = self.ledger.declined(dsn);
            let declined = declined.filter(|it| placed.is_none_or(|placed| it.at < placed.at));
            let decisions = placed.into_iter().chain(declined).cloned().collect();
            Suspected { kind: stall.kind.as_str(), stall, decisions }
        };
        Ok((asked, stalls.into_iter().map(suspected).collect()))
    }

    /// Returns the last decision before a time at which no data waited.
    fn last_choice(&self, at: Time) -> Result<Suspected, Unexplained> {
        let first = self.ledger.decisions().first().map(|decided| decided.at);
        let nothing = Unexplained::NothingYet { first };
        let decided = self.ledger.choice_before(at).ok_or(nothing)?;
        let data = decided.data;
        let to = self.ledger.readable_at(data.end).unwrap_or(decided.at);
        let kind = plait_app::provenance::StallKind::OutOfOrder;
        let stall = Stall { kind, from: decided.at, to, blocking: data, data, message: None };
        Ok(Suspected { kind: "decision", stall, decisions: vec![decided.clone()] })
    }

    /// Returns the decisions of the queried schedulers for the suspected ones. These schedulers run from the
    /// start and get every state and notice, but their decisions are not carried out. Returns `None` if the
    /// explanation is cancelled.
    fn ask(
        &self,
        suspected: &[Suspected],
        schedulers: &[Spec],
    ) -> Option<counterfactual::Opinions> {
        let decisions = suspected.iter().flat_map(|it| &it.decisions);
        let wanted: BTreeSet<(u64, Time)> = decisions.map(|it| (it.number, it.at)).collect();
        if schedulers.is_empty() || wanted.is_empty() {
            return Some(counterfactual::Opinions::new());
        }
        let cancelled = self.control.cancelled;
        let mut setup = setup_unless(self.cell, self.seed, cancelled)?;
        let Some(scheduler) = scheduler_of(&mut setup, self.ledger.sender()) else {
            return Some(counterfactual::Opinions::new());
        };
        let (factory, kept) = counterfactual::shadowed(scheduler.clone(), schedulers, wanted);
        *scheduler = factory;
        let mut nobody = Frontier { reader: Role::Client, ends: Vec::new() };
        let _ = plait_sim::run_unless(&setup, &mut nobody, cancelled)?;
        Some(kept.lock().map(|mut kept| std::mem::take(&mut *kept)).unwrap_or_default())
    }

    /// Returns the replays for each suspected decision, by the index of the stall and of the decision in it.
    /// Returns `None` if the explanation is cancelled.
    fn replay_all(&self, suspected: &[Suspected]) -> Option<Replays> {
        let ExplainControl { progress, on_thread, cancelled } = *self.control;
        let mut tasks = Vec::new();
        for (at, it) in suspected.iter().enumerate() {
            for (nth, decided) in it.decisions.iter().enumerate() {
                let others = alternatives(decided);
                tasks
                    .extend(others.map(|to| ((at, nth), change(decided, &it.stall, to), it.stall)));
            }
        }
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let results = Mutex::new(BTreeMap::new());
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((_, change, stall)) = tasks.get(index) else { return };
                let ends = [stall.data.end, stall.blocking.end];
                let made = replay(self.cell, self.seed, Some(*change), &ends, cancelled);
                let Some(made) = made else { return };
                if let Ok(mut results) = results.lock() {
                    results.insert(index, made);
                }
                progress(done.fetch_add(1, Ordering::Relaxed) + 1, tasks.len());
            }
        };
        on_threads(self.cell.scenario.budget.jobs, tasks.len(), || on_thread(&work));
        if done.into_inner() < tasks.len() {
            return None;
        }
        let mut by_decision = Replays::new();
        for (index, replay) in results.into_inner().unwrap_or_default() {
            if let Some((key, change, _)) = tasks.get(index)
                && replay.changed
            {
                by_decision.entry(*key).or_default().push((change.to, replay));
            }
        }
        Some(by_decision)
    }

    fn explained<'r>(
        &self,
        suspected: &Suspected,
        replays: &dyn Fn(usize) -> &'r [(SubflowId, Replay)],
        opinions: &counterfactual::Opinions,
        schedulers: &[Spec],
    ) -> Explained {
        let Suspected { kind, stall, decisions } = suspected;
        let dsn = stall.blocking.start;
        let readable = self.ledger.readable_at(stall.data.end);
        let judged: Vec<Judged> = decisions
            .iter()
            .enumerate()
            .map(|(nth, decided)| {
                let mut judged = self.judged(decided, stall, readable, replays(nth));
                let said = opinions.get(&(decided.number, decided.at)).into_iter().flatten();
                let said = schedulers.iter().zip(said);
                judged.others = said.map(|(spec, it)| self.opinion(spec, it, decided)).collect();
                judged
            })
            .collect();
        let sent = self.ledger.sendings(dsn).filter(|sent| sent.at <= stall.to);
        Explained {
            kind,
            from_ms: millis(stall.from),
            to_ms: millis(stall.to),
            length_ms: stall.length().as_millis_f64(),
            message: stall.message,
            waiting: bytes(stall.data),
            blocking: bytes(stall.blocking),
            sent: sent
                .map(|sent| Sending {
                    at_ms: millis(sent.at),
                    subflow: sent.subflow.0,
                    path: self.path(sent.subflow),
                    carry: carry(sent.carry),
                })
                .collect(),
            arrived_ms: self.ledger.arrival(dsn).map(millis),
            readable_ms: readable.map(millis),
            cost_ms: judged.iter().filter_map(|it| it.cost_ms).reduce(f64::max),
            decisions: judged,
        }
    }

    fn judged(
        &self,
        decided: &Decided,
        stall: &Stall,
        readable: Option<Time>,
        replays: &[(SubflowId, Replay)],
    ) -> Judged {
        let considered = self.ledger.considered(decided);
        let foretold = |id: SubflowId| considered.iter().find(|it| it.subflow == id)?.arrival;
        let assigned = self.ledger.is_ahead(decided);
        let predicted = decided.chosen.filter(|_| !assigned).and_then(foretold);
        let earliest = decided.candidates.iter().filter_map(foretold).min();
        let arrived = self.ledger.arrival(stall.blocking.start);
        let later = |than: Option<Time>| Some(difference(arrived?, than?));
        let own = self.ledger.readable_at(stall.blocking.end);
        let replayed = |(to, replay): &(SubflowId, Replay)| {
            let reached = |nth: usize| replay.readable.get(nth).copied().flatten();
            let sooner = |run: Option<Time>, nth| Some(difference(run?, reached(nth)?));
            Alternative {
                subflow: to.0,
                path: self.path(*to),
                readable_ms: reached(0).map(millis),
                saved_ms: sooner(readable, 0),
                segment_saved_ms: sooner(own, 1),
                primary_value: replay.measures.value(self.primary),
            }
        };
        let alternatives: Vec<Alternative> = replays.iter().map(replayed).collect();
        let subflow = decided.chosen.or(decided.waits_for);
        Judged {
            number: decided.number,
            at_ms: millis(decided.at),
            decision: match decided.chosen {
                Some(_) if assigned => "assign",
                Some(_) => "send",
                None => "wait",
            },
            subflow: subflow.map(|id| id.0),
            path: subflow.map(|id| self.path(id)),
            reason: decided.reason.as_str(),
            subflows: considered.iter().map(|it| self.seen(decided, it)).collect(),
            numbers: numbers(self.ledger.numbers(decided)),
            predicted_ms: predicted.map(millis),
            error_ms: later(predicted),
            regret_ms: predicted.and_then(|_| later(earliest)),
            cost_ms: alternatives.iter().filter_map(|it| it.saved_ms).reduce(f64::max),
            alternatives,
            others: Vec::new(),
        }
    }

    fn seen(&self, decided: &Decided, it: &plait_app::provenance::Considered) -> Seen {
        Seen {
            subflow: it.subflow.0,
            path: self.path(it.subflow),
            candidate: decided.candidates.contains(it.subflow),
            usable: decided.usable.contains(it.subflow),
            srtt_ms: it.srtt.map(Span::as_millis_f64),
            cwnd_bytes: it.cwnd,
            inflight_bytes: it.inflight,
            free_bytes: it.room,
            predicted_ms: it.arrival.map(millis),
        }
    }

    fn opinion(&self, spec: &Spec, said: &counterfactual::Opinion, decided: &Decided) -> Opinion {
        let chosen = matches!(said.word, "send" | "assign").then_some(said.subflow).flatten();
        Opinion {
            scheduler: spec.to_string(),
            decision: said.word,
            subflow: said.subflow.map(|id| id.0),
            path: said.subflow.map(|id| self.path(id)),
            reason: said.reason.map(|reason| reason.as_str()),
            numbers: numbers(&said.numbers),
            agrees: chosen == decided.chosen,
        }
    }

    /// Returns the name of a subflow's path.
    fn path(&self, subflow: SubflowId) -> String {
        let path = self.ledger.path(subflow);
        let path = path.and_then(|path| self.cell.scenario.paths.get(path.index()));
        path.map_or_else(|| format!("subflow {subflow}"), |path| path.name.clone())
    }
}

/// Returns the subflows that a decision could have chosen and did not.
fn alternatives(decided: &Decided) -> impl Iterator<Item = SubflowId> + use<> {
    let (all, chosen) = match decided.chosen {
        Some(_) => (decided.candidates, decided.chosen),
        None => (decided.usable, None),
    };
    let all: SubflowSet = all;
    all.iter().filter(move |id| Some(*id) != chosen)
}

/// Returns the change that sends the segment on `to`. If the segment was assigned as part of a longer range,
/// only the blocking segment is changed.
fn change(decided: &Decided, stall: &Stall, to: SubflowId) -> Change {
    let at_hand = decided.data.start == stall.blocking.start;
    let data = if at_hand { decided.data } else { stall.blocking };
    Change { number: decided.number, at: decided.at, data, to }
}

fn bytes(data: DataRange) -> Bytes {
    Bytes { dsn: data.start.get(), len_bytes: data.len() }
}

fn millis(time: Time) -> f64 {
    time.since(Time::ZERO).as_millis_f64()
}

/// Returns `late - early` in milliseconds; negative if `late` is before `early`.
fn difference(late: Time, early: Time) -> f64 {
    if late >= early {
        late.since(early).as_millis_f64()
    } else {
        -early.since(late).as_millis_f64()
    }
}

fn numbers(noted: &[Number]) -> BTreeMap<String, f64> {
    let name = |number: &Number| match number.subflow {
        Some(id) => format!("{}.{id}", number.name),
        None => number.name.to_owned(),
    };
    noted.iter().map(|number| (name(number), number.value)).collect()
}

const fn carry(carry: Carry) -> &'static str {
    match carry {
        Carry::New => "new",
        Carry::Retransmission => "retransmission",
        Carry::TailProbe => "tail-probe",
        Carry::Reinjection => "reinjection",
        Carry::Redundant => "redundant",
        Carry::Opportunistic => "opportunistic",
    }
}
