//! Worlds that run cells, the outcome of a run, and the control of a comparison.

use super::Cell;
use crate::bound::Bound;
use crate::scenario::Scenario;
use plait_app::Measures;
use plait_app::measure::Habits;
use plait_base::Span;
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// The outcome of one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunOutcome {
    /// The measures. They have the paths of the scenario, in its order, even in a single-path run.
    pub measures: Measures,
    /// Goodput in Mbit/s of each competing flow, from its start to the end of the run: one list for each
    /// entry of [`Scenario::compete`].
    pub competing: Vec<Vec<f64>>,
    /// How the connection spent its time; `None` if the run was not watched.
    pub habits: Option<Habits>,
    /// Time from the start of the application to its end; in JSON in nanoseconds.
    #[serde(rename = "length_ns")]
    pub length: Span,
    /// Running hash over every segment sent and delivered.
    pub hash: u64,
    /// Whether the workload finished before the deadline.
    pub completed: bool,
    /// When and why the connection broke, in words.
    pub broke: Option<String>,
    /// The first violation of an invariant, in words, if invariants are checked.
    pub violation: Option<String>,
}

impl RunOutcome {
    /// Returns true if the measures count: the run finished and broke no invariant.
    #[must_use]
    pub const fn counts(&self) -> bool {
        self.completed && self.violation.is_none()
    }

    /// Returns why the measures do not count, in words.
    #[must_use]
    pub fn failure(&self, scenario: &Scenario) -> Option<String> {
        match (&self.violation, &self.broke) {
            (Some(violation), _) => Some(format!("invariant violated: {violation}")),
            (None, _) if self.completed => None,
            (None, Some(broke)) => Some(broke.clone()),
            (None, None) => Some(format!("not finished after {}", scenario.deadline())),
        }
    }
}

/// Runs cells: the simulator, or a test double.
pub trait World: Sync {
    /// Runs a cell once. The same cell and seed give the same outcome.
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome;

    /// Runs a cell as [`World::run`] does. Returns `None` if `cancelled` becomes true before the end. A world
    /// with long runs should check `cancelled` during a run; the default does not.
    fn run_unless(&self, cell: &Cell, seed: u64, cancelled: &AtomicBool) -> Option<RunOutcome> {
        let _ = cancelled;
        Some(self.run(cell, seed))
    }

    /// Returns the best values that any sender could reach in a run; `None` if they are unknown.
    fn bound(&self, cell: &Cell, seed: u64) -> Option<Bound> {
        let _ = (cell, seed);
        None
    }

    /// Returns true if reports keep a record of every run, about 1 kB each.
    fn keeps_runs(&self) -> bool {
        false
    }
}

/// A world whose reports have a record of every run ([`Report::each_run`](crate::Report::each_run)).
#[derive(Clone, Copy, Default, Debug)]
pub struct KeepRuns<W>(pub W);

impl<W: World> World for KeepRuns<W> {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        self.0.run(cell, seed)
    }

    fn run_unless(&self, cell: &Cell, seed: u64, cancelled: &AtomicBool) -> Option<RunOutcome> {
        self.0.run_unless(cell, seed, cancelled)
    }

    fn bound(&self, cell: &Cell, seed: u64) -> Option<Bound> {
        self.0.bound(cell, seed)
    }

    fn keeps_runs(&self) -> bool {
        true
    }
}

/// A run that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedRun<'a> {
    /// The cell that was run.
    pub cell: &'a Cell,
    /// Index of the cell in [`cells`](super::cells), which is the row of the report.
    pub row: usize,
    /// The number of the run, from 0.
    pub run: u32,
    /// The seed of the run: [`run_seed`](super::run_seed).
    pub seed: u64,
    /// The outcome of the run.
    pub outcome: &'a RunOutcome,
}

/// Reports the progress of a comparison and stops it. Several threads call the functions.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Called after every run with the number of ended runs and the total.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Called after every run of a comparison, before `progress`, in the order in which runs end. The
    /// scenario of the cell identifies the point of a sweep.
    pub each_run: &'a (dyn Fn(EndedRun<'_>) + Sync),
    /// Once true, no further run begins and a run in the simulator stops within
    /// [`plait_sim::EVENTS_BETWEEN_LOOKS`] events. The report then has the runs that ended.
    pub cancelled: &'a AtomicBool,
}

impl<'a> Control<'a> {
    /// Returns a control that reports nothing.
    #[must_use]
    pub const fn unwatched(cancelled: &'a AtomicBool) -> Control<'a> {
        Control { progress: &|_, _| (), each_run: &|_| (), cancelled }
    }
}
