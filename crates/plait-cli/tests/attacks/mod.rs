//! Attacks on `plait serve` by many clients: more source addresses than 16 bits can number, a flood of SYNs
//! beside clients with long RTTs, and memory after many short connections. `PLAIT_SOAK=1` runs them for as long
//! as the reliability goals require.
#![allow(unreachable_pub)]

mod addresses;
mod deserted;

use crate::net::kernel::Speaks;
use crate::net::{self, Bed, Family, Line};
use crate::{Watched, at_once, memory};
use libtest_mimic::{Failed, Trial};
use plait_live::Device;
use plait_wire::{Flags, Payload, Segment, codec};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

pub fn trials() -> Vec<Trial> {
    let soak = std::env::var_os("PLAIT_SOAK").is_some();
    let mut trials = Vec::new();
    trials.push(addresses::trial(soak));
    let floods = if soak { &LONG_FLOODS[..] } else { &SHORT_FLOODS[..] };
    for flood in floods.iter().copied() {
        let name = format!("a_flood_of_syns_shuts_nobody_out/{}ms", flood.rtt_ms);
        trials.push(Trial::test(name, move || flooded(flood)));
    }
    let churn = if soak { MANY_CONNECTIONS } else { FEW_CONNECTIONS };
    trials.push(Trial::test("short_connections_leave_no_memory_behind", move || churned(churn)));
    if soak {
        trials.extend(deserted::trials());
    }
    trials
}

/// First address of the attackers: 198.18.0.0/15, which has 131,072 addresses.
const FIRST_STRANGER: u32 = 0xc612_0000;
/// Interval at which attackers send packets.
const TICK: Duration = Duration::from_millis(5);

/// A device of the server's host, behind which the attackers are.
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

    /// Sends a segment from the attacker with this number. Answers are not read.
    fn send(&self, number: u32, segment: Segment) {
        let from = IpAddr::from((FIRST_STRANGER + number).to_be_bytes());
        let segment = Segment { dst_port: self.to.port(), window: 0xffff, ..segment };
        let mut packet = Vec::new();
        let headers = codec::Headers::new(from, self.to.ip());
        codec::encode(&headers, &segment, codec::TcpChecksum::Full, &mut packet).unwrap();
        // A full queue drops the segment, as a network would.
        let _ = self.device.try_send(&packet).unwrap();
    }

    /// Calls `send` with the numbers from 0 to `count`, at this rate per second, until all are sent or `over`.
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

    /// Sends a SYN, and a segment with two bytes that ends the connection. Its acknowledgement number is a
    /// guess.
    fn knock(&self, number: u32) {
        let from = Segment { src_port: 4_000, seq: number, ..Segment::default() };
        self.send(number, Segment { flags: Flags::SYN, ..from.clone() });
        let flags = Flags::ACK.with(Flags::PSH).with(Flags::FIN);
        let payload = Payload::from_bytes(b"x\n");
        self.send(number, Segment { flags, seq: number + 1, ack: 1, payload, ..from });
    }

    /// Sends a SYN; each attacker has 1,000 ports.
    fn syn(&self, number: u32) {
        let src_port = 1_024 + (number % 1_000) as u16;
        self.send(
            number / 1_000,
            Segment { src_port, seq: number, flags: Flags::SYN, ..Segment::default() },
        );
    }
}

/// Clients with a long RTT during a flood of SYNs.
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
/// Half-open connections that a server keeps. Further clients connect by SYN cookies.
const HALF_OPEN: u64 = 4_096;

/// R4: every client gets its answer, half of them over plain TCP and half over Multipath TCP.
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

/// Short connections, made by each of some clients one after the other.
#[derive(Clone, Copy)]
struct Churn {
    connections: usize,
    /// Time from the last connection until memory is compared.
    wait: Duration,
}

const FEW_CONNECTIONS: Churn = Churn { connections: 1_000, wait: Duration::from_secs(6) };
/// R7 of the reliability goals.
const MANY_CONNECTIONS: Churn = Churn { connections: 50_000, wait: Duration::from_secs(60) };
/// Simultaneous clients.
const AT_A_TIME: usize = 8;

/// R7: memory after many short connections exceeds that of a server that has served one by at most a fifth.
/// Half of them use Multipath TCP. The service ends half of them first, so that plait enters TIME-WAIT.
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

/// Makes one short connection.
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
