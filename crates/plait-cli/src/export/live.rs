//! `--pcap` and `--qlog` of the commands that speak to kernels: what this end sends, takes in and
//! decides.

use super::pcapng::{CaptureFile, Frame};
use super::qlog::Qlog;
use super::reasons::Reasons;
use crate::failure::Failure;
use plait_app::Host;
use plait_base::{ConnId, Time};
use plait_core::Event;
use plait_live::{Observe, Sight};
use serde_json::json;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Interfaces of a capture at most, as clients' addresses are many; the paths of further ones share
/// the last.
const INTERFACES: usize = 1_000;
/// Connections whose reasons are known at a time.
const KNOWN: usize = 4_096;

/// The files that were asked for. A handle of it hears, another one ends them.
#[derive(Clone)]
pub(crate) struct LiveFiles {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    capture: Option<LiveCapture>,
    qlog: Option<Qlog>,
    names: Names,
    title: String,
    command: String,
}

/// Names of paths by the client's address: that address, unless it was given another one.
struct Names {
    given: BTreeMap<IpAddr, String>,
    known: BTreeMap<u16, IpAddr>,
}

impl Names {
    fn of(&self, client: IpAddr) -> String {
        self.given.get(&client).cloned().unwrap_or_else(|| client.to_string())
    }
}

impl LiveFiles {
    /// Creates the files, if any is asked for. `names` are those of paths that have another name
    /// than the client's address.
    pub(crate) fn create(
        (pcap, qlog): (Option<&Path>, Option<&Path>),
        end: Host,
        title: &str,
        names: BTreeMap<IpAddr, String>,
    ) -> Result<Option<LiveFiles>, Failure> {
        if pcap.is_none() && qlog.is_none() {
            return Ok(None);
        }
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        let comment = format!("{title}\n{command}");
        let capture = pcap.map(|file| LiveCapture::create(file, &comment)).transpose()?;
        let qlog = qlog.map(|file| Qlog::open(file, end)).transpose()?;
        let names = Names { given: names, known: BTreeMap::new() };
        let inner = Inner { capture, qlog, names, title: title.to_owned(), command };
        Ok(Some(LiveFiles { inner: Arc::new(Mutex::new(inner)) }))
    }

    /// Ends the files; fails where one could not be written.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
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

    fn on_packet(&mut self, now: Time, sight: &Sight<'_>) {
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
            qlog.packet(now, sight.outbound, sight.path, sight.segment);
        }
    }

    fn on_ended(&mut self, conn: ConnId) {
        let Ok(mut inner) = self.inner.lock() else { return };
        if let Some(capture) = &mut inner.capture {
            capture.reasons.remove(&conn);
            capture.file.flush();
        }
        if let Some(qlog) = &mut inner.qlog {
            qlog.forget(Some(conn));
            qlog.flush();
        }
    }
}

/// A capture with packets of several connections, to and from addresses that come as they like.
struct LiveCapture {
    file: CaptureFile,
    epoch_ns: u64,
    interfaces: BTreeMap<IpAddr, usize>,
    reasons: BTreeMap<ConnId, Reasons>,
    /// The instant that `said` is of.
    now: Time,
    /// What was told and no packet has claimed: bytes of payload, and why.
    said: VecDeque<(u64, String)>,
}

impl LiveCapture {
    fn create(file: &Path, comment: &str) -> Result<LiveCapture, Failure> {
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

    /// What was told of instants before `now` explains no packet any more.
    fn settle(&mut self, now: Time) {
        if now > self.now {
            self.now = now;
            self.said.clear();
        }
    }

    fn on_packet(&mut self, now: Time, sight: &Sight<'_>, names: &Names) {
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

/// An instant in nanoseconds since 1970, as RFC 3339 writes it.
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

    /// As `date -u -d @SECONDS` says.
    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000000Z");
        assert_eq!(rfc3339(951_782_400_000_000_001), "2000-02-29T00:00:00.000000001Z");
        assert_eq!(rfc3339(1_798_761_599_000_000_000), "2026-12-31T23:59:59.000000000Z");
    }
}
