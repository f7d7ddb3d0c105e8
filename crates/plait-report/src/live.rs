//! `--pcap` and `--qlog` of the commands that talk to kernels: packets sent and received by this
//! end, and its decisions.

use super::pcapng::{CaptureFile, Frame};
use super::qlog::Qlog;
use super::reasons::Reasons;
use crate::{Contents, Error};
use plait_app::Role;
use plait_base::{ConnId, Time};
use plait_core::Event;
use plait_engine::{Observe, PacketEvent};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Display;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Greatest number of interfaces in a capture, because clients have many addresses. Paths beyond it
/// share the last interface.
const INTERFACES: usize = 1_000;
/// Greatest number of connections with tracked reasons at a time.
const KNOWN: usize = 4_096;

/// Prints a line at once or appends it to a log.
pub type Tell = fn(&dyn Display);

/// The requested files. One handle observes events, another one ends the files.
#[derive(Clone)]
pub struct LiveFiles {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// Receives a line if a file cannot be written.
    tell: Option<Tell>,
    capture: Option<LiveCapture>,
    qlog: Option<Qlog>,
    names: Names,
    title: String,
    command: String,
}

/// Names of paths by the client's address; the default name is the address.
struct Names {
    given: BTreeMap<IpAddr, String>,
    known: BTreeMap<u32, IpAddr>,
}

impl Names {
    fn of(&self, client: IpAddr) -> String {
        self.given.get(&client).cloned().unwrap_or_else(|| client.to_string())
    }
}

impl LiveFiles {
    /// Creates a capture, a qlog of one end, or both. Their headers contain the title and the
    /// command. `names` are the names of paths that differ from the client's address. `tell`
    /// receives one line if a file cannot be written.
    ///
    /// # Errors
    /// If a file cannot be created.
    pub fn create(
        (pcap, qlog): (Option<&Path>, Option<&Path>),
        end: Role,
        (title, command): (&str, String),
        names: BTreeMap<IpAddr, String>,
        tell: Option<Tell>,
    ) -> Result<LiveFiles, Error> {
        let comment = format!("{title}\n{command}");
        let capture = pcap.map(|file| LiveCapture::create(file, &comment)).transpose()?;
        let qlog = qlog.map(|file| Qlog::open(file, end)).transpose()?;
        let names = Names { given: names, known: BTreeMap::new() };
        let inner = Inner { tell, capture, qlog, names, title: title.to_owned(), command };
        Ok(LiveFiles { inner: Arc::new(Mutex::new(inner)) })
    }

    /// Ends the files.
    ///
    /// # Errors
    /// If one could not be written.
    pub fn finish(&self) -> Result<(), Error> {
        let Ok(mut inner) = self.inner.lock() else { return Ok(()) };
        let (capture, qlog) = (inner.capture.take(), inner.qlog.take());
        let captured = capture.map_or(Ok(()), |capture| capture.file.finish());
        captured.and(qlog.map_or(Ok(()), Qlog::finish))
    }
}

impl Observe for LiveFiles {
    fn on_start(&mut self, epoch_ns: u64) {
        let Ok(mut inner) = self.inner.lock() else { return };
        let inner = &mut *inner;
        if let Some(capture) = &mut inner.capture {
            capture.epoch_ns = epoch_ns;
        }
        if let Some(qlog) = &mut inner.qlog {
            let wall = rfc3339(epoch_ns);
            let clock = json!({
                "clock_type": "monotonic", "epoch": "unknown", "wall_clock_time": wall,
            });
            qlog.begin(&inner.title, &inner.command, &clock);
        }
        inner.flush();
    }

    fn on_core(&mut self, now: Time, conn: ConnId, event: &Event) {
        let Ok(mut inner) = self.inner.lock() else { return };
        if let Some(capture) = &mut inner.capture {
            capture.hear(now, conn, event);
        }
        if let Some(qlog) = &mut inner.qlog {
            qlog.hear(now, Some(conn), event);
        }
    }

    fn on_packet(&mut self, now: Time, sight: &PacketEvent<'_>) {
        let Ok(mut inner) = self.inner.lock() else { return };
        let inner = &mut *inner;
        let new = inner.names.known.insert(sight.path.0, sight.client) != Some(sight.client);
        if let Some(capture) = &mut inner.capture {
            capture.on_packet(now, sight, &inner.names);
        }
        if let Some(qlog) = &mut inner.qlog {
            if new {
                qlog.name_path(sight.path, &inner.names.of(sight.client));
            }
            qlog.packet(now, sight.outbound, sight.path, (sight.segment, sight.bytes));
        }
    }

    fn on_ended(&mut self, conn: ConnId) {
        let Ok(mut inner) = self.inner.lock() else { return };
        if let Some(capture) = &mut inner.capture {
            capture.reasons.remove(&conn);
        }
        if let Some(qlog) = &mut inner.qlog {
            qlog.forget(Some(conn));
        }
        inner.flush();
    }

    fn on_lull(&mut self) {
        if let Ok(mut inner) = self.inner.lock() {
            inner.flush();
        }
    }
}

impl Inner {
    /// Flushes the buffers to the operating system, and reports the first write error once.
    fn flush(&mut self) {
        if let Some(capture) = &mut self.capture {
            capture.file.flush();
        }
        if let Some(qlog) = &mut self.qlog {
            qlog.flush();
        }
        if let Some(tell) = self.tell
            && let Some(problem) = self.problem()
        {
            self.tell = None;
            tell(&problem);
        }
    }

    /// Returns a log line if writing to a file has stopped.
    fn problem(&self) -> Option<String> {
        let captured =
            self.capture.as_ref().and_then(|it| Some((Contents::Capture, it.file.problem()?)));
        let logged = || self.qlog.as_ref().and_then(|it| Some((Contents::Qlog, it.problem()?)));
        let (contents, problem) = captured.or_else(logged)?;
        let flag = contents.argument();
        Some(format!("event=file-ended flag={flag} problem={problem:?}"))
    }
}

/// A capture with packets of several connections and arbitrary addresses.
struct LiveCapture {
    file: CaptureFile,
    epoch_ns: u64,
    interfaces: BTreeMap<IpAddr, usize>,
    reasons: BTreeMap<ConnId, Reasons>,
    /// Time of the entries in `said`.
    now: Time,
    /// Reasons not yet matched to a packet: payload bytes, and the reason.
    said: VecDeque<(u64, String)>,
}

impl LiveCapture {
    fn create(file: &Path, comment: &str) -> Result<LiveCapture, Error> {
        Ok(LiveCapture {
            file: CaptureFile::create(file, comment, std::iter::empty())?,
            epoch_ns: 0,
            interfaces: BTreeMap::new(),
            reasons: BTreeMap::new(),
            now: Time::ZERO,
            said: VecDeque::new(),
        })
    }

    fn hear(&mut self, now: Time, conn: ConnId, event: &Event) {
        self.settle(now);
        if self.reasons.len() > KNOWN {
            self.reasons.pop_first();
        }
        self.said.extend(self.reasons.entry(conn).or_default().hear(event));
    }

    /// Discards reasons from before `now`; they explain no later packet.
    fn settle(&mut self, now: Time) {
        if now > self.now {
            self.now = now;
            self.said.clear();
        }
    }

    fn on_packet(&mut self, now: Time, sight: &PacketEvent<'_>, names: &Names) {
        self.settle(now);
        let len = u64::from(sight.segment.payload.len());
        let place = self.said.iter().position(|(said, _)| sight.outbound && *said == len);
        let comment = place.and_then(|place| self.said.remove(place));
        let comment = comment.map_or(String::new(), |(_, why)| why);
        let interface = self.interface(sight.client, names);
        self.file.write(&Frame {
            interface,
            at_ns: self.epoch_ns.saturating_add(now.as_nanos()),
            outbound: sight.outbound,
            bytes: sight.bytes,
            comment: &comment,
        });
    }

    fn interface(&mut self, client: IpAddr, names: &Names) -> usize {
        if let Some(known) = self.interfaces.get(&client) {
            return *known;
        }
        if self.interfaces.len() > INTERFACES {
            return INTERFACES;
        }
        let name = match self.interfaces.len() {
            INTERFACES => "further paths".to_owned(),
            _ => names.of(client),
        };
        let place = self.file.add_interface(&name);
        self.interfaces.insert(client, place);
        place
    }
}

/// Formats nanoseconds since 1970 as RFC 3339 does.
fn rfc3339(nanos: u64) -> String {
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    let (mut days, second) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for length in lengths {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}.{rest:09}Z", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::PathId;
    use plait_wire::Segment;

    fn files(pcap: Option<&Path>, qlog: Option<&Path>) -> LiveFiles {
        let head = ("", String::new());
        LiveFiles::create((pcap, qlog), Role::Server, head, BTreeMap::new(), None).unwrap()
    }

    /// Events after the end of a connection's use, which may be most of its events, are also
    /// flushed soon and in whole records.
    #[test]
    fn what_comes_after_the_end_can_be_read() {
        let dir = std::env::temp_dir().join(format!("plait-live-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let (pcap, qlog) = (dir.join("pcap"), dir.join("qlog"));
        let mut files = files(Some(&pcap), Some(&qlog));
        files.on_start(0);
        files.on_ended(ConnId(1));
        let sight = PacketEvent {
            path: PathId(0),
            client: [10, 0, 0, 1].into(),
            outbound: true,
            segment: &Segment::default(),
            bytes: &[0x45; 40],
        };
        let now = Time::ZERO;
        (0..3_000).for_each(|_| files.on_packet(now, &sight));
        files.on_lull();
        let records = std::fs::read(&qlog).unwrap();
        assert_eq!(
            (records.last(), records.iter().filter(|it| **it == 0x1e).count()),
            (Some(&b'\n'), 3_001)
        );
        let file = std::fs::File::open(&pcap).unwrap();
        let mut reader = pcap_file::pcapng::PcapNgReader::new(file).unwrap();
        let mut blocks = 0;
        while let Some(block) = reader.next_block() {
            block.unwrap();
            blocks += 1;
        }
        // One more block describes the interface.
        assert_eq!(blocks, 3_001);
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_full_disk_is_told_of_at_once() {
        let mut files = files(None, Some(Path::new("/dev/full")));
        assert_eq!(files.inner.lock().unwrap().problem(), None);
        files.on_start(0);
        let problem = files.inner.lock().unwrap().problem().unwrap();
        let told = "event=file-ended flag=--qlog problem=\"No space left on device (os error 28)\"";
        assert_eq!(problem, told);
        assert!(matches!(files.finish(), Err(Error::File { .. })));
    }

    /// The expected values are from `date -u -d @SECONDS`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(rfc3339(951_782_400_000_000_001), "2000-02-29T00:00:00.000000001Z");
        assert_eq!(rfc3339(1_798_761_599_000_000_000), "2026-12-31T23:59:59.000000000Z");
    }
}
