//! From connections to the document.

use crate::capture::{Captures, FileCounts};
use crate::cause::Cause;
use crate::connection::Connection;
use crate::document::{
    BrokenAt, CaptureExplanation, CauseReport, ConnectionReport, DataReport, FileKind, FileReport,
    IncidentReport, PacketId, PathReport, Place, Protocol, ResetReport, RttReport, SCHEMA,
    TrafficReport,
};
use crate::incidents::{Capacity, Found, find};
use crate::kernel::{self, KernelDecisions};
use crate::sentence::{self, sentence};
use crate::subflow::{Mark, Subflow, Vantage};
use std::collections::{BTreeMap, BTreeSet};

/// The names of both sides.
const HOSTS: [&str; 2] = ["client", "server"];
/// Connections in the document.
const MAX_CONNECTIONS: usize = 100;
/// Time stamps give an RTT if there are so many samples.
const ENOUGH_SAMPLES: u64 = 5;

/// Returns the document.
pub(crate) fn document(captures: &Captures, command: String) -> CaptureExplanation {
    let connections =
        largest(captures).into_iter().map(|at| connection(&captures.connections[at], captures));
    let connections: Vec<ConnectionReport> = connections.collect();
    let files = captures.files.iter().zip(&captures.counts);
    CaptureExplanation {
        schema: SCHEMA,
        sentence: connections.first().map_or_else(nothing, |it| sentence(it, &captures.counts)),
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
fn largest(captures: &Captures) -> Vec<usize> {
    let mut order: Vec<usize> = (0..captures.connections.len()).collect();
    order.sort_by_key(|at| {
        let connection = &captures.connections[*at];
        std::cmp::Reverse(connection.data[connection.main_sender()].seen.next())
    });
    order.truncate(MAX_CONNECTIONS);
    order
}

fn nothing() -> String {
    "There is no TCP connection in the capture.".to_owned()
}

fn ms(ns: f64) -> f64 {
    libm::round(ns / 1e3) / 1e3
}

fn mbps(bps: f64) -> f64 {
    libm::round(bps / 1e3) / 1e3
}

fn file(name: &str, counts: &FileCounts) -> FileReport {
    let mut notes = Vec::new();
    let mut note = |count: u64, text: &str| {
        if count > 0 {
            notes.push(format!("{count} {text}"));
        }
    };
    note(
        counts.cut,
        "packets were cut before the end of their TCP header; capture at least 96 bytes of each packet.",
    );
    note(
        counts.cut_options,
        "segments were cut within their options; capture at least 134 bytes of each packet.",
    );
    note(counts.fragments, "packets are fragments, which are left out.");
    note(counts.malformed, "packets have headers that contradict each other, and are left out.");
    if let (count, Some(link)) = counts.unknown_link {
        note(count, &format!("packets are of link type {link}, which plait does not read."));
    }
    note(counts.copies, "segments are in an earlier file too, and count once.");
    note(counts.not_followed, "segments belong to connections beyond the limit of 20000.");
    let broken = counts.error.clone();
    FileReport {
        file: name.to_owned(),
        kind: counts.kind,
        packets: counts.packets,
        segments: counts.segments,
        notes,
        broken: broken.map(|it| BrokenAt { packet: it.packet, problem: it.problem }),
    }
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
    let mut notes = notes(connection, captures);
    notes.extend(sentence::notes(&paths, &captures.counts));
    ConnectionReport {
        protocol: protocol(connection),
        token: match (connection.keys[1], connection.unknown_token) {
            (Some(key), _) => Some(format!("{:08x}", key.token())),
            (None, token) => token.map(|token| format!("{token:08x}")),
        },
        client: first.ends[0].to_string(),
        server: first.ends[1].to_string(),
        sender: HOSTS[side],
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
            windows_full: data.full_windows,
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
    let of = |flow: &Subflow| captures.names.get(&(flow.file, flow.interface)).cloned();
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
            by: HOSTS[reset.side],
            at_ms: ms((reset.mark.at_ns - began.unwrap_or(reset.mark.at_ns)).max(0) as f64),
            packet: packet(reset.mark),
            reason: reset.reason.map(sentence::words),
            of_connection: reset.is_of_connection,
            after_completion: reset.was_complete[side],
        }),
        unanswered_syns: if flow.packets == u64::from(flow.handshake.syns) {
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
    let span_ns = (flow.last.at_ns - flow.first.at_ns).max(1) as f64;
    // A copy that the receiver reports as its second was not lost.
    let copies = counts.retransmitted_segments.saturating_sub(counts.duplicate_reports);
    let lost = (copies + counts.lost_before_segments) as f64;
    let loss = if counts.segments == 0 { 0.0 } else { lost * 100.0 / counts.segments as f64 };
    TrafficReport {
        segments: counts.segments,
        bytes: counts.bytes,
        mean_mbps: mbps(counts.bytes as f64 * 8e9 / span_ns),
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

/// Returns why the receive window is unknown, if it is.
fn unknown_window(connection: &Connection) -> Option<String> {
    let receiver = 1 - connection.main_sender();
    let lacks = connection.data[1 - receiver].lacks_windows;
    let mut flows = connection.subflows.iter();
    let flow = flows.find(|flow| lacks && flow.window_shift(receiver).is_none())?;
    let host = HOSTS[receiver];
    let has_syn = if receiver == flow.opener {
        flow.handshake.syn.is_some()
    } else {
        flow.handshake.answered.is_some()
    };
    let reason = match has_syn {
        true => format!("the SYN of the {host} was cut within its options"),
        false => format!("the capture lacks the SYN of the {host}"),
    };
    Some(format!(
        "The receive window is unknown, because {reason}. It is no cause, and what is named \
         `send-buffer` may be a full receive window."
    ))
}

/// Returns the gaps of the capture.
fn notes(connection: &Connection, captures: &Captures) -> Vec<String> {
    let mut notes = Vec::new();
    if captures.senders.mixed {
        notes.push(
            "The log has the states of several senders, so they are not used after the second \
             connection begins."
                .to_owned(),
        );
    }
    if connection.unknown_token.is_some() {
        notes.push(
            "The capture begins after the connection: its first path and its keys are missing."
                .to_owned(),
        );
    } else if connection.subflows[0].handshake.syn.is_none() {
        notes.push(
            "The capture begins after the handshake, so the RTT may be too large.".to_owned(),
        );
    }
    let cut: u64 = connection.subflows.iter().map(|flow| flow.cut_packets).sum();
    if cut > 0 {
        notes.push(format!(
            "{cut} of its segments were cut within their options, so causes may be wrong; capture at \
             least 134 bytes of each packet."
        ));
    }
    notes.extend(unknown_window(connection));
    if let Some(version) = connection.subflows.iter().find_map(|flow| flow.agreed.version) {
        notes.push(format!(
            "An MP_CAPABLE has version {version}; plait reads version 1 (RFC 8684)."
        ));
    }
    let side = connection.main_sender();
    let unseen: u64 =
        connection.subflows.iter().map(|it| it.halves[side].counts.unseen_bytes).sum();
    if unseen > 0 {
        notes.push(format!(
            "{unseen} acknowledged bytes are not in the capture; it may have dropped packets."
        ));
    }
    if connection.unmapped_segments > 0 {
        let count = connection.unmapped_segments;
        notes.push(format!(
            "{count} segments have no data sequence number, and count on their path alone."
        ));
    }
    notes
}
