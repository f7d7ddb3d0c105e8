//! The repetitions of a scenario: swept settings, length, and precision.

use super::Scenario;
use super::kernels::KERNEL;
use super::path_parse::Reader;
use super::raw_scenario::RawScenario;
use super::sweep::{MAX_POINTS, MAX_VARIED, grid};
use super::vary::Vary;
use crate::error::{Fault, ScenarioError};

type Result<T> = core::result::Result<T, ScenarioError>;

impl RawScenario {
    /// Returns the swept settings. Each point is built once here, so that a bad one is refused
    /// before the first run.
    pub(super) fn varied(&self, scenario: &Scenario, read: Reader<'_>) -> Result<Vec<Vary>> {
        let mut varied: Vec<Vary> = Vec::new();
        for given in self.values("vary") {
            let vary = Vary::parse(given, scenario)?;
            if varied.iter().any(|other| other.name() == vary.name()) {
                let error = given.error(Fault::Conflict, "this setting is varied twice");
                return Err(error.allow("two settings, or one with all its values"));
            }
            // Settings of the fixed kernel would remain at points with another kernel.
            if vary.name() == KERNEL && self.says(KERNEL) {
                let error = given.error(Fault::Conflict, "the kernel is set, too");
                return Err(error.allow("--kernel or --vary kernel=..."));
            }
            varied.push(vary);
            let points: usize = varied.iter().map(|vary| vary.points().len()).product();
            if varied.len() > MAX_VARIED || points > MAX_POINTS {
                let problem = format!("{} settings with {points} points in all", varied.len());
                let allowed = format!("at most {MAX_VARIED} settings with {MAX_POINTS} points");
                return Err(given.error(Fault::Invalid, &problem).allow(&allowed));
            }
        }
        let mut raw = self.clone();
        raw.forget("vary");
        if !varied.is_empty() {
            grid(&varied, &raw, scenario, read)?;
        }
        Ok(varied)
    }
}
