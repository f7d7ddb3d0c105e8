//! Attacks on `plait serve` by many clients: more source addresses than 16 bits number, a flood of SYNs
//! beside clients with long round-trip times, and what memory many short connections leave behind.
//! `PLAIT_SOAK=1` runs them as long as the reliability goals state them.
#![allow(unreachable_pub)]

use crate::net::kernel::Speaks;
use crate::net::timely::agreed;
use crate::net::{self, Bed, Family, Line};
use crate::{Watched, at_once, memory};
use libtest_mimic::{Failed, Trial};
use plait_live::Device;
use plait_wire::{Flags, Payload, Segment, codec};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    let soak = std::env::var_os("PLAIT_SOAK").is_some();
    let mut trials = Vec::new();
    let crowd = if soak { ALL_ADDRESSES } else { SOME_ADDRESSES };
    trials.push(Trial::test("many_addresses_leave_a_download_its_rate", move || addresses(crowd)));
    let floods = if soak { &LONG_FLOODS[..] } else { &SHORT_FLOODS[..] };
    for flood in floods.iter().copied() {
        let name = format!("a_flood_of_syns_shuts_nobody_out/{}ms", flood.rtt_ms);
        trials.push(Trial::test(name, move || flooded(flood)));
    }
    let churn = if soak { MANY_CONNECTIONS } else { FEW_CONNECTIONS };
    trials.push(Trial::test("short_connections_leave_no_memory_behind", move || churned(churn)));
    if soak {
        trials.push(Trial::test("a_subflow_whose_client_is_gone_ends", deserted));
    }
    trials
}

/// First of the addresses of strangers: 198.18.0.0/15, which has 131,072 of them.
const FIRST_STRANGER: u32 = 0xc612_0000;
/// How often packets of strangers are sent.
const TICK: Duration = Duration::from_millis(5);

/// A device of the server's host, behind which strangers are.
struct Strangers {
    device: Device,
    to: SocketAddr,
}

impl Strangers {
    fn behind(bed: &Bed) -> Result<Strangers, Failed> {
        let device = bed.server.within(|| {
            let device = Device::open("strangers", 1_500);
            net::run("ip route add 198.18.0.0/15 dev strangers");
            device
        })??;
        Ok(Strangers { device, to: SocketAddr::new(bed.family.service(), 80) })
    }

    /// Sends a segment from the stranger with this number. Answers are not read.
    fn send(&self, number: u32, segment: Segment) {
        let from = IpAddr::from((FIRST_STRANGER + number).to_be_bytes());
        let segment = Segment { dst_port: self.to.port(), window: 0xffff, ..segment };
        let mut packet = Vec::new();
        let headers = codec::Headers::new(from, self.to.ip());
        codec::encode(&headers, &segment, codec::TcpChecksum::Full, &mut packet).unwrap();
        // A full queue drops it, as a network would.
        let _ = self.device.try_send(&packet).unwrap();
    }

    /// Calls `send` with the numbers from 0 to `count`, so many a second, until all are sent or `over`.
    fn pace(&self, count: u32, per_second: u32, over: &AtomicBool, send: impl Fn(&Strangers, u32)) {
        let (start, mut sent) = (Instant::now(), 0);
        while sent < count && !over.load(Relaxed) {
            let due = start.elapsed().as_secs_f64() * f64::from(per_second);
            while sent < count && f64::from(sent) < due {
                send(self, sent);
                sent += 1;
            }
            thread::sleep(TICK);
        }
    }

    /// A SYN, and one segment that ends the connection with two bytes. It guesses what it acknowledges.
    fn knock(&self, number: u32) {
        let from = Segment { src_port: 4_000, seq: number, ..Segment::default() };
        self.send(number, Segment { flags: Flags::SYN, ..from.clone() });
        let flags = Flags::ACK.with(Flags::PSH).with(Flags::FIN);
        let payload = Payload::from_bytes(b"x\n");
        self.send(number, Segment { flags, seq: number + 1, ack: 1, payload, ..from });
    }

    /// A SYN; each stranger has 1,000 ports.
    fn syn(&self, number: u32) {
        let src_port = 1_024 + (number % 1_000) as u16;
        self.send(
            number / 1_000,
            Segment { src_port, seq: number, flags: Flags::SYN, ..Segment::default() },
        );
    }
}

/// A paced download beside packets from many addresses.
#[derive(Clone, Copy)]
struct Addresses {
    mbit: u64,
    count: u32,
    per_second: u32,
}

const SOME_ADDRESSES: Addresses = Addresses { mbit: 20, count: 4_500, per_second: 1_500 };
/// R1 of the reliability goals.
const ALL_ADDRESSES: Addresses = Addresses { mbit: 80, count: 66_500, per_second: 3_500 };

/// The share of its rate that a download keeps, and how long a new client waits at most.
#[derive(Debug)]
struct Kept {
    share: f64,
    longest: Duration,
}

/// R1: a download keeps 95 % of its rate, and new clients are served within a second.
fn addresses(crowd: Addresses) -> Result<(), Failed> {
    let worse = |kept: &Kept| {
        let worse = kept.share < 0.95 || kept.longest > Duration::from_secs(1);
        worse.then(|| format!("{kept:?}"))
    };
    agreed("a download beside many addresses", || beside_addresses(crowd), worse).map(drop)
}

fn beside_addresses(crowd: Addresses) -> Result<Option<Kept>, Failed> {
    let Addresses { mbit, count, per_second } = crowd;
    let bed = Bed::build(Family::V4, &[Line::new(mbit * 5 / 4, 20, mbit * 5_000)])?;
    let server = Watched::start(&bed, at_once(&bed.server)?, &[])?;
    let strangers = Strangers::behind(&bed)?;
    let (over, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let kept = thread::scope(|scope| {
        let reading = download(&server, scope, mbit, &over, &bytes);
        // Its window grows first, and it makes up for that time.
        thread::sleep(Duration::from_secs(3));
        let crowded = scope.spawn(|| strangers.pace(count, per_second, &over, Strangers::knock));
        let mut longest = Duration::ZERO;
        let beside = rate(&bytes, Duration::from_secs(u64::from(count / per_second)), || {
            longest = longest.max(served_within(&server).unwrap_or(Duration::MAX));
            thread::sleep(Duration::from_millis(200));
        });
        crowded.join().unwrap();
        over.store(true, Relaxed);
        reading.join().unwrap()?;
        io::Result::Ok(Kept { share: beside / (mbit * 125_000) as f64, longest })
    })?;
    let told = |series| server.told(series);
    eprintln!(
        "{kept:?}; {} client addresses have a number, {} half-open connections",
        told("plait_client_addresses"),
        told("plait_connections_half_open")
    );
    assert_eq!(told("plait_connections_refused_total{shortage=\"addresses\"}"), 0);
    server.end()?;
    let report = bed.emulator.stop()?;
    eprintln!("{}", report.lateness);
    Ok(report.lateness.allows_timing().then_some(kept))
}

/// A download of `mbit`, until `over`, in pieces that are asked for as time goes by; counts the bytes.
fn download<'scope>(
    server: &'scope Watched<'_>,
    scope: &'scope thread::Scope<'scope, '_>,
    mbit: u64,
    over: &'scope AtomicBool,
    bytes: &'scope AtomicU64,
) -> ScopedJoinHandle<'scope, io::Result<()>> {
    scope.spawn(move || {
        let piece = (mbit * 125_000 * PIECE.as_millis() as u64 / 1_000) as usize;
        let request = format!("get {piece}\n");
        let (mut stream, mut buffer) = (server.ask(Speaks::Mptcp, piece)?, vec![0; piece]);
        let start = Instant::now();
        for number in 1_u32.. {
            let due = start + PIECE * number;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            stream.write_all(request.as_bytes())?;
            stream.read_exact(&mut buffer)?;
            bytes.fetch_add(piece as u64, Relaxed);
            if over.load(Relaxed) {
                break;
            }
        }
        Ok(())
    })
}

/// A download asks for what its rate gives in this time; the answer to the request before has come by then.
const PIECE: Duration = Duration::from_millis(50);

/// Bytes a second over a time, in which `meanwhile` is called again and again.
fn rate(bytes: &AtomicU64, time: Duration, mut meanwhile: impl FnMut()) -> f64 {
    let (start, before) = (Instant::now(), bytes.load(Relaxed));
    while start.elapsed() < time {
        meanwhile();
        thread::sleep(TICK);
    }
    (bytes.load(Relaxed) - before) as f64 / start.elapsed().as_secs_f64()
}

/// How long a new client waits for an answer.
fn served_within(server: &Watched<'_>) -> io::Result<Duration> {
    let start = Instant::now();
    server.ask(Speaks::Tcp, 1_000)?.read_exact(&mut [0; 1_000])?;
    Ok(start.elapsed())
}

/// Clients with a long round-trip time beside a flood of SYNs.
#[derive(Clone, Copy)]
struct Flood {
    rtt_ms: u64,
    per_second: u32,
    clients: usize,
}

const SHORT_FLOODS: [Flood; 1] = [Flood { rtt_ms: 300, per_second: 5_000, clients: 6 }];
/// R4 of the reliability goals.
const LONG_FLOODS: [Flood; 3] = [
    Flood { rtt_ms: 50, per_second: 20_000, clients: 20 },
    Flood { rtt_ms: 300, per_second: 20_000, clients: 20 },
    Flood { rtt_ms: 500, per_second: 20_000, clients: 20 },
];
/// Half-open connections that a server keeps; further clients come by SYN cookies.
const HALF_OPEN: u64 = 4_096;

/// R4: every client gets its answer, half of them by plain TCP and half by Multipath TCP.
fn flooded(flood: Flood) -> Result<(), Failed> {
    let Flood { rtt_ms, per_second, clients } = flood;
    let bed = Bed::build(Family::V4, &[Line::new(50, rtt_ms, 4_000_000)])?;
    let server = Watched::start(&bed, at_once(&bed.server)?, &[])?;
    let strangers = Strangers::behind(&bed)?;
    let over = AtomicBool::new(false);
    let [before, _] = bed.counters();
    let served = thread::scope(|scope| {
        let flooding = scope.spawn(|| strangers.pace(u32::MAX, per_second, &over, Strangers::syn));
        net::until("a flood", || server.told("plait_connections_half_open") >= HALF_OPEN);
        let client = |number: usize| {
            let speaks = if number.is_multiple_of(2) { Speaks::Tcp } else { Speaks::Mptcp };
            thread::sleep(Duration::from_millis(50 * number as u64));
            let start = Instant::now();
            let served =
                server.ask(speaks, 10_000).and_then(|mut it| it.read_exact(&mut [0; 10_000]));
            eprintln!("{speaks:?}: {served:?} after {:?}", start.elapsed());
            served.is_ok()
        };
        let all: Vec<_> = (0..clients).map(|number| scope.spawn(move || client(number))).collect();
        let served = all.into_iter().map(|it| usize::from(it.join().unwrap())).sum::<usize>();
        over.store(true, Relaxed);
        flooding.join().unwrap();
        served
    });
    let [after, _] = bed.counters();
    let told = |what| server.told(&format!("plait_overflows_total{{what=\"{what}\"}}"));
    let multipath = after.since(&before, "MPCapableSYNACKRX");
    eprintln!(
        "{served} of {clients}, {multipath} by Multipath TCP; {} cookies sent, {} accepted",
        told("cookies_sent"),
        told("cookies_accepted")
    );
    assert_eq!((served, multipath as usize), (clients, clients / 2));
    assert!(told("cookies_accepted") > 0);
    server.end()?;
    bed.emulator.stop()?;
    Ok(())
}

/// Short connections, one after the other by each of some clients.
#[derive(Clone, Copy)]
struct Churn {
    connections: usize,
    /// From the last connection until memory is compared.
    wait: Duration,
}

const FEW_CONNECTIONS: Churn = Churn { connections: 1_000, wait: Duration::from_secs(6) };
/// R7 of the reliability goals.
const MANY_CONNECTIONS: Churn = Churn { connections: 50_000, wait: Duration::from_secs(60) };
/// Clients at a time.
const AT_A_TIME: usize = 8;

/// R7: memory after many short connections is that of a server that has served one, within a fifth. Half
/// of them speak Multipath TCP, and half are ended by the service first, so that plait has TIME-WAIT.
fn churned(churn: Churn) -> Result<(), Failed> {
    let Churn { connections, wait } = churn;
    let bed = Bed::build(Family::V4, &[Line::new(1_000, 1, 4_000_000)])?;
    bed.client.within(|| {
        net::set("net/ipv4/ip_local_port_range", "1024 65535");
        net::set("net/ipv4/tcp_tw_reuse", "1");
    })?;
    let server = Watched::start(&bed, at_once(&bed.server)?, &[])?;
    let fresh = memory(server.server.id(), "VmRSS");
    short(&server, 0)?;
    let (start, begun) = (memory(server.server.id(), "VmRSS"), Instant::now());
    thread::scope(|scope| {
        let server = &server;
        let client = |first| {
            (first..connections).step_by(AT_A_TIME).try_for_each(|number| short(server, number))
        };
        let all: Vec<_> = (0..AT_A_TIME).map(|first| scope.spawn(move || client(first))).collect();
        all.into_iter().try_for_each(|it| it.join().unwrap())
    })?;
    let took = begun.elapsed();
    let (busy, most) = (memory(server.server.id(), "VmRSS"), memory(server.server.id(), "VmHWM"));
    thread::sleep(wait);
    net::until("the end of closing connections", || server.told("plait_connections_closing") == 0);
    let after = memory(server.server.id(), "VmRSS");
    let anonymous = memory(server.server.id(), "RssAnon");
    eprintln!(
        "{connections} connections in {took:.1?}: {fresh} bytes at first, {start} after one connection, \
         {busy} after all, {most} at most, {after} after {wait:?} ({anonymous} of them anonymous)"
    );
    assert!(after * 5 <= start * 6, "{after} bytes, {start} before");
    assert_eq!(server.told("plait_connections_failed_total"), 0);
    server.end()?;
    bed.emulator.stop()?;
    Ok(())
}

/// One short connection.
fn short(server: &Watched<'_>, number: usize) -> io::Result<()> {
    let speaks = if number.is_multiple_of(2) { Speaks::Tcp } else { Speaks::Mptcp };
    if number % 4 < 2 {
        // The client ends first.
        return server.ask(speaks, 1_000)?.read_exact(&mut [0; 1_000]);
    }
    let mut bytes = Vec::new();
    server.ask_last(speaks, 1_000)?.read_to_end(&mut bytes)?;
    if bytes.len() == 1_000 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// How long a server retransmits a FIN that nobody acknowledges: eight times, as Linux does
/// (`tcp_orphan_retries`), which is 102 s from a retransmission timeout of 200 ms.
const LAST_FIN: Duration = Duration::from_secs(110);
/// How often a server takes back numbers of addresses.
const REST: Duration = Duration::from_secs(5);

/// R3: the first path falls silent before both ends close, so that a subflow's FIN stays without an answer,
/// and its address goes. It ends, and leaves neither a record nor a number.
fn deserted() -> Result<(), Failed> {
    let lines = [Line::new(20, 10, 60_000), Line::new(20, 20, 60_000)];
    let bed = Bed::build(Family::V4, &lines)?;
    let server = Watched::start(&bed, at_once(&bed.server)?, &[])?;
    let mut client = server.ask_last(Speaks::Over(2), 10_000)?;
    client.read_exact(&mut [0; 10_000])?;
    // What was copied to the first path is acknowledged there.
    thread::sleep(Duration::from_millis(500));
    bed.emulator.cut(0).unwrap().set(true);
    drop(client);
    bed.client.within(|| net::run("ip addr flush dev c0"))?;
    let cut = Instant::now();
    let count = |series: &str| server.told(&format!("plait_connections_{series}"));
    let kept = || count("closing") + count("time_wait") + server.told("plait_client_addresses");
    let mut seen = Vec::new();
    while kept() > 0 && cut.elapsed() < 2 * LAST_FIN {
        let now = (count("closing"), count("time_wait"), server.told("plait_client_addresses"));
        if seen.last().is_none_or(|(_, last)| *last != now) {
            seen.push((cut.elapsed(), now));
        }
        thread::sleep(Duration::from_millis(50));
    }
    eprintln!("{:.1?}: {seen:.1?}", cut.elapsed());
    assert!(kept() == 0 && cut.elapsed() < LAST_FIN + REST, "{:?}", cut.elapsed());
    server.end()?;
    bed.emulator.stop()?;
    Ok(())
}
