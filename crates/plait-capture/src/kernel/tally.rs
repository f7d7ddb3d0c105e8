//! The lines of a trace as decisions about the paths of a connection.

use super::align::{Alignment, align};
use super::{KernelDecisions, Line};
use crate::capture::Captures;
use crate::connection::Connection;
use crate::document::{ConnectionReport, KernelPath, KernelReport};
use crate::histogram::Histogram;
use crate::subflow::{Subflow, Vantage};

/// Lines of one CPU with a smaller distance belong to one call of the scheduler, or to calls in a row, in nanoseconds.
const CALL_NS: i64 = 8_000;
/// Stands for the time of an empty queue, in milliseconds.
const NO_WAIT_MS: f64 = 1e-6;
/// Number of bits of the fraction of a ratio.
const RATIO_BITS: i32 = 32;

/// One decision: a line for each path.
struct Decision {
    /// Time in the capture.
    at_ns: i64,
    /// The paths, with their lines.
    asked: Vec<(usize, Line)>,
    /// The path with the least ratio.
    least: Option<usize>,
}

/// Adds the kernel's decisions to the report of a connection.
///
/// # Errors
/// If the clocks cannot be aligned, or the decisions may belong to another connection: the reason.
pub(crate) fn attach(
    kernel: &KernelDecisions,
    captures: &Captures,
    index: usize,
    report: &mut ConnectionReport,
) -> Result<(), String> {
    let connection = &captures.connections[index];
    let side = connection.main_sender();
    let vantage = connection.subflows[0].vantage(side);
    if matches!(vantage, Vantage::Receiver | Vantage::Between) {
        return Err("the capture was not made at the sender, where the kernel decides".to_owned());
    }
    if let Some(other) = rival(captures, index, side) {
        return Err(format!(
            "the lines of the trace name no connection, and {} sent data at the same time",
            other.subflows[0].ends[0]
        ));
    }
    let packets: Vec<i64> =
        captures.times.iter().filter(|(of, _)| *of == index).map(|(_, at)| *at).collect();
    let times: Vec<i64> = kernel.lines.iter().map(|line| line.at_ns).collect();
    let alignment = align(&times, &packets)?;
    let (decisions, left_out) = decisions(kernel, &alignment, connection, side);
    let began = connection.limits[side].began.unwrap_or(0);
    let names: Vec<&str> = report.paths.iter().map(|path| path.name.as_str()).collect();
    let all = tally(&decisions, &names);
    for incident in &mut report.incidents {
        let at = |ms: f64| began.saturating_add((ms * 1e6) as i64);
        let (from, to) = (at(incident.from_ms), at(incident.to_ms));
        let first = decisions.partition_point(|it| it.at_ns < from);
        let last = decisions.partition_point(|it| it.at_ns <= to);
        incident.kernel = Some(tally(decisions.get(first..last).unwrap_or_default(), &names));
    }
    let (offset, drift) = alignment.first_and_drift();
    let origin = captures.origin().saturating_add(offset);
    let mut notes = Vec::new();
    if kernel.more {
        notes.push("The trace has more than a million lines; the rest is left out.".to_owned());
    }
    if kernel.lost > 0 {
        let lost = kernel.lost;
        notes.push(format!("Lost events in the trace: {lost} notices; enlarge its buffer."));
    }
    report.kernel = Some(KernelReport {
        file: kernel.file.display().to_string(),
        lines: kernel.lines.len(),
        decisions: decisions.len(),
        left_out_lines: left_out,
        nothing_sent: decisions.iter().filter(|it| it.taken().is_none()).count(),
        offset_s: origin as f64 / 1e9,
        drift_ppm: libm::round(drift * 100.0) / 100.0,
        matched_percent: percent(alignment.matched, alignment.inside),
        paths: all,
        notes,
    });
    Ok(())
}

/// Returns another connection with MPTCP whose data the same host sent at the same time.
fn rival(captures: &Captures, index: usize, side: usize) -> Option<&Connection> {
    let span = |it: &Connection| {
        let times = it.subflows.iter().map(|flow| (flow.first.at_ns, flow.last.at_ns));
        times.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))).unwrap_or_default()
    };
    let own = span(&captures.connections[index]);
    let others = captures.connections.iter().enumerate().filter(|(at, _)| *at != index);
    others.map(|(_, it)| it).find(|it| {
        let (from, to) = span(it);
        it.is_multipath() && it.data[side].seen.next() > 0 && from <= own.1 && own.0 <= to
    })
}

/// Returns the decisions within the time of the connection, and the number of lines that fit none.
fn decisions(
    kernel: &KernelDecisions,
    alignment: &Alignment,
    connection: &Connection,
    side: usize,
) -> (Vec<Decision>, usize) {
    let mut by_cpu: std::collections::BTreeMap<u16, Vec<Line>> = Default::default();
    for line in &kernel.lines {
        by_cpu.entry(line.cpu).or_default().push(*line);
    }
    let (mut found, mut left_out) = (Vec::new(), 0);
    for lines in by_cpu.values() {
        for call in lines.chunk_by(|a, b| b.at_ns - a.at_ns <= CALL_NS) {
            let at_ns = alignment.in_capture(call[0].at_ns);
            let paths = listed(connection, side, at_ns);
            if paths.is_empty() || !call.len().is_multiple_of(paths.len()) {
                left_out += call.len();
                continue;
            }
            for lines in call.chunks(paths.len()) {
                let at_ns = alignment.in_capture(lines[0].at_ns);
                let asked: Vec<(usize, Line)> =
                    paths.iter().copied().zip(lines.iter().copied()).collect();
                let least = least(&asked);
                found.push(Decision { at_ns, asked, least });
            }
        }
    }
    found.sort_by_key(|decision| decision.at_ns);
    (found, left_out)
}

/// Returns the paths that are in the kernel's list at a time, in its order.
fn listed(connection: &Connection, side: usize, at_ns: i64) -> Vec<usize> {
    let is_listed = |flow: &Subflow| {
        // The host that connects has the subflow in its list from the SYN on, the other host from the third segment on.
        let mark = if flow.opener == side { flow.handshake.syn } else { flow.handshake.third };
        let refused = flow.agreed.join && !flow.agreed.answered;
        let from = mark.map_or(flow.first.at_ns, |mark| mark.at_ns);
        let until = flow.reset.map_or(i64::MAX, |reset| reset.mark.at_ns);
        !refused
            && from <= at_ns
            && at_ns <= until
            && at_ns <= flow.last.at_ns.saturating_add(60_000_000_000)
    };
    let flows = connection.subflows.iter().enumerate();
    let mut listed: Vec<usize> =
        flows.filter(|(_, flow)| is_listed(flow)).map(|(at, _)| at).collect();
    let joined = |at: &usize| {
        let flow = &connection.subflows[*at];
        let mark = if flow.opener == side { flow.handshake.syn } else { flow.handshake.third };
        mark.map_or(flow.first.at_ns, |mark| mark.at_ns)
    };
    listed.sort_by_key(joined);
    listed
}

/// Returns the path whose queued data leaves first: among the regular paths, or among the backups if no other is active.
fn least(asked: &[(usize, Line)]) -> Option<usize> {
    let regular = asked.iter().any(|(_, line)| line.active && !line.backup);
    let usable =
        asked.iter().filter(|(_, line)| line.active && line.pace > 0 && (!line.backup || !regular));
    usable.min_by_key(|(_, line)| line.ratio).map(|(path, _)| *path)
}

impl Decision {
    /// Returns the path that the kernel takes: the one with the least ratio, if its send buffer has room.
    fn taken(&self) -> Option<usize> {
        let least = self.least?;
        self.asked.iter().any(|(path, line)| *path == least && line.free).then_some(least)
    }
}

/// Counts decisions by path.
fn tally(decisions: &[Decision], names: &[&str]) -> Vec<KernelPath> {
    #[derive(Clone, Default)]
    struct Sums {
        counts: [usize; 6],
        windows: Histogram,
        paces: Histogram,
        waits: Histogram,
    }
    let mut sums = vec![Sums::default(); names.len()];
    for decision in decisions {
        let taken = decision.taken();
        let regular = decision.asked.iter().any(|(_, line)| line.active && !line.backup);
        for (path, line) in &decision.asked {
            let Some(sum) = sums.get_mut(*path) else { continue };
            let could_take = line.active && line.free && (!line.backup || !regular);
            let taken = taken == Some(*path);
            let counted = [true, line.active, line.free, line.backup, could_take, taken];
            sum.counts.iter_mut().zip(counted).for_each(|(count, is)| *count += usize::from(is));
            if !line.active {
                // Before its handshake, a subflow has no rate and no window.
                continue;
            }
            sum.windows.add(f64::from(line.snd_wnd));
            sum.paces.add(f64::from(line.pace) * 8.0);
            // An empty queue counts as a value.
            sum.waits.add((libm::ldexp(line.ratio as f64, -RATIO_BITS) * 1e3).max(NO_WAIT_MS));
        }
    }
    let round = |value: f64| libm::round(value * 1e3) / 1e3;
    let paths = names.iter().zip(sums);
    paths
        .map(|(name, sum)| {
            let [asked, active, free, backup, could_take, taken] = sum.counts;
            let middle = |of: &Histogram| of.quantile(0.5).map(round);
            KernelPath {
                path: (*name).to_owned(),
                asked,
                active,
                free,
                backup,
                could_take,
                taken,
                send_window_bytes: middle(&sum.windows),
                pace_mbps: sum.paces.quantile(0.5).map(|bps| round(bps / 1e6)),
                queued_ms: middle(&sum.waits),
            }
        })
        .collect()
}

fn percent(part: usize, all: usize) -> f64 {
    libm::round(part as f64 * 1e3 / all.max(1) as f64) / 10.0
}
