//! `plait.sweep`: the plan of a scenario or an experiment, and the work on some of its runs.

use crate::draft::Draft;
use crate::ending::detached;
use crate::error::{Error, refused};
use crate::sweep_source::{Placed, Source};
use crate::work::interruptible;
use plait_lab::{Address, run_seed};
use pyo3::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// A cell and a range of its runs, of which the end is excluded.
pub(crate) type Unit = (usize, u32, u32);

/// Columns of every run, which no varied setting replaces.
const OWN_COLUMNS: [&str; 9] =
    ["scenario", "row", "scheduler", "cc", "run", "seed", "completed", "failure", "segment_hash"];

/// A cell without its scenario.
pub(crate) struct Entry {
    values: Vec<(String, String)>,
    row: Option<String>,
    pub(crate) scheduler: String,
    pub(crate) cc: String,
    pub(crate) seed: u64,
    pub(crate) runs: u32,
    address: Address,
}

impl Entry {
    fn of(placed: &Placed) -> Entry {
        let cell = placed.cell();
        Entry {
            values: placed.values.clone(),
            row: placed.row.clone(),
            scheduler: cell.to_string(),
            cc: cell.cc.name().to_owned(),
            seed: cell.scenario.seed,
            runs: placed.runs,
            address: placed.address,
        }
    }

    /// Returns the columns with the place of the cell. A varied scheduler or controller has a column anyway.
    pub(crate) fn places(&self) -> impl Iterator<Item = (&str, &str)> {
        let values = self.values.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let row = self.row.as_deref().map(|row| ("row", row));
        values.filter(|(name, _)| !OWN_COLUMNS.contains(name)).chain(row)
    }

    /// Returns the content address of a run.
    pub(crate) fn key(&self, run: u32, program: &str) -> String {
        self.address.of_run(run_seed(self.seed, run), program)
    }
}

/// The cells of a scenario or an experiment.
#[pyclass(frozen, module = "plait._plait")]
pub(crate) struct Plan {
    source: Source,
    pub(crate) entries: Vec<Entry>,
    /// The command line that makes the same runs.
    #[pyo3(get)]
    command: String,
}

#[pymethods]
impl Plan {
    /// Returns the plan of a scenario, which the manifest calls `name`.
    #[staticmethod]
    fn of_scenario(py: Python<'_>, draft: &Draft, name: &str) -> PyResult<Plan> {
        // Errors name the places in the user's own file.
        let scenario = draft.compared()?;
        scenario.points(&crate::file::named).map_err(refused)?;
        let (text, command) = (draft.given()?.to_toml(), scenario.command_line());
        let (name, files) = (name.to_owned(), BTreeMap::new());
        let source = Source { experiment: false, name, text, files, seed: 0, quick: false };
        detached(py, || Plan::of(source, command))?
    }

    /// Returns the plan of an experiment, by its file or its name.
    #[staticmethod]
    fn of_experiment(py: Python<'_>, name: &str, seed: u64, quick: bool) -> PyResult<Plan> {
        let source = Source::experiment(name, seed, quick)?;
        let mut command = format!("plait experiment run {name}");
        command += if quick { " --quick" } else { "" };
        command += &if seed == 1 { String::new() } else { format!(" --seed {seed}") };
        detached(py, || Plan::of(source, command))?
    }

    /// The name of the file, or of the scenario in a list.
    #[getter]
    pub(crate) fn name(&self) -> &str {
        &self.source.name
    }

    /// The texts from which a worker makes the cells.
    #[getter]
    fn source(&self) -> Source {
        self.source.clone()
    }

    /// The seed of the first run of each cell.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.entries.first().map(|entry| entry.seed)
    }

    /// The number of cells.
    #[getter]
    fn cells(&self) -> usize {
        self.entries.len()
    }

    /// The number of runs.
    #[getter]
    fn runs(&self) -> u64 {
        self.entries.iter().map(|entry| u64::from(entry.runs)).sum()
    }

    /// The columns with the place of a cell: the varied settings, or the axes and the row of an experiment.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let names =
            self.entries.first().map(|entry| entry.places().map(|(name, _)| name.to_owned()));
        names.into_iter().flatten().collect()
    }

    /// Returns the content address of a unit: the first 32 hexadecimal digits of a SHA-256 over the addresses of its runs.
    fn address(&self, unit: Unit, program: &str) -> PyResult<String> {
        let entry = self.entry(unit)?;
        let mut hasher = Sha256::new();
        (unit.1..unit.2).for_each(|run| hasher.update(entry.key(run, program)));
        Ok(hasher.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect())
    }

    /// Returns a unit in words.
    fn describe(&self, unit: Unit) -> PyResult<String> {
        let entry = self.entry(unit)?;
        let mut text = format!("{}: {}", self.source.name, entry.scheduler);
        entry.values.iter().for_each(|(name, value)| text += &format!(", {name}={value}"));
        Ok(text + &format!(", runs {} to {}", unit.1, unit.2.saturating_sub(1)))
    }
}

impl Plan {
    fn of(mut source: Source, command: String) -> PyResult<Plan> {
        let entries = source.cells_and_files()?.iter().map(Entry::of).collect();
        Ok(Plan { source, entries, command })
    }

    pub(crate) fn entry(&self, (cell, first, end): Unit) -> PyResult<&Entry> {
        let entry = self.entries.get(cell).filter(|entry| first < end && end <= entry.runs);
        entry.ok_or_else(|| Error::new_err("the sweep has no such unit"))
    }
}

/// Returns the name of this program in the addresses of runs.
#[pyfunction]
pub(crate) fn program() -> String {
    plait_report::program()
}

/// The cells of a source in a worker.
#[pyclass(frozen, module = "plait._plait")]
pub(crate) struct Work {
    cells: std::sync::Arc<Vec<(Placed, Entry)>>,
}

#[pymethods]
impl Work {
    #[new]
    fn new(py: Python<'_>, source: Source) -> PyResult<Work> {
        let cells = detached(py, move || source.cells())??;
        let cells = cells.into_iter().map(|placed| {
            let entry = Entry::of(&placed);
            (placed, entry)
        });
        Ok(Work { cells: std::sync::Arc::new(cells.collect()) })
    }

    /// Makes the runs of units on `jobs` threads. Returns a line for each run, in the order of the units.
    #[pyo3(signature = (units, jobs, progress=None))]
    fn run(
        &self,
        py: Python<'_>,
        units: Vec<Unit>,
        jobs: usize,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<String>> {
        let mut due = Vec::new();
        for (cell, first, end) in units {
            let known = self.cells.get(cell).filter(|(_, entry)| end <= entry.runs);
            known.ok_or_else(|| Error::new_err("the sweep has no such unit"))?;
            due.extend((first..end).map(|run| (cell, run)));
        }
        let (cells, total) = (std::sync::Arc::clone(&self.cells), due.len());
        let lines = interruptible(py, progress, move |shared| {
            let done = |count: usize| shared.advance(count, total);
            lines_of(&cells, &due, jobs, &shared.cancelled, &done)
        })?;
        lines.ok_or_else(|| refused("internal error, please report it: a run was cancelled"))
    }
}

/// Makes runs on several threads. Returns `None` if they were cancelled.
fn lines_of(
    cells: &[(Placed, Entry)],
    due: &[(usize, u32)],
    jobs: usize,
    cancelled: &AtomicBool,
    done: &(dyn Fn(usize) + Sync),
) -> Option<Vec<String>> {
    let program = plait_report::program();
    let lines: Vec<Mutex<Option<String>>> = due.iter().map(|_| Mutex::new(None)).collect();
    let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let worker = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let (Some((cell, run)), Some(slot)) = (due.get(at), lines.get(at)) else { return };
            let Some((placed, entry)) = cells.get(*cell) else { return };
            let Some(record) = placed.run(run_seed(entry.seed, *run), cancelled) else { return };
            let line = format!("{} {}", entry.key(*run, &program), record.to_line());
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
            done(ended.fetch_add(1, Ordering::Relaxed) + 1);
        }
    };
    let jobs = NonZeroUsize::new(jobs).map_or(1, NonZeroUsize::get).min(due.len().max(1));
    thread::scope(|scope| {
        (1..jobs).for_each(|_| drop(scope.spawn(worker)));
        worker();
    });
    lines
        .into_iter()
        .map(|line| line.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}
