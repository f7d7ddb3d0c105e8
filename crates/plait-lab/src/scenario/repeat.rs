//! How often a scenario is run: over which settings, for how long, and to which precision.

use super::Scenario;
use super::build::DEFAULT_DEADLINE;
use super::kernels::KERNEL;
use super::path_parse::Reader;
use super::raw_scenario::{PlacedText, RawScenario};
use crate::error::{Fault, ScenarioError};
use crate::vary::{MAX_POINTS, MAX_VARIED, Vary, grid};
use plait_app::quantity;
use plait_base::Span;

type Result<T> = core::result::Result<T, ScenarioError>;

impl RawScenario {
    /// The settings that are varied. Each point is read once here, so that a bad one is refused before
    /// the first run.
    pub(super) fn varied(&self, scenario: &Scenario, read: Reader<'_>) -> Result<Vec<Vary>> {
        let mut varied: Vec<Vary> = Vec::new();
        for given in self.values("vary") {
            let vary = Vary::parse(given, scenario)?;
            if varied.iter().any(|other| other.name() == vary.name()) {
                let error = given.error(Fault::Conflict, "this setting is varied twice");
                return Err(error.allow("two settings, or one with all its values"));
            }
            // A kernel stands for settings that would stay when another one takes its place.
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

    /// The texts of `--until` that do, or do not, ask for a precision: one at most.
    fn until_text(&self, precision: bool) -> Result<Option<&PlacedText>> {
        let asks = |given: &&PlacedText| given.text.trim().starts_with("ci=") == precision;
        let mut given = self.values("until").iter().filter(asks);
        let first = given.next();
        match given.next() {
            Some(second) => Err(second.error(Fault::Conflict, "given twice")),
            None => Ok(first),
        }
    }

    /// `ci=2%`.
    pub(super) fn precision(&self) -> Result<Option<f64>> {
        let Some(given) = self.until_text(true)? else { return Ok(None) };
        let text = given.text.trim().trim_start_matches("ci=");
        let share = PlacedText::new(&given.place, text).quantity(quantity::percent)?;
        let share = f64::from(share.as_ppb()) / 1e9;
        if !(0.001..=0.5).contains(&share) {
            let error = given.error(Fault::Invalid, "not a width that runs can reach");
            return Err(error.allow("ci=0.1% to ci=50%"));
        }
        Ok(Some(share))
    }

    pub(super) fn until(&self) -> Result<Option<Span>> {
        let Some(given) = self.until_text(false)? else { return Ok(None) };
        let span = given.quantity(quantity::time)?;
        if span == Span::ZERO || span > DEFAULT_DEADLINE {
            let problem = "not a time that a run can end at";
            return Err(given.error(Fault::Invalid, problem).allow("above 0s, at most 60min"));
        }
        Ok(Some(span))
    }
}
