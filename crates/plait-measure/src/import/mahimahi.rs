//! Traces of Mahimahi. A link gets the trace itself in place of a rate.

use super::finding::{Direction, Finding, ImportError, Input, Worth, origin};
use plait_lab::links::Known;

/// Bits of an opportunity to send.
const OPPORTUNITY_BITS: f64 = 12_000.0;

/// Checks the trace.
pub(super) fn read(input: &Input<'_>) -> Result<Finding, ImportError> {
    let wrong = |at: usize, problem: &str| {
        let problem = format!("line {at}: {problem}");
        let remedy =
            "a Mahimahi trace has a time in milliseconds in each line, and they never fall";
        Err(ImportError::new(input, &problem, remedy))
    };
    let (mut last, mut count) = (0_u64, 0_u64);
    for (at, line) in input.text.lines().enumerate().filter(|it| !it.1.trim().is_empty()) {
        match line.trim().parse::<u64>() {
            Ok(time) if time >= last => (last, count) = (time, count + 1),
            Ok(_) => return wrong(at + 1, "the times fall"),
            Err(_) => return wrong(at + 1, "the time is too large"),
        }
    }
    if last == 0 {
        return wrong(1, "the trace lasts no time");
    }
    if input.file.contains([',', '\n', '\r']) {
        let problem = "the name of a trace has no comma and no line end";
        return Err(ImportError::new(input, problem, "give the file another name"));
    }
    let origin = origin(input, "Mahimahi trace", None);
    let mut found = Finding::new("Mahimahi trace");
    let key = match input.direction {
        Direction::Down => "trace",
        Direction::Up => "trace_up",
    };
    found.add(key, Known::exact(input.file, &origin.source, &origin.date), Worth::Direct);
    if key == "trace_up" {
        found.lacks("rate_down", "the trace is of the other direction", &origin);
    }
    let mean = count as f64 * OPPORTUNITY_BITS / last as f64 / 1e3;
    found.lacks("queue", "a trace shows no queue", &origin);
    found.remark =
        Some(format!("the trace has {mean:.2} Mbit/s in the mean, and no RTT: add a ping"));
    Ok(found)
}
