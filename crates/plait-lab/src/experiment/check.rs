//! Finds errors in an experiment whose parts are all valid by themselves.

use super::given;
use super::plan::{measures_of, not_run};
use super::{Claim, Experiment, Row, RowSubject};
use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::PlacedText;

/// Positions of the axes and of the pictures, in their order.
#[derive(Default)]
pub(super) struct Places {
    pub(super) axes: Vec<Place>,
    /// Positions of the measures of the pictures.
    pub(super) pictures: Vec<Place>,
}

/// Checks an experiment that was read.
///
/// # Errors
/// - An axis changes nothing.
/// - A claim exists twice, uses no cell, or uses a cell that is not run or lacks the measure.
/// - A core claim uses a cell that `--quick` does not run.
/// - No cell has the measure of a picture.
pub(super) fn check(experiment: &Experiment, places: &Places) -> Result<(), ScenarioError> {
    for (axis, place) in experiment.axes.iter().zip(&places.axes) {
        if !changes(experiment, &axis.name) {
            let problem = "no setting uses this axis";
            let remedy = format!("{{{0}}} or {{{0}.FIELD}} in a setting", axis.name);
            return Err(
                ScenarioError::new(place, Fault::Invalid, &axis.name, problem).allow(&remedy)
            );
        }
    }
    for (at, claim) in experiment.claims.iter().enumerate() {
        if experiment.claims[..at].iter().any(|other| other.id == claim.id) {
            let place = &claim.place;
            return Err(ScenarioError::new(place, Fault::Conflict, &claim.id, "given twice"));
        }
        looks(experiment, claim)?;
        given::claim(experiment, claim)?;
    }
    for (picture, place) in experiment.pictures.iter().zip(&places.pictures) {
        given::picture(experiment, picture, place)?;
    }
    let quick = experiment.quickened();
    for claim in &quick.claims {
        looks_quickly(experiment, &quick, claim)?;
        given::claim(&quick, claim)?;
    }
    Ok(())
}

/// Returns true if some text has `{axis}` or `{axis.FIELD}`. Placeholders without an axis are refused later.
fn changes(experiment: &Experiment, axis: &str) -> bool {
    let stands = |text: &str, axis: &str| {
        text.strip_prefix(axis).is_some_and(|rest| rest.starts_with(['}', '.']))
    };
    let known = |text: &str| experiment.axes.iter().any(|axis| stands(text, &axis.name));
    let names = |given: &PlacedText| {
        let mut places = given.text.split('{').skip(1);
        places.any(|text| stands(text, axis) || !known(text))
    };
    let raw = &experiment.raw;
    let fields = raw.paths.iter().flat_map(|path| &path.fields).map(|(_, given)| given);
    let settings = raw.settings.values().flatten().chain(fields);
    let rows = experiment.rows.iter().flat_map(|row| &row.settings).map(|(_, given)| given);
    let subjects = experiment
        .rows
        .iter()
        .filter(|row| matches!(row.subject, RowSubject::Scheduler(_)))
        .map(|row| &row.given);
    settings.chain(rows).chain(subjects).any(names)
}

fn looks(experiment: &Experiment, claim: &Claim) -> Result<(), ScenarioError> {
    let place = &claim.place;
    if !claim.holds.names(&|_| true) {
        let problem = "the statement uses no run";
        return Err(ScenarioError::new(place, Fault::Invalid, &claim.id, problem)
            .allow("ROW.MEASURE somewhere in it"));
    }
    let Some((row, at)) = not_run(experiment, claim) else { return Ok(()) };
    let row = &experiment.rows[row];
    let (problem, remedy) = match outside(row, &at) {
        Some((axis, points)) => {
            let axis_of = &experiment.axes[*axis];
            let text = |point: &usize| axis_of.points[*point].text.as_str();
            let points: Vec<&str> = points.iter().map(text).collect();
            let at = text(&at[*axis]);
            (
                format!("it uses {} at {}={at}, which is not run", row.name, axis_of.name),
                format!("{}={}", axis_of.name, points.join("|")),
            )
        }
        None => (format!("it uses a point that {} does not run", row.name), String::new()),
    };
    Err(ScenarioError::new(place, Fault::Invalid, &claim.id, &problem).allow(&remedy))
}

/// Returns the first axis along which a row is not run at these points, and the points of the row on it.
fn outside<'a>(row: &'a Row, at: &[usize]) -> Option<(&'a usize, &'a Vec<usize>)> {
    row.only.iter().find(|(axis, points)| !points.contains(&at[**axis]))
}

/// Checks that a quick run has the cells of a core claim; otherwise `--quick` would skip the claim.
fn looks_quickly(
    experiment: &Experiment,
    quick: &Experiment,
    claim: &Claim,
) -> Result<(), ScenarioError> {
    let refuse = |problem: &str, remedy: &str| {
        let remedy = format!("{remedy}, or a claim without `core`");
        Err(ScenarioError::new(&claim.place, Fault::Invalid, &claim.id, problem).allow(&remedy))
    };
    // A row without any remaining cell is reported first, because no point could be added.
    let rows = measures_of(experiment, claim).into_iter().map(|(row, ..)| &quick.rows[row]);
    if let Some(row) =
        rows.filter(|row| row.only.values().any(Vec::is_empty)).min_by_key(|it| &it.name)
    {
        let problem = format!("a core claim uses {}, which `[quick]` does not run", row.name);
        return refuse(&problem, &format!("points of {} in the sweep of [quick]", row.name));
    }
    if let Some((row, at)) = not_run(quick, claim) {
        let row = &quick.rows[row];
        let Some((axis, _)) = outside(row, &at) else { return Ok(()) };
        let axis_of = &experiment.axes[*axis];
        let (name, point) = (&axis_of.name, &axis_of.points[at[*axis]].text);
        let problem = format!(
            "a core claim uses {} at {name}={point}, which `[quick]` does not run",
            row.name
        );
        return refuse(&problem, &format!("{name} with the point {point} in the sweep of [quick]"));
    }
    Ok(())
}
