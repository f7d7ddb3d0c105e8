//! The numbers of the page as tables, which need no script.

use super::collect::{BLOCKS, Collector};
use super::{cause_words, escaped};
use crate::render::{PathCounters, bytes, figure, millis, percent, rate};
use crate::run::RunDocument;
use plait_app::measure::{Entry, MEASURES};
use plait_base::Time;
use plait_lab::PathReport;
use std::fmt::Write;

/// Number of measures at the top of the page.
const TILES: usize = 4;

/// Returns the measures that the run has, in the order of their list.
fn measures(document: &RunDocument) -> impl Iterator<Item = (&'static Entry, f64)> {
    MEASURES.iter().filter_map(|entry| Some((entry, *document.measures.get(entry.name)?)))
}

/// Formats a measure with its unit.
fn value(entry: &Entry, value: f64) -> String {
    match entry.unit {
        _ if entry.name.ends_with("_share") => percent(value),
        "ms" => millis(value),
        "" if value.fract() == 0.0 => format!("{value}"),
        unit => format!("{} {unit}", figure(value)).trim_end().to_owned(),
    }
}

/// Returns the name of a measure in words, without its unit.
fn words(entry: &Entry) -> String {
    let words = entry.stem().replace("ooo", "out-of-order");
    words.replace("rwnd", "receive window").replace('_', " ")
}

/// Writes the first few measures in large type.
pub(super) fn tiles(page: &mut String, document: &RunDocument) {
    page.push_str("<dl class=\"tiles\">\n");
    let spread = ["_median", "_p95", "_min", "_max"];
    let means = |entry: &Entry| !spread.iter().any(|word| entry.name.contains(word));
    for (entry, number) in measures(document).filter(|(entry, _)| means(entry)).take(TILES) {
        let _ = writeln!(
            page,
            "<div title=\"{}\"><dt>{}</dt><dd>{}</dd></div>",
            escaped(entry.definition),
            escaped(&words(entry)),
            escaped(&value(entry, number)),
        );
    }
    page.push_str("</dl>\n");
}

/// Writes all tables.
pub(super) fn write(
    page: &mut String,
    document: &RunDocument,
    counters: &[PathCounters],
    seen: &Collector,
) {
    of_paths(page, document, counters, seen);
    subflows(page, document, seen);
    beside(page, document);
    held_back(page, seen);
    decisions(page, document, seen);
    let rows = measures(document).map(|(entry, number)| {
        vec![entry.name.to_owned(), value(entry, number), entry.definition.to_owned()]
    });
    table(page, "Measures", &["measure", "value", "meaning"], rows.collect());
    let rows = document.paths.iter().map(scenario_row).collect();
    let columns = ["path", "down", "up", "rtt", "queue", "loss down", "loss up", "jitter", "more"];
    table(page, "Paths as simulated", &columns, rows);
}

fn of_paths(
    page: &mut String,
    document: &RunDocument,
    counters: &[PathCounters],
    seen: &Collector,
) {
    let head = [
        "path",
        "sent share",
        "sent",
        "segments",
        "retransmitted",
        "reinjected",
        "rtt min / mean / max",
        "packets lost",
        "timeouts",
        "idle resets",
    ];
    let rows = document.paths.iter().zip(counters).zip(&seen.paths).map(|((path, sum), tracks)| {
        let rtt = sum.rtt_ms.map(|(least, mean, greatest)| {
            format!("{} / {} / {}", millis(least), millis(mean), millis(greatest))
        });
        let causes: Vec<String> =
            tracks.drops.iter().map(|(cause, count)| format!("{count} {cause}")).collect();
        vec![
            path.name.clone(),
            percent(sum.share),
            bytes(sum.sent_bytes),
            sum.segments.to_string(),
            bytes(sum.retransmitted_bytes),
            bytes(sum.reinjected_bytes),
            rtt.unwrap_or_else(|| "\u{2013}".to_owned()),
            if causes.is_empty() { "0".to_owned() } else { causes.join(", ") },
            tracks.timeouts.to_string(),
            tracks.idle_resets.to_string(),
        ]
    });
    table(page, "What each path did", &head, rows.collect());
}

fn subflows(page: &mut String, document: &RunDocument, seen: &Collector) {
    let head = [
        "subflow",
        "path",
        "up from",
        "until",
        "new data",
        "sent again",
        "copies of another\u{2019}s",
        "timeouts",
        "last cwnd",
        "last srtt",
    ];
    let none = || "\u{2013}".to_owned();
    let origin = seen.grid.origin;
    let at = |time: Time| {
        let shown = (time >= origin).then(|| millis(time.since(origin).as_millis_f64()));
        shown.unwrap_or_else(|| "before".to_owned())
    };
    let rows = seen.lives.iter().map(|life| {
        let path = document.paths.get(life.path.index());
        vec![
            life.subflow.0.to_string(),
            path.map_or_else(none, |path| path.name.clone()),
            at(life.up),
            life.down.map_or_else(|| "the end".to_owned(), at),
            bytes(life.new),
            bytes(life.again),
            bytes(life.copied),
            life.timeouts.to_string(),
            life.cwnd.map_or_else(none, bytes),
            life.srtt.map_or_else(none, |srtt| millis(srtt.as_millis_f64())),
        ]
    });
    table(page, "Subflows of the sender", &head, rows.collect());
}

/// Writes the competing flows, which no drawing shows.
fn beside(page: &mut String, document: &RunDocument) {
    let rows = document.competing_mbps.iter().map(|(kind, flows)| {
        let each: Vec<String> = flows.iter().map(|mbps| figure(*mbps)).collect();
        vec![kind.clone(), format!("{} Mbit/s", each.join(", "))]
    });
    table(page, "Competing flows", &["flows", "goodput of each"], rows.collect());
}

fn held_back(page: &mut String, seen: &Collector) {
    let run = seen.last.max(seen.grid.origin).since(seen.grid.origin).as_nanos().max(1);
    let rows = BLOCKS.iter().zip(&seen.blocked).filter_map(|(block, held)| {
        let total: u64 = held.0.iter().sum();
        let share = percent(total as f64 / run as f64);
        (total > 0).then(|| vec![cause_words(*block).to_owned(), millis(total as f64 / 1e6), share])
    });
    table(page, "Held back", &["cause", "time", "share of the run"], rows.collect());
}

fn decisions(page: &mut String, document: &RunDocument, seen: &Collector) {
    let total: u64 = seen.decisions.values().sum();
    let rows = seen.decisions.iter().map(|((path, reason), count)| {
        let path = path.and_then(|path| document.paths.get(path.index()));
        vec![
            reason.as_str().to_owned(),
            path.map_or_else(|| "\u{2013}".to_owned(), |path| path.name.clone()),
            count.to_string(),
            percent(*count as f64 / total.max(1) as f64),
        ]
    });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row[2].parse().unwrap_or(0_u64)));
    table(page, "Scheduling decisions", &["reason", "path", "times", "share"], rows);
}

fn scenario_row(path: &PathReport) -> Vec<String> {
    let unlimited = || "no limit".to_owned();
    let from = |bps: Option<u64>, trace: &Option<String>| match (bps, trace) {
        (Some(bps), Some(trace)) => format!("{} ({trace})", rate(bps)),
        (Some(bps), None) => rate(bps),
        (None, Some(trace)) => trace.clone(),
        (None, None) => unlimited(),
    };
    let micros = |us: u64| millis(us as f64 / 1e3);
    let mut more: Vec<String> = Vec::new();
    if let Some(profile) = path.profile.as_ref().filter(|profile| **profile != path.name) {
        more.push(format!("profile {profile}"));
    }
    if path.backup {
        more.push("backup".to_owned());
    }
    vec![
        path.name.clone(),
        from(path.rates.rate_down_bps, &path.trace),
        from(path.rates.rate_up_bps, &path.trace_up),
        micros(path.delays.rtt_us),
        path.queue.clone(),
        percent(path.losses.loss),
        percent(path.losses.loss_up),
        if path.delays.jitter_us == 0 { "0".to_owned() } else { micros(path.delays.jitter_us) },
        more.join(", "),
    ]
}

/// Writes a table unless it is empty. It scrolls within itself on a narrow screen.
pub(super) fn table(page: &mut String, caption: &str, head: &[&str], rows: Vec<Vec<String>>) {
    let rows = rows.into_iter().map(|row| row.into_iter().map(Cell::Text).collect());
    cells(page, caption, head, rows.collect());
}

/// A cell of a table.
pub(super) enum Cell {
    Text(String),
    /// Words that lead to another part of the page, with its name.
    Link(String, String),
    /// A share of the width.
    Bar(f64),
}

impl Cell {
    /// Returns true for a number, whose column is right-aligned. An address is none.
    fn is_number(&self) -> bool {
        let begins = |c: char| c.is_ascii_digit() || "\u{2013}<\u{2265}+-".contains(c);
        match self {
            Cell::Text(text) | Cell::Link(text, _) => {
                text.starts_with(begins) && !text.contains(':')
            }
            Cell::Bar(_) => false,
        }
    }

    fn html(&self) -> String {
        match self {
            Cell::Text(text) => escaped(text),
            Cell::Link(text, to) => {
                format!("<a href=\"#{}\">{}</a>", escaped(to), escaped(text))
            }
            Cell::Bar(share) => {
                let width = (share * 100.0).clamp(0.0, 100.0);
                format!("<div class=\"share\"><i style=\"width: {width:.1}%\"></i></div>")
            }
        }
    }
}

/// Writes a table of cells unless it is empty.
pub(super) fn cells(page: &mut String, caption: &str, head: &[&str], rows: Vec<Vec<Cell>>) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\">\n\
         <table><caption>{caption}</caption>\n<thead><tr>"
    );
    let numbers: Vec<bool> = (0..head.len())
        .map(|column| {
            column > 0 && rows.iter().all(|row| row.get(column).is_some_and(Cell::is_number))
        })
        .collect();
    let class = |column: usize| if numbers[column] { " class=\"n\"" } else { "" };
    for (column, name) in head.iter().enumerate() {
        let _ = write!(page, "<th scope=\"col\"{}>{}</th>", class(column), escaped(name));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let cell = cell.html();
            let _ = match at {
                0 => write!(page, "<th scope=\"row\">{cell}</th>"),
                _ => write!(page, "<td{}>{cell}</td>", class(at)),
            };
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table>\n</div>\n");
}
