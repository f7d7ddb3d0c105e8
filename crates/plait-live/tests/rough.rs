//! Tests failures of the network against stock kernels: outages of all paths, interfaces that go down,
//! middleboxes in front of plait's client, announced ports. Needs root, TUN and MPTCP. With `PLAIT_SOAK=1`,
//! outages last as long as in the reliability goals, and all combinations run.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code, reason = "each test file uses its own part")]

use crate::net::kernel::{self, Gate, Service, Speaks};
use crate::net::plait::{Serving, exchange, spec};
use crate::net::timely::measured;
use crate::net::urgent::Urgent;
use crate::net::{self, Case};
use crate::net::{Bed, Counters, Family, Line, stamp};
use libtest_mimic::Failed;
use plait_base::{Span, Time};
use plait_live::emulate::Strip;
use plait_live::{Device, LogEvent, Namespace};
use plait_wire::{Flags, Segment, codec};
use std::cmp::Ordering;
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use Family::V4;

/// Returns the tests of this file.
pub fn cases() -> Vec<Case> {
    let soak = std::env::var_os("PLAIT_SOAK").is_some();
    let mut cases = vec![
        Case::test("what_is_given_up_is_gone", privileges),
        Case::test("both_paths_fall_silent_and_come_back", outage),
        Case::test("an_interface_goes_down_and_up", interface),
        Case::test("an_announced_port_is_joined", announced_port),
        Case::test("an_address_without_proof_is_not_joined/by_a_kernel", unproven_to_a_kernel),
        Case::test("an_address_without_proof_is_not_joined/by_plait", unproven_to_plait),
        Case::test("options_that_vanish_from_all_joined_paths_change_no_bytes", vanished),
        Case::test("a_flood_of_syns_leaves_transfers_and_newcomers_alone", syn_flood),
    ];
    let strips = [Strip::Syn, Strip::SynAck, Strip::AfterSyn, Strip::Data];
    for (at, strip) in strips.into_iter().enumerate() {
        // `make test` runs the other combinations with plait as the server.
        for checksum in [false, true].into_iter().filter(|on| soak || *on == (at % 2 == 1)) {
            let name = format!("a_client_falls_back/{strip:?}/checksum={checksum}");
            cases.push(Case::test(name, move || stripped(strip, checksum)));
        }
    }
    if soak {
        cases.push(Case::test("a_blackhole_is_left_in_time", blackholes));
    }
    cases
}

/// S9: a process that has dropped its capabilities cannot open a further device.
fn privileges() -> Result<(), Failed> {
    let space = Namespace::create()?;
    let outcome = std::thread::spawn(move || {
        space.enter()?;
        let before = Device::open("before", 1500).map(drop);
        plait_live::drop_capabilities()?;
        std::io::Result::Ok((before, Device::open("after", 1500).map(drop)))
    });
    let (before, after) = outcome.join().unwrap()?;
    assert!(before.is_ok() && after.is_err(), "{before:?}, {after:?}");
    Ok(())
}

/// The record of a download through plait with an event in the middle.
struct Download {
    arrivals: Vec<(Instant, usize)>,
    /// Whether no packet was late.
    timed: bool,
    /// Times at which packets were late.
    late: Vec<Instant>,
}

impl Download {
    /// Returns whether no packet was late in a window of time.
    fn was_timely(&self, within: Range<Instant>) -> bool {
        !self.late.iter().any(|at| within.contains(at))
    }
}

fn download(
    lines: &[Line],
    len: usize,
    gate: Option<&Gate>,
    meanwhile: impl FnOnce(&Bed),
) -> Result<Download, Failed> {
    let bed = Bed::build(V4, lines)?;
    if gate.is_some() {
        bed.bound_buffers()?;
    }
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let serving = Serving::start(&bed, served.address, spec("minrtt"))?;
    let to = SocketAddr::new(V4.service(), 80);
    let arrivals = std::thread::scope(|scope| {
        let client = &bed.client;
        let reader = scope.spawn(move || client.within(|| kernel::get_timed(to, len, gate)));
        meanwhile(&bed);
        reader.join().unwrap()
    })??;
    served.join();
    serving.until_ended(1);
    let (log_events, _) = serving.stop()?;
    let report = bed.emulator.stop()?;
    eprintln!("{}", report.lateness);
    assert_eq!(arrivals.iter().map(|(_, count)| count).sum::<usize>(), len);
    let clean = |it: &LogEvent| !matches!(it, LogEvent::Ended { problem: Some(_), .. });
    assert!(log_events.iter().all(clean), "{log_events:?}");
    let (now, here) = (Instant::now(), report.clock.now());
    let ago = |at: &Time| Duration::from_nanos(here.since(*at).as_nanos());
    let late = report.late.iter().map(|late| now - ago(&late.at)).collect();
    Ok(Download { arrivals, timed: report.lateness.allows_timing(), late })
}

fn sleep(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// F16: all paths lose everything for a while. Data flows again within five seconds after the repair.
fn outage() -> Result<(), Failed> {
    let look = || {
        let (after, timely) = both_silent(3_000)?;
        eprintln!("data {after:?} after both paths were whole again");
        Ok(timely.then_some(after))
    };
    let late = |after: &Duration| (*after >= SOON_AFTER).then(|| format!("{after:?}"));
    measured("data after an outage of both paths", look, late).map(drop)
}

/// Cuts both paths for `time` milliseconds. Returns the time from the repair until data flows again, and
/// whether no packet was late meanwhile.
fn both_silent(time: u64) -> Result<(Duration, bool), Failed> {
    let lines = [Line::new(10, 40, 60_000); 2];
    let (mut healed, gate) = (None, Gate::default());
    let it = download(&lines, 5_000_000, Some(&gate), |bed| {
        let cuts = [bed.emulator.cut(0).unwrap(), bed.emulator.cut(1).unwrap()];
        bed.await_received("c0", 500_000);
        cuts.iter().for_each(|cut| cut.set(true));
        gate.open();
        sleep(time);
        cuts.iter().for_each(|cut| cut.set(false));
        healed = Some(Instant::now());
    })?;
    let healed = healed.unwrap();
    let next = it.arrivals.iter().find(|(at, _)| *at > healed).unwrap().0;
    Ok((next - healed, it.was_timely(healed..next)))
}

/// F15: the client's interface of the second path goes down and up during a download. The first path
/// carries the data.
fn interface() -> Result<(), Failed> {
    let look = || {
        let lines = [Line::new(10, 40, 60_000); 2];
        let gate = Gate::default();
        let it = download(&lines, 5_000_000, Some(&gate), |bed| {
            bed.await_received("c1", 300_000);
            bed.client.within(|| net::run("ip link set c1 down")).unwrap();
            gate.open();
            sleep(700);
            bed.client.within(|| net::run("ip link set c1 up")).unwrap();
        })?;
        let gaps = it.arrivals.windows(2).map(|two| two[1].0 - two[0].0);
        let gap = gaps.max().unwrap_or_default();
        eprintln!("longest gap {gap:?}");
        Ok(it.timed.then_some(gap))
    };
    let long = |gap: &Duration| (*gap >= Duration::from_secs(1)).then(|| format!("{gap:?}"));
    measured("a download with an interface that goes down", look, long).map(drop)
}

/// Downloads over `lines` from a kernel that advertises a further address with a separate port. Completes
/// the request when `ready` returns true. Returns the kernel's counters before and after.
fn with_an_announced_port(
    lines: &[Line],
    len: usize,
    ready: impl Fn(&dyn Fn(&str) -> u64) -> bool,
) -> Result<[Counters; 2], Failed> {
    let bed = Bed::build(V4, lines)?;
    bed.own_service()?;
    let second = V4.second_service();
    bed.server.within(|| {
        net::run(&format!("ip addr add {second}/32 dev lo"));
        net::run(&format!("ip mptcp endpoint add {second} port 8081 signal"));
    })?;
    let to = SocketAddr::new(V4.service(), 80);
    let served = Service::start(&bed.server, to, Speaks::Mptcp, 1)?;
    let [_, before] = bed.counters();
    let ready = || {
        let [_, now] = bed.counters();
        ready(&|name| now.since(&before, name))
    };
    let get = format!("get {len}\n").into_bytes();
    let (bytes, ..) = exchange(&bed, 2, served.address, spec("minrtt"), &get, ready)?;
    served.join();
    let [_, after] = bed.counters();
    bed.emulator.stop()?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    Ok([before, after])
}

/// R43: a kernel advertises an address with a separate port, and plait joins there.
fn announced_port() -> Result<(), Failed> {
    let lines = [Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)];
    let joined = |risen: &dyn Fn(&str) -> u64| risen("MPJoinPortAckRx") > 0;
    let [before, after] = with_an_announced_port(&lines, 1_500_000, joined)?;
    let risen = |name| after.since(&before, name);
    let ports = (risen("PortAdd"), risen("MPJoinPortSynRx"), risen("MPJoinPortAckRx"));
    eprintln!("{ports:?} {:?}", after.risen(&before));
    assert!(ports.1 > 0 && ports.2 > 0, "{:?}", after.risen(&before));
    Ok(())
}

/// Returns two paths on which the HMAC of ADD_ADDR is damaged.
fn meddled_lines() -> [Line; 2] {
    [Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)]
        .map(|line| Line { strip: Strip::AddressProof, ..line })
}

/// R44: a kernel ignores an ADD_ADDR of plait with a wrong HMAC, and the transfer continues.
fn unproven_to_a_kernel() -> Result<(), Failed> {
    let mut spec = spec("minrtt");
    spec.addresses = vec![V4.second_service()];
    let bed = Bed::build(V4, &meddled_lines())?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let serving = Serving::start(&bed, served.address, spec)?;
    let (to, len) = (SocketAddr::new(V4.service(), 80), 1_000_000);
    let [before, _] = bed.counters();
    let bytes = bed.client.within(|| kernel::get(to, Speaks::Over(2), len))??;
    let [after, _] = bed.counters();
    served.join();
    serving.until_ended(1);
    serving.stop()?;
    bed.emulator.stop()?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    let risen = |name| after.since(&before, name);
    // The kernel joins from its own second address. It neither echoes nor joins the advertised one.
    let seen = (risen("EchoAddTx"), risen("MPJoinSynAckRx"));
    assert_eq!(seen, (0, 1), "{:?}", after.risen(&before));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    Ok(())
}

/// R44: plait neither echoes nor dials an ADD_ADDR of a kernel with a wrong HMAC. Its separate port
/// distinguishes joins there from others.
fn unproven_to_plait() -> Result<(), Failed> {
    for strip in [Strip::AddressProof, Strip::Nothing] {
        let lines = meddled_lines().map(|line| Line { strip, ..line });
        let proven = strip == Strip::Nothing;
        let there = |risen: &dyn Fn(&str) -> u64| match proven {
            true => risen("EchoAdd") > 0 && risen("MPJoinPortAckRx") > 0,
            // The join that needs no announcement is also there.
            false => risen("AddAddrTx") > 0 && risen("MPJoinAckRx") > 0,
        };
        let [before, after] = with_an_announced_port(&lines, 1_000_000, there)?;
        let risen = |name| after.since(&before, name);
        let seen = (risen("EchoAdd") > 0, risen("MPJoinPortAckRx") > 0);
        assert_eq!(seen, (proven, proven), "{:?}", after.risen(&before));
    }
    Ok(())
}

/// R52, F5: when both paths are joined, a middlebox starts to remove the options from all segments. The
/// bytes that arrive are correct, and both ends report an error.
fn vanished() -> Result<(), Failed> {
    let lines = [Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)];
    let bed = Bed::build(V4, &lines)?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    // Time that plait waits for a new subflow when it has none. The default is a minute, as in kernels.
    let mut spec = spec("minrtt");
    spec.config.timeouts.close = Span::from_secs(2);
    let serving = Serving::start(&bed, served.address, spec)?;
    let (to, len) = (SocketAddr::new(V4.service(), 80), 20_000_000);
    let [before, _] = bed.counters();
    let mut bytes = Vec::new();
    let (patience, there) = (Duration::from_secs(5), AtomicUsize::new(0));
    let ended = std::thread::scope(|scope| {
        let (client, bytes, there) = (&bed.client, &mut bytes, &there);
        let get = move || kernel::get_some(to, len, patience, bytes, there);
        let reader = scope.spawn(move || client.within(get));
        ["c0", "c1"].iter().for_each(|device| bed.await_received(device, 100_000));
        net::until("data", || there.load(Relaxed) > 300_000);
        [0, 1].iter().for_each(|path| bed.emulator.strip(*path).unwrap().set(true));
        reader.join().unwrap()
    })?;
    net::until("resets", || bed.counters()[0].since(&before, "MPRstTx") >= 2);
    let [after, _] = bed.counters();
    eprintln!("{} bytes, {ended:?}; {:?}", bytes.len(), after.risen(&before));
    assert_eq!(after.since(&before, "MPJoinSynAckRx"), 1, "{:?}", after.risen(&before));
    assert!(bytes.len() > 300_000 && bytes.len() < len, "{}", bytes.len());
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)[..bytes.len()]));
    // The kernel resets both subflows, and no DATA_FIN arrives.
    assert!(ended.is_err(), "{ended:?}");
    serving.until_ended(1);
    let (log_events, _) = serving.stop()?;
    served.join();
    bed.emulator.stop()?;
    let told = |it: &LogEvent| matches!(it, LogEvent::Ended { problem: Some(_), .. });
    assert!(log_events.iter().any(told), "{log_events:?}");
    Ok(())
}

/// Returns the SYN of a stranger.
fn stranger(number: u32, to: SocketAddr) -> Vec<u8> {
    let from = (0xc612_0000 + number / 50_000).to_be_bytes();
    let segment = Segment {
        src_port: (number % 50_000) as u16 + 1_024,
        dst_port: to.port(),
        seq: number,
        flags: Flags::SYN,
        window: 0xffff,
        ..Segment::default()
    };
    let mut packet = Vec::new();
    let headers = codec::Headers::new(from.into(), to.ip());
    codec::encode(&headers, &segment, codec::TcpChecksum::Full, &mut packet).unwrap();
    packet
}

/// R80, F10, S3: strangers send 5,000 SYNs at once and then 1,000 each second, and answer nothing. A
/// download over both paths continues as without them, and new clients are served.
fn syn_flood() -> Result<(), Failed> {
    let look = || {
        let (calm, _, quiet) = with_strangers(0)?;
        let (flooded, packets, timely) = with_strangers(8_000)?;
        Ok((quiet && timely).then_some((calm, flooded, packets)))
    };
    let wrong = |(calm, flooded, packets): &(f64, f64, u64)| {
        let wrong = *flooded >= calm / 0.9 || *packets <= 8_000;
        wrong.then(|| format!("{calm:.2} s, {flooded:.2} s in a flood, {packets} packets"))
    };
    measured("the goodput in a flood of SYNs", look, wrong).map(drop)
}

/// Returns the seconds that a download takes while `count` SYNs arrive, the number of packets that plait
/// received, and whether none was late.
fn with_strangers(count: u32) -> Result<(f64, u64, bool), Failed> {
    let lines = [Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)];
    let (len, to) = (9_000_000, SocketAddr::new(V4.service(), 80));
    let bed = Bed::build(V4, &lines)?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 3)?;
    let serving = Serving::start(&bed, served.address, spec("minrtt"))?;
    // Their network is behind a device of the server's host.
    let strangers = bed.server.within(|| {
        let device = Device::open("strangers", 1500);
        net::run("ip route add 198.18.0.0/15 dev strangers");
        device
    })??;
    let start = Instant::now();
    let arrivals = std::thread::scope(|scope| {
        let client = &bed.client;
        let reader = scope.spawn(move || client.within(|| kernel::get_timed(to, len, None)));
        for number in 0..count {
            strangers.try_send(&stranger(number, to)).unwrap().unwrap();
            // A device queues 500 packets.
            match number {
                ..5_000 if number % 250 == 249 => sleep(30),
                5_000.. if number % 10 == 9 => sleep(10),
                _ => {}
            }
        }
        reader.join().unwrap()
    })??;
    let took = (arrivals.last().unwrap().0 - start).as_secs_f64();
    assert_eq!(arrivals.iter().map(|(_, count)| count).sum::<usize>(), len);
    let start = Instant::now();
    // If the table is full, plait accepts both by SYN cookies.
    for speaks in [Speaks::Mptcp, Speaks::Tcp] {
        let bytes = bed.client.within(|| kernel::get(to, speaks, 10_000))??;
        assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(10_000)));
    }
    let after = start.elapsed();
    served.join();
    serving.until_ended(3);
    let (log_events, counters) = serving.stop()?;
    let report = bed.emulator.stop()?;
    eprintln!("{took:.2?} s; a newcomer after {after:.2?}; {}", report.lateness);
    let multipath: Vec<bool> = log_events
        .iter()
        .filter_map(|it| match it {
            LogEvent::Accepted { multipath, .. } => Some(*multipath),
            _ => None,
        })
        .collect();
    assert_eq!(multipath, [true, true, false]);
    let overflowed = |it: &LogEvent| matches!(it, LogEvent::Overflowed(it) if it.cookies_sent > 0);
    assert_eq!(log_events.iter().any(overflowed), count > 4_096);
    Ok((took, counters.packets_in, report.lateness.allows_timing()))
}

/// R11, R50, R51, R54, F5: plait is the client, and a middlebox on the only path removes the options. Data
/// flows as plain TCP in both directions.
fn stripped(strip: Strip, checksum: bool) -> Result<(), Failed> {
    let bed = Bed::build(V4, &[Line { strip, ..Line::new(20, 20, 60_000) }])?;
    bed.own_service()?;
    bed.server.within(|| {
        net::set("net/mptcp/checksum_enabled", if checksum { "1" } else { "0" });
    })?;
    let to = SocketAddr::new(V4.service(), 80);
    let served = Service::start(&bed.server, to, Speaks::Mptcp, 2)?;
    let len = 300_000;
    let get = format!("get {len}\n").into_bytes();
    let (bytes, log_events, _) = exchange(&bed, 1, served.address, spec("minrtt"), &get, || true)?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    let plain = |it: &LogEvent| !matches!(it, LogEvent::Ended { multipath: true, .. });
    assert!(log_events.iter().all(plain), "{log_events:?}");
    let mut put = format!("put {len}\n").into_bytes();
    put.extend(kernel::pattern(len));
    let (hash, log_events, _) = exchange(&bed, 1, served.address, spec("minrtt"), &put, || true)?;
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)).into_bytes());
    assert!(log_events.iter().all(plain), "{log_events:?}");
    served.join();
    bed.emulator.stop()?;
    Ok(())
}

/// Measurements of a path that lost everything for a while. A value is `None` if packets were late.
struct Blackhole {
    rtt: u64,
    /// The longest time without data for the reader.
    gap: Option<Duration>,
    /// Goodput relative to the other path's capacity, from 1 s to 2 s after the start of the outage.
    rate: Option<f64>,
    /// Time from the repair until the path had carried 20 kB.
    again: Option<Duration>,
}

/// Number of black holes, least number of valid measurements, and number of outages of both paths.
const BLACKHOLES: usize = 36;
const ENOUGH: usize = 20;
const OUTAGES: usize = 3;
/// The goals for an outage of one path: gap, rate, and time until the path is used again. The last one is the time
/// after an outage of both paths.
const LONGEST_GAP: Duration = Duration::from_millis(500);
const LEAST_RATE: f64 = 0.8;
const SOON_AGAIN: Duration = Duration::from_secs(2);
const SOON_AFTER: Duration = Duration::from_secs(5);

/// Measures an outage of one of two paths of 10 Mbit/s. A value is `None` if a packet was late in its
/// period.
fn one_blackhole(n: usize) -> Result<Blackhole, Failed> {
    let rtt = [10, 20, 35, 50][n % 4];
    // Vary the path, and the start within a round trip.
    let (path, moment) = (n / 4 % 2, 700 + 13 * n as u64);
    let lines = [Line::new(10, rtt, 60_000); 2];
    let (mut cut_at, mut found) = (None, None);
    let it = download(&lines, 8_500_000, None, |bed| {
        let cut = bed.emulator.cut(path).unwrap();
        sleep(moment);
        cut.set(true);
        cut_at = Some(Instant::now());
        sleep(2_400);
        cut.set(false);
        let (healed, device) = (Instant::now(), format!("c{path}"));
        let before = bed.received(&device);
        while bed.received(&device) < before + 20_000 && healed.elapsed() < 2 * SOON_AGAIN {
            sleep(10);
        }
        found = Some((healed, Instant::now()));
    })?;
    let gap = it.arrivals.windows(2).map(|two| two[1].0 - two[0].0).max().unwrap_or_default();
    let (cut_at, (healed, found)) = (cut_at.unwrap(), found.unwrap());
    let from = cut_at + Duration::from_secs(1);
    let within = from..from + Duration::from_secs(1);
    let bytes = it.arrivals.iter().filter(|(at, _)| within.contains(at));
    let bytes: usize = bytes.map(|(_, count)| count).sum();
    // With timestamps and DSS, 1,428 of each 1,500 bytes are payload.
    let rate = bytes as f64 * 8.0 / (10e6 * 1_428.0 / 1_500.0);
    Ok(Blackhole {
        rtt,
        gap: it.was_timely(cut_at..from).then_some(gap),
        rate: it.was_timely(cut_at..from + Duration::from_secs(1)).then_some(rate),
        again: it.was_timely(healed..found).then(|| found - healed),
    })
}

/// Returns the 95th percentile, and the number of values. `order` puts the worst values last. The
/// percentile is `None` if there are fewer than [`ENOUGH`].
fn percentile<T: Copy>(
    all: impl Iterator<Item = Option<T>>,
    order: fn(&T, &T) -> Ordering,
) -> (Option<T>, usize) {
    let mut known: Vec<T> = all.flatten().collect();
    known.sort_by(order);
    let count = known.len();
    let at = (count * 95).div_ceil(100).checked_sub(1).filter(|_| count >= ENOUGH);
    (at.map(|at| known[at]), count)
}

fn millis(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1e3)
}

/// Returns the value as text, or "not measured".
fn shown<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or("not measured".to_owned(), show)
}

/// Tests the fifth requirement, and writes docs/results/outages.md.
fn blackholes() -> Result<(), Failed> {
    let urgent = Urgent::start();
    let (mut holes, mut outages) = (Vec::new(), Vec::new());
    for n in 0..BLACKHOLES {
        holes.push(one_blackhole(n)?);
    }
    for n in 0..OUTAGES {
        outages.push(both_silent(30_000 + 170 * n as u64)?);
    }
    drop(urgent);
    let (gap, gaps) = percentile(holes.iter().map(|it| it.gap), Ord::cmp);
    let (rate, rates) = percentile(holes.iter().map(|it| it.rate), |a, b| b.total_cmp(a));
    let (again, agains) = percentile(holes.iter().map(|it| it.again), Ord::cmp);
    let after = outages.into_iter().map(|(after, _)| after).max().unwrap();
    let fraction = |rate: f64| format!("{rate:.2}");
    let mut text = format!(
        "# Outages\n\n\
         After this page you know how long an outage delays data, and when a healed path is used again. The first table has the result\n\
         beside its goal, and the second every download. `make soak PARTS=live` makes the page again; it needs root.\n\n\
         Written by `make soak` (`tests/rough.rs` of plait-live) on {}.\n\n\
         `plait serve` sends to a stock kernel over two emulated paths of 10 Mbit/s with queues of 60 kB, with minrtt. In\n\
         each of {BLACKHOLES} downloads, one path drops all packets for 2.4 s. In {OUTAGES} more downloads, both paths are\n\
         silent for 30 s.\n\n\
         The rate is relative to the capacity of one path. It is measured for one second, which begins one second after the\n\
         start of the outage. \"Used again\" is the time from the end of the outage until the path has carried 20 kB.\n\n\
         A value counts only if no packet was more than 5 ms late while it was measured. The gap is measured in the first second\n\
         of the outage, the rate in its first two seconds, and \"used again\" from its end on.\n\n\
         | | 95th percentile | of | goal |\n|---|---|---|---|\n\
         | longest time without data | {} | {gaps} | {} |\n\
         | rate after one second | {} | {rates} | {LEAST_RATE} |\n\
         | used again | {} | {agains} | {} |\n\
         | both paths silent: longest time from the end to new data | {} | {OUTAGES} | {} |\n\n\
         | RTT | gap | rate | used again |\n|---|---|---|---|\n",
        stamp::stamp(),
        shown(gap, millis),
        millis(LONGEST_GAP),
        shown(rate, fraction),
        shown(again, millis),
        millis(SOON_AGAIN),
        millis(after),
        millis(SOON_AFTER),
    );
    holes.sort_by_key(|it| it.rtt);
    for Blackhole { rtt, gap, rate, again } in &holes {
        let (gap, again) = (shown(*gap, millis), shown(*again, millis));
        let rate = shown(*rate, fraction);
        let _ = writeln!(text, "| {rtt} ms | {gap} | {rate} | {again} |");
    }
    eprintln!("{text}");
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("outages.md"), text)?;
    assert!(gap.is_none_or(|it| it <= LONGEST_GAP), "{gap:?}");
    assert!(rate.is_none_or(|it| it >= LEAST_RATE), "{rate:?}");
    assert!(again.is_none_or(|it| it <= SOON_AGAIN), "{again:?}");
    assert!(after <= SOON_AFTER, "{after:?}");
    Ok(())
}
