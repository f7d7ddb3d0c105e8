//! Memory of connections in an endpoint, from a counting allocator. Two endpoints run back to back
//! in virtual time, and the allocations of each are counted separately.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/heap.rs"]
mod heap;

use common::{endpoint, spec};
use heap::held;
use libtest_mimic::{Arguments, Failed, Trial};
use plait_base::{ConnId, Span, Time};
use plait_core::{ConnectionSpec, ConnectionState, Endpoint, MemoryLimit, MemoryReport};
use plait_wire::{Payload, Segment};
use std::net::IpAddr;
use std::sync::Arc;

const PORT: u16 = 80;

/// An endpoint and its allocated bytes.
struct Weighed {
    endpoint: Endpoint,
    bytes: usize,
    sent: u32,
}

impl Weighed {
    fn new(name: &str) -> Weighed {
        let endpoint = endpoint(1, name);
        Weighed { endpoint, bytes: 0, sent: 0 }
    }

    fn call<R>(&mut self, f: impl FnOnce(&mut Endpoint) -> R) -> R {
        let before = held();
        let result = f(&mut self.endpoint);
        self.bytes = self.bytes.wrapping_add(held().wrapping_sub(before));
        result
    }
}

/// Passes the segments of one end to the other. Returns false if there were none.
fn deliver(now: Time, from: &mut Weighed, to: &mut Weighed, recycles: bool, lost: u32) -> bool {
    let mut any = false;
    while let Some(sent) = from.call(|it| it.poll_transmit(now)) {
        from.sent += 1;
        if lost == 0 || !from.sent.is_multiple_of(lost) {
            to.call(|it| match sent.segment.payload.bytes() {
                None => it.handle(now, sent.path, &sent.segment),
                Some(bytes) => {
                    // The receiver gets its own copy of the bytes, as from a wire.
                    let payload = Payload::from_bytes(bytes);
                    it.handle(now, sent.path, &Segment { payload, ..(*sent.segment).clone() });
                }
            });
        }
        from.call(|it| if recycles { it.recycle(sent.segment) } else { drop(sent.segment) });
        any = true;
    }
    from.call(|it| while it.poll_news().is_some() {});
    any
}

/// A client and a server, connected without delay.
struct Pair {
    now: Time,
    client: Weighed,
    server: Weighed,
    /// Sent segments are returned to their endpoint for reuse.
    recycles: bool,
    /// One segment in this many is lost; 0 for none.
    lost: u32,
}

impl Pair {
    fn new(scheduler: &str, controller: &str) -> Pair {
        let (client, mut server) = (Weighed::new("client"), Weighed::new("server"));
        let spec = spec(scheduler, controller, 0..2);
        server.call(|it| it.listen(PORT, spec));
        Pair { now: Time::ZERO, client, server, recycles: true, lost: 0 }
    }

    /// Passes segments until there are no more.
    fn carry(&mut self) {
        let Pair { now, client, server, recycles, lost } = self;
        for _ in 0..2 {
            while deliver(*now, client, server, *recycles, *lost)
                | deliver(*now, server, client, *recycles, *lost)
            {}
            // For delayed acknowledgements.
            *now += Span::from_millis(50);
            client.call(|it| it.handle_timeout(*now));
            server.call(|it| it.handle_timeout(*now));
        }
    }

    /// Exchanges 300 kB in each direction; one segment in 50 is lost.
    fn exchange(&mut self, (client, server): (ConnId, ConnId)) {
        const BYTES: u64 = 300_000;
        self.lost = 50;
        self.client.call(|it| it.write(self.now, client, BYTES).unwrap());
        self.server.call(|it| it.write(self.now, server, BYTES).unwrap());
        let (mut up, mut down) = (0, 0);
        while (up, down) != (BYTES, BYTES) {
            self.until(self.now + Span::from_millis(100));
            up += self.server.call(|it| it.skip(self.now, server, BYTES).unwrap());
            down += self.client.call(|it| it.skip(self.now, client, BYTES).unwrap());
        }
        self.lost = 0;
        self.until(self.now + Span::from_secs(2));
        assert_eq!(
            (
                self.client.endpoint.unacked(client).unwrap(),
                self.server.endpoint.unacked(server).unwrap()
            ),
            (0, 0)
        );
    }

    /// Passes ten quiet seconds and frees unused memory.
    fn shrink_idle(&mut self) {
        self.now += Span::from_secs(10);
        self.client.call(|it| it.shrink_idle(self.now));
        self.server.call(|it| it.shrink_idle(self.now));
    }

    fn until(&mut self, target: Time) {
        while self.now < target {
            let due = self.client.endpoint.poll_timeout().min(self.server.endpoint.poll_timeout());
            self.now = due.clamp(self.now, target);
            self.client.call(|it| it.handle_timeout(self.now));
            self.server.call(|it| it.handle_timeout(self.now));
            self.carry();
        }
    }

    /// Opens a connection of two subflows and exchanges a request and an answer.
    fn connect(&mut self, spec: &Arc<ConnectionSpec>) -> (ConnId, ConnId) {
        let client = self.client.call(|it| it.connect(self.now, PORT, spec.clone()).unwrap());
        self.carry();
        let server = self.server.call(Endpoint::poll_accept).unwrap();
        self.client.call(|it| it.write(self.now, client, 100).unwrap());
        self.carry();
        assert_eq!(self.server.call(|it| it.skip(self.now, server, 1_000).unwrap()), 100);
        self.server.call(|it| it.write(self.now, server, 100).unwrap());
        self.carry();
        assert_eq!(self.client.call(|it| it.skip(self.now, client, 1_000).unwrap()), 100);
        self.carry();
        for (end, id) in [(&self.client, client), (&self.server, server)] {
            assert_eq!(end.endpoint.ports(id).unwrap().len(), 2);
            assert_eq!(end.endpoint.unacked(id).unwrap(), 0);
        }
        (client, server)
    }
}

const MANY: u16 = 1_000;
/// Most bytes of an idle connection of two subflows, at each end.
const MOST_IDLE: usize = 2_500;
/// Most bytes of a subflow in TIME-WAIT.
const MOST_WAITING: usize = 200;
/// Further bytes if keep-alives are enabled.
const LISTENING: usize = 120;

/// Measures 1,000 idle connections.
fn idle() -> Result<(), Failed> {
    let quiet = [("minrtt", "cubic", None), ("ecf", "lia", None), ("blest", "reno", None)];
    let asked = ("blest", "reno", Some(Span::from_secs(7_200)));
    for (scheduler, controller, keep_alive) in quiet.into_iter().chain([asked]) {
        let mut pair = Pair::new(scheduler, controller);
        // Spare segments belong to the endpoint, regardless of the number of connections.
        pair.recycles = false;
        let mut spec = spec(scheduler, controller, 0..2);
        spec.config.timeouts.keep_alive = keep_alive;
        let spec = Arc::new(spec);
        pair.connect(&spec);
        let before = (pair.client.bytes, pair.server.bytes);
        let all: Vec<_> = (0..MANY).map(|_| pair.connect(&spec)).collect();
        let touched = (pair.client.bytes - before.0) / usize::from(MANY);
        pair.now += Span::from_secs(2);
        pair.client.call(|it| it.shrink_idle(pair.now));
        pair.server.call(|it| it.shrink_idle(pair.now));
        let each = |end: &Weighed, before| (end.bytes - before) / usize::from(MANY);
        let each = (each(&pair.client, before.0), each(&pair.server, before.1));
        println!(
            "{scheduler}, {controller}: {touched} B at the client, {} B once it rests, {} B at the server",
            each.0, each.1
        );
        // The connections can continue.
        for (client, server) in all {
            pair.client.call(|it| it.write(pair.now, client, 10_000).unwrap());
            pair.carry();
            assert_eq!(pair.server.call(|it| it.skip(pair.now, server, 20_000).unwrap()), 10_000);
        }
        let most = MOST_IDLE + if keep_alive.is_some() { LISTENING } else { 0 };
        if each.0 > most || each.1 > MOST_IDLE {
            return Err(format!("{each:?} bytes each").into());
        }
    }
    Ok(())
}

/// Opens, uses and closes 10,000 connections, a thousand at a time. Afterwards an endpoint holds as
/// much as after the first hundred.
fn memory_returns() -> Result<(), Failed> {
    let mut pair = Pair::new("minrtt", "cubic");
    let spec = Arc::new(spec("minrtt", "cubic", 0..2));
    let mut after_few = (0, 0);
    for round in 0..11_u16 {
        let many = if round == 0 { 100 } else { MANY };
        let all: Vec<_> = (0..many).map(|_| pair.connect(&spec)).collect();
        let most = (pair.client.bytes, pair.server.bytes);
        for (client, server) in all {
            pair.client.call(|it| it.finish(pair.now, client).unwrap());
            pair.carry();
            pair.server.call(|it| it.finish(pair.now, server).unwrap());
            pair.carry();
            assert_eq!(pair.client.endpoint.state(client).unwrap(), ConnectionState::Closed);
            pair.client.call(|it| it.release(pair.now, client).unwrap());
            pair.server.call(|it| it.release(pair.now, server).unwrap());
        }
        let waiting = (pair.client.bytes, pair.server.bytes);
        println!("{waiting:?} bytes in TIME-WAIT");
        pair.until(pair.now + Span::from_secs(120));
        if (pair.client.endpoint.kept(), pair.server.endpoint.kept()) != (0, 0) {
            return Err("connections are kept".into());
        }
        let held = (pair.client.bytes, pair.server.bytes);
        println!("{many} connections: {most:?} bytes, then {held:?}");
        // The client closed first, on two subflows.
        let each = waiting.0.saturating_sub(held.0) / usize::from(many);
        if each > 2 * MOST_WAITING {
            return Err(format!("{each} bytes of a connection in TIME-WAIT").into());
        }
        if round == 0 {
            after_few = held;
        } else if held.0 > after_few.0 + SLACK || held.1 > after_few.1 + SLACK {
            return Err(format!("{held:?} bytes are held, {after_few:?} before").into());
        }
    }
    Ok(())
}

/// Checks that released connections are reported until they are over, and that new ones are refused
/// if the endpoint is set to refuse them.
fn ended() -> Result<(), Failed> {
    let mut pair = Pair::new("minrtt", "cubic");
    let spec = Arc::new(spec("minrtt", "cubic", 0..2));
    let (client, server) = pair.connect(&spec);
    let at_client = |pair: &Pair| {
        let MemoryReport { half_open, closing, time_wait, .. } =
            pair.client.endpoint.memory_report();
        [half_open, closing, time_wait]
    };
    let mut seen = vec![at_client(&pair)];
    pair.client.call(|it| it.release(pair.now, client).unwrap());
    pair.carry();
    seen.push(at_client(&pair));
    pair.server.call(|it| it.finish(pair.now, server).unwrap());
    pair.carry();
    seen.push(at_client(&pair));
    pair.until(pair.now + Span::from_secs(120));
    seen.push(at_client(&pair));
    if seen != [[0, 0, 0], [0, 1, 0], [0, 0, 2], [0, 0, 0]] {
        return Err(format!("{seen:?}").into());
    }
    pair.server.call(|it| it.turn_away(true));
    let refused = pair.client.call(|it| it.connect(pair.now, PORT, spec.clone()).unwrap());
    pair.carry();
    let refused = pair.client.endpoint.state(refused).unwrap();
    pair.server.call(|it| it.turn_away(false));
    pair.connect(&spec);
    match (refused, pair.server.endpoint.turned_away()) {
        (ConnectionState::Failed, 1) => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// Bytes kept for reuse: 4,096 segments and a small rest.
const SLACK: usize = 4_096 * (size_of::<Segment>() + size_of::<usize>()) + 16_384;

/// Checks idle connections that have carried 300 kB in each direction, with losses. They hold as
/// much as before.
fn after_transfers() -> Result<(), Failed> {
    for (scheduler, controller) in [("minrtt", "cubic"), ("ecf", "lia"), ("blest", "reno")] {
        let mut pair = Pair::new(scheduler, controller);
        pair.recycles = false;
        let spec = Arc::new(spec(scheduler, controller, 0..2));
        let warmer = pair.connect(&spec);
        pair.exchange(warmer);
        pair.shrink_idle();
        let before = (pair.client.bytes, pair.server.bytes);
        let all: Vec<_> = (0..MANY).map(|_| pair.connect(&spec)).collect();
        for both in &all {
            pair.exchange(*both);
        }
        let each = |end: &Weighed, before| (end.bytes - before) / usize::from(MANY);
        let busy = (each(&pair.client, before.0), each(&pair.server, before.1));
        pair.shrink_idle();
        let rested = (each(&pair.client, before.0), each(&pair.server, before.1));
        println!(
            "{scheduler}, {controller}: {busy:?} B after transfers, {rested:?} B once they rest"
        );
        let again: u64 = [&pair.client, &pair.server]
            .map(|end| end.endpoint.totals())
            .map(|it| it.first.counters.retransmissions + it.joined.counters.retransmissions)
            .iter()
            .sum();
        if again < 1_000 {
            return Err(format!("{again} segments were lost").into());
        }
        if rested.0.max(rested.1) > MOST_IDLE {
            return Err(format!("{rested:?} bytes each").into());
        }
    }
    Ok(())
}

/// Limit of a connection's data during a shortage of memory.
const ALLOWED: u64 = 100_000;
/// Bytes of a stream that exceeds both buffers.
const STREAM: usize = 12_000_000;

/// Sends bytes in pieces of `piece` that are not read at first, with one segment in 50 lost.
/// Returns the receiver's memory for them, as allocated and as reported. Then reads the bytes and
/// compares them.
fn unread(piece: usize, len: usize, allowed: Option<u64>) -> Result<[u64; 2], Failed> {
    let memory_limit =
        allowed.map(|share| MemoryLimit { unread: share, unsent: share, max_unsent: share });
    let mut pair = Pair::new("minrtt", "cubic");
    pair.recycles = false;
    let spec = Arc::new(spec("minrtt", "cubic", 0..2));
    let (client, server) = pair.connect(&spec);
    pair.server.call(|it| it.limit_buffers(memory_limit));
    let bytes: Vec<u8> = (0..len as u64).map(|n| ((n * 0x9e37_79b9) >> 13) as u8).collect();
    let (before, said) = (pair.server.bytes, pair.server.endpoint.memory_report().bytes);
    let (mut written, mut got) = (0, Vec::new());
    let mut go_on = |pair: &mut Pair, time: Span| {
        let until = pair.now + time;
        while pair.now < until {
            let end = bytes.len().min(written + piece);
            let part = &bytes[written..end];
            let count = pair.client.call(|it| it.write_bytes(pair.now, client, part).unwrap());
            written += count;
            pair.carry();
            if count == 0 {
                pair.until(pair.now + Span::from_millis(100));
            }
        }
    };
    pair.lost = 50;
    go_on(&mut pair, Span::from_secs(5 + (len / piece) as u64 / 9));
    pair.lost = 0;
    let took = (pair.server.bytes - before) as u64;
    let said = pair.server.endpoint.memory_report().bytes - said;
    let mut buffer = vec![0; 65_536];
    while got.len() < len {
        let count = pair.server.call(|it| it.read(pair.now, server, &mut buffer).unwrap());
        got.extend_from_slice(&buffer[..count]);
        if count == 0 {
            go_on(&mut pair, Span::from_millis(100));
        }
    }
    if got != bytes {
        return Err("other bytes than were sent".into());
    }
    Ok([took, said])
}

/// Checks that the reported memory of connections matches the allocated one, with pieces of any
/// size. During a shortage it is a few times the limit, and no data is lost.
fn short() -> Result<(), Failed> {
    for (piece, len) in [(1, 20_000), (200, 1_000_000), (100_000, STREAM)] {
        for allowed in [None, Some(ALLOWED)] {
            let [took, said] = unread(piece, len, allowed)?;
            println!(
                "pieces of {piece} B, {allowed:?}: {took} B unread, {said} B by its own account"
            );
            if said < took * 9 / 10 || said > took * 2 {
                return Err(format!("{took} bytes are held, and {said} told").into());
            }
            match allowed {
                Some(most) if took > 3 * most => return Err(format!("{took} bytes").into()),
                None if took < 3 * ALLOWED => return Err(format!("only {took} bytes").into()),
                _ => {}
            }
        }
    }
    // The other direction: data that is never acknowledged.
    for (allowed, least, most) in [(None, 4 << 20, 5 << 20), (Some(ALLOWED), 90_000, 120_000)] {
        let mut pair = Pair::new("minrtt", "cubic");
        let spec = Arc::new(spec("minrtt", "cubic", 0..2));
        let (_, server) = pair.connect(&spec);
        let memory_limit =
            allowed.map(|share| MemoryLimit { unread: share, unsent: share, max_unsent: share });
        pair.server.call(|it| it.limit_buffers(memory_limit));
        let (before, piece) = (pair.server.bytes, [7; 50_000]);
        while pair.server.call(|it| it.write_bytes(pair.now, server, &piece).unwrap()) > 0 {}
        let took = pair.server.bytes - before;
        if !(least..most).contains(&took) {
            return Err(format!("{took} bytes are held to be sent, {allowed:?}").into());
        }
    }
    Ok(())
}

/// Connects a client to many servers, each of which announces an address. Every address of an open
/// connection gets a number, however many connections there were before.
fn numbers_return() -> Result<(), Failed> {
    const EACH: u8 = 100;
    let mut pair = Pair::new("minrtt", "cubic");
    let spec = Arc::new(spec("minrtt", "cubic", 0..2));
    for round in 0..4 {
        pair.server = Pair::new("minrtt", "cubic").server;
        for number in 0..EACH {
            let (client, server) = pair.connect(&spec);
            let address = IpAddr::from([10, 0, round, number]);
            pair.server.call(|it| it.announce(pair.now, server, address, None).unwrap());
            pair.carry();
            if pair.client.endpoint.number_of(address).is_none() {
                return Err(format!("{address} has no number").into());
            }
            pair.client.call(|it| it.finish(pair.now, client).unwrap());
            pair.server.call(|it| it.finish(pair.now, server).unwrap());
            pair.carry();
            pair.client.call(|it| it.release(pair.now, client).unwrap());
            pair.server.call(|it| it.release(pair.now, server).unwrap());
        }
        pair.until(pair.now + Span::from_secs(120));
        pair.shrink_idle();
    }
    Ok(())
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Tests run one at a time, because the allocator counts the whole process.
    arguments.test_threads = Some(1);
    let tests = vec![
        Trial::test("an_idle_connection_is_small", idle),
        Trial::test("a_transfer_leaves_nothing_behind", after_transfers),
        Trial::test("memory_returns", memory_returns),
        Trial::test("what_has_ended_is_counted_until_it_is_over", ended),
        Trial::test("memory_that_is_short_is_kept_to", short),
        Trial::test("numbers_of_announced_addresses_return", numbers_return),
    ];
    libtest_mimic::run(&arguments, tests).exit();
}
