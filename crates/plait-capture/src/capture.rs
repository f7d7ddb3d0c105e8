//! One or more captures, merged by time, as connections.

use crate::connection::Connection;
use crate::counts::FileCounts;
use crate::document::FileKind;
use crate::held::{Change, Senders};
use crate::joining::{Number, Numbers};
use crate::lookup::{Ends, Lookup};
use crate::opened::{Next, Opened};
use crate::packet::Seen;
use crate::source::Broken;
use crate::subflow::{Mark, Subflow};
use crate::watch::{Watch, Watched};
use plait_wire::{Flags, Mptcp};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Largest number of subflows that are followed. Packets of further ones are counted.
const MAX_SUBFLOWS: usize = 20_000;
/// Largest time from the first segment to another one, in nanoseconds: three years. Damaged stamps are cut to it.
const MAX_TIME_NS: i64 = 100_000_000_000_000_000;
/// Longest pause of all files before a segment of a known subflow, in nanoseconds: one day. Beyond it, a clock was set.
const MAX_PAUSE_NS: i64 = 86_400_000_000_000;
/// The same before the first segment of a subflow: one year. Captures of several days may be one file.
const MAX_PAUSE_BEFORE_NS: i64 = 365 * MAX_PAUSE_NS;
/// After so many segments, connections that are idle for this time in nanoseconds return their unused memory.
const SHRINK_EVERY: u64 = 1 << 16;
const IDLE_NS: i64 = 2_000_000_000;
/// Largest number of subflows of a connection.
const MAX_PATHS: usize = 64;

/// Largest number of packets whose times are kept for the alignment with a trace of the kernel.
const MAX_TIMES: usize = 4_000_000;

/// The latest subflow of each pair of addresses, the lower one first.
#[derive(Default)]
struct Flows {
    numbers: Lookup,
    /// The connection and the subflow, by the number of the pair.
    latest: Vec<(usize, usize)>,
}

impl Flows {
    fn find(&mut self, ends: &Ends) -> Option<(usize, usize)> {
        self.latest.get(self.numbers.find(ends)?).copied()
    }

    fn set(&mut self, ends: Ends, place: (usize, usize)) {
        match self.numbers.find(&ends).and_then(|number| self.latest.get_mut(number)) {
            Some(latest) => *latest = place,
            None => {
                self.numbers.add(ends);
                self.latest.push(place);
            }
        }
    }
}

/// The connections of all files.
pub(crate) struct Captures {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) counts: Vec<FileCounts>,
    opened: Vec<Opened>,
    pub(crate) connections: Vec<Connection>,
    flows: Flows,
    /// The connection that a token belongs to, and the side whose key gives it.
    tokens: BTreeMap<u32, (usize, usize)>,
    numbers: Numbers,
    subflows: usize,
    /// Time of the first segment, from which all times count. It moves if a clock jumps ahead.
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
    /// The connection and the side whose data is passed on.
    pub(crate) watched: Option<(usize, usize)>,
}

impl Captures {
    /// Opens all files.
    ///
    /// # Errors
    /// If a file cannot be opened or is no capture; with its index.
    pub(crate) fn open(files: &[PathBuf]) -> Result<Captures, (usize, Broken)> {
        let mut captures = Captures::empty(files);
        for (index, path) in files.iter().enumerate() {
            let opened = Opened::open(path, files.len()).map_err(|broken| (index, broken))?;
            captures.counts[index].kind = opened.kind();
            if files.len() > 1 && captures.counts[index].kind == FileKind::Qlog {
                let problem = "a qlog stands alone: its times are not those of another file\n  \
                               allowed: one qlog, or several captures";
                return Err((index, Broken { packet: 0, problem: problem.to_owned() }));
            }
            captures.opened.push(opened);
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
            flows: Flows::default(),
            tokens: BTreeMap::new(),
            numbers: Numbers::default(),
            subflows: 0,
            origin: None,
            latest: 0,
            names: BTreeMap::new(),
            senders: Senders::default(),
            keeps_times: false,
            times: Vec::new(),
            watched: None,
        }
    }

    /// Reads all files to their ends, or to their first damaged packets. Calls `advance` with the number of packets
    /// so far, from time to time; reading stops if it returns false.
    pub(crate) fn read(&mut self, advance: &mut dyn FnMut(u64) -> bool) {
        self.read_watched(advance, None);
    }

    /// Does the same, and passes the watched data on.
    pub(crate) fn read_watched(
        &mut self,
        advance: &mut dyn FnMut(u64) -> bool,
        mut watch: Option<&mut dyn Watch>,
    ) {
        for index in 0..self.opened.len() {
            self.fill(index);
        }
        let mut segments = 0u64;
        loop {
            let firsts = self.opened.iter().enumerate();
            let firsts = firsts.filter_map(|(at, it)| Some((it.first()?, at)));
            let Some((_, index)) = firsts.min() else { break };
            match self.opened[index].take(&mut self.counts[index]) {
                Some(Next::Segment(seen)) => self.take_segment(*seen),
                Some(Next::Change { number, at_ns, group, change }) => {
                    self.take_change((index, number, at_ns), group, change);
                }
                None => {}
            }
            self.fill(index);
            self.pass_on(&mut watch, false);
            segments += 1;
            if segments.is_multiple_of(SHRINK_EVERY) {
                let now = self.latest;
                self.connections.iter_mut().for_each(|it| it.shrink(now - IDLE_NS, now));
            }
            if segments.is_multiple_of(50_000) && !advance(segments) {
                break;
            }
        }
        self.finish();
        self.pass_on(&mut watch, true);
    }

    fn pass_on(&mut self, watch: &mut Option<&mut dyn Watch>, is_end: bool) {
        let (Some(watch), Some((connection, _))) = (watch, self.watched) else { return };
        let connection = self.connections.get_mut(connection);
        if let Some(watched) = connection.and_then(|it| it.watched.as_mut()) {
            watched.moments(is_end).for_each(|moment| watch.happens(&moment));
        }
    }

    fn fill(&mut self, index: usize) {
        self.opened[index].fill(index, &mut self.counts[index], &mut self.names);
    }

    /// Ends the record of all connections.
    pub(crate) fn finish(&mut self) {
        self.connections.iter_mut().for_each(Connection::finish);
    }

    /// Takes the next segment in the order of time.
    pub(crate) fn take_segment(&mut self, mut seen: Seen) {
        self.pass_jump(&seen);
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

    /// Moves the origin if the time of a capture jumps ahead, so that it goes on from the segment before.
    fn pass_jump(&mut self, seen: &Seen) {
        let (Some(origin), counts) = (self.origin, &mut self.counts[seen.file]) else { return };
        let before = origin.saturating_add(self.latest);
        let ahead = seen.at_ns.saturating_sub(before);
        // A log has the times of a program, and a program sets no clock.
        if ahead <= MAX_PAUSE_NS || counts.kind != FileKind::Capture {
            return;
        }
        if ahead > MAX_PAUSE_BEFORE_NS || self.flows.find(&pair(seen)).is_some() {
            // A packet without a stamp has time zero.
            counts.jumps.add(seen.number, (before != 0).then_some(ahead));
            self.origin = Some(seen.at_ns.saturating_sub(self.latest));
        }
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

    fn on_segment(&mut self, seen: &Seen) {
        let key = pair(seen);
        let flags = seen.segment.flags;
        let opens = flags.has(Flags::SYN) && !flags.has(Flags::ACK);
        let known = self.flows.find(&key).filter(|(connection, index)| {
            let flow = &self.connections[*connection].subflows[*index];
            !(opens && self.may_count(flow, seen) && flow.is_replaced_by(seen))
        });
        let place = match known {
            Some(place) => place,
            None => match self.begin(seen, opens) {
                Some(place) => {
                    self.flows.set(key, place);
                    place
                }
                None => {
                    self.counts[seen.file].not_followed += 1;
                    return;
                }
            },
        };
        let (connection, index) = place;
        if self.file_of(place, seen) != seen.file {
            self.counts[seen.file].copies += 1;
            return;
        }
        if self.keeps_times && self.times.len() < MAX_TIMES {
            self.times.push((connection, seen.at_ns));
        }
        for (side, key) in self.connections[connection].on_segment(index, seen) {
            self.tokens.insert(key.token(), (connection, side));
            self.numbers.add_wide(key.idsn().plus(1).0, (connection, side));
        }
    }

    /// Returns true if the packets of this direction come from the file of `seen`, or if their file has ended.
    fn may_count(&self, flow: &Subflow, seen: &Seen) -> bool {
        let ended = |file: usize| self.opened.get(file).is_some_and(Opened::is_exhausted);
        flow.files[flow.side(seen)].is_some_and(|file| file == seen.file || ended(file))
    }

    /// Returns the file whose packets count for this direction of a subflow: that of the other direction if it has
    /// both, and otherwise the first one with the direction.
    ///
    /// After the end of that file, the next one counts, unless it repeats earlier segments: the clock of a second
    /// capture of the same packets may be behind.
    fn file_of(&mut self, (connection, index): (usize, usize), seen: &Seen) -> usize {
        let flow = &mut self.connections[connection].subflows[index];
        let side = flow.side(seen);
        let other = flow.files[1 - side];
        let file = *flow.files[side].get_or_insert_with(|| {
            let first = other.filter(|first| {
                let file = self.opened.get(*first);
                file.is_some_and(|it| it.clock.direction(seen.src, seen.dst).is_some())
            });
            first.unwrap_or(seen.file)
        });
        let lacks = |it: &Opened| it.is_exhausted() && !it.has_copy_of(seen);
        if file != seen.file && self.opened.get(file).is_some_and(lacks) && flow.is_current(seen) {
            flow.files[side] = Some(seen.file);
            return seen.file;
        }
        file
    }

    /// Returns the data sequence numbers that the files have of a subflow, sent by `src` and by `dst`.
    fn numbers_of(&self, src: SocketAddr, dst: SocketAddr) -> [Option<Number>; 2] {
        let of = |src, dst| {
            let mut shown = self.opened.iter().filter_map(|it| it.clock.direction(src, dst));
            shown.next().unwrap_or_default()
        };
        let (there, back) = (of(src, dst), of(dst, src));
        [Number::better(there.dsn, back.ack), Number::better(back.dsn, there.ack)]
    }

    /// Returns the connection of a subflow without a handshake, and the side of `src` there.
    fn joined_by_numbers(&self, src: SocketAddr, dst: SocketAddr) -> Option<(usize, usize)> {
        self.numbers.find(self.numbers_of(src, dst), |(connection, own)| {
            let same = |flow: &Subflow| {
                flow.ends[own].ip() == src.ip() || flow.ends[1 - own].ip() == dst.ip()
            };
            self.connections.get(connection).is_some_and(|it| it.subflows.iter().any(same))
        })
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
        let by_token = token.and_then(|token| self.tokens.get(&token).copied());
        let first = options.iter().any(|option| matches!(option, Mptcp::Capable(_)));
        let by_numbers = || self.joined_by_numbers(opener, other).filter(|_| !first);
        // The token is that of the side which receives the SYN.
        let joined = by_token.map(|(at, receiver)| (at, 1 - receiver)).or_else(by_numbers);
        let (connection, opened_by) = joined.unwrap_or_else(|| {
            let number = self.connections.len();
            let watched = self.watched.filter(|(watched, _)| *watched == number);
            let mut connection = Connection::new();
            connection.watched = watched.map(|(_, side)| Box::new(Watched::new(side)));
            self.connections.push(connection);
            (number, 0)
        });
        if let Some(token) = token.filter(|_| by_token.is_none()) {
            self.connections[connection].unknown_token.get_or_insert(token);
            self.tokens.insert(token, (connection, 1 - opened_by));
        }
        if joined.is_none() {
            self.numbers.add(connection, self.numbers_of(opener, other));
        }
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

/// Returns the addresses of a segment, the lower one first.
fn pair(seen: &Seen) -> Ends {
    (seen.src.min(seen.dst), seen.src.max(seen.dst))
}
