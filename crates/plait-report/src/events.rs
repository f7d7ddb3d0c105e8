//! `plait run --events`: every event of a run as JSON lines; docs/events.md has the format.

mod packet;

use super::weighed::{Assigned, Considered, Weighed};
use super::words::{Block, Carry, Drop, FallbackCause, HostWord, SizeCause, WindowCause, reasons};
use crate::{Contents, Error};
use packet::Packet;
use plait_app::provenance::{Foretold, Regret};
use plait_app::{AppEvent, Role};
use plait_base::{DataRange, PathId, Span, SubflowSet, Time};
use plait_core::Event;
use plait_sched::{Effect, Reason};
use plait_sim::{Direction, Hop, Watch, Who};
use plait_wire::Segment;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One line of the file: the first is the header, each further one an event.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(untagged)]
pub enum Line<'a> {
    /// The header.
    Header(Header<'a>),
    /// An event.
    Happening(Happening<'a>),
}

/// The first line.
#[derive(Serialize, JsonSchema, Debug)]
pub struct Header<'a> {
    /// Always `plait.events/1`.
    pub schema: &'static str,
    /// Command line that runs it again.
    pub command: &'a str,
    /// The same as a scenario file (TOML), from which `plait explain` repeats the run.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// Version and commit of the program.
    pub version: String,
    /// The scheduler in canonical form, or `tcp:PATH`.
    pub scheduler: String,
    /// The congestion controller in canonical form.
    pub cc: String,
    /// The workload.
    pub workload: String,
    /// Names of the paths, the primary first.
    pub paths: &'a [String],
}

/// A line with an event.
#[derive(Serialize, JsonSchema, Debug)]
pub struct Happening<'a> {
    /// Nanoseconds since the start of the run; never less than in the line before.
    t_ns: u64,
    /// Host of the event: `client` or `server`. A dropped segment has its sender.
    host: HostWord,
    /// The connection, from 0. `plait run` has only one.
    connection: usize,
    #[serde(flatten)]
    what: Body<'a>,
}

/// An event. DSNs count from 0 at the first byte of data that the end sends.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Body<'a> {
    SubflowUp {
        subflow: u8,
        path: &'a str,
        server_address: u8,
    },
    SubflowDown {
        subflow: u8,
    },
    DataSent {
        subflow: u8,
        dsn: u64,
        len_bytes: u64,
        carry: Carry,
    },
    DataArrived {
        subflow: u8,
        dsn: u64,
        len_bytes: u64,
        duplicate_bytes: u64,
    },
    DataReadable {
        subflow: u8,
        dsn: u64,
        len_bytes: u64,
        waited_ns: u64,
    },
    Acked {
        subflow: u8,
        acked_bytes: u64,
        rtt_ns: Option<u64>,
        srtt_ns: u64,
        cwnd_bytes: u64,
        inflight_bytes: u64,
    },
    DataAcked {
        old_dsn: u64,
        new_dsn: u64,
    },
    Window {
        subflow: u8,
        cwnd_bytes: u64,
        ssthresh_bytes: Option<u64>,
        cause: WindowCause,
    },
    Decision {
        number: u64,
        dsn: Option<u64>,
        len_bytes: u64,
        chosen: Option<u8>,
        waits_for: Option<u8>,
        candidates: Vec<u8>,
        usable: Vec<u8>,
        #[schemars(with = "&'static str", extend("enum" = reasons()))]
        reason: Reason,
        subflows: Vec<Considered>,
        numbers: Map<String, Value>,
        assigned: Vec<Assigned>,
    },
    Regret {
        number: u64,
        subflow: u8,
        dsn: u64,
        len_bytes: u64,
        foretold_ns: u64,
        earliest_ns: u64,
        error_ns: i64,
        regret_ns: i64,
    },
    Penalised {
        subflow: u8,
        cwnd_bytes: u64,
        ssthresh_bytes: Option<u64>,
    },
    Capped {
        subflow: u8,
        inflight_limit_bytes: Option<u64>,
    },
    Blocked {
        cause: Option<Block>,
    },
    Timeout {
        subflow: u8,
        rto_ns: u64,
    },
    Fallback {
        cause: FallbackCause,
    },
    SegmentSize {
        subflow: u8,
        payload_bytes: u64,
        cause: SizeCause,
    },
    IdleReset {
        subflow: u8,
        before_bytes: u64,
        after_bytes: u64,
    },
    RequestWritten {},
    RequestRead {},
    WarmUp {
        dsn: u64,
        len_bytes: u64,
    },
    MeasureFrom {
        dsn: u64,
    },
    MessageDue {
        message: u64,
        dsn: u64,
        len_bytes: u64,
        due_ns: u64,
    },
    MessageWritten {
        message: u64,
    },
    Read {
        dsn: u64,
        len_bytes: u64,
    },
    ObjectAsked {
        object: u64,
    },
    ObjectRead {
        object: u64,
    },
    Loaded {},
    Chunk {
        chunk: u64,
        bit_rate_bps: u64,
        lasts_ns: u64,
    },
    Playing {},
    Stalled {},
    Complete {},
    Garbled {
        dsn: u64,
    },
    Failed {},
    SegmentSent(Packet<'a>),
    SegmentDelivered(Packet<'a>),
    SegmentDropped {
        cause: Drop,
        #[serde(flatten)]
        packet: Packet<'a>,
    },
}

/// Writes the file during the run.
pub struct EventLog {
    file: PathBuf,
    out: BufWriter<Box<dyn Write>>,
    paths: Vec<String>,
    /// Details of the next decision.
    weighed: Weighed,
    /// Predictions of decisions, each kept until it is settled. `plait run` has one connection.
    foretold: Foretold,
    /// Number of the latest line.
    lines: Arc<AtomicU64>,
    /// The first write error; the log stops there.
    broken: Option<io::Error>,
}

impl EventLog {
    /// Creates the file and writes the header.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(file: &Path, header: Header<'_>) -> Result<EventLog, Error> {
        let out = File::create(file)
            .map_err(|error| Error::unwritable(Contents::Events, file, &error))?;
        let mut log = EventLog::into_writer(file, Box::new(out), header.paths);
        log.broken = line(&mut log.out, &Line::Header(header)).err();
        Ok(log)
    }

    /// Writes to `out` the contents of `file` without the header. `paths` are the names of the paths. Errors of
    /// [`EventLog::finish`] name `file`.
    pub fn into_writer(file: &Path, out: Box<dyn Write>, paths: &[String]) -> EventLog {
        EventLog {
            file: file.to_owned(),
            out: BufWriter::new(out),
            paths: paths.to_vec(),
            weighed: Weighed::default(),
            foretold: Foretold::default(),
            // The header is the first line.
            lines: Arc::new(AtomicU64::new(1)),
            broken: None,
        }
    }

    /// Returns the number of the latest line, which grows with the file.
    pub(super) fn line_number(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.lines)
    }

    /// Flushes buffered lines; returns an error if an earlier write failed.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.broken.take().map_or_else(|| self.out.flush(), Err)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If a line could not be written.
    pub fn finish(mut self) -> Result<(), Error> {
        let outcome = self.broken.map_or_else(|| self.out.flush(), Err);
        // A reader that closed the pipe (`--events /dev/stdout | head`) is no error.
        let outcome = outcome.or_else(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Ok(()),
            _ => Err(error),
        });
        outcome.map_err(|error| Error::unwritable(Contents::Events, &self.file, &error))
    }

    fn write(&mut self, now: Time, host: Role, connection: usize, what: Body<'_>) {
        if self.broken.is_none() {
            let t_ns = now.as_nanos();
            let happening = Happening { t_ns, host: host.into(), connection, what };
            self.broken = line(&mut self.out, &Line::Happening(happening)).err();
            self.lines.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn line(out: &mut impl Write, line: &Line<'_>) -> io::Result<()> {
    serde_json::to_writer(&mut *out, line)?;
    out.write_all(b"\n")
}

impl Watch for EventLog {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        // Predictions are followed on the first connection of a session.
        let first = who.connection == 0;
        let settled = first.then(|| self.foretold.on_core(now, who.host, event)).flatten();
        if self.weighed.collect(event) {
            return;
        }
        let weighed = std::mem::take(&mut self.weighed);
        // The line borrows the names, so they leave `self` for a moment.
        let paths = std::mem::take(&mut self.paths);
        if let Some(what) = core(event, &paths, weighed) {
            self.write(now, who.host, who.connection, what);
        }
        self.paths = paths;
        if let Some(settled) = settled {
            self.write(now, settled.sender, who.connection, regret(&settled));
        }
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        self.write(now, who.host, who.connection, app(event));
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let paths = std::mem::take(&mut self.paths);
        let packet = Packet::of(name(&paths, path), way, segment);
        let (sender, receiver) = match way {
            Direction::Down => (Role::Server, Role::Client),
            Direction::Up => (Role::Client, Role::Server),
        };
        let (host, what) = match hop {
            Hop::Sent => (sender, Body::SegmentSent(packet)),
            Hop::Delivered => (receiver, Body::SegmentDelivered(packet)),
            Hop::Dropped(cause) => (sender, Body::SegmentDropped { cause: cause.into(), packet }),
        };
        // `plait run` has one connection; ports would be needed to distinguish several.
        self.write(now, host, 0, what);
        self.paths = paths;
    }
}

fn name(paths: &[String], path: PathId) -> &str {
    paths.get(path.index()).map_or("", String::as_str)
}

/// Returns `None` for details of a decision.
fn core<'a>(event: &Event, paths: &'a [String], weighed: Weighed) -> Option<Body<'a>> {
    Some(match *event {
        Event::Considered { .. } | Event::Weighed(_) | Event::Assigned { .. } => return None,
        Event::SubflowUp { subflow, path, server } => Body::SubflowUp {
            subflow: subflow.0,
            path: name(paths, path),
            server_address: server.0,
        },
        Event::SubflowDown { subflow } => Body::SubflowDown { subflow: subflow.0 },
        Event::DataSent { .. } | Event::DataArrived { .. } | Event::DataReadable { .. } => {
            return data(event);
        }
        Event::Acked { subflow, bytes, rtt, srtt, cwnd, inflight } => Body::Acked {
            subflow: subflow.0,
            acked_bytes: bytes,
            rtt_ns: rtt.map(Span::as_nanos),
            srtt_ns: srtt.as_nanos(),
            cwnd_bytes: cwnd,
            inflight_bytes: inflight,
        },
        Event::DataAcked { old, new } => Body::DataAcked { old_dsn: old.get(), new_dsn: new.get() },
        Event::Window { subflow, cwnd, ssthresh, cause } => Body::Window {
            subflow: subflow.0,
            cwnd_bytes: cwnd,
            ssthresh_bytes: ssthresh,
            cause: cause.into(),
        },
        Event::Decision { number, data, chosen, waits_for, candidates, usable, reason } => {
            Body::Decision {
                number,
                dsn: (!data.is_empty()).then_some(data.start.get()),
                len_bytes: data.len(),
                chosen: chosen.map(|subflow| subflow.0),
                waits_for: waits_for.map(|subflow| subflow.0),
                candidates: members(candidates),
                usable: members(usable),
                reason,
                subflows: weighed.subflows,
                numbers: weighed.numbers,
                assigned: weighed.assigned,
            }
        }
        Event::Effect(Effect::Penalise { subflow, cwnd, ssthresh }) => {
            Body::Penalised { subflow: subflow.0, cwnd_bytes: cwnd, ssthresh_bytes: ssthresh }
        }
        Event::Effect(Effect::Cap { subflow, bytes }) => {
            Body::Capped { subflow: subflow.0, inflight_limit_bytes: bytes }
        }
        Event::Blocked(block) => Body::Blocked { cause: block.map(Into::into) },
        Event::Timeout { subflow, rto } => {
            Body::Timeout { subflow: subflow.0, rto_ns: rto.as_nanos() }
        }
        Event::Fallback(cause) => Body::Fallback { cause: cause.into() },
        Event::SegmentSize { subflow, bytes, cause } => {
            Body::SegmentSize { subflow: subflow.0, payload_bytes: bytes, cause: cause.into() }
        }
        Event::IdleReset { subflow, before, after } => {
            Body::IdleReset { subflow: subflow.0, before_bytes: before, after_bytes: after }
        }
    })
}

/// Returns an event about a range of data.
fn data(event: &Event) -> Option<Body<'static>> {
    Some(match *event {
        Event::DataSent { subflow, data, carry } => Body::DataSent {
            subflow: subflow.0,
            dsn: data.start.get(),
            len_bytes: data.len(),
            carry: carry.into(),
        },
        Event::DataArrived { subflow, data, duplicate } => Body::DataArrived {
            subflow: subflow.0,
            dsn: data.start.get(),
            len_bytes: data.len(),
            duplicate_bytes: duplicate,
        },
        Event::DataReadable { data, waited, subflow } => Body::DataReadable {
            subflow: subflow.0,
            dsn: data.start.get(),
            len_bytes: data.len(),
            waited_ns: waited.as_nanos(),
        },
        _ => return None,
    })
}

fn regret(settled: &Regret) -> Body<'static> {
    let Regret { number, subflow, data, foretold, earliest, arrived, .. } = *settled;
    let later = |than: Time| arrived.as_nanos() as i64 - than.as_nanos() as i64;
    Body::Regret {
        number,
        subflow: subflow.0,
        dsn: data.start.get(),
        len_bytes: data.len(),
        foretold_ns: foretold.as_nanos(),
        earliest_ns: earliest.as_nanos(),
        error_ns: later(foretold),
        regret_ns: later(earliest),
    }
}

fn app(event: &AppEvent) -> Body<'static> {
    let span = |data: &DataRange| (data.start.get(), data.len());
    match event {
        AppEvent::RequestWritten => Body::RequestWritten {},
        AppEvent::RequestRead => Body::RequestRead {},
        AppEvent::WarmUp { data } => {
            let (dsn, len_bytes) = span(data);
            Body::WarmUp { dsn, len_bytes }
        }
        AppEvent::MeasureFrom { offset } => Body::MeasureFrom { dsn: offset.get() },
        AppEvent::MessageDue { id, data, due } => {
            let (dsn, len_bytes) = span(data);
            Body::MessageDue { message: *id, dsn, len_bytes, due_ns: due.as_nanos() }
        }
        AppEvent::MessageWritten { id } => Body::MessageWritten { message: *id },
        AppEvent::Read { data } => {
            let (dsn, len_bytes) = span(data);
            Body::Read { dsn, len_bytes }
        }
        AppEvent::ObjectAsked { id } => Body::ObjectAsked { object: *id },
        AppEvent::ObjectRead { id } => Body::ObjectRead { object: *id },
        AppEvent::Loaded => Body::Loaded {},
        AppEvent::Chunk { id, rate, lasts } => {
            Body::Chunk { chunk: *id, bit_rate_bps: rate.as_bps(), lasts_ns: lasts.as_nanos() }
        }
        AppEvent::Playing => Body::Playing {},
        AppEvent::Stalled => Body::Stalled {},
        AppEvent::Complete => Body::Complete {},
        AppEvent::Garbled { position } => Body::Garbled { dsn: position.get() },
        AppEvent::Failed => Body::Failed {},
    }
}

fn members(set: SubflowSet) -> Vec<u8> {
    set.iter().map(|subflow| subflow.0).collect()
}
