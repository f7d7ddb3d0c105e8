//! How often a scenario is run: over which settings, for how long, and to which precision.

use super::Scenario;
use super::build::DEFAULT_DEADLINE;
use super::kernels::KERNEL;
use super::kind::Said;
use super::path_parse::Reader;
use super::raw_scenario::{PlacedText, RawScenario};
use crate::error::{Fault, ScenarioError};
use crate::vary::{MAX_POINTS, MAX_VARIED, Vary, grid};
use plait_app::quantity::{self, Percent};
use plait_base::{Chance, Span};

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
}

/// `90s`, `ci=2%`, or both.
pub(super) fn set_until(it: &mut Scenario, given: &PlacedText, _: &Said<'_>) -> Result<()> {
    let again = match given.text.trim().strip_prefix("ci=") {
        None => it.until.replace(until(given)?).is_some(),
        Some(text) => it.precision.replace(precision(given, text)?).is_some(),
    };
    if again { Err(given.error(Fault::Conflict, "given twice")) } else { Ok(()) }
}

/// As [`set_until`] reads it.
pub(super) fn until_texts(it: &Scenario) -> Vec<String> {
    // A share as a percentage without rounding: `2%`, `0.5%`.
    let percent = |share: f64| Percent(Chance::from_ppb((share * 1e9).round() as u32));
    let precision = it.precision.map(|share| format!("ci={}", percent(share)));
    it.until.map(|span| span.to_string()).into_iter().chain(precision).collect()
}

fn precision(given: &PlacedText, text: &str) -> Result<f64> {
    let share = PlacedText::new(&given.place, text).quantity(quantity::percent)?;
    let share = f64::from(share.as_ppb()) / 1e9;
    if !(0.001..=0.5).contains(&share) {
        let error = given.error(Fault::Invalid, "not a width that runs can reach");
        return Err(error.allow("ci=0.1% to ci=50%"));
    }
    Ok(share)
}

fn until(given: &PlacedText) -> Result<Span> {
    let span = given.quantity(quantity::time)?;
    if span == Span::ZERO || span > DEFAULT_DEADLINE {
        let problem = "not a time that a run can end at";
        return Err(given.error(Fault::Invalid, problem).allow("above 0s, at most 60min"));
    }
    Ok(span)
}
