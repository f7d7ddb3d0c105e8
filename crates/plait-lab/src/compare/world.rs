//! What runs a cell, what a run gives, and who looks on.

use super::Cell;
use crate::scenario::Scenario;
use plait_app::Measures;
use plait_app::measure::Habits;
use plait_base::Span;
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// What one run gave.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunOutcome {
    /// What was measured. Paths are those of the scenario, in its order, in a single-path run too.
    pub measures: Measures,
    /// Goodput in Mbit/s of each flow that competed, from its start to the end of the run: a list for
    /// each of [`Scenario::compete`].
    pub competing: Vec<Vec<f64>>,
    /// How it spent its time, where somebody looked.
    pub habits: Option<Habits>,
    /// From the start of its application to its end; as JSON in nanoseconds.
    #[serde(rename = "length_ns")]
    pub length: Span,
    /// Running hash over every segment sent and delivered.
    pub hash: u64,
    /// Whether the workload finished before the deadline.
    pub completed: bool,
    /// That its connection broke, when and why, in words.
    pub broke: Option<String>,
    /// The first violation of an invariant, in words, where they are checked.
    pub violation: Option<String>,
}

impl RunOutcome {
    /// Whether its measures count: it finished, and nothing was wrong with it.
    #[must_use]
    pub const fn counts(&self) -> bool {
        self.completed && self.violation.is_none()
    }

    /// Why its measures do not count, in words.
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

/// What runs a cell: the simulator, or a stand-in.
pub trait World: Sync {
    /// Runs a cell once. The same cell and seed give the same outcome.
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome;

    /// Runs a cell as [`World::run`] does. Returns `None` if `cancelled` becomes true before the end. A
    /// world with long runs looks at it within a run; by default nothing does.
    fn run_unless(&self, cell: &Cell, seed: u64, cancelled: &AtomicBool) -> Option<RunOutcome> {
        let _ = cancelled;
        Some(self.run(cell, seed))
    }

    /// Whether reports get a record of every run. They take about 1 kB each.
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

    fn keeps_runs(&self) -> bool {
        true
    }
}

/// A run that has ended.
#[derive(Clone, Copy, Debug)]
pub struct EndedRun<'a> {
    /// What was run.
    pub cell: &'a Cell,
    /// Its place in [`cells`](super::cells): the row of the report.
    pub row: usize,
    /// The number of the run, from 0.
    pub run: u32,
    /// The seed of the run: [`run_seed`](super::run_seed).
    pub seed: u64,
    /// What it gave.
    pub outcome: &'a RunOutcome,
}

/// How a comparison is watched and stopped. All functions are called from several threads.
#[derive(Clone, Copy)]
pub struct Control<'a> {
    /// Called after every run: how many runs have ended, and how many there are.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Called after every run of a comparison, before `progress`, in the order in which runs end. Runs of
    /// a sweep are told apart by the scenario of their cell.
    pub each_run: &'a (dyn Fn(EndedRun<'_>) + Sync),
    /// Once true, no further run begins, a run in the simulator stops within
    /// [`plait_sim::EVENTS_BETWEEN_LOOKS`] events, and the runs that have ended are reported.
    pub cancelled: &'a AtomicBool,
}

impl<'a> Control<'a> {
    /// A comparison that nobody watches.
    #[must_use]
    pub const fn unwatched(cancelled: &'a AtomicBool) -> Control<'a> {
        Control { progress: &|_, _| (), each_run: &|_| (), cancelled }
    }
}
