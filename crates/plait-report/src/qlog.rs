//! `--qlog`: the events and decisions of one end (in a run, the data's sender), in the sequential
//! form of qlog (draft-ietf-quic-qlog-main-schema). RTTs and windows have the names of QUIC's
//! events, with the subflow instead of a QUIC path. Multipath TCP has events of its own. A packet has its headers
//! (`raw.data`), so `plait explain` reads the file like a capture.

use super::encoded::{Encoder, headers_of};
use super::weighed::Weighed;
use super::whole::{WholeRecords, problem};
use super::words::{Block, Carry};
use crate::{Contents, Error};
use plait_app::Role;
use plait_base::{ConnId, PathId, Span, SubflowId, Time};
use plait_core::Event;
use plait_lab::Cell;
use plait_sim::{Direction, Hop, Watch, Who};
use plait_wire::Segment;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Each record begins with this byte and ends with a line feed (RFC 7464).
const RECORD: u8 = 0x1e;
/// Greatest number of tracked connections. Closed ones still have events; above the limit, the one
/// with the lowest id is dropped.
const VIEWS: usize = 4_096;

/// The connection of an event, if there are several.
pub(super) type Group = Option<ConnId>;

/// The observer that writes the file.
pub struct Qlog {
    file: PathBuf,
    out: WholeRecords,
    paths: Vec<String>,
    /// The end that the log shows.
    vantage: Role,
    views: BTreeMap<Group, View>,
    /// Makes packets of the segments of a run.
    encoder: Option<Encoder>,
    /// The first write error; the log stops there.
    broken: Option<io::Error>,
}

/// State of a connection.
#[derive(Default)]
struct View {
    weighed: Weighed,
    /// The smallest RTT of each subflow.
    min_rtt: [Option<Span>; SubflowId::MAX],
}

impl Qlog {
    /// Creates the file for a run of a cell and writes its header.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(file: &Path, cell: &Cell, command: &str) -> Result<Qlog, Error> {
        let scenario = &cell.scenario;
        let mut qlog = Qlog::open(file, scenario.workload.sender())?;
        qlog.encoder = Some(Encoder::new(cell, scenario.seed));
        qlog.paths = scenario.paths.iter().map(|path| path.name.clone()).collect();
        let title = format!("{cell}, {}, {}, seed {}", cell.cc, scenario.workload, scenario.seed);
        let clock = json!({ "clock_type": "monotonic", "epoch": "unknown" });
        qlog.begin(&title, command, &clock);
        Ok(qlog)
    }

    /// Creates the file for the view of one end.
    pub(super) fn open(file: &Path, vantage: Role) -> Result<Qlog, Error> {
        let out =
            File::create(file).map_err(|error| Error::unwritable(Contents::Qlog, file, &error))?;
        Ok(Qlog {
            file: file.to_owned(),
            out: WholeRecords::new(out),
            paths: Vec::new(),
            vantage,
            views: BTreeMap::new(),
            encoder: None,
            broken: None,
        })
    }

    /// Writes the header.
    pub(super) fn begin(&mut self, title: &str, description: &str, clock: &Value) {
        let place = if self.vantage == Role::Server { "server" } else { "client" };
        self.record(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            // Readers of earlier drafts need these.
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": title,
            "description": description,
            "trace": {
                "vantage_point": { "name": "plait", "type": place },
                "event_schemas": ["urn:ietf:params:qlog:events:quic", "urn:plait:qlog:mptcp"],
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": clock,
                    "protocol_types": ["MPTCP"],
                },
            },
        }));
    }

    /// Gives a path its name.
    pub(super) fn name_path(&mut self, path: PathId, name: &str) {
        if self.paths.len() <= path.index() {
            self.paths.resize(path.index() + 1, String::new());
        }
        if let Some(known) = self.paths.get_mut(path.index()) {
            name.clone_into(known);
        }
    }

    /// Drops the state of a connection.
    pub(super) fn forget(&mut self, group: Group) {
        self.views.remove(&group);
    }

    /// Flushes the buffer to the operating system, for readers.
    pub(super) fn flush(&mut self) {
        if self.broken.is_none() {
            self.broken = self.out.flush().err();
        }
    }

    /// Returns the reason why writing has stopped, if it has.
    pub(super) fn problem(&self) -> Option<String> {
        problem(self.broken.as_ref()?)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If a record could not be written.
    pub fn finish(mut self) -> Result<(), Error> {
        let outcome = self.broken.map_or_else(|| self.out.flush(), Err);
        match outcome {
            // A reader that closed the pipe is no error.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => {
                outcome.map_err(|error| Error::unwritable(Contents::Qlog, &self.file, &error))
            }
        }
    }

    fn record(&mut self, record: &Value) {
        if self.broken.is_none() {
            let written = self.out.write_all(&[RECORD]).and_then(|()| {
                serde_json::to_writer(&mut self.out, record)?;
                self.out.write_all(b"\n")?;
                self.out.end_record()
            });
            self.broken = written.err();
        }
    }

    fn event(&mut self, now: Time, group: Group, name: &str, data: &Value) {
        let mut record = json!({ "time": millis(now.as_nanos()), "name": name });
        if let Some(conn) = group {
            record["group_id"] = conn.0.to_string().into();
        }
        record["data"] = data.clone();
        self.record(&record);
    }

    /// Writes `recovery:metrics_updated` after an ACK.
    fn acked(&mut self, now: Time, group: Group, event: &Event) {
        let Event::Acked { subflow, rtt, srtt, cwnd, inflight, .. } = *event else { return };
        let view = self.views.entry(group).or_default();
        let known = view.min_rtt.get_mut(subflow.index());
        let min = known.and_then(|known| {
            *known = known.iter().copied().chain(rtt).min();
            *known
        });
        let span = |span: Option<Span>| span.map(|span| millis(span.as_nanos()));
        let data = json!({
            "path_id": subflow.0,
            "latest_rtt": span(rtt),
            "smoothed_rtt": millis(srtt.as_nanos()),
            "min_rtt": span(min),
            "congestion_window": cwnd,
            "bytes_in_flight": inflight,
        });
        self.event(now, group, "recovery:metrics_updated", &data);
    }

    /// Writes an event of a connection.
    pub(super) fn hear(&mut self, now: Time, group: Group, event: &Event) {
        if self.views.len() > VIEWS {
            self.views.pop_first();
        }
        let view = self.views.entry(group).or_default();
        if view.weighed.collect(event) {
            return;
        }
        let weighed = std::mem::take(&mut view.weighed);
        match *event {
            Event::Acked { .. } => self.acked(now, group, event),
            Event::Window { subflow, cwnd, ssthresh, .. } => {
                let data = json!({
                    "path_id": subflow.0, "congestion_window": cwnd, "ssthresh": ssthresh,
                });
                self.event(now, group, "recovery:metrics_updated", &data);
            }
            Event::SubflowUp { subflow, path, .. } => {
                let name = self.paths.get(path.index()).cloned().unwrap_or_default();
                let data = json!({ "path_id": subflow.0, "path": name });
                self.event(now, group, "mptcp:subflow_established", &data);
            }
            Event::SubflowDown { subflow } => {
                self.event(now, group, "mptcp:subflow_closed", &json!({ "path_id": subflow.0 }));
            }
            Event::Decision { number, chosen, waits_for, candidates, reason, .. } => {
                let candidates: Vec<u8> = candidates.iter().map(|subflow| subflow.0).collect();
                let data = json!({
                    "number": number,
                    "candidates": candidates,
                    "chosen": chosen.map(|subflow| subflow.0),
                    "waits_for": waits_for.map(|subflow| subflow.0),
                    "reason": reason,
                    "subflows": weighed.subflows,
                    "numbers": weighed.numbers,
                    "assigned": weighed.assigned,
                });
                self.event(now, group, "mptcp:scheduler_decision", &data);
            }
            Event::DataSent { subflow, data, carry } => {
                let again = matches!(
                    carry,
                    plait_core::Carry::Reinjection
                        | plait_core::Carry::Redundant
                        | plait_core::Carry::Opportunistic
                );
                let carry = Carry::from(carry);
                let data = json!({
                    "path_id": subflow.0, "dsn": data.start.get(), "length": data.len(), "carry": carry,
                });
                let name = if again { "mptcp:reinjection" } else { "mptcp:dss_sent" };
                self.event(now, group, name, &data);
            }
            Event::Blocked(Some(plait_core::Block::ReceiveWindow)) => {
                self.event(now, group, "mptcp:rcvbuf_blocked", &json!({}));
            }
            Event::Blocked(block) => {
                let data = json!({ "cause": block.map(Block::from) });
                self.event(now, group, "mptcp:blocked", &data);
            }
            _ => {}
        }
    }

    /// Writes a packet of a path. `bytes` is the packet from its IP header on.
    pub(super) fn packet(
        &mut self,
        now: Time,
        sent: bool,
        path: PathId,
        (segment, bytes): (&Segment, &[u8]),
    ) {
        let headers = headers_of(bytes, segment);
        self.headers(now, sent, path, (segment, headers));
    }

    /// Writes a packet with its headers, from which `plait explain` reads the options.
    fn headers(
        &mut self,
        now: Time,
        sent: bool,
        path: PathId,
        (segment, headers): (&Segment, &[u8]),
    ) {
        let name = if sent { "transport:packet_sent" } else { "transport:packet_received" };
        let path = self.paths.get(path.index()).cloned().unwrap_or_default();
        let payload = segment.payload.len();
        let data = json!({
            "header": { "packet_type": "1RTT", "packet_number": segment.seq },
            "raw": {
                "length": headers.len() as u64 + u64::from(payload),
                "payload_length": payload,
                "data": hexadecimal(headers),
            },
            "path": path,
            "flags": format!("{:?}", segment.flags),
            "ports": [segment.src_port, segment.dst_port],
        });
        self.event(now, None, name, &data);
    }

    /// Writes a packet of a run.
    fn segment(&mut self, now: Time, sent: bool, (path, way): (PathId, Direction), it: &Segment) {
        let Some(mut encoder) = self.encoder.take() else { return };
        match encoder.packet(path, way, it) {
            Some(packet) => self.headers(now, sent, path, (it, packet.headers)),
            None => {
                let refused = encoder.refused.take().unwrap_or_default();
                self.broken.get_or_insert(io::Error::new(io::ErrorKind::InvalidData, refused));
            }
        }
        self.encoder = Some(encoder);
    }
}

/// Returns bytes as hexadecimal text.
fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

impl Watch for Qlog {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        // Events name subflows, so other connections of a session would be mixed up with the first.
        if who.host == self.vantage && who.connection == 0 {
            self.hear(now, None, event);
        }
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let sender = if way == Direction::Up { Role::Client } else { Role::Server };
        match (sender == self.vantage, hop) {
            (true, Hop::Sent) => self.segment(now, true, (path, way), segment),
            (false, Hop::Delivered) => self.segment(now, false, (path, way), segment),
            _ => {}
        }
    }
}

/// Converts nanoseconds to milliseconds, the unit of qlog.
fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
