//! The service of a simulated server: streams in memory, with a program behind each stream.
//!
//! A client sends a request of 24 bytes: a salt, the number of bytes that it sends, and the number
//! that it gets. It then sends bytes of the pattern of that salt, which the program verifies. The
//! program answers with another pattern. Only the number of these bytes is stored.

use super::world::Host;
use crate::swarm::fault::log_within;
use plait_base::{RandomStream, Span, Time};
use plait_engine::{Buffers, Stream};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::rc::Rc;
use std::time::Duration;

/// Bytes that the kernel buffers for a stream with default buffers: 3.9 MB at the sender and 1.5 MB
/// at the receiver. Measured on `lo` on Linux 6.18.
const USUAL_BYTES: u64 = 5_400_000;
/// Bytes of small segments that the sender's kernel buffers in addition to a small receive buffer.
const SMALL_SENDER_BYTES: u64 = 64 << 10;
/// Capacity of the buffer from which a program reads.
const INBOX_BYTES: usize = 256 << 10;
/// Under memory pressure a window holds about one segment per time of a delayed ACK.
const PRESSED_BYTES: u64 = 1_400;
const PRESSED_EVERY: Span = Span::from_millis(40);
/// Bytes of one piece of a slow program, and the pause after it.
const SLOW_BYTES: u64 = 4_000;
const SLOW_EVERY: Span = Span::from_millis(5);
/// Interval of the keep-alive probes to a program.
const ASKED_EVERY: Span = Span::from_secs(10);
/// Longest delay of a late accept.
const LATE_MS: u64 = 2_000;
pub(super) const LATE: Span = Span::from_millis(LATE_MS);
/// Length of a request in bytes.
pub(super) const REQUEST: usize = 24;

/// Returns eight bytes of the pattern of `salt`.
const fn word(salt: u64, at: u64) -> u64 {
    let word = at.wrapping_add(salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word ^ word >> 29
}

/// Returns a byte of the pattern of `salt`.
const fn pattern(salt: u64, at: u64) -> u8 {
    (word(salt, at >> 3) >> (8 * (at & 7))) as u8
}

/// Fills `bytes` with the pattern of `salt` from position `at` on.
pub(super) fn fill(salt: u64, at: u64, bytes: &mut [u8]) {
    let ahead = bytes.len().min((8 - (at & 7) as usize) & 7);
    let (first, rest) = bytes.split_at_mut(ahead);
    for (offset, byte) in (at..).zip(first) {
        *byte = pattern(salt, offset);
    }
    for (offset, eight) in (at + ahead as u64..).step_by(8).zip(rest.chunks_mut(8)) {
        let word = word(salt, offset >> 3).to_le_bytes();
        eight.copy_from_slice(&word[..eight.len()]);
    }
}

/// Returns true if `bytes` are the pattern of `salt` from position `at` on.
pub(super) fn is_pattern(salt: u64, at: u64, bytes: &[u8]) -> bool {
    (at..).zip(bytes).all(|(offset, byte)| *byte == pattern(salt, offset))
}

/// Returns the salt of the program's answer.
pub(super) const fn answer_salt(salt: u64) -> u64 {
    !salt
}

/// Encodes a request.
pub(super) fn request(salt: u64, sends: u64, gets: u64) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    for (field, value) in bytes.chunks_exact_mut(8).zip([salt, sends, gets]) {
        field.copy_from_slice(&value.to_be_bytes());
    }
    bytes
}

/// The behaviour of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Manner {
    /// Answers the request.
    Fair,
    /// Closes after this many bytes.
    Closes(u64),
    /// Resets after this many bytes.
    Resets(u64),
    /// Never reads.
    Deaf,
    /// Reads and writes in small pieces with pauses.
    Slow,
}

/// The content of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Request {
    pub(super) salt: u64,
    pub(super) sends: u64,
    pub(super) gets: u64,
}

/// The drawn behaviour of a program.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) manner: Manner,
    /// Time at which the stream is connected.
    pub(super) connects: Time,
    pub(super) refused: bool,
    /// A PROXY protocol header precedes the request.
    pub(super) introduced: bool,
}

/// The end of a program.
#[derive(Debug)]
pub(super) struct Ending {
    /// The program has closed its sending side, or has closed the stream.
    ended: bool,
    gone: bool,
    /// Time at which the program closed the stream.
    pub(super) gone_at: Time,
    /// Failure of the stream that the server has not yet seen.
    failure: Option<io::ErrorKind>,
    /// Time at which the server's kernel next probes the program.
    asks_at: Time,
}

/// A stream between the server and a program.
#[derive(Debug)]
pub(super) struct Pipe {
    plan: Plan,
    pub(super) ending: Ending,
    connected: bool,
    /// Bytes written by the server that the program has not read.
    inbox: VecDeque<u8>,
    server_ended: bool,
    /// The server has closed its end.
    pub(super) dropped: bool,
    /// Received bytes of header and request.
    head: Vec<u8>,
    pub(super) asked: Option<Request>,
    /// Received bytes of the client's pattern.
    pub(super) received: u64,
    /// Bytes written by the program, and bytes read by the server.
    pub(super) written: u64,
    pub(super) taken: u64,
    /// Limit of written bytes that the server has not read.
    capacity: u64,
    /// The program pauses until this time.
    pauses: Time,
    /// Time of the next turn of the program.
    pub(super) wakes: Time,
    /// Error text if the program read bytes that no client has sent.
    wrong: Option<String>,
}

impl Pipe {
    /// Returns a connection to a program with this plan.
    pub(super) fn new(plan: Plan, buffers: Option<Buffers>) -> Pipe {
        let small = |it: Buffers| 2 * it.receive_bytes as u64 + SMALL_SENDER_BYTES;
        let (gone_at, asks_at) = (Time::NEVER, Time::NEVER);
        Pipe {
            ending: Ending { ended: false, gone: false, gone_at, failure: None, asks_at },
            connected: false,
            inbox: VecDeque::new(),
            server_ended: false,
            dropped: false,
            head: Vec::new(),
            asked: None,
            received: 0,
            written: 0,
            taken: 0,
            capacity: buffers.map_or(USUAL_BYTES, small),
            pauses: Time::ZERO,
            wakes: plan.connects,
            wrong: None,
            plan,
        }
    }

    /// Returns true if a poller would report the stream as ready.
    pub(super) fn is_ready(&self, read: bool, write: bool) -> bool {
        if !self.connected {
            return self.ending.failure.is_some();
        }
        let over = self.ending.failure.is_some() || (self.ending.ended && self.server_ended);
        let readable =
            self.taken < self.written || self.ending.ended || self.ending.failure.is_some();
        let writable = self.inbox.len() < INBOX_BYTES || self.ending.gone;
        over || (read && readable) || (write && writable)
    }

    /// Returns true if the program has received and sent all bytes of the request.
    pub(super) fn is_answered(&self) -> bool {
        let answered = |asked: Request| self.received == asked.sends && self.taken == asked.gets;
        self.asked.is_some_and(answered)
    }

    /// Returns true if the request was answered, and both sides have closed.
    pub(super) fn is_complete(&self) -> bool {
        self.ending.ended && self.server_ended && self.is_answered()
    }

    /// Returns true if the program refused, did not read, or has left.
    pub(super) fn is_spoilt(&self) -> bool {
        self.plan.refused || self.ending.gone || self.plan.manner == Manner::Deaf
    }

    /// Returns true if the server has closed the stream, and the program has nothing left to read.
    fn is_over(&self) -> bool {
        self.dropped && self.inbox.is_empty()
    }

    /// Advances the program to the current time.
    fn turn(&mut self, host: &Host) {
        let now = host.now.get();
        if now < self.plan.connects {
            self.wakes = self.plan.connects;
            return;
        }
        if self.plan.refused {
            self.wakes = Time::NEVER;
            let known = std::mem::replace(&mut self.ending.gone, true);
            self.ending.failure =
                (!known).then_some(io::ErrorKind::ConnectionRefused).or(self.ending.failure);
            return;
        }
        self.connected = true;
        if now >= self.ending.asks_at {
            // A live program answers the probe, so the next probe is set.
            self.ending.asks_at = if self.ending.gone { Time::NEVER } else { now + ASKED_EVERY };
            if self.ending.gone {
                self.ending.failure = Some(io::ErrorKind::TimedOut);
            }
        }
        if self.ending.gone || self.is_over() {
            self.wakes = self.ending.asks_at;
            return;
        }
        if now < self.pauses {
            self.wakes = self.pauses;
            return;
        }
        // From here the program may end. A probe then detects that.
        self.wakes = self.ending.asks_at;
        if self.plan.manner != Manner::Deaf {
            self.consume();
        }
        let done = self.received + self.written;
        match self.plan.manner {
            Manner::Closes(after) if done >= after => return self.close(host),
            Manner::Resets(after) if done >= after => {
                self.ending.failure = Some(io::ErrorKind::ConnectionReset);
                self.discard(host);
                (self.ending.gone, self.ending.gone_at) = (true, now);
                return;
            }
            _ => {}
        }
        self.give(host, now);
    }

    /// Reads the available bytes.
    fn consume(&mut self) {
        let most = if self.plan.manner == Manner::Slow { SLOW_BYTES as usize } else { usize::MAX };
        let mut bytes: Vec<u8> = Vec::new();
        let count = self.inbox.len().min(most);
        bytes.extend(self.inbox.drain(..count));
        let mut bytes = &bytes[..];
        while self.asked.is_none() && !bytes.is_empty() {
            let wanted = self.head_len();
            let part = bytes.len().min(wanted - self.head.len());
            self.head.extend_from_slice(&bytes[..part]);
            bytes = &bytes[part..];
            if self.head.len() == wanted && wanted == self.head_len() {
                self.asked = Some(self.read_request());
            }
        }
        let Some(Request { salt, sends, .. }) = self.asked else { return };
        if !is_pattern(salt, self.received, bytes) {
            self.wrong = Some(format!("the service got other bytes at {}", self.received));
        }
        self.received += bytes.len() as u64;
        if self.received > sends {
            self.wrong = Some(format!("the service got {} of {sends} bytes", self.received));
        }
    }

    /// Returns the length of header and request; 16 until the length of a header is known.
    fn head_len(&self) -> usize {
        let header = match (self.plan.introduced, self.head.len()) {
            (false, _) => 0,
            (true, 0..16) => return 16,
            (true, _) => 16 + usize::from(u16::from_be_bytes([self.head[14], self.head[15]])),
        };
        header + REQUEST
    }

    fn read_request(&mut self) -> Request {
        let at = self.head.len() - REQUEST;
        if self.plan.introduced && !self.head.starts_with(b"\r\n\r\n\0\r\nQUIT\n") {
            self.wrong = Some("the service got no header".to_owned());
        }
        let mut fields = self.head[at..]
            .chunks_exact(8)
            .map(|it| it.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)));
        let mut next = || fields.next().unwrap_or(0);
        Request { salt: next(), sends: next(), gets: next() }
    }

    /// Writes as much as fits, and closes the sending side after the last byte.
    fn give(&mut self, host: &Host, now: Time) {
        let slow = self.plan.manner == Manner::Slow;
        if let Some(Request { gets, sends, .. }) = self.asked
            && !self.dropped
        {
            let pressed = host.unread.get() >= host.limit.get();
            let capacity = if pressed { PRESSED_BYTES } else { self.capacity };
            let room = capacity.saturating_sub(self.written - self.taken);
            let piece = if slow { SLOW_BYTES } else { u64::MAX };
            let count = gets.saturating_sub(self.written).min(room).min(piece);
            self.written += count;
            host.unread.set(host.unread.get() + count);
            if self.written < gets && (pressed || slow) {
                self.pauses = now + if pressed { PRESSED_EVERY } else { SLOW_EVERY };
            }
            self.ending.ended |=
                self.written >= gets && (self.received >= sends || self.server_ended);
        }
        // If a client closes before its request is complete, it gets nothing.
        self.ending.ended |= self.server_ended && self.inbox.is_empty() && self.asked.is_none();
        if slow && !self.inbox.is_empty() {
            self.pauses = now + SLOW_EVERY;
        }
        if self.pauses > now {
            self.wakes = self.pauses;
        }
    }

    /// Closes the stream. Written data can still be read, unless the program left data unread.
    fn close(&mut self, host: &Host) {
        (self.ending.ended, self.ending.gone, self.ending.gone_at) = (true, true, host.now.get());
        if !self.inbox.is_empty() {
            self.discard(host);
            self.ending.failure = Some(io::ErrorKind::ConnectionReset);
        }
    }

    /// Drops all unread data, in both directions.
    fn discard(&mut self, host: &Host) {
        host.unread.set(host.unread.get() - (self.written - self.taken));
        self.written = self.taken;
        self.inbox.clear();
    }
}

/// Runs the programs that are due, and adds the times of their next turns to `wakes`.
pub(super) fn serve(host: &Host, pipes: &[Rc<RefCell<Pipe>>], wakes: &mut Vec<(Time, usize)>) {
    let due = std::mem::take(&mut *host.due.borrow_mut());
    for place in due {
        let mut pipe = pipes[place].borrow_mut();
        pipe.turn(host);
        if let Some(wrong) = pipe.wrong.take() {
            host.wrong.set(Some(wrong));
        }
        host.stirred.borrow_mut().insert(place);
        if pipe.wakes < Time::NEVER && !pipe.is_over() {
            wakes.push((pipe.wakes.max(host.now.get()), place));
        }
    }
}

/// The server's end of a stream.
pub(super) struct Program {
    pub(super) pipe: Rc<RefCell<Pipe>>,
    pub(super) host: Rc<Host>,
    pub(super) place: usize,
}

impl Program {
    /// Marks the program as due, and the stream as possibly ready.
    fn touch(&self) {
        self.host.due.borrow_mut().insert(self.place);
        self.host.stirred.borrow_mut().insert(self.place);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let mut pipe = self.pipe.borrow_mut();
        pipe.dropped = true;
        let unread = pipe.written - pipe.taken;
        self.host.unread.set(self.host.unread.get() - unread);
        pipe.written = pipe.taken;
        // If a stream is closed with unread data, the kernel resets it. Otherwise the program still
        // gets the data written to it.
        if unread > 0 || !pipe.server_ended {
            pipe.inbox = VecDeque::new();
        }
    }
}

impl Read for Program {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut pipe = self.pipe.borrow_mut();
        if let Some(failure) = pipe.ending.failure.take() {
            return Err(failure.into());
        }
        let count = (pipe.written - pipe.taken).min(buffer.len() as u64);
        if count == 0 {
            return if pipe.ending.ended { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let salt = pipe.asked.map_or(0, |asked| answer_salt(asked.salt));
        fill(salt, pipe.taken, &mut buffer[..count as usize]);
        pipe.taken += count;
        self.host.unread.set(self.host.unread.get() - count);
        self.host.moved.set(self.host.moved.get() + count);
        drop(pipe);
        self.touch();
        Ok(count as usize)
    }
}

impl Write for Program {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut pipe = self.pipe.borrow_mut();
        if let Some(failure) = pipe.ending.failure.take() {
            return Err(failure.into());
        }
        if pipe.ending.gone {
            // The kernel of a closed program answers the first write with a RST.
            pipe.ending.failure = Some(io::ErrorKind::ConnectionReset);
            drop(pipe);
            self.touch();
            return Ok(bytes.len());
        }
        let count = bytes.len().min(INBOX_BYTES - pipe.inbox.len());
        if count == 0 {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        pipe.inbox.extend(&bytes[..count]);
        self.host.moved.set(self.host.moved.get() + count as u64);
        drop(pipe);
        self.touch();
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Program {
    fn end(&mut self) -> io::Result<()> {
        let mut pipe = self.pipe.borrow_mut();
        if pipe.ending.failure.is_some() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        pipe.server_ended = true;
        drop(pipe);
        self.touch();
        Ok(())
    }

    fn failure(&mut self) -> io::Result<Option<io::Error>> {
        Ok(self.pipe.borrow_mut().ending.failure.take().map(io::Error::from))
    }

    fn ask_after(&self, time: Duration) {
        let mut pipe = self.pipe.borrow_mut();
        let time = Span::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        pipe.ending.asks_at = self.host.now.get() + time;
        drop(pipe);
        self.host.due.borrow_mut().insert(self.place);
    }
}

/// Draws the behaviour of a program: its manner, whether it refuses, and when it is connected.
pub(super) fn manner(stream: &mut RandomStream, case: &super::ServiceCase) -> (Manner, bool, Span) {
    let after = |stream: &mut RandomStream| log_within(stream, 1, 200_000);
    let mut point = stream.below(1_000);
    let mut is = |share: u32| {
        let hit = point < u64::from(share);
        point = point.wrapping_sub(if hit { 0 } else { u64::from(share) });
        hit
    };
    let kind = [case.refuse, case.late, case.close, case.reset, case.deaf, case.slow]
        .iter()
        .position(|share| is(*share));
    match kind {
        Some(0) => (Manner::Fair, true, Span::from_micros(100)),
        Some(1) => (Manner::Fair, false, Span::from_millis(stream.below(LATE_MS))),
        Some(2) => (Manner::Closes(after(stream)), false, Span::ZERO),
        Some(3) => (Manner::Resets(after(stream)), false, Span::ZERO),
        Some(4) => (Manner::Deaf, false, Span::ZERO),
        Some(5) => (Manner::Slow, false, Span::ZERO),
        _ => (Manner::Fair, false, Span::from_micros(50)),
    }
}
