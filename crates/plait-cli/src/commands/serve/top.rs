//! `--top`: the connections and their paths, once a second.

use crate::console::Console;
use plait_base::{ConnId, Span, SubflowId};
use plait_core::{Carried, SubflowStats};
use plait_live::{Asker, Overview};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::thread;
use std::time::Duration;

const PERIOD: Duration = Duration::from_secs(1);
/// Lines of subflows at most; those that carry most come first.
const LINES: usize = 40;
/// Clears a terminal and goes to its corner.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows the server on stdout until it ends, on a thread of its own.
#[expect(clippy::disallowed_methods, reason = "what is watched goes on in real time")]
pub(super) fn show(asker: Asker, console: Console) {
    let clear = if console.animate && io::stdout().is_terminal() { CLEAR } else { "" };
    thread::spawn(move || {
        let mut before = Overview::default();
        while let Some(now) = asker.ask() {
            let frame = frame(&before, &now);
            if write!(io::stdout().lock(), "{clear}{frame}").is_err() {
                break;
            }
            before = now;
            thread::sleep(PERIOD);
        }
    });
}

/// What a subflow carries, beside what it had carried before.
struct Line<'a> {
    conn: ConnId,
    client: String,
    stats: &'a SubflowStats,
    sent_bps: u64,
    received_bps: u64,
}

/// The picture of `now`; rates are those since `before`.
fn frame(before: &Overview, now: &Overview) -> String {
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
    let multipath = now.connections.iter().filter(|it| it.stats.multipath).count();
    let mut text = format!(
        "{} connections, {multipath} of them Multipath TCP; {} failed, {} fell back\n\
         {:>6} {:<24} {:<8} {:>11} {:>11} {:>9} {:>9} {:>9} {:>6}\n",
        now.connections.len(),
        now.tally.failed,
        now.tally.fallbacks.values().sum::<u64>(),
        "conn",
        "path",
        "state",
        "sent Mbit/s",
        "recv Mbit/s",
        "RTT ms",
        "cwnd kB",
        "flight kB",
        "resent",
    );
    for line in lines.iter().take(LINES) {
        let stats = line.stats;
        let rtt = stats
            .srtt
            .map_or_else(|| "-".to_owned(), |srtt| format!("{:.1}", srtt.as_nanos() as f64 / 1e6));
        let _ = writeln!(
            text,
            "{:>6} {:<24} {:<8} {:>11.2} {:>11.2} {rtt:>9} {:>9.1} {:>9.1} {:>6}",
            line.conn.0,
            line.client,
            state(stats),
            line.sent_bps as f64 / 1e6,
            line.received_bps as f64 / 1e6,
            stats.cwnd as f64 / 1e3,
            stats.inflight as f64 / 1e3,
            stats.carried.retransmissions,
        );
    }
    if lines.len() > LINES {
        let _ = writeln!(text, "and {} more", lines.len() - LINES);
    }
    text.push('\n');
    text
}

fn state(stats: &SubflowStats) -> &'static str {
    match (stats.up, stats.potentially_failed, stats.joined) {
        (false, ..) => "closed",
        (_, true, _) => "silent",
        (_, _, true) => "joined",
        _ => "first",
    }
}

/// Bits per second.
fn rate(now: u64, before: u64, span: Span) -> u64 {
    let bits = u128::from(now.saturating_sub(before)) * 8 * 1_000_000_000;
    u64::try_from(bits / u128::from(span.as_nanos().max(1))).unwrap_or(u64::MAX)
}
