//! Reads the TOML lists that the program carries with it.

use crate::error::{Fault, Place, ScenarioError};
use serde::Deserialize;

/// Reads `text`, which is the file `name`.
///
/// # Errors
/// If the text does not have the form of `T`. The error has the line and the column.
pub(crate) fn read<T>(name: &str, text: &str) -> Result<T, ScenarioError>
where
    T: for<'a> Deserialize<'a>,
{
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let before = &text.as_bytes()[..at];
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let place = Place::File {
            file: name.to_owned(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: String::from_utf8_lossy(&before[start..]).chars().count() + 1,
            field: String::new(),
        };
        ScenarioError::new(&place, Fault::Invalid, "", error.message())
    })
}
