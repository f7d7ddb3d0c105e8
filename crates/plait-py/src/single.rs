//! `plait.run`.

use crate::draft::Draft;
use crate::ending::detached;
use crate::error::refused;
use crate::scheduler::class_of;
use crate::table::{Datum, Rows, Table};
use crate::work::interruptible;
use plait_lab::{Cell, Subject, simulate_unless};
use plait_report::Watchers;
use plait_report::events::EventLog;
use plait_report::page;
use plait_report::recorder::Recorder;
use plait_report::run::Report;
use plait_sim::Watch;
use pyo3::prelude::*;
use serde_json::{Map, Value};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The outcome of one run.
#[pyclass(frozen, module = "plait._plait")]
pub(crate) struct RunReport {
    cell: Cell,
    report: Report,
    /// The events as JSON lines, if they are kept.
    events: Option<Vec<u8>>,
}

/// A log in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Only an interrupt cancels a task, and then `interruptible` has returned its exception.
const CANCELLED: &str = "cancelled";

/// Makes one run of the scenario. If `events` is set, the events are kept.
#[pyfunction]
#[pyo3(signature = (draft, events=false))]
pub(crate) fn run(py: Python<'_>, draft: &Draft, events: bool) -> PyResult<RunReport> {
    let cell = draft.one("plait run")?;
    let ran = interruptible(py, None, move |shared| watched(&cell, events, &shared.cancelled))?;
    ran.unwrap_or_else(|| Err(CANCELLED.to_owned())).map_err(refused)
}

/// Makes a run. Returns `None` if it was cancelled.
pub(crate) fn watched(
    cell: &Cell,
    events: bool,
    cancelled: &std::sync::atomic::AtomicBool,
) -> Option<Result<RunReport, String>> {
    let scenario = &cell.scenario;
    let names: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
    let mut recorder = Recorder::new(scenario.workload.sender(), names.iter().map(String::as_str));
    let kept = Log::default();
    let mut log =
        events.then(|| EventLog::into_writer(Path::new("memory"), Box::new(kept.clone()), &names));
    let mut watchers = Watchers(vec![&mut recorder]);
    watchers.0.extend(log.as_mut().map(|log| log as &mut dyn Watch));
    let outcome = simulate_unless(cell, scenario.seed, &mut watchers, cancelled)?;
    if let Some(Err(error)) = log.map(EventLog::finish) {
        return Some(Err(error.to_string()));
    }
    if let Some(violation) = outcome.violation {
        let text = format!("internal error, please report it: invariant violated: {violation}");
        return Some(Err(text));
    }
    let report = Report::of(cell, outcome, recorder, cell.command_line("plait run"), false);
    let lines = std::mem::take(&mut *kept.0.lock().unwrap_or_else(PoisonError::into_inner));
    Some(Ok(RunReport { cell: cell.clone(), report, events: events.then_some(lines) }))
}

#[pymethods]
impl RunReport {
    /// Hash over every segment sent and delivered, as `plait run --json` has it.
    #[getter]
    fn digest(&self) -> &str {
        &self.report.document.segment_hash
    }

    /// The command line that repeats the run.
    #[getter]
    fn command(&self) -> &str {
        &self.report.document.command
    }

    /// Returns the document of `plait run --json`.
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.report.document).map_err(refused)
    }

    /// Returns the report of the terminal.
    #[pyo3(signature = (width, colour=false))]
    fn text(&self, width: usize, colour: bool) -> String {
        self.report.to_text(width, colour)
    }

    /// Returns what repeats the run: its scenario (TOML), whether it keeps its events, and the class that its scheduler is.
    fn recipe(&self, py: Python<'_>) -> (String, bool, Option<Py<PyAny>>) {
        let class = match &self.cell.subject {
            Subject::Scheduler(spec) => class_of(py, spec),
            Subject::SinglePath(_) => None,
        };
        (self.cell.scenario.to_toml(), self.events.is_some(), class)
    }

    /// Repeats the run, and returns the numbers of its drawings (JSON).
    fn drawings(&self, py: Python<'_>) -> PyResult<String> {
        let cell = self.cell.clone();
        let seen = interruptible(py, None, move |shared| {
            let mut collector = page::collector(&cell.scenario);
            let seed = cell.scenario.seed;
            simulate_unless(&cell, seed, &mut collector, &shared.cancelled).map(|_| collector)
        })?;
        let seen = seen.ok_or_else(|| refused(CANCELLED))?;
        page::numbers(&self.report.document, seen).map_err(refused)
    }

    /// Returns the events as a table, or None if they were not kept. A list in an event is its JSON text.
    fn events(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        detached(py, || self.events.as_deref().map(table_of).transpose())?
    }
}

fn table_of(lines: &[u8]) -> PyResult<Table> {
    let mut rows = Rows::default();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let event: Map<String, Value> = serde_json::from_slice(line).map_err(refused)?;
        event.iter().for_each(|(name, value)| rows.set(name, Datum::of_json(value)));
        rows.end_row();
    }
    rows.finish()
}
