//! Types of settings, and how they are read into a scenario and written back.

use super::Scenario;
use super::path_parse::Reader;
use super::placed_text::{PlacedText, allowed_count};
use crate::error::{Fault, ScenarioError};
use plait_app::quantity;
use plait_base::Span;
use serde_json::{Value, json};

type Result<T> = core::result::Result<T, ScenarioError>;

/// Returns the texts that set the same value in another scenario.
type Get = fn(&Scenario) -> Vec<String>;

/// Reads one text. The texts of a list are read one after the other.
type Set = fn(&mut Scenario, &PlacedText, Reader<'_>) -> Result<()>;

/// The type of a setting, with its accessors in a scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) kind: SettingKind,
    pub(super) get: Get,
    pub(super) set: Set,
}

/// The type of a setting with its unit and range.
#[derive(Clone, Copy, Debug)]
pub(super) enum SettingKind {
    /// A flag without a value.
    Flag,
    /// `on` or `off`.
    Switch,
    /// A whole number from `min` to `max`. Its unit is optional.
    Count { unit: &'static str, min: u64, max: u64 },
    /// A time of at most `most`.
    Time { example: &'static str, most: Span },
    /// One of some words. `values` is empty if the words need no explanation.
    Words { values: &'static str, words: fn() -> Vec<&'static str> },
    /// Any other text.
    Text { values: &'static str, example: &'static str },
    /// Any number of texts.
    List { values: &'static str, example: &'static str },
}

/// A text. `values` says which ones are allowed.
pub(super) const fn text(values: &'static str, example: &'static str, get: Get, set: Set) -> Field {
    Field { kind: SettingKind::Text { values, example }, get, set }
}

/// As [`text`], for a setting that may be given more than once.
pub(super) const fn list(values: &'static str, example: &'static str, get: Get, set: Set) -> Field {
    Field { kind: SettingKind::List { values, example }, get, set }
}

/// A switch stored in a field of the scenario; `Flag` for a flag without a value.
macro_rules! on_off {
    ($($at:ident).+) => { on_off!(Switch, it => it.$($at).+, on => on, $($at).+) };
    (Flag, $($at:ident).+) => { on_off!(Flag, it => it.$($at).+, on => on, $($at).+) };
    ($kind:ident, $it:ident => $get:expr, $on:ident => $set:expr, $($at:ident).+) => {
        Field {
            kind: SettingKind::$kind,
            get: |$it| vec![if $get { "on" } else { "off" }.to_owned()],
            set: |it, given, _| {
                let $on = given.switch()?;
                it.$($at).+ = $set;
                Ok(())
            },
        }
    };
}

/// A whole number with its unit and range, stored in a field of the scenario whose type holds the
/// range.
macro_rules! count {
    ($unit:literal, $min:expr, $max:expr, $($at:ident).+) => {
        Field {
            kind: SettingKind::Count { unit: $unit, min: $min, max: $max },
            get: |it| vec![it.$($at).+.to_string()],
            set: |it, given, _| {
                it.$($at).+ = read_count(given, $unit, $min, $max)? as _;
                Ok(())
            },
        }
    };
}

/// A time stored in a field of the scenario, with an example, a maximum and the error for longer
/// times.
macro_rules! time {
    ($example:literal, $most:expr, $problem:literal, $($at:ident).+) => {
        Field {
            kind: SettingKind::Time { example: $example, most: $most },
            get: |it| vec![it.$($at).+.to_string()],
            set: |it, given, _| {
                it.$($at).+ = read_time(given, $most, $problem)?;
                Ok(())
            },
        }
    };
}

/// One word of a list, stored as its value in a field of the scenario.
macro_rules! words {
    ($words:ident, $($at:ident).+) => { words!($words, $($at).+, "") };
    ($words:ident, $($at:ident).+, $values:literal) => {
        Field {
            kind: SettingKind::Words { values: $values, words: || names($words) },
            get: |it| {
                let known = $words.iter().filter(|known| known.1 == it.$($at).+);
                known.map(|known| known.0.to_owned()).collect()
            },
            set: |it, given, _| {
                let known = $words.iter().find(|known| known.0 == given.text.trim());
                it.$($at).+ = known.ok_or_else(|| given.unknown("value", names($words)))?.1;
                Ok(())
            },
        }
    };
}

pub(super) use {count, on_off, time, words};

/// Returns the words of a list of words with values.
pub(super) fn names<T>(words: &[(&'static str, T)]) -> Vec<&'static str> {
    words.iter().map(|(word, _)| *word).collect()
}

/// Reads a whole number with an optional unit.
pub(super) fn read_count(given: &PlacedText, unit: &str, min: u64, max: u64) -> Result<u64> {
    let text = given.text.trim();
    let suffix = match unit {
        "bytes" => "B",
        "segments" => "seg",
        _ => "",
    };
    let bare = text.strip_suffix(suffix).unwrap_or(text);
    PlacedText::new(&given.place, bare).count(min, max)
}

/// Reads a time of at most `most`. `problem` is the error text for longer times.
pub(super) fn read_time(given: &PlacedText, most: Span, problem: &str) -> Result<Span> {
    let span = given.quantity(quantity::time)?;
    if span > most {
        return Err(given.error(Fault::Invalid, problem).allow(&format!("at most {most}")));
    }
    Ok(span)
}

impl SettingKind {
    /// Returns the allowed values in words.
    pub(super) fn values(&self) -> String {
        match self {
            SettingKind::Flag | SettingKind::Switch => "on or off".to_owned(),
            SettingKind::Count { unit: "", min, max } => allowed_count(*min, *max),
            SettingKind::Count { unit, min, max } => format!("{unit}, from {min} to {max}"),
            SettingKind::Time { example, most } => {
                format!("a time such as {example}, at most {most}")
            }
            SettingKind::Words { values: "", words } => match words().as_slice() {
                [before @ .., last] => format!("{} or {last}", before.join(", ")),
                [] => String::new(),
            },
            SettingKind::Words { values, .. }
            | SettingKind::Text { values, .. }
            | SettingKind::List { values, .. } => (*values).to_owned(),
        }
    }

    /// Returns the JSON Schema of the values, or of a text with `{AXIS}`; `None` if any text is
    /// allowed.
    pub(super) fn schema(&self) -> Option<Value> {
        let values = match self {
            SettingKind::Flag | SettingKind::Switch => {
                json!({ "enum": ["on", "off", true, false] })
            }
            SettingKind::Count { min, max: u64::MAX, .. } => {
                json!({ "type": "integer", "minimum": min })
            }
            SettingKind::Count { min, max, .. } => {
                json!({ "type": "integer", "minimum": min, "maximum": max })
            }
            SettingKind::Words { values: "", words } => json!({ "enum": words() }),
            _ => return None,
        };
        // A number with its unit is a text.
        let text = match self {
            SettingKind::Count { .. } => json!({ "type": "string" }),
            _ => json!({ "type": "string", "pattern": "\\{" }),
        };
        Some(json!({ "anyOf": [values, text] }))
    }

    /// Returns example texts: the words, the ends of a range, or the example.
    pub(super) fn examples(&self) -> Vec<String> {
        let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        match self {
            SettingKind::Flag => texts(&["on"]),
            SettingKind::Switch => texts(&["on", "off"]),
            SettingKind::Count { min, max, .. } => vec![min.to_string(), max.to_string()],
            SettingKind::Words { words, .. } => texts(&words()),
            SettingKind::Time { example, .. }
            | SettingKind::Text { example, .. }
            | SettingKind::List { example, .. } => texts(&[example]),
        }
    }
}
