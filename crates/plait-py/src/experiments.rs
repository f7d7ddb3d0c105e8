//! `plait.experiment`.

use crate::error::refused;
use crate::file;
use crate::table::{Datum, Rows, Table};
use crate::work::{Watched, interruptible};
use plait_lab::experiment::{
    Experiment, Looks, Misses, Progress, Results, Store, Unsettled, again, experiments, settle,
};
use plait_lab::{Simulator, run_seed};
use plait_report::papers::figures;
use plait_report::render::reproduction as render;
use plait_report::reproduction::{LeftOut, Made, ReproductionDocument};
use pyo3::prelude::*;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Default of `more`: an undecided claim gets at most this many times the runs of its file. In a quick run it gets
/// those of the file.
const FULL_TIMES: u32 = 8;

/// The settings of a run of an experiment.
#[derive(Clone, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Making {
    quick: bool,
    seed: u64,
    /// Largest factor on the runs of the file.
    more: Option<u32>,
    /// Number of further seeds for the claims that hold.
    again: u32,
    jobs: Option<NonZeroUsize>,
    /// Directory of finished runs; `None` keeps them in memory.
    cache: Option<PathBuf>,
}

/// The outcome of an experiment.
#[pyclass(frozen, module = "plait._plait")]
pub(crate) struct ExperimentReport {
    results: Vec<Results>,
    document: ReproductionDocument,
}

/// Returns the built-in experiments, as `plait experiment list --json` does.
#[pyfunction]
pub(crate) fn list_experiments() -> PyResult<String> {
    let all = experiments(None).map_err(refused)?;
    Ok(plait_cli::list_of_experiments(&all).to_string())
}

/// Runs an experiment, a built-in one or a file, and judges its claims. `progress` is called with the number of ended
/// runs and their total.
#[pyfunction]
#[pyo3(signature = (name, making, progress=None))]
pub(crate) fn experiment(
    py: Python<'_>,
    name: &str,
    making: Making,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<ExperimentReport> {
    let experiment = plait_cli::experiment(name).map_err(refused)?;
    let command = command_of(name, &making);
    let made = interruptible(py, progress, move |shared| {
        let told = |done: usize, total: usize, _: &str| shared.advance(done, total);
        let progress = Progress { told: &told, cancelled: &shared.cancelled, jobs: making.jobs };
        let made =
            make(&experiment, &making, &Watched { world: Simulator, task: shared }, &progress);
        made.map(|made| {
            let (schema, quick) = ("plait.experiment/1", making.quick);
            let document =
                ReproductionDocument::of(schema, command.clone(), &made, quick, Vec::new());
            ExperimentReport { results: made.settled.results, document }
        })
    })?;
    made.map_err(refused)
}

/// Returns the command line that gives the same document.
fn command_of(name: &str, making: &Making) -> String {
    let mut command = format!("plait experiment run {name}");
    if making.quick {
        command.push_str(" --quick");
    }
    if making.seed != 1 {
        command += &format!(" --seed {}", making.seed);
    }
    if let Some(more) = making.more {
        command += &format!(" --more {more}");
    }
    if making.again > 0 {
        command += &format!(" --again {}", making.again);
    }
    command
}

fn make(
    experiment: &Experiment,
    making: &Making,
    world: &Watched<'_, Simulator>,
    progress: &Progress<'_>,
) -> Result<Made, String> {
    let misses = Misses::embedded().map_err(|error| error.to_string())?.of_run(making.quick);
    let looks = Looks {
        seed: making.seed,
        quick: making.quick,
        claims_only: false,
        most: making.more.unwrap_or(if making.quick { 1 } else { FULL_TIMES }),
        misses: &misses,
        read: &file::named,
    };
    let store = making.store()?;
    let failure = |error: Unsettled| match error {
        Unsettled::Plan(error) => error.to_string(),
        Unsettled::Store(error) => format!("cache: {error}"),
    };
    let experiments = std::slice::from_ref(experiment);
    let settled = settle(experiments, &looks, world, &store, progress).map_err(failure)?;
    let (judged, times) = (&settled.judged, making.again);
    let repeated = again(experiments, judged, &looks, times, world, &store, progress);
    let repeated = repeated.map_err(failure)?;
    let left_out = match settled.results.is_empty() && making.quick {
        true => vec![LeftOut::from(experiment)],
        false => Vec::new(),
    };
    let seed = making.seed;
    Ok(Made { settled, repeated, ablated: Vec::new(), left_out, seed, interrupted: false })
}

impl Making {
    fn store(&self) -> Result<Store, String> {
        let version = plait_report::program();
        let Some(directory) = &self.cache else { return Ok(Store::in_memory(&version)) };
        let place = directory.display();
        Store::in_directory(directory, &version)
            .map_err(|error| format!("cache: `{place}`: {}", plait_lab::unreadable(&error)))
    }
}

#[pymethods]
impl ExperimentReport {
    /// The command line that gives the same document.
    #[getter]
    fn command(&self) -> &str {
        &self.document.command
    }

    /// The claims that make the command fail, a line for each.
    #[getter]
    fn broken(&self) -> Vec<String> {
        self.document.broken()
    }

    /// Returns the document of `plait experiment run --json`.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.document).map_err(refused)
    }

    /// Returns the report of the terminal.
    #[pyo3(signature = (width, colour=false))]
    fn text(&self, width: usize, colour: bool) -> String {
        render::experiment(&self.results, &self.document, width, colour)
    }

    /// Returns the report in Markdown.
    fn markdown(&self) -> String {
        render::experiment_markdown(&self.results, &self.document)
    }

    /// Returns a line for each measure of each cell (CSV).
    fn csv(&self) -> String {
        render::csv_of_cells(&self.results, &self.document)
    }

    /// Returns each figure: name, title, note and drawing (SVG).
    fn figures(&self) -> Vec<(String, String, String, String)> {
        figures(&self.results)
    }

    /// Returns every cell with the medians of its measures.
    fn cells(&self) -> PyResult<Table> {
        let mut rows = Rows::default();
        for one in &self.results {
            for cell in 0..one.plan.cells.len() {
                place(one, cell, &mut rows);
                rows.set("runs", Datum::Whole(one.made(cell) as i64));
                for measure in one.measures() {
                    let summary = one.summary(cell, &measure);
                    rows.set(
                        &measure,
                        summary.map_or(Datum::Absent, |it| Datum::Number(it.median)),
                    );
                }
                rows.end_row();
            }
        }
        rows.finish()
    }

    /// Returns every run of every cell.
    fn runs(&self) -> PyResult<Table> {
        let mut rows = Rows::default();
        for one in &self.results {
            for (cell, records) in one.runs.iter().enumerate() {
                let seed = one.plan.cells.get(cell).map_or(0, |it| it.cell.scenario.seed);
                for (run, record) in (0u32..).zip(records) {
                    let Some(record) = record else { continue };
                    place(one, cell, &mut rows);
                    rows.set("run", Datum::Whole(run.into()));
                    rows.set("seed", Datum::Count(run_seed(seed, run)));
                    rows.set("completed", Datum::Switch(record.failure.is_none()));
                    let failure = record.failure.clone().unwrap_or_default();
                    rows.set("failure", Datum::Text(failure));
                    record.values.iter().for_each(|(name, it)| rows.set(name, Datum::Number(*it)));
                    rows.end_row();
                }
            }
        }
        rows.finish()
    }
}

/// Sets the columns of a cell: its experiment, its row and its point of each axis.
fn place(results: &Results, cell: usize, rows: &mut Rows) {
    let experiment = &results.plan.experiment;
    let Some(planned) = results.plan.cells.get(cell) else { return };
    rows.set("experiment", Datum::Text(experiment.id.clone()));
    let row = experiment.rows.get(planned.row).map(|row| row.name.clone());
    rows.set("row", row.map_or(Datum::Absent, Datum::Text));
    for (axis, point) in experiment.axes.iter().zip(&planned.at) {
        let text = axis.points.get(*point).map(|point| point.text.clone());
        rows.set(&axis.name, text.map_or(Datum::Absent, Datum::Text));
    }
}
