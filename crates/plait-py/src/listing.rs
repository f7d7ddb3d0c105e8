//! `plait.decide`, `plait.explain` and the lists of names.

use crate::draft::Draft;
use crate::error::{Error, refused};
use crate::work::{interruptible, on_this_thread};
use plait_app::quantity;
use plait_base::Time;
use plait_lab::explain::{ExplainControl, Question, Which};
use plait_lab::scenario::quoted;
use plait_report::decide::{Session, controller};
use plait_report::list::{ListDocument, ListKind};
use plait_report::render::explained_run;
use plait_report::transfer::Transfer;
use plait_sim::Watch;
use pyo3::prelude::*;

/// Returns a scheduler's answer to a question; both are JSON.
#[pyfunction]
pub(crate) fn decide(question: &str) -> PyResult<String> {
    on_this_thread(|| Session::default().answer(question))?.map_err(refused)
}

/// Returns a congestion controller's answer to a question; both are JSON.
#[pyfunction]
pub(crate) fn decide_cc(question: &str) -> PyResult<String> {
    controller::answer(question).map_err(refused)
}

/// Returns the name of a measure in words, with its unit.
#[pyfunction]
pub(crate) fn label_of_measure(name: &str) -> String {
    plait_report::papers::label_of_measure(name)
}

/// Returns the document of `plait list --json`.
#[pyfunction]
#[pyo3(signature = (kind, name=None))]
pub(crate) fn list_entries(kind: &str, name: Option<&str>) -> PyResult<String> {
    let known = ListKind::ALL.into_iter().find(|it| it.plural() == kind);
    let known = known.ok_or_else(|| {
        let names = ListKind::ALL.map(ListKind::plural).join(", ");
        Error::new_err(format!("kind: `{kind}`: unknown kind\n  allowed: {names}"))
    })?;
    let document = ListDocument::of(known, name).map_err(refused)?;
    serde_json::to_string(&document).map_err(refused)
}

/// Returns the document and the text of `plait explain`.
#[pyfunction]
#[pyo3(signature = (draft, slowest, at, compare_with, width, progress=None))]
pub(crate) fn explain(
    py: Python<'_>,
    draft: &Draft,
    slowest: usize,
    at: Option<&str>,
    compare_with: Option<&str>,
    width: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, String)> {
    let cell = draft.one("plait explain")?;
    let workload = &cell.scenario.workload;
    if workload.connections() > 1 {
        return Err(Error::new_err(format!(
            "--workload: `{workload}`: it has several connections, and explain takes one\n  \
             allowed: one connection, such as http=2 or connections=1"
        )));
    }
    let schedulers = compare_with.map_or(Ok(Vec::new()), |list| draft.others(list))?;
    let which = match at {
        None => Which::Slowest(slowest),
        Some(text) => {
            let at = quantity::time(text).map_err(|error| refused(format!("--at: {error}")))?;
            Which::At { at: Time::ZERO + at, most: slowest }
        }
    };
    let mut again = cell.command_line("plait explain");
    again += &at.map_or(String::new(), |at| format!(" --at {at}"));
    again += &format!(" --slowest {slowest}");
    if let Some(list) = compare_with {
        let written: Vec<String> = schedulers.iter().map(plait_sched::Spec::written).collect();
        let has_class = schedulers.iter().any(|spec| spec.class().is_some());
        let list = if has_class { written.join(",") } else { list.to_owned() };
        again += &format!(" --compare-with {}", quoted(&list));
    }
    let question = Question { which, schedulers };
    let (outcome, transfer) = interruptible(py, progress, move |shared| {
        let advance = |done: usize, total: usize| shared.advance(done, total);
        let seed = cell.scenario.seed;
        let mut transfer = Transfer::new(&cell, seed, None);
        let beside = Some(&mut transfer as &mut dyn Watch);
        // Exceptions of a replay's schedulers belong to this call.
        let on_thread = |work: &(dyn Fn() + Sync)| shared.watch(work);
        let cancelled = &shared.cancelled;
        let control = ExplainControl { progress: &advance, on_thread: &on_thread, cancelled };
        let outcome = plait_lab::explain::explain(&cell, seed, &question, beside, &control);
        (outcome, transfer)
    })?;
    let mut explanation = outcome.map_err(|error| {
        refused(at.map_or_else(|| error.to_string(), |at| format!("--at: `{at}`: {error}")))
    })?;
    explanation.command = again;
    let run = transfer.explained(explanation).map_err(refused)?;
    let json = serde_json::to_string(&run).map_err(refused)?;
    Ok((json, explained_run(&run, false, width)))
}
