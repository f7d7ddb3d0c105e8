//! The first sentence of an explanation, and the sentences about resets.

use crate::connection::Connection;
use crate::counts::FileCounts;
use crate::document::{CauseReport, ConnectionReport, PacketId, PathReport, ResetReport};
use plait_wire::ResetReason;

/// A cause below this share of the duration is no main cause.
const WORTH_NAMING: f64 = 0.03;

/// Returns the sentence that names the main cause.
pub(crate) fn sentence(
    report: &ConnectionReport,
    connection: &Connection,
    files: &[FileCounts],
) -> String {
    let bytes = report.data.bytes;
    let reset = reset_of_all(&report.paths);
    if bytes == 0 {
        return without_data(report, reset, files);
    }
    if connection.is_timeless() {
        return "The packets of the largest connection have no times, so nothing is known about \
                lost time."
            .to_owned();
    }
    if let Some(side) = connection.only_from() {
        return format!(
            "The capture has only the packets from the {}: {} of data in {}. The causes of lost \
             time are unknown.",
            host(side),
            size(bytes),
            time(report.duration_ms)
        );
    }
    let took = time(report.duration_ms);
    let least = report.duration_ms * WORTH_NAMING;
    let main = report.lost_time.first().filter(|it| it.cost_ms.is_none_or(|cost| cost >= least));
    let clause = main.map(|main| (main.cost_ms.map(time), clause_of(main, report, least)));
    if let Some(reset) = reset {
        let (by, place) = (reset.by, place(reset.packet, files));
        let whole =
            format!("The {by} reset the connection after {} and {took} ({place})", size(bytes));
        return match clause {
            None => format!("{whole}."),
            Some((None, clause)) => format!("{whole}; {clause}."),
            Some((Some(cost), clause)) => format!("{whole}; {cost} were lost because {clause}."),
        };
    }
    let whole = format!("The transfer of {} took {took}", size(bytes));
    match (clause, resets(&report.paths).next()) {
        (Some((None, clause)), _) => format!("{whole}; {clause}."),
        (Some((Some(cost), clause)), reset) => {
            // A path that was silent may have been reset in the end.
            let same = reset
                .filter(|(path, _)| main.is_some_and(|it| it.path.as_ref() == Some(&path.name)));
            let end = same.map(|(path, reset)| format!("; the {}", of_path(path, reset, files)));
            format!("{whole}, {cost} of it lost because {clause}{}.", end.unwrap_or_default())
        }
        (None, Some((path, reset))) => format!("{whole}; the {}.", of_path(path, reset, files)),
        (None, None)
            if report.paths.iter().all(|it| it.link_is_known || it.traffic.segments == 0) =>
        {
            format!("{whole}, and its paths delivered at the rates of their links.")
        }
        (None, None) => format!("{whole}, and no link was full all the time."),
    }
}

/// Returns the clause about the main cause. If its cost is unknown, the first one with a known cost follows it.
fn clause_of(main: &CauseReport, report: &ConnectionReport, least: f64) -> String {
    let clause = |it: &CauseReport| it.cause.clause(it.path.as_deref());
    let known =
        |it: &CauseReport| it.cost_ms.filter(|cost| *cost >= least).map(|cost| (cost, clause(it)));
    match report.lost_time.iter().find_map(known).filter(|_| main.cost_ms.is_none()) {
        Some((cost, other)) => {
            format!("{}, and {} were lost because {other}", clause(main), time(cost))
        }
        None => clause(main),
    }
}

/// Returns the sentence about a connection without data.
fn without_data(
    report: &ConnectionReport,
    reset: Option<&ResetReport>,
    files: &[FileCounts],
) -> String {
    let syns: u32 = report.paths.iter().map(|path| path.unanswered_syns).sum();
    match (reset, syns) {
        (Some(reset), _) => {
            let (by, place) = (reset.by, place(reset.packet, files));
            format!("The {by} reset the largest connection before any data ({place}).")
        }
        (None, 0) => "The largest connection carried no data.".to_owned(),
        (None, _) => unanswered(report.paths.first(), syns),
    }
}

fn unanswered(path: Option<&PathReport>, syns: u32) -> String {
    let ends = path.map(|path| format!(" from {} to {}", path.client, path.server));
    let ends = ends.unwrap_or_default();
    match syns {
        1 => format!("The SYN{ends} has no answer."),
        _ => format!("The {syns} SYNs{ends} have no answer."),
    }
}

/// Returns the notes on resets and on SYNs without an answer.
pub(crate) fn notes(paths: &[PathReport], files: &[FileCounts]) -> Vec<String> {
    let silent = paths.iter().filter(|path| path.unanswered_syns > 0);
    let silent = silent.map(|path| unanswered(Some(path), path.unanswered_syns));
    if let Some(reset) = reset_of_all(paths).filter(|it| it.of_connection || paths.len() == 1) {
        let (by, place) = (reset.by, place(reset.packet, files));
        let at = reset.at_ms / 1e3;
        let reason = reason(reset);
        return vec![format!("The {by} reset the connection at {at:.3} s ({place}){reason}.")];
    }
    let resets = resets(paths).map(|(path, reset)| format!("The {}.", of_path(path, reset, files)));
    silent.chain(resets).collect()
}

/// Returns the paths that were reset before the transfer was complete.
fn resets(paths: &[PathReport]) -> impl Iterator<Item = (&PathReport, &ResetReport)> {
    let all = paths.iter().filter_map(|path| Some((path, path.reset.as_ref()?)));
    all.filter(|(_, reset)| !reset.after_completion)
}

/// Returns the reset that ended the connection: an MP_FASTCLOSE, or that of its last path.
fn reset_of_all(paths: &[PathReport]) -> Option<&ResetReport> {
    let is_unused = |path: &PathReport| path.joined_ms.is_none() && path.traffic.segments == 0;
    let all = paths.iter().all(|path| path.reset.is_some() || is_unused(path));
    let found = resets(paths).map(|(_, reset)| reset).filter(|reset| all || reset.of_connection);
    found.max_by(|a, b| a.at_ms.total_cmp(&b.at_ms))
}

fn of_path(path: &PathReport, reset: &ResetReport, files: &[FileCounts]) -> String {
    let (by, name, at) = (reset.by, &path.name, reset.at_ms / 1e3);
    format!("{by} reset {name} at {at:.3} s ({}){}", place(reset.packet, files), reason(reset))
}

fn reason(reset: &ResetReport) -> String {
    reset.reason.map_or(String::new(), |reason| format!(", with the reason \"{reason}\""))
}

/// Returns the reason of an MP_TCPRST in the words of RFC 8684 section 3.6.
pub(crate) const fn words(reason: ResetReason) -> &'static str {
    match reason {
        ResetReason::Unspecified => "unspecified error",
        ResetReason::Mptcp => "MPTCP-specific error",
        ResetReason::Resources => "lack of resources",
        ResetReason::Prohibited => "administratively prohibited",
        ResetReason::TooMuchOutstanding => "too much outstanding data",
        ResetReason::Performance => "unacceptable performance",
        ResetReason::Middlebox => "middlebox interference",
    }
}

/// Names a packet, or a line of a log.
fn place(id: PacketId, files: &[FileCounts]) -> String {
    let lines = files.get(id.file).is_some_and(|file| file.kind.has_lines());
    let noun = if lines { "line" } else { "packet" };
    match files.len() {
        0 | 1 => format!("{noun} {}", id.packet),
        _ => format!("{noun} {} of file {}", id.packet, id.file),
    }
}

/// Returns the name of a side.
pub(crate) const fn host(side: usize) -> &'static str {
    if side == 0 { "client" } else { "server" }
}

fn size(bytes: u64) -> String {
    match bytes as f64 {
        it if it >= 1e9 => format!("{:.2} GB", it / 1e9),
        it if it >= 1e6 => format!("{:.2} MB", it / 1e6),
        it if it >= 1e3 => format!("{:.1} kB", it / 1e3),
        it => format!("{it} B"),
    }
}

pub(crate) fn time(ms: f64) -> String {
    if ms >= 1_000.0 { format!("{:.2} s", ms / 1e3) } else { format!("{ms:.0} ms") }
}
