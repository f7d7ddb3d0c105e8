//! The JSON of speed tests: the command lines of Ookla and LibreSpeed, and speedtest-cli.

use super::finding::{Finding, ImportError, Input, Worth, origin};
use crate::date::leading_day;
use crate::estimate::{Estimate, Origin};
use serde_json::Value;

/// IP bytes over payload bytes of full TCP segments.
const OVERHEAD: f64 = 1_500.0 / 1_448.0;
/// A test gives one number, so this is the range around it.
const SPREAD: f64 = 1.15;
/// Range of a time that a test gives without one.
const TIME_SPREAD: f64 = 1.1;

/// Reads a result.
pub(super) fn read(input: &Input<'_>, test: &Value) -> Result<Finding, ImportError> {
    let day = test["timestamp"].as_str().and_then(leading_day);
    if test["download"].is_object() {
        return ookla(input, test, &origin(input, "Ookla speedtest", day));
    }
    // speedtest-cli has the same names, but bits per second and no jitter.
    let (form, tool, unit) = match test["jitter"].is_number() {
        true => ("LibreSpeed JSON", "LibreSpeed", 1e6),
        false => ("speedtest-cli JSON", "speedtest-cli", 1.0),
    };
    let origin = origin(input, tool, day);
    let mut found = Finding::new(form);
    rates(&mut found, input, [&test["download"], &test["upload"]], unit, &origin)?;
    if let Some(ping) = number(&test["ping"]) {
        found.add("rtt", Estimate::spread(ping, TIME_SPREAD).time(&origin), Worth::Direct);
    }
    jitter(&mut found, &test["jitter"], &origin);
    found.lacks("queue", "the test shows no queue", &origin);
    Ok(found)
}

fn ookla(input: &Input<'_>, test: &Value, origin: &Origin) -> Result<Finding, ImportError> {
    let mut found = Finding::new("Ookla JSON");
    let (down, up) = (&test["download"], &test["upload"]);
    rates(&mut found, input, [&down["bandwidth"], &up["bandwidth"]], 8.0, origin)?;
    let ping = &test["ping"];
    let idle = number(&ping["latency"]);
    if let Some(typical) = idle {
        let low = number(&ping["low"]).unwrap_or(typical);
        let rtt = Estimate { value: low.min(typical), low, high: typical }.at_least(1.02);
        found.add("rtt", rtt.time(origin), Worth::Direct);
    }
    jitter(&mut found, &ping["jitter"], origin);
    let loaded = &down["latency"];
    match (idle, number(&loaded["iqm"]), number(&loaded["high"])) {
        (Some(idle), Some(typical), Some(high)) if high > idle => {
            let low = (typical - idle).max(0.5).min(high - idle);
            let queue = Estimate { value: high - idle, low, high: 1.2 * (high - idle) };
            found.add("queue", queue.time(origin), Worth::Indirect);
        }
        _ => found.lacks("queue", "the test has no latency under load", origin),
    }
    if let Some(percent) = test["packetLoss"].as_f64().filter(|it| (0.0..100.0).contains(it)) {
        // The number of packets is not known, and the loss is that of both ways.
        let loss = Estimate { value: percent, low: percent / 2.0, high: percent.max(0.1) };
        found.add("loss", loss.share(origin), Worth::Direct);
    }
    Ok(found)
}

/// Adds the rates of both directions, each in a unit of so many bits per second.
fn rates(
    found: &mut Finding,
    input: &Input<'_>,
    given: [&Value; 2],
    unit: f64,
    origin: &Origin,
) -> Result<(), ImportError> {
    let mut some = false;
    for (key, value) in ["rate_down", "rate_up"].into_iter().zip(given) {
        match number(value) {
            Some(rate) => {
                some = true;
                let rate = Estimate::spread(rate * unit * OVERHEAD, SPREAD);
                found.add(key, rate.rate(origin), Worth::Direct);
            }
            None => found.lacks(key, "the test has none", origin),
        }
    }
    let problem = "the test has no rate";
    some.then_some(()).ok_or_else(|| ImportError::new(input, problem, "run the test again"))
}

fn jitter(found: &mut Finding, value: &Value, origin: &Origin) {
    if let Some(jitter) = number(value) {
        // The mean difference of two uniform delays is a third of their range. There are two ways.
        let jitter = Estimate::spread(1.5 * jitter, 1.5);
        found.add("jitter", jitter.time(origin), Worth::Indirect);
    }
}

/// Returns a number above zero.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|it| *it > 0.0 && it.is_finite())
}
