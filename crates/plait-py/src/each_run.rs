//! `plait.runs`: the runs of a comparison one after the other, without a report.

use crate::draft::Draft;
use crate::error::{Error, refused};
use crate::file;
use crate::work::{Watched, interruptible};
use plait_lab::{Cell, Point, RunOutcome, Simulator, World, cells, run_seed};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::thread;

/// A run that is due.
#[derive(Clone)]
struct Due {
    cell: Cell,
    vary: Vec<(String, String)>,
    run: u32,
    seed: u64,
}

/// An iterator over runs, seed by seed. It makes as many runs at a time as there are cores, or `jobs`.
#[pyclass(module = "plait._plait")]
pub(crate) struct EachRun {
    points: Vec<Point>,
    jobs: usize,
    /// Index of the point, of the run and of the row that comes next.
    next: (usize, u32, usize),
    made: VecDeque<(Due, RunOutcome)>,
}

#[pymethods]
impl EachRun {
    #[new]
    fn new(draft: &Draft) -> PyResult<EachRun> {
        let scenario = draft.compared()?;
        for (refused, problem) in [
            (scenario.budget.precision.is_some(), "until: `ci=` needs all runs"),
            (!scenario.expect.is_empty(), "expect: an expectation needs all runs"),
        ] {
            if refused {
                return Err(Error::new_err(format!("{problem}\n  allowed: plait.compare(...)")));
            }
        }
        let mut points = scenario.points(&file::named).map_err(refused)?;
        if points.is_empty() {
            points.push(Point { values: Vec::new(), scenario: scenario.clone() });
        }
        points.iter_mut().for_each(|point| point.scenario = point.scenario.compared());
        let jobs = scenario.budget.jobs.or_else(|| thread::available_parallelism().ok());
        let jobs = jobs.map_or(1, NonZeroUsize::get);
        Ok(EachRun { points, jobs, next: (0, 0, 0), made: VecDeque::new() })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        if self.made.is_empty() {
            let (jobs, before) = (self.jobs, self.next);
            let due: Vec<Due> = std::iter::from_fn(|| self.advance()).take(jobs).collect();
            let made = interruptible(py, None, move |shared| {
                let world = Watched { world: Simulator, task: shared };
                let run = |due: &Due| world.run_unless(&due.cell, due.seed, &shared.cancelled);
                let run = &run;
                thread::scope(|scope| {
                    let made: Vec<_> =
                        due.iter().map(|due| scope.spawn(move || run(due))).collect();
                    let ended = made.into_iter().map(|it| it.join().ok().flatten());
                    due.iter().cloned().zip(ended).collect::<Vec<_>>()
                })
            });
            // After an interrupt, the next call makes the same runs.
            let made = made.inspect_err(|_| self.next = before)?.into_iter();
            let ended = made.map(|(due, outcome)| {
                let text = "internal error, please report it: the run has panicked";
                Ok((due, outcome.ok_or_else(|| refused(text))?))
            });
            self.made = ended.collect::<PyResult<_>>()?;
        }
        self.made.pop_front().map(|(due, outcome)| record(py, &due, &outcome)).transpose()
    }
}

impl EachRun {
    /// Returns the run that comes next.
    fn advance(&mut self) -> Option<Due> {
        loop {
            let (at, run, row) = self.next;
            let point = self.points.get(at)?;
            if run >= point.scenario.effective_runs() {
                self.next = (at + 1, 0, 0);
                continue;
            }
            let Some(cell) = cells(&point.scenario).into_iter().nth(row) else {
                self.next = (at, run + 1, 0);
                continue;
            };
            self.next = (at, run, row + 1);
            let seed = run_seed(point.scenario.seed, run);
            return Some(Due { cell, vary: point.values.clone(), run, seed });
        }
    }
}

/// Returns a run as a dictionary, with the keys of `plait compare --format csv --per-run`.
fn record<'py>(py: Python<'py>, due: &Due, outcome: &RunOutcome) -> PyResult<Bound<'py, PyDict>> {
    let record = PyDict::new(py);
    for (name, value) in &due.vary {
        record.set_item(name, value)?;
    }
    let failure = outcome.failure(&due.cell.scenario);
    record.set_item("scheduler", due.cell.to_string())?;
    record.set_item("cc", due.cell.cc.name())?;
    record.set_item("run", due.run)?;
    record.set_item("seed", due.seed)?;
    record.set_item("completed", failure.is_none())?;
    record.set_item("failure", failure.unwrap_or_default())?;
    for (name, value) in outcome.values(&due.cell.scenario) {
        record.set_item(name, value)?;
    }
    Ok(record)
}
