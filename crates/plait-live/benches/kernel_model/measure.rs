//! Measures a sender over emulated links. The client is a stock kernel.

use super::net::kernel::persist;
use super::net::plait::{Serving, spec};
use super::net::urgent::Urgent;
use super::net::{Bed, Family};
use super::pairs::{Load, Pair};
use plait_core::Config;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a client's request, as in the simulator.
pub const REQUEST: usize = 200;
/// Most tries of a run. A run is repeated if the emulator was late.
const TRIES: usize = 8;
/// A run counts if no packet was later than this, in us. ACKs 2 ms apart end the train of HyStart
/// (`hystart_ack_delta_us` of tcp_cubic.c), so later ones change a window's growth.
pub const MOST_LATE_US: u64 = 2_000;
/// Time between the set-up and the first SYN.
const SETTLING: Duration = Duration::from_millis(400);
/// Longest wait for the peer.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The sender of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Sender {
    /// Multipath TCP of the kernel with this congestion controller.
    Kernel(String),
    /// Plain TCP of the kernel with this congestion controller, over the first link.
    Tcp(String),
    /// plait in front of a service, with this scheduler and cubic.
    Plait(String),
}

impl Sender {
    /// Returns the protocol of the client's socket, and of the listener at the service address.
    fn protocol(&self) -> Protocol {
        match self {
            Sender::Kernel(_) | Sender::Plait(_) => Protocol::MPTCP,
            Sender::Tcp(_) => Protocol::TCP,
        }
    }

    /// Returns the congestion controller of the kernel's sockets.
    fn cc(&self) -> &str {
        match self {
            Sender::Kernel(cc) | Sender::Tcp(cc) => cc,
            Sender::Plait(_) => "cubic",
        }
    }
}

/// The results of one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Time from the first SYN to the last byte read, in ms.
    pub completion_ms: f64,
    /// Delay of each message after its due time, in ms. Empty for a download.
    pub delays_ms: Vec<f64>,
    /// IP bytes that each link delivered to the client.
    pub delivered: [u64; 2],
    /// Packets that each link's queue dropped on the way to the client.
    pub dropped: [u64; 2],
    /// MPTCP-level retransmissions of the server.
    pub reinjected: u64,
    /// Greatest lateness of the emulator, in us.
    pub late_us: u64,
}

/// Measures a pair once. Repeats the run if the emulator was late.
pub fn run(pair: &Pair, sender: &Sender) -> io::Result<Run> {
    let _urgent = Urgent::start();
    let mut late = 0;
    for _ in 0..TRIES {
        let run = attempt(pair, sender)?;
        match run {
            Ok(run) => return Ok(run),
            Err(us) => late = us,
        }
        eprintln!("{}: refused, the emulator was {late} us late", pair.name);
    }
    Err(io::Error::other(format!("{}: the emulator was late in every run ({late} us)", pair.name)))
}

fn attempt(pair: &Pair, sender: &Sender) -> io::Result<Result<Run, u64>> {
    let bed = Bed::build(Family::V4, &pair.lines)?;
    let address = SocketAddr::new(Family::V4.service(), 80);
    let (cc, protocol) = (sender.cc(), sender.protocol());
    let listen = |at: SocketAddr, protocol| -> io::Result<Socket> {
        let listener = socket(cc, protocol)?;
        listener.bind(&at.into())?;
        listener.listen(4)?;
        Ok(listener)
    };
    let (listener, plait) = match sender {
        Sender::Kernel(_) | Sender::Tcp(_) => {
            bed.own_service()?;
            (bed.server.within(|| listen(address, protocol))??, None)
        }
        Sender::Plait(scheduler) => {
            let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
            let listener = bed.server.within(|| listen(local, Protocol::TCP))??;
            let to = listener.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
            let mut spec = spec(scheduler);
            spec.config.packets.superpacket = Config::SUPERPACKET;
            let serving = Serving::start(&bed, to, spec)?;
            (listener, Some(serving))
        }
    };
    let before = bed.counters();
    let began = OnceLock::new();
    let (completion_ms, delays_ms) = thread::scope(|scope| {
        let serving = scope.spawn(|| serve(&listener, cc, pair.load, &began));
        let client = bed.client.try_clone()?;
        let began = &began;
        let asking =
            scope.spawn(move || client.within(|| ask(address, (cc, protocol), pair, began))?);
        let seen = asking.join().map_err(|_| io::Error::other("the client panicked"))??;
        serving.join().map_err(|_| io::Error::other("the server panicked"))??;
        io::Result::Ok(seen)
    })?;
    if let Some(plait) = plait {
        plait.stop()?;
    }
    let [_, server] = bed.counters();
    let reinjected = server.since(&before[1], "MPTCPRetrans");
    let report = bed.emulator.stop()?;
    let late_us = report.lateness.worst().as_micros();
    if late_us > MOST_LATE_US {
        return Ok(Err(late_us));
    }
    let down = |at: usize| report.links.get(at).map(|link| link.down).unwrap_or_default();
    Ok(Ok(Run {
        completion_ms,
        delays_ms,
        delivered: [0, 1].map(|at| down(at).delivered_bytes),
        dropped: [0, 1].map(|at| down(at).dropped_packets()),
        reinjected,
        late_us,
    }))
}

/// Returns a socket with the congestion controller `cc`.
fn socket(cc: &str, protocol: Protocol) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    socket.set_tcp_congestion(cc.as_bytes())?;
    let set = socket.tcp_congestion()?;
    assert!(set.starts_with(cc.as_bytes()), "the kernel took {set:?} instead of {cc}");
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.set_write_timeout(Some(TIMEOUT))?;
    Ok(socket)
}

fn serve(listener: &Socket, cc: &str, load: Load, began: &OnceLock<Instant>) -> io::Result<()> {
    let (mut stream, _) = persist(|| listener.accept())?;
    let set = stream.tcp_congestion()?;
    assert!(set.starts_with(cc.as_bytes()), "the accepted socket has {set:?}");
    stream.read_exact(&mut [0; REQUEST])?;
    let start = *began.get_or_init(Instant::now);
    match load {
        Load::Download { bytes } => stream.write_all(&vec![7; bytes as usize])?,
        Load::Stream { bytes, interval, messages } => {
            let message = vec![7; bytes as usize];
            for number in 0..messages {
                let due = start + Duration::from_nanos(interval.as_nanos() * number);
                thread::sleep(due.saturating_duration_since(Instant::now()));
                stream.write_all(&message)?;
            }
        }
    }
    stream.shutdown(Shutdown::Write)?;
    // The client closes last, so that the kernel does not reset unread data.
    while persist(|| stream.read(&mut [0; 64]))? > 0 {}
    Ok(())
}

/// Downloads the load; returns the completion time and the delay of each message, in ms.
fn ask(
    address: SocketAddr,
    (cc, protocol): (&str, Protocol),
    pair: &Pair,
    began: &OnceLock<Instant>,
) -> io::Result<(f64, Vec<f64>)> {
    // Wait until the devices are up and programs that watch them are done.
    thread::sleep(SETTLING);
    let mut stream = socket(cc, protocol)?;
    if let Some(bytes) = pair.rcvbuf {
        stream.set_recv_buffer_size(bytes as usize)?;
    }
    let start = Instant::now();
    stream.connect_timeout(&SockAddr::from(address), TIMEOUT)?;
    stream.write_all(&[1; REQUEST])?;
    let mut buffer = vec![0; 1 << 18];
    let (mut read, mut delays) = (0_u64, Vec::new());
    while read < pair.load.total() {
        let count = persist(|| stream.read(&mut buffer))?;
        let now = Instant::now();
        assert!(count > 0, "{}: the stream ended after {read} bytes", pair.name);
        read += count as u64;
        if let (Load::Stream { bytes, interval, .. }, Some(began)) = (pair.load, began.get()) {
            while (delays.len() as u64 + 1) * bytes <= read {
                let due = *began + Duration::from_nanos(interval.as_nanos() * delays.len() as u64);
                delays.push(now.saturating_duration_since(due).as_secs_f64() * 1e3);
            }
        }
    }
    Ok((start.elapsed().as_secs_f64() * 1e3, delays))
}
