//! Multipath TCP in front of a TCP service.

use crate::names::Names;
use crate::poller::{Poller, Ready};
use crate::relay::{Course, PIECE, Relay};
use crate::stack::{Stack, StackCounters};
use crate::{Device, add_route};
use plait_base::{ConnId, Span, Time};
use plait_core::{ConnectionSpec, ConnectionState};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;

/// What the poller knows the device by, and the stopper.
const DEVICE: u64 = u64::MAX;
const STOPPER: u64 = u64::MAX - 1;
/// Longest wait.
const LONGEST: Span = Span::from_secs(60);

/// What a server is made from.
#[derive(Clone, Debug)]
pub struct ServeSettings {
    /// Where clients connect to: an address that no device of this host has.
    pub listen: SocketAddr,
    /// Further addresses of it, which clients are told of (ADD_ADDR).
    pub advertise: Vec<IpAddr>,
    /// The TCP service behind it.
    pub to: SocketAddr,
    /// Name of the TUN device.
    pub device: String,
    /// What connections are made from; further addresses are put in.
    pub spec: ConnectionSpec,
}

/// What happens, for logs.
#[derive(Clone, PartialEq, Debug)]
pub enum Happening {
    /// A client has connected.
    Accepted {
        /// The connection.
        conn: ConnId,
        /// The client's address.
        from: Option<IpAddr>,
        /// Multipath TCP is spoken.
        multipath: bool,
    },
    /// A connection has ended.
    Ended {
        /// The connection.
        conn: ConnId,
        /// Bytes from the client.
        received: u64,
        /// Bytes to the client that it was given to send.
        sent: u64,
        /// Multipath TCP was spoken to the end.
        multipath: bool,
        /// Why it did not end in order, if so.
        problem: Option<String>,
    },
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happening::Accepted { conn, from, multipath } => {
                write!(f, "event=accepted conn={}", conn.0)?;
                if let Some(from) = from {
                    write!(f, " from={from}")?;
                }
                write!(f, " multipath={multipath}")
            }
            Happening::Ended { conn, received, sent, multipath, problem } => {
                write!(f, "event=ended conn={} received_bytes={received}", conn.0)?;
                write!(f, " sent_bytes={sent} multipath={multipath}")?;
                match problem {
                    Some(problem) => write!(f, " problem={problem:?}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A running server.
pub struct Server {
    stack: Stack,
    poller: Poller,
    settings: ServeSettings,
    relays: BTreeMap<ConnId, Relay>,
    /// Relays with more to move at once.
    again: Vec<ConnId>,
    ready: Vec<Ready>,
    piece: Box<[u8]>,
    stopper: (UnixStream, UnixStream),
    stopped: bool,
    happenings: Vec<Happening>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Server {
    /// Makes the device and its routes, and listens.
    ///
    /// # Errors
    /// Where the process may not make devices, or there is a route for the address already.
    pub fn open(mut settings: ServeSettings) -> io::Result<Server> {
        let device = Device::open(&settings.device, settings.spec.config.mtu as u16)?;
        for address in std::iter::once(settings.listen.ip()).chain(settings.advertise.clone()) {
            add_route(&device, address)?;
        }
        if settings.listen.is_ipv6() {
            // The core counts the 20 bytes of an IPv4 header; that of IPv6 has 40.
            settings.spec.config.mtu -= 20;
        }
        settings.spec.addresses.clone_from(&settings.advertise);
        let mut stack = Stack::new(device, Names::server(settings.listen.ip()))?;
        for address in &settings.advertise {
            stack.endpoint.number_address(*address);
        }
        stack.endpoint.listen(settings.listen.port(), settings.spec.clone());
        let poller = Poller::open()?;
        poller.add(&stack.device, DEVICE, true, false)?;
        let stopper = UnixStream::pair()?;
        poller.add(&stopper.0, STOPPER, true, false)?;
        Ok(Server {
            stack,
            poller,
            settings,
            relays: BTreeMap::new(),
            again: Vec::new(),
            ready: Vec::new(),
            piece: vec![0; PIECE].into(),
            stopper,
            stopped: false,
            happenings: Vec::new(),
        })
    }

    /// Something that is written to, or dropped with all its clones, to end [`Server::run`].
    ///
    /// # Errors
    /// Where the process has no file descriptor left.
    pub fn stopper(&self) -> io::Result<UnixStream> {
        self.stopper.1.try_clone()
    }

    /// Name of the device.
    #[must_use]
    pub fn device(&self) -> &str {
        self.stack.device.name()
    }

    /// What the stack has seen so far.
    #[must_use]
    pub fn counters(&self) -> StackCounters {
        self.stack.counters
    }

    /// Serves until it is stopped. `tell` hears what happens.
    ///
    /// # Errors
    /// Where the device is gone.
    pub fn run(&mut self, mut tell: impl FnMut(&Happening)) -> io::Result<()> {
        while !self.stopped {
            self.turn()?;
            self.happenings.iter().for_each(&mut tell);
            self.happenings.clear();
        }
        Ok(())
    }

    fn turn(&mut self) -> io::Result<()> {
        let next = if self.again.is_empty() { self.stack.next() } else { Time::ZERO };
        self.poller.wait(&self.stack.clock, next, LONGEST, &mut self.ready)?;
        self.stack.expire();
        let mut due = std::mem::take(&mut self.again);
        for at in 0..self.ready.len() {
            match self.ready[at].token {
                DEVICE => self.stack.take_in()?,
                STOPPER => self.stopped = true,
                conn => {
                    let conn = ConnId(conn as u32);
                    if let Some(relay) = self.relays.get_mut(&conn) {
                        match relay.on_socket_ready() {
                            Ok(()) => due.push(conn),
                            Err(error) => self.end(conn, Some(error.to_string())),
                        }
                    }
                }
            }
        }
        while let Some(conn) = self.stack.endpoint.poll_accept() {
            self.accept(conn);
        }
        while let Some(conn) = self.stack.endpoint.poll_news() {
            due.push(conn);
        }
        due.sort_unstable();
        due.dedup();
        for conn in due {
            self.relay(conn);
        }
        self.stack.send()
    }

    /// A client has connected: so do we, to the service.
    fn accept(&mut self, conn: ConnId) {
        let from = self.stack.endpoint.ports(conn).and_then(|ports| {
            let (path, ..) = *ports.first()?;
            self.stack.names.peer(path)
        });
        let multipath = self.speaks_multipath(conn);
        self.happenings.push(Happening::Accepted { conn, from, multipath });
        match self.dial(conn) {
            Ok(relay) => {
                self.relays.insert(conn, relay);
            }
            Err(error) => self.end(conn, Some(error.to_string())),
        }
    }

    fn speaks_multipath(&self, conn: ConnId) -> bool {
        self.stack.endpoint.stats(conn).is_some_and(|stats| stats.multipath)
    }

    fn dial(&self, conn: ConnId) -> io::Result<Relay> {
        let to = self.settings.to;
        let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), None)?;
        socket.set_tcp_nodelay(true)?;
        match socket.connect(&to.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(IN_PROGRESS) => {}
            Err(error) => return Err(error),
        }
        let relay = Relay::new(conn, TcpStream::from(socket));
        let (read, write) = relay.interest();
        self.poller.add(&relay.socket, u64::from(conn.0), read, write)?;
        Ok(relay)
    }

    /// Lets a relay move what it can.
    fn relay(&mut self, conn: ConnId) {
        let Some(relay) = self.relays.get_mut(&conn) else { return };
        let before = relay.interest();
        let now = self.stack.clock.now();
        let course = relay.turn(now, &mut self.stack.endpoint, &mut self.piece);
        let after = relay.interest();
        let course = match course {
            Ok(course) if before != after => {
                let token = u64::from(conn.0);
                let changed = self.poller.change(&relay.socket, token, after.0, after.1);
                changed.map(|()| course)
            }
            course => course,
        };
        match course {
            Ok(Course::Waits) => {}
            Ok(Course::Again) => self.again.push(conn),
            Ok(Course::Over) => self.end(conn, None),
            Err(error) => self.end(conn, Some(error.to_string())),
        }
    }

    /// The relay of a connection is over; with a problem, so is the connection at once.
    fn end(&mut self, conn: ConnId, problem: Option<String>) {
        let now = self.stack.clock.now();
        let moved = self.relays.remove(&conn).map(|relay| relay.moved).unwrap_or_default();
        let failed = self.stack.endpoint.state(conn) == ConnectionState::Failed;
        let problem = problem.or_else(|| failed.then(|| "the connection has failed".to_owned()));
        let multipath = self.speaks_multipath(conn);
        if problem.is_some() {
            self.stack.endpoint.abort(now, conn);
        }
        self.stack.endpoint.release(now, conn);
        let (received, sent) = (moved.to_socket, moved.to_peer);
        self.happenings.push(Happening::Ended { conn, received, sent, multipath, problem });
    }
}

const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();
