//! The JSON of iperf3.

use super::finding::{Finding, ImportError, Input, Worth, origin};
use crate::date::day_of;
use crate::estimate::{Estimate, Origin};
use serde_json::Value;

/// Bytes of IP and TCP headers with timestamps.
const TCP_HEADERS: f64 = 52.0;
/// Bytes of IP and UDP headers.
const UDP_HEADERS: f64 = 28.0;
/// Share of lost datagrams that shows a full link.
const FULL_PERCENT: f64 = 1.0;
/// Factor by which an RTT during a transfer may be too large.
const LOADED: f64 = 2.0;

/// Reads the rates, and RTT and queue as TCP saw them.
pub(super) fn read(input: &Input<'_>, test: &Value) -> Result<Finding, ImportError> {
    if let Some(problem) = test["error"].as_str() {
        let problem = format!("the test failed: {problem}");
        return Err(ImportError::new(input, &problem, "run iperf3 again"));
    }
    let start = &test["start"];
    let day = start["timestamp"]["timesecs"].as_u64().map(day_of);
    let origin = origin(input, "iperf3", day);
    let setup = &start["test_start"];
    let udp = setup["protocol"] == "UDP";
    let reverse = setup["reverse"].as_u64().unwrap_or(0) != 0;
    let forward = if reverse { "rate_down" } else { "rate_up" };
    let backward = if reverse { "rate_up" } else { "rate_down" };
    let overhead = overhead(start, udp);
    let mut found = Finding::new("iperf3 JSON");
    let end = &test["end"];
    let mut some = rate(&mut found, forward, test, ("sum", end), overhead, udp, &origin);
    if end["sum_received_bidir_reverse"].is_object() || end["sum_bidir_reverse"].is_object() {
        let names = ("sum_bidir_reverse", end);
        some |= rate(&mut found, backward, test, names, overhead, udp, &origin);
    } else {
        found.lacks(backward, "the test sent one way only", &origin);
        let test = if reverse { "iperf3 -c HOST -J" } else { "iperf3 -c HOST -J -R" };
        found.remark(&format!("unknown {backward}: add a test of the other direction ({test})"));
    }
    if !some {
        let problem = "the test has no result";
        return Err(ImportError::new(
            input,
            problem,
            "let iperf3 run to its end (iperf3 -J -t 10)",
        ));
    }
    round_trips(&mut found, end, &origin);
    Ok(found)
}

/// Returns the factor from payload to IP bytes.
fn overhead(start: &Value, udp: bool) -> f64 {
    let size = match udp {
        true => start["test_start"]["blksize"].as_f64().unwrap_or(1_448.0),
        false => start["tcp_mss_default"].as_f64().unwrap_or(1_448.0),
    };
    let headers = if udp { UDP_HEADERS } else { TCP_HEADERS };
    if size >= 1.0 { (size + headers) / size } else { 1.0 }
}

/// Adds a rate. Returns true if there is one.
fn rate(
    found: &mut Finding,
    key: &'static str,
    test: &Value,
    (sum, end): (&str, &Value),
    overhead: f64,
    udp: bool,
    origin: &Origin,
) -> bool {
    let reverse = sum.ends_with("_bidir_reverse");
    let received = match reverse {
        true => &end["sum_received_bidir_reverse"],
        false => &end["sum_received"],
    };
    let total = if received["bits_per_second"].is_number() { received } else { &end[sum] };
    let Some(bps) = total["bits_per_second"].as_f64().filter(|bps| *bps > 0.0) else {
        return false;
    };
    if udp {
        let lost = end[sum]["lost_percent"].as_f64().unwrap_or(0.0);
        if lost < FULL_PERCENT {
            let sent = format!("the test sent {:.1} Mbit/s and lost {lost:.2} %", bps / 1e6);
            found.lacks(key, &format!("{sent}: the link may carry more"), origin);
            found.remark(&format!("unknown {key}: {sent}; send more (iperf3 -u -b RATE)"));
            return true;
        }
        // The sum counts sent packets, unless the receiver's own count is there.
        let share = if received["bits_per_second"].is_number() { 1.0 } else { 1.0 - lost / 100.0 };
        let rate = Estimate::spread(bps * share * overhead, 1.05);
        found.add(key, rate.rate(origin), Worth::Direct);
        return true;
    }
    // The first second has the slow start.
    let seconds: Vec<f64> = test["intervals"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|it| it[sum]["omitted"] != true)
        .filter(|it| it[sum]["start"].as_f64().is_some_and(|start| start >= 0.9))
        .filter_map(|it| it[sum]["bits_per_second"].as_f64())
        .collect();
    let estimate = match Estimate::spread_of(&seconds) {
        Some(spread) if seconds.len() >= 3 => {
            Estimate { value: bps.clamp(spread.low, spread.high), ..spread }.at_least(1.03)
        }
        // A short test says little.
        _ => Estimate::spread(bps, 1.15),
    };
    found.add(key, estimate.times(overhead).rate(origin), Worth::Direct);
    true
}

/// Adds RTT and queue, if the sender of the test measured them.
fn round_trips(found: &mut Finding, end: &Value, origin: &Origin) {
    let streams = end["streams"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |name: &str| -> Vec<f64> {
        let all = streams.iter().filter_map(|it| it["sender"][name].as_f64());
        all.filter(|us| *us > 0.0).collect()
    };
    let least = of("min_rtt").into_iter().reduce(f64::min);
    let most = of("max_rtt").into_iter().reduce(f64::max);
    if let Some(least) = least {
        let rtt = Estimate { value: least / 1e3, low: least / 1e3 / LOADED, high: least / 1e3 };
        found.add("rtt", rtt.time(origin), Worth::Indirect);
    }
    let lost = streams.iter().any(|it| it["sender"]["retransmits"].as_u64().unwrap_or(0) > 0);
    match (least, most) {
        // The RTT is smoothed, so the queue is deeper than its growth.
        (Some(least), Some(most)) if lost && most > least => {
            let queue = (most - least) / 1e3;
            let queue = Estimate { value: queue, low: queue, high: 1.5 * queue };
            found.add("queue", queue.time(origin), Worth::Indirect);
        }
        _ => found.lacks("queue", "the test did not fill it", origin),
    }
}
