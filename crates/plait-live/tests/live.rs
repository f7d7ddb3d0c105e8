//! Tests plait against stock kernels, in namespaces joined by emulated paths. Needs root, TUN and MPTCP.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code)]

use crate::net::kernel::{self, Gate, Service, Speaks};
use crate::net::plait::{Serving, exchange, spec};
use crate::net::timely::{all_carried, measured, none_dropped, weighed};
use crate::net::{self, Case};
use crate::net::{Bed, Family, Line};
use libtest_mimic::Failed;
use plait_core::ConnectionSpec;
use plait_live::emulate::{self, Direction, Lateness, Strip};
use plait_live::{LogEvent, StackCounters};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use Family::{V4, V6};

/// Returns the tests of this file.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for family in [V4, V6] {
        let mut add = |name: &str, test: fn(Family) -> Result<(), Failed>| {
            cases.push(Case::test(format!("{name}/{family:?}"), move || test(family)));
        };
        add("kernels_talk_over_emulated_paths", kernels_talk);
        add("an_upload_arrives_over_both_paths", upload);
        add("plait_dials_a_kernel_over_both_paths", dial);
        add("a_lossy_path_loses_no_data", lossy);
        add("single_bytes_arrive", bytewise);
        add("many_connections_at_a_time", many);
        add("an_answer_after_the_end", half_closed);
        add("an_announced_address_is_joined", announced);
        add("checksums_are_right_both_ways", checksums);
        add("no_join_where_none_is_wanted", denied);
        add("an_address_that_goes_away_and_a_backup", addresses);
        add("a_client_that_aborts_ends_the_relay", aborted);
        add("a_silent_path_is_left_and_found_again", blackhole);
        add("a_router_says_what_a_path_takes", told_narrow);
        add("a_path_that_is_narrow_in_silence", silently_narrow);
    }
    for entry in plait_sched::SCHEDULERS {
        let families: &[Family] = if ["minrtt", "ecf", "redundant"].contains(&entry.about.name) {
            &[V4, V6]
        } else {
            &[V4]
        };
        for family in families {
            let name = format!("a_download_comes_over_both_paths/{}/{family:?}", entry.about.name);
            cases.push(Case::test(name, move || download(*family, entry.about.name)));
        }
    }
    for scheduler in ["minrtt", "redundant"] {
        let name = format!("a_slow_reader_is_waited_for/{scheduler}");
        cases.push(Case::test(name, move || slow_reader(scheduler)));
    }
    let soak = std::env::var_os("PLAIT_SOAK").is_some();
    let strips = [Strip::Syn, Strip::SynAck, Strip::AfterSyn, Strip::Data];
    for (at, strip) in strips.into_iter().enumerate() {
        // `make test` runs the other combinations with plait as the client (rough.rs).
        for checksum in [false, true].into_iter().filter(|on| soak || *on == (at % 2 == 0)) {
            let name = format!("options_stripped_are_plain_tcp/{strip:?}/checksum={checksum}");
            cases.push(Case::test(name, move || stripped(strip, checksum)));
        }
    }
    cases.push(Case::test("options_stripped_from_a_late_request", late_request));
    cases.push(Case::test("looks_that_differ_settle_nothing_by_one", looks));
    cases
}

/// If one refutation is enough, the first measurement without late packets settles a claim. Else more
/// measurements have to support it than refute it. `+` supports it, `-` refutes it, and `.` was late.
fn looks() -> Result<(), Failed> {
    let decisive =
        [("+", Some(true)), ("..-", Some(false)), ("....+", Some(true)), (".....", None)];
    let several = [
        ("+", Some(true)),
        ("..+", Some(true)),
        ("-++", Some(true)),
        ("-+-++", Some(true)),
        ("---", Some(false)),
        ("-+--", Some(false)),
        ("--+.-", Some(false)),
        ("-+...", None),
        (".....", None),
    ];
    for (refutations, all) in [(1, &decisive[..]), (3, &several[..])] {
        for (looks, settled) in all {
            let mut left = looks.chars();
            let look = || Ok(left.next().filter(|it| *it != '.'));
            let refute = |it: &char| (*it == '-').then(String::new);
            let outcome = weighed("a test of the tests", refutations, look, refute);
            let outcome = outcome.map_or(Some(false), |seen| seen.ok().map(|_| true));
            assert_eq!((outcome, left.as_str()), (*settled, ""), "{looks}");
        }
    }
    Ok(())
}

/// 20 and 10 Mbit/s.
fn two_lines() -> [Line; 2] {
    [Line::new(20, 20, 60_000), Line::new(10, 40, 60_000)]
}

/// plait in front of a TCP service, in the server's namespace of a bed.
struct Front {
    bed: Bed,
    served: Service,
    serving: Serving,
    to: SocketAddr,
    connections: usize,
}

/// Observations at the end of a test.
struct Seen {
    log_events: Vec<LogEvent>,
    counters: StackCounters,
    report: emulate::Report,
}

impl Front {
    fn build(
        family: Family,
        lines: &[Line],
        spec: ConnectionSpec,
        connections: usize,
    ) -> Result<Front, Failed> {
        let bed = Bed::build(family, lines)?;
        let local = SocketAddr::new([127, 0, 0, 1].into(), 0);
        let served = Service::start(&bed.server, local, Speaks::Tcp, connections)?;
        let serving = Serving::start(&bed, served.address, spec)?;
        let to = SocketAddr::new(family.service(), 80);
        Ok(Front { bed, served, serving, to, connections })
    }

    /// Waits until the connections have ended, and stops everything.
    fn end(self) -> Result<Seen, Failed> {
        self.served.join();
        self.serving.until_ended(self.connections);
        let (log_events, counters) = self.serving.stop()?;
        let report = self.bed.emulator.stop()?;
        none_dropped(&counters, &report);
        Ok(Seen { log_events, counters, report })
    }
}

impl Seen {
    /// Returns for each ended connection, in order, whether it used Multipath TCP.
    fn ended(&self) -> Vec<bool> {
        let ended = |event: &LogEvent| match event {
            LogEvent::Ended { multipath, problem: None, .. } => Some(*multipath),
            LogEvent::Ended { problem: Some(problem), .. } => panic!("{problem}"),
            LogEvent::Accepted { .. }
            | LogEvent::Unreached { .. }
            | LogEvent::TurnedAway { .. }
            | LogEvent::Overflowed(_)
            | LogEvent::Asked { .. }
            | LogEvent::Device { .. } => None,
        };
        self.log_events.iter().filter_map(ended).collect()
    }
}

/// Tests the bed: two stock kernels join over both of its paths, and the links have their rates.
fn kernels_talk(family: Family) -> Result<(), Failed> {
    let bed = Bed::build(family, &two_lines())?;
    let service = bed.family.service();
    bed.own_service()?;
    let served = Service::start(&bed.server, SocketAddr::new(service, 80), Speaks::Mptcp, 2)?;
    let [before, _] = bed.counters();
    let len = 2_000_000;
    let start = Instant::now();
    let bytes = bed.client.within(|| kernel::get(served.address, Speaks::Over(2), len))??;
    let took = start.elapsed();
    let sent = bed.client.within(|| kernel::put(served.address, Speaks::Over(2), len))??;
    served.join();
    let [after, _] = bed.counters();
    let hash = kernel::hash(&kernel::pattern(len));
    assert_eq!((kernel::hash(&bytes), sent), (hash.clone(), hash));
    assert_eq!(after.since(&before, "MPJoinSynAckRx"), 2, "{:?}", after.risen(&before));
    let report = bed.emulator.stop()?;
    eprintln!("{took:?}; {}", report.lateness);
    all_carried(&report, None, 200_000);
    // 2 MB over 30 Mbit/s take at least half a second on any machine.
    assert!(took.as_millis() > 500, "{took:?}");
    Ok(())
}

/// R5, R6, R10, R21, R27, R28, R29, R56: a stock client downloads from a stock service through plait over
/// both paths. It joins from the second path without an announcement. No counter shows a fault.
fn download(family: Family, scheduler: &str) -> Result<(), Failed> {
    let front = Front::build(family, &two_lines(), spec(scheduler), 1)?;
    let (took, seen) = fetched(front, 1_500_000)?;
    let shares = seen.report.links.iter().map(|it| it.down.delivered_bytes);
    let shares: Vec<u64> = shares.collect();
    eprintln!("{took:?}, {shares:?}; {}", seen.report.lateness);
    Ok(())
}

/// Downloads `len` bytes with a stock client over two subflows, complete and without a fault. Returns the
/// duration and the observations.
fn fetched(front: Front, len: usize) -> Result<(Duration, Seen), Failed> {
    let [before, _] = front.bed.counters();
    let start = Instant::now();
    let bytes = front.bed.client.within(|| kernel::get(front.to, Speaks::Over(2), len))??;
    let took = start.elapsed();
    let [after, _] = front.bed.counters();
    let seen = front.end()?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert_eq!(after.since(&before, "MPJoinSynAckRx"), 1, "{:?}", after.risen(&before));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    assert_eq!(seen.ended(), [true]);
    Ok((took, seen))
}

/// R22, R31, R36: a stock client uploads, with mappings of any length that the kernel chooses.
fn upload(family: Family) -> Result<(), Failed> {
    let front = Front::build(family, &two_lines(), spec("minrtt"), 1)?;
    let len = 2_000_000;
    let [before, _] = front.bed.counters();
    let hash = front.bed.client.within(|| kernel::put(front.to, Speaks::Over(2), len))??;
    let [after, _] = front.bed.counters();
    let seen = front.end()?;
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)));
    assert_eq!(after.since(&before, "MPJoinSynAckRx"), 1, "{:?}", after.risen(&before));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    all_carried(&seen.report, Some(Direction::Up), 200_000);
    Ok(())
}

/// R8, R21, R22, R56: plait is the client of a stock kernel. It joins from a second address, and the data
/// of both directions is complete.
fn dial(family: Family) -> Result<(), Failed> {
    let bed = Bed::build(family, &two_lines())?;
    let service = family.service();
    bed.own_service()?;
    let served = Service::start(&bed.server, SocketAddr::new(service, 80), Speaks::Mptcp, 2)?;
    let (to, len) = (served.address, 1_500_000);
    let [_, before] = bed.counters();
    let get = format!("get {len}\n").into_bytes();
    let joined = |joins| {
        let (bed, before) = (&bed, &before);
        move || bed.has_taken(joins, before)
    };
    let (bytes, _, counters) = exchange(&bed, 2, to, spec("minrtt"), &get, joined(1))?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    let mut put = format!("put {len}\n").into_bytes();
    put.extend(kernel::pattern(len));
    let (hash, log_events, _) = exchange(&bed, 2, to, spec("minrtt"), &put, joined(2))?;
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)).into_bytes());
    served.join();
    let [_, after] = bed.counters();
    let report = bed.emulator.stop()?;
    let [LogEvent::Ended { received, sent, unacked, multipath, problem, paths, .. }] =
        &log_events[..]
    else {
        panic!("{log_events:?}, {counters:?}");
    };
    assert_eq!((*received, *sent, *unacked), (64, put.len() as u64, 0), "{counters:?}");
    assert_eq!((*multipath, problem), (true, &None));
    // Both paths have carried data, and a byte that went over two of them counts on both.
    let carried: Vec<u64> = paths.iter().map(|path| path.sent).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    assert!(carried.iter().all(|bytes| *bytes > 0), "{paths:?}");
    assert!(carried.iter().sum::<u64>() >= put.len() as u64, "{paths:?}");
    assert_eq!(after.since(&before, "MPJoinAckRx"), 2, "{:?}", after.risen(&before));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    all_carried(&report, None, 200_000);
    Ok(())
}

/// R40, R69: 3 % of the packets of both paths are lost, both ways.
fn lossy(family: Family) -> Result<(), Failed> {
    let lines = two_lines().map(|line| Line { loss: 3, ..line });
    let front = Front::build(family, &lines, spec("minrtt"), 2)?;
    let len = 500_000;
    let [before, _] = front.bed.counters();
    let bytes = front.bed.client.within(|| kernel::get(front.to, Speaks::Over(2), len))??;
    let hash = front.bed.client.within(|| kernel::put(front.to, Speaks::Over(2), len))??;
    let [after, _] = front.bed.counters();
    let seen = front.end()?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    let lost: u64 =
        seen.report.links.iter().map(|it| it.down.dropped_loss + it.up.dropped_loss).sum();
    assert!(lost > 10, "{lost}");
    Ok(())
}

/// R37, R39: a reader with a small buffer reads slowly, so windows close and open on both subflows. Almost
/// nothing is sent beyond them or retransmitted. If packets are late, some is.
fn slow_reader(scheduler: &str) -> Result<(), Failed> {
    let look = || {
        let (seen, refused) = read_slowly(scheduler)?;
        Ok(seen.report.lateness.allows_timing().then_some((seen.counters, refused)))
    };
    let copies = if scheduler == "redundant" { 2 } else { 1 };
    let wasteful = |(counters, refused): &(StackCounters, u64)| {
        // A subflow with nothing in flight may send one segment if its last window update is old.
        let wasteful = refused * 20 >= counters.packets_out
            || counters.bytes_out >= copies * SLOW_LEN as u64 * 11 / 10;
        wasteful.then(|| format!("{refused} refused, {counters:?}"))
    };
    measured(&format!("a slow reader, {scheduler}"), look, wasteful).map(drop)
}

const SLOW_LEN: usize = 1_000_000;

/// Returns the observations, and the number of segments that the kernel dropped beyond its window or for
/// lack of buffer.
fn read_slowly(scheduler: &str) -> Result<(Seen, u64), Failed> {
    let front = Front::build(V4, &two_lines(), spec(scheduler), 1)?;
    let (to, len) = (front.to, SLOW_LEN);
    let [before, _] = front.bed.counters();
    let start = Instant::now();
    let slowly = || kernel::get_slowly(to, len, 64 * 1024, Duration::from_millis(15));
    let hash = front.bed.client.within(slowly)??;
    let took = start.elapsed();
    let [after, _] = front.bed.counters();
    let seen = front.end()?;
    eprintln!("{took:?}; {}", seen.report.lateness);
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    assert_eq!(seen.ended(), [true]);
    let beyond = ["BeyondWindow", "TCPZeroWindowDrop", "TCPRcvQDrop", "TCPBacklogDrop"];
    let mut wasted = after.risen_in("TcpExt", &before);
    wasted.retain(|(name, _)| beyond.contains(name));
    Ok((seen, wasted.iter().map(|(_, count)| count).sum()))
}

/// R35: a thousand segments of one byte each.
fn bytewise(family: Family) -> Result<(), Failed> {
    let front = Front::build(family, &two_lines(), spec("minrtt"), 1)?;
    let len = 1_000;
    let [before, _] = front.bed.counters();
    let hash = front.bed.client.within(|| kernel::put_bytewise(front.to, len))??;
    let [after, _] = front.bed.counters();
    let seen = front.end()?;
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    assert_eq!(seen.ended(), [true]);
    Ok(())
}

/// Small transfers of several clients at a time, half of them plain TCP.
fn many(family: Family) -> Result<(), Failed> {
    let count = 20;
    let front = Front::build(family, &two_lines(), spec("minrtt"), count)?;
    let to = front.to;
    let sizes = (0..count).map(|n| 1 + n * n * 100);
    let results: Vec<_> = front.bed.client.within(|| {
        std::thread::scope(|scope| {
            let transfers = sizes.enumerate().map(|(n, len)| {
                let speaks = if n % 2 == 0 { Speaks::Mptcp } else { Speaks::Tcp };
                (len, scope.spawn(move || kernel::get(to, speaks, len)))
            });
            let transfers: Vec<_> = transfers.collect();
            transfers.into_iter().map(|(len, it)| (len, it.join().unwrap())).collect()
        })
    })?;
    for (len, bytes) in results {
        assert_eq!(kernel::hash(&bytes?), kernel::hash(&kernel::pattern(len)), "{len}");
    }
    let seen = front.end()?;
    let ended = seen.ended();
    assert_eq!(ended.len(), count, "{:?}", seen.counters);
    assert_eq!(ended.iter().filter(|multipath| **multipath).count(), count / 2);
    Ok(())
}

/// R57: the answer arrives after the client has shut down its side.
fn half_closed(family: Family) -> Result<(), Failed> {
    let front = Front::build(family, &two_lines(), spec("minrtt"), 1)?;
    let len = 300_000;
    let [before, _] = front.bed.counters();
    let put = || kernel::put_and_end(front.to, Speaks::Over(2), len);
    let hash = front.bed.client.within(put)??;
    let [after, _] = front.bed.counters();
    let seen = front.end()?;
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    assert_eq!(seen.ended(), [true]);
    Ok(())
}

/// R43: plait advertises a further address, and the kernel echoes it and joins there.
fn announced(family: Family) -> Result<(), Failed> {
    let mut spec = spec("minrtt");
    spec.addresses = vec![family.second_service()];
    let front = Front::build(family, &two_lines(), spec, 1)?;
    let len = 2_000_000;
    let [before, _] = front.bed.counters();
    let bytes = front.bed.client.within(|| kernel::get(front.to, Speaks::Over(3), len))??;
    let [after, _] = front.bed.counters();
    let timely = front.end()?.report.lateness.allows_timing();
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    let risen = |name| after.since(&before, name);
    assert_eq!(risen("MPJoinSynAckRx"), 2, "{:?}", after.risen(&before));
    // ADD_ADDR is retransmitted if its echo is late.
    let (told, echoed) = (risen("AddAddr"), risen("EchoAddTx"));
    assert!(echoed > 0 && told >= echoed, "{:?}", after.risen(&before));
    assert!(!timely || (told, echoed) == (1, 1), "{:?}", after.risen(&before));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    Ok(())
}

/// R12, R34: plait requires checksums, and the checksums of both ends are correct.
fn checksums(family: Family) -> Result<(), Failed> {
    let mut spec = spec("minrtt");
    spec.config.checksum = true;
    let front = Front::build(family, &two_lines(), spec, 2)?;
    let len = 2_000_000;
    let [before, _] = front.bed.counters();
    let bytes = front.bed.client.within(|| kernel::get(front.to, Speaks::Over(2), len))??;
    let hash = front.bed.client.within(|| kernel::put(front.to, Speaks::Over(2), len))??;
    let [after, _] = front.bed.counters();
    let seen = front.end()?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)));
    assert_eq!(after.since(&before, "MPJoinSynAckRx"), 2, "{:?}", after.risen(&before));
    assert!(after.faults(&before).is_empty(), "{:?}", after.faults(&before));
    assert_eq!(seen.ended(), [true, true]);
    Ok(())
}

/// R14: with flag C the kernel does not join.
fn denied(family: Family) -> Result<(), Failed> {
    let mut spec = spec("minrtt");
    spec.config.joins.deny = true;
    let front = Front::build(family, &two_lines(), spec, 1)?;
    let len = 300_000;
    let [before, _] = front.bed.counters();
    let bytes = front.bed.client.within(|| kernel::get(front.to, Speaks::Mptcp, len))??;
    let [after, _] = front.bed.counters();
    let seen = front.end()?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert_eq!(after.since(&before, "MPJoinSynTx"), 0, "{:?}", after.risen(&before));
    assert_eq!(seen.ended(), [true]);
    Ok(())
}

/// R46, R47: during a download, the client makes its second path a backup, and then removes its address.
/// After that, the path carries almost nothing.
fn addresses(family: Family) -> Result<(), Failed> {
    let front = Front::build(family, &two_lines(), spec("minrtt"), 1)?;
    front.bed.bound_buffers()?;
    let (to, len, gate) = (front.to, 8_000_000, Gate::default());
    let [before, _] = front.bed.counters();
    let risen = |name| front.bed.counters()[0].since(&before, name);
    let mut carried = 0;
    let arrivals = std::thread::scope(|scope| {
        let (client, gate) = (&front.bed.client, &gate);
        let reader = scope.spawn(move || client.within(|| kernel::get_timed(to, len, Some(gate))));
        front.bed.await_received("c1", 20_000);
        client.within(|| net::run("ip mptcp endpoint change id 2 backup")).unwrap();
        net::until("MP_PRIO", || risen("MPPrioTx") > 0);
        client.within(|| net::run("ip mptcp endpoint del id 2")).unwrap();
        net::until("REMOVE_ADDR", || risen("RmAddrTx") > 0);
        carried = front.bed.received("c1");
        gate.open();
        reader.join().unwrap()
    })??;
    let carried = front.bed.received("c1") - carried;
    let [after, _] = front.bed.counters();
    let seen = front.end()?;
    assert_eq!(arrivals.iter().map(|(_, count)| count).sum::<usize>(), len);
    let risen = |name| after.since(&before, name);
    assert_eq!((risen("MPPrioTx"), risen("RmAddrTx")), (1, 1), "{:?}", after.risen(&before));
    assert_eq!(seen.ended(), [true]);
    // Packets in flight. Otherwise, it would carry more than 1 MB of the 4 MB after the gate.
    assert!(carried < 500_000, "{carried}");
    Ok(())
}

/// R55: if a client closes with unread data, the connection and its relay end at once.
fn aborted(family: Family) -> Result<(), Failed> {
    let front = Front::build(family, &two_lines(), spec("minrtt"), 1)?;
    let [before, _] = front.bed.counters();
    front.bed.client.within(|| kernel::abort(front.to, 20_000_000))??;
    front.serving.until_ended(1);
    let [after, _] = front.bed.counters();
    let seen = front.end()?;
    // One on each subflow.
    assert_eq!(after.since(&before, "MPFastcloseTx"), 2, "{:?}", after.risen(&before));
    let problem = |it: &LogEvent| matches!(it, LogEvent::Ended { problem: Some(_), .. });
    assert!(seen.log_events.iter().any(problem), "{:?}", seen.log_events);
    Ok(())
}

/// F7: one of two equal paths loses everything during a download. The download continues after a pause,
/// and the path carries data again after its repair.
fn blackhole(family: Family) -> Result<(), Failed> {
    let look = || {
        let (gap, again, lateness) = silent_path(family)?;
        Ok(lateness.allows_timing().then_some((gap, again)))
    };
    let wrong = |(gap, again): &(Duration, u64)| {
        let wrong = *gap >= Duration::from_millis(600) || *again < 20_000;
        wrong.then(|| format!("{gap:?}, then {again} bytes"))
    };
    measured("a download with a silent path", look, wrong).map(drop)
}

/// Returns the longest time between two reads, and the bytes that the repaired path carried.
fn silent_path(family: Family) -> Result<(Duration, u64, Lateness), Failed> {
    let lines = [Line::new(10, 40, 60_000); 2];
    let front = Front::build(family, &lines, spec("minrtt"), 1)?;
    front.bed.bound_buffers()?;
    let (to, len, start, gate) = (front.to, 5_000_000, Instant::now(), Gate::default());
    let cut = front.bed.emulator.cut(0).unwrap();
    let mut healed = 0;
    let arrivals = std::thread::scope(|scope| {
        let (client, gate) = (&front.bed.client, &gate);
        let reader = scope.spawn(move || client.within(|| kernel::get_timed(to, len, Some(gate))));
        front.bed.await_received("c0", 500_000);
        cut.set(true);
        gate.open();
        std::thread::sleep(Duration::from_millis(1_500));
        healed = front.bed.received("c0");
        cut.set(false);
        reader.join().unwrap()
    })??;
    let again = front.bed.received("c0") - healed;
    let took = start.elapsed();
    let seen = front.end()?;
    let gap = arrivals.windows(2).map(|two| two[1].0 - two[0].0).max().unwrap_or_default();
    eprintln!("{took:?}, longest gap {gap:?}, then {again} bytes; {}", seen.report.lateness);
    assert_eq!(arrivals.iter().map(|(_, count)| count).sum::<usize>(), len);
    assert_eq!(seen.ended(), [true]);
    Ok((gap, again, seen.report.lateness))
}

/// R63: the server's kernel has a link of 1,280 bytes towards the client and reports it by ICMP, but only
/// for packets that may not be fragmented. Segments then fill the link.
fn told_narrow(family: Family) -> Result<(), Failed> {
    let mean = narrow(family, 1_500, |bed| {
        bed.server.within(|| net::run("ip link set s0 mtu 1280")).map_err(Into::into)
    })?;
    assert!(mean > 1_215, "packets of {mean} bytes");
    Ok(())
}

/// R63, F17: packets of more than 1,280 bytes are lost without an ICMP error.
fn silently_narrow(family: Family) -> Result<(), Failed> {
    let mean = narrow(family, 1_280, |_| Ok(()))?;
    assert!(mean <= 1_220, "packets of {mean} bytes");
    Ok(())
}

/// Downloads over two paths, the first of which does not carry 1,500 bytes. Returns the mean length of the
/// packets that it delivered to the client.
fn narrow(
    family: Family,
    mtu: u32,
    change: impl FnOnce(&Bed) -> Result<(), Failed>,
) -> Result<u64, Failed> {
    let [first, second] = two_lines();
    let front = Front::build(family, &[Line { mtu, ..first }, second], spec("minrtt"), 1)?;
    change(&front.bed)?;
    let (took, seen) = fetched(front, 3_000_000)?;
    let down = seen.report.links[0].down;
    let mean = down.delivered_bytes / down.delivered_packets.max(1);
    eprintln!("{took:?}, {mean} bytes a packet, {} too long", down.dropped_mtu);
    // Far more than it carried before the smaller MTU was known.
    let least = if seen.report.lateness.allows_timing() { 1_000_000 } else { 200_000 };
    assert!(down.delivered_bytes > least, "the narrow path carried {}", down.delivered_bytes);
    assert!(took < Duration::from_secs(20), "{took:?}");
    Ok(mean)
}

/// R50, R51, R54: a middlebox on the only path removes the options of one of four kinds of segments. Data
/// flows as plain TCP.
fn stripped(strip: Strip, checksum: bool) -> Result<(), Failed> {
    let line = Line { strip, ..Line::new(20, 20, 60_000) };
    let front = Front::build(V4, &[line], spec("minrtt"), 2)?;
    front.bed.client.within(|| {
        net::set("net/mptcp/checksum_enabled", if checksum { "1" } else { "0" });
    })?;
    let len = 300_000;
    let bytes = front.bed.client.within(|| kernel::get(front.to, Speaks::Mptcp, len))??;
    let hash = front.bed.client.within(|| kernel::put(front.to, Speaks::Mptcp, len))??;
    let seen = front.end()?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert_eq!(hash, kernel::hash(&kernel::pattern(len)));
    assert_eq!(seen.ended(), [false, false], "{:?}", seen.log_events);
    Ok(())
}

/// The options of data are stripped, and the client sends its first data long after the third ACK. Had the server
/// answered the third ACK, the client could no longer fall back.
fn late_request() -> Result<(), Failed> {
    let line = Line { strip: Strip::Data, ..Line::new(20, 20, 60_000) };
    let front = Front::build(V4, &[line], spec("minrtt"), 1)?;
    let (to, len) = (front.to, 300_000);
    let get = || kernel::get_late(to, Duration::from_millis(100), len);
    let bytes = front.bed.client.within(get)??;
    let seen = front.end()?;
    assert_eq!(kernel::hash(&bytes), kernel::hash(&kernel::pattern(len)));
    assert_eq!(seen.ended(), [false], "{:?}", seen.log_events);
    Ok(())
}
