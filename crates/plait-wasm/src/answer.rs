//! The answer to a comparison.

use plait_lab::{Control, Scenario, ScenarioError, Simulator};
use plait_report::render::comparison::Parts;
use serde::Serialize;
use std::sync::atomic::AtomicBool;

/// The lines that repeat a comparison elsewhere.
#[derive(Serialize, Debug)]
pub struct Lines {
    /// The command line.
    pub command: String,
    /// The call in Python.
    pub python: String,
    /// The rows: a name for each scheduler, and `tcp:PATH` for each path.
    pub rows: Vec<String>,
    /// Name of each path.
    pub paths: Vec<String>,
}

impl Lines {
    /// Returns the lines of a scenario.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Lines {
        Lines {
            command: scenario.command_line(),
            python: crate::python::call(scenario),
            rows: plait_lab::cells(scenario).iter().map(ToString::to_string).collect(),
            paths: scenario.paths.iter().map(|path| path.name.clone()).collect(),
        }
    }
}

/// The answer.
#[derive(Serialize, Debug)]
pub struct Answer {
    /// The digest of `plait compare --json`.
    pub digest: String,
    /// The table, and the sentences around it.
    pub parts: Option<Parts>,
    /// Why runs did not finish: row, seed and reason, at most one for each row.
    pub failures: Vec<String>,
    /// The commands.
    #[serde(flatten)]
    pub lines: Lines,
}

/// Compares the schedulers of a scenario. `progress` receives the number of ended runs and of all runs.
///
/// # Errors
/// As [`plait_lab::compare`].
pub fn compare(
    scenario: &Scenario,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<Answer, ScenarioError> {
    let cancelled = AtomicBool::new(false);
    let control = Control { progress, ..Control::unwatched(&cancelled) };
    let document =
        plait_lab::compare(scenario, &Simulator, &control, &plait_lab::scenario::no_files)?;
    let rows = document.reports().iter().flat_map(|report| &report.rows);
    let failures = rows.filter_map(|row| {
        let first = row.failures.first()?;
        Some(format!("{}, seed {}: {}", row.scheduler, first.seed, first.reason))
    });
    Ok(Answer {
        digest: document.digest.clone(),
        parts: Parts::of(&document),
        failures: failures.collect(),
        lines: Lines::of(scenario),
    })
}
