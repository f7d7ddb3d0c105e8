//! Reads the TOML lists that are built into the program.

use super::file::Source;
use crate::error::{Fault, ScenarioError};
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
        let place = Source::new(name, text).place(&error.span().unwrap_or(0..0), "");
        ScenarioError::new(&place, Fault::Invalid, "", error.message())
    })
}
