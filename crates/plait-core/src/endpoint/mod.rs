//! A host's transport: connections by address, listeners, one wake-up time.

mod arrivals;
mod directory;
mod silence;

use crate::conn::{
    Allowance, Connection, ConnectionSpec, ConnectionState, Context, Entropy, Opening, Provisional,
    Report, Shared, Transmit,
};
use crate::event::{Detail, Event};
use crate::stats::ConnectionStats;
use crate::tcp::subflow::Address;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::net::IpAddr;
pub(crate) use directory::Directory;
use plait_base::{ConnId, PathId, ServerAddress, Time};
use plait_wire::{Flags, Segment};
use silence::Silence;

/// Joins that came before the connection they name (at most this many are kept).
const MAX_PARKED: usize = 16;

/// First of the ephemeral ports (RFC 6335 section 6).
pub(crate) const FIRST_PORT: u16 = 49_152;

/// A host's transport without I/O.
///
/// The driver gives time and segments and takes segments and wake-up times:
///
/// 1. [`handle`](Endpoint::handle) for each segment that arrives, and
///    [`handle_timeout`](Endpoint::handle_timeout) when the time of
///    [`poll_timeout`](Endpoint::poll_timeout) has come;
/// 2. then [`poll_news`](Endpoint::poll_news) until `None`, letting the users of the connections
///    named read and write;
/// 3. then [`poll_transmit`](Endpoint::poll_transmit) until `None`;
/// 4. then [`poll_timeout`](Endpoint::poll_timeout).
///
/// Time never goes back from one call to the next. The same calls give the same answers.
pub struct Endpoint {
    connections: Vec<Option<Connection>>,
    /// By [`Address::key`].
    addresses: BTreeMap<u64, ConnId>,
    listeners: BTreeMap<u16, ConnectionSpec>,
    accepted: VecDeque<ConnId>,
    /// Answers to segments that belong to no connection.
    answers: VecDeque<Transmit>,
    parked: Vec<(PathId, Segment)>,
    provisional: Vec<Provisional>,
    shared: Shared,
    /// Connections that may have something to send.
    busy: Vec<ConnId>,
    check: bool,
    violation: Option<String>,
    silence: Silence,
    /// Joins that may still be taken.
    joins: Allowance,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// An endpoint that draws keys, random numbers and initial sequence numbers from `entropy`.
    #[must_use]
    pub fn new(entropy: Box<dyn Entropy>) -> Endpoint {
        Endpoint {
            connections: Vec::new(),
            addresses: BTreeMap::new(),
            listeners: BTreeMap::new(),
            accepted: VecDeque::new(),
            answers: VecDeque::new(),
            parked: Vec::new(),
            provisional: Vec::new(),
            shared: Shared::new(entropy),
            busy: Vec::new(),
            check: false,
            violation: None,
            silence: Silence::default(),
            joins: Allowance::default(),
        }
    }

    /// Which events are recorded, for [`Endpoint::swap_events`].
    pub fn record_events(&mut self, detail: Detail) {
        self.shared.log.detail = detail;
    }

    /// Verifies the invariants after every call; see [`Endpoint::violation`].
    pub fn check_invariants(&mut self, on: bool) {
        self.check = on;
    }

    /// The first violation of an invariant, in words.
    #[must_use]
    pub fn violation(&self) -> Option<&str> {
        self.violation.as_deref()
    }

    /// The number of a listening host's address: the one that it has, or the next free one. Number 0
    /// belongs to the address that clients dial. `None` where all numbers are taken.
    pub fn number_address(&mut self, address: IpAddr) -> Option<ServerAddress> {
        self.shared.directory.number(address)
    }

    /// The address with a number; `None` for number 0, which the driver knows, and for those not
    /// given yet.
    #[must_use]
    pub fn address(&self, number: ServerAddress) -> Option<IpAddr> {
        self.shared.directory.address(number)
    }

    /// Accepts connections to `port`, each made from a copy of `spec`.
    pub fn listen(&mut self, port: u16, spec: ConnectionSpec) {
        self.listeners.insert(port, spec);
    }

    /// Dials `port` at the other end of the spec's first path. A spec without a path gives a
    /// connection that has failed.
    pub fn connect(&mut self, now: Time, port: u16, spec: ConnectionSpec) -> ConnId {
        let path = spec.paths.first().map_or(PathId(0), |config| config.path);
        let local_port = self.with_context(now, |ctx| ctx.take_port());
        let server = ServerAddress::default();
        let address = Address { path, server, local_port, remote_port: port };
        let opening = Opening::Active { address };
        if !spec.config.multipath || !self.silence.holds(now) {
            return self.open(now, spec, &opening);
        }
        let mut spec = spec;
        spec.config.multipath = false;
        let id = self.open(now, spec, &opening);
        self.with(now, id, |conn, ctx| conn.remember_silence(ctx));
        id
    }

    #[cold]
    fn open(&mut self, now: Time, spec: ConnectionSpec, opening: &Opening<'_>) -> ConnId {
        let id = ConnId(self.connections.len() as u32);
        let conn = self.with_context(now, |ctx| {
            let key = ctx.unique_key();
            Connection::open(spec, key, opening, ctx)
        });
        self.shared.tokens.insert(conn.token(), id);
        self.connections.push(Some(conn));
        self.settle(id);
        id
    }

    fn with_context<R>(&mut self, now: Time, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
        let mut ctx = self.shared.context(now, ConnId(self.connections.len() as u32));
        f(&mut ctx)
    }

    /// Calls `f` with a connection, then brings the endpoint's books up to date.
    fn with<R>(
        &mut self,
        now: Time,
        id: ConnId,
        f: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let conn = self.connections.get_mut(id.0 as usize)?.as_mut()?;
        let mut ctx = self.shared.context(now, id);
        let result = f(conn, &mut ctx);
        conn.on_touched();
        let changed = conn.take_changed();
        if changed && let Some(swallowed) = conn.take_verdict() {
            self.silence.learn(now, swallowed, conn.spec.config.plain_for);
        }
        if self.check && self.violation.is_none() {
            self.violation = conn.violation();
        }
        if changed {
            self.settle(id);
        } else if !self.busy.contains(&id) {
            self.busy.push(id);
        }
        Some(result)
    }

    /// Registers the addresses and the token that a connection has now.
    #[inline(never)]
    fn settle(&mut self, id: ConnId) {
        if !self.busy.contains(&id) {
            self.busy.push(id);
        }
        let Some(slot) = self.connections.get_mut(id.0 as usize) else { return };
        self.addresses.retain(|_, owner| *owner != id);
        self.shared.tokens.retain(|_, owner| *owner != id);
        // A handshake that a peer began and gave up: nobody has heard of the connection.
        if slot.as_ref().is_some_and(Connection::is_stillborn) {
            *slot = None;
        }
        let Some(conn) = slot else { return };
        for address in conn.open_addresses() {
            self.addresses.insert(address.key(), id);
        }
        self.shared.tokens.insert(conn.token(), id);
    }

    /// Takes in a segment that arrived on `path`.
    pub fn handle(&mut self, now: Time, path: PathId, segment: &Segment) {
        let address = Address::of_arrival(path, segment);
        let opens = segment.flags.has(Flags::SYN)
            && !segment.flags.has(Flags::ACK)
            && !segment.flags.has(Flags::RST);
        let known = self.addresses.get(&address.key()).copied();
        if opens && let Some(id) = known {
            let left = self.with(now, id, |conn, _| conn.leave_time_wait(address, segment));
            if let Some(after) = left.flatten() {
                return self.on_syn(now, address, segment, Some(after));
            }
        }
        if let Some(id) = known {
            let accepted = self.with(now, id, |conn, ctx| {
                let waited = !conn.is_client() && conn.state() == ConnectionState::Connecting;
                if let Some(index) = conn.find(address) {
                    conn.handle(ctx, index, segment);
                }
                // The peer may have no data: its end can come with the last ACK of the handshake.
                let settled = [ConnectionState::Connecting, ConnectionState::Failed];
                waited && !settled.contains(&conn.state())
            });
            if accepted == Some(true) {
                self.accepted.push_back(id);
                self.unpark(now, id);
            }
            return;
        }
        if let Some(early) = self.provisional.iter_mut().find(|early| early.address == address) {
            if segment.flags.has(Flags::RST) {
                // The client has given it up.
                self.provisional.retain(|early| early.address != address);
            } else if segment.flags.has(Flags::SYN) {
                // The client did not get our SYN/ACK.
                let Some(spec) = self.listeners.get(&address.local_port) else { return };
                self.answers.push_back(early.syn_ack(spec, now));
            } else if early.answer.is_none() {
                early.answer = Some(segment.clone());
            } else {
                // The proof comes again, and the connection that it is for has not come: its last
                // ACK was lost, and the client has to know.
                self.provisional.retain(|early| early.address != address);
                self.reset(address, segment, None);
            }
        } else if segment.flags.has(Flags::RST) {
            // Nothing to reset.
        } else if segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK) {
            self.on_syn(now, address, segment, None);
        } else {
            self.reset(address, segment, None);
        }
    }

    /// The next segment to send, if there is any.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        while let Some(id) = self.busy.last().copied() {
            let transmit = self.poll_connection(now, id);
            if transmit.is_some() {
                return transmit;
            }
            self.busy.pop();
        }
        None
    }

    fn poll_connection(&mut self, now: Time, id: ConnId) -> Option<Transmit> {
        let conn = self.connections.get_mut(id.0 as usize)?.as_mut()?;
        let mut ctx = self.shared.context(now, id);
        let transmit = conn.poll_transmit(&mut ctx);
        if self.check
            && self.violation.is_none()
            && transmit.as_ref().is_some_and(|sent| !sent.segment.options.fits())
        {
            self.violation = Some(String::from("the options of a segment exceed 40 bytes"));
        }
        if self.check && self.violation.is_none() {
            self.violation = conn.violation();
        }
        if conn.take_changed() {
            self.settle(id);
        }
        transmit
    }

    /// Takes back a segment of [`Endpoint::poll_transmit`] that the driver has no more use for, so
    /// that the next one needs no allocation. Drivers may do without.
    pub fn recycle(&mut self, segment: Box<Segment>) {
        self.shared.recycle(segment);
    }

    /// A segment that carried a report, with `payload` bytes of data, leaves the host at `departs`.
    pub fn on_departure(&mut self, now: Time, report: Report, payload: u32, departs: Time) {
        let conn = self.connections.get_mut(report.conn.0 as usize).and_then(Option::as_mut);
        if let Some(conn) = conn {
            conn.on_departure(now, report.subflow, payload, departs);
        }
    }

    /// When [`Endpoint::handle_timeout`] is to be called; [`Time::NEVER`] where nothing is awaited.
    #[must_use]
    pub fn poll_timeout(&self) -> Time {
        let conns = self.connections.iter().flatten();
        conns.map(Connection::poll_timeout).min().unwrap_or(Time::NEVER)
    }

    /// Expires the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        for index in 0..self.connections.len() {
            let due =
                self.connections[index].as_ref().is_some_and(|conn| conn.poll_timeout() <= now);
            if due {
                self.with(now, ConnId(index as u32), |conn, ctx| conn.handle_timeout(ctx));
            }
        }
    }

    /// A connection that a peer opened and that can be used.
    pub fn poll_accept(&mut self) -> Option<ConnId> {
        self.accepted.pop_front()
    }

    /// A connection of which something is to be learnt: its state, data to read, room to write,
    /// data acknowledged.
    pub fn poll_news(&mut self) -> Option<ConnId> {
        self.connections
            .iter_mut()
            .enumerate()
            .find_map(|(index, conn)| conn.as_mut()?.take_news().then_some(ConnId(index as u32)))
    }

    /// Whether events were recorded since [`Endpoint::swap_events`] was last called.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.shared.log.events.is_empty()
    }

    /// Swaps the events recorded since the last call, in order, each with its connection, for an
    /// empty list, whose memory is used again.
    pub fn swap_events(&mut self, events: &mut Vec<(ConnId, Event)>) {
        events.clear();
        core::mem::swap(&mut self.shared.log.events, events);
    }

    /// Path, local port and remote port of every open subflow of a connection.
    #[must_use]
    pub fn ports(&self, id: ConnId) -> Option<Vec<(PathId, u16, u16)>> {
        let addresses = self.connection(id)?.open_addresses();
        Some(addresses.map(|at| (at.path, at.local_port, at.remote_port)).collect())
    }

    fn connection(&self, id: ConnId) -> Option<&Connection> {
        self.connections.get(id.0 as usize)?.as_ref()
    }

    /// The port at which a connection's server listens.
    #[must_use]
    pub fn service_port(&self, id: ConnId) -> Option<u16> {
        self.connection(id)?.service_port()
    }

    /// State of a connection; one that does not exist has failed.
    #[must_use]
    pub fn state(&self, id: ConnId) -> ConnectionState {
        self.connection(id).map_or(ConnectionState::Failed, Connection::state)
    }

    /// Bytes in order that wait for the reader.
    #[must_use]
    pub fn readable(&self, id: ConnId) -> u64 {
        self.connection(id).map_or(0, Connection::readable)
    }

    /// Bytes written and not DATA_ACKed.
    #[must_use]
    pub fn unacked(&self, id: ConnId) -> u64 {
        self.connection(id).map_or(0, Connection::unacked)
    }

    /// Payload bytes of a full segment.
    #[must_use]
    pub fn segment_payload(&self, id: ConnId) -> u64 {
        self.connection(id).map_or(0, Connection::mss)
    }

    /// How far a connection's data has come: the first DSN of ours that the peer has not
    /// DATA_ACKed, and the first of the peer's that has not arrived in order. A peer's first
    /// number is never above the other end's second.
    #[must_use]
    pub fn progress(&self, id: ConnId) -> Option<(u64, u64)> {
        self.connection(id).map(Connection::progress)
    }

    /// Whether every connection has taken leave on all its subflows (those in TIME-WAIT count as
    /// gone).
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.connections.iter().flatten().all(Connection::is_over)
    }

    /// Writes `len` bytes of the known pattern (the byte at position n of the stream is position
    /// n of the pattern). Returns how many the send buffer took.
    pub fn write(&mut self, now: Time, id: ConnId, len: u64) -> u64 {
        self.with(now, id, |conn, _| conn.write_pattern(len)).unwrap_or(0)
    }

    /// Writes real bytes. Returns how many the send buffer took.
    pub fn write_bytes(&mut self, now: Time, id: ConnId, bytes: &[u8]) -> usize {
        self.with(now, id, |conn, _| conn.write_bytes(bytes)).unwrap_or(0)
    }

    /// Reads up to `max` bytes without looking at them. Returns how many there were.
    pub fn skip(&mut self, now: Time, id: ConnId, max: u64) -> u64 {
        self.with(now, id, |conn, _| conn.skip(max)).unwrap_or(0)
    }

    /// Reads real bytes into `buffer`. Returns how many there were.
    pub fn read(&mut self, now: Time, id: ConnId, buffer: &mut [u8]) -> usize {
        self.with(now, id, |conn, _| conn.read_bytes(buffer)).unwrap_or(0)
    }

    /// No more data from this end; what was written is still delivered.
    pub fn finish(&mut self, now: Time, id: ConnId) {
        self.with(now, id, |conn, _| conn.finish());
    }

    /// Ends the connection at once: what was not delivered is lost at both ends. The peer is told
    /// by MP_FASTCLOSE (RFC 8684 section 3.5), by a RST in plain TCP.
    pub fn abort(&mut self, now: Time, id: ConnId) {
        self.with(now, id, |conn, ctx| conn.abort(ctx));
    }

    /// Tells the client of a connection of a further address of this end: it may join it. False
    /// where it cannot be told: the connection is plain TCP or over, or this end is the client.
    pub fn announce(&mut self, now: Time, id: ConnId, address: IpAddr, port: Option<u16>) -> bool {
        self.with(now, id, |conn, ctx| conn.announce(ctx, address, port)).unwrap_or(false)
    }

    /// One of the addresses that this end announced to the client of a connection is gone: the
    /// client is told (REMOVE_ADDR), and the subflows there are closed. False where it was not
    /// announced.
    pub fn withdraw(&mut self, now: Time, id: ConnId, address: IpAddr) -> bool {
        self.with(now, id, |conn, ctx| conn.withdraw(ctx, address)).unwrap_or(false)
    }

    /// This host's own address on `path` is gone: its connections as a client close their subflows
    /// there and tell their peers (REMOVE_ADDR) on others.
    pub fn lose_address(&mut self, now: Time, path: PathId) {
        self.with_all(now, |conn, ctx| conn.lose_address(ctx, path));
    }

    /// This host has an address on `path` again: its connections as a client open their subflows
    /// there anew.
    pub fn regain_address(&mut self, now: Time, path: PathId) {
        self.with_all(now, |conn, ctx| conn.regain_address(ctx, path));
    }

    fn with_all(&mut self, now: Time, mut f: impl FnMut(&mut Connection, &mut Context<'_>)) {
        for index in 0..self.connections.len() {
            self.with(now, ConnId(index as u32), &mut f);
        }
    }

    /// State and counters of a connection.
    #[must_use]
    pub fn stats(&self, id: ConnId) -> Option<ConnectionStats> {
        self.connections.get(id.0 as usize)?.as_ref().map(Connection::stats)
    }

    /// While `on`, segments go to the subflows in strict turn; off, a fresh scheduler takes over.
    pub fn warm_up(&mut self, now: Time, id: ConnId, on: bool) {
        self.with(now, id, |conn, _| conn.set_warm_up(on));
    }

    /// Sets every congestion window of a connection to its initial value; thresholds stay.
    pub fn reset_windows(&mut self, now: Time, id: ConnId) {
        self.with(now, id, |conn, ctx| conn.reset_windows(ctx));
    }
}
