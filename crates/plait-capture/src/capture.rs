//! One or more captures, merged by time, as connections.

use crate::connection::Connection;
use crate::packet::{PacketReader, Seen, Unread};
use crate::source::{Broken, Source};
use crate::subflow::Subflow;
use plait_wire::{Flags, Mptcp};
use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Largest number of subflows that are followed. Packets of further ones are counted.
const MAX_SUBFLOWS: usize = 20_000;
/// Largest time from the first segment to another one, in nanoseconds: three years. Damaged stamps are cut to it.
const MAX_TIME_NS: i64 = 100_000_000_000_000_000;
/// Largest number of subflows of a connection.
const MAX_PATHS: usize = 64;

/// Counts of a file.
#[derive(Clone, Default, Debug)]
pub(crate) struct FileCounts {
    pub(crate) packets: u64,
    pub(crate) segments: u64,
    pub(crate) fragments: u64,
    pub(crate) malformed: u64,
    /// Packets that were cut before the TCP header's end.
    pub(crate) cut: u64,
    /// Segments whose options were cut.
    pub(crate) cut_options: u64,
    /// Packets of link types that are not supported, and the first such type.
    pub(crate) unknown_link: (u64, Option<i32>),
    /// Copies of packets that another file has.
    pub(crate) copies: u64,
    /// Packets of subflows beyond the limit.
    pub(crate) not_followed: u64,
    pub(crate) error: Option<Broken>,
}

/// A file that is being read.
struct Opened {
    source: Source,
    reader: PacketReader,
    /// The next segment.
    next: Option<Seen>,
}

/// The connections of all files.
pub(crate) struct Captures {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) counts: Vec<FileCounts>,
    opened: Vec<Option<Opened>>,
    pub(crate) connections: Vec<Connection>,
    /// The latest subflow of each pair of addresses, the lower one first.
    flows: BTreeMap<(SocketAddr, SocketAddr), (usize, usize)>,
    /// The connection that a token belongs to, and the side whose key gives it.
    tokens: BTreeMap<u32, (usize, usize)>,
    subflows: usize,
    /// Time of the first segment, from which all times count.
    origin: Option<i64>,
    /// Time of the latest segment. Time does not go back, even if stamps do.
    latest: i64,
    /// Names of the interfaces of each file, as far as packets of subflows came from them.
    pub(crate) names: BTreeMap<(usize, u32), String>,
}

impl Captures {
    /// Opens all files.
    ///
    /// # Errors
    /// If a file cannot be opened or is no capture; with its index.
    pub(crate) fn open(files: &[PathBuf]) -> Result<Captures, (usize, Broken)> {
        let mut opened = Vec::new();
        for (index, path) in files.iter().enumerate() {
            let source = open_file(path).map_err(|broken| (index, broken))?;
            opened.push(Some(Opened { source, reader: PacketReader::new(), next: None }));
        }
        Ok(Captures {
            files: files.to_vec(),
            counts: vec![FileCounts::default(); files.len()],
            opened,
            connections: Vec::new(),
            flows: BTreeMap::new(),
            tokens: BTreeMap::new(),
            subflows: 0,
            origin: None,
            latest: 0,
            names: BTreeMap::new(),
        })
    }

    /// Reads all files to their ends, or to their first damaged packets. Calls `advance` with the number of packets
    /// so far, from time to time; reading stops if it returns false.
    pub(crate) fn read(&mut self, advance: &mut dyn FnMut(u64) -> bool) {
        for index in 0..self.opened.len() {
            self.refill(index);
        }
        let mut segments = 0u64;
        loop {
            let times = self.opened.iter().enumerate();
            let times = times.filter_map(|(at, it)| Some((it.as_ref()?.next.as_ref()?.at_ns, at)));
            let Some((_, index)) = times.min() else { break };
            let seen = self.opened[index].as_mut().and_then(|it| it.next.take());
            if let Some(mut seen) = seen {
                let origin = *self.origin.get_or_insert(seen.at_ns);
                let at = seen.at_ns.saturating_sub(origin).min(MAX_TIME_NS);
                self.latest = self.latest.max(at);
                seen.at_ns = self.latest;
                self.on_segment(&seen);
            }
            self.refill(index);
            segments += 1;
            if segments.is_multiple_of(50_000) && !advance(segments) {
                break;
            }
        }
        self.connections.iter_mut().for_each(Connection::finish);
    }

    /// Reads the next segment of a file.
    fn refill(&mut self, index: usize) {
        let Some(file) = &mut self.opened[index] else { return };
        let counts = &mut self.counts[index];
        loop {
            let next = file.source.next(|frame| file.reader.read(index, frame));
            counts.packets = file.source.packets();
            match next {
                Ok(Some(Ok(seen))) => {
                    counts.segments += 1;
                    counts.cut_options += u64::from(seen.cut);
                    if let Some(name) = file.source.interface_name(seen.interface)
                        && !self.names.contains_key(&(index, seen.interface))
                    {
                        self.names.insert((index, seen.interface), name.to_owned());
                    }
                    file.next = Some(seen);
                    return;
                }
                Ok(Some(Err(unread))) => match unread {
                    Unread::Other => {}
                    Unread::Fragment => counts.fragments += 1,
                    Unread::Malformed => counts.malformed += 1,
                    Unread::Cut => counts.cut += 1,
                    Unread::Link(link) => {
                        counts.unknown_link.0 += 1;
                        counts.unknown_link.1.get_or_insert(link);
                    }
                },
                Ok(None) => break,
                Err(broken) => {
                    counts.error = Some(broken);
                    break;
                }
            }
        }
        self.opened[index] = None;
    }

    fn on_segment(&mut self, seen: &Seen) {
        let key = (seen.src.min(seen.dst), seen.src.max(seen.dst));
        let flags = seen.segment.flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK);
        let known = self.flows.get(&key).copied().filter(|(connection, index)| {
            let flow = &self.connections[*connection].subflows[*index];
            // A SYN with another number on ports that were in use begins a new subflow.
            !(opens
                && flow.file == seen.file
                && flow.halves.iter().any(|half| half.seen.next() > 1))
        });
        let place = match known {
            Some(place) => place,
            None => match self.begin(seen, opens) {
                Some(place) => {
                    self.flows.insert(key, place);
                    place
                }
                None => {
                    self.counts[seen.file].not_followed += 1;
                    return;
                }
            },
        };
        let (connection, index) = place;
        if self.connections[connection].subflows[index].file != seen.file {
            self.counts[seen.file].copies += 1;
            return;
        }
        for (side, key) in self.connections[connection].on_segment(index, seen) {
            self.tokens.insert(key.token(), (connection, side));
        }
    }

    /// Begins a subflow with its first segment. Returns its connection and its number there.
    fn begin(&mut self, seen: &Seen, opens: bool) -> Option<(usize, usize)> {
        if self.subflows >= MAX_SUBFLOWS {
            return None;
        }
        let answers = seen.segment.flags.has(Flags::SYN) && !opens;
        // Without a handshake, the lower port is the server's.
        let from_opener = opens || (!answers && seen.src.port() >= seen.dst.port());
        let (opener, other) = if from_opener { (seen.src, seen.dst) } else { (seen.dst, seen.src) };
        let options = seen.segment.options.mptcp.as_deref().map(Mptcp::all).unwrap_or_default();
        let token = options.iter().find_map(|option| match option {
            Mptcp::JoinSyn(join) => Some(join.token),
            _ => None,
        });
        let joined = token.and_then(|token| self.tokens.get(&token).copied());
        let (connection, opened_by) = match joined {
            // The token is that of the side which receives the SYN.
            Some((connection, receiver)) => (connection, 1 - receiver),
            None => {
                self.connections.push(Connection::new());
                let connection = self.connections.len() - 1;
                if let Some(token) = token {
                    self.connections[connection].unknown_token = Some(token);
                    self.tokens.insert(token, (connection, 1));
                }
                (connection, 0)
            }
        };
        let ends = if opened_by == 0 { [opener, other] } else { [other, opener] };
        let subflows = &mut self.connections[connection].subflows;
        if subflows.len() >= MAX_PATHS {
            return None;
        }
        subflows.push(Subflow::new(ends, opened_by, seen));
        let index = subflows.len() - 1;
        for data in &mut self.connections[connection].data {
            data.is_shared = index > 0;
        }
        self.subflows += 1;
        Some((connection, index))
    }
}

fn open_file(path: &Path) -> Result<Source, Broken> {
    let file = File::open(path)
        .map_err(|error| Broken { packet: 0, problem: format!("it cannot be opened: {error}") })?;
    Source::open(file)
}
