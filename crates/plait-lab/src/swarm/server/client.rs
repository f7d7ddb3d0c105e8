//! Clients of a simulated server: real endpoints, each with its own plan.

mod visited;
mod wait;

pub(super) use visited::{Outcome, Visited};
pub(super) use wait::Wait;

use super::case::{Group, Visit};
use super::service::{REQUEST, answer_salt, fill, is_pattern, request};
use super::world::Seeded;
use plait_base::{ConnId, PathId, RandomStream, ServerAddress, Span, Time};
use plait_core::{ConnectionSpec, ConnectionState, Endpoint, PathConfig};
use plait_wire::codec::{self, Headers, TcpChecksum, Verify};
use plait_wire::{Payload, Segment};
use std::net::IpAddr;
use std::sync::Arc;
use visited::{Attempt, Past};

/// The address and the port of the server.
pub(super) const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
pub(super) const PORT: u16 = 80;
/// Bytes of one read or write.
const PIECE: usize = 16 << 10;
/// Idle time after which a client probes the server.
const KEEP_ALIVE: Span = Span::from_secs(5);
/// User timeout of a client.
const USER_TIMEOUT: Span = Span::from_secs(40);

/// A client.
pub(super) struct Client {
    pub(super) endpoint: Endpoint,
    pub(super) addresses: Vec<IpAddr>,
    plan: Plan,
    /// Its current connection, if it has one.
    conn: Option<ConnId>,
    exchange: Exchange,
    attempt: Attempt,
    wait: Wait,
    /// Its earlier connections.
    past: Past,
    /// The server accepts no further connections.
    drained: bool,
    /// Its host is silent.
    silent: bool,
    /// Time of its next turn, as scheduled in the agenda.
    pub(super) wake: Time,
    /// Error text if it read bytes that the service has not sent.
    pub(super) wrong: Option<String>,
    spare: Spare,
}

/// The plan of a client.
struct Plan {
    seed: u64,
    place: usize,
    group: Group,
    spec: Arc<ConnectionSpec>,
}

/// Buffers for reuse.
struct Spare {
    segment: Segment,
    piece: Vec<u8>,
}

/// The bytes of the current connection, both ways.
#[derive(Default)]
struct Exchange {
    salt: u64,
    sends: u64,
    gets: u64,
    /// Bytes so far. `sent` includes the request.
    sent: u64,
    received: u64,
    /// The client has closed its sending side.
    finished: bool,
}

impl Client {
    pub(super) fn new(
        seed: u64,
        place: usize,
        addresses: Vec<IpAddr>,
        group: Group,
        mut spec: ConnectionSpec,
        wait: Wait,
    ) -> Client {
        let name = format!("client {place}");
        let mut endpoint =
            Endpoint::new(Box::new(Seeded(RandomStream::new(seed, &["server swarm", &name]))));
        endpoint.draw_ports();
        let path = |at: usize| PathConfig::new(PathId(at as u32));
        spec.paths = (0..addresses.len()).map(path).collect();
        spec.config = spec.config.with(|it| {
            it.multipath = group.multipath;
            it.timeouts.keep_alive = Some(KEEP_ALIVE);
            it.timeouts.user = Some(USER_TIMEOUT);
        });
        Client {
            endpoint,
            addresses,
            plan: Plan { seed, place, group, spec: Arc::new(spec) },
            conn: None,
            exchange: Exchange::default(),
            attempt: Attempt::default(),
            wait,
            past: Past::default(),
            drained: false,
            silent: false,
            wake: Time::NEVER,
            wrong: None,
            spare: Spare { segment: Segment::default(), piece: vec![0; PIECE] },
        }
    }

    /// Returns true if it has completed all of its connections.
    pub(super) fn is_done(&self) -> bool {
        let over = self.past.visited.len() >= self.plan.group.times as usize;
        self.silent || over || (self.conn.is_none() && self.wait.late)
    }

    /// Returns the time that connections waited to be accepted, except the first established
    /// handshake.
    pub(super) fn kept_out(&self) -> Span {
        self.wait.kept_out
    }

    /// Returns the time of its next turn.
    pub(super) fn next(&self) -> Time {
        match (self.silent, self.conn) {
            (true, _) => Time::NEVER,
            (_, Some(_)) => self.endpoint.poll_timeout().min(self.wait.patience),
            (_, None) => self.endpoint.poll_timeout(),
        }
    }

    /// Returns the connections that were not served and have no excuse.
    pub(super) fn unserved(&self) -> impl Iterator<Item = &Visited> {
        let stays = self.plan.group.visit == Visit::Stay;
        self.past.visited.iter().filter(move |it| match it.outcome {
            Outcome::Failed => !it.excused,
            Outcome::GaveUp => !stays,
            Outcome::Complete | Outcome::Left => false,
        })
    }

    /// Returns the complete connections that began at this time or later.
    pub(super) fn complete_since(&self, since: Time) -> impl Iterator<Item = &Visited> {
        let complete = move |it: &&Visited| it.outcome == Outcome::Complete && it.began >= since;
        self.past.visited.iter().filter(complete)
    }

    /// Returns its state, for a report.
    pub(super) fn state(&self) -> String {
        let state = self.conn.and_then(|conn| self.endpoint.state(conn).ok());
        let Plan { place, group, .. } = &self.plan;
        let Exchange { sent, sends, received, gets, .. } = &self.exchange;
        format!(
            "client {place} ({}) {state:?}: sent {sent} of {sends}, received {received} of {gets}",
            group.visit.name()
        )
    }

    /// Begins the next connection.
    pub(super) fn begin(&mut self, now: Time) {
        let bytes = self.plan.group.bytes;
        (self.exchange.sends, self.exchange.gets) = match self.plan.group.visit {
            Visit::Upload => (bytes, 1),
            Visit::Both => (bytes, bytes),
            _ => (0, bytes),
        };
        let number = (self.plan.place as u64) << 16 | self.past.visited.len() as u64;
        self.exchange.salt =
            self.plan.seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(number);
        (self.exchange.sent, self.exchange.received, self.exchange.finished) = (0, 0, false);
        (self.attempt.established, self.attempt.began, self.wait.made_good) = (false, now, now);
        (self.attempt.excused, self.attempt.forgotten) = (self.drained, false);
        self.attempt.ports.clear();
        self.attempt.accepted.clear();
        self.conn = self.endpoint.connect(now, PORT, Arc::clone(&self.plan.spec)).ok();
    }

    /// Records that the server has accepted a connection of this client from `port`. If the port is
    /// `None`, it was the current connection.
    pub(super) fn accept(&mut self, now: Time, port: Option<u16>) {
        self.attempt.accepted.extend(port.or(self.attempt.ports.first().copied()));
        if self.attempt.is_accepted() {
            self.wait.make_good(now);
        }
    }

    /// Returns true if one of its connections was established.
    fn has_been_in(&self) -> bool {
        self.attempt.established || self.past.visited.iter().any(|it| it.established)
    }

    /// Records the ports of the current attempt.
    fn note_ports(&mut self, conn: ConnId) {
        let Some(ports) = self.endpoint.ports(conn).filter(|it| !it.is_empty()) else { return };
        let was_accepted = self.attempt.is_accepted();
        self.attempt.ports.clear();
        self.attempt.ports.extend(ports.iter().map(|it| it.local));
        // A server that does not know the connection yet refuses its join. The client then redials,
        // and the server may have stopped listening by then.
        let connects = self.endpoint.state(conn) == Ok(ConnectionState::Connecting);
        // The accepted subflow may be closed while the connection continues on others.
        if was_accepted && !connects && !self.attempt.is_accepted() {
            self.attempt.accepted.extend(self.attempt.ports.first());
        }
        self.attempt.excused |= self.drained && connects && !self.attempt.is_accepted();
    }

    /// Handles a crash of the server, which has lost the connection.
    pub(super) fn lose(&mut self) {
        (self.attempt.excused, self.attempt.forgotten) = (true, true);
        self.attempt.accepted.clear();
    }

    /// Handles the loss of a RST that the server sent to `port`.
    pub(super) fn miss_reset(&mut self, port: u16) {
        self.attempt.forgotten |= self.attempt.ports.contains(&port);
    }

    /// Handles that the server accepts no further connections.
    pub(super) fn drain(&mut self) {
        self.drained = true;
        self.attempt.excused |= !self.attempt.is_accepted();
    }

    /// Removes its second address. Plain TCP does not survive the loss of its address. The current
    /// connection may then fail, and the FIN of a complete one may be lost for good.
    pub(super) fn lose_address(&mut self, now: Time) {
        let over = [ConnectionState::Closed, ConnectionState::Failed];
        let endpoint = &self.endpoint;
        self.past.ends.retain(|(conn, _)| !over.contains(&state_of(endpoint, *conn)));
        self.endpoint.lose_address(now, PathId(1));
        for (conn, at) in &self.past.ends {
            self.past.visited[*at].end_lost |=
                state_of(&self.endpoint, *conn) == ConnectionState::Failed;
        }
        let stats = self.conn.and_then(|conn| self.endpoint.stats(conn));
        self.attempt.excused |= stats.is_some_and(|it| {
            it.state == ConnectionState::Failed && !it.multipath && self.attempt.established
        });
    }

    /// Restores its second address.
    pub(super) fn regain_address(&mut self, now: Time) {
        self.endpoint.regain_address(now, PathId(1));
    }

    /// Handles a packet.
    pub(super) fn take(&mut self, now: Time, bytes: &[u8]) {
        let Ok(packet) = codec::parse_into(bytes, Verify::Checksum, &mut self.spare.segment) else {
            return;
        };
        let Headers { src, dst, .. } = packet.headers;
        let Some(path) = self.addresses.iter().position(|it| *it == dst) else { return };
        if src != SERVER || self.silent {
            return;
        }
        self.spare.segment.server = ServerAddress(0);
        if !packet.payload.is_empty() {
            self.spare.segment.payload = Payload::from_bytes(packet.payload);
        }
        self.endpoint.handle_from(now, src, PathId(path as u32), &self.spare.segment);
    }

    /// Runs all due work, and adds the packets to send to `out`.
    pub(super) fn turn(&mut self, now: Time, out: &mut Vec<Vec<u8>>) {
        if self.silent {
            return;
        }
        if self.endpoint.poll_timeout() <= now {
            self.endpoint.handle_timeout(now);
        }
        while self.endpoint.poll_news().is_some() {}
        self.go_on(now);
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            let Some(src) = self.addresses.get(transmit.path.index()) else { continue };
            let mut bytes = Vec::new();
            let headers = Headers::new(*src, SERVER);
            if codec::encode(&headers, &transmit.segment, TcpChecksum::Full, &mut bytes).is_ok() {
                out.push(bytes);
            }
            self.endpoint.recycle(transmit.segment);
        }
    }

    /// Writes and reads as much as possible, and ends the connection when it is done.
    fn go_on(&mut self, now: Time) {
        let Some(conn) = self.conn else { return };
        self.note_ports(conn);
        self.write(now, conn);
        self.read(now, conn);
        let state = state_of(&self.endpoint, conn);
        let without = [ConnectionState::Connecting, ConnectionState::Failed];
        // If the server crashed during the handshake, it resets the connection, and the client
        // redials.
        self.attempt.established &= state != ConnectionState::Connecting;
        if !self.attempt.established && !without.contains(&state) {
            let first = !self.has_been_in();
            self.attempt.established = true;
            if first {
                self.wait.patience = self.wait.patience.max(now + self.wait.allowance);
                self.wait.made_good = now;
            } else {
                self.wait.make_good(now);
            }
        }
        if state == ConnectionState::Failed {
            if self.has_been_in() && !self.attempt.is_accepted() {
                self.wait.make_good(now);
            }
            return self.leave(now, conn, Outcome::Failed);
        }
        if now >= self.wait.patience {
            self.endpoint.abort(now, conn).ok();
            return self.leave(now, conn, Outcome::GaveUp);
        }
        let half = self.exchange.received + self.exchange.sent
            >= (self.exchange.sends + self.exchange.gets) / 2;
        match self.plan.group.visit {
            Visit::Abort if half && self.attempt.established => {
                self.endpoint.abort(now, conn).ok();
                return self.leave(now, conn, Outcome::Left);
            }
            Visit::Vanish if half && self.attempt.established => {
                self.silent = true;
                return;
            }
            _ => {}
        }
        let peer_done = matches!(state, ConnectionState::PeerDone | ConnectionState::Closed);
        let stays = self.plan.group.visit == Visit::Stay;
        let waits = stays || (self.plan.place % 2 == 1 && !peer_done);
        if !self.exchange.finished
            && !waits
            && self.exchange.sent == self.exchange.sends + REQUEST as u64
        {
            self.exchange.finished = true;
            self.endpoint.finish(now, conn).ok();
        }
        if peer_done && self.exchange.finished && self.endpoint.unacked(conn) == Ok(0) {
            let complete = self.exchange.received == self.exchange.gets;
            self.leave(now, conn, if complete { Outcome::Complete } else { Outcome::Failed });
        }
    }

    fn write(&mut self, now: Time, conn: ConnId) {
        let head = request(self.exchange.salt, self.exchange.sends, self.exchange.gets);
        let all = self.exchange.sends + REQUEST as u64;
        while self.exchange.sent < all {
            let count = if self.exchange.sent < REQUEST as u64 {
                let rest = &head[self.exchange.sent as usize..];
                self.endpoint.write_bytes(now, conn, rest).unwrap_or(0)
            } else {
                let at = self.exchange.sent - REQUEST as u64;
                let len = (self.exchange.sends - at).min(PIECE as u64) as usize;
                fill(self.exchange.salt, at, &mut self.spare.piece[..len]);
                self.endpoint.write_bytes(now, conn, &self.spare.piece[..len]).unwrap_or(0)
            };
            self.exchange.sent += count as u64;
            if count == 0 {
                return;
            }
        }
    }

    fn read(&mut self, now: Time, conn: ConnId) {
        loop {
            let count = self.endpoint.read(now, conn, &mut self.spare.piece).unwrap_or(0);
            if count == 0 {
                return;
            }
            let salt = answer_salt(self.exchange.salt);
            if !is_pattern(salt, self.exchange.received, &self.spare.piece[..count]) {
                self.wrong = Some(format!("{} got other bytes", self.state()));
            }
            self.exchange.received += count as u64;
            if self.exchange.received > self.exchange.gets {
                self.wrong = Some(format!("{} got too much", self.state()));
            }
        }
    }

    fn leave(&mut self, now: Time, conn: ConnId, outcome: Outcome) {
        let plain = self.endpoint.stats(conn).is_some_and(|it| !it.multipath);
        if plain && outcome == Outcome::Complete {
            self.past.ends.push((conn, self.past.visited.len()));
        }
        self.endpoint.release(now, conn).ok();
        self.conn = None;
        let accepted = self.attempt.is_accepted();
        let Attempt { began, established, excused, forgotten, .. } = self.attempt;
        let ended = now;
        self.past.visited.push(Visited {
            outcome,
            began,
            ended,
            established,
            accepted,
            excused,
            forgotten,
            end_lost: false,
        });
        self.wait.late = now >= self.wait.patience;
        if !self.is_done() {
            self.begin(now);
        }
    }
}

/// Returns the state of a connection. A released connection counts as failed.
fn state_of(endpoint: &Endpoint, conn: ConnId) -> ConnectionState {
    endpoint.state(conn).unwrap_or(ConnectionState::Failed)
}
