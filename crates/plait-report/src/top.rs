//! The connections of a server and their paths as text for a terminal.

use plait_base::{ConnId, Span, SubflowId};
use plait_core::{Carried, SubflowStats};
use plait_engine::Overview;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Least and greatest width of the address column. An IPv6 address has at most 39 characters.
const LEAST_ADDRESS: usize = 15;
const LARGEST_ADDRESS: usize = 39;

/// The counters of a subflow, with their earlier values.
struct Line<'a> {
    conn: ConnId,
    client: String,
    stats: &'a SubflowStats,
    sent_bps: u64,
    received_bps: u64,
}

/// A column: its head, its width in characters, and its text for a line. If the width is too small,
/// later columns are dropped first.
type Column = (&'static str, usize, fn(&Line<'_>) -> String);

const COLUMNS: [Column; 8] = [
    ("conn", 6, |line| line.conn.0.to_string()),
    ("state", 6, |line| state(line.stats).to_owned()),
    ("sent", 7, |line| format!("{:.1}", line.sent_bps as f64 / 1e6)),
    ("recv", 7, |line| format!("{:.1}", line.received_bps as f64 / 1e6)),
    ("RTT", 7, |line| {
        let srtt = line.stats.srtt.map(|srtt| format!("{:.1}", srtt.as_nanos() as f64 / 1e6));
        srtt.unwrap_or_else(|| "-".to_owned())
    }),
    ("cwnd", 7, |line| format!("{:.1}", line.stats.cwnd as f64 / 1e3)),
    ("flight", 7, |line| format!("{:.1}", line.stats.inflight as f64 / 1e3)),
    ("resent", 6, |line| line.stats.carried.counters.retransmissions.to_string()),
];

/// Returns the state `now` in `width` columns, with at most `most` lines of subflows. Rates are
/// averages since `before`.
#[must_use]
pub fn frame(before: &Overview, now: &Overview, width: usize, most: usize) -> String {
    let lines = lines(before, now);
    let multipath = now.connections.iter().filter(|it| it.stats.multipath).count();
    let mut text = format!(
        "{} {}, {multipath} Multipath TCP; {} failed, {} fell back; Mbit/s, ms, kB\n",
        now.connections.len(),
        if now.connections.len() == 1 { "connection" } else { "connections" },
        now.tally.failed,
        now.tally.fallbacks.values().sum::<u64>(),
    );
    let (mut columns, mut used) = (Vec::new(), 0);
    for column in &COLUMNS {
        if LEAST_ADDRESS + used + column.1 + 1 > width {
            break;
        }
        used += column.1 + 1;
        columns.push(column);
    }
    let address = width.saturating_sub(used).clamp(LEAST_ADDRESS, LARGEST_ADDRESS);
    let row = |client: &str, cells: &mut dyn Iterator<Item = String>| {
        let mut row = format!("{:<address$}", shortened(client, address));
        for ((_, width, _), cell) in columns.iter().zip(cells) {
            row.push_str(&format!(" {cell:>width$}"));
        }
        row + "\n"
    };
    text.push_str(&row("path", &mut columns.iter().map(|column| column.0.to_owned())));
    for line in lines.iter().take(most) {
        text.push_str(&row(&line.client, &mut columns.iter().map(|column| (column.2)(line))));
    }
    if lines.len() > most {
        let _ = writeln!(text, "and {} more", lines.len() - most);
    }
    text.push('\n');
    text
}

/// Returns an address without its middle if it is longer than `width`.
fn shortened(address: &str, width: usize) -> String {
    let len = address.chars().count();
    if len <= width {
        return address.to_owned();
    }
    let (head, tail) = (width / 2, width - width / 2 - 1);
    let chars = || address.chars();
    chars().take(head).chain(['…']).chain(chars().skip(len - tail)).collect()
}

/// Returns a line for each subflow, the busiest first.
fn lines<'a>(before: &Overview, now: &'a Overview) -> Vec<Line<'a>> {
    let past: BTreeMap<(ConnId, SubflowId), Carried> = before
        .connections
        .iter()
        .flat_map(|it| it.stats.subflows.iter().map(|s| ((it.conn, s.subflow), s.carried)))
        .collect();
    let span = Span::from_nanos(now.age.as_nanos().saturating_sub(before.age.as_nanos()));
    let mut lines = Vec::new();
    for view in &now.connections {
        for (client, stats) in &view.subflows {
            let past = past.get(&(view.conn, stats.subflow)).copied().unwrap_or_default();
            lines.push(Line {
                conn: view.conn,
                client: client.map_or_else(String::new, |client| client.to_string()),
                stats,
                sent_bps: rate(stats.carried.sent, past.sent, span),
                received_bps: rate(stats.carried.received, past.received, span),
            });
        }
    }
    lines.sort_by_key(|it| (std::cmp::Reverse(it.sent_bps + it.received_bps), it.conn));
    lines
}

fn state(stats: &SubflowStats) -> &'static str {
    match (stats.up, stats.potentially_failed, stats.joined) {
        (false, ..) => "closed",
        (_, true, _) => "silent",
        (_, _, true) => "joined",
        _ => "first",
    }
}

/// Returns a rate in bits per second.
fn rate(now: u64, before: u64, span: Span) -> u64 {
    let bits = u128::from(now.saturating_sub(before)) * 8 * 1_000_000_000;
    u64::try_from(bits / u128::from(span.as_nanos().max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_fits_its_terminal() {
        for width in [40, 60, 75, 76, 80, 100, 200] {
            let frame = frame(&Overview::default(), &Overview::default(), width, 40);
            let head = frame.lines().nth(1).unwrap();
            assert!(head.chars().count() <= width, "{width}: {head}");
            // The address takes 15 columns and the others take 61.
            assert_eq!(head.contains("resent"), width >= 76, "{width}: {head}");
            assert!(width < 80 || frame.lines().all(|line| line.chars().count() <= 80.max(width)));
        }
    }

    #[test]
    fn a_long_address_keeps_both_ends() {
        assert_eq!(shortened("10.98.1.1", 15), "10.98.1.1");
        assert_eq!(shortened("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff", 15), "2001:db…ee:ffff");
    }
}
