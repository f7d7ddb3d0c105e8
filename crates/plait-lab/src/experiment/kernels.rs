//! Kernels of the papers: named profiles of how a stack behaves, with their sources. An experiment
//! names the kernel of its paper, and cannot quietly behave in another way.

use super::Experiment;
use super::embedded::read;
use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::Given;
use serde::Deserialize;
use std::collections::BTreeMap;

const KERNELS: &str = include_str!("../../../../experiments/kernels.toml");

/// The setting that applies to CUBIC alone, as in Linux.
const HYSTART: &str = "hystart";

/// The kernels by name.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Kernels(pub BTreeMap<String, Kernel>);

/// How the stack of a kernel behaves.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Version of Linux and of MPTCP.
    pub title: String,
    /// Papers all of whose figures have it.
    pub papers: Vec<String>,
    /// Passages of papers and files of the kernel that say so.
    pub sources: Vec<String>,
    /// Settings of a scenario.
    pub settings: BTreeMap<String, String>,
    /// Controllers as they count in this kernel, by the plain name.
    #[serde(default)]
    pub cc: BTreeMap<String, String>,
}

/// A setting in which a figure differs from its kernel, and the passage that asks for it.
#[derive(Clone, PartialEq, Debug)]
pub struct Differs {
    /// The setting, or `kernel`.
    pub setting: String,
    /// Its value.
    pub is: String,
    /// The passage.
    pub because: String,
}

impl Kernels {
    /// The kernels of the project.
    ///
    /// # Errors
    /// If the file is not of its form.
    pub fn embedded() -> Result<Kernels, ScenarioError> {
        Ok(Kernels(read("experiments/kernels.toml", KERNELS)?))
    }

    /// The kernel of a paper, by its tag.
    fn of_paper(&self, paper: &str) -> Option<&str> {
        let of = |kernel: &Kernel| kernel.papers.iter().any(|tag| tag == paper);
        self.0.iter().find(|(_, kernel)| of(kernel)).map(|(name, _)| name.as_str())
    }
}

/// Gives an experiment the settings of its kernel. `named` is what the file says.
///
/// # Errors
/// If a file of a paper names no kernel or another one than the paper's other figures, or sets what
/// the kernel decides, without a passage that asks for it.
pub(super) fn apply(
    experiment: &mut Experiment,
    named: Option<&Given>,
    whole: &Place,
) -> Result<(), ScenarioError> {
    let kernels = Kernels::embedded()?;
    let wanted = kernels.of_paper(experiment.paper()).map(str::to_owned);
    let because = |experiment: &Experiment, setting: &str| {
        experiment.differs.iter().any(|it| it.setting == setting)
    };
    let Some(given) = named else {
        let Some(wanted) = wanted else { return Ok(()) };
        let problem = format!("the figures of `{}` have a kernel", experiment.paper());
        return Err(ScenarioError::new(whole, Fault::Missing, "kernel", &problem)
            .allow(&format!("kernel = \"{wanted}\"")));
    };
    let Some(kernel) = kernels.0.get(given.text.trim()) else {
        return Err(given.unknown("kernel", kernels.0.keys().map(String::as_str)));
    };
    if let Some(wanted) = wanted.filter(|it| it != given.text.trim())
        && !because(experiment, "kernel")
    {
        let problem = format!("the other figures of `{}` have `{wanted}`", experiment.paper());
        return Err(given.error(Fault::Conflict, &problem).allow(&format!(
            "kernel = \"{wanted}\", or [[differs]] setting = \"kernel\" with a `because`"
        )));
    }
    for (name, value) in &kernel.settings {
        let rows = experiment.rows.iter().flat_map(|row| &row.settings);
        let quick = &experiment.quick.settings;
        let own = rows.chain(quick).find(|(own, _)| own == name).map(|(_, given)| given.clone());
        let own = own.or_else(|| experiment.draft.settings.get(name.as_str())?.first().cloned());
        match own {
            _ if because(experiment, name) => {}
            Some(own) => {
                let problem = format!("the kernel `{}` decides {name}: {value}", given.text);
                let remedy = format!(
                    "no {name} here, or [[differs]] setting = \"{name}\", is = \"...\", because = \"the passage that asks for it\""
                );
                return Err(own.error(Fault::Conflict, &problem).allow(&remedy));
            }
            None if name == HYSTART => {}
            None => {
                let value = Given { place: given.place.clone(), text: value.clone() };
                experiment.draft.set(name, value)?;
            }
        }
    }
    for differs in experiment.differs.clone().iter().filter(|it| it.setting != "kernel") {
        if !kernel.settings.contains_key(&differs.setting) {
            let names = kernel.settings.keys().map(String::as_str);
            return Err(ScenarioError::unknown(
                &given.place,
                "setting of the kernel",
                &differs.setting,
                names,
            ));
        }
        let value = Given { place: given.place.clone(), text: differs.is.clone() };
        experiment.draft.forget(&differs.setting);
        experiment.draft.set(&differs.setting, value)?;
    }
    experiment.kernel = Some(kernel.clone());
    Ok(())
}

impl Kernel {
    /// The controller of a row as this kernel counts it, and the end of slow start that goes with it.
    pub(super) fn controller(&self, text: &str) -> (String, Option<&str>) {
        let plain = text.trim();
        let own = self.cc.get(plain).map_or(plain, String::as_str);
        let cubic = own.split(':').next() == Some("cubic");
        let hystart = self.settings.get(HYSTART).filter(|_| cubic).map(String::as_str);
        (own.to_owned(), hystart)
    }
}
