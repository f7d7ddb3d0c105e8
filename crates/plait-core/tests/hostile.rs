//! Strangers and malicious peers attack an endpoint during a transfer. Each test floods one end of
//! a pair in virtual time. The memory of the endpoints stays bounded (by a counting allocator), and
//! the transfer keeps at least 90 % of its goodput.
//!
//! `PLAIT_SOAK=1` makes the floods as long as the security goals require.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/heap.rs"]
mod heap;

use common::{endpoint, spec};
use heap::held;
use libtest_mimic::{Arguments, Failed, Trial};
use plait_base::{ConnId, PathId, RandomStream, ServerAddress, Span, Time};
use plait_core::{Config, ConnectionState, Endpoint};
use plait_wire::{
    AddAddr, Flags, JoinAck, JoinSyn, Key, MpCapable, Mptcp, Options, Payload, Segment,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

const PORT: u16 = 80;
/// Length of a transfer.
const SECONDS: u64 = 3;
/// Hostile segments each millisecond.
const EACH_MS: u64 = 20;
const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Knowledge of an attacker who sees the packets of the transfer.
#[derive(Clone, Copy, Default)]
struct AttackerView {
    /// The ports of the first subflow: the client's, then the server's.
    ports: (u16, u16),
    /// The keys of both ends.
    keys: [Option<Key>; 2],
    /// The latest sequence number and acknowledgement of the server's data.
    latest: (u32, u32),
}

/// A download over two paths of 20 Mbit/s, 10 and 15 ms each way, with queues of 60 kB.
struct Transfer {
    now: Time,
    ends: [Endpoint; 2],
    ids: [Option<ConnId>; 2],
    flying: BTreeMap<(Time, u64), (usize, u32, Box<Segment>)>,
    /// When each direction of each path has sent all queued packets.
    free: [[Time; 2]; 2],
    count: u64,
    read: u64,
    view: AttackerView,
    /// The attacker's random numbers.
    attacker: RandomStream,
    /// Answers of the server to unknown paths.
    strays: u64,
    /// Segments from the server on the first path, without and with data.
    told: [u64; 2],
}

/// An attack: for each turn, the receiving end, the path and the segment.
type Attack<'a> =
    dyn FnMut(&AttackerView, &mut RandomStream) -> Option<(usize, PathId, Segment)> + 'a;

impl Transfer {
    fn new() -> Transfer {
        let end = |name: &str| endpoint(3, name);
        let mut ends = [end("client"), end("server")];
        ends[SERVER].listen(PORT, spec("minrtt", "cubic", 0..2));
        let id = ends[CLIENT].connect(Time::ZERO, PORT, spec("minrtt", "cubic", 0..2)).unwrap();
        Transfer {
            now: Time::ZERO,
            ends,
            ids: [Some(id), None],
            flying: BTreeMap::new(),
            free: [[Time::ZERO; 2]; 2],
            count: 0,
            read: 0,
            view: AttackerView::default(),
            attacker: RandomStream::new(9, &["attacker"]),
            strays: 0,
            told: [0; 2],
        }
    }

    /// Processes and sends everything that is due at one end.
    fn serve(&mut self, end: usize) {
        let (now, endpoint) = (self.now, &mut self.ends[end]);
        if end == SERVER && self.ids[SERVER].is_none() {
            self.ids[SERVER] = endpoint.poll_accept();
        }
        while endpoint.poll_accept().is_some() {}
        while endpoint.poll_news().is_some() {}
        if let Some(id) = self.ids[end] {
            if end == SERVER {
                endpoint.write(now, id, u64::MAX).unwrap();
            } else {
                self.read += endpoint.skip(now, id, u64::MAX).unwrap();
            }
        }
        while let Some(transmit) = endpoint.poll_transmit(now) {
            let (path, segment) = (transmit.path.index(), transmit.segment);
            let client_port = if end == CLIENT { segment.src_port } else { segment.dst_port };
            if path > 1 || client_port < 49_152 {
                self.strays += 1;
                continue;
            }
            self.view.look(end, path, &segment);
            if end == SERVER && path == 0 {
                self.told[usize::from(!segment.payload.is_empty())] += 1;
            }
            let free = &mut self.free[path][end];
            let queued = free.since(now.min(*free));
            // 60 kB at 20 Mbit/s.
            if queued > Span::from_millis(24) {
                continue;
            }
            *free = now.max(*free) + Span::from_nanos(u64::from(segment.ip_len()) * 400);
            self.count += 1;
            let arrives = *free + Span::from_millis([10, 15][path]);
            self.flying.insert((arrives, self.count), (1 - end, path as u32, segment));
        }
    }

    /// Runs until `target`, with `each` hostile segments per millisecond.
    fn until(&mut self, target: Time, each: u64, attack: &mut Attack<'_>) {
        let mut turn = self.now;
        while self.now < target {
            for end in [CLIENT, SERVER] {
                self.serve(end);
            }
            let timer = self.ends[CLIENT].poll_timeout().min(self.ends[SERVER].poll_timeout());
            let arrival = self.flying.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
            self.now = timer.min(arrival).min(turn).max(self.now);
            if self.now >= turn {
                turn = self.now + Span::from_millis(1);
                for _ in 0..each {
                    if let Some((to, path, segment)) = attack(&self.view, &mut self.attacker) {
                        self.ends[to].handle(self.now, path, &segment);
                    }
                }
            } else if arrival <= self.now {
                if let Some((_, (to, path, segment))) = self.flying.pop_first() {
                    self.ends[to].handle(self.now, PathId(path), &segment);
                    self.ends[1 - to].recycle(segment);
                }
            } else {
                self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
            }
        }
    }

    fn subflows(&self, end: usize) -> usize {
        self.ids[end].and_then(|id| self.ends[end].ports(id)).map_or(0, |ports| ports.len())
    }
}

impl AttackerView {
    fn look(&mut self, end: usize, path: usize, segment: &Segment) {
        if let Some(Mptcp::Capable(capable)) = segment.options.mptcp.as_deref() {
            self.keys[end] = self.keys[end].or(capable.sender_key);
            self.ports = match end {
                CLIENT => (segment.src_port, segment.dst_port),
                _ => (segment.dst_port, segment.src_port),
            };
        }
        if end == SERVER && path == 0 {
            self.latest = (segment.seq, segment.ack);
        }
    }

    /// Returns a segment with the addresses of the first subflow, sent to `to`.
    fn forged(&self, to: usize, flags: Flags) -> Segment {
        let (src_port, dst_port) =
            if to == SERVER { self.ports } else { (self.ports.1, self.ports.0) };
        Segment { src_port, dst_port, flags, window: 1_000, ..Segment::default() }
    }
}

fn syn(stream: &mut RandomStream, option: Option<Mptcp>) -> Segment {
    Segment {
        // Clients of this test do not dial from these ports.
        src_port: 1_024 + stream.below(40_000) as u16,
        dst_port: PORT,
        seq: stream.bits() as u32,
        flags: Flags::SYN,
        window: 65_535,
        options: Options { mptcp: option.map(Box::new), ..Options::default() },
        ..Segment::default()
    }
}

/// Returns a path that the transfer does not use.
fn elsewhere(stream: &mut RandomStream) -> PathId {
    PathId(2 + stream.below(60_000) as u32)
}

/// The result of a transfer during a flood.
struct Report {
    transfer: Transfer,
    /// Largest memory of the endpoints in bytes beyond that of a transfer without a flood.
    more: usize,
}

/// Compares a transfer that is attacked after one second with one that is not.
fn attacked(attack: &mut Attack<'_>) -> Result<Report, Failed> {
    let run = |attack: &mut Attack<'_>| {
        let before = held();
        let mut transfer = Transfer::new();
        transfer.until(Time::ZERO + Span::from_secs(1), 0, &mut |_, _| None);
        let mut most = 0;
        for tenth in 1..=10 * SECONDS {
            let until = Time::ZERO + Span::from_millis(1_000 + 100 * tenth);
            transfer.until(until, EACH_MS, attack);
            most = most.max(held() - before);
        }
        (transfer, most)
    };
    let (alone, least) = run(&mut |_, _| None);
    let (transfer, most) = run(attack);
    let kept = transfer.read as f64 / alone.read as f64;
    let more = most.saturating_sub(least);
    println!(
        "{:.1} % of the goodput, {} kB more, {} connections kept, {} answers to strangers",
        100.0 * kept,
        more / 1_000,
        transfer.ends[SERVER].kept(),
        transfer.strays
    );
    if kept < 0.9 {
        return Err(format!("{:.1} % of the goodput", 100.0 * kept).into());
    }
    Ok(Report { transfer, more })
}

fn at_most(what: &str, value: usize, most: usize) -> Result<(), Failed> {
    if value > most {
        return Err(format!("{what}: {value}, at most {most}").into());
    }
    Ok(())
}

/// Half-open connections, and the most bytes of each.
const HALF_OPEN: usize = 4_096;
const EACH_HALF_OPEN: usize = 4_000;

/// S3, R80, F10: tens of thousands of SYNs whose senders never answer.
fn syns() -> Result<(), Failed> {
    let capable = || Mptcp::Capable(MpCapable::default());
    let Report { transfer, more } = attacked(&mut |_, stream| {
        let option = (stream.below(2) == 0).then(capable);
        Some((SERVER, elsewhere(stream), syn(stream, option)))
    })?;
    at_most("connections", transfer.ends[SERVER].kept(), HALF_OPEN + 1)?;
    at_most("bytes", more, HALF_OPEN * EACH_HALF_OPEN)
}

/// S3, R20, R26, F9, F10: joins with unknown tokens leave no state.
fn unknown_joins() -> Result<(), Failed> {
    let Report { transfer, more } = attacked(&mut |_, stream| {
        let (token, nonce) = (stream.bits() as u32, stream.bits() as u32);
        let join = Mptcp::JoinSyn(JoinSyn { backup: false, address_id: 7, token, nonce });
        Some((SERVER, elsewhere(stream), syn(stream, Some(join))))
    })?;
    at_most("connections", transfer.ends[SERVER].kept(), 1)?;
    at_most("subflows", transfer.subflows(SERVER), 2)?;
    at_most("bytes", more, 100_000)
}

/// S3, S5, R23, R24, F9: joins with the correct token but without the keys, including third ACKs.
/// At most ten per second pass, and there are never more than eight subflows.
fn joins_without_keys() -> Result<(), Failed> {
    let Report { transfer, more } = attacked(&mut |view, stream| {
        let token = view.keys[SERVER]?.token();
        let path = elsewhere(stream);
        let mut segment = syn(stream, None);
        let option = if stream.below(2) == 0 {
            Mptcp::JoinSyn(JoinSyn { backup: false, address_id: 7, token, nonce: 1 })
        } else {
            segment.flags = Flags::ACK;
            Mptcp::JoinAck(JoinAck { hmac: [7; 20] })
        };
        segment.options.mptcp = Some(Box::new(option));
        Some((SERVER, path, segment))
    })?;
    at_most("connections", transfer.ends[SERVER].kept(), 1)?;
    at_most("subflows", transfer.subflows(SERVER), 8)?;
    at_most("bytes", more, 8 * EACH_HALF_OPEN + 100_000)
}

fn announcement(stream: &mut RandomStream, hmac: u64) -> Mptcp {
    Mptcp::AddAddr(AddAddr {
        address_id: 1 + stream.below(250) as u8,
        address: IpAddr::from([10, stream.bits() as u8, stream.bits() as u8, 1]),
        port: None,
        hmac: Some(hmac),
    })
}

/// S5, S8, R44, F9: an attacker who sees the packets but has no keys announces addresses. The
/// client does not join them.
fn forged_addresses() -> Result<(), Failed> {
    let Report { transfer, more } = attacked(&mut |view, stream| {
        let mut forged = view.forged(CLIENT, Flags::ACK);
        (forged.seq, forged.ack) = (view.latest.0, view.latest.1);
        let hmac = stream.bits();
        forged.options.mptcp = Some(Box::new(announcement(stream, hmac)));
        Some((CLIENT, PathId(0), forged))
    })?;
    at_most("subflows", transfer.subflows(CLIENT), 2)?;
    at_most("bytes", more, 100_000)
}

/// S8, R45: a server announces many addresses. The client accepts a few, joins no more than its
/// limit, and never joins an address that cannot be another host's.
fn many_addresses() -> Result<(), Failed> {
    let mut transfer = Transfer::new();
    transfer.until(Time::ZERO + Span::from_secs(1), 0, &mut |_, _| None);
    let (before, at_start, id) = (held(), transfer.read, transfer.ids[SERVER].unwrap());
    let mut dialled = BTreeSet::new();
    for n in 0..200_u8 {
        let address = match n % 4 {
            0 => IpAddr::from([127, 0, 0, n]),
            1 => IpAddr::from([224, 0, 0, n]),
            2 => IpAddr::from([255, 255, 255, 255]),
            _ => IpAddr::from([10, 9, 8, n]),
        };
        let now = transfer.now;
        transfer.ends[SERVER].announce(now, id, address, None).unwrap();
        transfer.until(now + Span::from_millis(10), 0, &mut |_, _| None);
        let flying = transfer.flying.values();
        let syns = flying.filter(|(to, _, it)| *to == SERVER && it.flags == Flags::SYN);
        dialled.extend(syns.map(|(_, _, it)| it.server));
    }
    dialled.remove(&ServerAddress::default());
    let addresses: Vec<_> =
        dialled.iter().filter_map(|it| transfer.ends[CLIENT].address(*it)).collect();
    println!("dialled {addresses:?}");
    at_most("addresses", addresses.len(), usize::from(Config::PEER_ADDRESSES))?;
    if addresses.is_empty() || addresses.iter().any(|it| !it.to_string().starts_with("10.9.8.")) {
        return Err(format!("{addresses:?} were dialled").into());
    }
    at_most("subflows", transfer.subflows(CLIENT), 8)?;
    at_most("bytes", held().saturating_sub(before), 4_000_000)?;
    // Two seconds of 40 Mbit/s.
    at_most("bytes that are missing", 9_000_000, (transfer.read - at_start) as usize + 1)
}

/// S4, R60, R70, F8: blind resets, SYNs, FINs and data with any sequence numbers, from an attacker
/// who knows the ports. 60,000 here, 2^20 with `PLAIT_SOAK`.
fn blind() -> Result<(), Failed> {
    let kinds = [
        Flags::RST,
        Flags::RST.with(Flags::ACK),
        Flags::SYN,
        Flags::SYN.with(Flags::ACK),
        Flags::FIN.with(Flags::ACK),
        Flags::ACK,
    ];
    let each = if std::env::var_os("PLAIT_SOAK").is_some() { 18 } else { 1 };
    let Report { transfer, more } = attacked(&mut |view, stream| {
        let to = stream.below(2) as usize;
        let mut last = None;
        for _ in 0..each {
            let flags = kinds[stream.below(kinds.len() as u64) as usize];
            let mut forged = view.forged(to, flags);
            (forged.seq, forged.ack) = (stream.bits() as u32, stream.bits() as u32);
            if !flags.has(Flags::SYN) && !flags.has(Flags::RST) {
                forged.payload = Payload::from_bytes(&[0xee; 100]);
            }
            last = Some((to, PathId(0), forged));
        }
        last
    })?;
    for (end, id) in transfer.ids.iter().enumerate() {
        let state = transfer.ends[end].state(id.unwrap()).unwrap();
        if state != ConnectionState::Open || transfer.subflows(end) != 2 {
            return Err(format!("{state:?}, {} subflows", transfer.subflows(end)).into());
        }
    }
    at_most("bytes", more, 6 << 20)
}

/// S6, R32, R66, F12: single bytes far apart in the window, from an attacker who knows the sequence
/// numbers.
fn crumbs() -> Result<(), Failed> {
    let mut crumb = 0;
    let mut transfer = Transfer::new();
    transfer.until(Time::ZERO + Span::from_secs(1), 0, &mut |_, _| None);
    let before = held();
    let end = transfer.now + Span::from_millis(200);
    transfer.until(end, 500, &mut |view, _| {
        let mut forged = view.forged(CLIENT, Flags::ACK);
        crumb += 1;
        forged.seq = view.latest.0.wrapping_add(200_000 + 40 * (crumb % 100_000));
        forged.ack = view.latest.1;
        forged.payload = Payload::from_bytes(&[0xee]);
        Some((CLIENT, PathId(0), forged))
    });
    at_most("bytes", held().saturating_sub(before), 6 << 20)
}

/// S7, R70: the number of challenge ACKs per second varies between connections and between seconds.
/// An attacker cannot infer the challenge ACKs of others from it.
fn challenges() -> Result<(), Failed> {
    let mut transfer = Transfer::new();
    transfer.until(Time::ZERO + Span::from_secs(1), 0, &mut |_, _| None);
    let mut numbers = BTreeSet::new();
    // The transfer sends nothing from here on.
    transfer.ids = [None, None];
    transfer.until(Time::ZERO + Span::from_secs(20), 0, &mut |_, _| None);
    for second in 21..31 {
        let before = transfer.told[0];
        let until = Time::ZERO + Span::from_secs(second);
        transfer.until(until, 1, &mut |view, stream| {
            let mut forged = view.forged(SERVER, Flags::SYN);
            forged.seq = stream.bits() as u32;
            Some((SERVER, PathId(0), forged))
        });
        let sent = transfer.told[0] - before;
        // 40 to 79 per period, whose start is random.
        if !(30..=120).contains(&sent) {
            return Err(format!("{sent} challenges in a second").into());
        }
        numbers.insert(sent);
    }
    println!("{numbers:?}");
    if numbers.len() < 5 {
        return Err(format!("{numbers:?}").into());
    }
    Ok(())
}

/// S1, R16, R71: keys, nonces and initial sequence numbers come from the entropy. Another entropy
/// changes all of them, and the same entropy repeats all of them.
fn all_is_drawn() -> Result<(), Failed> {
    let drawn = |seed| {
        let mut client = endpoint(seed, "client");
        let mut server = endpoint(seed, "server");
        server.listen(PORT, spec("minrtt", "cubic", 0..2));
        client.connect(Time::ZERO, PORT, spec("minrtt", "cubic", 0..2)).unwrap();
        let mut seen = BTreeSet::new();
        for _ in 0..6 {
            for up in [true, false] {
                let (from, to) =
                    if up { (&mut client, &mut server) } else { (&mut server, &mut client) };
                while let Some(sent) = from.poll_transmit(Time::ZERO) {
                    let segment = &sent.segment;
                    let first = segment.flags.has(Flags::SYN);
                    seen.extend(first.then_some(u64::from(segment.seq)));
                    match segment.options.mptcp.as_deref() {
                        Some(Mptcp::Capable(it)) => seen.extend(it.sender_key.map(|key| key.0)),
                        Some(Mptcp::JoinSyn(it)) => seen.extend([u64::from(it.nonce)]),
                        Some(Mptcp::JoinSynAck(it)) => seen.extend([u64::from(it.nonce), it.hmac]),
                        _ => {}
                    }
                    to.handle(Time::ZERO, sent.path, &sent.segment);
                }
                let id = to.poll_accept();
                id.map(|id| to.write(Time::ZERO, id, 10));
            }
        }
        seen
    };
    let all = [drawn(1), drawn(1), drawn(2)];
    if all[0].len() < 9 || all[0] != all[1] || !all[0].is_disjoint(&all[2]) {
        return Err(format!("{all:x?}").into());
    }
    Ok(())
}

/// S2: `Debug` of a key prints its token instead.
fn keys_are_not_told() -> Result<(), Failed> {
    let key = Key(0x683e_36b2_5f2d_bc92);
    let text = format!("{key:?} {:?}", Mptcp::FastClose(key));
    if text.contains("683e36b2") || !text.contains("09e08e65") {
        return Err(text.into());
    }
    Ok(())
}

fn main() {
    let mut arguments = Arguments::from_args();
    // Tests run one at a time, because the allocator counts the whole process.
    arguments.test_threads = Some(1);
    let tests = vec![
        Trial::test("all_is_drawn", all_is_drawn),
        Trial::test("keys_are_not_told", keys_are_not_told),
        Trial::test("a_flood_of_syns", syns),
        Trial::test("a_flood_of_joins_with_unknown_tokens", unknown_joins),
        Trial::test("a_flood_of_joins_without_keys", joins_without_keys),
        Trial::test("a_flood_of_forged_addresses", forged_addresses),
        Trial::test("a_flood_of_true_addresses", many_addresses),
        Trial::test("blind_segments", blind),
        Trial::test("crumbs", crumbs),
        Trial::test("challenges_cannot_be_counted", challenges),
    ];
    libtest_mimic::run(&arguments, tests).exit();
}
