//! The text of `plait explain CAPTURE`.

use super::{Align, Column, Emphasis, Table, again, bytes, figure, millis, wrap};
use crate::transfer::ExplainedRun;
use plait_capture::{
    CaptureExplanation, ConnectionReport, FileKind, IncidentReport, KernelPath, KernelReport,
    PacketId, PathReport, Place, PredictionReport, Protocol,
};

/// Connections that are shown in full. Further ones get a line.
const SHOWN: usize = 3;
/// Further connections that get a line.
const LISTED: usize = 10;
/// Incidents of a connection that are shown.
const INCIDENTS: usize = 10;

/// How incidents name their packets.
#[derive(Clone, Copy)]
struct Naming {
    /// True if there are several files.
    several: bool,
    /// `packets`, or `lines` of a log.
    noun: &'static str,
}

impl Naming {
    fn of(kind: FileKind, several: bool) -> Naming {
        Naming { several, noun: if kind.has_lines() { "lines" } else { "packets" } }
    }
}

/// Returns the explanation of a run as text, at most `width` columns wide: the lost time, and then the waits.
#[must_use]
pub fn explained_run(run: &ExplainedRun, from_file: bool, width: usize) -> String {
    let mut text = wrap(&run.sentence, width).join("\n") + "\n\n";
    if let Some(transfer) = &run.transfer {
        let kind = if from_file { FileKind::Events } else { FileKind::Run };
        text.push_str(&one(transfer, Naming::of(kind, false), width));
        text.push('\n');
    }
    text + &super::explained(&run.explanation, width)
}

/// Returns the explanation as text, at most `width` columns wide.
#[must_use]
pub fn captured(explanation: &CaptureExplanation, width: usize) -> String {
    let mut text = wrap(&explanation.sentence, width).join("\n") + "\n";
    let kind = explanation.files.first().map(|file| file.kind).unwrap_or_default();
    let naming = Naming::of(kind, explanation.files.len() > 1);
    for connection in explanation.connections.iter().take(SHOWN) {
        text.push('\n');
        text.push_str(&one(connection, naming, width));
    }
    let rest = explanation.connections.iter().skip(SHOWN);
    for connection in rest.take(LISTED) {
        text.push_str(&format!("\n{}: {}\n", ends(connection), bytes(connection.data.bytes)));
    }
    let listed = (SHOWN + LISTED).min(explanation.connections.len());
    if explanation.connections_found > listed {
        let more = explanation.connections_found - listed;
        text.push_str(&format!("\n{more} smaller connections are not shown; --json has more.\n"));
    }
    if let Some(prediction) = &explanation.what_if {
        text.push('\n');
        text.push_str(&predicted(prediction, width));
    }
    text.push('\n');
    text.push_str(&files(explanation, width));
    text + &again(&explanation.command, width) + "\n"
}

/// Describes the replay with other schedulers.
fn predicted(prediction: &PredictionReport, width: usize) -> String {
    let runs = prediction.runs;
    let mut line = format!("In the simulator, {runs} runs over the fitted links (medians)");
    if let (Some(captured), Some(error)) = (prediction.captured, prediction.error_percent) {
        let base = prediction.rows.first().map_or("", |row| row.scheduler.as_str());
        let captured = millis(captured);
        line.push_str(&format!("; {base} differs by {error:+.1} % from the captured {captured}"));
    }
    let mut text = wrap(&(line + ":"), width).join("\n") + "\n\n";
    let mut table = Table::new(vec![
        Column::new("scheduler", Align::Left),
        Column::new(&prediction.measure.replace("_ms", ""), Align::Right),
        Column::new("change", Align::Right),
    ]);
    for row in &prediction.rows {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let median = or_dash(row.median.map(millis));
        let change = or_dash(row.change_percent.map(|change| format!("{change:+.1} %")));
        table.row(Emphasis::None, vec![row.scheduler.clone(), median, change]);
    }
    let rows = table.to_text(width.saturating_sub(2), false);
    text.extend(rows.lines().map(|line| format!("  {line}\n")));
    text
}

/// Returns what was read of each file.
fn files(explanation: &CaptureExplanation, width: usize) -> String {
    let mut text = String::new();
    for (index, file) in explanation.files.iter().enumerate() {
        let name = if explanation.files.len() > 1 { format!("{index}: ") } else { String::new() };
        let line =
            format!("File {name}{}: {} packets, {} of TCP", file.file, file.packets, file.segments);
        text.push_str(&(line + "\n"));
        for note in &file.notes {
            text.push_str(&indented(note, width));
        }
        if let Some(broken) = &file.broken {
            let place = if file.kind.has_lines() { "line" } else { "packet" };
            // The remedy is in the error.
            let problem = broken.problem.lines().next().unwrap_or_default();
            let line = format!("It was read up to {place} {}: {problem}.", broken.packet);
            text.push_str(&indented(&line, width));
        }
    }
    text
}

fn indented(line: &str, width: usize) -> String {
    let lines = wrap(line, width.saturating_sub(2).max(30));
    lines.iter().map(|line| format!("  {line}\n")).collect()
}

/// Returns the ends of a connection, and its protocol.
pub(crate) fn ends(connection: &ConnectionReport) -> String {
    let protocol = match (connection.protocol, &connection.token) {
        (Protocol::Mptcp, Some(token)) => format!("MPTCP, token {token}"),
        (Protocol::Mptcp, None) => "MPTCP".to_owned(),
        (Protocol::Tcp, _) => "TCP".to_owned(),
        (Protocol::Fallback, _) => "fell back to TCP".to_owned(),
        (Protocol::Unknown, _) => "TCP or MPTCP".to_owned(),
    };
    format!("{} to {} ({protocol})", connection.client, connection.server)
}

/// Returns the amount of data of a connection, its time, and what the data went through.
pub(crate) fn summary(connection: &ConnectionReport) -> String {
    let data = &connection.data;
    let place = match connection.paths.first().map(|path| path.place) {
        Some(Place::Sender) if connection.sender_known => "recorded at the sender, with its state",
        Some(Place::Sender) => "captured at the sender",
        Some(Place::Receiver) => "captured at the receiver",
        Some(Place::Between) => "captured between both ends",
        _ => "captured at an unknown place",
    };
    let mut line = format!("{} from the {}", bytes(data.bytes), connection.sender);
    if connection.duration_ms > 0.0 {
        let (time, rate) = (millis(connection.duration_ms), figure(data.goodput_mbps));
        line.push_str(&format!(" in {time}, {rate} Mbit/s"));
    }
    line.push_str(&format!(", {place}"));
    match data.window_max_bytes {
        Some(0) => {}
        Some(window) => line.push_str(&format!("; largest receive window {}", bytes(window))),
        None => line.push_str("; receive window unknown"),
    }
    if data.reinjected_bytes > 0 {
        let (sum, count) = (bytes(data.reinjected_bytes), data.reinjected_segments);
        line.push_str(&format!("; {sum} reinjected in {count} segments"));
    }
    if let (Some(median), Some(tail)) = (data.gap_median_ms, data.gap_p95_ms) {
        let beyond = bytes(data.out_of_order_bytes);
        let (median, tail) = (millis(median), millis(tail));
        line.push_str(&format!("; {beyond} out of order, gaps of {median} (95 %: {tail})"));
    }
    line
}

/// Describes one connection.
fn one(connection: &ConnectionReport, naming: Naming, width: usize) -> String {
    let mut text = ends(connection) + "\n";
    text.push_str(&indented(&summary(connection), width));
    for note in &connection.notes {
        text.push_str(&indented(note, width));
    }
    text.push('\n');
    text.push_str(&paths(&connection.paths, width));
    if !connection.lost_time.is_empty() {
        text.push('\n');
        text.push_str(&lost_time(connection, width));
    }
    let shown = connection.incidents.iter().take(INCIDENTS);
    if connection.incidents_found > 0 {
        let found = connection.incidents_found;
        text.push_str(&format!("\n  {} of {found} incidents\n", shown.len()));
    }
    for (nth, incident) in shown.enumerate() {
        text.push_str(&indented(&described(incident, nth + 1, naming), width));
        for path in incident.kernel.iter().flatten().filter(|path| path.asked > 0) {
            text.push_str(&deeper(&in_incident(path), width));
        }
    }
    if let Some(kernel) = &connection.kernel {
        text.push('\n');
        text.push_str(&decisions(kernel, width));
    }
    if let Some(fit) = &connection.fit {
        let command = again(&fit.command, width).replacen("Run again:", "Replay:", 1);
        text.push_str(&format!("\n{command}\n"));
        if let Some(note) = &fit.note {
            text.push_str(&indented(&format!("In the replay, {note}."), width));
        }
    }
    text
}

fn deeper(line: &str, width: usize) -> String {
    let lines = wrap(line, width.saturating_sub(5).max(30));
    lines.iter().map(|line| format!("     {line}\n")).collect()
}

/// Describes the kernel's decisions about a path during an incident.
fn in_incident(path: &KernelPath) -> String {
    let mut line = format!(
        "kernel, {}: asked {} times, could take it {}, took it {}",
        path.path, path.asked, path.could_take, path.taken
    );
    if path.active < path.asked {
        line.push_str(&format!("; not active in {}", path.asked - path.active));
    }
    if let Some(pace) = path.pace_mbps {
        line.push_str(&format!("; pace {} Mbit/s", figure(pace)));
    }
    if let Some(window) = path.send_window_bytes {
        line.push_str(&format!(", window {}", bytes(window as u64)));
    }
    if let Some(queued) = path.queued_ms {
        line.push_str(&format!(", {} queued", millis(queued)));
    }
    line
}

/// Returns the sentences about the decisions of the kernel's scheduler, and the notes.
pub(crate) fn kernel_sentences(kernel: &KernelReport) -> Vec<String> {
    let mut sentences = vec![format!(
        "The kernel decided {} times ({}); after {} decisions no path got data. The clock of the capture is that of \
         the trace plus {:.6} s (drift {} ppm): {} % of the decisions are next to a packet.",
        kernel.decisions,
        kernel.file,
        kernel.nothing_sent,
        kernel.offset_s,
        figure(kernel.drift_ppm),
        figure(kernel.matched_percent),
    )];
    if kernel.left_out_lines > 0 {
        let (left_out, lines) = (kernel.left_out_lines, kernel.lines);
        sentences.push(format!("{left_out} of {lines} lines fit no path and are left out."));
    }
    sentences.extend(kernel.notes.iter().cloned());
    sentences
}

/// Describes the decisions of the kernel's scheduler.
fn decisions(kernel: &KernelReport, width: usize) -> String {
    let sentences = kernel_sentences(kernel);
    let mut text: String = sentences.iter().map(|line| indented(line, width)).collect();
    let number = |title: &str, rank: u8| Column::new(title, Align::Right).dispensable(rank);
    let mut table = Table::new(vec![
        Column::new("kernel", Align::Left),
        number("asked", 0),
        number("active", 5),
        number("free", 0),
        number("backup", 6),
        number("could take", 0),
        number("took", 0),
        number("send window", 2),
        number("pace Mbit/s", 0),
        number("queued ms", 1),
    ]);
    for path in &kernel.paths {
        let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
        let window = path.send_window_bytes.map(|window| bytes(window as u64));
        table.row(
            Emphasis::None,
            vec![
                path.path.clone(),
                path.asked.to_string(),
                path.active.to_string(),
                path.free.to_string(),
                path.backup.to_string(),
                path.could_take.to_string(),
                path.taken.to_string(),
                window.unwrap_or_else(|| "-".to_owned()),
                optional(path.pace_mbps),
                optional(path.queued_ms),
            ],
        );
    }
    let rows = table.to_text(width.saturating_sub(2), false);
    text.extend(rows.lines().map(|line| format!("  {line}\n")));
    text
}

fn paths(paths: &[PathReport], width: usize) -> String {
    let number = |title: &str, rank: u8| Column::new(title, Align::Right).dispensable(rank);
    let mut table = Table::new(vec![
        Column::new("path", Align::Left),
        number("bytes", 0),
        number("link Mbit/s", 0),
        number("mean Mbit/s", 5),
        number("rtt ms min", 0),
        number("median", 1),
        number("95 %", 2),
        Column::new("by", Align::Left).dispensable(6),
        number("lost %", 0),
        number("sent again", 3),
        number("reinjected", 4),
        number("joined ms", 7),
    ]);
    for path in paths {
        let rtt = |of: fn(&plait_capture::RttReport) -> f64| {
            path.rtt.as_ref().map_or_else(|| "-".to_owned(), |it| figure(of(it)))
        };
        let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
        let backup = if path.backup { " (backup)" } else { "" };
        table.row(
            Emphasis::None,
            vec![
                format!("{}{backup}", path.name),
                bytes(path.traffic.bytes),
                link(path),
                figure(path.traffic.mean_mbps),
                rtt(|it| it.min_ms),
                rtt(|it| it.median_ms),
                rtt(|it| it.p95_ms),
                path.rtt.as_ref().map_or("", |it| it.method).to_owned(),
                figure(path.traffic.loss_percent),
                bytes(path.traffic.retransmitted_bytes),
                bytes(path.traffic.reinjected_bytes),
                optional(path.joined_ms),
            ],
        );
    }
    let text = table.to_text(width.saturating_sub(2), false);
    text.lines().map(|line| format!("  {line}\n")).collect()
}

/// Returns the rate of a link, or the least rate that it has.
pub(crate) fn link(path: &PathReport) -> String {
    match path.link_mbps {
        Some(rate) if path.link_is_known => figure(rate),
        Some(rate) => format!(">={}", figure(rate)),
        None => "-".to_owned(),
    }
}

fn lost_time(connection: &ConnectionReport, width: usize) -> String {
    let mut table = Table::new(vec![
        Column::new("lost", Align::Right),
        Column::new("cause", Align::Left),
        Column::new("incidents", Align::Right),
        Column::new("because", Align::Left).prose(),
    ]);
    for cause in &connection.lost_time {
        table.row(
            Emphasis::None,
            vec![
                cause.cost_ms.map_or_else(|| "unknown".to_owned(), millis),
                cause.cause.name().to_owned(),
                cause.incidents.to_string(),
                cause.cause.clause(cause.path.as_deref()),
            ],
        );
    }
    let text = table.to_text(width.saturating_sub(2), false);
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn described(incident: &IncidentReport, nth: usize, naming: Naming) -> String {
    let Naming { several, noun } = naming;
    let of = |id: PacketId| match several {
        true => format!("{} of file {}", id.packet, id.file),
        false => id.packet.to_string(),
    };
    let path = incident.path.as_ref().map_or(String::new(), |path| format!(" of {path}"));
    let lost = incident.cost_ms.map_or_else(|| "unknown cost".to_owned(), millis);
    let second = |ms: f64| format!("{:.3} s", ms / 1e3);
    format!(
        "{nth}. {lost}: {}{path}, {} to {}, {noun} {} to {}",
        incident.cause.name(),
        second(incident.from_ms),
        second(incident.to_ms),
        of(incident.first),
        of(incident.last),
    )
}
