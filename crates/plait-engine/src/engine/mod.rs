//! The work of one process: packets, timers and relays, one turn at a time. It never blocks. The
//! driver calls [`Engine::turn`] when an event is ready, or at the time of [`Engine::next`].

mod asked;

use crate::choice::{Choice, Choices};
use crate::crowd::Buffers;
use crate::dials::Dials;
use crate::ending;
use crate::limits::{Guard, Limits, Shortage};
use crate::log_event::{ExtraBytes, LogEvent, PathTraffic};
use crate::names::PathPrice;
use crate::overview::{ConnectionView, Opened, Overview, Tally};
use crate::relay::{Course, Greeting, Moved, ORPHANED, PIECE, Relay};
use crate::request::Destination;
use crate::requests::Requests;
use crate::service::Service;
use crate::stack::Stack;
use crate::world::{Ready, World};
use plait_base::{ConnId, PathId, Span, Time};
use plait_core::{ConnectionSpec, ConnectionState, MemoryReport, PathConfig, Quota, SubflowStats};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// One process between clients and programs.
#[expect(missing_debug_implementations, reason = "worlds and observers have none")]
pub struct Engine<W: World> {
    /// The endpoint and the world.
    pub stack: Stack<W>,
    /// Events since the driver last emptied it.
    pub log_events: Vec<LogEvent>,
    /// The service to which connections of clients are relayed.
    service: Option<Service>,
    /// Connections whose clients name their destination.
    requests: Option<Requests>,
    /// Named destinations for the driver, which calls [`Engine::lead`] with the address of each.
    pub wanted: Vec<(ConnId, Destination)>,
    relays: BTreeMap<ConnId, Relay<W::Stream>>,
    /// Relays with an event, or with more data to move.
    due: Vec<ConnId>,
    /// Relays that can move more data at once.
    again: Vec<ConnId>,
    /// There may be more to send at once.
    unsent: bool,
    piece: Box<[u8]>,
    tally: Tally,
    dials: Dials,
    guard: Guard,
    /// Bytes read from sockets, plus the allowance for each new connection.
    taken: u64,
    /// How long a program may keep its end of a relay half closed before a keep-alive checks that it still
    /// runs.
    orphaned: Duration,
}

impl<W: World> Engine<W> {
    /// Returns an engine that relays the connections of clients to `service`, if there is one.
    pub fn new(stack: Stack<W>, service: Option<Service>) -> Engine<W> {
        Engine {
            stack,
            log_events: Vec::new(),
            service,
            requests: None,
            wanted: Vec::new(),
            relays: BTreeMap::new(),
            due: Vec::new(),
            again: Vec::new(),
            unsent: false,
            piece: vec![0; PIECE].into(),
            tally: Tally::default(),
            dials: Dials::default(),
            guard: Guard::default(),
            taken: 0,
            orphaned: ORPHANED,
        }
    }

    /// Listens on `ports`, each with the settings of its connections. `choices` override them for
    /// some clients; the first matching entry applies.
    pub fn listen(&mut self, ports: &[(u16, Arc<ConnectionSpec>)], choices: Vec<Choice>) {
        for (port, spec) in ports {
            self.stack.endpoint.listen(*port, Arc::clone(spec));
        }
        self.stack.choices = Choices::new(choices, ports);
    }

    /// Stops accepting connections on these ports.
    pub fn stop_listening(&mut self, ports: &[u16]) {
        self.stack.choices.stop();
        for port in ports {
            self.stack.endpoint.stop_listening(*port);
        }
    }

    /// Limits the memory of all connections together.
    pub fn limit(&mut self, limits: Limits) {
        self.guard.limits = limits;
    }

    /// Gives up dialled connections that are not established after `patience`.
    pub fn give_up_after(&mut self, patience: Span) {
        self.dials.patience = Some(patience);
    }

    /// Sets how long a program may keep its end half closed before a keep-alive checks that it
    /// still runs. It should be the time that the kernel keeps sockets of exited programs.
    pub fn ask_after(&mut self, orphaned: Duration) {
        self.orphaned = orphaned;
    }

    /// Returns true if no connection is relayed and all former ones have ended.
    pub fn is_over(&self) -> bool {
        self.relays.is_empty() && self.stack.endpoint.is_over()
    }

    /// Returns true if no connection is relayed.
    pub fn is_idle(&self) -> bool {
        self.relays.is_empty()
    }

    /// Returns when to call [`Engine::turn`] if no event comes earlier; [`Time::ZERO`] means at
    /// once.
    pub fn next(&self) -> Time {
        if !self.again.is_empty() || self.unsent {
            return Time::ZERO;
        }
        let report = self.guard.report_due(self.stack.endpoint.overflows());
        let request = self.requests.as_ref().map_or(Time::NEVER, Requests::next);
        self.stack.next().min(self.dials.next()).min(report).min(request)
    }

    /// Handles the ready events and part of the pending work.
    ///
    /// # Errors
    /// Returns an error if the device is gone.
    pub fn turn(&mut self, ready: &[Ready]) -> io::Result<()> {
        self.stack.expire();
        let mut due = std::mem::take(&mut self.due);
        due.append(&mut self.again);
        for ready in ready {
            match *ready {
                Ready::Packets => self.stack.take_in()?,
                Ready::Stream(conn) => {
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
        due.iter().for_each(|conn| self.relay(*conn));
        due.clear();
        self.due = due;
        self.give_up();
        self.keep_limits();
        self.stack.resets.clear();
        self.unsent = self.stack.send()?;
        Ok(())
    }

    /// Measures the memory of connections if it may have changed, and sets their limits.
    fn weigh(&mut self, now: Time) {
        let taken_in = self.taken + self.stack.counters.bytes_in;
        if self.guard.is_due(now, taken_in) {
            let report = self.stack.endpoint.memory_report();
            let held = report.bytes + self.between();
            let share = self.guard.look(now, taken_in, held, report.above_threshold);
            self.stack.endpoint.limit_buffers(share);
        }
    }

    /// Starts or stops refusing connections, and reports refusals.
    fn keep_limits(&mut self) {
        let now = self.stack.world.now();
        self.weigh(now);
        let occupied = self.occupied();
        self.guard.stand(&mut self.stack.endpoint, occupied);
        self.guard.note_unnumbered(self.stack.names.unnumbered());
        let shortage = self.guard.told_shortage(occupied);
        if let Some(count) = self.guard.tell(now) {
            self.log_events.push(LogEvent::TurnedAway { count, shortage });
        }
        if let Some(more) = self.guard.overflowed(now, self.stack.endpoint.overflows()) {
            self.log_events.push(LogEvent::Overflowed(more));
        }
    }

    /// Returns the memory of connections in bytes, with the data between them and sockets. It
    /// examines every connection.
    pub fn memory_report(&self) -> MemoryReport {
        let report = self.stack.endpoint.memory_report();
        MemoryReport { bytes: report.bytes + self.between(), ..report }
    }

    /// Returns the number of checks so far whether the number of a path is in use.
    pub fn looks(&self) -> u64 {
        self.stack.names.looks()
    }

    /// Returns the number of client addresses that have a path number.
    pub fn paths(&self) -> usize {
        self.stack.names.len()
    }

    /// Returns the number of refused connections, by shortage.
    pub fn refused(&self) -> &BTreeMap<Shortage, u64> {
        &self.guard.refused
    }

    /// Returns the bytes of data between connections and sockets.
    fn between(&self) -> u64 {
        self.relays.values().map(Relay::memory_bytes).sum()
    }

    /// Returns the present shortage, if there is one.
    pub fn shortage(&self) -> Option<Shortage> {
        self.guard.shortage(self.occupied())
    }

    /// Returns the number of connections that are relayed, or will be.
    fn occupied(&self) -> usize {
        self.relays.len() + self.requests.as_ref().map_or(0, Requests::len)
    }

    /// Dials `to` and relays the connection to `stream`. `greeting` is written to `stream` before any data.
    /// The engine fills the paths into `spec`.
    ///
    /// Returns an error if the world cannot watch the stream, or if there is no own address of that
    /// family.
    pub fn connect(
        &mut self,
        mut spec: ConnectionSpec,
        to: SocketAddr,
        stream: W::Stream,
        greeting: Option<Greeting>,
    ) -> io::Result<ConnId> {
        let stack = &mut self.stack;
        let paths = stack.names.paths(&stack.endpoint, to.ip());
        if paths.is_empty() {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        stack.name_paths(&paths);
        if stack.names.has_exits() {
            // A raw socket does not cut superpackets.
            spec.config.packets.superpacket = 0;
        }
        let mut priced = |path: PathId| {
            let PathPrice { cost, quota, .. } = stack.names.price(path);
            let bytes = quota.as_ref().map(Quota::bytes);
            stack.endpoint.set_price(path, cost, quota);
            PathConfig { cost, quota: bytes, ..PathConfig::new(path) }
        };
        spec.paths = paths.into_iter().map(&mut priced).collect();
        let now = stack.world.now();
        let conn = stack.endpoint.connect(now, to.port(), spec).map_err(io::Error::other)?;
        let mut relay = Relay::new(conn, stream, false).dialled(now, to);
        if let Some(greeting) = greeting {
            relay.greet(greeting);
        }
        self.add(relay)?;
        self.dials.add(now, conn);
        Ok(conn)
    }

    /// Counts a connection refused because of a shortage.
    pub fn refuse(&mut self, shortage: Shortage) {
        self.guard.refuse(shortage, 1);
    }

    /// Ends dialled connections that are not established in time.
    fn give_up(&mut self) {
        while let Some(conn) = self.dials.poll_expired(self.stack.world.now()) {
            let connecting = self.stack.endpoint.state(conn) == Ok(ConnectionState::Connecting);
            if connecting && self.relays.contains_key(&conn) {
                self.end(conn, Some(ending::SILENT.to_owned()));
            }
        }
        let now = self.stack.world.now();
        while let Some(conn) = self.requests.as_mut().and_then(|it| it.poll_expired(now)) {
            self.end(conn, Some(ending::UNASKED.to_owned()));
        }
    }

    /// Resets every connection and ends its relay.
    ///
    /// # Errors
    /// Returns an error if the device is gone.
    pub fn abort(&mut self, why: &str) -> io::Result<()> {
        for conn in self.relays.keys().copied().collect::<Vec<_>>() {
            self.end(conn, Some(why.to_owned()));
        }
        while self.stack.send()? {}
        Ok(())
    }

    /// Connects to the service for a client that has connected.
    fn accept(&mut self, conn: ConnId) {
        self.taken += Guard::newcomer();
        if let Some(shortage) = self.shortage() {
            // The handshake began before the shortage.
            self.guard.refuse(shortage, 1);
            let now = self.stack.world.now();
            self.stack.discard(now, conn);
            return;
        }
        let from = self
            .stack
            .endpoint
            .ports(conn)
            .and_then(|ports| self.stack.names.client_of(ports.first()?.path));
        let multipath = self.speaks_multipath(conn);
        let port = self.stack.endpoint.service_port(conn).unwrap_or_default();
        let rule = from.and_then(|from| self.stack.choices.place(port, from));
        *self.tally.accepted.entry(Opened { port, rule, multipath }).or_default() += 1;
        self.log_events.push(LogEvent::Accepted { conn, from, multipath, port, rule });
        if let Some(requests) = &mut self.requests {
            match requests.add(self.stack.world.now(), conn) {
                true => self.again.push(conn),
                false => self.end(conn, Some(ending::CROWDED.to_owned())),
            }
            return;
        }
        let beside = self.relays.len();
        let dialled = self.service.map(|service| {
            let buffers = if service.near { Buffers::beside(beside) } else { None };
            (service, self.stack.world.dial(service.to, buffers))
        });
        let relayed = match dialled {
            Some((service, Ok(socket))) => {
                let now = self.stack.world.now();
                let mut relay = Relay::new(conn, socket, true).opened(now, from);
                if let Some(from) = from.filter(|_| service.proxy_header) {
                    relay.begin_with(&service.introduction(&self.stack.endpoint, conn, from));
                }
                self.add(relay)
            }
            Some((service, Err(error))) => Err(service.unreached(&error)),
            None => Err(io::Error::other("nobody listens")),
        };
        if let Err(error) = relayed {
            self.end(conn, Some(error.to_string()));
        }
    }

    /// Ends the connection of a socket that has failed.
    fn end_by_socket(&mut self, conn: ConnId, error: &io::Error) {
        let connecting = self.relays.get(&conn).is_some_and(Relay::is_connecting);
        let problem = match self.service {
            Some(service) if connecting => service.unreached(error).to_string(),
            None if connecting => format!("the destination: {error}"),
            _ => error.to_string(),
        };
        self.end(conn, Some(problem));
    }

    /// Returns the state of the process.
    pub fn overview(&self) -> Overview {
        let now = self.stack.world.now();
        let mut tally = self.tally.clone();
        let view = |relay: &Relay<W::Stream>| {
            let stats = self.stack.endpoint.stats(relay.conn)?;
            let client = |it: &SubflowStats| self.stack.names.client_of(it.path);
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
        let report = self.stack.endpoint.memory_report();
        Overview {
            age: now.since(Time::ZERO),
            counters: self.stack.counters,
            totals: self.stack.endpoint.totals(),
            sizes: self.stack.endpoint.sizes(),
            tally,
            connections,
            memory_report: report,
            overflows: self.stack.endpoint.overflows(),
            memory: report.bytes + self.between(),
            limits: self.guard.limits,
            paths: self.stack.names.len(),
        }
    }

    fn speaks_multipath(&self, conn: ConnId) -> bool {
        self.stack.endpoint.stats(conn).is_some_and(|stats| stats.multipath)
    }

    /// Begins to relay a connection.
    fn add(&mut self, relay: Relay<W::Stream>) -> io::Result<()> {
        let mut relay = relay.asking_after(self.orphaned);
        watch(&mut self.stack.world, &mut relay)?;
        self.again.push(relay.conn);
        self.relays.insert(relay.conn, relay);
        Ok(())
    }

    /// Moves as much data of a relay as possible.
    fn relay(&mut self, conn: ConnId) {
        if self.requests.as_ref().is_some_and(|requests| requests.has(conn)) {
            return self.hear(conn);
        }
        let now = self.stack.world.now();
        // Each relay may move much data, so memory is measured before each.
        self.weigh(now);
        let Some(relay) = self.relays.get_mut(&conn) else { return };
        let (before, most) = (relay.taken, self.guard.piece(PIECE));
        let course = relay.turn(now, &mut self.stack.endpoint, &mut self.piece[..most]);
        self.taken += relay.taken - before;
        let course = course.and_then(|course| watch(&mut self.stack.world, relay).map(|()| course));
        match course {
            Ok(Course::Waits) => {}
            Ok(Course::Again) => self.again.push(conn),
            Ok(Course::Over) => self.end(conn, None),
            Err(error) => self.end(conn, Some(error.to_string())),
        }
    }

    /// Ends the relay of a connection. If there was a problem, it resets the connection as well.
    fn end(&mut self, conn: ConnId, problem: Option<String>) {
        let now = self.stack.world.now();
        if let Some(requests) = &mut self.requests {
            requests.remove(conn);
        }
        let mut relay = self.relays.remove(&conn);
        let established = relay.as_ref().is_some_and(|relay| relay.established);
        let to = relay.as_ref().and_then(Relay::sought);
        let refused = to.is_some_and(|to| self.stack.resets.contains(&to));
        let stats = self.stack.endpoint.stats(conn);
        let timed_out = stats.as_ref().and_then(|stats| stats.timed_out);
        if let Some(relay) = &mut relay {
            relay.refuse(refused);
        }
        if let Some(to) = to
            && self.stack.endpoint.state(conn) != Ok(ConnectionState::Closed)
        {
            self.log_events.push(LogEvent::Unreached { conn, to, refused });
        }
        let relayed = relay.as_ref().map(|relay| (relay.moved, relay.taken, relay.since));
        let (moved, taken, since) = relayed.unwrap_or((Moved::default(), 0, now));
        let in_flight = stats.as_ref().map_or(0, |stats| stats.unacked);
        let failed = stats.as_ref().is_none_or(|it| it.state == ConnectionState::Failed);
        let problem = problem
            .or_else(|| failed.then(|| ending::cause(timed_out, established, refused).to_owned()));
        let multipath = stats.as_ref().is_some_and(|stats| stats.multipath);
        let fallback = stats.as_ref().and_then(|stats| stats.fallback);
        let subflows = stats.as_ref().map_or(&[][..], |stats| &stats.subflows);
        let paths = PathTraffic::of_subflows(subflows, |path| self.stack.names.client_of(path));
        self.tally.count_end(problem.is_some(), timed_out, fallback);
        if problem.is_some() {
            self.stack.discard(now, conn);
        } else {
            // An unknown connection is already released.
            self.stack.endpoint.release(now, conn).ok();
        }
        self.stack.observed.tell(now, &mut self.stack.endpoint);
        self.stack.observed.on_ended(conn);
        let sent = moved.to_peer.saturating_sub(in_flight);
        self.log_events.push(LogEvent::Ended {
            conn,
            received: moved.to_socket,
            sent,
            unacked: taken.saturating_sub(sent),
            age: now.since(since),
            extra: ExtraBytes::of(stats.as_ref(), &paths),
            paths,
            multipath,
            fallback,
            problem,
        });
    }
}

/// Makes the world watch the events that a relay waits for. It compares with the watched events,
/// not with the previous interest, because a socket may have connected since.
fn watch<W: World>(world: &mut W, relay: &mut Relay<W::Stream>) -> io::Result<()> {
    let wanted = relay.interest();
    if wanted != relay.watched {
        world.watch(relay.conn, &relay.socket, relay.watched, wanted)?;
        relay.watched = wanted;
    }
    Ok(())
}
