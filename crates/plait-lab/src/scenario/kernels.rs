//! Kernel profiles: the behaviour of the stack of a Linux version, with its sources. If a scenario
//! names one (`--kernel 3.14`), it gets the settings of the profile. Its own settings take
//! precedence.

use super::buffers::FIXED;
use super::lists::read;
use super::placed_text::PlacedText;
use super::raw_scenario::RawScenario;
use super::settings::KERNELS as MODELLED;
use crate::error::{Fault, ScenarioError};
use serde::Deserialize;
use std::collections::BTreeMap;

const EMBEDDED: &str = include_str!("../../experiments/kernels.toml");

/// The setting that names a kernel.
pub(crate) const KERNEL: &str = "kernel";

/// The setting that applies only to CUBIC, as in Linux.
const HYSTART: &str = "hystart";

/// The kernels of the papers by name.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Kernels(pub BTreeMap<String, KernelProfile>);

/// Behaviour of the stack of a kernel.
#[derive(Clone, PartialEq, Eq, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelProfile {
    /// Versions of Linux and of MPTCP.
    pub title: String,
    /// Papers that use this kernel in all their figures.
    pub papers: Vec<String>,
    /// Passages of papers, and kernel files, that document the settings.
    pub sources: Vec<String>,
    /// Settings of a scenario.
    pub settings: BTreeMap<String, String>,
    /// Replacements of congestion controllers in this kernel, by plain name.
    #[serde(default)]
    pub cc: BTreeMap<String, String>,
}

impl Kernels {
    /// Reads the kernels of the project.
    ///
    /// If the file is malformed.
    /// If the file has an invalid entry.
    pub fn embedded() -> Result<Kernels, ScenarioError> {
        Ok(Kernels(read("crates/plait-lab/experiments/kernels.toml", EMBEDDED)?))
    }

    /// Returns the kernel of a paper, by the tag of the paper.
    pub(crate) fn of_paper(&self, paper: &str) -> Option<&str> {
        let of = |kernel: &KernelProfile| kernel.papers.iter().any(|tag| tag == paper);
        self.0.iter().find(|(_, kernel)| of(kernel)).map(|(name, _)| name.as_str())
    }

    /// Returns the profile that a text names. It is `None` for `none` and for a kernel that the
    /// simulator models itself.
    ///
    /// # Errors
    /// If no kernel has this name.
    pub(crate) fn named(
        &self,
        given: &PlacedText,
    ) -> Result<Option<&KernelProfile>, ScenarioError> {
        let name = given.text.trim();
        let modelled = || MODELLED.iter().map(|(name, _)| *name);
        match self.0.get(name) {
            None if modelled().any(|it| it == name) => Ok(None),
            None => {
                let profiles = self.0.keys().map(String::as_str);
                Err(given.unknown(KERNEL, modelled().chain(profiles)))
            }
            known => Ok(known),
        }
    }
}

impl KernelProfile {
    /// Returns the controller that this kernel uses for `name`.
    fn controller<'a>(&'a self, name: &'a str) -> &'a str {
        self.cc.get(name).map_or(name, String::as_str)
    }

    /// Returns the settings that go with every controller. Buffers have a fixed size unless the
    /// scenario says otherwise.
    pub(crate) fn of_every_controller(&self) -> impl Iterator<Item = (&str, &str)> {
        let settings = self.settings.iter().filter(|(name, _)| *name != HYSTART);
        settings.map(|(name, value)| (name.as_str(), value.as_str())).chain(FIXED)
    }

    /// Replaces the controllers of a raw scenario by those of this kernel. If the raw scenario does
    /// not set HyStart, CUBIC gets that of the kernel.
    ///
    /// # Errors
    /// If the raw scenario mixes CUBIC with other controllers: HyStart applies to all of them.
    pub(crate) fn apply_to_controllers(&self, raw: &mut RawScenario) -> Result<(), ScenarioError> {
        let Some(cc) = raw.value("cc") else { return Ok(()) };
        let names: Vec<&str> = cc.text.split(',').map(|it| self.controller(it.trim())).collect();
        let is_cubic = |name: &&&str| name.split(':').next() == Some("cubic");
        // A piece without a name holds parameters of the name before it.
        let cubics = names.iter().filter(is_cubic).count();
        let others =
            names.iter().filter(|it| !is_cubic(it) && !plait_params::is_parameter(it)).count();
        raw.replace("cc", PlacedText { text: names.join(","), ..cc.clone() });
        let Some(hystart) = self.settings.get(HYSTART).filter(|_| cubics > 0) else {
            return Ok(());
        };
        if raw.says(HYSTART) {
            return Ok(());
        }
        if others > 0 {
            let problem = "this kernel has HyStart only with cubic";
            let remedy = "cubic in a comparison of its own, or --hystart for all controllers";
            return Err(cc.error(Fault::Conflict, problem).allow(remedy));
        }
        raw.set(HYSTART, PlacedText { text: hystart.clone(), ..cc })
    }
}

impl RawScenario {
    /// Returns the raw scenario with the settings of the profile that it names, if it names one.
    /// Its own settings take precedence.
    ///
    /// # Errors
    /// If no kernel has this name, or [`KernelProfile::apply_to_controllers`] fails.
    pub(super) fn with_kernel(&self) -> Result<Option<RawScenario>, ScenarioError> {
        let Some(given) = self.values(KERNEL).first() else { return Ok(None) };
        let kernels = Kernels::embedded()?;
        let Some(kernel) = kernels.named(given)? else { return Ok(None) };
        let mut raw = self.clone();
        raw.forget(KERNEL);
        for (name, value) in kernel.of_every_controller() {
            if !raw.says(name) {
                raw.set(name, PlacedText { place: given.place.clone(), text: value.to_owned() })?;
            }
        }
        kernel.apply_to_controllers(&mut raw)?;
        Ok(Some(raw))
    }
}
