//! The loop: packets, timers and relays on one thread.

use crate::happening::{Happening, PathTraffic};
use crate::limits::{Guard, Shortage};
use crate::links::LinkWatch;
use crate::overview::{ASK, ConnectionView, Opened, Overview, Questions, STOP, Tally};
use crate::poller::{Poller, Ready};
use crate::proxy_header;
use crate::relay::{Course, Moved, PIECE, Relay, orphaned};
use crate::stack::Stack;
use plait_base::{ConnId, Span, Time};
use plait_core::{ConnectionState, SubflowStats, TimedOut};
use socket2::{Domain, Socket, Type};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// What the poller knows the device by, and what wakes it.
const DEVICE: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
const LINKS: u64 = u64::MAX - 2;
/// How long connections have to end once a server is stopped, unless it is told otherwise.
pub(crate) const DRAIN: Span = Span::from_secs(5);
/// Longest wait.
const LONGEST: Span = Span::from_secs(60);
/// What is relayed to a service.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    pub(crate) to: SocketAddr,
    /// It is told who the client is, by the PROXY protocol.
    pub(crate) proxy_header: bool,
    /// Where clients connect to, as the header tells it; the port is that of each connection.
    pub(crate) listen: SocketAddr,
}

/// Why a connection has not come about of which nothing was heard.
const SILENT: &str = "no answer: is a server there, and do its answers come back?";
/// Why one was ended that did not come on.
const UNTAKEN: &str = "the peer has taken nothing of what waits for it for the user timeout";
const UNHEARD: &str = "nothing has come of the peer, and it has answered none of the keep-alives";
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

pub(crate) struct Engine {
    pub(crate) stack: Stack,
    poller: Poller,
    links: LinkWatch,
    /// What has routes to the device.
    pub(crate) routed: Vec<IpAddr>,
    /// What the connections that peers open are relayed to.
    service: Option<Service>,
    /// The service is on this host.
    is_near: bool,
    relays: BTreeMap<ConnId, Relay>,
    /// Relays with more to move at once.
    again: Vec<ConnId>,
    /// There may be more to send at once.
    unsent: bool,
    ready: Vec<Ready>,
    piece: Box<[u8]>,
    stopper: (UnixStream, UnixStream),
    pub(crate) stopped: bool,
    pub(crate) happenings: Vec<Happening>,
    pub(crate) questions: Questions,
    tally: Tally,
    pub(crate) dials: Dials,
    pub(crate) guard: Guard,
    /// Bytes that sockets have given, and what connections that came count for.
    taken: u64,
    /// How long programs that have ended their side are left alone.
    orphaned: Duration,
    /// How long connections have to end once this is stopped.
    pub(crate) drain: Span,
}

/// Connections that were dialled and are given up where they are not there in time.
#[derive(Default)]
pub(crate) struct Dials {
    /// How long each may take.
    pub(crate) patience: Option<Span>,
    /// When each is given up, in the order of time.
    pending: VecDeque<(Time, ConnId)>,
}

impl Engine {
    pub(crate) fn new(stack: Stack, service: Option<Service>) -> io::Result<Engine> {
        let poller = Poller::open()?;
        poller.add(&stack.device, DEVICE, true, false)?;
        let stopper = UnixStream::pair()?;
        stopper.0.set_nonblocking(true)?;
        poller.add(&stopper.0, WAKER, true, false)?;
        let links = LinkWatch::open(stack.device.index())?;
        poller.add(&links, LINKS, true, false)?;
        Ok(Engine {
            stack,
            poller,
            links,
            routed: Vec::new(),
            is_near: service.is_some_and(|service| is_own(service.to.ip())),
            service,
            relays: BTreeMap::new(),
            again: Vec::new(),
            unsent: false,
            ready: Vec::new(),
            piece: vec![0; PIECE].into(),
            questions: Questions::new(stopper.1.try_clone()?),
            stopper,
            stopped: false,
            happenings: Vec::new(),
            tally: Tally::default(),
            dials: Dials::default(),
            guard: Guard::default(),
            taken: 0,
            orphaned: orphaned(),
            drain: DRAIN,
        })
    }

    /// Something that [`STOP`] is written to, to set `stopped`.
    pub(crate) fn stopper(&self) -> io::Result<UnixStream> {
        self.stopper.1.try_clone()
    }

    /// Whether no connection is relayed, and those that were have taken leave.
    pub(crate) fn is_over(&self) -> bool {
        self.relays.is_empty() && self.stack.endpoint.is_over()
    }

    /// Whether no connection is relayed.
    pub(crate) fn is_idle(&self) -> bool {
        self.relays.is_empty()
    }

    /// Waits until something is to be done, at most until `deadline`, and does it.
    pub(crate) fn turn(&mut self, deadline: Time) -> io::Result<()> {
        let waits = self.again.is_empty() && !self.unsent;
        let next = if waits { self.stack.next() } else { Time::ZERO };
        let impatient = self.dials.pending.front().map_or(Time::NEVER, |(at, _)| *at);
        let next = next.min(deadline).min(impatient);
        self.poller.wait(&self.stack.clock, next, LONGEST, &mut self.ready)?;
        self.stack.expire();
        let mut due = std::mem::take(&mut self.again);
        for at in 0..self.ready.len() {
            match self.ready[at].token {
                DEVICE => self.stack.take_in()?,
                WAKER => self.on_woken()?,
                LINKS => self.on_links(),
                conn => {
                    let conn = ConnId(conn as u32);
                    if let Some(relay) = self.relays.get_mut(&conn) {
                        match relay.on_socket_ready() {
                            Ok(()) => due.push(conn),
                            Err(error) => self.end_by_socket(conn, &error),
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
        self.give_up();
        self.keep_limits();
        self.stack.resets.clear();
        self.unsent = self.stack.send()?;
        Ok(())
    }

    /// Looks at what connections hold, where that may have changed, and has them go by it.
    fn weigh(&mut self, now: Time) {
        let taken_in = self.taken + self.stack.counters.bytes_in;
        if self.guard.is_due(now, taken_in) {
            let holdings = self.stack.endpoint.holdings();
            let held = holdings.bytes + self.between();
            let share = self.guard.look(now, taken_in, held, holdings.laden);
            self.stack.endpoint.limit_buffers(share);
        }
    }

    /// Turns connections away, or no longer, and tells of it.
    fn keep_limits(&mut self) {
        let now = self.stack.clock.now();
        self.weigh(now);
        self.guard.stand(&mut self.stack.endpoint, self.relays.len());
        self.guard.note_unnumbered(self.stack.names.unnumbered());
        let shortage = self.guard.told_shortage(self.relays.len());
        if let Some(count) = self.guard.tell(now) {
            self.happenings.push(Happening::TurnedAway { count, shortage });
        }
        if let Some(more) = self.guard.overflowed(now, self.stack.endpoint.overflows()) {
            self.happenings.push(Happening::Overflowed(more));
        }
    }

    /// Bytes of memory of what waits between connections and sockets.
    fn between(&self) -> u64 {
        self.relays.values().map(Relay::holds).sum()
    }

    /// What there is no more of.
    pub(crate) fn shortage(&self) -> Option<Shortage> {
        self.guard.shortage(self.relays.len())
    }

    /// A connection was dialled, and is given up in time.
    pub(crate) fn dialled(&mut self, conn: ConnId) {
        if let Some(patience) = self.dials.patience {
            self.dials.pending.push_back((self.stack.clock.now() + patience, conn));
        }
    }

    /// Ends those connections that should be there by now.
    fn give_up(&mut self) {
        while let Some((at, conn)) = self.dials.pending.front().copied()
            && at <= self.stack.clock.now()
        {
            self.dials.pending.pop_front();
            let connecting = self.stack.endpoint.state(conn) == ConnectionState::Connecting;
            if connecting && self.relays.contains_key(&conn) {
                self.end(conn, Some(SILENT.to_owned()));
            }
        }
    }

    /// Goes on until nothing is relayed any more, it is stopped once more or the time to drain is over;
    /// what is left is ended then.
    pub(crate) fn end_in_order(&mut self, tell: &mut dyn FnMut(&Happening)) -> io::Result<()> {
        self.stopped = false;
        let until = self.stack.clock.now() + self.drain;
        while !self.stopped && !self.is_over() && self.stack.clock.now() < until {
            self.turn(until)?;
            self.answer();
            self.happenings.drain(..).for_each(|happening| tell(&happening));
        }
        self.abort("the server ends")?;
        self.happenings.drain(..).for_each(|happening| tell(&happening));
        Ok(())
    }

    /// Ends every relay with its connection, and tells the peers.
    pub(crate) fn abort(&mut self, why: &str) -> io::Result<()> {
        for conn in self.relays.keys().copied().collect::<Vec<_>>() {
            self.end(conn, Some(why.to_owned()));
        }
        while self.stack.send()? {}
        Ok(())
    }

    /// A client has connected: so do we, to the service.
    fn accept(&mut self, conn: ConnId) {
        self.taken += Guard::newcomer();
        if let Some(shortage) = self.shortage() {
            // Its handshake had begun before.
            self.guard.refuse(shortage, 1);
            let now = self.stack.clock.now();
            self.stack.endpoint.abort(now, conn);
            return self.stack.endpoint.release(now, conn);
        }
        let from = self.stack.endpoint.ports(conn).and_then(|ports| {
            let (path, ..) = *ports.first()?;
            self.stack.names.client(path)
        });
        let multipath = self.speaks_multipath(conn);
        let port = self.stack.endpoint.service_port(conn).unwrap_or_default();
        let rule = from.and_then(|from| self.stack.choices.place(port, from));
        *self.tally.accepted.entry(Opened { port, rule, multipath }).or_default() += 1;
        self.happenings.push(Happening::Accepted { conn, from, multipath, port, rule });
        let beside = self.is_near.then_some(self.relays.len());
        let relayed = match self.service.map(|service| (service, dial(service.to, beside))) {
            Some((service, Ok(socket))) => {
                let now = self.stack.clock.now();
                let mut relay = Relay::new(conn, socket, true).opened(now, from);
                if let Some(from) = from.filter(|_| service.proxy_header) {
                    relay.begin_with(&self.introduction(conn, from, service));
                }
                self.add(relay)
            }
            Some((service, Err(error))) => Err(unreached(service, &error)),
            None => Err(io::Error::other("nobody listens")),
        };
        if let Err(error) = relayed {
            self.end(conn, Some(error.to_string()));
        }
    }

    /// What tells the service who the client is.
    fn introduction(&self, conn: ConnId, from: IpAddr, service: Service) -> Vec<u8> {
        let ports = self.stack.endpoint.ports(conn);
        let (_, ours, theirs) = ports.and_then(|it| it.first().copied()).unwrap_or_default();
        let to = SocketAddr::new(service.listen.ip(), ours);
        proxy_header::encode(SocketAddr::new(from, theirs), to)
    }

    /// The socket of a connection has failed.
    fn end_by_socket(&mut self, conn: ConnId, error: &io::Error) {
        let connecting = self.relays.get(&conn).is_some_and(Relay::is_connecting);
        let problem = match self.service {
            Some(service) if connecting => unreached(service, error).to_string(),
            _ => error.to_string(),
        };
        self.end(conn, Some(problem));
    }

    /// The device may have gone down or come up.
    fn on_links(&mut self) {
        for up in self.links.news() {
            let (device, routed) = (self.stack.device.name().to_owned(), self.routed.clone());
            self.happenings.push(Happening::Device { device, routed, up });
        }
    }

    /// Somebody asks for an end or has a question.
    fn on_woken(&mut self) -> io::Result<()> {
        let mut bytes = [ASK; 64];
        let count = self.stopper.0.read(&mut bytes)?;
        self.stopped |= bytes[..count].contains(&STOP);
        Ok(())
    }

    /// Answers those who ask how the server stands.
    pub(crate) fn answer(&self) {
        self.questions.answer(|| self.overview());
    }

    fn overview(&self) -> Overview {
        let now = self.stack.clock.now();
        let mut tally = self.tally.clone();
        let view = |relay: &Relay| {
            let stats = self.stack.endpoint.stats(relay.conn)?;
            let client = |it: &SubflowStats| self.stack.names.client(it.path);
            let subflows = stats.subflows.iter().map(|it| (client(it), *it)).collect();
            let port = self.stack.endpoint.service_port(relay.conn).unwrap_or_default();
            let (conn, from, age) = (relay.conn, relay.from(), now.since(relay.since));
            Some(ConnectionView { conn, from, port, age, stats, subflows })
        };
        let connections: Vec<ConnectionView> = self.relays.values().filter_map(view).collect();
        for cause in connections.iter().filter_map(|it| it.stats.fallback) {
            *tally.fallbacks.entry(cause).or_default() += 1;
        }
        tally.refused.clone_from(&self.guard.refused);
        let holdings = self.stack.endpoint.holdings();
        Overview {
            age: now.since(Time::ZERO),
            counters: self.stack.counters,
            totals: self.stack.endpoint.totals(),
            sizes: self.stack.endpoint.sizes(),
            tally,
            connections,
            holdings,
            overflows: self.stack.endpoint.overflows(),
            memory: holdings.bytes + self.between(),
            limits: self.guard.limits,
            paths: self.stack.names.len(),
        }
    }

    pub(crate) fn speaks_multipath(&self, conn: ConnId) -> bool {
        self.stack.endpoint.stats(conn).is_some_and(|stats| stats.multipath)
    }

    /// Relays a connection from now on.
    pub(crate) fn add(&mut self, relay: Relay) -> io::Result<()> {
        let mut relay = relay.asking_after(self.orphaned);
        watch(&self.poller, &mut relay)?;
        self.again.push(relay.conn);
        self.relays.insert(relay.conn, relay);
        Ok(())
    }

    /// Lets a relay move what it can.
    fn relay(&mut self, conn: ConnId) {
        let now = self.stack.clock.now();
        // Each of many may move a good deal.
        self.weigh(now);
        let Some(relay) = self.relays.get_mut(&conn) else { return };
        let (before, most) = (relay.taken, self.guard.piece(PIECE));
        let course = relay.turn(now, &mut self.stack.endpoint, &mut self.piece[..most]);
        self.taken += relay.taken - before;
        let course = course.and_then(|course| watch(&self.poller, relay).map(|()| course));
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
        let mut relay = self.relays.remove(&conn);
        let established = relay.as_ref().is_some_and(|relay| relay.established);
        let to = relay.as_ref().and_then(Relay::sought);
        let refused = to.is_some_and(|to| self.stack.resets.contains(&to));
        let stats = self.stack.endpoint.stats(conn);
        let timed_out = stats.as_ref().and_then(|stats| stats.timed_out);
        let why = match (timed_out, established, refused) {
            (Some(TimedOut::User), ..) => UNTAKEN,
            (Some(TimedOut::KeepAlive), ..) => UNHEARD,
            (_, true, _) => "the peer has reset the connection, or has not answered for too long",
            (.., true) => "refused: nobody listens there, or something on the way forbids it",
            (.., false) => SILENT,
        };
        if let Some(relay) = &mut relay {
            relay.refuse(refused);
        }
        if let Some(to) = to
            && self.stack.endpoint.state(conn) != ConnectionState::Closed
        {
            self.happenings.push(Happening::Unreached { conn, to, refused });
        }
        let relayed = relay.as_ref().map(|relay| (relay.moved, relay.taken, relay.since));
        let (moved, taken, since) = relayed.unwrap_or((Moved::default(), 0, now));
        let in_flight = stats.as_ref().map_or(0, |stats| stats.unacked);
        let failed = stats.as_ref().is_none_or(|it| it.state == ConnectionState::Failed);
        let problem = problem.or_else(|| failed.then(|| why.to_owned()));
        let multipath = stats.as_ref().is_some_and(|stats| stats.multipath);
        let fallback = stats.as_ref().and_then(|stats| stats.fallback);
        let subflows = stats.as_ref().map_or(&[][..], |stats| &stats.subflows);
        let paths = PathTraffic::of_subflows(subflows, |path| self.stack.names.client(path));
        self.tally.failed += u64::from(problem.is_some());
        if let Some(by) = timed_out {
            *self.tally.timed_out.entry(by).or_default() += 1;
        }
        if let Some(cause) = fallback {
            *self.tally.fallbacks.entry(cause).or_default() += 1;
        }
        if problem.is_some() {
            self.stack.endpoint.abort(now, conn);
        }
        self.stack.endpoint.release(now, conn);
        self.stack.observed.tell(now, &mut self.stack.endpoint);
        self.stack.observed.on_ended(conn);
        let sent = moved.to_peer.saturating_sub(in_flight);
        self.happenings.push(Happening::Ended {
            conn,
            received: moved.to_socket,
            sent,
            unacked: taken.saturating_sub(sent),
            age: now.since(since),
            paths,
            multipath,
            fallback,
            problem,
        });
    }
}

/// Has the poller watch for what a relay waits for. It compares with what is watched for, not with what
/// the relay waited for before its turn: that a socket has connected is found out before.
fn watch(poller: &Poller, relay: &mut Relay) -> io::Result<()> {
    let wanted = relay.interest();
    if wanted != relay.watched {
        poller.change(&relay.socket, u64::from(relay.conn.0), relay.watched, wanted)?;
        relay.watched = wanted;
    }
    Ok(())
}

/// Why the service was not reached.
fn unreached(service: Service, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("the service {}: {error}", service.to))
}

/// From so many relays on, a socket to a service of this host gets small buffers.
const CROWD: usize = 16;
/// Bytes that the receive buffers of such a crowd may take together, and one of them at least and at most.
const CROWD_BUFFERS: usize = 2 << 20;
const CROWD_BUFFER: RangeInclusive<usize> = 16 * 1024..=128 * 1024;
/// The MSS towards a service of this host in a crowd: that of a usual network.
const CROWD_MSS: u32 = 1_400;

/// Whether an address is one of this host.
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// A socket that connects to the service, beside so many others if the service is on this host.
///
/// The kernel keeps what plait has not read yet, and on the same host also what the service has written
/// beyond that: over `lo`, whose segments have 64 kB, some 5 MB for each client that does not read. A
/// few hundred of them bring the kernel to its limit (`net.ipv4.tcp_mem`), and then it shrinks the
/// windows of all connections. So in a crowd both buffers are small.
fn dial(to: SocketAddr, beside: Option<usize>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), None)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(beside) = beside.filter(|it| *it >= CROWD) {
        let bytes = CROWD_BUFFERS / beside;
        socket.set_recv_buffer_size(bytes.clamp(*CROWD_BUFFER.start(), *CROWD_BUFFER.end()))?;
        socket.set_tcp_mss(CROWD_MSS)?;
    }
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Clock;
    use std::net::TcpListener;

    /// What a wait of at most `ms` tells.
    fn told(poller: &Poller, ms: u64) -> Vec<Ready> {
        let (clock, mut ready) = (Clock::start(), Vec::new());
        let longest = Span::from_millis(ms);
        poller.wait(&clock, Time::NEVER, longest, &mut ready).unwrap();
        ready
    }

    /// Thousands of idle connections are not to wake the loop: their sockets can always be written to.
    #[test]
    fn an_idle_socket_wakes_nobody() {
        let service = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let socket = dial(service.local_addr().unwrap(), None).unwrap();
        let poller = Poller::open().unwrap();
        let mut relay = Relay::new(ConnId(1), socket, true);
        watch(&poller, &mut relay).unwrap();
        assert_eq!(told(&poller, 60_000).len(), 1);
        relay.on_socket_ready().unwrap();
        watch(&poller, &mut relay).unwrap();
        assert_eq!(told(&poller, 1), []);
        // Its end is told.
        drop(service.accept().unwrap());
        assert_eq!(told(&poller, 60_000).len(), 1);
    }
}
