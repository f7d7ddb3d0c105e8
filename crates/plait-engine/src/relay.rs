//! A relay between a connection of the endpoint and a stream socket. It reads neither side faster
//! than the other one accepts data. It uses no kernel interface: the socket is a [`Stream`], and
//! the time is an argument.

use crate::stream::Stream;
use crate::world::Interest;
use plait_base::{ConnId, Time};
use plait_core::{ConnectionState, Endpoint};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Bytes moved at a time. A superpacket never spans two pieces.
pub const PIECE: usize = 256 * 1024;
/// Pieces that one direction moves before other relays get a turn.
const TURNS: usize = 4;
/// How long a kernel waits for the peer's FIN if its own program has exited (Linux:
/// `net.ipv4.tcp_fin_timeout`).
pub(crate) const ORPHANED: Duration = Duration::from_secs(60);

/// Bytes moved so far.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Moved {
    /// From the connection to the socket.
    pub(crate) to_socket: u64,
    /// From the socket to the connection.
    pub(crate) to_peer: u64,
}

/// Bytes read from one side that the other side has not accepted yet.
#[derive(Default, Debug)]
struct Rest {
    bytes: Vec<u8>,
    taken: usize,
}

impl Rest {
    fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    fn pending(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.taken = 0;
    }

    /// Frees the memory once it is empty, because most connections are idle.
    fn take(&mut self, count: usize) {
        self.taken += count;
        if self.is_empty() {
            *self = Rest::default();
        }
    }
}

/// Replies to the program behind the socket: one if the connection is established, others if it
/// fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// The connection is established.
    pub connected: Vec<u8>,
    /// The other end refuses.
    pub refused: Vec<u8>,
    /// The other end does not answer, or there is no route to it.
    pub silent: Vec<u8>,
    /// The limit of connections is reached.
    pub full: Vec<u8>,
}

/// The state of a relay after a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Course {
    /// It waits for one of its sides.
    Waits,
    /// There is more data to move at once.
    Again,
    /// Both directions have ended and the peer has acknowledged everything, or one side has failed.
    Over,
}

#[derive(Debug)]
pub(crate) struct Relay<S> {
    pub(crate) conn: ConnId,
    pub(crate) socket: S,
    side: SocketSide,
    to_socket: Rest,
    to_peer: Rest,
    pub(crate) moved: Moved,
    /// Bytes read from the socket.
    pub(crate) taken: u64,
    /// Bytes of the introduction that the socket has not accepted yet. They do not count as data of
    /// the peer.
    introduction: u64,
    /// Reply for the socket when the connection is established or has failed. Until then the socket
    /// is not read.
    greeting: Option<Box<Greeting>>,
    /// The connection was established.
    pub(crate) established: bool,
    /// When the relay started.
    pub(crate) since: Time,
    pub(crate) peer: Peer,
    /// How long a program may keep its end half closed before a keep-alive checks that it still runs.
    orphaned: Duration,
    /// The events that the poller watches for it, from the last [`Relay::interest`].
    pub(crate) watched: Option<Interest>,
}

/// State of a relay's socket.
#[derive(Default, Debug)]
struct SocketSide {
    /// It is not connected yet.
    connecting: bool,
    /// It has ended its data (`ended`), and we have ended ours (`told_end`).
    ended: bool,
    told_end: bool,
    /// Both of its directions are closed. A poller would report this repeatedly.
    hung_up: bool,
    /// The program ended its side and then exited.
    gone: bool,
}

/// The peer of a relayed connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Peer {
    /// A client, and the address that it connected from.
    Client(Option<IpAddr>),
    /// A server that we dialled.
    Server(SocketAddr),
}

impl<S: Stream> Relay<S> {
    /// Returns a relay of a non-blocking socket, which may be `connecting`.
    pub(crate) fn new(conn: ConnId, socket: S, connecting: bool) -> Relay<S> {
        Relay {
            conn,
            socket,
            side: SocketSide { connecting, ..SocketSide::default() },
            to_socket: Rest::default(),
            to_peer: Rest::default(),
            moved: Moved::default(),
            taken: 0,
            introduction: 0,
            greeting: None,
            established: false,
            since: Time::ZERO,
            peer: Peer::Client(None),
            orphaned: ORPHANED,
            watched: None,
        }
    }

    /// Returns the relay of a connection opened by a client.
    pub(crate) fn opened(self, since: Time, from: Option<IpAddr>) -> Relay<S> {
        Relay { since, peer: Peer::Client(from), established: true, ..self }
    }

    /// Returns the relay of a connection dialled by this end.
    pub(crate) fn dialled(self, since: Time, to: SocketAddr) -> Relay<S> {
        Relay { since, peer: Peer::Server(to), ..self }
    }

    /// Sets the time after which a half-closed program is checked.
    pub(crate) fn asking_after(self, orphaned: Duration) -> Relay<S> {
        Relay { orphaned, ..self }
    }

    /// Returns the memory in bytes of data read from one side and not accepted by the other.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.to_socket.bytes.capacity() + self.to_peer.bytes.capacity()) as u64
    }

    /// Returns true if the socket is not connected yet.
    pub(crate) fn is_connecting(&self) -> bool {
        self.side.connecting
    }

    /// Returns the client's address.
    pub(crate) fn from(&self) -> Option<IpAddr> {
        match self.peer {
            Peer::Client(from) => from,
            Peer::Server(_) => None,
        }
    }

    /// Returns the dialled address while the connection is not established.
    pub(crate) fn sought(&self) -> Option<SocketAddr> {
        match self.peer {
            Peer::Server(to) if !self.established => Some(to),
            _ => None,
        }
    }

    /// Writes `bytes` to the socket before all data.
    pub(crate) fn begin_with(&mut self, bytes: &[u8]) {
        self.to_socket.keep(bytes);
        self.introduction = bytes.len() as u64;
    }

    /// Sends `request` to the peer before all data of the socket. It counts as data.
    pub(crate) fn request(&mut self, request: &[u8]) {
        self.to_peer.keep(request);
        self.taken += request.len() as u64;
    }

    /// Writes the greeting to the socket before all data, when the connection is established.
    pub(crate) fn greet(&mut self, greeting: Greeting) {
        self.greeting = Some(Box::new(greeting));
    }

    /// Prepares the greeting when the connection is established. Returns true if it is still
    /// connecting.
    fn greeted(&mut self, state: ConnectionState) -> bool {
        match (state, self.greeting.take()) {
            (_, None) => false,
            (ConnectionState::Connecting, greeting) => {
                self.greeting = greeting;
                true
            }
            (_, Some(greeting)) => {
                self.begin_with(&greeting.connected);
                false
            }
        }
    }

    /// Writes to the socket that the connection failed, if the program waits for it.
    pub(crate) fn refuse(&mut self, refused: bool) {
        if let Some(greeting) = self.greeting.take() {
            let words = if refused { &greeting.refused } else { &greeting.silent };
            // The text is short and nothing else was written. It fits, or the program does not
            // read.
            let _ = self.socket.write(words);
            let _ = self.socket.end();
        }
    }

    /// Returns the events of the socket to watch, or `None` if no event matters.
    pub(crate) fn interest(&self) -> Option<Interest> {
        let (read, write) = if self.side.connecting {
            (false, true)
        } else if self.greeting.is_some() {
            (false, false)
        } else {
            (!self.side.ended && self.to_peer.is_empty(), !self.to_socket.is_empty())
        };
        (!self.side.hung_up || read || write).then_some(Interest { read, write })
    }

    /// Processes an event of the socket: it is ready or has failed.
    pub(crate) fn on_socket_ready(&mut self) -> io::Result<()> {
        if let Some(error) = self.socket.failure()? {
            if !self.side.ended {
                return Err(error);
            }
            self.side.gone = true;
        }
        // Neither readiness was watched, so the event was a hang-up.
        self.side.hung_up = self.watched == Some(Interest { read: false, write: false });
        self.side.connecting = false;
        Ok(())
    }

    /// Moves as much data as possible.
    pub(crate) fn turn(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        piece: &mut [u8],
    ) -> io::Result<Course> {
        if self.side.connecting {
            let failed = self.state(endpoint) == ConnectionState::Failed;
            return Ok(if failed { Course::Over } else { Course::Waits });
        }
        let state = self.state(endpoint);
        if self.greeting.is_some() && state == ConnectionState::Failed {
            return Ok(Course::Over);
        }
        if self.greeted(state) {
            return Ok(Course::Waits);
        }
        let more =
            self.feed_socket(now, endpoint, piece)? | self.feed_peer(now, endpoint, piece)?;
        let state = self.state(endpoint);
        let without = [ConnectionState::Connecting, ConnectionState::Failed];
        self.established |= !without.contains(&state);
        let read_out = self.side.ended && self.to_peer.is_empty();
        // Both directions have ended, and the peer has acknowledged every byte of ours.
        let ended = self.side.told_end && read_out;
        let complete = ended && endpoint.unacked(self.conn) == Ok(0);
        // The program is gone and its peer still sends. The endpoint ends the connection.
        let deserted =
            self.side.gone && !self.side.told_end && read_out && self.to_socket.is_empty();
        Ok(match state {
            ConnectionState::Failed => Course::Over,
            _ if complete || deserted => Course::Over,
            _ if more => Course::Again,
            _ => Course::Waits,
        })
    }

    /// Moves data from the connection to the socket. Returns true if there may be more.
    fn feed_socket(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        piece: &mut [u8],
    ) -> io::Result<bool> {
        for _ in 0..TURNS {
            if !self.to_socket.is_empty() {
                let Some(count) = soon(self.socket.write(self.to_socket.pending()))? else {
                    return Ok(false);
                };
                self.to_socket.take(count);
                let own = self.introduction.min(count as u64);
                self.introduction -= own;
                self.moved.to_socket += count as u64 - own;
                continue;
            }
            let count = endpoint.read(now, self.conn, piece).unwrap_or(0);
            if count == 0 {
                return self.end_socket(endpoint).map(|()| false);
            }
            let written = soon(self.socket.write(&piece[..count]))?.unwrap_or(0);
            self.moved.to_socket += written as u64;
            if written < count {
                self.to_socket.keep(&piece[written..count]);
            }
        }
        Ok(true)
    }

    /// Returns the state of the connection. A connection unknown to the endpoint has failed.
    fn state(&self, endpoint: &Endpoint) -> ConnectionState {
        endpoint.state(self.conn).unwrap_or(ConnectionState::Failed)
    }

    /// Ends the writing side of the socket if the peer's data has ended.
    fn end_socket(&mut self, endpoint: &Endpoint) -> io::Result<()> {
        let ended = [ConnectionState::PeerDone, ConnectionState::Closed];
        if !self.side.told_end && ended.contains(&self.state(endpoint)) {
            self.side.told_end = true;
            match self.socket.end() {
                // The program is gone. Its data is still read.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                other => return other,
            }
        }
        Ok(())
    }

    /// Starts keep-alives after the program has ended its side. The program may still read (a half
    /// close), or it may have exited. If it exited, the kernel keeps its socket for the time of an
    /// orphan and then answers a keep-alive with a RST. Without keep-alives, the relay would stay
    /// forever if the peer never ends.
    fn ask_after(&self) {
        if !self.side.told_end {
            self.socket.ask_after(self.orphaned);
        }
    }

    /// Moves data from the socket to the connection. Returns true if there may be more.
    fn feed_peer(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        piece: &mut [u8],
    ) -> io::Result<bool> {
        for _ in 0..TURNS {
            if !self.to_peer.is_empty() {
                // If the connection accepts no more data, its state shows it.
                let pending = self.to_peer.pending();
                let count = endpoint.write_bytes(now, self.conn, pending).unwrap_or(0);
                self.to_peer.take(count);
                self.moved.to_peer += count as u64;
                if !self.to_peer.is_empty() {
                    return Ok(false);
                }
                continue;
            }
            if self.side.ended {
                return Ok(false);
            }
            let Some(count) = soon(self.socket.read(piece))? else { return Ok(false) };
            self.taken += count as u64;
            if count == 0 {
                self.side.ended = true;
                self.ask_after();
                endpoint.finish(now, self.conn).ok();
                return Ok(false);
            }
            let written = endpoint.write_bytes(now, self.conn, &piece[..count]).unwrap_or(0);
            self.moved.to_peer += written as u64;
            if written < count {
                self.to_peer.keep(&piece[written..count]);
            }
        }
        Ok(true)
    }
}

/// Returns the number of bytes moved; `None` if the socket is not ready.
fn soon(moved: io::Result<usize>) -> io::Result<Option<usize>> {
    match moved {
        Ok(count) => Ok(Some(count)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::tests::Counted;
    use plait_core::{Config, ConnectionSpec};
    use plait_wire::{Flags, Segment};
    use std::io::{Read, Write};
    use std::sync::Arc;

    /// A service in memory.
    #[derive(Default)]
    struct Scripted {
        /// Data that it sends.
        gives: Vec<u8>,
        ends: bool,
        /// Data that it received, and how much more it accepts.
        taken: Vec<u8>,
        room: usize,
        told_end: bool,
        error: Option<io::Error>,
    }

    impl Read for Scripted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.gives.is_empty() && !self.ends {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = self.gives.len().min(buffer.len());
            buffer[..count].copy_from_slice(&self.gives[..count]);
            self.gives.drain(..count);
            Ok(count)
        }
    }

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = self.room.min(bytes.len());
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= count;
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Stream for Scripted {
        fn end(&mut self) -> io::Result<()> {
            self.told_end = true;
            Ok(())
        }

        fn failure(&mut self) -> io::Result<Option<io::Error>> {
            Ok(self.error.take())
        }

        fn ask_after(&self, _: Duration) {}
    }

    /// Returns an endpoint with a plain TCP connection opened by a client from port 4000.
    fn opened() -> (Endpoint, ConnId) {
        let scheduler = || plait_sched::Spec::parse("minrtt").unwrap().build();
        let controller = |_| plait_cc::Spec::parse("cubic").unwrap().build();
        let spec = ConnectionSpec {
            config: Config::default().with(|it| it.buffers.sndbuf = 10_000),
            paths: Vec::new(),
            addresses: Vec::new(),
            scheduler: Arc::new(scheduler),
            controller: Arc::new(controller),
        };
        let mut endpoint = Endpoint::new(Box::new(Counted::default()));
        endpoint.listen(80, spec);
        let mut segment = Segment {
            src_port: 4_000,
            dst_port: 80,
            seq: 100,
            flags: Flags::SYN,
            window: 60_000,
            ..Segment::default()
        };
        let path = plait_base::PathId(0);
        endpoint.handle(Time::ZERO, path, &segment);
        let answer = endpoint.poll_transmit(Time::ZERO).unwrap().segment;
        (segment.seq, segment.flags) = (101, Flags::ACK);
        segment.ack = answer.seq.wrapping_add(1);
        endpoint.handle(Time::ZERO, path, &segment);
        let conn = endpoint.poll_accept().unwrap();
        (endpoint, conn)
    }

    /// The send buffer takes 10,000 bytes. The relay keeps at most one piece beyond them, and reads
    /// no more from the service until the client acknowledges.
    #[test]
    fn a_service_is_read_no_faster_than_its_client_takes() {
        let (mut endpoint, conn) = opened();
        let service = Scripted { gives: vec![7; 1 << 20], ..Scripted::default() };
        let mut relay = Relay::new(conn, service, false);
        let mut piece = vec![0; 4_096];
        for _ in 0..20 {
            let course = relay.turn(Time::ZERO, &mut endpoint, &mut piece).unwrap();
            assert_eq!(course, Course::Waits);
        }
        assert_eq!((relay.moved.to_peer, relay.taken), (10_000, 3 * 4_096));
        assert_eq!(relay.interest(), Some(Interest { read: false, write: false }));
        assert!(relay.memory_bytes() <= 4_096);
    }

    /// The introduction comes first, however little the service accepts at a time, and is not
    /// counted as data.
    #[test]
    fn a_slow_service_gets_its_introduction_first() {
        let (mut endpoint, conn) = opened();
        let mut relay = Relay::new(conn, Scripted::default(), false);
        relay.begin_with(b"who it is");
        let mut piece = vec![0; 4_096];
        for _ in 0..3 {
            relay.socket.room = 3;
            assert_eq!(relay.interest(), Some(Interest { read: true, write: true }));
            relay.turn(Time::ZERO, &mut endpoint, &mut piece).unwrap();
        }
        assert_eq!((&relay.socket.taken[..], relay.moved.to_socket), (&b"who it is"[..], 0));
        assert_eq!(relay.interest(), Some(Interest { read: true, write: false }));
    }

    /// A failure before the service has ended fails the relay. A later one only means that the
    /// service no longer reads.
    #[test]
    fn a_service_that_fails_ends_its_relay() {
        let (mut endpoint, conn) = opened();
        let failing = |ends| Scripted { ends, ..Scripted::default() };
        let mut relay = Relay::new(conn, failing(false), false);
        relay.socket.error = Some(io::ErrorKind::ConnectionReset.into());
        assert!(relay.on_socket_ready().is_err());
        let mut relay = Relay::new(conn, failing(true), false);
        relay.turn(Time::ZERO, &mut endpoint, &mut [0; 64]).unwrap();
        relay.socket.error = Some(io::ErrorKind::ConnectionReset.into());
        assert!(relay.on_socket_ready().is_ok());
        let course = relay.turn(Time::ZERO, &mut endpoint, &mut [0; 64]).unwrap();
        assert_eq!(course, Course::Over);
    }
}
