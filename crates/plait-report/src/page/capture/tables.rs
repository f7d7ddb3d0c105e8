//! The tables of a capture's page.

use super::super::escaped;
use super::super::tables::{Cell, cells, table};
use super::named;
use crate::render::{bytes, ends, figure, kernel_sentences, link, millis, percent};
use plait_capture::{
    CaptureExplanation, ConnectionReport, FileKind, FileReport, IncidentReport, KernelPath,
    KernelReport, PacketId, PathReport, Place,
};
use std::fmt::Write;

/// Incidents in the first table, as the text shows.
const FIRST: usize = 10;

fn none() -> String {
    "\u{2013}".to_owned()
}

fn optional<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or_else(none, words)
}

fn second(ms: f64) -> String {
    format!("{:.3} s", ms / 1e3)
}

/// Returns what is wrong with a file that is damaged.
pub(super) fn broken(file: &FileReport) -> Option<String> {
    let broken = file.broken.as_ref()?;
    let place = if file.kind.has_lines() { "line" } else { "packet" };
    // The remedy is in the error.
    let problem = broken.problem.lines().next().unwrap_or_default();
    Some(format!("{} was read up to {place} {}: {problem}.", file.file, broken.packet))
}

/// Writes the causes of lost time, and the incidents. `leads` is true if there are drawings.
pub(super) fn lost_time(
    page: &mut String,
    explanation: &CaptureExplanation,
    connection: &ConnectionReport,
    leads: bool,
) {
    if connection.lost_time.is_empty() {
        return;
    }
    page.push_str("<section aria-labelledby=\"lost-time\">\n<h2 id=\"lost-time\">Lost time</h2>\n");
    let most = connection.lost_time.iter().filter_map(|it| it.cost_ms).fold(0.0, f64::max);
    let rows = connection.lost_time.iter().map(|it| {
        let share = it.cost_ms.map_or(0.0, |cost| cost / connection.duration_ms.max(1e-3));
        vec![
            Cell::Text(named(it.cause, it.path.as_deref())),
            Cell::Text(it.cost_ms.map_or_else(|| "unknown".to_owned(), millis)),
            Cell::Text(it.cost_ms.map_or_else(none, |_| percent(share))),
            Cell::Bar(it.cost_ms.map_or(0.0, |cost| cost / most.max(1e-9))),
            Cell::Text(it.incidents.to_string()),
            Cell::Text(it.cause.clause(it.path.as_deref())),
        ]
    });
    let head = ["cause", "lost", "of the time", "", "incidents", "because"];
    cells(page, "Lost time by cause", &head, rows.collect());
    incidents(page, explanation, connection, leads);
    page.push_str("</section>\n");
}

fn incidents(
    page: &mut String,
    explanation: &CaptureExplanation,
    connection: &ConnectionReport,
    leads: bool,
) {
    let several = explanation.files.len() > 1;
    let kind = explanation.files.first().map(|file| file.kind).unwrap_or_default();
    let noun = if kind.has_lines() { "lines" } else { "packets" };
    let of = |id: PacketId| format!("{} of file {}", id.packet, id.file);
    let evidence = |first: PacketId, last: PacketId| match () {
        () if !several => format!("{} to {}", first.packet, last.packet),
        () if first.file == last.file => format!("{} to {}", first.packet, of(last)),
        () => format!("{} to {}", of(first), of(last)),
    };
    let row = |nth: usize, it: &IncidentReport| {
        let number = (nth + 1).to_string();
        vec![
            match leads {
                true => Cell::Link(number.clone(), format!("incident={number}")),
                false => Cell::Text(number),
            },
            Cell::Text(it.cost_ms.map_or_else(|| "unknown".to_owned(), millis)),
            Cell::Text(named(it.cause, it.path.as_deref())),
            Cell::Text(second(it.from_ms)),
            Cell::Text(second(it.to_ms)),
            Cell::Text(evidence(it.first, it.last)),
        ]
    };
    let all = connection.incidents.iter().enumerate();
    let mut rows: Vec<Vec<Cell>> = all.map(|(nth, it)| row(nth, it)).collect();
    let rest = rows.split_off(rows.len().min(FIRST));
    let (shown, found) = (rows.len(), connection.incidents_found);
    let caption = match shown == found {
        true => "Incidents, the most expensive first".to_owned(),
        false => format!("The {shown} most expensive of {found} incidents"),
    };
    let head = ["", "lost", "cause", "from", "to", noun];
    cells(page, &caption, &head, rows);
    if !rest.is_empty() {
        let count = rest.len();
        let _ = writeln!(page, "<details><summary>{count} further incidents</summary>");
        cells(page, "Further incidents", &head, rest);
        page.push_str("</details>\n");
    }
    kernel_in_incidents(page, connection);
}

fn kernel_in_incidents(page: &mut String, connection: &ConnectionReport) {
    let rows = connection.incidents.iter().take(FIRST).enumerate().flat_map(|(nth, incident)| {
        let paths = incident.kernel.iter().flatten().filter(|path| path.asked > 0);
        paths.map(move |path| {
            let mut row = vec![(nth + 1).to_string()];
            row.extend(kernel_row(path));
            row
        })
    });
    let head: Vec<&str> = ["incident"].into_iter().chain(KERNEL).collect();
    table(page, "The kernel\u{2019}s decisions in these incidents", &head, rows.collect());
}

const KERNEL: [&str; 10] = [
    "path",
    "asked",
    "active",
    "free",
    "backup",
    "could take",
    "took",
    "send window",
    "pace Mbit/s",
    "queued",
];

fn kernel_row(path: &KernelPath) -> Vec<String> {
    let counts = [path.asked, path.active, path.free, path.backup, path.could_take, path.taken];
    let mut row = vec![path.path.clone()];
    row.extend(counts.map(|count| count.to_string()));
    row.push(optional(path.send_window_bytes, |window| bytes(window as u64)));
    row.push(optional(path.pace_mbps, figure));
    row.push(optional(path.queued_ms, millis));
    row
}

/// Writes the tables of a connection.
pub(super) fn write(page: &mut String, connection: &ConnectionReport) {
    paths(page, &connection.paths);
    data(page, connection);
    if let Some(kernel) = &connection.kernel {
        decisions(page, kernel);
    }
}

fn paths(page: &mut String, paths: &[PathReport]) {
    let rows = paths.iter().map(|path| {
        let traffic = &path.traffic;
        let rtt = path.rtt.as_ref().map(|rtt| {
            let [min, median, tail] = [rtt.min_ms, rtt.median_ms, rtt.p95_ms].map(millis);
            format!("{min} / {median} / {tail}")
        });
        vec![
            path.name.clone(),
            bytes(traffic.bytes),
            link(path).replacen(">=", "\u{2265}", 1).replacen('-', "\u{2013}", 1),
            figure(traffic.mean_mbps),
            optional(rtt, |rtt| rtt),
            format!("{} %", figure(traffic.loss_percent)),
            bytes(traffic.retransmitted_bytes),
            bytes(traffic.reinjected_bytes),
            traffic.reordered_segments.to_string(),
            optional(path.joined_ms, millis),
        ]
    });
    let head = [
        "path",
        "bytes",
        "link Mbit/s",
        "mean Mbit/s",
        "RTT min / median / 95 %",
        "lost",
        "sent again",
        "reinjected",
        "out of order",
        "joined after",
    ];
    table(page, "What each path did", &head, rows.collect());
    let rows = paths.iter().map(|path| {
        let reset = path.reset.as_ref().map(|reset| {
            let reason = reset.reason.map_or(String::new(), |reason| format!(": {reason}"));
            format!("by the {} at {}{reason}", reset.by, second(reset.at_ms))
        });
        vec![
            path.name.clone(),
            path.client.clone(),
            path.server.clone(),
            place(path.place).to_owned(),
            path.traffic.segments.to_string(),
            path.traffic.retransmitted_segments.to_string(),
            path.traffic.lost_before_segments.to_string(),
            path.traffic.duplicate_reports.to_string(),
            path.rtt.as_ref().map_or_else(none, |rtt| rtt.method.to_owned()),
            if path.backup { "backup" } else { "regular" }.to_owned(),
            reset.unwrap_or_default(),
        ]
    });
    let head = [
        "path",
        "client",
        "server",
        "captured at",
        "segments",
        "sent again",
        "lost before",
        "D-SACK",
        "RTT by",
        "use",
        "reset",
    ];
    table(page, "Where the paths lead, and their segments", &head, rows.collect());
}

const fn place(place: Place) -> &'static str {
    match place {
        Place::Sender => "sender",
        Place::Receiver => "receiver",
        Place::Between => "between",
        Place::Unknown => "unknown",
    }
}

fn data(page: &mut String, connection: &ConnectionReport) {
    let data = &connection.data;
    let both = |median: Option<f64>, tail: Option<f64>| match (median, tail) {
        (Some(median), Some(tail)) => format!("{} / {}", millis(median), millis(tail)),
        _ => none(),
    };
    let rows = [
        ("data", bytes(data.bytes), "each byte counted once"),
        ("acknowledged", bytes(data.acked_bytes), "by the receiver"),
        ("goodput", format!("{} Mbit/s", figure(data.goodput_mbps)), "data divided by the time"),
        ("reinjected", bytes(data.reinjected_bytes), "sent on a path after another path"),
        ("reinjected segments", data.reinjected_segments.to_string(), "segments with such bytes"),
        ("out of order", bytes(data.out_of_order_bytes), "in the capture beyond a gap of the data"),
        (
            "gaps, median / 95 %",
            both(data.gap_median_ms, data.gap_p95_ms),
            "from data beyond a gap to the data in it",
        ),
        ("largest receive window", optional(data.window_max_bytes, bytes), "of the connection"),
        (
            "windows full",
            data.windows_full.to_string(),
            "acknowledgements that leave room for less than a segment",
        ),
    ];
    let rows = rows.map(|(name, value, meaning)| vec![name.to_owned(), value, meaning.to_owned()]);
    table(page, "The data of the connection", &["measure", "value", "meaning"], rows.to_vec());
}

fn decisions(page: &mut String, kernel: &KernelReport) {
    let rows = kernel.paths.iter().map(kernel_row).collect();
    table(page, "The kernel\u{2019}s decisions", &KERNEL, rows);
    kernel_sentences(kernel).iter().for_each(|sentence| hint(page, sentence));
}

fn hint(page: &mut String, text: &str) {
    let _ = writeln!(page, "<p class=\"hint\">{}</p>", escaped(text));
}

/// Writes the fitted links, the command that replays the transfer, and its replay with other schedulers.
pub(super) fn replay(
    page: &mut String,
    explanation: &CaptureExplanation,
    connection: &ConnectionReport,
) {
    let Some(fit) = &connection.fit else { return };
    page.push_str("<section aria-labelledby=\"replay\">\n<h2 id=\"replay\">Replay</h2>\n");
    let rows = fit.paths.iter().map(|path| {
        let down = path
            .outages_ms
            .iter()
            .map(|(from, to)| format!("{} to {}", second(*from), second(*to)));
        vec![
            path.name.clone(),
            format!("{} Mbit/s", figure(path.rate_mbps)),
            millis(path.rtt_ms),
            optional(path.queue_bytes, bytes),
            format!("{} %", figure(path.loss_percent)),
            down.collect::<Vec<_>>().join(", "),
        ]
    });
    let head = ["path", "rate", "RTT", "queue", "loss", "down"];
    table(page, "Fitted links", &head, rows.collect());
    hint(
        page,
        "This line replays the transfer in the simulator, over links that are fitted to the capture:",
    );
    let _ = writeln!(page, "<p class=\"again\"><code>{}</code></p>", escaped(&fit.command));
    if let Some(note) = &fit.note {
        hint(page, &format!("In the replay, {note}."));
    }
    if let Some(what_if) = &explanation.what_if {
        let rows = what_if.rows.iter().map(|row| {
            vec![
                row.scheduler.clone(),
                optional(row.median, millis),
                optional(row.change_percent, |change| format!("{change:+.1} %")),
            ]
        });
        let measure = what_if.measure.replace("_ms", "").replace('_', " ");
        let head = ["scheduler", &measure, "change"];
        table(page, "With other schedulers", &head, rows.collect());
        let mut line = format!("Medians of {} runs over the fitted links.", what_if.runs);
        if let (Some(captured), Some(error)) = (what_if.captured, what_if.error_percent) {
            let base = what_if.rows.first().map_or("", |row| row.scheduler.as_str());
            let captured = millis(captured);
            line.push_str(&format!(
                " {base} differs by {error:+.1} % from the captured {captured}."
            ));
        }
        hint(page, &line);
        let _ = writeln!(page, "<p class=\"again\"><code>{}</code></p>", escaped(&what_if.command));
    }
    page.push_str("</section>\n");
}

/// Writes the other connections.
pub(super) fn others(page: &mut String, explanation: &CaptureExplanation) {
    let rows = explanation.connections.iter().skip(1).map(|connection| {
        let main = connection.lost_time.first();
        vec![
            ends(connection),
            bytes(connection.data.bytes),
            connection.sender.to_owned(),
            millis(connection.duration_ms),
            format!("{} Mbit/s", figure(connection.data.goodput_mbps)),
            main.map_or_else(none, |main| named(main.cause, main.path.as_deref())),
            optional(main.and_then(|main| main.cost_ms), millis),
        ]
    });
    let rows: Vec<Vec<String>> = rows.collect();
    if rows.is_empty() {
        return;
    }
    page.push_str(
        "<section aria-labelledby=\"others\">\n<h2 id=\"others\">Other connections</h2>\n",
    );
    let left = explanation.connections_found.saturating_sub(explanation.connections.len());
    let head = ["connection", "data", "from the", "time", "goodput", "main cause", "lost"];
    table(page, "Connections with less data", &head, rows);
    if left > 0 {
        hint(page, &format!("{left} smaller connections are not shown."));
    }
    page.push_str("</section>\n");
}

/// Writes what was read of each file.
pub(super) fn files(page: &mut String, explanation: &CaptureExplanation) {
    page.push_str("<section aria-labelledby=\"files\">\n<h2 id=\"files\">Files</h2>\n");
    let rows = explanation.files.iter().enumerate().map(|(index, file)| {
        vec![
            index.to_string(),
            file.file.clone(),
            kind(file.kind).to_owned(),
            file.packets.to_string(),
            file.segments.to_string(),
            optional(file.broken.as_ref(), |broken| broken.packet.to_string()),
        ]
    });
    let head = ["file", "name", "kind", "packets", "of TCP", "damaged at"];
    table(page, "What was read", &head, rows.collect());
    page.push_str("</section>\n");
}

const fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Capture => "capture",
        FileKind::Qlog => "qlog",
        FileKind::Events => "events",
        FileKind::Run => "run",
    }
}
