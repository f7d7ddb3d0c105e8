//! Requests: arguments of `plait compare` as JSON.

use plait_lab::{RawScenario, Scenario};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};

/// Words of Linux for a file that does not exist, which the command line shows too.
const MISSING: &str = "No such file or directory (os error 2)";

/// A request of the page.
#[derive(Deserialize, Debug)]
struct Request {
    /// Name and text of each flag, without dashes. The text of a switch is `on`.
    arguments: Vec<(String, String)>,
    /// Name and text of each file that the arguments name.
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// Reads a request as `plait compare` reads its flags.
///
/// # Errors
/// If the request is not JSON of this form, or with the text of `plait compare`.
pub fn scenario(request: &str) -> Result<Scenario, String> {
    let request: Request =
        serde_json::from_str(request).map_err(|error| format!("the request: {error}"))?;
    let mut raw = RawScenario::new();
    for (name, text) in &request.arguments {
        raw.argument(name, text).map_err(|error| error.to_string())?;
    }
    let read = |name: &str| {
        request.files.get(name).cloned().ok_or_else(|| Error::new(ErrorKind::NotFound, MISSING))
    };
    let scenario = raw.build_with(&read).map_err(|error| error.to_string())?;
    if !scenario.vary.is_empty() {
        return Err("--vary: the page shows one point\n  use the command line".to_owned());
    }
    Ok(scenario.compared())
}
