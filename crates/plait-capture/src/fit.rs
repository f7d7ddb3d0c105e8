//! Links and a workload that replay a captured transfer in the simulator.

use crate::cause::Cause;
use crate::connection::Connection;
use crate::document::{FitReport, FittedPath};
use crate::incidents::{Capacity, Found};
use crate::limits::{Label, PathLimits, Stall};
use crate::subflow::Vantage;

/// Payload of a segment if the capture has none: 1500 bytes less headers, time stamps and a DSS.
const USUAL_PAYLOAD: f64 = 1_428.0;
/// Size of a full packet in bytes.
const PACKET: f64 = 1_500.0;
/// Losses without a queue below this number are no loss rate.
const MIN_LOSSES: u64 = 3;
/// Share of the duration from which on a cause changes a setting.
const WORTH_A_SETTING: f64 = 0.05;
/// The simulator's default queue in milliseconds.
const USUAL_QUEUE_MS: f64 = 100.0;
/// Smallest queue of the simulator in bytes: 10 packets.
const MIN_QUEUE_BYTES: f64 = 15_000.0;
/// The rate of a link that was never full, if the sender had too little data: so many times what it carried.
const UNKNOWN_RATE: f64 = 10.0;
/// Pauses that make a transfer a stream of messages.
const MIN_PAUSES: usize = 2;
/// Outages of a path that are replayed.
const MAX_OUTAGES: usize = 8;

/// Returns the fit for the data of `side`; none if no path has a rate and an RTT.
pub(crate) fn fit(
    connection: &Connection,
    side: usize,
    found: &Found,
    names: &[String],
) -> Option<FitReport> {
    let limits = &connection.limits[side];
    let began = connection.subflows[0].handshake.syn.map(|mark| mark.at_ns).or(limits.began)?;
    let mut paths = Vec::new();
    let mut unknown = Vec::new();
    for (index, capacity) in found.capacities.iter().enumerate() {
        let Some(path) = limits.paths.get(index) else { continue };
        let mut capacity = *capacity;
        if limits.messages().is_some() && !capacity.is_known && capacity.rate_bps > 0.0 {
            capacity.rate_bps *= UNKNOWN_RATE;
            unknown.push(names[index].as_str());
        }
        if capacity.rate_bps > 0.0 && capacity.rtt_ns > 0 {
            let outages = outages(&limits.log.stalls, index, began);
            paths.push(fitted(connection, (index, side), path, capacity, &names[index], outages));
        }
    }
    if paths.is_empty() {
        return None;
    }
    let duration = (limits.finished - began).max(1) as f64;
    let (workload, note) = workload(connection, side, found, duration / 1e6);
    let rates = (!unknown.is_empty()).then(|| {
        let names = unknown.join(", ");
        format!("each link of unknown rate ({names}) has ten times the rate that it carried")
    });
    let notes: Vec<String> = rates.into_iter().chain(note).collect();
    let note = (!notes.is_empty()).then(|| notes.join("; "));
    let settings = settings(connection, side, found, duration);
    let mut command = "plait compare".to_owned();
    paths.iter().for_each(|path| command.push_str(&format!(" --path {}", path.argument)));
    command.push_str(&format!(" --workload {workload}"));
    settings.iter().for_each(|(name, value)| command.push_str(&format!(" --{name} {value}")));
    let replays = workload.starts_with("download") || workload.starts_with("upload");
    let completion_ms = completion(connection, side, began).filter(|_| replays);
    Some(FitReport { paths, workload, settings, completion_ms, note, command })
}

/// Returns the fit of a path.
fn fitted(
    connection: &Connection,
    (index, side): (usize, usize),
    limits: &PathLimits,
    capacity: Capacity,
    name: &str,
    outages_ms: Vec<(f64, f64)>,
) -> FittedPath {
    let flow = &connection.subflows[index];
    let half = &flow.halves[side];
    let payload = match f64::from(half.max_payload) {
        known if known > 0.0 => known,
        _ => USUAL_PAYLOAD,
    };
    let rate_bps = capacity.rate_bps * (payload + PACKET - USUAL_PAYLOAD) / payload;
    // A full packet takes a while to leave; the packets of the handshake are small.
    let of_data = half.samples.ack_times.least().map(|least| least / 1e6 - PACKET * 8e3 / rate_bps);
    let handshake = flow.handshake_rtt().map(|rtt| rtt as f64 / 1e6);
    let at_sender = flow.vantage(side) == Vantage::Sender;
    let rtt_ms = match (handshake, of_data.filter(|_| at_sender)) {
        (Some(handshake), of_data) => of_data.unwrap_or(handshake).min(handshake),
        (None, of_data) => of_data.unwrap_or(capacity.rtt_ns as f64 / 1e6),
    };
    let rtt_ms = rtt_ms.max(0.1);
    let (with_queue, without_queue) = limits.losses();
    let queue_ms = limits.peak_queue_ns() as f64 / 1e6;
    let queued = queue_ms * rate_bps / 8e3;
    let overflowed = with_queue >= MIN_LOSSES && queued >= MIN_QUEUE_BYTES;
    let queue_bytes = match () {
        () if overflowed => Some(queued),
        () if queue_ms > USUAL_QUEUE_MS => Some(queued * 1.5),
        () => None,
    };
    let of_queue = if overflowed { 0 } else { with_queue };
    let losses = without_queue + of_queue;
    let losses = if losses < MIN_LOSSES { 0 } else { losses };
    let loss_percent = losses as f64 * 100.0 / half.counts.segments.max(1) as f64;
    let mut argument = format!("{name}:rate={:.3}mbit,rtt={rtt_ms:.2}ms", rate_bps / 1e6);
    if let Some(bytes) = queue_bytes {
        argument.push_str(&format!(",queue={:.1}kB", bytes / 1e3));
    }
    if loss_percent > 0.0 {
        argument.push_str(&format!(",loss={loss_percent:.3}%"));
    }
    for (from, to) in &outages_ms {
        argument.push_str(&format!(",down={from:.0}ms..{to:.0}ms"));
    }
    if flow.agreed.backup {
        argument.push_str(",backup");
    }
    FittedPath {
        name: name.to_owned(),
        argument,
        rate_mbps: round(rate_bps / 1e6),
        rtt_ms: round(rtt_ms),
        queue_bytes: queue_bytes.map(|bytes| bytes as u64),
        queue_overflowed: overflowed,
        loss_percent: round(loss_percent),
        outages_ms,
    }
}

fn round(value: f64) -> f64 {
    libm::round(value * 1e3) / 1e3
}

/// Returns the silences of a path and the time after its reset, in milliseconds from the first SYN.
fn outages(stalls: &[Stall], path: usize, began: i64) -> Vec<(f64, f64)> {
    let silent = stalls.iter().map(|stall| &stall.whole);
    let is_out = |label| matches!(label, Label::Silent | Label::Reset);
    let silent = silent.filter(|it| is_out(it.label) && it.blamed == Some(path));
    let ms = |at: i64| libm::round((at - began).max(0) as f64 / 1e6);
    let mut outages: Vec<(f64, f64)> = Vec::new();
    for (from, to) in silent.map(|it| (ms(it.from), ms(it.to))).filter(|(from, to)| from < to) {
        match outages.last_mut() {
            // A silence up to the reset, and the time after it.
            Some(last) if last.1 == from => last.1 = to,
            _ => outages.push((from, to)),
        }
    }
    outages.truncate(MAX_OUTAGES);
    outages
}

/// Returns the workload, and a note on properties that it leaves out.
fn workload(
    connection: &Connection,
    side: usize,
    found: &Found,
    duration_ms: f64,
) -> (String, Option<String>) {
    let bytes = connection.data[side].seen.next().max(1);
    let all = connection.limits[side].log.stalls.iter().map(|stall| &stall.whole);
    let pauses: Vec<_> = all.filter(|it| it.label == Label::Idle).collect();
    let idle_ms: f64 = pauses.iter().map(|it| (it.to - it.from) as f64 / 1e6).sum();
    let matters = idle_ms > duration_ms * WORTH_A_SETTING;
    if matters && side == 1 && pauses.len() >= MIN_PAUSES {
        let (first, last) = (pauses[0].to, pauses[pauses.len() - 1].to);
        let period_ms = (last - first) as f64 / 1e6 / (pauses.len() - 1) as f64;
        let messages = pauses.len() as f64 + 1.0;
        let size = size(bytes / (pauses.len() as i64 + 1));
        let text = format!("stream:{size}@{period_ms:.0}ms,for={:.0}ms", period_ms * messages);
        let note = "the pauses of the sender are replayed as equal messages at equal intervals";
        return (text, Some(note.to_owned()));
    }
    let messages = connection.limits[side].messages().filter(|count| *count as usize > MIN_PAUSES);
    let is_idle = cost(found, Cause::ApplicationIdle) > duration_ms * 1e6 * WORTH_A_SETTING;
    if let Some(messages) = messages.filter(|_| side == 1 && is_idle) {
        let all_ms = libm::round(duration_ms).max(1.0);
        let size = size((bytes / messages as i64).max(1));
        let text = format!("stream:{size}@{:.2}ms,for={all_ms:.0}ms", all_ms / messages as f64);
        return (
            text,
            Some("the data is replayed as equal messages at equal intervals".to_owned()),
        );
    }
    let verb = if side == 1 { "download" } else { "upload" };
    let note = format!("{idle_ms:.0} ms in which the sender had nothing to send are not replayed");
    (format!("{verb}:{}", size(bytes)), matters.then_some(note))
}

/// Formats bytes as a quantity of plait.
fn size(bytes: i64) -> String {
    match bytes {
        it if it % 1_000_000 == 0 => format!("{}MB", it / 1_000_000),
        it if it % 1_000 == 0 => format!("{}kB", it / 1_000),
        it => format!("{it}B"),
    }
}

/// Returns the cost of a cause on all paths, in nanoseconds.
fn cost(found: &Found, cause: Cause) -> f64 {
    let of = found.by_cause.iter().filter(|((it, _), _)| *it == cause);
    of.map(|(_, (cost, _))| cost).sum()
}

/// Returns the settings that the causes ask for.
fn settings(
    connection: &Connection,
    side: usize,
    found: &Found,
    duration: f64,
) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    let mut set = |name: &str, bytes: u64| {
        settings.push((name.to_owned(), size(bytes as i64)));
    };
    if cost(found, Cause::ReceiveWindow) > duration * WORTH_A_SETTING {
        connection.data[side].window().iter().for_each(|bytes| set("rcvbuf", *bytes));
    }
    if cost(found, Cause::SendBuffer) > duration * WORTH_A_SETTING {
        let stalls = connection.limits[side].log.stalls.iter();
        set("sndbuf", stalls.map(|it| it.whole.unacked).max().unwrap_or(0).max(0) as u64);
    }
    settings
}

/// Returns the time from the first SYN to the last byte at the receiver, in milliseconds; none if not all data was
/// acknowledged.
fn completion(connection: &Connection, side: usize, began: i64) -> Option<f64> {
    let (limits, data) = (&connection.limits[side], &connection.data[side]);
    let flow = &connection.subflows[0];
    if data.acked < data.seen.next() || flow.handshake.syn.is_none() {
        return None;
    }
    // The end is that at the sender. The SYN is as the capture has it.
    let one_way = flow.handshake_rtt()? / 2;
    let correction = match (side, flow.vantage(side)) {
        (1, _) => 0,
        (_, Vantage::Sender) => -one_way,
        (_, Vantage::Receiver) => one_way,
        _ => 0,
    };
    let end = limits.finished - flow.leg(side)? + correction;
    Some(round((end - began) as f64 / 1e6))
}
