//! Paths that reorder, duplicate, damage, or drop at the head of the queue, and links that paths
//! share.

use crate::common::{at, checked, ideal, limited, ms, setup, spec};
use plait_app::Workload;
use plait_base::{Chance, PathId, Rate, Span, Time};
use plait_core::Config;
use plait_link::{Aqm, DropCause, LinkConfig, QueueLimit, RateSource, Reorder};
use plait_sim::{Direction, Hop, PathSetup, Setup, SharedLink, Snapshot, Watch, run_watched};
use plait_wire::Segment;

const HALF: Chance = Chance::from_ppb(500_000_000);

/// Records every hop, and the queue towards the client every 10 ms.
#[derive(Default)]
struct Notes {
    hops: Vec<(Time, Hop, PathId, Direction, u32)>,
    queued: Vec<(Time, u64)>,
}

impl Watch for Notes {
    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        self.hops.push((now, hop, path, way, segment.payload.len()));
    }

    fn interval(&self) -> Option<Span> {
        Some(ms(10))
    }

    fn on_sample(&mut self, at: Time, snapshot: &Snapshot) {
        self.queued.push((at, snapshot.queued_down.iter().sum()));
    }
}

impl Notes {
    fn count(&self, hop: Hop) -> usize {
        self.hops.iter().filter(|it| it.1 == hop).count()
    }
}

fn noted(setup: &Setup) -> (plait_sim::Outcome, Notes) {
    let mut notes = Notes::default();
    let outcome = run_watched(setup, &mut notes);
    assert_eq!(outcome.violation, None);
    assert!(outcome.complete());
    (outcome, notes)
}

fn one(path: PathSetup, workload: &str) -> Setup {
    let config = Config { multipath: false, ..Config::default() };
    setup(vec![path], &spec("minrtt", "cubic", 1, config), workload)
}

fn both(path: &mut PathSetup, change: impl Fn(&mut LinkConfig)) {
    change(&mut path.down);
    change(&mut path.up);
}

/// Returns the median and the 95th percentile of the queue's drain time in milliseconds, after the
/// first five seconds.
fn standing_queue(aqm: Aqm) -> (f64, f64, f64) {
    let mut path = limited("a", 10, ms(20));
    path.down.queue = QueueLimit::Bytes(1_250_000);
    path.down.aqm = aqm;
    let (outcome, notes) = noted(&one(path, "bulk:30s"));
    let steady = notes.queued.iter().filter(|(time, _)| *time > at(5_000));
    let mut waits: Vec<f64> = steady.map(|(_, bytes)| *bytes as f64 * 8.0 / 10_000.0).collect();
    waits.sort_by(f64::total_cmp);
    let goodput = outcome.pairs[0][0].measures.goodput_mbps.unwrap_or(0.0);
    (waits[waits.len() / 2], waits[waits.len() * 95 / 100], goodput)
}

#[test]
fn codel_keeps_the_standing_queue_near_its_target() {
    let (median, _, goodput) = standing_queue(Aqm::DropTail);
    assert!(median > 500.0, "a second of buffer fills: {median}");
    assert!(goodput > 9.0, "{goodput}");
    let (median, high, goodput) = standing_queue(Aqm::CODEL);
    assert!((1.0..10.0).contains(&median), "{median}");
    assert!(high < 30.0, "{high}");
    assert!(goodput > 8.5, "{goodput}");
}

#[test]
fn a_managed_queue_without_pressure_changes_no_run() {
    let plain = one(limited("a", 10, ms(20)), "download:200kB");
    let mut managed = plain.clone();
    both(&mut managed.paths[0], |link| {
        link.aqm = Aqm::Codel { target: Span::from_secs(60), interval: ms(100) };
    });
    assert_eq!(checked(&plain).digest, checked(&managed).digest);
}

#[test]
fn damaged_segments_are_sent_and_not_delivered() {
    let mut path = limited("a", 10, ms(20));
    both(&mut path, |link| link.impairments.corrupt = Chance::from_ppb(20_000_000));
    let (outcome, notes) = noted(&one(path, "download:2MB"));
    let (down, up) = outcome.links[0];
    let damaged = down.corrupted_packets + up.corrupted_packets;
    assert!(damaged > 20, "{damaged}");
    // A few packets are in flight when the run ends.
    let whole = down.delivered_packets + up.delivered_packets - damaged;
    let dropped = notes.count(Hop::Dropped(DropCause::Corrupt)) as u64;
    let delivered = notes.count(Hop::Delivered) as u64;
    assert!(dropped <= damaged && delivered <= whole, "{delivered} {dropped}");
    assert!(dropped + delivered + 4 >= damaged + whole, "{delivered} {dropped}");
}

#[test]
fn doubled_segments_arrive_twice_at_once() {
    let mut path = limited("a", 10, ms(20));
    both(&mut path, |link| link.impairments.duplicate = Chance::ALWAYS);
    let (outcome, notes) = noted(&one(path, "download:100kB"));
    let sent = notes.count(Hop::Sent);
    let delivered: Vec<_> = notes.hops.iter().filter(|it| it.1 == Hop::Delivered).collect();
    // The last packets may still be in flight.
    assert!(delivered.len() >= 2 * sent - 40, "{} of {sent}", delivered.len());
    let down: Vec<_> = delivered.iter().filter(|it| it.3 == Direction::Down).collect();
    assert!(down.chunks_exact(2).all(|pair| pair[0].0 == pair[1].0 && pair[0].4 == pair[1].4));
    assert_eq!(outcome.links[0].0.duplicated_packets, outcome.links[0].0.delivered_packets);
}

#[test]
fn segments_that_are_held_back_are_overtaken() {
    let mut path = limited("a", 10, ms(20));
    path.down.impairments.reorder = Reorder { chance: HALF, by: ms(7) };
    let (outcome, notes) = noted(&one(path, "download:500kB"));
    assert!(outcome.links[0].0.reordered_packets > 100);
    // No packet is lost. Every late packet was overtaken, and times never decrease.
    assert_eq!(outcome.links[0].0.dropped_packets(), 0);
    assert!(notes.hops.windows(2).all(|pair| pair[0].0 <= pair[1].0));
}

/// A hand calculation: the first SYN crosses the path's own link, then the shared link.
#[test]
fn packets_take_their_own_link_and_then_the_shared_one() {
    let mut path = ideal("a", ms(20));
    path.up.rate = RateSource::Fixed(Rate::from_bps(1_000_000));
    path.via = Some(0);
    let rate = RateSource::Fixed(Rate::from_bps(500_000));
    let mut setup = one(path, "download:1kB");
    setup.shared = vec![SharedLink {
        name: "cell".into(),
        down: LinkConfig::new(rate.clone(), ms(3)),
        up: LinkConfig::new(rate, ms(4)),
    }];
    let (outcome, notes) = noted(&setup);
    let syn = notes.hops[1];
    assert_eq!((syn.1, syn.3), (Hop::Delivered, Direction::Up));
    // A SYN of about 60 bytes, b: 8 b us, 10 ms, 16 b us, 4 ms.
    let bytes = outcome.links[0].1.offered_bytes / outcome.links[0].1.offered_packets;
    let took = syn.0.since(Time::ZERO).as_micros();
    assert_eq!((took - 14_000) % 24, 0);
    assert!((40..80).contains(&((took - 14_000) / 24)), "{took} {bytes}");
    assert_eq!(outcome.shared[0].1.offered_packets, outcome.links[0].1.delivered_packets);
}

#[test]
fn paths_that_share_a_link_share_its_rate() {
    let via = |name, rtt| PathSetup { via: Some(0), ..limited(name, 50, rtt) };
    let paths = vec![via("a", ms(20)), via("b", ms(60))];
    let link = |aqm| {
        let rate = RateSource::Fixed(Rate::from_bps(10_000_000));
        LinkConfig { aqm, ..LinkConfig::new(rate, Span::ZERO) }
    };
    let spec = spec("minrtt", "lia", 2, Config::default());
    for aqm in [Aqm::DropTail, Aqm::CODEL] {
        let mut setup = setup(paths.clone(), &spec, "bulk:10s");
        setup.shared = vec![SharedLink { name: "s".into(), down: link(aqm), up: link(aqm) }];
        let (outcome, notes) = noted(&setup);
        let goodput = outcome.pairs[0][0].measures.goodput_mbps.unwrap_or(0.0);
        assert!((7.0..10.0).contains(&goodput), "{goodput}");
        let through = outcome.shared[0].0;
        let own = outcome.links[0].0.delivered_packets + outcome.links[1].0.delivered_packets;
        assert!(outcome.links.iter().all(|(down, _)| down.delivered_packets > 100));
        // Some packets are still propagating on their own link when the run ends.
        assert!(through.offered_packets <= own && own - through.offered_packets < 200);
        let cause = if aqm == Aqm::CODEL { DropCause::Aqm } else { DropCause::Queue };
        assert!(notes.count(Hop::Dropped(cause)) > 0);
    }
    let mut alone = setup(paths, &spec, "bulk:10s");
    alone.paths.iter_mut().for_each(|path| path.via = None);
    let (outcome, _) = noted(&alone);
    assert!(outcome.pairs[0][0].measures.goodput_mbps.unwrap_or(0.0) > 60.0);
}

#[test]
fn two_pairs_of_hosts_meet_at_a_managed_queue() {
    let mut path = limited("a", 10, ms(20));
    path.down.aqm = Aqm::CODEL;
    path.down.queue = QueueLimit::Bytes(1_250_000);
    let mut setup = one(path, "download:2MB");
    setup.pairs.push(setup.pairs[0].clone());
    let (outcome, _) = noted(&setup);
    assert!(outcome.links[0].0.dropped_aqm > 0);
    assert_eq!(outcome.links[0].0.dropped_queue, 0);
}

/// The run ends with the foreground connection. The watcher sees background connections only by
/// their bytes in the queue.
#[test]
fn hosts_in_the_background_are_neither_waited_for_nor_watched() {
    let alone = one(limited("a", 10, ms(20)), "download:500kB");
    let mut setup = alone.clone();
    let mut beside = setup.pairs[0].clone();
    beside.background = true;
    beside.connections[0].workload = Workload::parse("bulk:3600s").expect("workload");
    setup.pairs.push(beside);
    let (outcome, notes) = noted(&setup);
    let completion = |outcome: &plait_sim::Outcome| outcome.pairs[0][0].measures.completion_ms;
    // The server receives the request half a round trip later.
    let late =
        outcome.ended.since(Time::ZERO).as_millis_f64() - completion(&outcome).unwrap_or(0.0);
    assert!((10.0..12.0).contains(&late), "{late}");
    assert!(completion(&outcome) > completion(&checked(&alone)));
    let got = outcome.pairs[1][0].measures.goodput_mbps.unwrap_or(0.0);
    assert!((2.0..8.0).contains(&got), "{got}");
    let seen = notes.hops.iter().filter(|it| it.1 == Hop::Sent && it.3 == Direction::Down);
    let seen: u64 = seen.map(|it| u64::from(it.4)).sum();
    let offered = outcome.links[0].0.offered_bytes;
    // The connection's own bytes, its retransmissions, and the bytes of the other connection.
    assert!(seen >= 500_000 && offered > seen + 200_000, "{seen} {offered}");
    let stats = outcome.pairs[0][0].measures.retransmitted_share.unwrap_or(1.0);
    assert!((seen as f64 * (1.0 - stats) - 500_000.0).abs() < 1.0, "{seen} {stats}");
}
