//! A text from the user with its place, and the checks that all readers share.

use crate::error::{Fault, Place, ScenarioError};
use plait_app::quantity::QuantityError;
use std::fmt;

/// A text and its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlacedText {
    /// The place: a flag, or a file with line and column.
    pub place: Place,
    /// The text.
    pub text: String,
}

impl PlacedText {
    pub(crate) fn new(place: &Place, text: &str) -> PlacedText {
        PlacedText { place: place.clone(), text: text.to_owned() }
    }

    pub(crate) fn error(&self, fault: Fault, problem: &str) -> ScenarioError {
        ScenarioError::new(&self.place, fault, &self.text, problem)
    }

    pub(crate) fn unknown<'a, I>(&self, what: &str, names: I) -> ScenarioError
    where
        I: IntoIterator<Item = &'a str>,
    {
        ScenarioError::unknown(&self.place, what, self.text.trim(), names)
    }

    pub(crate) fn quantity<T>(
        &self,
        read: fn(&str) -> Result<T, QuantityError>,
    ) -> Result<T, ScenarioError> {
        read(&self.text).map_err(|error| self.error(Fault::Invalid, &error.to_string()))
    }

    /// Reads `on` or `off`. An empty text, as in `--path a:backup`, is `on`.
    pub(crate) fn switch(&self) -> Result<bool, ScenarioError> {
        match self.text.trim() {
            "on" | "true" | "" => Ok(true),
            "off" | "false" => Ok(false),
            _ => Err(self.unknown("value", ["on", "off"])),
        }
    }

    /// Reads a bare whole number from `min` to `max`.
    pub(crate) fn count(&self, min: u64, max: u64) -> Result<u64, ScenarioError> {
        whole(&self.text, min, max)
            .map_err(|misfit| self.error(Fault::Invalid, Misfit::PROBLEM).allow(&misfit.allowed()))
    }
}

/// The error of a text that is not a whole number in the allowed range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Misfit {
    min: u64,
    max: u64,
    /// The text is a whole number above `max`.
    above: bool,
}

impl Misfit {
    const PROBLEM: &str = "not a number that fits";

    fn allowed(self) -> String {
        match self {
            Misfit { min, max, above: true } => format!("a whole number from {min} to {max}"),
            Misfit { min, max, above: false } => allowed_count(min, max),
        }
    }
}

/// Returns the range from `min` to `max` in words.
pub(super) fn allowed_count(min: u64, max: u64) -> String {
    match max {
        u64::MAX => format!("a whole number from {min}"),
        _ => format!("a whole number from {min} to {max}"),
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  allowed: {}", Misfit::PROBLEM, self.allowed())
    }
}

impl std::error::Error for Misfit {}

/// Reads a bare whole number from `min` to `max`: digits, optionally surrounded by blanks.
///
/// # Errors
/// For every other text.
pub fn whole(text: &str, min: u64, max: u64) -> Result<u64, Misfit> {
    let text = text.trim();
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(number) if plain && (min..=max).contains(&number) => Ok(number),
        parsed => {
            let above = plain && !parsed.is_ok_and(|number| number < min);
            Err(Misfit { min, max, above })
        }
    }
}
