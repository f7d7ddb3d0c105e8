//! The verdict on an expectation, as part of a report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The verdict on an expectation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The expectation as given.
    pub expectation: String,
    /// True if the expectation holds.
    pub holds: bool,
    /// Its comparisons, in order.
    pub comparisons: Vec<Compared>,
}

/// One comparison of an expectation, evaluated.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Left side as written.
    pub left: String,
    /// Value of the left side; absent if the report has none, for example for a row with incomplete runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_value: Option<f64>,
    /// The relation: `<`, `<=`, `>`, `>=`, `==` or `!=`.
    pub relation: String,
    /// Right side as written.
    pub right: String,
    /// Value of the right side, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right_value: Option<f64>,
    /// True if the comparison holds; false if a value is missing.
    pub holds: bool,
}

/// Prints each comparison with both values on a line.
impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, compared) in self.comparisons.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            let side = |text: &str, value: Option<f64>| match value {
                None => format!("{text} (no value)"),
                Some(value) if text.parse() == Ok(value) => text.to_owned(),
                Some(value) => format!("{text} ({value:.3})"),
            };
            write!(
                f,
                "{}: {} {} {}",
                if compared.holds { "holds" } else { "fails" },
                side(&compared.left, compared.left_value),
                compared.relation,
                side(&compared.right, compared.right_value)
            )?;
        }
        Ok(())
    }
}
