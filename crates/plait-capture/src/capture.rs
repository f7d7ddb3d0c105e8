//! One or more captures, merged by time, as connections.

use crate::connection::Connection;
use crate::document::FileKind;
use crate::held::{Change, Senders};
use crate::log::{Entry, LogSource, is_log};
use crate::packet::{PacketReader, Seen, Unread};
use crate::source::{Broken, Source};
use crate::subflow::{Mark, Subflow};
use plait_wire::{Flags, Mptcp};
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Largest number of subflows that are followed. Packets of further ones are counted.
const MAX_SUBFLOWS: usize = 20_000;
/// Largest time from the first segment to another one, in nanoseconds: three years. Damaged stamps are cut to it.
const MAX_TIME_NS: i64 = 100_000_000_000_000_000;
/// Largest number of subflows of a connection.
const MAX_PATHS: usize = 64;

/// Largest number of packets whose times are kept for the alignment with a trace of the kernel.
const MAX_TIMES: usize = 4_000_000;

/// Counts of a file.
#[derive(Clone, Default, Debug)]
pub(crate) struct FileCounts {
    pub(crate) kind: FileKind,
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

impl FileCounts {
    /// Counts a packet, and returns its segment.
    pub(crate) fn sort<S: Borrow<Seen>>(&mut self, read: Result<S, Unread>) -> Option<S> {
        match read {
            Ok(seen) => {
                self.segments += 1;
                self.cut_options += u64::from(seen.borrow().cut);
                return Some(seen);
            }
            Err(Unread::Other) => {}
            Err(Unread::Fragment) => self.fragments += 1,
            Err(Unread::Malformed) => self.malformed += 1,
            Err(Unread::Cut) => self.cut += 1,
            Err(Unread::Link(link)) => {
                self.unknown_link.0 += 1;
                self.unknown_link.1.get_or_insert(link);
            }
        }
        None
    }
}

/// The input of a file.
enum Input {
    Capture(Source),
    Log(LogSource),
}

impl Input {
    /// Returns the next packet, or the next state of the sender; none at the end of the file.
    fn next(&mut self, file: usize, reader: &mut PacketReader) -> Result<Option<Entry>, Broken> {
        match self {
            Input::Capture(source) => {
                source.next(|frame| Entry::Packet(reader.read(file, frame).map(Box::new)))
            }
            Input::Log(log) => log.next(file, reader),
        }
    }

    const fn packets(&self) -> u64 {
        match self {
            Input::Capture(source) => source.packets(),
            Input::Log(log) => log.packets(),
        }
    }

    fn interface_name(&self, interface: u32) -> Option<&str> {
        match self {
            Input::Capture(source) => source.interface_name(interface),
            Input::Log(log) => log.path_name(interface),
        }
    }
}

/// The next part of a file that counts.
enum Next {
    Segment(Box<Seen>),
    Change { number: u64, at_ns: i64, group: Option<String>, change: Change },
}

impl Next {
    const fn at_ns(&self) -> i64 {
        match self {
            Next::Segment(seen) => seen.at_ns,
            Next::Change { at_ns, .. } => *at_ns,
        }
    }
}

/// A file that is being read.
struct Opened {
    input: Input,
    reader: PacketReader,
    next: Option<Next>,
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
    /// The connections of the senders whose states are known.
    pub(crate) senders: Senders,
    /// True if the times of packets are kept.
    pub(crate) keeps_times: bool,
    /// Connections and times of packets, if they are kept.
    pub(crate) times: Vec<(usize, i64)>,
}

impl Captures {
    /// Opens all files.
    ///
    /// # Errors
    /// If a file cannot be opened or is no capture; with its index.
    pub(crate) fn open(files: &[PathBuf]) -> Result<Captures, (usize, Broken)> {
        let mut captures = Captures::empty(files);
        for (index, path) in files.iter().enumerate() {
            let input = open_file(path).map_err(|broken| (index, broken))?;
            if matches!(input, Input::Log(_)) {
                captures.counts[index].kind = FileKind::Qlog;
            }
            if files.len() > 1 && captures.counts[index].kind == FileKind::Qlog {
                let problem = "a qlog stands alone: its times are not those of another file\n  \
                               allowed: one qlog, or several captures";
                return Err((index, Broken { packet: 0, problem: problem.to_owned() }));
            }
            captures.opened.push(Some(Opened { input, reader: PacketReader::new(), next: None }));
        }
        Ok(captures)
    }

    /// Returns captures without packets.
    pub(crate) fn empty(files: &[PathBuf]) -> Captures {
        Captures {
            files: files.to_vec(),
            counts: vec![FileCounts::default(); files.len()],
            opened: Vec::new(),
            connections: Vec::new(),
            flows: BTreeMap::new(),
            tokens: BTreeMap::new(),
            subflows: 0,
            origin: None,
            latest: 0,
            names: BTreeMap::new(),
            senders: Senders::default(),
            keeps_times: false,
            times: Vec::new(),
        }
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
            let times =
                times.filter_map(|(at, it)| Some((it.as_ref()?.next.as_ref()?.at_ns(), at)));
            let Some((_, index)) = times.min() else { break };
            match self.opened[index].as_mut().and_then(|it| it.next.take()) {
                Some(Next::Segment(seen)) => self.take_segment(*seen),
                Some(Next::Change { number, at_ns, group, change }) => {
                    self.take_change((index, number, at_ns), group, change);
                }
                None => {}
            }
            self.refill(index);
            segments += 1;
            if segments.is_multiple_of(50_000) && !advance(segments) {
                break;
            }
        }
        self.finish();
    }

    /// Ends the record of all connections.
    pub(crate) fn finish(&mut self) {
        self.connections.iter_mut().for_each(Connection::finish);
    }

    /// Takes the next segment in the order of time.
    pub(crate) fn take_segment(&mut self, mut seen: Seen) {
        seen.at_ns = self.moved_to(seen.at_ns);
        self.on_segment(&seen);
        if self.connections.len() > 1 && !self.senders.mixed && self.senders.is_used() {
            self.senders.mixed = true;
            self.connections.iter_mut().for_each(Connection::forget_senders);
        }
    }

    /// Returns the time of the first packet in nanoseconds since the epoch.
    pub(crate) fn origin(&self) -> i64 {
        self.origin.unwrap_or(0)
    }

    /// Returns a time that counts from the first segment and does not go back.
    fn moved_to(&mut self, at_ns: i64) -> i64 {
        let origin = *self.origin.get_or_insert(at_ns);
        self.latest = self.latest.max(at_ns.saturating_sub(origin).min(MAX_TIME_NS));
        self.latest
    }

    /// Takes a state of the sender: file, number and time, and the name of its connection.
    pub(crate) fn take_change(
        &mut self,
        (file, number, at_ns): (usize, u64, i64),
        group: Option<String>,
        change: Change,
    ) {
        let at_ns = self.moved_to(at_ns);
        let single = self.senders.is_single(group) && self.connections.len() <= 1;
        if !single {
            self.senders.mixed = true;
            self.connections.iter_mut().for_each(Connection::forget_senders);
        } else if let Some(connection) = self.connections.first_mut() {
            connection.on_held(change.side, change.held, Mark { file, number, at_ns });
        }
    }

    /// Reads the next segment or change of a file.
    fn refill(&mut self, index: usize) {
        let Some(file) = &mut self.opened[index] else { return };
        let counts = &mut self.counts[index];
        loop {
            let next = file.input.next(index, &mut file.reader);
            counts.packets = file.input.packets();
            match next {
                Ok(Some(Entry::Packet(read))) => {
                    let Some(seen) = counts.sort(read) else { continue };
                    if let Some(name) = file.input.interface_name(seen.interface)
                        && !self.names.contains_key(&(index, seen.interface))
                    {
                        self.names.insert((index, seen.interface), name.to_owned());
                    }
                    file.next = Some(Next::Segment(seen));
                    return;
                }
                Ok(Some(Entry::Change { number, at_ns, group, change })) => {
                    file.next = Some(Next::Change { number, at_ns, group, change });
                    return;
                }
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
        if self.keeps_times && self.times.len() < MAX_TIMES {
            self.times.push((connection, seen.at_ns));
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

fn open_file(path: &Path) -> Result<Input, Broken> {
    let broken = |problem: String| Broken { packet: 0, problem };
    let mut file =
        File::open(path).map_err(|error| broken(format!("it cannot be opened: {error}")))?;
    let mut head = Vec::new();
    (&mut file)
        .take(8)
        .read_to_end(&mut head)
        .map_err(|error| broken(format!("it cannot be read: {error}")))?;
    let is_log = is_log(&head);
    let whole = std::io::Cursor::new(head).chain(file);
    Ok(match is_log {
        true => Input::Log(LogSource::open(whole)?),
        false => Input::Capture(Source::open(whole)?),
    })
}
