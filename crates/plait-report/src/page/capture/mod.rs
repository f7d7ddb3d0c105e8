//! The page of a capture: the sentence, the incidents, the largest transfer over time, and the numbers of the report.

mod collect;
mod tables;

pub use collect::TransferCollector;

use super::escaped;
use super::marks::Marks;
use super::series::{Band, Track};
use super::{Group, Lane};
use super::{again, begin_charts, begun, boxes, curves, end, end_charts, marks_of, panel, written};
use crate::Error;
use crate::render::{bytes, ends, figure, millis, percent, summary};
use plait_capture::{
    CaptureExplanation, Cause, CauseReport, ConnectionReport, IncidentReport, PathReport, Place,
};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The script of the page. It is that of a run with further drawings.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("../plot.js"),
    include_str!("../drawings.js"),
    include_str!("../captured.js"),
    include_str!("../page.js"),
    "})();\n"
);

/// Paths with drawings of their own: those with the most bytes.
const DRAWN_PATHS: usize = 8;
/// Causes with a lane.
const LANES: usize = 10;
/// An incident is shaded if it costs at least this share of the transfer, as the sentence names none below.
const WORTH_SHADING: f64 = 0.03;

/// The data of the script. Bins are `bin_us` microseconds long and begin at the first data; bytes count from it too.
#[derive(Serialize, Debug)]
struct Drawing {
    bin_us: f64,
    bins: usize,
    end_us: f64,
    /// True if the data is that of the receiver, when it arrives.
    at_receiver: bool,
    paths: Vec<PathDrawing>,
    /// Acknowledged data.
    readable: Band,
    unacked: Band,
    /// None if the capture does not show it.
    window: Option<Band>,
    /// Incidents by cause.
    blocked: Vec<Lane>,
    marks: Vec<Group>,
    /// All incidents: start and end in us, path or -1, and 1 if it is shaded.
    spans: Vec<(u64, u64, i64, u8)>,
}

/// One path.
#[derive(Serialize, Debug)]
struct PathDrawing {
    name: String,
    /// Bin and payload bytes.
    sent: Vec<(usize, u64)>,
    /// Bin and segments that were sent again.
    again: Vec<(usize, u64)>,
    unacked: Band,
    /// Bins with round trips, and the shortest and the longest one of each.
    rtt_us: Vec<(usize, u64, u64)>,
}

/// Returns the page of captures.
///
/// # Errors
/// If the numbers of the drawings cannot be written as JSON.
pub fn render(explanation: &CaptureExplanation, seen: &TransferCollector) -> Result<String, Error> {
    let connection = explanation.connections.first();
    let drawing = connection.filter(|_| seen.is_drawn()).map(|it| drawing(it, seen));
    let numbers = drawing.as_ref().map(written).transpose()?;
    let files: Vec<&str> = explanation.files.iter().map(|file| file.file.as_str()).collect();
    let title = format!("{} \u{b7} plait explain", files.join(", "));
    let mut page = begun(&title, numbers.as_ref().map_or(0, String::len));
    head(&mut page, explanation);
    if let Some(connection) = connection {
        tables::lost_time(&mut page, explanation, connection, numbers.is_some());
        if let Some(drawing) = &drawing {
            charts(&mut page, connection, drawing, &seen.marks, seen.is_acked);
        }
        page.push_str("<section aria-labelledby=\"numbers\">\n<h2 id=\"numbers\">Numbers</h2>\n");
        tables::write(&mut page, connection);
        page.push_str("</section>\n");
        tables::replay(&mut page, explanation, connection);
        tables::others(&mut page, explanation);
    }
    tables::files(&mut page, explanation);
    let _ = writeln!(
        page,
        "<footer>plait {} ({}): the same files and the same line make the same bytes again.</footer>",
        crate::VERSION,
        crate::COMMIT,
    );
    match numbers {
        Some(numbers) => end(&mut page, &numbers, SCRIPT),
        None => page.push_str("</main>\n</body>\n</html>\n"),
    }
    Ok(page)
}

fn drawing(connection: &ConnectionReport, seen: &TransferCollector) -> Drawing {
    let bins = seen.bins();
    let bin_ns = seen.grid.bin.as_nanos().max(1);
    let paths = connection.paths.iter().zip(&seen.paths).map(|(path, tracks)| PathDrawing {
        name: path.name.clone(),
        sent: tracks.sent.sparse(),
        again: tracks.again.sparse(),
        unacked: tracks.unacked.finish(bins),
        rtt_us: tracks.rtt_us.records(),
    });
    let knows_window = seen.is_acked && seen.unknown_windows == 0;
    Drawing {
        bin_us: bin_ns as f64 / 1e3,
        bins,
        end_us: seen.end.as_nanos() as f64 / 1e3,
        at_receiver: connection.paths.first().is_some_and(|path| path.place == Place::Receiver),
        paths: paths.collect(),
        readable: if seen.is_acked {
            seen.acked.finish(bins)
        } else {
            Track::default().finish(bins)
        },
        unacked: seen.unacked.finish(bins),
        window: knows_window.then(|| seen.window.finish(bins)),
        blocked: lanes(connection, bin_ns, seen.end.as_nanos()),
        marks: boxes(&seen.marks),
        spans: spans(connection, seen.end.as_nanos() / 1_000),
    }
}

/// Returns the time in incidents of each cause, the most expensive ones.
fn lanes(connection: &ConnectionReport, bin_ns: u64, end_ns: u64) -> Vec<Lane> {
    let of_cause = |it: &IncidentReport, cause: &CauseReport| {
        (it.cause, &it.path) == (cause.cause, &cause.path)
    };
    let lanes = connection.lost_time.iter().map(|cause| {
        let mut held = BTreeMap::<u64, u64>::new();
        for incident in connection.incidents.iter().filter(|it| of_cause(it, cause)) {
            let [mut from, to] = [incident.from_ms, incident.to_ms]
                .map(|ms| ((ms.max(0.0) * 1e6) as u64).min(end_ns));
            while from < to {
                let bin = from / bin_ns;
                let stop = ((bin + 1) * bin_ns).min(to);
                *held.entry(bin).or_default() += stop - from;
                from = stop;
            }
        }
        let share = |ns: u64| (ns * 1_000).div_ceil(bin_ns).min(1_000);
        let shares = held.into_iter().map(|(bin, ns)| (bin as usize, share(ns)));
        Lane { name: named(cause.cause, cause.path.as_deref()), shares: shares.collect() }
    });
    lanes.filter(|lane| !lane.shares.is_empty()).take(LANES).collect()
}

/// Returns a cause with its path.
fn named(cause: Cause, path: Option<&str>) -> String {
    let of = path.map_or(String::new(), |path| format!(" of {path}"));
    format!("{}{of}", cause.name())
}

fn spans(connection: &ConnectionReport, end_us: u64) -> Vec<(u64, u64, i64, u8)> {
    let least = connection.duration_ms * WORTH_SHADING;
    let at = |ms: f64| ((ms.max(0.0) * 1e3) as u64).min(end_us);
    let spans = connection.incidents.iter().map(|incident| {
        let path = connection.paths.iter().position(|it| Some(&it.name) == incident.path.as_ref());
        let path = path.map_or(-1, |path| path as i64);
        let is_shaded = incident.cost_ms.is_some_and(|cost| cost >= least);
        (at(incident.from_ms), at(incident.to_ms), path, u8::from(is_shaded))
    });
    spans.collect()
}

fn head(page: &mut String, explanation: &CaptureExplanation) {
    let _ =
        write!(page, "<header>\n<h1 class=\"sentence\">{}</h1>\n", escaped(&explanation.sentence));
    if let Some(connection) = explanation.connections.first() {
        let _ = write!(
            page,
            "<p class=\"what\">{}</p>\n<p class=\"what\">{}</p>\n",
            escaped(&ends(connection)),
            escaped(&summary(connection)),
        );
        tiles(page, connection);
    }
    again(page, &explanation.command);
    let broken = explanation.files.iter().filter_map(tables::broken);
    let notes = explanation.connections.first().map(|it| it.notes.as_slice()).unwrap_or_default();
    let files = explanation.files.iter().flat_map(|file| &file.notes);
    let notes: Vec<String> = broken.chain(notes.iter().cloned()).chain(files.cloned()).collect();
    if !notes.is_empty() {
        page.push_str("<ul class=\"faults\">\n");
        for note in notes {
            let _ = writeln!(page, "<li>{}</li>", escaped(&note));
        }
        page.push_str("</ul>\n");
    }
    page.push_str("</header>\n");
}

/// Writes the main numbers in large type.
fn tiles(page: &mut String, connection: &ConnectionReport) {
    if connection.duration_ms <= 0.0 {
        return;
    }
    let lost =
        connection.lost_time.iter().filter_map(|cause| cause.cost_ms).fold(0.0, |a, b| a + b);
    let share = percent(lost / connection.duration_ms);
    let traffic = || connection.paths.iter().map(|path| &path.traffic);
    let segments: u64 = traffic().map(|it| it.segments).sum();
    let missing: f64 = traffic().map(|it| it.loss_percent / 100.0 * it.segments as f64).sum();
    let tiles = [
        ("time", millis(connection.duration_ms), "from the first data to its last acknowledgement"),
        ("lost time", format!("{} ({share})", millis(lost)), "time beyond the rates of the paths"),
        ("data", bytes(connection.data.bytes), "each byte counted once"),
        (
            "goodput",
            format!("{} Mbit/s", figure(connection.data.goodput_mbps)),
            "data divided by the time",
        ),
        ("packet loss", percent(missing / segments.max(1) as f64), "segments that were lost"),
    ];
    page.push_str("<dl class=\"tiles\">\n");
    for (name, value, meaning) in tiles {
        let _ = writeln!(
            page,
            "<div title=\"{meaning}\"><dt>{name}</dt><dd>{}</dd></div>",
            escaped(&value)
        );
    }
    page.push_str("</dl>\n");
}

fn charts(
    page: &mut String,
    connection: &ConnectionReport,
    drawing: &Drawing,
    marks: &Marks,
    is_acked: bool,
) {
    begin_charts(page, "transfer");
    let data = if drawing.at_receiver { "arrived" } else { "was sent" };
    let (note, label) = match is_acked {
        true => (
            format!("when each byte {data} on its path, and what was acknowledged"),
            "acknowledged",
        ),
        false => (format!("when each byte {data} on its path"), "no acknowledgements"),
    };
    let words = format!("Data sequence over time: what each path carried; {label}");
    panel(page, "sequence", "tall", "Data sequence", &note, &words);
    if !drawing.blocked.is_empty() {
        panel(
            page,
            "blocked",
            "lanes",
            "Incidents",
            "by cause, the most expensive first",
            "When there was an incident, by cause; the table of incidents has the same times",
        );
    }
    let label = "Payload over time of each path, stacked";
    panel(page, "rate", "middle", "Rate", "payload by path, stacked, with copies", label);
    if is_acked {
        let note = match &drawing.window {
            Some(_) => "of all paths; the line is the receive window, where it is near",
            None => "of all paths",
        };
        panel(page, "unacked", "middle", "Unacknowledged", note, "Unacknowledged data over time");
    }
    let mut order: Vec<usize> = (0..connection.paths.len()).collect();
    order.retain(|at| connection.paths[*at].traffic.bytes > 0);
    order.sort_by_key(|at| std::cmp::Reverse(connection.paths[*at].traffic.bytes));
    order.truncate(DRAWN_PATHS);
    order.sort_unstable();
    for index in order {
        path_charts(page, index, &connection.paths[index], drawing, is_acked);
    }
    let marks = marks_of(marks, "segments with data");
    let thinned = format!("{marks} {}", curves(drawing.bins, drawing.bin_us));
    end_charts(page, "transfer", &thinned);
}

fn path_charts(
    page: &mut String,
    index: usize,
    path: &PathReport,
    drawing: &Drawing,
    is_acked: bool,
) {
    let has_rtt = drawing.paths.get(index).is_some_and(|it| !it.rtt_us.is_empty());
    if !is_acked && !has_rtt {
        return;
    }
    let name = escaped(&path.name);
    let _ = writeln!(
        page,
        "<h3 class=\"path\" data-path=\"{index}\"><i aria-hidden=\"true\"></i>{name} \
         <small>{} to {}</small></h3>",
        escaped(&path.client),
        escaped(&path.server)
    );
    let mut one = |plot: &str, class: &str, heading: &str, note: &str| {
        let label = format!("{name}: {heading} over time");
        panel(page, &format!("{plot}-{index}"), class, heading, note, &label);
    };
    if is_acked {
        let note = "\u{25bc} sent again; shaded while it had an incident";
        one("flight", "middle", "Unacknowledged", note);
    }
    if has_rtt {
        let note = match path.rtt.as_ref().map(|rtt| rtt.method) {
            Some("timestamps") => "from a clock value to its echo; \u{25bd} beyond the scale",
            _ => "from data to its acknowledgement; \u{25bd} beyond the scale",
        };
        one("rtt", "low", "RTT", note);
    }
}
