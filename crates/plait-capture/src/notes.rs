//! What is wrong with the input: the notes about files and connections.

use crate::capture::Captures;
use crate::connection::Connection;
use crate::counts::{FileCounts, Jumps};
use crate::document::{BrokenAt, FileReport};
use crate::order::Disorder;
use crate::sentence::{host, time};

/// If the clock was set back more often, the packets of the file have no order.
const MAX_SET_BACK: u64 = 8;

/// Returns the report of a file.
pub(crate) fn file(name: &str, counts: &FileCounts) -> FileReport {
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
    note(
        counts.malformed,
        "packets have headers that contradict each other or the packet's length, and are left out.",
    );
    if let (count, Some(link)) = counts.unknown_link {
        note(count, &format!("packets are of link type {link}, which plait does not read."));
    }
    note(counts.repeated, "segments are copies of others in the file, and count once.");
    note(counts.copies, "segments are in another file too, and count once.");
    note(counts.not_followed, "segments belong to connections beyond the limit of 20000.");
    notes.extend(disorder(&counts.disorder));
    notes.extend(jump(&counts.jumps));
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

/// Returns a note about times that jump ahead.
fn jump(jumps: &Jumps) -> Option<String> {
    let (number, ahead_ns) = jumps.first?;
    let Some(ns) = ahead_ns else {
        return Some(format!(
            "The packets before packet {number} have no times. They get the time of that packet."
        ));
    };
    let days = ns as f64 / 86_400e9;
    let more = match jumps.count {
        1 => String::new(),
        all => format!(" This happens {all} times."),
    };
    Some(format!(
        "Packet {number} is {days:.1} days later than all packets before it, so a clock was wrong. \
         plait lets the time go on from the packet before it.{more}"
    ))
}

/// Returns what is wrong with the times of a file.
fn disorder(disorder: &Disorder) -> Vec<String> {
    let mut notes = Vec::new();
    let back = |(number, ns): (u64, i64)| {
        let by = if ns < 1_000_000 { format!("{} us", ns / 1_000) } else { time(ns as f64 / 1e6) };
        format!("Packet {number} is {by} earlier than ")
    };
    match (disorder.set_back, disorder.earlier) {
        (0, 0) => {}
        (0, 1) => notes.push(
            back(disorder.most) + "the packet before it. plait sorts the packets by time.",
        ),
        (0, all) => notes.push(
            back(disorder.most)
                + &format!(
                    "the packet before it. {all} packets are too early. plait sorts the packets \
                     by time."
                ),
        ),
        (1..=MAX_SET_BACK, _) => notes.push(
            back(disorder.first_set)
                + "packets of its subflow before it, so the clock was set back. plait lets the time \
                   go on from the packet before it.",
        ),
        (all, _) => notes.push(
            back(disorder.first_set)
                + &format!(
                    "packets of its subflow before it. This happens {all} times, so times and \
                     causes are wrong; sort the file: reordercap FILE NEW"
                ),
        ),
    }
    if disorder.late > 0 {
        notes.push(format!(
            "{} packets are too far from their place to be sorted, and their times are wrong; sort \
             the file: reordercap FILE NEW",
            disorder.late
        ));
    }
    notes
}

/// Returns a note about paths without their acknowledgements in the capture.
fn unanswered(connection: &Connection, side: usize, names: &[String]) -> Option<String> {
    let paths = connection.subflows.iter().zip(names);
    let paths = paths.filter(|(flow, _)| flow.only_from() == Some(side));
    let paths = paths.filter(|(flow, _)| flow.halves[side].counts.segments > 0);
    let paths: Vec<&str> = paths.map(|(_, name)| name.as_str()).collect();
    (!paths.is_empty()).then(|| {
        let (from, paths) = (host(side), paths.join(", "));
        format!(
            "On {paths} the capture has only the packets from the {from}, so causes there are \
             unknown."
        )
    })
}

/// Returns notes about acknowledged data that is not in the capture.
fn missing(connection: &Connection, side: usize) -> Vec<String> {
    let mut notes = Vec::new();
    let unseen: u64 =
        connection.subflows.iter().map(|it| it.halves[side].counts.unseen_bytes).sum();
    if unseen > 0 {
        notes.push(format!(
            "{unseen} bytes were acknowledged on its paths and are not in the capture, which lacks packets."
        ));
    }
    let data = connection.data[side].unseen_bytes;
    if connection.is_multipath() && data > 0 {
        let hint = match data > unseen {
            true if connection.lacks_handshake() => ", which lacks its start, packets or a path",
            true => ", which lacks packets or a path",
            false => "",
        };
        notes.push(format!(
            "{data} acknowledged bytes of the data are on no path of the capture{hint}."
        ));
    }
    notes
}

/// Returns a note about segments with damaged sequence numbers.
fn stray(connection: &Connection) -> Option<String> {
    let halves = connection.subflows.iter().flat_map(|flow| &flow.halves);
    let count: u64 = halves.map(|half| half.counts.stray_segments).sum();
    (count > 0).then(|| {
        format!(
            "{count} segments have sequence numbers far outside the receive window, and are left out."
        )
    })
}

/// Returns why the receive window is unknown, if it is.
fn unknown_window(connection: &Connection) -> Option<String> {
    let receiver = 1 - connection.main_sender();
    let lacks = connection.data[1 - receiver].window.is_lacking;
    let mut flows = connection.subflows.iter();
    let flow = flows.find(|flow| lacks && flow.window_shift(receiver).is_none())?;
    let host = host(receiver);
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
        "The receive window is unknown, because {reason}. So it is never named as a cause, and the \
         cause `send-buffer` may be a full receive window."
    ))
}

/// Returns the gaps of the capture.
pub(crate) fn notes(connection: &Connection, captures: &Captures, names: &[String]) -> Vec<String> {
    let mut notes = Vec::new();
    if captures.senders.mixed {
        notes.push(
            "The log has the states of several senders, so they are not used after the second \
             connection begins."
                .to_owned(),
        );
    }
    let side = connection.main_sender();
    let only_from = connection.only_from();
    if let Some(from) = only_from {
        notes.push(format!(
            "The capture has only the packets from the {}. To find the causes of lost time, \
             plait needs the packets from the {} too.",
            host(from),
            host(1 - from)
        ));
    }
    notes.extend(unanswered(connection, side, names).filter(|_| only_from.is_none()));
    if connection.is_timeless() {
        notes.push(
            "All its packets have the same time, so durations, rates and causes are unknown."
                .to_owned(),
        );
    }
    if connection.unknown_token.is_some() && connection.subflows[0].agreed.join {
        notes.push(
            "The capture begins after the connection: its first path and its keys are missing."
                .to_owned(),
        );
    } else if connection.subflows[0].handshake.syn.is_none()
        && (only_from.is_none() || connection.subflows[0].handshake.answered.is_none())
    {
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
    let others = captures.connections.iter().filter(|other| other.lacks_handshake());
    if connection.lacks_handshake() && others.count() > 1 {
        notes.push(
            "Its handshake is missing, so another connection may be a subflow of it: plait joins \
             such subflows only if their data sequence numbers are close."
                .to_owned(),
        );
    }
    notes.extend(missing(connection, side));
    notes.extend(stray(connection));
    if connection.unmapped_segments > 0 {
        let count = connection.unmapped_segments;
        notes.push(format!(
            "{count} segments have no data sequence number, and count only for their path."
        ));
    }
    notes
}
