//! What a setting takes, and how it is read into a scenario and written back.

use super::Scenario;
use super::path_parse::Reader;
use super::raw_scenario::{PlacedText, RawScenario, allowed_count};
use crate::error::{Fault, ScenarioError};
use plait_app::quantity;
use plait_base::Span;

type Result<T> = core::result::Result<T, ScenarioError>;

/// What a setting may look at while it is read.
pub(super) struct Said<'a> {
    /// Every setting, with those of the kernel that is named.
    pub(super) raw: &'a RawScenario,
    /// Every setting as it was written.
    pub(super) written: &'a RawScenario,
    /// Reads a file that a setting names.
    pub(super) read: Reader<'a>,
}

/// The type of a setting: its unit, its range, and where a scenario has it.
#[derive(Debug)]
pub(super) enum Kind {
    /// A flag without a value.
    Flag { get: fn(&Scenario) -> bool, set: fn(&mut Scenario, bool) },
    /// `on` or `off`.
    Switch { get: fn(&Scenario) -> bool, set: fn(&mut Scenario, bool) },
    /// A whole number from `min` to `max` of a unit, which need not be written.
    Count {
        unit: &'static str,
        min: u64,
        max: u64,
        get: fn(&Scenario) -> u64,
        set: fn(&mut Scenario, u64),
    },
    /// A time of at most `most`; a longer one is `problem`.
    Time {
        example: &'static str,
        most: Span,
        problem: &'static str,
        get: fn(&Scenario) -> Span,
        set: fn(&mut Scenario, Span),
    },
    /// One of some words. `values` is empty if the words say it all.
    Words {
        values: &'static str,
        words: fn() -> Vec<&'static str>,
        get: fn(&Scenario) -> &'static str,
        set: fn(&mut Scenario, &str) -> Option<()>,
    },
    /// Any other text.
    Text {
        values: &'static str,
        example: &'static str,
        get: fn(&Scenario) -> Option<String>,
        set: fn(&mut Scenario, &PlacedText, &Said<'_>) -> Result<()>,
    },
    /// Any number of texts.
    List {
        values: &'static str,
        example: &'static str,
        get: fn(&Scenario) -> Vec<String>,
        set: fn(&mut Scenario, &[PlacedText], &Said<'_>) -> Result<()>,
    },
}

/// A flag, kept in a field of the scenario.
macro_rules! flag {
    ($($at:ident).+) => {
        Kind::Flag { get: |it| it.$($at).+, set: |it, on| it.$($at).+ = on }
    };
}

/// A switch, kept in a field of the scenario.
macro_rules! on_off {
    ($($at:ident).+) => {
        Kind::Switch { get: |it| it.$($at).+, set: |it, on| it.$($at).+ = on }
    };
}

/// A whole number with its unit and range, kept in a field of the scenario that holds the range.
macro_rules! count {
    ($unit:literal, $min:expr, $max:expr, $($at:ident).+) => {
        Kind::Count {
            unit: $unit,
            min: $min,
            max: $max,
            get: |it| it.$($at).+.into(),
            set: |it, number| it.$($at).+ = number as _,
        }
    };
}

/// A time with an example, the longest one and what a longer one is, kept in a field of the scenario.
macro_rules! time {
    ($example:literal, $most:expr, $problem:literal, $($at:ident).+) => {
        Kind::Time {
            example: $example,
            most: $most,
            problem: $problem,
            get: |it| it.$($at).+,
            set: |it, span| it.$($at).+ = span,
        }
    };
}

/// A list of words with their values, one of which a field of the scenario has.
macro_rules! words {
    ($words:ident, $($at:ident).+) => { words!($words, $($at).+, "") };
    ($words:ident, $($at:ident).+, $values:literal) => {
        Kind::Words {
            values: $values,
            words: || $words.iter().map(|(word, _)| *word).collect(),
            get: |it| $words.iter().find(|known| known.1 == it.$($at).+).map_or("", |known| known.0),
            set: |it, text| {
                it.$($at).+ = $words.iter().find(|known| known.0 == text)?.1;
                Some(())
            },
        }
    };
}

pub(super) use {count, flag, on_off, time, words};

/// How the unit of a count may be written behind it.
fn suffix(unit: &str) -> &'static str {
    match unit {
        "bytes" => "B",
        "segments" => "seg",
        _ => "",
    }
}

impl Kind {
    /// What it takes, in words.
    pub(super) fn values(&self) -> String {
        match self {
            Kind::Flag { .. } | Kind::Switch { .. } => "on or off".to_owned(),
            Kind::Count { unit: "", min, max, .. } => allowed_count(*min, *max),
            Kind::Count { unit, min, max, .. } => format!("{unit}, from {min} to {max}"),
            Kind::Time { example, most, .. } => {
                format!("a time such as {example}, at most {most}")
            }
            Kind::Words { values: "", words, .. } => match words().as_slice() {
                [before @ .., last] => format!("{} or {last}", before.join(", ")),
                [] => String::new(),
            },
            Kind::Words { values, .. } | Kind::Text { values, .. } | Kind::List { values, .. } => {
                (*values).to_owned()
            }
        }
    }

    /// Texts that it takes: the words, the ends of a range, or the example.
    pub(super) fn examples(&self) -> Vec<String> {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        match self {
            Kind::Flag { .. } => texts(&["on"]),
            Kind::Switch { .. } => texts(&["on", "off"]),
            Kind::Count { min, max, .. } => vec![min.to_string(), max.to_string()],
            Kind::Words { words, .. } => texts(&words()),
            Kind::Time { example, .. }
            | Kind::Text { example, .. }
            | Kind::List { example, .. } => texts(&[example]),
        }
    }

    /// The texts that give a scenario what this one has.
    pub(super) fn texts(&self, scenario: &Scenario) -> Vec<String> {
        let one = match self {
            Kind::Flag { get, .. } | Kind::Switch { get, .. } => {
                if get(scenario) { "on" } else { "off" }.to_owned()
            }
            Kind::Count { get, .. } => get(scenario).to_string(),
            Kind::Time { get, .. } => get(scenario).to_string(),
            Kind::Words { get, .. } => get(scenario).to_owned(),
            Kind::Text { get, .. } => return get(scenario).into_iter().collect(),
            Kind::List { get, .. } => return get(scenario),
        };
        vec![one]
    }

    /// Reads a setting that may be said any number of times.
    pub(super) fn read_list(
        &self,
        scenario: &mut Scenario,
        given: &[PlacedText],
        said: &Said<'_>,
    ) -> Result<()> {
        match self {
            Kind::List { set, .. } => set(scenario, given, said),
            _ => given.iter().try_for_each(|given| self.read(scenario, given, said)),
        }
    }

    /// Reads a setting that is said once, or its default.
    pub(super) fn read(
        &self,
        scenario: &mut Scenario,
        given: &PlacedText,
        said: &Said<'_>,
    ) -> Result<()> {
        match self {
            Kind::Flag { set, .. } | Kind::Switch { set, .. } => set(scenario, given.switch()?),
            Kind::Count { unit, min, max, set, .. } => {
                let text = given.text.trim();
                let bare = text.strip_suffix(suffix(unit)).unwrap_or(text);
                set(scenario, PlacedText::new(&given.place, bare).count(*min, *max)?);
            }
            Kind::Time { most, problem, set, .. } => {
                let span = given.quantity(quantity::time)?;
                if span > *most {
                    let error = given.error(Fault::Invalid, problem);
                    return Err(error.allow(&format!("at most {most}")));
                }
                set(scenario, span);
            }
            Kind::Words { words, set, .. } => {
                let found = set(scenario, given.text.trim());
                return found.ok_or_else(|| given.unknown("value", words()));
            }
            Kind::Text { set, .. } => return set(scenario, given, said),
            Kind::List { set, .. } => return set(scenario, core::slice::from_ref(given), said),
        }
        Ok(())
    }
}
