//! Measures throughput over a TUN device between plait and the stock kernel of this machine, with two
//! subflows and no emulated link. Run it with `cargo bench -p plait-live --bench tun`. It needs root,
//! because it creates a namespace and devices.
//!
//! `out` is from plait to the kernel, `in` the reverse. The endpoint alone generates and discards its data
//! itself. With the relay (`plait serve`), a program on a loopback socket does.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]

use plait_base::{ConnId, Span};
use plait_core::{Config, ConnectionSpec};
use plait_live::{Host, Namespace, ServeSettings, Server};
use socket2::{Domain, Protocol, Socket, Type};
use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const WARM_UP: Duration = Duration::from_secs(1);
const SERVICE: &str = "10.99.0.1:80";
const CLIENT: &str = "10.98.1.1:0";

/// A measured combination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Case {
    /// Whether plait sends.
    out: bool,
    relayed: bool,
    /// Whether the kernel segments superpackets and computes checksums.
    offload: bool,
}

/// The bytes moved since the start, and the thread of plait.
#[derive(Default)]
struct Meter {
    bytes: AtomicU64,
    thread: AtomicU64,
    over: AtomicBool,
}

impl Meter {
    /// Records the calling thread as that of plait.
    fn runs_here(&self) {
        let link = fs::read_link("/proc/thread-self").unwrap();
        let id = link.file_name().unwrap().to_str().unwrap().parse().unwrap();
        self.thread.store(id, Ordering::Relaxed);
    }

    /// Returns the CPU seconds of plait's thread, its time in the kernel included.
    fn ran(&self) -> f64 {
        let path = format!("/proc/self/task/{}/schedstat", self.thread.load(Ordering::Relaxed));
        let text = fs::read_to_string(path).unwrap();
        text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
    }

    fn over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

fn run(line: &str) {
    let mut words = line.split_whitespace();
    let output = Command::new(words.next().unwrap()).args(words).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {error}");
}

/// Creates a namespace whose kernel has two addresses and joins from the second.
fn namespace() -> io::Result<Namespace> {
    let space = Namespace::create()?;
    space.within(|| {
        for line in [
            "ip link set lo up",
            "ip addr add 10.98.1.1/32 dev lo",
            "ip addr add 10.98.2.1/32 dev lo",
            "ip mptcp limits set subflow 2 add_addr_accepted 2",
            "ip mptcp endpoint add 10.98.2.1 subflow",
        ] {
            run(line);
        }
        fs::write("/proc/sys/net/mptcp/blackhole_timeout", "0")
    })??;
    Ok(space)
}

fn spec(offload: bool) -> ConnectionSpec {
    let scheduler = plait_sched::Spec::parse("minrtt").unwrap();
    let controller = plait_cc::Spec::parse("cubic").unwrap();
    ConnectionSpec {
        config: Config::default()
            .with(|it| it.packets.superpacket = if offload { Config::SUPERPACKET } else { 0 }),
        paths: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
        addresses: Vec::new(),
    }
}

/// Runs the endpoint alone.
fn endpoint(case: Case, meter: &Meter) -> io::Result<()> {
    let mut host = Host::listen(SERVICE.parse().unwrap(), "plait0", spec(case.offload))?;
    meter.runs_here();
    let (mut conn, mut piece) = (None::<ConnId>, vec![7; 0x4_0000]);
    while !meter.over() {
        host.turn(Span::from_millis(100))?;
        let now = host.now();
        conn = conn.or(host.endpoint().poll_accept());
        while host.endpoint().poll_news().is_some() {}
        let Some(conn) = conn else { continue };
        let mut step = || match case.out {
            true => host.endpoint().write_bytes(now, conn, &piece).unwrap_or(0),
            false => host.endpoint().read(now, conn, &mut piece).unwrap_or(0),
        };
        while step() > 0 {}
    }
    Ok(())
}

/// Runs a program behind the relay that sends or receives.
fn service(listener: &Socket, case: Case) -> io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    let mut piece = vec![7; 0x4_0000];
    if case.out {
        while stream.write_all(&piece).is_ok() {}
    } else {
        while stream.read(&mut piece)? > 0 {}
    }
    Ok(())
}

/// Runs `plait serve` in front of such a program.
fn relay(case: Case, meter: &Meter) -> io::Result<()> {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
    listener.listen(1)?;
    let to = listener.local_addr()?.as_socket().unwrap();
    let settings = ServeSettings::new(SERVICE.parse().unwrap(), to, "plait0", spec(case.offload));
    let mut server = Server::open(settings)?;
    let mut stopper = server.stopper()?;
    let space = Namespace::current()?;
    meter.runs_here();
    thread::scope(|scope| {
        scope.spawn(move || space.enter().and_then(|()| service(&listener, case)));
        scope.spawn(move || {
            while !meter.over() {
                thread::sleep(Duration::from_millis(20));
            }
            // The first byte stops accepting connections, the second ends the open ones.
            for _ in 0..2 {
                stopper.write_all(&[0]).unwrap();
                thread::sleep(Duration::from_millis(100));
            }
        });
        server.run(|_| {})
    })
}

/// Runs the kernel's side: one connection, used until the end.
fn kernel(case: Case, meter: &Meter) -> io::Result<()> {
    let mut stream = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP))?;
    stream.set_tcp_congestion(b"cubic")?;
    stream.bind(&CLIENT.parse::<SocketAddr>().unwrap().into())?;
    stream.connect(&SERVICE.parse::<SocketAddr>().unwrap().into())?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    stream.set_write_timeout(Some(Duration::from_secs(1)))?;
    let mut piece = vec![7; 0x4_0000];
    while !meter.over() {
        match if case.out { stream.read(&mut piece) } else { stream.write(&piece) } {
            Ok(count) => meter.bytes.fetch_add(count as u64, Ordering::Relaxed),
            // The peer has stopped.
            Err(_) if meter.over() => break,
            Err(error) => return Err(error),
        };
    }
    Ok(())
}

/// Prints the throughput of a case, by wall-clock time and by CPU time of plait's thread.
fn measure(case: Case, seconds: u64) -> io::Result<()> {
    let (space, meter) = (namespace()?, Meter::default());
    thread::scope(|scope| {
        let plait = scope.spawn(|| {
            space.enter()?;
            if case.relayed { relay(case, &meter) } else { endpoint(case, &meter) }
        });
        while meter.thread.load(Ordering::Relaxed) == 0 && !plait.is_finished() {
            thread::sleep(Duration::from_millis(10));
        }
        let stock = scope.spawn(|| space.enter().and_then(|()| kernel(case, &meter)));
        thread::sleep(WARM_UP);
        let (start, bytes, ran) = (Instant::now(), &meter.bytes, meter.ran());
        let before = bytes.load(Ordering::Relaxed);
        thread::sleep(Duration::from_secs(seconds));
        let moved = bytes.load(Ordering::Relaxed) - before;
        let (took, ran) = (start.elapsed().as_secs_f64(), meter.ran() - ran);
        meter.over.store(true, Ordering::Relaxed);
        let gbit = moved as f64 * 8.0 / 1e9;
        println!(
            "{:<4} {:<12} {:<17} {:>6.2} Gbit/s {:>8.2} Gbit per cpu-second of plait's thread",
            if case.out { "out" } else { "in" },
            if case.offload { "superpackets" } else { "no offload" },
            if case.relayed { "behind the relay" } else { "endpoint alone" },
            gbit / took,
            gbit / ran
        );
        stock.join().unwrap()?;
        plait.join().unwrap()
    })
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    args.retain(|arg| !arg.starts_with("--"));
    let has = |word: &str| args.iter().any(|arg| arg == word);
    let seconds = args.iter().find_map(|arg| arg.parse().ok()).unwrap_or(5);
    if let Err(error) = namespace() {
        return println!("skipped: no network namespace: {error}");
    }
    let both = [false, true];
    for offload in
        both.into_iter().filter(|it| !has("offload") && !has("plain") || has("offload") == *it)
    {
        for (out, relayed) in [(true, false), (false, false), (true, true), (false, true)] {
            let skip_way = (has("out") || has("in")) && !has(if out { "out" } else { "in" });
            let skip_side = (has("endpoint") || has("relay")) && has("relay") != relayed;
            let case = Case { out, relayed, offload };
            if !(skip_way || skip_side)
                && let Err(error) = measure(case, seconds)
            {
                println!("{case:?}: {error}");
            }
        }
    }
}
