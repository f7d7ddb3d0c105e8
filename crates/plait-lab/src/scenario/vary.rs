//! The values of one varied setting, and the points of a sweep.

use super::{PlacedText, Scenario};
use std::fmt;

/// The varied setting.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A key of the path at this index.
    Path(usize, &'static str),
    /// A setting.
    Setting(&'static str),
}

/// The values of one setting.
#[derive(Clone, Debug)]
pub struct Vary {
    pub(crate) given: PlacedText,
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) points: Vec<String>,
}

/// Two varied settings are equal if their texts are equal; their places do not matter.
impl PartialEq for Vary {
    fn eq(&self, other: &Vary) -> bool {
        self.given.text.trim() == other.given.text.trim()
    }
}

/// One point of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The varied settings and their values at this point: `lte.rtt`, `40ms`.
    pub values: Vec<(String, String)>,
    /// The scenario with these values and without the sweep.
    pub scenario: Scenario,
}

impl Vary {
    /// Returns the varied setting as given: `lte.rtt`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the values, in order.
    #[must_use]
    pub fn points(&self) -> &[String] {
        &self.points
    }
}

/// Prints the text as given.
impl fmt::Display for Vary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.given.text.trim())
    }
}
