//! What goes wrong on the way, against stock kernels: outages of all paths, interfaces that go down,
//! middleboxes before plait's own client, announced ports. Needs root, TUN and MPTCP. `PLAIT_SOAK=1`
//! makes outages as long as the reliability goals have them, and runs every cell.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code, reason = "each test file uses its own part")]

mod net;

use libtest_mimic::{Arguments, Failed, Trial};
use net::kernel::{self, Service, Speaks};
use net::plait::{Serving, exchange, spec};
use net::{Bed, Family, Line};
use plait_live::emulate::Strip;
use plait_live::{Device, Happening, Namespace};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use Family::V4;

fn main() {
    let mut args = Arguments::from_args();
    // The tests share the machine's few cores with their own emulators.
    args.test_threads = Some(1);
    let obstacle = net::obstacle();
    if let Some(why) = &obstacle {
        println!("skipped: {why}");
    }
    let soak = std::env::var_os("PLAIT_SOAK").is_some();
    let mut trials = vec![
        Trial::test("what_is_given_up_is_gone", privileges),
        Trial::test("both_paths_fall_silent_and_come_back", move || outage(soak)),
        Trial::test("an_interface_goes_down_and_up", interface),
        Trial::test("an_announced_port_is_joined", announced_port),
    ];
    let strips = [Strip::Syn, Strip::SynAck, Strip::AfterSyn, Strip::Data];
    for (at, strip) in strips.into_iter().enumerate() {
        // The other cells of `make test` have plait as the server.
        for checksum in [false, true].into_iter().filter(|on| soak || *on == (at % 2 == 1)) {
            let name = format!("a_client_falls_back/{strip:?}/checksum={checksum}");
            trials.push(Trial::test(name, move || stripped(strip, checksum)));
        }
    }
    if soak {
        trials.push(Trial::test("a_blackhole_is_left_in_time", blackholes));
    }
    let trials = trials.into_iter().map(|it| it.with_ignored_flag(obstacle.is_some())).collect();
    libtest_mimic::run(&args, trials).exit();
}

/// S9: a process that has given its capabilities up opens no further device.
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

/// A download through plait, in the middle of which something happened: when how much came.
struct Download {
    arrivals: Vec<(Instant, usize)>,
    /// No packet was late.
    timed: bool,
}

fn download(lines: &[Line], len: usize, meanwhile: impl FnOnce(&Bed)) -> Result<Download, Failed> {
    let bed = Bed::build(V4, lines)?;
    let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
    let served = Service::start(&bed.server, local, Speaks::Tcp, 1)?;
    let serving = Serving::start(&bed, served.address, spec("minrtt"))?;
    let to = SocketAddr::new(V4.service(), 80);
    let arrivals = std::thread::scope(|scope| {
        let client = &bed.client;
        let reader = scope.spawn(move || client.within(|| kernel::get_timed(to, len)));
        meanwhile(&bed);
        reader.join().unwrap()
    })??;
    served.join();
    let (happenings, _) = serving.stop()?;
    let report = bed.emulator.stop()?;
    eprintln!("{}", report.lateness);
    assert_eq!(arrivals.iter().map(|(_, count)| count).sum::<usize>(), len);
    let clean = |it: &Happening| !matches!(it, Happening::Ended { problem: Some(_), .. });
    assert!(happenings.iter().all(clean), "{happenings:?}");
    Ok(Download { arrivals, timed: report.lateness.allows_timing() })
}

fn sleep(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// F16: nothing gets through for a while, and within five seconds after that data flows again.
fn outage(soak: bool) -> Result<(), Failed> {
    let lines = [Line::new(10, 40, 60_000); 2];
    let mut healed = None;
    let it = download(&lines, 4_000_000, |bed| {
        let cuts = [bed.emulator.cut(0).unwrap(), bed.emulator.cut(1).unwrap()];
        sleep(600);
        cuts.iter().for_each(|cut| cut.set(true));
        sleep(if soak { 30_000 } else { 3_000 });
        cuts.iter().for_each(|cut| cut.set(false));
        healed = Some(Instant::now());
    })?;
    let healed = healed.unwrap();
    let next = it.arrivals.iter().find(|(at, _)| *at > healed).unwrap().0;
    let after = next - healed;
    eprintln!("data {after:?} after both paths were whole again");
    assert!(after < Duration::from_secs(5), "{after:?}");
    Ok(())
}

/// F15: the second path's interface at the client goes down in the middle of a download, and comes
/// up again: the data goes by the first.
fn interface() -> Result<(), Failed> {
    let lines = [Line::new(10, 40, 60_000); 2];
    let it = download(&lines, 4_000_000, |bed| {
        sleep(600);
        bed.client.within(|| net::run("ip link set c1 down")).unwrap();
        sleep(700);
        bed.client.within(|| net::run("ip link set c1 up")).unwrap();
    })?;
    let gaps = it.arrivals.windows(2).map(|two| two[1].0 - two[0].0);
    let gap = gaps.max().unwrap_or_default();
    eprintln!("longest gap {gap:?}");
    if it.timed {
        assert!(gap < Duration::from_millis(1_000), "{gap:?}");
    }
    Ok(())
}

/// R43: a kernel announces an address with a port of its own, and plait joins there.
fn announced_port() -> Result<(), Failed> {
    let bed = Bed::build(V4, &[Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)])?;
    bed.own_service()?;
    let second = V4.second_service();
    bed.server.within(|| {
        net::run(&format!("ip addr add {second}/32 dev lo"));
        net::run(&format!("ip mptcp endpoint add {second} port 8081 signal"));
    })?;
    let to = SocketAddr::new(V4.service(), 80);
    let served = Service::start(&bed.server, to, Speaks::Mptcp, 1)?;
    let [_, before] = bed.counters();
    let len = 1_500_000;
    let get = format!("get {len}\n").into_bytes();
    let (bytes, ..) = exchange(&bed, 2, served.address, spec("minrtt"), &get)?;
    served.join();
    let [_, after] = bed.counters();
    bed.emulator.stop()?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    let risen = |name| after.since(&before, name);
    let ports = (risen("PortAdd"), risen("MPJoinPortSynRx"), risen("MPJoinPortAckRx"));
    eprintln!("{ports:?} {:?}", after.risen(&before));
    assert!(ports.1 > 0 && ports.2 > 0, "{:?}", after.risen(&before));
    Ok(())
}

/// R11, R50, R51, R54, F5: something on the only path takes the options off, and plait is the client:
/// data flows as plain TCP, both ways.
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
    let (bytes, happenings, _) = exchange(&bed, 1, served.address, spec("minrtt"), &get)?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    let plain = |it: &Happening| !matches!(it, Happening::Ended { multipath: true, .. });
    assert!(happenings.iter().all(plain), "{happenings:?}");
    let mut put = format!("put {len}\n").into_bytes();
    put.extend(kernel::pattern(len));
    let (hash, happenings, _) = exchange(&bed, 1, served.address, spec("minrtt"), &put)?;
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)).into_bytes());
    assert!(happenings.iter().all(plain), "{happenings:?}");
    served.join();
    bed.emulator.stop()?;
    Ok(())
}

/// F7: one of two paths of 50 ms swallows everything: the longest gap of 20 downloads, at the 95th
/// percentile of those that were timed well.
fn blackholes() -> Result<(), Failed> {
    let lines = [Line::new(10, 50, 60_000); 2];
    let mut gaps = Vec::new();
    for _ in 0..20 {
        let it = download(&lines, 4_000_000, |bed| {
            let cut = bed.emulator.cut(0).unwrap();
            sleep(800);
            cut.set(true);
            sleep(1_500);
            cut.set(false);
        })?;
        let gap = it.arrivals.windows(2).map(|two| two[1].0 - two[0].0).max().unwrap_or_default();
        gaps.extend(it.timed.then_some(gap));
    }
    gaps.sort_unstable();
    let Some(last) = (gaps.len() * 95).div_ceil(100).checked_sub(1) else {
        println!("skipped: a_blackhole_is_left_in_time: not measured, packets were late");
        return Ok(());
    };
    eprintln!("{} of 20 timed: {gaps:?}", gaps.len());
    assert!(gaps[last] <= Duration::from_millis(500), "{gaps:?}");
    Ok(())
}
