//! Parameters that a paper leaves open, with their plausible values. A verdict can be tried with each of
//! them.

use super::{Experiment, Judged, Looks, Progress, Store, Unsettled, settle};
use crate::compare::World;
use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::PlacedText;
use crate::scenario::lists::read;
use serde::Deserialize;
use std::collections::BTreeMap;

const OPEN: &str = include_str!("../../experiments/open.toml");

/// The open parameters, by paper.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Open(pub BTreeMap<String, Vec<Parameter>>);

/// A parameter that a paper does not give.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Description of the parameter.
    pub what: String,
    /// The figures that it concerns; every figure of the paper if empty.
    #[serde(default)]
    pub figures: Vec<String>,
    /// The alternatives to the value in the files.
    pub values: Vec<Alternative>,
}

/// A plausible value.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// The value in words.
    pub is: String,
    /// Settings (`cc`) and keys of paths (`wifi.queue`) with their texts.
    pub set: BTreeMap<String, String>,
}

/// The verdicts of an experiment with one parameter changed.
#[derive(Clone, PartialEq, Debug)]
pub struct Ablated {
    /// The parameter.
    pub what: String,
    /// Its value.
    pub is: String,
    /// The verdicts.
    pub judged: Vec<Judged>,
}

impl Open {
    /// Returns the open parameters of the project's papers.
    ///
    /// # Errors
    /// If the file is malformed.
    pub fn embedded() -> Result<Open, ScenarioError> {
        Ok(Open(read("crates/plait-lab/experiments/open.toml", OPEN)?))
    }

    /// Returns the parameters that concern an experiment, one entry for each value.
    pub fn of<'a>(
        &'a self,
        experiment: &Experiment,
    ) -> impl Iterator<Item = (&'a Parameter, &'a Alternative)> {
        let (paper, id) = (experiment.paper().to_owned(), experiment.id.clone());
        let all = self.0.get(&paper).into_iter().flatten();
        all.filter(move |it| it.figures.is_empty() || it.figures.contains(&id))
            .flat_map(|parameter| parameter.values.iter().map(move |value| (parameter, value)))
    }
}

impl Experiment {
    /// Returns the experiment with these settings in place of its own.
    ///
    /// # Errors
    /// If a setting or path does not exist.
    pub fn with_values(&self, set: &BTreeMap<String, String>) -> Result<Experiment, ScenarioError> {
        let mut changed = self.clone();
        for (name, text) in set {
            let place = Place::Argument(format!("crates/plait-lab/experiments/open.toml: {name}"));
            let given = PlacedText { place: place.clone(), text: text.clone() };
            let Some((path, key)) = name.split_once('.') else {
                changed.raw.forget(name);
                changed.raw.set(name, given)?;
                continue;
            };
            let paths = &mut changed.raw.paths;
            let Some(found) = paths.iter_mut().find(|it| it.name.text == path) else {
                return Err(ScenarioError::new(&place, Fault::Unknown, path, "unknown path")
                    .allow(&self.paths.join(", ")));
            };
            found.fields.retain(|(known, _)| known != key);
            found.fields.push((key.to_owned(), given));
        }
        Ok(changed)
    }
}

/// Judges each experiment again with each alternative value of its paper, one at a time.
///
/// # Errors
/// As [`settle`].
pub fn ablate<W: World>(
    experiments: &[Experiment],
    open: &Open,
    looks: &Looks<'_>,
    world: &W,
    store: &Store,
    progress: &Progress<'_>,
) -> Result<Vec<Ablated>, Unsettled> {
    let mut list: Vec<Ablated> = Vec::new();
    for experiment in experiments {
        for (parameter, value) in open.of(experiment) {
            let changed = experiment.with_values(&value.set).map_err(Unsettled::Plan)?;
            let settled = settle(&[changed], looks, world, store, progress)?;
            if progress.cancelled.load(std::sync::atomic::Ordering::Relaxed) {
                return Ok(list);
            }
            let known = list.iter_mut().find(|it| it.what == parameter.what && it.is == value.is);
            match known {
                Some(known) => known.judged.extend(settled.judged),
                None => list.push(Ablated {
                    what: parameter.what.clone(),
                    is: value.is.clone(),
                    judged: settled.judged,
                }),
            }
        }
    }
    Ok(list)
}
