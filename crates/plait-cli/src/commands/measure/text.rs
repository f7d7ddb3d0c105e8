//! The result of a measurement for people.

use plait_measure::live::{Bottleneck, MeasureDocument, Measured, PathResult, WayResult};
use plait_report::render::{Align, Column, Emphasis, Table, wrap};

/// Returns a table of the paths, and sentences below it.
pub(super) fn table(document: &MeasureDocument, width: usize) -> String {
    let right = |title| Column::new(title, Align::Right);
    let mut table = Table::new(vec![
        Column::new("path", Align::Left),
        Column::new("direction", Align::Left),
        right("Mbit/s"),
        right("80 %"),
        right("queue ms"),
        right("80 %"),
        right("loss %"),
        right("80 %"),
    ]);
    for path in &document.paths {
        for (name, way) in [("down", &path.down), ("up", &path.up)] {
            let mut cells = vec![path.name.clone(), name.to_owned()];
            cells.extend(row(way));
            table.row(Emphasis::None, cells);
        }
    }
    let mut text = table.to_text(width, false);
    for path in &document.paths {
        text += &format!("\n{}\n", wrap(&sentence(path), width).join("\n"));
    }
    if let Some(sentence) = together(document) {
        text += &format!("\n{}\n", wrap(&sentence, width).join("\n"));
    }
    text
}

fn row(way: &WayResult) -> Vec<String> {
    let cells = |it: Option<Measured>, digits: usize| match it {
        Some(it) => [
            format!("{:.digits$}", it.value),
            format!("{:.digits$} to {:.digits$}", it.low, it.high),
        ],
        None => ["unknown".to_owned(), "-".to_owned()],
    };
    [cells(way.rate_mbps, 2), cells(way.queue_ms, 0), cells(way.loss_percent, 3)].concat()
}

/// Describes a path: its times, and whether options of Multipath TCP arrive.
fn sentence(path: &PathResult) -> String {
    let mut text = format!("{}:", path.name);
    match path.rtt_ms {
        Some(rtt) => {
            text += &format!(" RTT {:.1} ms ({:.1} to {:.1})", rtt.value, rtt.low, rtt.high);
        }
        None => text += " RTT unknown",
    }
    if let Some(loaded) = path.loaded_rtt_ms {
        text += &format!(", {loaded:.0} ms under load both ways");
    }
    if let Some(jitter) = path.jitter_ms {
        text += &format!(", jitter {:.1} ms", jitter.value);
    }
    if let (Some(more), Some(error)) = (path.asymmetry_ms, path.asymmetry_error_ms) {
        text += &format!(", down {more:+.1} ms against up (clocks: within {error:.1} ms)");
    }
    text += match path.mptcp_options {
        Some(true) => ". MPTCP options arrive.",
        Some(false) => ". MPTCP options do not arrive: a middlebox removes them.",
        None => ". Whether MPTCP options arrive is unknown.",
    };
    for remark in &path.remarks {
        text += &format!(" Note: {remark}.");
    }
    text
}

/// Describes the paths together.
fn together(document: &MeasureDocument) -> Option<String> {
    let (rate, missing) = (document.together_mbps?, document.missing_share?);
    let verdict = match document.bottleneck? {
        Bottleneck::Own => "each path has a bottleneck of its own",
        Bottleneck::Shared => "the paths share a bottleneck, and bonding them gains nothing",
        Bottleneck::Unclear => "it is not clear whether they share a bottleneck",
    };
    Some(format!(
        "Together: {:.2} Mbit/s ({:.2} to {:.2}) down: {verdict}. This is less than the sum of the single rates by {:.0} % \
         of the smallest one ({:.0} to {:.0}).",
        rate.value,
        rate.low,
        rate.high,
        100.0 * missing.value,
        100.0 * missing.low,
        100.0 * missing.high
    ))
}
