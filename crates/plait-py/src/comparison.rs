//! `plait.compare`.

use crate::draft::Draft;
use crate::error::refused;
use crate::file;
use crate::table::{Datum, Rows, Table};
use crate::work::{Watched, interruptible};
use plait_lab::stats::Summary;
use plait_lab::{
    Attentive, ComparisonDocument, Control, KeepRuns, Report, Row, RunRecord, Simulator,
};
use plait_report::render::comparison;
use pyo3::prelude::*;

/// The outcome of a comparison.
#[pyclass(frozen, eq, module = "plait._plait")]
#[derive(PartialEq)]
pub(crate) struct Comparison(ComparisonDocument);

/// A run as Python keeps it: row, number, seed, failure and values.
type KeptRun = (usize, u32, u64, Option<String>, Vec<(String, f64)>);

/// Runs every row of the scenario with every seed. `progress` is called with the number of ended runs and their
/// total.
#[pyfunction]
#[pyo3(signature = (draft, explain=false, progress=None))]
pub(crate) fn compare(
    py: Python<'_>,
    draft: &Draft,
    explain: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let scenario = draft.compared()?;
    let compared = interruptible(py, progress, move |shared| {
        let advance = |done: usize, total: usize| shared.advance(done, total);
        let control = Control { progress: &advance, ..Control::unwatched(&shared.cancelled) };
        if explain {
            let world = Watched { world: KeepRuns(Attentive), task: shared };
            return plait_lab::compare(&scenario, &world, &control, &file::named);
        }
        let world = Watched { world: KeepRuns(Simulator), task: shared };
        plait_lab::compare(&scenario, &world, &control, &file::named)
    })?;
    let mut document = compared.map_err(refused)?;
    if explain {
        document.commands().for_each(|command| command.push_str(" --explain"));
    }
    match document.violation() {
        Some(violation) => Err(refused(format!("internal error, please report it: {violation}"))),
        None => Ok(Comparison(document)),
    }
}

#[pymethods]
impl Comparison {
    /// SHA-256 over the measures and the segments of every run, as `plait compare --json` has it.
    #[getter]
    fn digest(&self) -> &str {
        &self.0.digest
    }

    /// The command line that gives the same digest.
    #[getter]
    fn command(&self) -> &str {
        &self.0.command
    }

    /// The verdict of each point.
    #[getter]
    fn verdicts(&self) -> Vec<String> {
        comparison::verdicts(&self.0)
    }

    /// The expectations that do not hold, in words; empty if all hold.
    #[getter]
    fn broken(&self) -> String {
        if self.0.holds() { String::new() } else { comparison::broken(&self.0) }
    }

    /// Returns the document of `plait compare --json`.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.0).map_err(refused)
    }

    /// Returns what [`Comparison::of_parts`] takes: the document (JSON), and the runs of each point.
    fn parts(&self) -> PyResult<(String, Vec<Vec<KeptRun>>)> {
        let runs = |report: &Report| {
            let runs = report.each_run.iter().cloned();
            runs.map(|it| (it.row, it.run, it.seed, it.failure, it.values)).collect()
        };
        let parts = (self.json()?, self.0.points.iter().map(runs).collect::<Vec<_>>());
        if Comparison::of_parts(&parts.0, parts.1.clone())? != *self {
            return Err(refused("internal error, please report it: the result cannot be kept"));
        }
        Ok(parts)
    }

    /// Returns the outcome with these parts.
    #[staticmethod]
    fn of_parts(document: &str, runs: Vec<Vec<KeptRun>>) -> PyResult<Comparison> {
        let mut document: ComparisonDocument = serde_json::from_str(document).map_err(refused)?;
        for (report, runs) in document.points.iter_mut().zip(runs) {
            let run =
                |(row, run, seed, failure, values)| RunRecord { row, run, seed, failure, values };
            report.each_run = runs.into_iter().map(run).collect();
        }
        Ok(Comparison(document))
    }

    /// Returns the report of the terminal.
    #[pyo3(signature = (width, colour=false))]
    fn text(&self, width: usize, colour: bool) -> String {
        comparison::text(&self.0, width, colour)
    }

    /// Returns the report in Markdown.
    fn markdown(&self) -> String {
        comparison::markdown(&self.0)
    }

    /// Returns a line for each number of each row, or for each run.
    fn csv(&self, per_run: bool) -> String {
        if per_run { comparison::csv_of_runs(&self.0) } else { comparison::csv(&self.0) }
    }

    /// Returns the rows of all points as a table.
    fn rows(&self) -> PyResult<Table> {
        let mut rows = Rows::default();
        for report in self.0.reports() {
            for row in &report.rows {
                self.place(report, &mut rows);
                fill(report, row, &mut rows);
                rows.end_row();
            }
        }
        rows.finish()
    }

    /// Returns every run as a table.
    fn runs(&self) -> PyResult<Table> {
        let mut rows = Rows::default();
        for report in self.0.reports() {
            for run in &report.each_run {
                self.place(report, &mut rows);
                let row = report.rows.get(run.row);
                let text = |of: fn(&Row) -> &String| {
                    row.map_or(Datum::Absent, |row| Datum::Text(of(row).clone()))
                };
                rows.set("scheduler", text(|row| &row.scheduler));
                rows.set("cc", text(|row| &row.cc));
                rows.set("run", Datum::Whole(run.run.into()));
                rows.set("seed", Datum::Count(run.seed));
                rows.set("completed", Datum::Switch(run.failure.is_none()));
                rows.set("failure", Datum::Text(run.failure.clone().unwrap_or_default()));
                run.values.iter().for_each(|(name, it)| rows.set(name, Datum::Number(*it)));
                rows.end_row();
            }
        }
        rows.finish()
    }
}

impl Comparison {
    /// Sets the columns of the varied settings.
    fn place(&self, report: &Report, rows: &mut Rows) {
        for varied in &self.0.varied {
            let value = report.vary.get(&varied.name).cloned();
            rows.set(&varied.name, value.map_or(Datum::Absent, Datum::Text));
        }
    }
}

/// Sets the columns of a row: all statistics of the primary measure, and the medians of the other measures.
fn fill(report: &Report, row: &Row, rows: &mut Rows) {
    let number = |value: Option<f64>| value.map_or(Datum::Absent, Datum::Number);
    let whole = |value: Option<u32>| value.map_or(Datum::Absent, |it| Datum::Whole(it.into()));
    let primary = report.primary_measure.as_str();
    let main = row.measures.get(primary);
    rows.set("scheduler", Datum::Text(row.scheduler.clone()));
    rows.set("cc", Datum::Text(row.cc.clone()));
    rows.set("group", whole(row.standing.group));
    rows.set("runs", whole(main.map(|it| it.n)));
    rows.set("incomplete", whole(Some(row.incomplete)));
    rows.set(primary, number(main.map(|it| it.median)));
    for (name, of) in STATISTICS {
        rows.set(&format!("{primary}.{name}"), number(main.map(of)));
    }
    let messages = row.messages.as_ref();
    if messages.is_some() {
        rows.set("messages.median_ms", number(messages.map(|it| it.median_ms)));
        rows.set("messages.p95_ms", number(messages.map(|it| it.p95_ms)));
        rows.set("messages.p99_ms", number(messages.map(|it| it.p99_ms)));
        rows.set("messages.max_ms", number(messages.map(|it| it.max_ms)));
    }
    let standing = &row.standing;
    rows.set("speedup_vs_best_path", number(standing.speedup_vs_best_path));
    rows.set("of_bound", number(standing.of_bound));
    rows.set("aggregation_benefit", number(standing.aggregation_benefit));
    for (name, it) in row.measures.iter().filter(|(name, _)| *name != primary) {
        rows.set(name, Datum::Number(it.median));
    }
    for (name, it) in &row.competing {
        rows.set(&format!("competing_mbps.{name}"), Datum::Number(it.median));
    }
    for (name, of_paths) in row.traffic.by_path() {
        for (path, it) in of_paths {
            rows.set(&format!("{name}.{path}"), Datum::Number(*it));
        }
    }
}

/// A statistic with its name.
type Statistic = (&'static str, fn(&Summary) -> f64);

/// The statistics of the primary measure, beside its median.
const STATISTICS: [Statistic; 6] = [
    ("mean", |it| it.mean),
    ("p95", |it| it.p95),
    ("min", |it| it.min),
    ("max", |it| it.max),
    ("ci95_low", |it| it.ci95[0]),
    ("ci95_high", |it| it.ci95[1]),
];
