//! The values of one setting of a comparison, and the points that they make.

use crate::scenario::{PlacedText, Scenario};
use std::fmt;

/// What is varied.
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

/// Where it was written does not matter.
impl PartialEq for Vary {
    fn eq(&self, other: &Vary) -> bool {
        self.given.text.trim() == other.given.text.trim()
    }
}

/// One point of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct Point {
    /// The varied settings and their values here: `lte.rtt`, `40ms`.
    pub values: Vec<(String, String)>,
    /// The scenario with these values, without its sweep.
    pub scenario: Scenario,
}

impl Vary {
    /// The varied setting as given: `lte.rtt`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its values, in order.
    #[must_use]
    pub fn points(&self) -> &[String] {
        &self.points
    }
}

/// As given.
impl fmt::Display for Vary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.given.text.trim())
    }
}
