//! Checks that the runs of an experiment have the measures that its claims and pictures name.

use super::extra::{self, OF_PATHS, OF_RUNS, OF_TIMES};
use super::plan::{filled, measures_of, runs_of};
use super::{Claim, Experiment, Picture};
use crate::error::{Fault, Place, ScenarioError};
use crate::report::COMPETING;
use plait_app::measure::Value::Path;
use plait_app::{MEASURES, WORKLOADS};

/// The properties of a run that determine its measures.
struct RunProperties {
    /// The workload as written, with the points of the axes filled in.
    text: String,
    workload: &'static str,
    competes: bool,
}

/// Checks that every run that a claim uses has the measure.
///
/// # Errors
/// If a claim uses a run that lacks the measure.
pub(super) fn claim(experiment: &Experiment, claim: &Claim) -> Result<(), ScenarioError> {
    for (row, at, value) in measures_of(experiment, claim) {
        let Some(kind) = kind(experiment, row, &at) else { continue };
        if !kind.has(&value.measure) {
            return Err(refused(&value.place, &value.measure, &kind));
        }
    }
    Ok(())
}

/// Checks that some run of a picture has its measure.
///
/// # Errors
/// If no run in a picture has its measure.
pub(super) fn picture(
    experiment: &Experiment,
    picture: &Picture,
    place: &Place,
) -> Result<(), ScenarioError> {
    let spots = runs_of(experiment).into_iter().filter(|(row, _)| picture.rows.contains(row));
    let mut without = None;
    for (row, at) in spots {
        match kind(experiment, row, &at) {
            Some(kind) if !kind.has(&picture.measure) => {
                without.get_or_insert(kind);
            }
            _ => return Ok(()),
        }
    }
    without.map_or(Ok(()), |kind| Err(refused(place, &picture.measure, &kind)))
}

fn refused(place: &Place, measure: &str, kind: &RunProperties) -> ScenarioError {
    let name = base(measure);
    let problem = match name == COMPETING {
        true => "there is no competing flow (`compete`)".to_owned(),
        false => format!("no measure of the workload `{}`", kind.text),
    };
    ScenarioError::new(place, Fault::Invalid, name, &problem).allow(&kind.names().join(", "))
}

fn base(measure: &str) -> &str {
    measure.split('.').next().unwrap_or(measure)
}

/// Returns the kind of a run; `None` if its workload cannot be filled in or read, which the plan refuses
/// later.
fn kind(experiment: &Experiment, row: usize, at: &[usize]) -> Option<RunProperties> {
    let settings = &experiment.rows[row].settings;
    let said = |name: &'static str| {
        let own = settings.iter().find(|(own, _)| own.replace('_', "-") == name);
        own.map(|(_, given)| given.clone()).or_else(|| experiment.raw.value(name))
    };
    let text = filled(experiment, at, &said("workload")?).ok()?;
    let name = text.trim().split(':').next()?;
    let workload = WORKLOADS.iter().find(|known| known.name == name)?.name;
    Some(RunProperties { workload, competes: said("compete").is_some(), text })
}

impl RunProperties {
    fn has(&self, measure: &str) -> bool {
        let name = base(measure);
        if name == COMPETING {
            return self.competes;
        }
        let known = MEASURES.iter().find(|entry| entry.name == name).map(|entry| entry.workloads);
        known.or_else(|| extra::workloads(name)).is_none_or(|known| known.contains(&self.workload))
    }

    /// Returns the names of the available measures, as statements use them.
    fn names(&self) -> Vec<String> {
        let of_runs = OF_RUNS.iter().map(|it| (it.name, ""));
        let of_paths = OF_PATHS.iter().map(|it| (it.name, ".PATH"));
        let of_times = OF_TIMES.iter().map(|it| (it.name, ".TIME"));
        let known = MEASURES.iter().map(|entry| match entry.value {
            Path(_) => (entry.name, ".PATH"),
            _ => (entry.name, ""),
        });
        let all = known.chain(of_runs).chain(of_paths).chain(of_times).chain([(COMPETING, "")]);
        all.filter(|(name, _)| self.has(name)).map(|(name, more)| format!("{name}{more}")).collect()
    }
}
