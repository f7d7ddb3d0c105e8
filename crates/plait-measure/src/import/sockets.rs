//! Output of `ss -ti`: the kernel's view of a TCP connection.

use super::finding::{Direction, Finding, ImportError, Input, Worth, origin};
use crate::estimate::Estimate;

/// Bytes of IP and TCP headers with timestamps.
const HEADERS: f64 = 52.0;

/// Sent bytes from which on a connection shows its link.
const MUCH: f64 = 1e5;

/// Reads the connection that sent the most bytes.
pub(super) fn read(input: &Input<'_>) -> Result<Finding, ImportError> {
    let all = connections(input.text);
    let sent = |line: &str| field(line, "bytes_sent:").unwrap_or(0.0);
    let Some((address, line)) = all.iter().copied().max_by(|a, b| sent(a.1).total_cmp(&sent(b.1)))
    else {
        let problem = "no connection has its values";
        return Err(ImportError::new(input, problem, "print them with `ss -tin`"));
    };
    let origin = origin(input, "ss", None);
    let mut found = Finding::new("ss -ti output");
    let (rate, other, loss) = match input.direction {
        Direction::Down => ("rate_down", "rate_up", "loss"),
        Direction::Up => ("rate_up", "rate_down", "loss_up"),
    };
    if let Some(least) = field(line, "minrtt:").filter(|ms| *ms > 0.0) {
        let smoothed = field(line, " rtt:").unwrap_or(least);
        let rtt = Estimate {
            value: least,
            low: least / 1.05,
            high: least.max(smoothed.min(1.1 * least)),
        };
        found.add("rtt", rtt.at_least(1.02).time(&origin), Worth::Direct);
        if smoothed > least {
            found.lacks("queue", "it may be deeper than the one that the connection saw", &origin);
        }
    }
    let limited = line.contains(" app_limited") || line.contains("rwnd_limited:");
    let delivered = text(line, "delivery_rate ").and_then(bits);
    match delivered.filter(|bps| *bps > 0.0 && !limited) {
        Some(bps) => {
            let size = field(line, " mss:").filter(|it| *it >= 1.0).unwrap_or(1_448.0);
            let factor = (size + HEADERS) / size;
            found.add(rate, Estimate::spread(bps * factor, 1.25).rate(&origin), Worth::Indirect);
        }
        None => {
            found.lacks(rate, "the application or the window limited the connection", &origin);
            found.remark(&format!(
                "unknown {rate}: the link did not limit the connection; run `ss -tin` during a bulk transfer"
            ));
        }
    }
    found.lacks(other, "the connection sent one way only", &origin);
    let mut others: Vec<&str> = all
        .iter()
        .filter(|it| it.0 != address && sent(it.1) >= MUCH)
        .map(|it| it.0)
        .filter(|it| !it.is_empty())
        .collect();
    others.sort_unstable();
    others.dedup();
    if !others.is_empty() {
        let others = others.join(" and ");
        found.remark(&format!(
            "only the connections of {address} count; those of {others} may use another link: import each link from a \
             file of its own (ss -tin src ADDRESS)"
        ));
    }
    if let Some(sent) = field(line, "bytes_sent:").filter(|sent| *sent >= MUCH) {
        let again = field(line, "bytes_retrans:").unwrap_or(0.0);
        // Full queues lose packets too, so this is the most that the link loses by itself.
        let most = (100.0 * again / sent).clamp(0.01, 99.0);
        let share = Estimate { value: 0.3 * most, low: 0.0, high: most };
        found.add(loss, share.share(&origin), Worth::Indirect);
    }
    Ok(found)
}

/// Returns the local address and device of each connection, such as `10.0.0.2%wlan0`, and the line with its values. The
/// address is empty if no line before has one.
fn connections(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut address = "";
    for line in text.lines() {
        if line.starts_with(|it: char| it.is_ascii_alphabetic()) {
            let port = |word: &&str| {
                let end = word.rsplit_once(':').map(|it| it.1);
                end.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
            };
            let local = line.split_whitespace().find(port).and_then(|it| it.rsplit_once(':'));
            address = local.map_or("", |it| it.0);
        }
        if line.contains("rtt:") && line.contains("cwnd:") {
            found.push((address, line));
        }
    }
    found
}

/// Returns the text after a name, up to the next blank.
fn text<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(name)?;
    rest.split([' ', ',']).next()
}

/// Returns the number after a name; of `rtt:22.1/3.4` the first one.
fn field(line: &str, name: &str) -> Option<f64> {
    let number = text(line, name)?.split('/').next()?;
    number.parse().ok().filter(|it: &f64| it.is_finite() && *it >= 0.0)
}

/// Returns the bits per second of `24000000bps`, as ss writes it, or with a prefix.
fn bits(text: &str) -> Option<f64> {
    let number = text.trim_end_matches("bps");
    let (number, factor) = match number.chars().last()? {
        'K' => (number.trim_end_matches('K'), 1e3),
        'M' => (number.trim_end_matches('M'), 1e6),
        'G' => (number.trim_end_matches('G'), 1e9),
        _ => (number, 1.0),
    };
    number.parse::<f64>().ok().map(|it| it * factor).filter(|it| it.is_finite())
}
