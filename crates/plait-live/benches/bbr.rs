//! Compares BBRv3 of a live plait and of the simulator with the bbr of this machine's kernel (version 1 in Linux
//! 6.18), over one emulated link of 20 Mbit/s and 40 ms with plain TCP.
//!
//! ```text
//! cargo bench -p plait-live --bench bbr --profile dev -- --runs 3
//! ```
//!
//! Prints the goodput and the mean queueing delay of 20 s after a start of 3 s. Live, UDP probes through the same
//! queue measure the delay, one each 20 ms. It needs root, because it creates namespaces and devices.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code, clippy::expect_used)]

#[path = "../tests/net/mod.rs"]
mod net;

use net::plait::{Serving, spec};
use net::urgent::Urgent;
use net::{Bed, Family, Line};
use plait_base::{Span, Time};
use plait_core::Event;
use plait_lab::{RawScenario, cells, simulate};
use plait_sim::{Watch, Who};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const START: Duration = Duration::from_secs(3);
const MEASURED: Duration = Duration::from_secs(20);
const PROBE: Duration = Duration::from_millis(20);
const RTT_MS: f64 = 40.0;
/// A run counts if no packet was later than this.
const MOST_LATE: Span = Span::from_millis(5);
/// Most tries of a run.
const TRIES: usize = 6;
/// Queue in bytes, and loss rate in percent. The BDP is 100,000 bytes.
const CASES: [(u64, u32); 3] = [(100_000, 0), (400_000, 0), (100_000, 1)];

/// A sender.
#[derive(Clone, Copy, Debug)]
enum Sender {
    Kernel(&'static str),
    Plait(&'static str),
    Simulator(&'static str),
}

const SENDERS: [Sender; 6] = [
    Sender::Kernel("bbr"),
    Sender::Plait("bbr"),
    Sender::Simulator("bbr"),
    Sender::Kernel("cubic"),
    Sender::Plait("cubic"),
    Sender::Simulator("cubic"),
];

/// The result of a run.
#[derive(Clone, Copy, Debug)]
struct Seen {
    mbps: f64,
    queue_ms: f64,
}

/// Returns a socket of plain TCP with this controller.
fn socket(cc: &str) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_tcp_congestion(cc.as_bytes())?;
    let set = socket.tcp_congestion()?;
    assert!(set.starts_with(cc.as_bytes()), "the kernel took {set:?} instead of {cc}");
    socket.set_read_timeout(Some(Duration::from_secs(5)))?;
    Ok(socket)
}

/// Listens in the server's namespace, and sends to each connection until it ends.
fn listen(bed: &Bed, at: SocketAddr, cc: &'static str) -> io::Result<SocketAddr> {
    let listener = bed.server.within(|| -> io::Result<Socket> {
        let listener = socket(cc)?;
        listener.bind(&at.into())?;
        listener.listen(4)?;
        Ok(listener)
    })??;
    let address = listener.local_addr()?.as_socket().unwrap();
    listener.set_read_timeout(None)?;
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let piece = vec![7; 1 << 16];
            while stream.write_all(&piece).is_ok() {}
        }
    });
    Ok(address)
}

/// Answers probes in the server's namespace until `over`.
fn echo(bed: &Bed, over: &Arc<AtomicBool>) -> io::Result<SocketAddr> {
    let (_, server) = Family::V4.on_path(0);
    let socket = bed.server.within(|| UdpSocket::bind(SocketAddr::new(server, 0)))??;
    let (address, over) = (socket.local_addr()?, over.clone());
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    thread::spawn(move || {
        let mut bytes = [0; 8];
        while !over.load(Ordering::Relaxed) {
            if let Ok((len, from)) = socket.recv_from(&mut bytes) {
                let _ = socket.send_to(&bytes[..len], from);
            }
        }
    });
    Ok(address)
}

/// Sends a probe each 20 ms for the measured time, and returns the mean RTT in milliseconds.
fn probe(socket: &UdpSocket, to: SocketAddr) -> io::Result<f64> {
    let (start, answers) = (Instant::now(), socket.try_clone()?);
    answers.set_read_timeout(Some(Duration::from_millis(500)))?;
    let reading = thread::spawn(move || {
        let (mut sum, mut count, mut bytes) = (0.0, 0_u32, [0; 8]);
        while start.elapsed() < MEASURED + Duration::from_secs(1) {
            if answers.recv(&mut bytes).is_ok() {
                let sent = Duration::from_nanos(u64::from_be_bytes(bytes));
                sum += (start.elapsed() - sent).as_secs_f64() * 1e3;
                count += 1;
            }
        }
        sum / f64::from(count.max(1))
    });
    let mut due = Duration::ZERO;
    while due < MEASURED {
        thread::sleep(due.saturating_sub(start.elapsed()));
        socket.send_to(&(start.elapsed().as_nanos() as u64).to_be_bytes(), to)?;
        due += PROBE;
    }
    Ok(reading.join().unwrap())
}

/// Measures a live sender once. Returns `None` if the emulator was late.
fn live(sender: Sender, (queue, loss): (u64, u32)) -> io::Result<Option<Seen>> {
    let _urgent = Urgent::start();
    let bed = Bed::build(Family::V4, &[Line { loss, ..Line::new(20, 40, queue) }])?;
    let service = SocketAddr::new(Family::V4.service(), 80);
    let serving = match sender {
        Sender::Kernel(cc) => {
            bed.own_service()?;
            listen(&bed, service, cc)?;
            None
        }
        Sender::Plait(cc) | Sender::Simulator(cc) => {
            let program = listen(&bed, SocketAddr::from(([127, 0, 0, 1], 0)), "cubic")?;
            let controller = plait_cc::Spec::parse(cc).unwrap();
            let mut spec = spec("minrtt");
            spec.controller = Arc::new(move |_| controller.build());
            Some(Serving::start(&bed, program, spec)?)
        }
    };
    let over = Arc::new(AtomicBool::new(false));
    let to = echo(&bed, &over)?;
    let probes = bed.client.within(|| UdpSocket::bind("0.0.0.0:0"))??;
    let read = Arc::new(AtomicU64::new(0));
    let client = bed.client.try_clone()?;
    let (done, bytes) = (over.clone(), read.clone());
    let reading = thread::spawn(move || {
        client.within(|| -> io::Result<()> {
            thread::sleep(Duration::from_millis(400));
            let mut stream = socket("cubic")?;
            stream.connect(&service.into())?;
            let mut piece = vec![0; 1 << 16];
            while !done.load(Ordering::Relaxed) {
                let len = stream.read(&mut piece)?;
                bytes.fetch_add(len as u64, Ordering::Relaxed);
            }
            Ok(())
        })?
    });
    thread::sleep(START);
    let (began, before) = (Instant::now(), read.load(Ordering::Relaxed));
    let rtt_ms = probe(&probes, to)?;
    let moved = read.load(Ordering::Relaxed) - before;
    let mbps = moved as f64 * 8e-6 / began.elapsed().as_secs_f64();
    over.store(true, Ordering::Relaxed);
    reading.join().unwrap()?;
    if let Some(serving) = serving {
        serving.stop()?;
    }
    let late = bed.emulator.stop()?.lateness.worst();
    let seen = Seen { mbps, queue_ms: rtt_ms - RTT_MS };
    if late > MOST_LATE {
        eprintln!("{sender:?} over {queue} bytes: the emulator was {} us late", late.as_micros());
        return Ok(None);
    }
    Ok(Some(seen))
}

/// Delivered bytes of the measured time, and the last RTT of each 20 ms.
#[derive(Default)]
struct Watcher {
    bytes: u64,
    rtts: Vec<Span>,
    next: Time,
}

impl Watch for Watcher {
    fn on_core(&mut self, now: Time, _: Who, event: &Event) {
        let measured = Time::from_nanos(START.as_nanos() as u64)
            ..Time::from_nanos((START + MEASURED).as_nanos() as u64);
        let Event::Acked { bytes, rtt, .. } = *event else { return };
        if !measured.contains(&now) {
            return;
        }
        self.bytes += bytes;
        if let Some(rtt) = rtt.filter(|_| now >= self.next) {
            self.rtts.push(rtt);
            self.next = now + Span::from_nanos(PROBE.as_nanos() as u64);
        }
    }
}

/// Runs the same in the simulator.
fn simulated(cc: &str, (queue, loss): (u64, u32), seed: u64) -> Seen {
    let mut raw = RawScenario::new();
    let path = format!("a:rate=20mbit,rtt=40ms,queue={queue}B,loss={loss}%,loss_up={loss}%");
    raw.argument("path", &path).unwrap();
    raw.argument("workload", "bulk:24s").unwrap();
    raw.argument("schedulers", "minrtt").unwrap();
    raw.argument("cc", cc).unwrap();
    raw.argument("seed", &seed.to_string()).unwrap();
    let scenario = raw.build().unwrap();
    let mut seen = Watcher::default();
    let outcome = simulate(&cells(&scenario)[0], scenario.seed, &mut seen);
    assert_eq!(outcome.violation, None);
    let sum = seen.rtts.iter().fold(Span::ZERO, |sum, rtt| sum + *rtt);
    let rtt_ms = sum.as_millis_f64() / seen.rtts.len().max(1) as f64;
    Seen { mbps: seen.bytes as f64 * 8e-6 / MEASURED.as_secs_f64(), queue_ms: rtt_ms - RTT_MS }
}

fn measure(sender: Sender, case: (u64, u32), run: u64) -> io::Result<Seen> {
    if let Sender::Simulator(cc) = sender {
        return Ok(simulated(cc, case, run));
    }
    for _ in 0..TRIES {
        if let Some(seen) = live(sender, case)? {
            return Ok(seen);
        }
    }
    Err(io::Error::other("the emulator was late in every run"))
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(at) = args.iter().position(|arg| arg == "--runs") else {
        return println!("bbr: nothing to do; `--runs N` measures");
    };
    let runs: u64 = args.get(at + 1).and_then(|arg| arg.parse().ok()).unwrap_or(3);
    println!("| queue, loss | sender | goodput, Mbit/s | mean queue, ms |\n|---|---|---|---|");
    for case in CASES {
        for sender in SENDERS {
            let mut all = Vec::new();
            for run in 1..=runs {
                match measure(sender, case, run) {
                    Ok(seen) => all.push(seen),
                    Err(error) => {
                        eprintln!("bbr: {sender:?}: {error}");
                        exit(1);
                    }
                }
            }
            let text = |of: fn(&Seen) -> f64| {
                let mut values: Vec<f64> = all.iter().map(of).collect();
                values.sort_by(f64::total_cmp);
                let (least, most) = (values[0], values[values.len() - 1]);
                format!("{:.2} ({least:.2} to {most:.2})", values[values.len() / 2])
            };
            let (queue, loss) = case;
            println!(
                "| {} kB, {loss} % | {sender:?} | {} | {} |",
                queue / 1_000,
                text(|it| it.mbps),
                text(|it| it.queue_ms)
            );
        }
    }
}
