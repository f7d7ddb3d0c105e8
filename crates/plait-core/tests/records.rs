//! State that an endpoint keeps of ended connections. Two endpoints run back to back in virtual
//! time.
#![allow(clippy::unwrap_used)]

mod common;

use common::endpoint;
use plait_base::{ConnId, PathId, Span, Time};
use plait_core::{Config, ConnectionSpec, ConnectionState, Endpoint, Error};
use plait_wire::{Flags, JoinSyn, MpCapable, Mptcp, Options, Segment};
use std::collections::BTreeMap;

const PORT: u16 = 80;
const TIME_WAIT: Span = Span::from_secs(60);

fn spec(config: Config) -> ConnectionSpec {
    ConnectionSpec { config, ..common::spec("minrtt", "reno", 0..1) }
}

/// A client and a server, connected without delay.
struct Pair {
    now: Time,
    client: Endpoint,
    server: Endpoint,
}

impl Pair {
    fn new(config: Config) -> Pair {
        let mut server = endpoint(1, "server");
        server.listen(PORT, spec(config));
        Pair { now: Time::ZERO, client: endpoint(1, "client"), server }
    }

    /// Passes segments until there are no more.
    fn carry(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(transmit) = self.client.poll_transmit(self.now) {
                self.server.handle(self.now, transmit.path, &transmit.segment);
                self.client.recycle(transmit.segment);
                quiet = false;
            }
            while let Some(transmit) = self.server.poll_transmit(self.now) {
                self.client.handle(self.now, transmit.path, &transmit.segment);
                self.server.recycle(transmit.segment);
                quiet = false;
            }
            if quiet {
                return;
            }
        }
    }

    fn until(&mut self, target: Time) {
        loop {
            let due = self.client.poll_timeout().min(self.server.poll_timeout());
            if due > target {
                break;
            }
            self.now = self.now.max(due);
            self.client.handle_timeout(self.now);
            self.server.handle_timeout(self.now);
            self.carry();
        }
        self.now = target;
    }

    /// Establishes a connection and returns both ends of it.
    fn connect(&mut self, config: Config) -> (ConnId, ConnId) {
        let client = self.client.connect(self.now, PORT, spec(config)).unwrap();
        self.carry();
        (client, self.server.poll_accept().unwrap())
    }

    fn news(&mut self) -> usize {
        let client = core::iter::from_fn(|| self.client.poll_news()).count();
        client + core::iter::from_fn(|| self.server.poll_news()).count()
    }
}

fn plain() -> Config {
    Config { multipath: false, ..Config::default() }
}

/// R59: 100,000 connections, one per second, half of them plain TCP. Both ends release each one
/// after it has closed. The end that closed first keeps one minute of them, and the other one keeps
/// none.
#[test]
fn what_is_kept_does_not_grow() {
    for config in [Config::default(), plain()] {
        let mut pair = Pair::new(config.clone());
        let mut most = (0, 0);
        for round in 0..50_000 {
            let (client, server) = pair.connect(config.clone());
            assert_eq!(client.0, round);
            pair.client.write(pair.now, client, 100).unwrap();
            pair.client.finish(pair.now, client).unwrap();
            pair.carry();
            assert_eq!(pair.server.skip(pair.now, server, 1_000).unwrap(), 100);
            pair.server.finish(pair.now, server).unwrap();
            pair.carry();
            assert_eq!(pair.client.state(client).unwrap(), ConnectionState::Closed);
            assert_eq!(pair.server.state(server).unwrap(), ConnectionState::Closed);
            pair.client.release(pair.now, client).unwrap();
            pair.server.release(pair.now, server).unwrap();
            pair.carry();
            most = (most.0.max(pair.client.kept()), most.1.max(pair.server.kept()));
            pair.until(pair.now + Span::from_secs(1));
        }
        assert!(most.0 + most.1 <= 64, "{most:?}");
        pair.until(pair.now + TIME_WAIT);
        assert_eq!((pair.client.kept(), pair.server.kept()), (0, 0));
        assert_eq!(pair.client.poll_timeout().min(pair.server.poll_timeout()), Time::NEVER);
        assert!(pair.client.ports(ConnId(7)).is_none());
    }
}

/// Released connections that do not end are limited. Beyond the limit, an old connection whose data
/// is all acknowledged is reset and removed.
#[test]
fn closing_connections_have_a_limit() {
    const MOST: usize = 8_192;
    let mut pair = Pair::new(plain());
    let mut ids = Vec::new();
    for _ in 0..MOST + 3 {
        ids.push(pair.connect(plain()).1);
    }
    // From here on, no segment reaches the clients.
    pair.server.write(pair.now, ids[0], 100).unwrap();
    for id in &ids {
        pair.server.release(pair.now, *id).unwrap();
    }
    let mut resets = 0;
    while let Some(sent) = pair.server.poll_transmit(pair.now) {
        resets += u32::from(sent.segment.flags.has(Flags::RST));
    }
    let kept = |at: usize| pair.server.stats(ids[at]).is_some();
    assert_eq!((resets, pair.server.overflows().closing_aborted), (3, 3));
    assert_eq!([0, 1, 2, 3, 4].map(kept), [true, false, false, false, true]);
    assert_eq!((pair.server.kept(), pair.server.memory_report().closing), (MOST, MOST));
}

/// A connection that is not released keeps its state. A released one that is over becomes unknown,
/// and its identifier is not reused.
#[test]
fn a_released_connection_is_unknown() {
    let mut pair = Pair::new(Config::default());
    let (kept, far) = pair.connect(Config::default());
    pair.client.finish(pair.now, kept).unwrap();
    pair.server.finish(pair.now, far).unwrap();
    pair.carry();
    pair.until(pair.now + TIME_WAIT + TIME_WAIT);
    assert_eq!(pair.client.state(kept).unwrap(), ConnectionState::Closed);
    assert_eq!((pair.client.kept(), pair.server.kept()), (1, 1));
    pair.client.release(pair.now, kept).unwrap();
    assert_eq!(pair.client.kept(), 0);
    assert_eq!(pair.client.state(kept), Err(Error::UnknownConnection(kept)));
    assert!(pair.client.stats(kept).is_none());
    assert_eq!(pair.client.write(pair.now, kept, 10), Err(Error::UnknownConnection(kept)));
    let (next, _) = pair.connect(Config::default());
    assert_ne!(next, kept);
}

/// A call that fails returns the reason and changes nothing.
#[test]
fn a_call_that_cannot_be_done_says_why() {
    let mut pair = Pair::new(Config::default());
    let mut none = spec(Config::default());
    none.paths.clear();
    assert_eq!(pair.client.connect(pair.now, PORT, none), Err(Error::NoPath));
    let stranger = ConnId(4_711);
    let unknown = Error::UnknownConnection(stranger);
    assert_eq!(pair.client.readable(stranger), Err(unknown));
    assert_eq!(pair.client.finish(pair.now, stranger), Err(unknown));
    assert_eq!(unknown.to_string(), "there is no connection 4711");
    let (client, server) = pair.connect(Config::default());
    let address = "10.9.9.9".parse().unwrap();
    assert_eq!(pair.client.announce(pair.now, client, address, None), Err(Error::NotServer));
    let withdrawn = pair.server.withdraw(pair.now, server, address);
    assert_eq!(withdrawn, Err(Error::NotAnnounced(address)));
    pair.client.finish(pair.now, client).unwrap();
    assert_eq!(pair.client.write(pair.now, client, 1), Err(Error::Finished));
    pair.client.abort(pair.now, client).unwrap();
    assert_eq!(pair.client.write(pair.now, client, 1), Err(Error::Failed));
}

/// An open connection is released. Its data is delivered, and received data is discarded without
/// notice to the application. The connection is removed when the peer has ended.
#[test]
fn an_open_connection_is_released() {
    for config in [Config::default(), plain()] {
        let mut pair = Pair::new(config.clone());
        let (client, server) = pair.connect(config);
        pair.client.write(pair.now, client, 5_000).unwrap();
        pair.client.release(pair.now, client).unwrap();
        pair.carry();
        pair.news();
        assert_eq!(pair.server.skip(pair.now, server, 10_000).unwrap(), 5_000);
        assert_eq!(pair.server.state(server).unwrap(), ConnectionState::PeerDone);
        // More than the client's buffer holds.
        let mut written = 0;
        while written < 20_000_000 {
            written += pair.server.write(pair.now, server, 1 << 20).unwrap();
            pair.carry();
            assert!(pair.client.poll_news().is_none());
            pair.until(pair.now + Span::from_millis(100));
        }
        pair.server.finish(pair.now, server).unwrap();
        pair.carry();
        assert_eq!(pair.server.state(server).unwrap(), ConnectionState::Closed);
        pair.until(pair.now + TIME_WAIT + TIME_WAIT);
        assert_eq!(pair.client.kept(), 0);
    }
}

/// If the peer never ends, the connection is removed after `close_timeout`.
#[test]
fn a_released_connection_does_not_wait_for_ever() {
    for config in [Config::default(), plain()] {
        let mut pair = Pair::new(config.clone());
        let (client, server) = pair.connect(config);
        pair.client.release(pair.now, client).unwrap();
        pair.carry();
        pair.until(pair.now + Span::from_millis(59_999));
        assert_eq!(
            (pair.client.kept(), pair.server.state(server).unwrap()),
            (1, ConnectionState::PeerDone)
        );
        pair.until(pair.now + Span::from_millis(1));
        assert_eq!(pair.client.kept(), 0);
        assert_eq!(pair.server.state(server).unwrap(), ConnectionState::Failed);
        pair.server.release(pair.now, server).unwrap();
        assert_eq!(pair.server.kept(), 0);
    }
}

fn syn(port: u16, mptcp: Option<Mptcp>) -> Segment {
    Segment {
        src_port: port,
        dst_port: PORT,
        flags: Flags::SYN,
        window: 0xffff,
        options: Options { mptcp: mptcp.map(Box::new), ..Options::default() },
        ..Segment::default()
    }
}

fn capable() -> Mptcp {
    Mptcp::Capable(MpCapable::default())
}

/// R80: SYNs without a third ACK, with and without MP_CAPABLE. The table holds 4,096 of them. All
/// are removed after the last retransmission of their SYN/ACKs.
#[test]
fn half_open_connections_go_by_themselves() {
    let mut server = endpoint(1, "server");
    server.listen(PORT, spec(Config::default()));
    let mut now = Time::ZERO;
    for flood in 0..3_u64 {
        for n in 0..5_000_u16 {
            server.handle(now, PathId(0), &syn(1_024 + n, (n % 2 == 0).then(capable)));
        }
        assert_eq!(server.kept(), 4_096, "flood {flood}");
        let began = now;
        loop {
            while server.poll_transmit(now).is_some() {}
            if server.poll_timeout() == Time::NEVER {
                break;
            }
            now = server.poll_timeout();
            server.handle_timeout(now);
        }
        assert_eq!(server.kept(), 0, "flood {flood}");
        assert!(now.since(began) < Span::from_secs(300), "{now:?}");
        assert_eq!(server.poll_accept(), None);
    }
}

/// Clients far from a flooded server. Each has its own endpoint and path.
struct Flooded {
    now: Time,
    server: Endpoint,
    clients: Vec<(Endpoint, ConnId)>,
    /// Segments in flight, by arrival: the client, and true if it goes to the server.
    flying: BTreeMap<(Time, u64), (usize, bool, Box<Segment>)>,
    one_way: Span,
    count: u64,
}

impl Flooded {
    /// The server's path of the first client.
    const FIRST: u32 = 100;

    fn fly(&mut self, client: usize, up: bool, segment: Box<Segment>) {
        self.count += 1;
        self.flying.insert((self.now + self.one_way, self.count), (client, up, segment));
    }

    /// Sends all pending segments. Segments to strangers are lost.
    fn serve(&mut self) {
        while let Some(sent) = self.server.poll_transmit(self.now) {
            match sent.path.0.checked_sub(Flooded::FIRST) {
                Some(client) => self.fly(client as usize, false, sent.segment),
                None => self.server.recycle(sent.segment),
            }
        }
        for client in 0..self.clients.len() {
            while let Some(sent) = self.clients[client].0.poll_transmit(self.now) {
                self.fly(client, true, sent.segment);
            }
        }
    }

    /// Advances one millisecond, with `syns` SYNs of strangers.
    fn step(&mut self, syns: u64) {
        self.serve();
        for _ in 0..syns {
            self.count += 1;
            let (port, path) = (self.count as u16, (self.count >> 16) as u32 % 50);
            let segment = syn(port, self.count.is_multiple_of(2).then(capable));
            self.server.handle(self.now, PathId(path), &segment);
        }
        self.now += Span::from_millis(1);
        while let Some(entry) = self.flying.first_entry().filter(|it| it.key().0 <= self.now) {
            match entry.remove() {
                (client, true, segment) => {
                    let path = PathId(Flooded::FIRST + client as u32);
                    self.server.handle(self.now, path, &segment);
                }
                (client, false, segment) => {
                    self.clients[client].0.handle(self.now, PathId(0), &segment);
                }
            }
        }
        self.server.handle_timeout(self.now);
        let now = self.now;
        self.clients.iter_mut().for_each(|(client, _)| client.handle_timeout(now));
    }
}

/// R80, S3: during 20,000 SYNs per second every client is served, with plain TCP and Multipath TCP
/// and at any round trip time.
#[test]
fn newcomers_are_served_in_a_flood_of_syns() {
    for (rtt_ms, config) in
        [50, 300, 500].into_iter().flat_map(|ms| [(ms, plain()), (ms, Config::default())])
    {
        let mut server = endpoint(1, "server");
        server.listen(PORT, spec(Config::default()));
        let (clients, flying) = (Vec::new(), BTreeMap::new());
        let one_way = Span::from_micros(500 * rtt_ms);
        let mut world = Flooded { now: Time::ZERO, server, clients, flying, one_way, count: 0 };
        // The table is full before the first client connects.
        (0..250).for_each(|_| world.step(20));
        for number in 0..20 {
            let mut client = endpoint(number, "client");
            let id = client.connect(world.now, PORT, spec(config.clone())).unwrap();
            client.write(world.now, id, 20_000).unwrap();
            world.clients.push((client, id));
        }
        let mut read = BTreeMap::new();
        for _ in 0..5 * rtt_ms {
            world.step(20);
            while let Some(id) = world.server.poll_accept() {
                read.insert(id, 0);
            }
            for (id, read) in &mut read {
                *read += world.server.skip(world.now, *id, u64::MAX).unwrap();
            }
        }
        let whole = read.values().filter(|it| **it == 20_000).count();
        let multipath =
            read.keys().filter(|id| world.server.stats(**id).unwrap().multipath).count();
        let expected = if config.multipath { 20 } else { 0 };
        assert_eq!((whole, multipath), (20, expected), "{rtt_ms} ms");
        let overflows = world.server.overflows();
        assert_eq!((overflows.cookies_accepted, overflows.cookies_refused), (20, 0));
        assert!(overflows.cookies_sent > 1_000, "{overflows:?}");
        assert!(world.server.kept() <= 4_096 + 20);
    }
}

/// R24: all connections together accept a thousand joins per second. The next join is refused.
#[test]
fn joins_of_all_connections_have_a_rate() {
    let mut pair = Pair::new(Config::default());
    let tokens: Vec<u32> = (0..130)
        .map(|_| {
            // The client's SYN is passed by hand, to read the server's key.
            let client = pair.client.connect(pair.now, PORT, spec(Config::default())).unwrap();
            let syn = pair.client.poll_transmit(pair.now).unwrap();
            pair.server.handle(pair.now, syn.path, &syn.segment);
            let answer = pair.server.poll_transmit(pair.now).unwrap();
            let key = match answer.segment.options.mptcp.as_deref() {
                Some(Mptcp::Capable(capable)) => capable.sender_key.unwrap(),
                other => panic!("{other:?}"),
            };
            pair.client.handle(pair.now, answer.path, &answer.segment);
            pair.carry();
            assert_eq!(pair.client.state(client).unwrap(), ConnectionState::Open);
            key.token()
        })
        .collect();
    let (mut taken, mut refused) = (0, 0);
    for (n, token) in (0_u16..).zip(tokens.iter().cycle()).take(7 * tokens.len() + 300) {
        let join = JoinSyn { backup: false, address_id: 1, token: *token, nonce: 1 };
        pair.server.handle(pair.now, PathId(1), &syn(1_024 + n, Some(Mptcp::JoinSyn(join))));
        let answer = pair.server.poll_transmit(pair.now).unwrap();
        if answer.segment.flags.has(Flags::RST) {
            refused += 1;
        } else {
            taken += 1;
            // The join is reset at once, which frees its slot.
            let reset = Segment { seq: 1, flags: Flags::RST, ..syn(1_024 + n, None) };
            pair.server.handle(pair.now, PathId(1), &reset);
        }
    }
    assert_eq!((taken, refused), (1_000, 7 * 130 + 300 - 1_000));
}

/// R71: random ports start anywhere in the ephemeral range and do not increase by one. Each
/// connection has its own initial sequence number.
#[test]
fn drawn_ports_are_not_known_beforehand() {
    let first_ports: std::collections::BTreeSet<u16> = (0..20)
        .map(|n| {
            let mut client = endpoint(1, &format!("client {n}"));
            client.draw_ports();
            let mut syns = Vec::new();
            for _ in 0..50 {
                client.connect(Time::ZERO, PORT, spec(Config::default())).unwrap();
                let syn = client.poll_transmit(Time::ZERO).unwrap().segment;
                syns.push((syn.src_port, syn.seq));
            }
            assert!(syns.iter().all(|(port, _)| *port >= 49_152), "{syns:?}");
            let steps = syns.windows(2).map(|two| two[1].0.wrapping_sub(two[0].0));
            let steps: std::collections::BTreeSet<u16> = steps.collect();
            assert!(steps.len() >= 5, "{steps:?}");
            let numbers: std::collections::BTreeSet<u32> = syns.iter().map(|it| it.1).collect();
            assert_eq!(numbers.len(), syns.len());
            syns[0].0
        })
        .collect();
    assert!(first_ports.len() >= 18, "{first_ports:?}");
}
