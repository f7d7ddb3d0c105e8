//! `plait run --html`, and `plait explain CAPTURE --html`: one page without external resources. The tables are in its
//! text. Its script makes the drawings from the numbers in the page.

mod capture;
mod collect;
mod marks;
mod series;
mod tables;

pub use capture::{TransferCollector, render as captured};
pub use collect::Collector;

use crate::Error;
use crate::render::{PathCounters, bytes, millis};
use crate::run::RunDocument;
use collect::{BLOCKS, PathTracks};
use marks::{MarkGroup, Marks, Thinned};
use plait_base::Time;
use plait_core::Block;
use plait_lab::Scenario;
use serde::Serialize;
use series::Band;
use std::fmt::Write;

pub(crate) const STYLE: &str = include_str!("page.css");
/// One function, so that the parts share their names without making them global.
const SCRIPT: &str = concat!(
    "\"use strict\";\n(() => {\n",
    include_str!("plot.js"),
    include_str!("drawings.js"),
    include_str!("page.js"),
    "})();\n"
);

/// The data of the script. Bins are `bin_us` microseconds long and begin at the start of the
/// drawing; bytes count from the first drawn byte.
#[derive(Serialize, Debug)]
struct Drawing {
    bin_us: f64,
    bins: usize,
    end_us: f64,
    paths: Vec<PathDrawing>,
    readable: Band,
    held: Band,
    blocked: Vec<Lane>,
    marks: Vec<Group>,
    incidents: Vec<(u64, u32, &'static str)>,
}

/// One path.
#[derive(Serialize, Debug)]
struct PathDrawing {
    name: String,
    /// Bin and payload bytes.
    sent: Vec<(usize, u64)>,
    cwnd: Band,
    inflight: Band,
    srtt_us: Band,
    queue: Band,
    /// Bin and packets.
    lost: Vec<(usize, u64)>,
    lost_acks: Vec<(usize, u64)>,
    /// Outages: start and end in us.
    down: Vec<(u64, u64)>,
}

/// One cause that blocked the sender.
#[derive(Serialize, Debug)]
struct Lane {
    name: String,
    /// Bin and thousandths of it.
    shares: Vec<(usize, u64)>,
}

/// Marks of one kind on one path: start in us, length in us, first byte and bytes of each.
#[derive(Serialize, Debug)]
struct Group {
    kind: &'static str,
    path: u32,
    boxes: Vec<u64>,
}

/// Creates the observer of a run of `scenario`.
#[must_use]
pub fn collector(scenario: &Scenario) -> Collector {
    let outages = scenario.paths.iter().map(|path| [path.outages.as_slice(), &path.gone].concat());
    Collector::new(scenario.workload.sender(), outages.collect())
}

/// Returns the numbers of the drawings as JSON, for a program that draws them by itself.
///
/// # Errors
/// If the numbers cannot be written as JSON.
pub fn numbers(document: &RunDocument, mut seen: Collector) -> Result<String, Error> {
    seen.close();
    written(&drawing(document, &seen))
}

fn written(drawing: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(drawing).map_err(|error| Error::Internal(error.to_string()))
}

/// Returns the page of a run: its settings, its totals by path, and its observations.
///
/// # Errors
/// If the numbers of the drawings cannot be written as JSON.
pub fn render(
    document: &RunDocument,
    counters: &[PathCounters],
    mut seen: Collector,
) -> Result<String, Error> {
    seen.close();
    let drawing = drawing(document, &seen);
    let numbers = written(&drawing)?;
    let title = format!("{}, {} \u{b7} plait run", document.scheduler, document.workload);
    let mut page = begun(&title, numbers.len());
    head(&mut page, document);
    charts(&mut page, &drawing, &thinned(&drawing, &seen));
    page.push_str("<section aria-labelledby=\"numbers\">\n<h2 id=\"numbers\">Numbers</h2>\n");
    tables::write(&mut page, document, counters, &seen);
    page.push_str("</section>\n");
    let _ = writeln!(
        page,
        "<footer>plait {} ({}), seed {}, segment hash {}: the same line makes the same bytes \
         again.</footer>",
        crate::VERSION,
        crate::COMMIT,
        document.seed,
        document.segment_hash,
    );
    end(&mut page, &numbers, SCRIPT);
    Ok(page)
}

/// Returns the begin of a page, up to its main part. `room` is the size of its numbers.
fn begun(title: &str, room: usize) -> String {
    let mut page = String::with_capacity(room + 64 * 1024);
    let _ = write!(
        page,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"plait {version}\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        version = crate::VERSION,
        title = escaped(title),
    );
    page
}

/// Ends the main part, and writes the numbers and the script.
fn end(page: &mut String, numbers: &str, script: &str) {
    // A `<` could end the element around the numbers.
    let numbers = numbers.replace('<', "\\u003c");
    let _ = write!(
        page,
        "</main>\n<script type=\"application/json\" id=\"run\">{numbers}</script>\n\
         <script>\n{script}</script>\n</body>\n</html>\n"
    );
}
/// Returns the words for a cause that blocks a sender.
fn cause_words(block: Block) -> &'static str {
    match block {
        Block::ReceiveWindow => "peer\u{2019}s window full",
        Block::SendBuffer => "send buffer full",
        Block::Scheduler => "scheduler waits",
        Block::CongestionWindow => "every cwnd full",
        Block::NoSubflow => "no subflow alive",
    }
}

/// Returns the outages of a path within the drawn time.
fn outages(tracks: &PathTracks, origin: Time, end: Time) -> Vec<(u64, u64)> {
    let at = |time: Time| time.clamp(origin, end).since(origin).as_micros();
    let spans = tracks.outages.iter().map(|(from, to)| (at(*from), at(*to)));
    spans.filter(|(from, to)| from < to).collect()
}

/// Returns a sentence about data that the drawings omit, with its amount.
fn thinned(drawing: &Drawing, seen: &Collector) -> String {
    let marks = marks_of(&seen.marks, "sendings, arrivals and losses of data");
    let incidents = match seen.incidents.left_out {
        0 => String::new(),
        more => {
            format!(" Of the timeouts and changes of subflows, the last {more} are not marked.")
        }
    };
    format!("{marks} {}{incidents}", curves(drawing.bins, drawing.bin_us))
}

/// Returns a sentence about the marks of `what`.
fn marks_of(marks: &Marks, what: &str) -> String {
    let Thinned { told, kept, cell_us, cell_bytes } = marks.thinned();
    if told == kept as u64 {
        return format!("Each of the {told} {what} has its mark.");
    }
    format!(
        "{told} {what} are drawn as {kept} marks: events of the same kind on the same path within \
         {} and {} share a mark.",
        millis(cell_us as f64 / 1e3),
        bytes(cell_bytes),
    )
}

/// Returns a sentence about the steps of the curves.
fn curves(bins: usize, bin_us: f64) -> String {
    let step = millis(bin_us / 1e3);
    format!(
        "Curves have {bins} steps of {step}, each with the smallest, the largest and the last value in it."
    )
}

/// Returns the marks for the script.
fn boxes(marks: &Marks) -> Vec<Group> {
    let groups = marks.groups().into_iter().map(|MarkGroup { kind, path, marks }| {
        let boxes = marks.iter().flat_map(|mark| {
            [mark.from_us, mark.to_us - mark.from_us, mark.start, mark.end - mark.start]
        });
        Group { kind: kind.key(), path, boxes: boxes.collect() }
    });
    groups.collect()
}

fn drawing(document: &RunDocument, seen: &Collector) -> Drawing {
    let end = seen.last.max(seen.grid.origin);
    let bins = seen.grid.index(end).map_or(0, |last| last + 1);
    let bin_ns = seen.grid.bin.as_nanos().max(1);
    let paths = document.paths.iter().zip(&seen.paths).map(|(path, tracks)| PathDrawing {
        name: path.name.clone(),
        sent: tracks.sent.sparse(),
        cwnd: tracks.cwnd.finish(bins),
        inflight: tracks.inflight.finish(bins),
        srtt_us: tracks.srtt_us.finish(bins),
        queue: tracks.queue.finish(bins),
        lost: tracks.lost.sparse(),
        lost_acks: tracks.lost_acks.sparse(),
        down: outages(tracks, seen.grid.origin, end),
    });
    let lanes = BLOCKS.iter().zip(&seen.blocked).map(|(block, held)| {
        let shares =
            held.sparse().into_iter().map(|(bin, ns)| (bin, (ns * 1_000).div_ceil(bin_ns)));
        Lane { name: cause_words(*block).to_owned(), shares: shares.collect() }
    });
    let incidents = seen.incidents.list.iter().map(|incident| {
        (incident.at.since(seen.grid.origin).as_micros(), incident.path.0, incident.what)
    });
    Drawing {
        bin_us: bin_ns as f64 / 1e3,
        bins,
        end_us: end.since(seen.grid.origin).as_nanos() as f64 / 1e3,
        paths: paths.collect(),
        readable: seen.readable.finish(bins),
        held: seen.held.finish(bins),
        blocked: lanes.filter(|lane| !lane.shares.is_empty()).collect(),
        marks: boxes(&seen.marks),
        incidents: incidents.collect(),
    }
}

fn head(page: &mut String, document: &RunDocument) {
    let names: Vec<&str> = document.paths.iter().map(|path| path.name.as_str()).collect();
    let over = match names.as_slice() {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [some @ .., last] => format!("{} and {last}", some.join(", ")),
    };
    let _ = write!(
        page,
        "<header>\n<h1>{} <span>over {}</span></h1>\n\
         <p class=\"what\">{}, {} congestion control, seed {}{}</p>\n",
        escaped(&document.scheduler),
        escaped(&over),
        escaped(&document.workload),
        escaped(&document.cc),
        document.seed,
        if document.complete {
            ""
        } else {
            " \u{2014} <strong>the workload did not finish</strong>"
        },
    );
    tables::tiles(page, document);
    again(page, &document.command);
    page.push_str("</header>\n");
}

/// Writes the command that makes the same again.
fn again(page: &mut String, command: &str) {
    let _ = writeln!(
        page,
        "<p class=\"again\"><span>Run again</span> <code id=\"command\">{}</code> \
         <button type=\"button\" id=\"copy\" hidden>Copy</button></p>",
        escaped(command),
    );
}

/// Writes a drawing with its heading, its note and the place for values at the cursor.
fn panel(page: &mut String, plot: &str, class: &str, heading: &str, note: &str, label: &str) {
    let _ = writeln!(
        page,
        "<figure class=\"{class}\"><figcaption><b>{heading}</b> <span class=\"note\">{note}</span>\
         <output aria-live=\"off\"></output></figcaption><canvas data-plot=\"{plot}\" role=\"img\" \
         tabindex=\"0\" aria-label=\"{label}\"></canvas></figure>"
    );
}

/// Begins the section of the drawings. `whole` is what all of them show.
fn begin_charts(page: &mut String, whole: &str) {
    let _ = writeln!(
        page,
        "<section id=\"charts\" aria-labelledby=\"over-time\">\n\
         <h2 id=\"over-time\">Over time</h2>\n\
         <noscript><p>The drawings need the script of this page; the numbers do not.</p>\
         </noscript>\n<p class=\"hint keys\">Point or touch to read values; drag to look closer, \
         double-click for the whole {whole}. Keys: \u{2190} \u{2192} move, + \u{2212} zoom, Esc whole \
         {whole}.</p>\n<p class=\"key\" id=\"key\"></p>",
    );
}

/// Ends the section with the ruler and a sentence about omitted data.
fn end_charts(page: &mut String, whole: &str, thinned: &str) {
    let _ = writeln!(
        page,
        "<div class=\"ruler\" hidden><canvas data-plot=\"ruler\" aria-hidden=\"true\"></canvas>\
         <div><output id=\"time\"></output><button type=\"button\" id=\"closer\" \
         aria-label=\"Look closer\">+</button><button type=\"button\" id=\"wider\" \
         aria-label=\"Look from further away\">\u{2212}</button><button type=\"button\" \
         id=\"whole\">Whole {whole}</button></div></div>",
    );
    let _ = writeln!(page, "<p class=\"hint\" id=\"thinned\">{}</p>\n</section>", escaped(thinned));
}

fn charts(page: &mut String, drawing: &Drawing, thinned: &str) {
    begin_charts(page, "run");
    panel(
        page,
        "sequence",
        "tall",
        "Data sequence",
        "the path of each byte, its arrival, and when it was readable",
        "Data sequence over time: what each path sent, when it arrived, and when it was readable",
    );
    panel(
        page,
        "rate",
        "middle",
        "Sent",
        "payload by path, stacked",
        "Payload sent over time by each path, stacked",
    );
    panel(
        page,
        "held",
        "low",
        "Out of order",
        "held at the receiver behind a gap",
        "Bytes that the receiver holds out of order over time",
    );
    if !drawing.blocked.is_empty() {
        panel(
            page,
            "blocked",
            "lanes",
            "Held back",
            "causes that kept the sender from sending",
            "When the sender was held back, by cause; the table of the same name has the totals",
        );
    }
    for (index, path) in drawing.paths.iter().enumerate() {
        path_charts(page, index, &escaped(&path.name));
    }
    end_charts(page, "run", thinned);
}

/// Writes the charts of the path at `index`; `name` is already escaped.
fn path_charts(page: &mut String, index: usize, name: &str) {
    let _ = writeln!(
        page,
        "<h3 class=\"path\" data-path=\"{index}\"><i aria-hidden=\"true\"></i>{name}</h3>"
    );
    let mut one = |plot: &str, class: &str, heading: &str, note: &str| {
        let label = format!("{name}: {heading} over time");
        panel(page, &format!("{plot}-{index}"), class, heading, note, &label);
    };
    one(
        "window",
        "middle",
        "cwnd and in flight",
        "line and area; \u{25bc} data lost, \u{25bd} ACK lost, shaded where the path is down",
    );
    one("srtt", "low", "srtt", "");
    one("queue", "low", "Queue", "in the path, towards the receiver");
}

/// Escapes text for HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}
