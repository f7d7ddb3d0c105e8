//! A socket as the stream of an app.

use plait_app::{Stream, StreamState};
use plait_base::Time;
use plait_engine::Interest;
use socket2::Socket;
use std::io::{self, ErrorKind, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;

/// Size of the buffer for data of the pattern.
const PIECE: usize = 1 << 16;
/// Most bytes that one poll of an app reads or writes, so that the other end need not wait long.
const TURN: u64 = 1 << 19;

/// A socket that does not block, as the stream of an app.
///
/// Its peer has the bytes of this end when it closes, so [`Stream::unacked`] is zero.
pub(super) struct SocketStream {
    socket: Socket,
    state: StreamState,
    segment_payload: u64,
    subflows: u32,
    /// The end of the peer's data was read.
    peer_done: bool,
    /// This end writes no more.
    finished: bool,
    /// The last write was short.
    full: bool,
    /// Bytes that the poll may still read or write.
    left: u64,
    pattern: Vec<u8>,
    /// Bytes that leave before those of the app, with its first ones.
    preface: Vec<u8>,
}

impl SocketStream {
    /// Takes a socket whose handshake may not be complete.
    pub(super) fn new(
        socket: Socket,
        segment_payload: u64,
        subflows: usize,
    ) -> io::Result<SocketStream> {
        socket.set_nonblocking(true)?;
        Ok(SocketStream {
            socket,
            state: StreamState::Connecting,
            segment_payload,
            subflows: u32::try_from(subflows).unwrap_or(u32::MAX),
            peer_done: false,
            finished: false,
            full: false,
            left: 0,
            pattern: vec![7; PIECE],
            preface: Vec::new(),
        })
    }

    /// Sends these bytes before those of the app, with its first ones.
    pub(super) fn preceded_by(mut self, preface: &[u8]) -> SocketStream {
        self.preface = preface.to_vec();
        self
    }

    pub(super) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Notes that the socket is writable: its handshake is complete, or has failed.
    pub(super) fn on_writable(&mut self) {
        self.full = false;
        if self.state == StreamState::Connecting {
            match self.socket.take_error() {
                Ok(None) => self.state = StreamState::Open,
                _ => self.state = StreamState::Failed,
            }
        }
    }

    /// Returns the readiness that the next poll of the app needs.
    pub(super) fn interest(&self) -> Option<Interest> {
        let (read, write) = (!self.peer_done, self.full || self.state == StreamState::Connecting);
        (read || write).then_some(Interest { read, write })
    }

    /// Begins a poll of the app. The end of the peer is noticed here, because some apps read only if data is there.
    pub(super) fn begin(&mut self) {
        self.left = TURN;
        let mut byte = [MaybeUninit::uninit()];
        if self.may_read() && matches!(self.socket.peek(&mut byte), Ok(0)) {
            self.took(Ok(0));
        }
    }

    /// Returns true if the poll has read or written as much as it may. Then more may be possible at once.
    pub(super) fn is_cut_short(&self) -> bool {
        self.left == 0
    }

    fn is_usable(&self) -> bool {
        matches!(self.state, StreamState::Open | StreamState::PeerDone)
    }

    fn fail(&mut self) -> u64 {
        self.state = StreamState::Failed;
        0
    }

    /// Writes once. Returns zero if the send buffer is full.
    fn write_some(&mut self, bytes: Option<&[u8]>, len: u64) -> u64 {
        let len = len.min(self.left).min(PIECE as u64) as usize;
        if len == 0 || !self.is_usable() || self.finished {
            return 0;
        }
        let data = bytes.map_or(&self.pattern[..len], |bytes| &bytes[..len]);
        let written = match self.preface.len() {
            0 => (&self.socket).write(data),
            // In one write, because the kernel would hold back a second small segment.
            before => (&self.socket).write(&[&self.preface, data].concat()).map(|count| {
                self.preface.drain(..count.min(before));
                count.saturating_sub(before)
            }),
        };
        match written {
            Ok(count) => {
                self.full = count < len;
                self.left -= count as u64;
                count as u64
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.full = true;
                0
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => 0,
            Err(_) => self.fail(),
        }
    }

    /// Notes the result of a read, and returns its bytes.
    fn took(&mut self, read: io::Result<usize>) -> u64 {
        match read {
            Ok(0) => {
                self.peer_done = true;
                self.state =
                    if self.finished { StreamState::Closed } else { StreamState::PeerDone };
                0
            }
            Ok(count) => {
                self.left -= (count as u64).min(self.left);
                count as u64
            }
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                0
            }
            Err(_) => self.fail(),
        }
    }

    fn may_read(&self) -> bool {
        self.is_usable() && !self.peer_done && self.left > 0
    }
}

impl Stream for SocketStream {
    fn state(&self) -> StreamState {
        self.state
    }

    fn write(&mut self, len: u64) -> u64 {
        let mut written = 0;
        while written < len {
            let count = self.write_some(None, len - written);
            written += count;
            if count == 0 || self.full {
                break;
            }
        }
        written
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> u64 {
        self.write_some(Some(bytes), bytes.len() as u64)
    }

    fn readable(&self) -> u64 {
        let mut byte = [MaybeUninit::uninit()];
        match self.is_usable() && !self.peer_done {
            true => self.socket.peek(&mut byte).map_or(0, |count| count as u64),
            false => 0,
        }
    }

    fn read(&mut self, max: u64) -> u64 {
        let mut buffer = std::mem::take(&mut self.pattern);
        let mut total = 0;
        while total < max && self.may_read() {
            let len = (max - total).min(buffer.len() as u64) as usize;
            let read = (&self.socket).read(&mut buffer[..len]);
            let count = self.took(read);
            total += count;
            if count == 0 {
                break;
            }
        }
        self.pattern = buffer;
        total
    }

    fn read_bytes(&mut self, buffer: &mut [u8]) -> u64 {
        if buffer.is_empty() || !self.may_read() {
            return 0;
        }
        let read = (&self.socket).read(buffer);
        self.took(read)
    }

    fn unacked(&self) -> u64 {
        0
    }

    fn finish(&mut self) {
        if !self.finished {
            self.finished = true;
            // The peer may have closed already.
            let _ = self.socket.shutdown(Shutdown::Write);
            if self.peer_done {
                self.state = StreamState::Closed;
            }
        }
    }

    fn segment_payload(&self) -> u64 {
        self.segment_payload
    }

    fn subflows(&self) -> u32 {
        self.subflows
    }

    fn subflows_ready(&self) -> bool {
        true
    }

    fn warm_up(&mut self, _on: bool) {}

    fn initial_window_at(&self) -> Option<Time> {
        Some(Time::ZERO)
    }

    fn reset_windows(&mut self) {}
}
