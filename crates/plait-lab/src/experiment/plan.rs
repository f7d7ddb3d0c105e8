//! Turns an experiment into the cells to run.

use super::eval::{Cells, Evaluator};
use super::names::Names;
use super::statement::Value;
use super::{Claim, Experiment, RowSubject};
use crate::compare::{Address, Cell, Subject};
use crate::error::{Fault, ScenarioError};
use crate::scenario::{PlacedText, RawScenario, Reader};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A row and a point of each axis.
pub(super) type RowAtPoint = (usize, Vec<usize>);
/// A row, a point of each axis, and the value that is needed of this cell.
pub(super) type NeededValue = (usize, Vec<usize>, Value);

/// An experiment with its cells.
#[derive(Clone, PartialEq, Debug)]
pub struct Plan {
    /// The experiment.
    pub experiment: Experiment,
    /// The cells, in the order of the rows.
    pub cells: Vec<Planned>,
    index: BTreeMap<RowAtPoint, usize>,
}

/// A cell that is to be run.
#[derive(Clone, PartialEq, Debug)]
pub struct Planned {
    /// Index of the row.
    pub row: usize,
    /// Index of the point on each axis.
    pub at: Vec<usize>,
    /// The cell.
    pub cell: Cell,
    /// Number of its runs.
    pub runs: u32,
    /// True if extra measures are collected.
    pub(super) extra: bool,
    /// The content address of the cell.
    pub address: Address,
}

impl Plan {
    /// Returns the plan of an experiment, with all cells or only the cells that its claims use.
    /// `read` returns the files that its settings name.
    ///
    /// # Errors
    /// If a setting is invalid at some point of the sweep, or a placeholder has no meaning.
    pub fn of(
        experiment: &Experiment,
        claims_only: bool,
        read: Reader<'_>,
    ) -> Result<Plan, ScenarioError> {
        let wanted = if claims_only { looked_at(experiment) } else { runs_of(experiment) };
        let mut texts = BTreeMap::new();
        let mut plan =
            Plan { experiment: experiment.clone(), cells: Vec::new(), index: BTreeMap::new() };
        for (row, at) in wanted {
            let planned = planned(experiment, row, &at, &mut texts, read)?;
            plan.index.insert((row, at), plan.cells.len());
            plan.cells.push(planned);
        }
        Ok(plan)
    }

    /// Returns the index of a cell.
    #[must_use]
    pub fn position(&self, row: usize, at: &[usize]) -> Option<usize> {
        self.index.get(&(row, at.to_vec())).copied()
    }

    /// Returns the total number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.cells.iter().map(|cell| cell.runs as usize).sum()
    }
}

/// Returns true if a row is run at these points.
fn runs_at(experiment: &Experiment, row: usize, at: &[usize]) -> bool {
    experiment.rows[row].only.iter().all(|(axis, points)| points.contains(&at[*axis]))
}

/// Returns every cell.
pub(super) fn runs_of(experiment: &Experiment) -> BTreeSet<RowAtPoint> {
    let mut grid: Vec<Vec<usize>> = vec![Vec::new()];
    for axis in &experiment.axes {
        let more = |at: &Vec<usize>| -> Vec<Vec<usize>> {
            (0..axis.points.len())
                .map(|point| at.iter().copied().chain([point]).collect())
                .collect()
        };
        grid = grid.iter().flat_map(more).collect();
    }
    (0..experiment.rows.len())
        .flat_map(|row| grid.iter().map(move |at| (row, at.clone())))
        .filter(|(row, at)| runs_at(experiment, *row, at))
        .collect()
}

/// Returns the cells that the claims use.
fn looked_at(experiment: &Experiment) -> BTreeSet<RowAtPoint> {
    let asked = asked(experiment, &experiment.claims).0;
    asked.into_iter().map(|(row, at, _)| (row, at)).collect()
}

/// Returns the cells that a claim uses, and the value that it needs of each.
pub(super) fn measures_of(experiment: &Experiment, claim: &Claim) -> Vec<NeededValue> {
    asked(experiment, std::slice::from_ref(claim)).0
}

/// Returns a cell that a claim uses although it is not run.
pub(super) fn not_run(experiment: &Experiment, claim: &Claim) -> Option<RowAtPoint> {
    asked(experiment, std::slice::from_ref(claim)).1
}

/// Returns the cells that claims use, and one that is not run.
fn asked(experiment: &Experiment, claims: &[Claim]) -> (Vec<NeededValue>, Option<RowAtPoint>) {
    let notebook = Notebook { experiment, seen: RefCell::default(), missing: RefCell::default() };
    let rows = experiment.row_names();
    let names = Names { rows: &rows, axes: &experiment.axes, paths: &experiment.paths };
    let evaluator = Evaluator { names, cells: &notebook };
    for claim in claims {
        let _ = evaluator.judge(&claim.holds);
    }
    (notebook.seen.into_inner(), notebook.missing.into_inner())
}

/// Records which cells are used.
struct Notebook<'a> {
    experiment: &'a Experiment,
    seen: RefCell<Vec<NeededValue>>,
    missing: RefCell<Option<RowAtPoint>>,
}

impl Cells for Notebook<'_> {
    fn only(&self, row: usize, axis: usize) -> Option<&[usize]> {
        self.experiment.rows[row].only.get(&axis).map(Vec::as_slice)
    }

    fn runs(&self, _: usize, _: &[usize]) -> usize {
        1
    }

    fn values(&self, row: usize, at: &[usize], value: &Value) -> Vec<f64> {
        if runs_at(self.experiment, row, at) {
            self.seen.borrow_mut().push((row, at.to_vec(), value.clone()));
        } else {
            *self.missing.borrow_mut() = Some((row, at.to_vec()));
        }
        vec![1.0]
    }
}

fn planned(
    experiment: &Experiment,
    row: usize,
    at: &[usize],
    texts: &mut BTreeMap<String, String>,
    read: Reader<'_>,
) -> Result<Planned, ScenarioError> {
    let known = &experiment.rows[row];
    let mut raw = experiment.raw.clone();
    for (name, given) in &known.settings {
        raw.forget(name);
        raw.set(name, given.clone())?;
    }
    let scheduler = match &known.subject {
        RowSubject::Scheduler(text) => text.as_str(),
        RowSubject::Single(_) => "minrtt",
    };
    raw.set(
        "schedulers",
        PlacedText { place: known.given.place.clone(), text: scheduler.to_owned() },
    )?;
    fill_in(experiment, at, &mut raw)?;
    if let Some(kernel) = &experiment.kernel {
        kernel.apply_to_controllers(&mut raw)?;
    }
    // Reads each file once.
    let texts = RefCell::new(texts);
    let used = RefCell::new(BTreeSet::new());
    let once = |file: &str| {
        used.borrow_mut().insert(file.to_owned());
        if let Some(text) = texts.borrow().get(file) {
            return Ok(text.clone());
        }
        let text = read(file)?;
        texts.borrow_mut().insert(file.to_owned(), text.clone());
        Ok(text)
    };
    // Verdicts need variation over runs, so hosts get jitter if nothing else is random.
    let scenario = raw.build_point(&once)?.compared();
    let [cc] = scenario.ccs.as_slice() else {
        let given = raw.value("cc").unwrap_or_else(|| known.given.clone());
        return Err(given
            .error(Fault::Invalid, "a row has one congestion controller")
            .allow("cc = \"...\" in each [row.NAME]"));
    };
    let cc = cc.clone();
    let subject = match &known.subject {
        RowSubject::Single(path) => {
            Subject::SinglePath(scenario.paths.iter().position(|it| it.name == *path).unwrap_or(0))
        }
        RowSubject::Scheduler(_) => match (scenario.schedulers.first(), scenario.paths.len()) {
            (Some(spec), 2..) => Subject::Scheduler(spec.clone()),
            _ => {
                let problem = "a scheduler needs two paths to choose from";
                return Err(known.given.error(Fault::Conflict, problem).allow("single = PATH"));
            }
        },
    };
    let runs = scenario.effective_runs();
    let cell = Cell { scenario: Arc::new(scenario), subject, cc };
    let extra = experiment.wants_extra();
    let (used, texts) = (used.into_inner(), texts.borrow());
    let texts = used.iter().filter_map(|file| texts.get(file)).map(String::as_str);
    let address = Address::of(&cell, texts, extra);
    Ok(Planned { row, at: at.to_vec(), cell, runs, extra, address })
}

/// Replaces the placeholders in the texts of a raw scenario by the points of the axes.
fn fill_in(
    experiment: &Experiment,
    at: &[usize],
    raw: &mut RawScenario,
) -> Result<(), ScenarioError> {
    let settings = raw.settings.values_mut().flatten();
    let fields = raw.paths.iter_mut().flat_map(|path| &mut path.fields).map(|(_, given)| given);
    for given in settings.chain(fields) {
        given.text = filled(experiment, at, given)?;
    }
    Ok(())
}

/// Returns a text with `{axis}` and `{axis.field}` replaced, the innermost first: `{point.rtt_{class}}`.
pub(super) fn filled(
    experiment: &Experiment,
    at: &[usize],
    given: &PlacedText,
) -> Result<String, ScenarioError> {
    let mut text = given.text.clone();
    while let Some(close) = text.find('}') {
        let Some(open) = text[..close].rfind('{') else { break };
        let put = placed(experiment, at, given, &text[open + 1..close])?;
        text.replace_range(open..=close, put);
    }
    match text.contains(['{', '}']) {
        true => Err(given
            .error(Fault::Invalid, "`{` and `}` do not match")
            .allow("{AXIS} or {AXIS.FIELD}")),
        false => Ok(text),
    }
}

/// Returns the replacement of `axis` or `axis.field`.
fn placed<'a>(
    experiment: &'a Experiment,
    at: &[usize],
    given: &PlacedText,
    name: &str,
) -> Result<&'a str, ScenarioError> {
    let (axis, field) = name.split_once('.').map_or((name, None), |(a, b)| (a, Some(b)));
    let unknown = |what: &str, text: &str, names: Vec<&str>| {
        ScenarioError::unknown(&given.place, what, text, names)
    };
    let axes = &experiment.axes;
    let Some(index) = axes.iter().position(|known| known.name == axis) else {
        return Err(unknown("axis", axis, axes.iter().map(|it| it.name.as_str()).collect()));
    };
    let point = &axes[index].points[at[index]];
    let Some(field) = field else { return Ok(&point.text) };
    point.fields.get(field).map(String::as_str).ok_or_else(|| {
        unknown("field of the point", field, point.fields.keys().map(String::as_str).collect())
    })
}
