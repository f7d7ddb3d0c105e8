//! `plait run --qlog`: what the data's sender sees and decides, in the sequential form of qlog
//! (draft-ietf-quic-qlog-main-schema): RTTs and windows under the names that QUIC's events have,
//! with the subflow in place of a QUIC path, and Multipath TCP's own events.

use super::weighed::Weighed;
use super::words::{Block, Carry};
use crate::failure::Failure;
use plait_app::Host;
use plait_base::{PathId, Span, SubflowId, Time};
use plait_core::Event;
use plait_lab::Cell;
use plait_sim::{Direction, Hop, Watch, Who};
use plait_wire::Segment;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What names the file.
const FLAG: &str = "--qlog";
/// Each record begins with this byte and ends with a line feed (RFC 7464).
const RECORD: u8 = 0x1e;

/// The observer that writes the file.
pub(crate) struct Qlog {
    file: PathBuf,
    out: BufWriter<File>,
    paths: Vec<String>,
    /// Whose view it is.
    vantage: Host,
    weighed: Weighed,
    /// The smallest RTT of each subflow.
    min_rtt: [Option<Span>; SubflowId::MAX],
    /// The first failure to write; nothing is written after it.
    broken: Option<io::Error>,
}

impl Qlog {
    /// Creates the file for a run of a cell and writes its header.
    pub(crate) fn create(file: &Path, cell: &Cell, command: &str) -> Result<Qlog, Failure> {
        let out = File::create(file).map_err(|error| Failure::unwritable(FLAG, file, &error))?;
        let scenario = &cell.scenario;
        let vantage = scenario.workload.sender();
        let mut qlog = Qlog {
            file: file.to_owned(),
            out: BufWriter::new(out),
            paths: scenario.paths.iter().map(|path| path.name.clone()).collect(),
            vantage,
            weighed: Weighed::default(),
            min_rtt: Default::default(),
            broken: None,
        };
        let place = if vantage == Host::Server { "server" } else { "client" };
        qlog.record(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            // Readers of earlier drafts look for these.
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": format!("{cell}, {}, {}, seed {}", cell.cc, scenario.workload, scenario.seed),
            "description": command,
            "trace": {
                "vantage_point": { "name": "plait", "type": place },
                "event_schemas": ["urn:ietf:params:qlog:events:quic", "urn:plait:qlog:mptcp"],
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
                    "protocol_types": ["MPTCP"],
                },
            },
        }));
        Ok(qlog)
    }

    /// Ends the file; fails if a record of it could not be written.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let outcome = self.broken.map_or_else(|| self.out.flush(), Err);
        match outcome {
            // A reader that went away has what it wanted.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            outcome => outcome.map_err(|error| Failure::unwritable(FLAG, &self.file, &error)),
        }
    }

    fn record(&mut self, record: &Value) {
        if self.broken.is_none() {
            let written = self.out.write_all(&[RECORD]).and_then(|()| {
                serde_json::to_writer(&mut self.out, record)?;
                self.out.write_all(b"\n")
            });
            self.broken = written.err();
        }
    }

    fn event(&mut self, now: Time, name: &str, data: &Value) {
        self.record(&json!({ "time": millis(now.as_nanos()), "name": name, "data": data }));
    }

    /// `recovery:metrics_updated` after an acknowledgement.
    fn acked(&mut self, now: Time, event: &Event) {
        let Event::Acked { subflow, rtt, srtt, cwnd, inflight, .. } = *event else { return };
        let known = self.min_rtt.get_mut(subflow.index());
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
        self.event(now, "recovery:metrics_updated", &data);
    }
}

impl Watch for Qlog {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if who.host != self.vantage || self.weighed.collect(event) {
            return;
        }
        let weighed = std::mem::take(&mut self.weighed);
        match *event {
            Event::Acked { .. } => self.acked(now, event),
            Event::Window { subflow, cwnd, ssthresh, .. } => {
                let data = json!({
                    "path_id": subflow.0, "congestion_window": cwnd, "ssthresh": ssthresh,
                });
                self.event(now, "recovery:metrics_updated", &data);
            }
            Event::SubflowUp { subflow, path, .. } => {
                let name = self.paths.get(path.index()).cloned().unwrap_or_default();
                let data = json!({ "path_id": subflow.0, "path": name });
                self.event(now, "mptcp:subflow_established", &data);
            }
            Event::SubflowDown { subflow } => {
                self.event(now, "mptcp:subflow_closed", &json!({ "path_id": subflow.0 }));
            }
            Event::Decision { number, chosen, waits_for, candidates, reason, .. } => {
                let candidates: Vec<u8> = candidates.iter().map(|subflow| subflow.0).collect();
                let data = json!({
                    "number": number,
                    "candidates": candidates,
                    "chosen": chosen.map(|subflow| subflow.0),
                    "waits_for": waits_for.map(|subflow| subflow.0),
                    "reason": reason.as_str(),
                    "subflows": weighed.subflows,
                    "numbers": weighed.numbers,
                    "assigned": weighed.assigned,
                });
                self.event(now, "mptcp:scheduler_decision", &data);
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
                    "path_id": subflow.0, "dsn": data.start, "length": data.len(), "carry": carry,
                });
                self.event(now, if again { "mptcp:reinjection" } else { "mptcp:dss_sent" }, &data);
            }
            Event::Blocked(Some(plait_core::Block::ReceiveWindow)) => {
                self.event(now, "mptcp:rcvbuf_blocked", &json!({}));
            }
            Event::Blocked(block) => {
                self.event(now, "mptcp:blocked", &json!({ "cause": block.map(Block::from) }));
            }
            _ => {}
        }
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let sender = if way == Direction::Up { Host::Client } else { Host::Server };
        let name = match (sender == self.vantage, hop) {
            (true, Hop::Sent) => "transport:packet_sent",
            (false, Hop::Delivered) => "transport:packet_received",
            _ => return,
        };
        let path = self.paths.get(path.index()).cloned().unwrap_or_default();
        let data = json!({
            "header": { "packet_type": "1RTT", "packet_number": segment.seq },
            "raw": { "length": segment.ip_len(), "payload_length": segment.payload.len() },
            "path": path,
            "flags": format!("{:?}", segment.flags),
            "ports": [segment.src_port, segment.dst_port],
        });
        self.event(now, name, &data);
    }
}

/// Milliseconds, as qlog has times.
fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}
