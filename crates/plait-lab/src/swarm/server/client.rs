//! Clients of a simulated server: real endpoints, each with its own plan.

use super::case::{Group, Visit};
use super::service::{REQUEST, answer_salt, fill, is_pattern, request};
use super::world::Seeded;
use plait_base::{ConnId, PathId, RandomStream, ServerAddress, Span, Time};
use plait_core::{Config, ConnectionSpec, ConnectionState, Endpoint, PathConfig};
use plait_wire::codec::{self, Headers, TcpChecksum, Verify};
use plait_wire::{Payload, Segment};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// The address and the port of the server.
pub(super) const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
pub(super) const PORT: u16 = 80;
/// Bytes that are read or written at a time.
const PIECE: usize = 16 << 10;
/// A client asks after so long whether a silent server is still there.
const KEEP_ALIVE: Span = Span::from_secs(5);
/// The first timeout of a SYN (RFC 6298, section 2.1): an answer that takes longer came to a repetition.
const SYN_TIMEOUT: Span = Span::from_secs(1);
/// A client gives up so long after it has begun to wait for an answer.
const USER_TIMEOUT: Span = Span::from_secs(40);

/// What came of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// All bytes went and came.
    Complete,
    /// The connection failed, which the client knows.
    Failed,
    /// The client ended it on purpose.
    Left,
    /// The client has waited for too long.
    GaveUp,
}

/// What a client has seen of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visited {
    pub(super) outcome: Outcome,
    pub(super) began: Time,
    ended: Time,
    /// It was there.
    pub(super) established: bool,
    /// The server has accepted it.
    pub(super) accepted: bool,
    /// It may have failed: see [`Client::lose`], [`Client::drain`] and [`Client::lose_address`].
    pub(super) excused: bool,
    /// The server has forgotten it, and the client may not know: see [`Client::lose`] and [`Client::miss_reset`].
    forgotten: bool,
    /// It was complete, but for the acknowledgement of the client's FIN: see [`Client::lose_address`].
    pub(super) end_lost: bool,
}

impl Visited {
    /// It was established, and the client waited for more in vain. A refused connection ends at once, and so does
    /// one that the server has forgotten, unless the server has no number for its address since.
    pub(super) fn waits_established(&self) -> bool {
        self.established && !self.forgotten && self.outcome == Outcome::GaveUp
    }
}

impl fmt::Display for Visited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Visited { outcome, began, ended, established, accepted, .. } = self;
        write!(f, "{outcome:?}, began {began:?}, ended {ended:?}, established {established}, ")?;
        write!(f, "accepted {accepted}")
    }
}

/// A client.
pub(super) struct Client {
    pub(super) endpoint: Endpoint,
    pub(super) addresses: Vec<IpAddr>,
    pub(super) group: Group,
    pub(super) place: usize,
    spec: Arc<ConnectionSpec>,
    conn: Option<ConnId>,
    salt: u64,
    seed: u64,
    sends: u64,
    gets: u64,
    sent: u64,
    received: u64,
    finished: bool,
    established: bool,
    /// Ports of its subflows, and those that the server has accepted a connection from. A client that begins
    /// anew on another path has other ports.
    ports: Vec<u16>,
    accepted: Vec<u16>,
    excused: bool,
    forgotten: bool,
    /// The server takes no more connections.
    drained: bool,
    began: Time,
    /// It waits for nothing longer than until then.
    pub(super) patience: Time,
    /// The least time that it waits from the first connection on. A shortage of numbers may keep a client out for
    /// long. It may keep out a later connection as well; that time is not taken from the others.
    pub(super) allowance: Span,
    /// How long connections waited to be accepted, but for the handshake of the first that was established.
    pub(super) kept_out: Span,
    /// The wait of the present connection is made good up to then.
    made_good: Time,
    /// It begins no more connections.
    late: bool,
    /// The connections that are over.
    pub(super) visited: Vec<Visited>,
    /// Complete connections of plain TCP whose FIN may still be unacknowledged, each with its place in `visited`.
    ends: Vec<(ConnId, usize)>,
    /// Its host is silent.
    pub(super) silent: bool,
    /// When it is to be called, as it is in the queue.
    pub(super) wake: Time,
    /// What it read that no service gave.
    pub(super) wrong: Option<String>,
    segment: Segment,
    piece: Vec<u8>,
}

impl Client {
    pub(super) fn new(
        seed: u64,
        place: usize,
        addresses: Vec<IpAddr>,
        group: Group,
        mut spec: ConnectionSpec,
    ) -> Client {
        let name = format!("client {place}");
        let mut endpoint =
            Endpoint::new(Box::new(Seeded(RandomStream::new(seed, &["server swarm", &name]))));
        endpoint.draw_ports();
        let path =
            |at: usize| PathConfig { path: PathId(at as u32), backup: false, ssthresh: None };
        spec.paths = (0..addresses.len()).map(path).collect();
        spec.config = Config {
            multipath: group.multipath,
            keep_alive: Some(KEEP_ALIVE),
            user_timeout: Some(USER_TIMEOUT),
            ..spec.config
        };
        Client {
            endpoint,
            addresses,
            group,
            place,
            spec: Arc::new(spec),
            conn: None,
            salt: 0,
            seed,
            sends: 0,
            gets: 0,
            sent: 0,
            received: 0,
            finished: false,
            established: false,
            ports: Vec::new(),
            accepted: Vec::new(),
            excused: false,
            forgotten: false,
            drained: false,
            began: Time::ZERO,
            patience: Time::NEVER,
            allowance: Span::ZERO,
            kept_out: Span::ZERO,
            made_good: Time::ZERO,
            late: false,
            visited: Vec::new(),
            ends: Vec::new(),
            silent: false,
            wake: Time::NEVER,
            wrong: None,
            segment: Segment::default(),
            piece: vec![0; PIECE],
        }
    }

    /// Whether it is done with all of its connections.
    pub(super) fn is_done(&self) -> bool {
        let over = self.visited.len() >= self.group.times as usize;
        self.silent || over || (self.conn.is_none() && self.late)
    }

    /// When it wants to be called.
    pub(super) fn next(&self) -> Time {
        match (self.silent, self.conn) {
            (true, _) => Time::NEVER,
            (_, Some(_)) => self.endpoint.poll_timeout().min(self.patience),
            (_, None) => self.endpoint.poll_timeout(),
        }
    }

    /// Connections that were to be served and were not, without an excuse.
    pub(super) fn unserved(&self) -> impl Iterator<Item = &Visited> {
        let stays = self.group.visit == Visit::Stay;
        self.visited.iter().filter(move |it| match it.outcome {
            Outcome::Failed => !it.excused,
            Outcome::GaveUp => !stays,
            Outcome::Complete | Outcome::Left => false,
        })
    }

    /// The connections that began at this time or later and were served.
    pub(super) fn complete_since(&self, since: Time) -> impl Iterator<Item = &Visited> {
        let complete = move |it: &&Visited| it.outcome == Outcome::Complete && it.began >= since;
        self.visited.iter().filter(complete)
    }

    /// How it stands, for a report.
    pub(super) fn state(&self) -> String {
        let state = self.conn.and_then(|conn| self.endpoint.state(conn).ok());
        let Client { place, group, sent, sends, received, gets, .. } = self;
        format!(
            "client {place} ({}) {state:?}: sent {sent} of {sends}, received {received} of {gets}",
            group.visit.name()
        )
    }

    /// Begins the next connection.
    pub(super) fn begin(&mut self, now: Time) {
        let bytes = self.group.bytes;
        (self.sends, self.gets) = match self.group.visit {
            Visit::Upload => (bytes, 1),
            Visit::Both => (bytes, bytes),
            _ => (0, bytes),
        };
        let number = (self.place as u64) << 16 | self.visited.len() as u64;
        self.salt = self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(number);
        (self.sent, self.received, self.finished) = (0, 0, false);
        (self.established, self.began, self.made_good) = (false, now, now);
        (self.excused, self.forgotten) = (self.drained, false);
        self.ports.clear();
        self.accepted.clear();
        self.conn = self.endpoint.connect(now, PORT, Arc::clone(&self.spec)).ok();
    }

    /// The server has accepted a connection that this client dialled from `port`; if that is not known any more,
    /// it was the present one.
    pub(super) fn accept(&mut self, now: Time, port: Option<u16>) {
        self.accepted.extend(port.or(self.ports.first().copied()));
        if self.is_accepted() {
            self.make_good(now);
        }
    }

    /// Makes the wait of the present connection up to now good, because a shortage may have kept it out.
    fn make_good(&mut self, now: Time) {
        let waited = now.since(std::mem::replace(&mut self.made_good, now));
        if waited >= SYN_TIMEOUT {
            self.patience += waited;
            self.kept_out += waited;
        }
    }

    /// Whether one of its connections was established.
    fn has_been_in(&self) -> bool {
        self.established || self.visited.iter().any(|it| it.established)
    }

    /// Whether the server has accepted the present attempt.
    fn is_accepted(&self) -> bool {
        self.ports.iter().any(|port| self.accepted.contains(port))
    }

    /// Notes the ports of the present attempt.
    fn note_ports(&mut self, conn: ConnId) {
        let Some(ports) = self.endpoint.ports(conn).filter(|it| !it.is_empty()) else { return };
        let was_accepted = self.is_accepted();
        self.ports.clear();
        self.ports.extend(ports.iter().map(|(_, own, _)| *own));
        // A server that does not know the connection yet refuses a join of it. The client then dials anew, and the
        // server may have stopped listening meanwhile.
        let connects = self.endpoint.state(conn) == Ok(ConnectionState::Connecting);
        // The subflow that was accepted may be gone, and its connection lives on others.
        if was_accepted && !connects && !self.is_accepted() {
            self.accepted.extend(self.ports.first());
        }
        self.excused |= self.drained && connects && !self.is_accepted();
    }

    /// The server has crashed, and has lost its connection.
    pub(super) fn lose(&mut self) {
        (self.excused, self.forgotten) = (true, true);
        self.accepted.clear();
    }

    /// A RST of the server to this port of it was lost.
    pub(super) fn miss_reset(&mut self, port: u16) {
        self.forgotten |= self.ports.contains(&port);
    }

    /// The server accepts no more connections.
    pub(super) fn drain(&mut self) {
        self.drained = true;
        self.excused |= !self.is_accepted();
    }

    /// Loses its second address. Plain TCP does not outlive the address that it uses: the present connection may
    /// fail, and the FIN of a complete one may be lost for good.
    pub(super) fn lose_address(&mut self, now: Time) {
        let over = [ConnectionState::Closed, ConnectionState::Failed];
        let endpoint = &self.endpoint;
        self.ends.retain(|(conn, _)| !over.contains(&state_of(endpoint, *conn)));
        self.endpoint.lose_address(now, PathId(1));
        for (conn, at) in &self.ends {
            self.visited[*at].end_lost |=
                state_of(&self.endpoint, *conn) == ConnectionState::Failed;
        }
        let stats = self.conn.and_then(|conn| self.endpoint.stats(conn));
        self.excused |= stats.is_some_and(|it| {
            it.state == ConnectionState::Failed && !it.multipath && self.established
        });
    }

    /// Has its second address again.
    pub(super) fn regain_address(&mut self, now: Time) {
        self.endpoint.regain_address(now, PathId(1));
    }

    /// Takes a packet in.
    pub(super) fn take(&mut self, now: Time, bytes: &[u8]) {
        let Ok(packet) = codec::parse_into(bytes, Verify::Checksum, &mut self.segment) else {
            return;
        };
        let Headers { src, dst, .. } = packet.headers;
        let Some(path) = self.addresses.iter().position(|it| *it == dst) else { return };
        if src != SERVER || self.silent {
            return;
        }
        self.segment.server = ServerAddress(0);
        if !packet.payload.is_empty() {
            self.segment.payload = Payload::from_bytes(packet.payload);
        }
        self.endpoint.handle_from(now, src, PathId(path as u32), &self.segment);
    }

    /// Does what is due, and gives the packets that leave.
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

    /// Writes and reads what can be written and read.
    fn go_on(&mut self, now: Time) {
        let Some(conn) = self.conn else { return };
        self.note_ports(conn);
        self.write(now, conn);
        self.read(now, conn);
        let state = state_of(&self.endpoint, conn);
        let without = [ConnectionState::Connecting, ConnectionState::Failed];
        // A server that crashed during the handshake resets it, and the client dials anew.
        self.established &= state != ConnectionState::Connecting;
        if !self.established && !without.contains(&state) {
            let first = !self.has_been_in();
            self.established = true;
            if first {
                self.patience = self.patience.max(now + self.allowance);
                self.made_good = now;
            } else {
                self.make_good(now);
            }
        }
        if state == ConnectionState::Failed {
            if self.has_been_in() && !self.is_accepted() {
                self.make_good(now);
            }
            return self.leave(now, conn, Outcome::Failed);
        }
        if now >= self.patience {
            self.endpoint.abort(now, conn).ok();
            return self.leave(now, conn, Outcome::GaveUp);
        }
        let half = self.received + self.sent >= (self.sends + self.gets) / 2;
        match self.group.visit {
            Visit::Abort if half && self.established => {
                self.endpoint.abort(now, conn).ok();
                return self.leave(now, conn, Outcome::Left);
            }
            Visit::Vanish if half && self.established => {
                self.silent = true;
                return;
            }
            _ => {}
        }
        let peer_done = matches!(state, ConnectionState::PeerDone | ConnectionState::Closed);
        let stays = self.group.visit == Visit::Stay;
        let waits = stays || (self.place % 2 == 1 && !peer_done);
        if !self.finished && !waits && self.sent == self.sends + REQUEST as u64 {
            self.finished = true;
            self.endpoint.finish(now, conn).ok();
        }
        if peer_done && self.finished && self.endpoint.unacked(conn) == Ok(0) {
            let complete = self.received == self.gets;
            self.leave(now, conn, if complete { Outcome::Complete } else { Outcome::Failed });
        }
    }

    fn write(&mut self, now: Time, conn: ConnId) {
        let head = request(self.salt, self.sends, self.gets);
        let all = self.sends + REQUEST as u64;
        while self.sent < all {
            let count = if self.sent < REQUEST as u64 {
                let rest = &head[self.sent as usize..];
                self.endpoint.write_bytes(now, conn, rest).unwrap_or(0)
            } else {
                let at = self.sent - REQUEST as u64;
                let len = (self.sends - at).min(PIECE as u64) as usize;
                fill(self.salt, at, &mut self.piece[..len]);
                self.endpoint.write_bytes(now, conn, &self.piece[..len]).unwrap_or(0)
            };
            self.sent += count as u64;
            if count == 0 {
                return;
            }
        }
    }

    fn read(&mut self, now: Time, conn: ConnId) {
        loop {
            let count = self.endpoint.read(now, conn, &mut self.piece).unwrap_or(0);
            if count == 0 {
                return;
            }
            let salt = answer_salt(self.salt);
            if !is_pattern(salt, self.received, &self.piece[..count]) {
                self.wrong = Some(format!("{} got other bytes", self.state()));
            }
            self.received += count as u64;
            if self.received > self.gets {
                self.wrong = Some(format!("{} got too much", self.state()));
            }
        }
    }

    fn leave(&mut self, now: Time, conn: ConnId, outcome: Outcome) {
        let plain = self.endpoint.stats(conn).is_some_and(|it| !it.multipath);
        if plain && outcome == Outcome::Complete {
            self.ends.push((conn, self.visited.len()));
        }
        self.endpoint.release(now, conn).ok();
        self.conn = None;
        let accepted = self.is_accepted();
        let Client { began, established, excused, forgotten, .. } = *self;
        let ended = now;
        self.visited.push(Visited {
            outcome,
            began,
            ended,
            established,
            accepted,
            excused,
            forgotten,
            end_lost: false,
        });
        self.late = now >= self.patience;
        if !self.is_done() {
            self.begin(now);
        }
    }
}

/// The state of a connection. A connection that was let go has failed.
fn state_of(endpoint: &Endpoint, conn: ConnId) -> ConnectionState {
    endpoint.state(conn).unwrap_or(ConnectionState::Failed)
}
