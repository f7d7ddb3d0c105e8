//! Results of other tools as links. The form of a file is recognized by its content.

mod autorate;
mod finding;
mod iperf;
mod join;
mod mahimahi;
mod ping;
mod sockets;
mod speedtest;

pub use finding::{Direction, Finding, ImportError, Input};
pub use join::{Joined, join};

/// The forms that are recognized, for messages.
pub const FORMS: &str = "iperf3 JSON (iperf3 -J), ping output, Ookla JSON (speedtest --format=json), LibreSpeed JSON \
                         (librespeed-cli --json), ss -ti output, cake-autorate logs, Mahimahi traces";

/// Reads a file.
///
/// # Errors
/// If its form is unknown, or if it has no result. The message names the forms or the remedy.
pub fn read(input: &Input<'_>) -> Result<Finding, ImportError> {
    if let Some(document) = json(input.text) {
        return match document {
            value if value.get("end").is_some() && value.get("start").is_some() => {
                iperf::read(input, &value)
            }
            value if value.get("error").is_some() => {
                let problem = value["error"].as_str().unwrap_or("the test failed");
                Err(ImportError::new(input, &format!("the test failed: {problem}"), "run it again"))
            }
            value if value.get("download").is_some() => speedtest::read(input, &value),
            _ => Err(unknown(input, "this JSON is not a result that plait knows")),
        };
    }
    let has = |words: &str| input.text.contains(words);
    let numbers = || {
        let mut lines = input.text.lines().map(str::trim).filter(|it| !it.is_empty()).peekable();
        lines.peek().is_some() && lines.all(|it| it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if has("DATA_HEADER;") {
        autorate::read(input)
    } else if has("bytes from") || has("packets transmitted") {
        ping::read(input)
    } else if has("cwnd:") && has("rtt:") {
        sockets::read(input)
    } else if numbers() {
        mahimahi::read(input)
    } else {
        Err(unknown(input, "its form is unknown"))
    }
}

fn unknown(input: &Input<'_>, problem: &str) -> ImportError {
    ImportError::new(input, problem, &format!("allowed: {FORMS}"))
}

/// Returns the document of a text: an object, the first one of a list, or a line that is a result.
fn json(text: &str) -> Option<serde_json::Value> {
    use serde_json::Value;
    let trimmed = text.trim_start_matches('\u{feff}').trim();
    if let Ok(value) = serde_json::from_str::<Value>(trimmed) {
        return match value {
            Value::Array(list) => list.into_iter().find(Value::is_object),
            Value::Object(_) => Some(value),
            _ => None,
        };
    }
    // A log has a line for each step, and one of them is the result.
    let lines = trimmed.lines().filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok());
    let mut results = lines.filter(|line| line["type"] == "result");
    results.next_back()
}

#[cfg(test)]
mod tests;
