//! Compares `plait serve` with Multipath TCP of the stock kernel over two veth devices without emulated links. Run it with
//! `cargo bench -p plait-live --bench veth` (`-- 5` for five rounds, three by default; `-- 5 slot` for senders whose name has `slot`). It needs root, because it
//! creates namespaces and devices.
//!
//! In each round every sender sends to a stock client for three seconds, in turns. The times of the processor are
//! those of this process. It has both ends and their programs, with the kernel's work for them.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code)]

#[path = "../tests/net/mod.rs"]
mod net;

use net::kernel::{Speaks, socket};
use net::plait::spec;
use net::{Counters, run, set, until};
use plait_core::Config;
use plait_live::{Namespace, ServeSettings, Server};
use std::fs;
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

const SERVICE: ([u8; 4], u16) = ([10, 99, 0, 1], 80);
const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(3);
/// Size of a read or a write.
const PIECE_BYTES: usize = 256 << 10;
/// Ticks of the times in `/proc/self/stat` in a second (USER_HZ).
const TICKS: f64 = 100.0;

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sender {
    /// A program with a socket of Multipath TCP.
    Kernel,
    /// A program behind `plait serve` with this scheduler.
    Plait(&'static str),
}

const SENDERS: [(&str, Sender); 3] = [
    ("kernel", Sender::Kernel),
    ("plait, slot", Sender::Plait("slot")),
    ("plait, minrtt", Sender::Plait("minrtt")),
];

/// Creates two namespaces with two veth devices between them: client, server.
fn network() -> io::Result<[Namespace; 2]> {
    let spaces = [Namespace::create()?, Namespace::create()?];
    for space in &spaces {
        space.within(|| {
            run("ip link set lo up");
            set("net/ipv4/ip_forward", "1");
            set("net/ipv4/conf/all/rp_filter", "0");
            set("net/mptcp/blackhole_timeout", "0");
            run("ip mptcp limits set subflow 2 add_addr_accepted 2");
        })?;
    }
    let [client, server] = &spaces;
    let peer = server.path();
    client.within(|| {
        for at in 0..2 {
            let (device, net) = (format!("c{at}"), at + 1);
            run(&format!(
                "ip link add {device} type veth peer name s{at} netns {}",
                peer.display()
            ));
            run(&format!("ip addr add 10.98.{net}.1/24 dev {device}"));
            run(&format!("ip link set {device} up"));
        }
    })?;
    server.within(|| {
        for at in 0..2 {
            run(&format!("ip addr add 10.98.{}.2/24 dev s{at}", at + 1));
            run(&format!("ip link set s{at} up"));
        }
    })?;
    client.within(|| {
        run("ip route add 10.99.0.1 via 10.98.1.2 dev c0 metric 10");
        run("ip route add 10.99.0.1 via 10.98.2.2 dev c1 metric 20");
        run("ip mptcp endpoint add 10.98.2.1 dev c1 subflow");
    })?;
    Ok(spaces)
}

/// Sends to the next client until it closes.
fn send(at: SocketAddr, speaks: Speaks) -> io::Result<(SocketAddr, thread::JoinHandle<()>)> {
    let listener = socket(at.ip(), speaks)?;
    listener.bind(&at.into())?;
    listener.listen(1)?;
    let address = listener.local_addr()?.as_socket().unwrap();
    let sending = thread::spawn(move || {
        let (mut stream, _) = net::kernel::persist(|| listener.accept()).unwrap();
        let piece = vec![7; PIECE_BYTES];
        while stream.write_all(&piece).is_ok() {}
    });
    Ok((address, sending))
}

/// Returns the seconds of the processor that this process has used.
fn used() -> f64 {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    let fields = text.rsplit_once(") ").unwrap().1.split(' ');
    fields.skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / TICKS
}

/// The result of a run.
#[derive(Clone, Copy, Debug)]
struct Run {
    gigabits_per_s: f64,
    /// Seconds of the processor for a gigabit.
    cpu_s: f64,
    /// Mean length of the packets that plait wrote, in bytes.
    packet_bytes: Option<u64>,
}

/// Reads at a stock client.
fn receive(client: &Namespace) -> io::Result<Run> {
    client.within(|| {
        let to = SocketAddr::from(SERVICE);
        let mut stream = socket(to.ip(), Speaks::Mptcp)?;
        stream.connect(&to.into())?;
        let joined = || Counters::read().since(&Counters::default(), "MPJoinSynAckRx") == 1;
        let mut piece = vec![0; PIECE_BYTES];
        let begun = Instant::now();
        while begun.elapsed() < WARM_UP {
            assert!(stream.read(&mut piece)? > 0, "the sender has ended");
        }
        until("a join", joined);
        let (begun, before, mut bytes) = (Instant::now(), used(), 0);
        while begun.elapsed() < MEASURED {
            bytes += stream.read(&mut piece)?;
        }
        let (took, cpu) = (begun.elapsed().as_secs_f64(), used() - before);
        let gigabits = bytes as f64 * 8.0 / 1e9;
        Ok(Run { gigabits_per_s: gigabits / took, cpu_s: cpu / gigabits, packet_bytes: None })
    })?
}

fn measure(sender: Sender) -> io::Result<Run> {
    let [client, server] = network()?;
    let Sender::Plait(scheduler) = sender else {
        let (_, sending) = server.within(|| {
            run("ip addr add 10.99.0.1/32 dev lo");
            send(SERVICE.into(), Speaks::Mptcp)
        })??;
        let seen = receive(&client);
        sending.join().unwrap();
        return seen;
    };
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let (to, sending) = server.within(|| send(local, Speaks::Tcp))??;
    let mut spec = spec(scheduler);
    spec.config.packets.superpacket = Config::SUPERPACKET;
    let settings = ServeSettings::new(SERVICE.into(), to, "plait0", spec);
    let mut plait = server.within(|| Server::open(settings))??;
    let mut stopper = plait.stopper()?;
    let space = server.try_clone()?;
    let serving = thread::spawn(move || {
        space.enter()?;
        plait.run(|_| {})?;
        io::Result::Ok(plait.counters())
    });
    let seen = receive(&client);
    // The first byte stops accepting connections, the second ends the open ones, if the server still runs.
    for _ in 0..2 {
        let _ = stopper.write_all(&[0]);
        thread::sleep(Duration::from_millis(100));
    }
    let counters = serving.join().unwrap()?;
    sending.join().unwrap();
    Ok(Run { packet_bytes: counters.bytes_out.checked_div(counters.packets_out), ..seen? })
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> io::Result<()> {
    net::stamp::stamp();
    // `cargo bench` adds `--bench`.
    let rounds = std::env::args().skip(1).find_map(|arg| arg.parse::<usize>().ok()).unwrap_or(3);
    if let Some(why) = net::obstacle() {
        println!("skipped: {why}");
        return Ok(());
    }
    let is_name = |arg: &String| !arg.starts_with('-') && arg.parse::<usize>().is_err();
    let part = std::env::args().skip(1).find(is_name).unwrap_or_default();
    let senders = || SENDERS.iter().filter(|(name, _)| name.contains(&part));
    let mut seen = vec![Vec::new(); senders().count()];
    for _ in 0..rounds {
        for (runs, (_, sender)) in seen.iter_mut().zip(senders()) {
            runs.push(measure(*sender)?);
        }
    }
    println!(
        "| sender | Mbit/s, median | least | most | CPU seconds a gigabit, median | bytes of a packet |"
    );
    println!("|---|---:|---:|---:|---:|---:|");
    for ((name, _), runs) in senders().zip(seen) {
        let mut rates: Vec<f64> = runs.iter().map(|run| run.gigabits_per_s * 1e3).collect();
        rates.sort_by(f64::total_cmp);
        let cpu = median(runs.iter().map(|run| run.cpu_s).collect());
        let (least, most) = (rates[0], rates[rates.len() - 1]);
        let packet = runs[0].packet_bytes.map_or_else(String::new, |bytes| bytes.to_string());
        let rate = median(rates);
        println!("| {name} | {rate:.0} | {least:.0} | {most:.0} | {cpu:.2} | {packet} |");
    }
    Ok(())
}
