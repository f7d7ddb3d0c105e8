//! A host's transport: connections by address, listeners, and one wake-up time.

mod addresses;
mod application;
mod arrivals;
mod checks;
mod cookies;

mod ingress;
mod known;
mod lent;
mod memory;
mod mp_capable_blackhole;
mod ordered;
mod path_memory;
mod records;

mod remnants;
mod shrink_idle;
mod wakes;

pub use application::SubflowPorts;
pub use lent::Lent;
pub use memory::MemoryReport;

use crate::conn::Connection;
use crate::context::{Context, Entropy, Shared};
use crate::directory::FIRST_PORT;
use crate::error::Error;
use crate::event::{Detail, Event};
use crate::paths::admission::Allowance;
use crate::paths::early_join::EarlyJoin;
use crate::paths::handshake::Opening;
use crate::paths::remnant::WaitingSubflow;
use crate::prices::Quota;
use crate::segments::{Report, Transmit};
use crate::spec::ConnectionSpec;
use crate::stats::Sizes;
use crate::tcp::address::Address;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use checks::Checks;
use cookies::Cookies;
use core::fmt;
use core::net::IpAddr;
use known::{KnownAddresses, KnownSubflow};
use mp_capable_blackhole::MpCapableBlackhole;
use plait_base::{ConnId, PathId, ServerAddress, SubflowId, Time};
use plait_wire::{Segment, WireSeq};
use records::{Record, Records};
use remnants::Remnants;

/// Largest number of joins that are kept until the third ACK of their connection. Beyond it, the oldest is
/// dropped. Its client repeats it.
const MAX_HELD_JOINS: usize = 256;
/// Largest number of simultaneous joins that are answered before their connection exists.
const MAX_EARLY_JOINS: usize = 16;

/// A join that waits for the third ACK of its connection.
struct HeldJoin {
    conn: ConnId,
    path: PathId,
    syn: Segment,
    since: Time,
}

/// Joins that arrived before the client's key.
#[derive(Default)]
struct EarlyJoins {
    /// Joins to half-open connections.
    held: VecDeque<HeldJoin>,
    /// Joins that were answered; their keys have not arrived yet.
    answered: Vec<EarlyJoin>,
}

/// A host's transport without I/O.
///
/// The driver passes in time and segments, and polls segments and wake-up times:
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
/// The [crate] has an example.
pub struct Endpoint {
    connections: Records,
    /// Subflows in TIME-WAIT or FIN-WAIT-2 of removed connections.
    remnants: Remnants,
    addresses: KnownAddresses,
    listeners: BTreeMap<u16, Arc<ConnectionSpec>>,
    accepted: VecDeque<ConnId>,
    /// Answers to segments that belong to no connection.
    answers: VecDeque<Transmit>,
    early: EarlyJoins,
    shared: Shared,
    checks: Checks,
    mp_capable_blackhole: MpCapableBlackhole,
    /// Joins that may still be accepted.
    joins: Allowance,
    /// Further connections are refused.
    full: bool,
    cookies: Cookies,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Returns an endpoint that draws all random numbers from `entropy`.
    #[must_use]
    pub fn new(entropy: Box<dyn Entropy>) -> Endpoint {
        Endpoint {
            connections: Records::default(),
            remnants: Remnants::default(),
            addresses: KnownAddresses::new(),
            listeners: BTreeMap::new(),
            accepted: VecDeque::new(),
            answers: VecDeque::new(),
            early: EarlyJoins::default(),
            shared: Shared::new(entropy),
            checks: Checks::default(),
            mp_capable_blackhole: MpCapableBlackhole::default(),
            joins: Allowance::default(),
            full: false,
            cookies: Cookies::default(),
        }
    }

    /// Draws the ports of subflows that this end opens at random from now on (RFC 6056). Otherwise
    /// they are taken in turn from the first one on.
    pub fn draw_ports(&mut self) {
        self.shared.draw_ports();
    }

    /// Sets which events are recorded for [`Endpoint::swap_events`].
    pub fn record_events(&mut self, detail: Detail) {
        self.shared.log.detail = detail;
    }

    /// Returns the number of a listening host's address, or gives it the next free one. Number 0 is
    /// that of the address that clients dial. Returns `None` if all numbers are in use.
    pub fn number_address(&mut self, address: IpAddr) -> Option<ServerAddress> {
        self.shared.directory.number(address)
    }

    /// Returns the number of a listening host's address, if it has one.
    #[must_use]
    pub fn number_of(&self, address: IpAddr) -> Option<ServerAddress> {
        self.shared.directory.known(address)
    }

    /// Returns the address with a number; `None` for number 0 and for unassigned numbers.
    #[must_use]
    pub fn address(&self, number: ServerAddress) -> Option<IpAddr> {
        self.shared.directory.address(number)
    }

    /// Sets cost and quota of a path for later subflows, in place of those of its `PathConfig`.
    pub fn set_price(&mut self, path: PathId, cost: u32, quota: Option<Quota>) {
        self.shared.prices.set(path, cost, quota);
    }

    /// Accepts connections to `port`, all created from the shared `spec`.
    pub fn listen(&mut self, port: u16, spec: impl Into<Arc<ConnectionSpec>>) {
        self.listeners.insert(port, spec.into());
    }

    /// Answers SYNs to `port` with a reset. Existing connections still accept joins.
    pub fn stop_listening(&mut self, port: u16) {
        self.listeners.remove(&port);
    }

    /// Dials `port` at the other end of the spec's first path with the lowest cost, or of the one that a
    /// path memory prefers among these. Connections created from one `Arc` share it.
    ///
    /// # Errors
    /// [`Error::NoPath`] if the spec has none.
    pub fn connect(
        &mut self,
        now: Time,
        port: u16,
        spec: impl Into<Arc<ConnectionSpec>>,
    ) -> Result<ConnId, Error> {
        let spec = spec.into();
        let path = self.shared.first_path(now, &spec).ok_or(Error::NoPath)?;
        Ok(self.dial(now, port, spec, path))
    }

    fn dial(
        &mut self,
        now: Time,
        port: u16,
        mut spec: Arc<ConnectionSpec>,
        path: PathId,
    ) -> ConnId {
        let mut address = Address::new(path, ServerAddress::default(), 0, port);
        // Port numbers wrap: skip a port whose last subflow is in TIME-WAIT.
        for _ in FIRST_PORT..=u16::MAX {
            address.local_port = self.with_context(now, |ctx| ctx.take_port());
            if !self.addresses.contains(address.key()) && !self.remnants.contains(address) {
                break;
            }
        }
        let opening = Opening::Active { address };
        if !spec.config.multipath || !self.mp_capable_blackhole.is_active(now) {
            return self.open(now, spec, &opening);
        }
        Arc::make_mut(&mut spec).config.multipath = false;
        let id = self.open(now, spec, &opening);
        self.with(now, id, |conn, ctx| conn.remember_silence(ctx));
        id
    }

    #[cold]
    fn open(&mut self, now: Time, spec: Arc<ConnectionSpec>, opening: &Opening<'_>) -> ConnId {
        let conn = self.with_context(now, |ctx| {
            let key = ctx.unique_key();
            Connection::open(spec, key, opening, ctx)
        });
        self.add(now, conn)
    }

    /// Adds a connection.
    fn add(&mut self, now: Time, conn: Connection) -> ConnId {
        let id = self.connections.add(conn);
        if let Some(mut entry) = self.connections.entry(id) {
            entry.on_touched();
        }
        self.settle(now, id);
        id
    }

    /// Removes a connection without any further segment.
    fn forget(&mut self, id: ConnId) {
        let Some(record) = self.connections.record(id) else { return };
        for address in record.addresses.drain(..) {
            self.addresses.remove(address, id);
        }
        let token = record.token;
        if self.shared.tokens.get(&token) == Some(&id) {
            self.shared.tokens.remove(&token);
        }
        self.connections.remove(id);
        self.early.held.retain(|join| join.conn != id);
        self.checks.forget(id);
    }

    fn with_context<R>(&mut self, now: Time, f: impl FnOnce(&mut Context<'_>) -> R) -> R {
        f(&mut self.shared.context(now, self.connections.next_id()))
    }

    /// Calls `f` with a connection, then updates the endpoint's tables.
    fn with<R>(
        &mut self,
        now: Time,
        id: ConnId,
        f: impl FnOnce(&mut Connection, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let mut entry = self.connections.entry(id)?;
        let conn = entry.conn();
        let result = f(conn, &mut self.shared.context(now, id));
        if conn.data().is_released() {
            conn.discard();
        }
        let sends = conn.on_touched();
        let changed = conn.notices().take_changed();
        if changed && let Some(swallowed) = conn.take_verdict() {
            let first = conn.paths().spec.config.fallback.plain_for;
            self.mp_capable_blackhole.learn(now, swallowed, first);
        }
        if self.checks.are_due() {
            self.checks.note(conn.violation());
        }
        entry.on_input(sends, &mut self.shared.context(now, id));
        if changed {
            self.settle(now, id);
        }
        Some(result)
    }

    /// Registers the current addresses and token of a connection.
    #[inline(never)]
    fn settle(&mut self, now: Time, id: ConnId) {
        let Some(record) = self.connections.record(id) else { return };
        let Record { conn, addresses, token, .. } = record;
        for address in addresses.drain(..) {
            self.addresses.remove(address, id);
        }
        self.shared.tokens.remove(token);
        *token = conn.data().keys().local.token();
        for (subflow, address) in conn.paths().addresses_in_use() {
            addresses.push(address.key());
            self.addresses.insert(address.key(), KnownSubflow { conn: id, subflow });
        }
        self.shared.tokens.insert(*token, id);
        if conn.only_waits() {
            self.reduce(now, id);
            return;
        }
        let (token, gone) = (*token, conn.is_gone());
        if gone && self.connections.let_go(id) {
            self.shared.tokens.remove(&token);
            self.early.held.retain(|join| join.conn != id);
            self.checks.forget(id);
            return;
        }
        self.keep_numbers(id);
    }

    /// Reserves the numbers of paths with ended subflows while the connection exists.
    fn keep_numbers(&mut self, id: ConnId) {
        let Some(Record { conn, addresses, .. }) = self.connections.record(id) else { return };
        for path in conn.paths().subflows().closed_paths() {
            let key = Address::kept_key(path, id);
            addresses.push(key);
            self.addresses.insert(key, KnownSubflow { conn: id, subflow: SubflowId::FIRST });
        }
    }

    /// Replaces a connection by its remnants.
    #[cold]
    fn reduce(&mut self, now: Time, id: ConnId) {
        let Some(record) = self.connections.record(id) else { return };
        let remnants = record.conn.remnants(&mut self.shared.context(now, id));
        self.forget(id);
        for WaitingSubflow { address, remnant, answer } in remnants {
            self.answers.extend(answer);
            if self.remnants.add(address, remnant) {
                self.shared.counters.on_time_wait_recycled();
            }
        }
    }

    /// Returns false if there is certainly no segment to send.
    #[must_use]
    #[inline]
    pub fn may_transmit(&self) -> bool {
        !self.answers.is_empty() || self.connections.busiest().is_some()
    }

    /// Returns the next segment to send, if there is any.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer);
        }
        let mut transmit = None;
        while transmit.is_none()
            && let Some(id) = self.connections.busiest()
        {
            transmit = self.poll_connection(now, id);
        }
        transmit
    }

    /// Returns the next segment of the first busy connection.
    #[inline(always)]
    fn poll_connection(&mut self, now: Time, id: ConnId) -> Option<Transmit> {
        let Some(mut entry) = self.connections.entry(id) else {
            self.connections.forget_busiest();
            return None;
        };
        let conn = entry.conn();
        let mut ctx = self.shared.context(now, id);
        let transmit = conn.poll_transmit(&mut ctx);
        let changed = conn.notices().take_changed();
        let over = transmit.is_none() || conn.is_spent();
        debug_assert!(!conn.is_spent() || conn.poll_transmit(&mut ctx).is_none());
        entry.on_news();
        if over {
            entry.on_idle();
        }
        if self.checks.are_on() {
            self.audit_sent(id, transmit.as_ref());
        }
        if changed {
            self.settle(now, id);
        }
        transmit
    }

    /// Recycles a segment of [`Endpoint::poll_transmit`], so that the next one needs no allocation.
    /// Calling it is optional.
    #[inline]
    pub fn recycle(&mut self, segment: Box<Segment>) {
        self.shared.recycle(segment);
    }

    /// Notes that a segment with a report and `payload` bytes of data leaves the host at `departs`.
    pub fn on_departure(&mut self, now: Time, report: Report, payload: u32, departs: Time) {
        if let Some(conn) = self.connections.find_mut(report.conn) {
            conn.on_departure(now, report.subflow, payload, departs);
            self.connections.on_timers(report.conn);
        }
    }

    /// Processes a router's message that a packet was too long for the next hop. `mtu` is the next
    /// hop's limit in bytes of IP, counted with a header of 20. `segment` holds the ports, sequence
    /// number and server address number of the quoted segment, which was sent on `path`.
    ///
    /// If that segment is in flight (RFC 5927 section 4.1) and `mtu` is plausible, later segments
    /// are shorter (RFC 1191, RFC 8201). Otherwise the message is counted and ignored.
    pub fn on_too_big(&mut self, now: Time, path: PathId, segment: &Segment, mtu: u32) {
        let Segment { src_port: local_port, dst_port: remote_port, server, seq, .. } = *segment;
        let address = Address::new(path, server, local_port, remote_port);
        let known = self.addresses.find(address.key());
        let taken = known.and_then(|KnownSubflow { conn: id, subflow }| {
            self.with(now, id, |conn, ctx| {
                let subflow = conn.paths().subflows().find(address, subflow)?;
                Some(conn.on_too_big(ctx, subflow, WireSeq(seq), mtu))
            })
        });
        self.shared.counters.on_too_big(taken.flatten() == Some(true));
    }

    /// Returns the counters of path MTU detection.
    #[must_use]
    pub const fn sizes(&self) -> Sizes {
        self.shared.counters.sizes()
    }

    /// Returns when to call [`Endpoint::handle_timeout`]; [`Time::NEVER`] if no timer is set. The
    /// time is never late. It is early if a timer was postponed; the call then does nothing.
    #[must_use]
    #[inline]
    pub fn poll_timeout(&self) -> Time {
        self.connections.next_wake().min(self.remnants.next())
    }

    /// Expires the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.remnants.expire(now);
        let due = self.connections.take_due(now);
        for id in &due {
            self.with(now, *id, |conn, ctx| conn.handle_timeout(ctx));
        }
        self.connections.keep_due(due);
    }

    /// Returns the next connection that a peer opened and that can be used.
    pub fn poll_accept(&mut self) -> Option<ConnId> {
        self.accepted.pop_front()
    }

    /// Returns the next connection with news: its state, data to read, room to write or acknowledged data.
    pub fn poll_news(&mut self) -> Option<ConnId> {
        self.connections.take_news()
    }

    /// Returns true if [`Endpoint::poll_accept`] or [`Endpoint::poll_news`] may return a connection.
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.accepted.is_empty() || self.connections.have_news()
    }

    /// Returns true if events were recorded since the last [`Endpoint::swap_events`].
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.shared.log.events.is_empty()
    }

    /// Swaps the events recorded since the last call, in order and each with its connection, for an
    /// empty list. The memory of that list is reused.
    pub fn swap_events(&mut self, events: &mut Vec<(ConnId, Event)>) {
        events.clear();
        core::mem::swap(&mut self.shared.log.events, events);
    }

    fn connection(&self, id: ConnId) -> Option<&Connection> {
        self.connections.find(id)
    }
}
