//! What is wrong with an experiment although each of its parts can be read.

use super::given;
use super::plan::not_run;
use super::{Claim, Experiment, RowSubject};
use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::Given;

/// Where the axes, the claims and what pictures show stand, in their order.
#[derive(Default)]
pub(super) struct Places {
    pub(super) axes: Vec<Place>,
    pub(super) claims: Vec<Place>,
    /// Of the measures of the pictures.
    pub(super) pictures: Vec<Place>,
}

/// # Errors
/// An axis that changes nothing; a claim that is made twice, looks at no cell, or at one that is
/// not run or does not have the measure; a picture of a measure that no cell has.
pub(super) fn check(experiment: &Experiment, places: &Places) -> Result<(), ScenarioError> {
    for (axis, place) in experiment.axes.iter().zip(&places.axes) {
        if !changes(experiment, &axis.name) {
            let problem = "nothing in the file changes along this axis";
            let remedy = format!("{{{0}}} or {{{0}.FIELD}} in a setting", axis.name);
            return Err(
                ScenarioError::new(place, Fault::Invalid, &axis.name, problem).allow(&remedy)
            );
        }
    }
    for (at, (claim, place)) in experiment.claims.iter().zip(&places.claims).enumerate() {
        if experiment.claims[..at].iter().any(|other| other.id == claim.id) {
            return Err(ScenarioError::new(place, Fault::Conflict, &claim.id, "given twice"));
        }
        looks(experiment, claim, place)?;
        given::claim(experiment, claim)?;
    }
    for (picture, place) in experiment.pictures.iter().zip(&places.pictures) {
        given::picture(experiment, picture, place)?;
    }
    let quick = experiment.quickened();
    quick.claims.iter().try_for_each(|claim| given::claim(&quick, claim))?;
    Ok(())
}

/// Whether some text has `{axis}` or `{axis.FIELD}`. Where one has what is no axis, that is refused
/// by itself later on.
fn changes(experiment: &Experiment, axis: &str) -> bool {
    let stands = |text: &str, axis: &str| {
        text.strip_prefix(axis).is_some_and(|rest| rest.starts_with(['}', '.']))
    };
    let known = |text: &str| experiment.axes.iter().any(|axis| stands(text, &axis.name));
    let names = |given: &Given| {
        let mut places = given.text.split('{').skip(1);
        places.any(|text| stands(text, axis) || !known(text))
    };
    let draft = &experiment.draft;
    let fields = draft.paths.iter().flat_map(|path| &path.fields).map(|(_, given)| given);
    let settings = draft.settings.values().flatten().chain(fields);
    let rows = experiment.rows.iter().flat_map(|row| &row.settings).map(|(_, given)| given);
    let subjects = experiment
        .rows
        .iter()
        .filter(|row| matches!(row.subject, RowSubject::Scheduler(_)))
        .map(|row| &row.given);
    settings.chain(rows).chain(subjects).any(names)
}

fn looks(experiment: &Experiment, claim: &Claim, place: &Place) -> Result<(), ScenarioError> {
    if !claim.holds.names(&|_| true) {
        let problem = "the statement looks at no run";
        return Err(ScenarioError::new(place, Fault::Invalid, &claim.id, problem)
            .allow("ROW.MEASURE somewhere in it"));
    }
    let Some((row, at)) = not_run(experiment, claim) else { return Ok(()) };
    let row = &experiment.rows[row];
    let outside = row.only.iter().find(|(axis, points)| !points.contains(&at[**axis]));
    let (problem, remedy) = match outside {
        Some((axis, points)) => {
            let axis_of = &experiment.axes[*axis];
            let text = |point: &usize| axis_of.points[*point].text.as_str();
            let points: Vec<&str> = points.iter().map(text).collect();
            let at = text(&at[*axis]);
            (
                format!("it looks at {} at {}={at}, where it is not run", row.name, axis_of.name),
                format!("{}={}", axis_of.name, points.join("|")),
            )
        }
        None => (format!("it looks at what {} does not run", row.name), String::new()),
    };
    Err(ScenarioError::new(place, Fault::Invalid, &claim.id, &problem).allow(&remedy))
}
