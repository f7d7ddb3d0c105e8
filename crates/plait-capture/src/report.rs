//! From connections to the document.

use crate::capture::Captures;
use crate::cause::Cause;
use crate::connection::Connection;
use crate::document::{
    CaptureExplanation, CauseReport, ConnectionReport, DataReport, FileKind, IncidentReport,
    PacketId, PathReport, Place, Protocol, ResetReport, RttReport, SCHEMA, TrafficReport,
};
use crate::incidents::{Capacity, Found, find};
use crate::kernel::{self, KernelDecisions};
use crate::notes::{file, notes};
use crate::sentence::{self, host, sentence};
use crate::subflow::{Mark, Subflow, Vantage};
use std::collections::{BTreeMap, BTreeSet};

/// Connections in the document.
const MAX_CONNECTIONS: usize = 100;
/// Time stamps give an RTT if there are so many samples.
const ENOUGH_SAMPLES: u64 = 5;

/// Returns the document.
pub(crate) fn document(captures: &Captures, command: String) -> CaptureExplanation {
    let order = largest(captures);
    let first = order.first().map(|at| &captures.connections[*at]);
    let connections = order.iter().map(|at| connection(&captures.connections[*at], captures));
    let connections: Vec<ConnectionReport> = connections.collect();
    let files = captures.files.iter().zip(&captures.counts);
    CaptureExplanation {
        schema: SCHEMA,
        sentence: match (connections.first(), first) {
            (Some(report), Some(first)) => sentence(report, first, &captures.counts),
            _ => "There is no TCP connection in the capture.".to_owned(),
        },
        files: files.map(|(name, counts)| file(&name.display().to_string(), counts)).collect(),
        connections_found: captures.connections.len(),
        connections,
        what_if: None,
        command,
    }
}

/// Adds the decisions of the kernel to the largest connection with MPTCP.
///
/// # Errors
/// If they cannot be those of this connection: the reason.
pub(crate) fn add_kernel(
    document: &mut CaptureExplanation,
    captures: &Captures,
    kernel: &KernelDecisions,
) -> Result<(), String> {
    if document.files.iter().any(|file| file.kind != FileKind::Capture) {
        return Err("a qlog has the decisions of plait, not those of the kernel".to_owned());
    }
    let mut order = largest(captures).into_iter().zip(&mut document.connections);
    match order.find(|(at, _)| captures.connections[*at].is_multipath()) {
        Some((at, report)) if report.data.bytes > 0 => kernel::attach(kernel, captures, at, report),
        _ => Err("the capture has no data of a connection with MPTCP".to_owned()),
    }
}

/// Returns the indices of the connections with the most data, the largest first.
pub(crate) fn largest(captures: &Captures) -> Vec<usize> {
    let mut order: Vec<usize> = (0..captures.connections.len()).collect();
    order.sort_by_key(|at| {
        let connection = &captures.connections[*at];
        std::cmp::Reverse(connection.data[connection.main_sender()].seen.next())
    });
    order.truncate(MAX_CONNECTIONS);
    order
}

fn ms(ns: f64) -> f64 {
    libm::round(ns / 1e3) / 1e3
}

fn mbps(bps: f64) -> f64 {
    libm::round(bps / 1e3) / 1e3
}

fn connection(connection: &Connection, captures: &Captures) -> ConnectionReport {
    let side = connection.main_sender();
    let limits = &connection.limits[side];
    let data = &connection.data[side];
    let found = find(connection, side);
    let names = names(connection, captures);
    let began = limits.began.unwrap_or(0);
    let duration_ms = ms((limits.finished - began).max(0) as f64);
    let bytes = data.seen.next().max(0) as u64;
    let first = &connection.subflows[0];
    let goodput = if duration_ms > 0.0 { bytes as f64 * 8.0 / duration_ms * 1e3 } else { 0.0 };
    let gap = |share: f64| data.gap_ages.quantile(share).map(ms);
    let flows = connection.subflows.iter().enumerate();
    let paths: Vec<PathReport> = flows
        .map(|(at, flow)| path(connection, (at, flow), side, &names[at], found.capacities[at]))
        .collect();
    let mut notes = notes(connection, captures, &names);
    notes.extend(sentence::notes(&paths, &captures.counts));
    ConnectionReport {
        protocol: protocol(connection),
        token: match (connection.keys[1], connection.unknown_token) {
            (Some(key), _) => Some(format!("{:08x}", key.token())),
            (None, token) => token.map(|token| format!("{token:08x}")),
        },
        client: first.ends[0].to_string(),
        server: first.ends[1].to_string(),
        sender: host(side),
        duration_ms,
        data: DataReport {
            bytes,
            acked_bytes: data.acked.clamp(0, data.seen.next().max(0)) as u64,
            goodput_mbps: mbps(goodput),
            reinjected_bytes: data.reinjected_bytes,
            on_several_paths_bytes: data.on_several_paths_bytes,
            reinjected_segments: data.reinjected_segments,
            out_of_order_bytes: data.out_of_order_bytes,
            gap_median_ms: gap(0.5),
            gap_p95_ms: gap(0.95),
            window_max_bytes: data.window(),
            windows_full: data.window.full,
        },
        paths,
        lost_time: causes(&found, &names),
        incidents_found: found.count,
        incidents: found.incidents.iter().map(|it| incident(it, began, &names)).collect(),
        fit: crate::fit::fit(connection, side, &found, &names),
        sender_known: limits.knows_sender(),
        kernel: None,
        notes,
    }
}

fn protocol(connection: &Connection) -> Protocol {
    let asked = connection.subflows[0].agreed.asked;
    if !connection.is_multipath() && connection.subflows[0].hides_options() {
        return Protocol::Unknown;
    }
    match connection.is_multipath() {
        true if connection.fallback.is_none() => Protocol::Mptcp,
        true => Protocol::Fallback,
        false if asked => Protocol::Fallback,
        false => Protocol::Tcp,
    }
}

/// Returns the names of the paths: those of their interfaces, if there are several.
fn names(connection: &Connection, captures: &Captures) -> Vec<String> {
    let of = |flow: &Subflow| captures.names.get(&(flow.first.file, flow.interface)).cloned();
    let named: Vec<Option<String>> = connection.subflows.iter().map(of).collect();
    let usable = |name: &str| {
        name.len() <= 32
            && name.starts_with(|it: char| it.is_ascii_alphabetic())
            && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '-' || it == '_')
    };
    let distinct: BTreeSet<&String> = named.iter().flatten().collect();
    // All packets of a capture may have passed one interface. The names of a log are those of its paths.
    let enough = if captures.counts.iter().any(|it| it.kind == FileKind::Capture) { 2 } else { 1 };
    if distinct.len() < enough || !named.iter().all(|name| name.as_deref().is_some_and(usable)) {
        return (1..=named.len()).map(|nth| format!("p{nth}")).collect();
    }
    let mut taken = BTreeMap::<String, usize>::new();
    let number = |name: String| {
        let nth = taken.entry(name.clone()).and_modify(|nth| *nth += 1).or_insert(1);
        if *nth == 1 { name } else { format!("{name}-{nth}") }
    };
    named.into_iter().flatten().map(number).collect()
}

fn causes(found: &Found, names: &[String]) -> Vec<CauseReport> {
    let named = |path: Option<usize>| path.and_then(|path| names.get(path).cloned());
    let mut causes: Vec<CauseReport> = found
        .by_cause
        .iter()
        .map(|((cause, path), (cost, incidents))| CauseReport {
            cause: *cause,
            path: named(*path),
            cost_ms: (!is_structural(*cause)).then(|| ms(*cost)),
            incidents: *incidents,
        })
        .collect();
    let key = |it: &CauseReport| it.cost_ms.unwrap_or(f64::INFINITY);
    causes.sort_by(|a, b| key(b).total_cmp(&key(a)));
    causes
}

/// Returns true if the cost cannot be known: the path that is missing has no rate.
const fn is_structural(cause: Cause) -> bool {
    matches!(cause, Cause::OptionsRemoved | Cause::JoinRefused)
}

fn incident(incident: &crate::incidents::Incident, began: i64, names: &[String]) -> IncidentReport {
    IncidentReport {
        cause: incident.cause,
        path: incident.path.and_then(|path| names.get(path).cloned()),
        from_ms: ms((incident.from_ns - began) as f64),
        to_ms: ms((incident.to_ns - began) as f64),
        cost_ms: incident.cost_ns.map(ms),
        first: packet(incident.packets.0),
        last: packet(incident.packets.1),
        kernel: None,
    }
}

const fn packet(mark: Mark) -> PacketId {
    PacketId { file: mark.file, packet: mark.number }
}

fn path(
    connection: &Connection,
    (index, flow): (usize, &Subflow),
    side: usize,
    name: &str,
    capacity: Capacity,
) -> PathReport {
    let began = connection.limits[side].began;
    let third = flow.handshake.third.map(|mark| mark.at_ns);
    PathReport {
        name: name.to_owned(),
        client: flow.ends[0].to_string(),
        server: flow.ends[1].to_string(),
        place: match flow.vantage(side) {
            Vantage::Sender => Place::Sender,
            Vantage::Receiver => Place::Receiver,
            Vantage::Between => Place::Between,
            Vantage::Unknown => Place::Unknown,
        },
        joined_ms: third.zip(began).map(|(third, began)| ms((third - began).max(0) as f64)),
        backup: flow.agreed.backup,
        multipath: flow.is_multipath(),
        reset: flow.reset.map(|reset| ResetReport {
            by: host(reset.side),
            at_ms: ms((reset.mark.at_ns - began.unwrap_or(reset.mark.at_ns)).max(0) as f64),
            packet: packet(reset.mark),
            reason: reset.reason.map(sentence::words),
            of_connection: reset.is_of_connection,
            after_completion: reset.was_complete[side],
        }),
        unanswered_syns: if flow.packets.iter().sum::<u64>() == u64::from(flow.handshake.syns) {
            flow.handshake.syns
        } else {
            0
        },
        traffic: traffic(connection, index, side),
        link_mbps: (capacity.rate_bps > 0.0).then(|| mbps(capacity.rate_bps)),
        link_is_known: capacity.rate_bps > 0.0 && capacity.is_known,
        rtt: rtt(flow, side),
    }
}

fn traffic(connection: &Connection, index: usize, side: usize) -> TrafficReport {
    let flow = &connection.subflows[index];
    let counts = flow.halves[side].counts;
    let span_ns = flow.last.at_ns - flow.first.at_ns;
    let mean = if span_ns > 0 { counts.bytes as f64 * 8e9 / span_ns as f64 } else { 0.0 };
    // A copy that the receiver reports as its second was not lost.
    let copies = counts.retransmitted_segments.saturating_sub(counts.duplicate_reports);
    let lost = (copies + counts.lost_before_segments) as f64;
    let loss = if counts.segments == 0 { 0.0 } else { lost * 100.0 / counts.segments as f64 };
    TrafficReport {
        segments: counts.segments,
        bytes: counts.bytes,
        mean_mbps: mbps(mean),
        retransmitted_segments: counts.retransmitted_segments,
        retransmitted_bytes: counts.retransmitted_bytes,
        lost_before_segments: counts.lost_before_segments,
        reordered_segments: counts.reordered_segments,
        duplicate_reports: counts.duplicate_reports,
        reinjected_bytes: connection.data[side]
            .reinjected_by_path
            .get(&index)
            .copied()
            .unwrap_or(0),
        loss_percent: libm::round(loss * 1e3) / 1e3,
    }
}

fn rtt(flow: &Subflow, side: usize) -> Option<RttReport> {
    let handshake = flow.handshake_rtt().map(|rtt| RttReport {
        min_ms: ms(rtt as f64),
        median_ms: ms(rtt as f64),
        p95_ms: ms(rtt as f64),
        samples: 1,
        method: "handshake",
    });
    let of = |times: &crate::histogram::Histogram, more: i64, method| {
        let at = |share: f64| times.quantile(share).map(|it| ms(it + more as f64));
        Some(RttReport {
            min_ms: ms(times.least()? + more as f64),
            median_ms: at(0.5)?,
            p95_ms: at(0.95)?,
            samples: times.count(),
            method,
        })
    };
    let (acks, echoes) =
        (&flow.halves[side].samples.ack_times, &flow.halves[1 - side].samples.echo_times);
    let leg = flow.leg(side).unwrap_or(0);
    match flow.vantage(side) {
        Vantage::Receiver if echoes.count() >= ENOUGH_SAMPLES => of(echoes, 0, "timestamps"),
        Vantage::Receiver => handshake,
        _ => of(acks, leg, "data-ack").or(handshake),
    }
}
