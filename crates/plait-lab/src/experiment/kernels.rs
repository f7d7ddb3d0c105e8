//! The kernel of an experiment. It is the kernel of the paper, and an experiment must declare every deviation
//! from it.

use super::Experiment;
use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::{KERNEL, Kernels, PlacedText};

/// A setting in which a figure differs from its kernel, and the passage that requires it.
#[derive(Clone, PartialEq, Debug)]
pub struct Differs {
    /// The setting, or `kernel`.
    pub setting: String,
    /// Its value.
    pub is: String,
    /// The passage.
    pub because: String,
}

/// Returns the first text that an experiment has for a setting: in a row, in the quick run, or for all runs.
fn own(experiment: &Experiment, name: &str) -> Option<PlacedText> {
    let rows = experiment.rows.iter().flat_map(|row| &row.settings);
    let by_row = rows.chain(&experiment.quick.settings).find(|(own, _)| own == name);
    let by_all = || experiment.raw.settings.get(name)?.first();
    by_row.map(|(_, given)| given).or_else(by_all).cloned()
}

/// Applies the settings of the kernel to an experiment. `named` is the kernel in the file.
///
/// # Errors
/// If a file of a paper names no kernel, or another kernel than the other figures of the paper.
/// Also if it sets a setting of the kernel without a passage that requires it.
pub(super) fn apply(
    experiment: &mut Experiment,
    named: Option<&PlacedText>,
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
    let kernel = kernels.named(given)?;
    if let Some(wanted) = wanted.filter(|it| it != given.text.trim())
        && !because(experiment, "kernel")
    {
        let problem = format!("the other figures of `{}` have `{wanted}`", experiment.paper());
        return Err(given.error(Fault::Conflict, &problem).allow(&format!(
            "kernel = \"{wanted}\", or [[differs]] setting = \"kernel\" with a `because`"
        )));
    }
    let Some(kernel) = kernel else {
        // The simulator models this kernel, so there are no settings to apply.
        return experiment.raw.set(KERNEL, given.clone());
    };
    for (name, value) in &kernel.settings {
        if let Some(own) = own(experiment, name).filter(|_| !because(experiment, name)) {
            let problem = format!("the kernel `{}` decides {name}: {value}", given.text);
            let remedy = format!(
                "no {name} here, or [[differs]] setting = \"{name}\", is = \"...\", because = \"the passage that asks for it\""
            );
            return Err(own.error(Fault::Conflict, &problem).allow(&remedy));
        }
    }
    if let Some(own) = own(experiment, KERNEL) {
        let problem = format!("the kernel of all rows is `{}`", given.text);
        return Err(own.error(Fault::Conflict, &problem).allow("no kernel here"));
    }
    for (name, value) in kernel.of_every_controller() {
        if !experiment.raw.says(name) {
            let value = PlacedText { place: given.place.clone(), text: value.to_owned() };
            experiment.raw.set(name, value)?;
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
        let value = PlacedText { place: given.place.clone(), text: differs.is.clone() };
        experiment.raw.forget(&differs.setting);
        experiment.raw.set(&differs.setting, value)?;
    }
    experiment.kernel = Some(kernel.clone());
    Ok(())
}
