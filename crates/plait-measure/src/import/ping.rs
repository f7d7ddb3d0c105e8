//! Output of `ping`: of iputils, of BSD and macOS, and of busybox.

use super::finding::{Finding, ImportError, Input, Worth, origin};
use crate::estimate::Estimate;

/// Reason of a missing rate.
const NO_RATE: &str = "ping shows no rate";
/// Least number of pings that show a loss: one lost packet of fewer says next to nothing.
const MIN_PINGS: u64 = 50;

/// Reads the times of the answers and the lost ones.
pub(super) fn read(input: &Input<'_>) -> Result<Finding, ImportError> {
    let origin = origin(input, "ping", None);
    let mut times: Vec<f64> = input.text.lines().filter_map(time).collect();
    times.sort_by(f64::total_cmp);
    let (sent, received) = input.text.lines().find_map(counts).unwrap_or((0, 0));
    let summary = input.text.lines().find_map(summary);
    let rtt = match (times.as_slice(), summary) {
        ([least, ..], _) => {
            let quarter = plait_lab::stats::percentile(&times, 25.0).unwrap_or(*least);
            Estimate { value: *least, low: *least, high: quarter }.at_least(1.02)
        }
        ([], Some((least, mean))) => {
            Estimate { value: least, low: least, high: mean }.at_least(1.02)
        }
        ([], None) => {
            let problem = "the ping has no answer";
            return Err(ImportError::new(input, problem, "ping a host that answers"));
        }
    };
    let mut found = Finding::new("ping output");
    found.add("rtt", rtt.time(&origin), Worth::Direct);
    let mean = match times.as_slice() {
        [] => summary.map(|it| it.1),
        all => Some(all.iter().sum::<f64>() / all.len() as f64),
    };
    if let Some(mean) = mean.filter(|mean| *mean > rtt.value + 0.1) {
        // Each way has a delay from zero to the jitter, so both together have the jitter in the mean.
        let jitter = Estimate::spread(mean - rtt.value, 1.5);
        found.add("jitter", jitter.time(&origin), Worth::Indirect);
    }
    let few = match sent {
        1 => "one ping is too little to show a loss".to_owned(),
        _ => format!("{sent} pings are too few to show a loss"),
    };
    if (1..MIN_PINGS).contains(&sent) {
        for key in ["loss", "loss_up"] {
            found.lacks(key, &few, &origin);
        }
    } else if let Some(both) = Estimate::loss_percent(sent.saturating_sub(received), sent) {
        // A ping is lost on either way.
        let one = |percent: f64| 100.0 * (1.0 - libm::sqrt(1.0 - percent / 100.0));
        let each = Estimate { value: one(both.value), low: one(both.low), high: one(both.high) };
        for key in ["loss", "loss_up"] {
            found.add(key, each.share(&origin), Worth::Direct);
        }
    }
    for key in ["rate_down", "rate_up"] {
        found.lacks(key, NO_RATE, &origin);
    }
    found.lacks("queue", "ping shows no queue", &origin);
    found
        .remark("unknown rate: a ping does not show it; add a result of iperf3 or of a speed test");
    if received < sent && sent < MIN_PINGS {
        found.remark(&format!("unknown loss: {few} (ping -c {MIN_PINGS})"));
    }
    Ok(found)
}

/// Returns the time of an answer in ms.
fn time(line: &str) -> Option<f64> {
    // Duplicates are answers to the same ping.
    if !line.contains("bytes from") || line.contains("DUP!") {
        return None;
    }
    let (_, rest) = line.split_once("time=").or_else(|| line.split_once("time<"))?;
    let (number, unit) = rest.trim().split_once(' ').unwrap_or((rest.trim(), "ms"));
    let number: f64 = number.trim_end_matches("ms").parse().ok()?;
    let fits = number.is_finite() && number >= 0.0 && unit.trim_start().starts_with("ms");
    fits.then_some(number)
}

/// Returns the pings sent and answered: `20 packets transmitted, 20 received` or `20 packets received`.
fn counts(line: &str) -> Option<(u64, u64)> {
    let (sent, rest) = line.split_once(" packets transmitted")?;
    let received = rest.split(',').find(|part| part.contains("received"))?;
    let first = |text: &str| text.split_whitespace().next()?.parse().ok();
    Some((first(sent)?, first(received)?))
}

/// Returns least and mean of `rtt min/avg/max/mdev = 0.034/0.038/0.066/0.006 ms`.
fn summary(line: &str) -> Option<(f64, f64)> {
    let (_, rest) = line.split_once("min/avg/max")?;
    let mut numbers = rest.split_once('=')?.1.split('/').map(|it| it.trim().parse::<f64>());
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
