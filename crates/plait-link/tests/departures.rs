//! Departures and fates computed by hand.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::sync::Arc;

use plait_base::{Chance, Rate, Span, Time};
use plait_link::{
    Aqm, Arrivals, CrossTraffic, DropCause, Fate, Impairments, Link, LinkConfig, QueueLimit,
    RateSource, Reorder, Service, Trace,
};

fn us(n: u64) -> Time {
    Time::ZERO + Span::from_micros(n)
}

fn ms(n: u64) -> Time {
    us(n * 1000)
}

fn fixed(bps: u64) -> RateSource {
    RateSource::Fixed(Rate::from_bps(bps))
}

fn recorded(text: &str, offset: Span) -> RateSource {
    RateSource::Trace { trace: Arc::new(Trace::parse("t", text).unwrap()), offset }
}

fn link(rate: RateSource, change: impl FnOnce(&mut LinkConfig)) -> Link {
    let mut config = LinkConfig::new(rate, Span::ZERO);
    change(&mut config);
    Link::new(&config, 1, &["t"])
}

/// Returns the departures of packets offered one after the other.
fn departures(rate: &RateSource, packets: &[(Time, u32)]) -> Vec<Time> {
    let mut service = Service::new(rate);
    packets.iter().map(|(at, size)| service.serve(*at, *size)).collect()
}

fn departs(fate: Fate) -> Result<Time, DropCause> {
    match fate {
        Fate::Deliver { departs, .. } => Ok(departs),
        Fate::Drop(cause) => Err(cause),
        Fate::Queued => unreachable!("no queue here is managed"),
    }
}

#[test]
fn packets_of_a_burst_leave_one_after_the_other() {
    let mut link = link(fixed(25_000_000), |config| config.delay = Span::from_millis(12));
    for n in 1..=3 {
        let (departs, arrives) = (us(480 * n), us(480 * n + 12_000));
        assert_eq!(link.offer(Time::ZERO, 1500), Fate::deliver(departs, arrives));
    }
    // 1440 us of work were offered at 0; a packet that arrives later finds the link idle.
    assert_eq!(departs(link.offer(us(1439), 1500)), Ok(us(1920)));
    assert_eq!(departs(link.offer(us(5000), 750)), Ok(us(5240)));
}

#[test]
fn a_train_of_packets_does_not_drift() {
    // 12000 bits at 7 Mbit/s take 1714285 5/7 ns, seven packets exactly 12 ms.
    let burst = [(Time::ZERO, 1500); 700];
    let list = departures(&fixed(7_000_000), &burst);
    assert_eq!(list[0], Time::from_nanos(1_714_286));
    assert_eq!(list[1], Time::from_nanos(3_428_572));
    assert_eq!(list[6], ms(12));
    assert_eq!(list[699], ms(1200));
}

#[test]
fn the_ends_of_the_scale() {
    assert_eq!(departures(&fixed(0), &[(ms(1), 1), (ms(2), 1)]), [Time::NEVER; 2]);
    let mut free = link(RateSource::Fixed(Rate::INFINITE), |_| ());
    assert_eq!(departs(free.offer(ms(1), 1500)), Ok(ms(1)));
    assert_eq!(departs(free.offer(ms(1), 1500)), Ok(ms(1)));
    assert_eq!(free.queued_bytes(ms(1)), 0);
    assert_eq!(departures(&RateSource::Steps(vec![]), &[(ms(1), 1500)]), [ms(1)]);
    // One bit per nanosecond and a little more; the largest size; one bit per second.
    let list = departures(&fixed(8_000_000_000), &[(Time::ZERO, u32::MAX), (Time::ZERO, 1)]);
    assert_eq!(list[1], Time::from_nanos(u64::from(u32::MAX) + 1));
    assert_eq!(departures(&fixed(u64::MAX - 1), &[(ms(1), 9); 3])[2], ms(1) + Span::from_nanos(1));
    assert_eq!(departures(&fixed(1), &[(ms(0), u32::MAX)]), [Time::NEVER]);
}

#[test]
fn a_queue_of_two_packets_drops_the_third() {
    let mut link = link(fixed(25_000_000), |config| config.queue = QueueLimit::Packets(2));
    assert_eq!(departs(link.offer(Time::ZERO, 1500)), Ok(us(480)));
    assert_eq!(departs(link.offer(Time::ZERO, 1500)), Ok(us(960)));
    assert_eq!(departs(link.offer(us(479), 40)), Err(DropCause::Queue));
    // The first packet has departed, so there is room.
    assert_eq!(departs(link.offer(us(480), 1500)), Ok(us(1440)));
    assert_eq!(link.queued_bytes(us(480)), 3000);
    assert_eq!((link.queued_bytes(us(960)), link.queued_packets(us(960))), (1500, 1));
    assert_eq!(link.queued_bytes(us(1440)), 0);
    let counters = link.counters();
    assert_eq!((counters.offered_packets, counters.offered_bytes), (4, 4540));
    assert_eq!((counters.delivered_packets, counters.delivered_bytes), (3, 4500));
    assert_eq!((counters.dropped_queue, counters.dropped_packets()), (1, 1));
}

#[test]
fn a_queue_of_bytes_counts_what_is_in_transmission() {
    let mut link = link(fixed(25_000_000), |config| config.queue = QueueLimit::Bytes(3000));
    assert!(departs(link.offer(Time::ZERO, 1500)).is_ok());
    assert_eq!(departs(link.offer(Time::ZERO, 1501)), Err(DropCause::Queue));
    assert!(departs(link.offer(Time::ZERO, 1500)).is_ok());
    assert_eq!(departs(link.offer(us(100), 1)), Err(DropCause::Queue));
    // An empty queue accepts even a packet that is larger than its limit.
    assert_eq!(departs(link.offer(us(960), 9000)), Ok(us(960 + 2880)));
}

#[test]
fn a_queue_of_a_delay_drops_what_would_wait_longer() {
    let limit = QueueLimit::Delay(Span::from_micros(960));
    let mut steady = link(fixed(25_000_000), |config| config.queue = limit);
    assert_eq!(departs(steady.offer(Time::ZERO, 1500)), Ok(us(480)));
    assert_eq!(departs(steady.offer(Time::ZERO, 1500)), Ok(us(960)));
    assert_eq!(departs(steady.offer(Time::ZERO, 1500)), Ok(us(1440)));
    assert_eq!(departs(steady.offer(Time::ZERO, 1500)), Err(DropCause::Queue));
    assert_eq!(departs(steady.offer(us(480), 1500)), Ok(us(1920)));

    // Mean rate 25 Mbit/s: 960 us are 3000 bytes.
    let steps = vec![(ms(0), Rate::from_bps(20_000_000)), (ms(9), Rate::from_bps(30_000_000))];
    let mut stepped = link(RateSource::Steps(steps), |config| config.queue = limit);
    assert_eq!(departs(stepped.offer(Time::ZERO, 1500)), Ok(us(600)));
    assert_eq!(departs(stepped.offer(Time::ZERO, 1500)), Ok(us(1200)));
    assert_eq!(departs(stepped.offer(Time::ZERO, 1500)), Err(DropCause::Queue));

    // With a limit of zero, only an idle link accepts a packet.
    let none = QueueLimit::Delay(Span::ZERO);
    let mut strict = link(fixed(25_000_000), |config| config.queue = none);
    assert_eq!(departs(strict.offer(Time::ZERO, 1500)), Ok(us(480)));
    assert_eq!(departs(strict.offer(us(479), 1500)), Err(DropCause::Queue));
    assert_eq!(departs(strict.offer(us(480), 1500)), Ok(us(960)));
}

#[test]
fn a_packet_crosses_steps() {
    let (slow, fast) = (Rate::from_bps(4_000_000), Rate::from_bps(10_000_000));
    // 10000 of the 12000 bits leave in the first millisecond, the others at 4 Mbit/s.
    let down = RateSource::Steps(vec![(ms(1), slow), (ms(0), fast)]);
    assert_eq!(departures(&down, &[(ms(0), 1500), (ms(0), 1500)]), [us(1500), us(4500)]);
    // The first rate also applies before its time. Idle time moves the cursor forward.
    let late = RateSource::Steps(vec![(ms(5), fast), (ms(50), slow), (ms(60), fast)]);
    assert_eq!(
        departures(&late, &[(ms(1), 1500), (ms(55), 1500), (ms(70), 1500)]),
        [us(2200), us(58_000), us(71_200)]
    );
    // A rate of zero stops the queue: 5000 bits, silence, 7000 bits.
    let pause =
        RateSource::Steps(vec![(ms(0), fast), (us(500), Rate::ZERO), (ms(2), fast), (ms(9), slow)]);
    assert_eq!(departures(&pause, &[(ms(0), 1500), (ms(1), 125)]), [us(2700), us(2800)]);
    // The rate is unlimited from 500 us on.
    let open = RateSource::Steps(vec![(ms(0), fast), (us(500), Rate::INFINITE)]);
    assert_eq!(
        departures(&open, &[(ms(0), 1500), (ms(0), 1500), (ms(3), 1500)]),
        [us(500), us(500), ms(3)]
    );
}

#[test]
fn a_queue_that_is_held_for_ever_fills_up() {
    let steps = vec![(ms(0), Rate::from_bps(10_000_000)), (us(1300), Rate::ZERO)];
    let mut link = link(RateSource::Steps(steps), |config| config.queue = QueueLimit::Packets(2));
    assert_eq!(departs(link.offer(ms(0), 1500)), Ok(us(1200)));
    assert_eq!(departs(link.offer(ms(0), 1500)), Ok(Time::NEVER));
    assert_eq!(departs(link.offer(ms(2), 1500)), Ok(Time::NEVER));
    assert_eq!(departs(link.offer(ms(3), 1500)), Err(DropCause::Queue));
    assert_eq!((link.counters().held_packets, link.queued_packets(ms(9))), (2, 2));
}

#[test]
fn opportunities_are_shared_split_and_lost() {
    let text = "1\n1\n3\n";
    let here = recorded(text, Span::ZERO);
    // Two packets use the first millisecond; the fourth packet takes the first stamp of the next lap.
    assert_eq!(departures(&here, &[(ms(0), 1500); 4]), [ms(1), ms(1), ms(3), ms(4)]);
    // Six packets of 300 bytes: five share the first opportunity, the sixth takes the second.
    assert_eq!(departures(&here, &[(ms(0), 300); 11])[9..], [ms(1), ms(3)]);
    // 4000 bytes span three opportunities and leave 500 bytes to the next packet.
    assert_eq!(
        departures(&here, &[(ms(0), 4000), (ms(0), 500), (ms(0), 1)]),
        [ms(3), ms(3), ms(4)]
    );
    // Unused bytes are lost when the queue is empty. So is an opportunity at the packet's own time.
    assert_eq!(departures(&here, &[(ms(0), 100), (us(1500), 1500)]), [ms(1), ms(3)]);
    assert_eq!(departures(&here, &[(ms(0), 100), (ms(1), 100)]), [ms(1), ms(3)]);
    // More than a lap at once: 10 opportunities are three laps and one opportunity.
    assert_eq!(departures(&here, &[(ms(0), 15_000), (ms(0), 1500)]), [ms(10), ms(10)]);
    // A packet after a silence of a billion laps.
    let late = 3_000_000_000;
    assert_eq!(departures(&here, &[(us(late * 1000 + 1), 40)]), [ms(late + 1)]);
    assert_eq!(departures(&here, &[(ms(0), 40), (ms(late + 1), 40)]), [ms(1), ms(late + 3)]);
}

#[test]
fn a_stamp_of_zero_falls_on_the_end_of_the_lap_before() {
    let source = recorded("0\n5\n", Span::ZERO);
    assert_eq!(departures(&source, &[(ms(0), 1500); 4]), [ms(5), ms(5), ms(10), ms(10)]);
    assert_eq!(departures(&source, &[(ms(5), 1500); 2]), [ms(10), ms(10)]);
}

#[test]
fn offsets_start_inside_a_trace_and_wrap() {
    for offset in [2, 5, 302] {
        let source = recorded("1\n1\n3\n", Span::from_millis(offset));
        assert_eq!(departures(&source, &[(ms(0), 1500); 3]), [ms(1), ms(2), ms(2)]);
    }
    for offset in [2, 5, 302] {
        let source = recorded("1,1440\n2,0\n3,5000000\n", Span::from_secs(offset));
        assert_eq!(departures(&source, &[(ms(0), 1500); 2]), [us(300), us(600)]);
    }
}

#[test]
fn a_silence_in_a_csv_trace_holds_the_queue() {
    let source = recorded("1,1440\n2,0\n3,5000000\n", Span::ZERO);
    assert_eq!(departures(&source, &[(ms(0), 1440), (ms(0), 1500)]), [ms(1000), us(2_000_300)]);
    // 720 bytes leave until 1 s, and 780 after the silence.
    assert_eq!(departures(&source, &[(ms(500), 1500)]), [us(2_000_156)]);
    // 500 bytes until the end, 1000 in the next lap: 694.444444.. ms at 1440 B/s.
    assert_eq!(departures(&source, &[(us(2_999_900), 1500)]), [Time::from_nanos(3_694_444_445)]);
    // A packet after a long silence.
    let late = 3_000_000_000;
    assert_eq!(
        departures(&source, &[(ms(0), 40), (ms(late + 1200), 1500), (ms(late + 2500), 1500)])[1..],
        [us(late * 1000 + 2_000_300), us(late * 1000 + 2_500_300)]
    );
}

#[test]
fn a_packet_may_take_many_laps() {
    // 100 bytes in the first second of every two: the 1500th byte leaves in the 15th lap.
    let source = recorded("1,100\n2,0\n", Span::ZERO);
    assert_eq!(departures(&source, &[(ms(0), 1500), (ms(0), 50)]), [ms(29_000), ms(30_500)]);
    // The rate is so small that a packet never leaves within the range of `Time`.
    let source = recorded("0.000000001,1\n604800,0\n", Span::ZERO);
    assert_eq!(departures(&source, &[(ms(0), 1500), (ms(5), 1)]), [Time::NEVER; 2]);
}

/// The delay is the one at departure. If the delay falls, no packet is overtaken.
#[test]
fn a_delay_in_steps_keeps_the_order() {
    let mut link = link(fixed(12_000_000), |config| {
        config.delay = Span::from_millis(50);
        config.delay_steps = vec![(ms(10), Span::from_millis(200)), (ms(20), Span::ZERO)];
    });
    let mut arrives = |at: Time| match link.offer(at, 1500) {
        Fate::Deliver { arrives, .. } => arrives,
        other => panic!("{other:?}"),
    };
    assert_eq!(arrives(ms(8)), ms(59));
    // The packet departs at the start of the step.
    assert_eq!(arrives(ms(9)), ms(210));
    assert_eq!(arrives(ms(15)), ms(216));
    // The packet has the short delay, but arrives after the packets with the long one.
    assert_eq!(arrives(ms(30)), ms(216));
    assert_eq!(arrives(ms(200)), ms(216));
    assert_eq!(arrives(ms(300)), ms(301));
}

#[test]
fn an_outage_takes_what_is_offered_and_what_departs_in_it() {
    let mut link = link(fixed(25_000_000), |config| {
        config.delay = Span::from_millis(50);
        config.outages = vec![(ms(30), Time::NEVER), (ms(10), ms(20))];
    });
    // The packet departs at 9.48 ms and propagates while the link is down.
    assert_eq!(link.offer(us(9000), 1500), Fate::deliver(us(9480), us(59_480)));
    // The packet departs at exactly 10 ms.
    assert_eq!(departs(link.offer(us(9520), 1500)), Err(DropCause::Outage));
    assert_eq!(link.queued_bytes(us(9999)), 1500);
    assert_eq!(departs(link.offer(us(10_000), 1500)), Err(DropCause::Outage));
    assert_eq!(departs(link.offer(us(19_999), 1500)), Err(DropCause::Outage));
    assert_eq!(link.queued_bytes(us(19_999)), 0);
    assert_eq!(departs(link.offer(us(20_000), 1500)), Ok(us(20_480)));
    assert_eq!(departs(link.offer(us(29_600), 1500)), Err(DropCause::Outage));
    assert_eq!(departs(link.offer(us(1_000_000), 1500)), Err(DropCause::Outage));
    assert_eq!(link.counters().dropped_outage, 5);
}

/// A packet that exceeds the MTU is dropped before the queue, and so is such cross traffic.
#[test]
fn what_is_too_long_vanishes() {
    let steps = vec![(Time::ZERO, 1_400), (ms(10), 600), (ms(20), 1_500)];
    let mut link = link(fixed(25_000_000), |config| config.mtu = steps.clone());
    assert_eq!(departs(link.offer(Time::ZERO, 1_401)), Err(DropCause::Mtu));
    assert_eq!(link.queued_bytes(Time::ZERO), 0);
    assert_eq!(departs(link.offer(Time::ZERO, 1_400)), Ok(us(448)));
    assert_eq!(departs(link.offer(ms(10), 601)), Err(DropCause::Mtu));
    assert_eq!(departs(link.offer(ms(10), 600)), Ok(us(10_192)));
    assert_eq!(departs(link.offer(ms(20), 1_500)), Ok(us(20_480)));
    assert_eq!((link.counters().dropped_mtu, link.counters().dropped_packets()), (2, 2));
    assert_eq!(link.counters().offered_packets, 5);
    let mut config = LinkConfig::new(fixed(25_000_000), Span::ZERO);
    let rate = Rate::from_bps(3_000_000);
    config.cross = vec![CrossTraffic { rate, size: 1_000, arrivals: Arrivals::Poisson }];
    config.mtu = vec![(Time::ZERO, 1_000), (ms(500), 999)];
    let mut link = Link::new(&config, 1, &["a"]);
    let before = link.cross_bytes(ms(500));
    assert!(before[0] > 100_000);
    assert_eq!(link.cross_bytes(ms(5_000)), before);
}

#[test]
fn what_departs_in_an_outage_still_takes_its_time() {
    let mut link = link(fixed(25_000_000), |config| config.outages = vec![(us(400), us(500))]);
    assert_eq!(departs(link.offer(Time::ZERO, 1500)), Err(DropCause::Outage));
    assert_eq!(departs(link.offer(Time::ZERO, 1500)), Ok(us(960)));
}

#[test]
fn loss_comes_before_the_queue_and_from_its_own_stream() {
    let lossy = |seed, name: &str| {
        let mut config = LinkConfig::new(fixed(25_000_000), Span::ZERO);
        config.impairments.loss = Chance::from_ppb(100_000_000).into();
        let mut link = Link::new(&config, seed, &[name]);
        (0..2000).map(|n| departs(link.offer(ms(n), 1500)).is_err()).collect::<Vec<_>>()
    };
    let lost = lossy(1, "a");
    let count = lost.iter().filter(|lost| **lost).count();
    assert!((150..250).contains(&count), "{count}");
    assert_eq!(lost, lossy(1, "a"));
    assert_ne!(lost, lossy(2, "a"));
    assert_ne!(lost, lossy(1, "b"));

    let mut dead =
        link(fixed(25_000_000), |config| config.impairments.loss = Chance::ALWAYS.into());
    assert_eq!(departs(dead.offer(Time::ZERO, 1500)), Err(DropCause::Loss));
    assert_eq!(dead.queued_bytes(Time::ZERO), 0);
    assert_eq!(dead.counters().dropped_loss, 1);
}

#[test]
fn jitter_does_not_change_which_packets_are_lost() {
    let losses = |jitter| {
        let mut link = link(fixed(25_000_000), |config| {
            config.impairments.loss = Chance::from_ppb(500_000_000).into();
            config.impairments.jitter = jitter;
        });
        (0..100).map(|n| departs(link.offer(ms(n), 1500))).collect::<Vec<_>>()
    };
    assert_eq!(losses(Span::ZERO), losses(Span::from_millis(5)));
}

/// Returns the fates of packets that are offered a millisecond apart.
fn fates(count: u64, change: impl FnOnce(&mut LinkConfig)) -> Vec<Fate> {
    let mut link = link(fixed(25_000_000), |config| {
        config.delay = Span::from_millis(10);
        change(config);
    });
    (0..count).map(|n| link.offer(ms(n), 1500)).collect()
}

/// Returns impairments that hold back by 5 ms, duplicate and damage every packet.
fn always_faulty(heals: Time) -> Impairments {
    Impairments {
        reorder: Reorder { chance: Chance::ALWAYS, by: Span::from_millis(5) },
        duplicate: Chance::ALWAYS,
        corrupt: Chance::ALWAYS,
        heals,
        ..Impairments::NONE
    }
}

#[test]
fn every_packet_can_be_held_back_doubled_and_damaged() {
    let all = fates(2, |config| config.impairments = always_faulty(Time::NEVER));
    for (n, fate) in (0..).zip(all) {
        let (departs, arrives) = (us(1000 * n + 480), us(1000 * n + 15_480));
        let twin = Some(arrives);
        assert_eq!(fate, Fate::Deliver { departs, arrives, held_back: true, twin, corrupt: true });
    }
    // A packet that is held back for zero time is not counted as held back.
    let none = fates(1, |config| config.impairments.reorder.chance = Chance::ALWAYS);
    assert_eq!(none, [Fate::deliver(us(480), us(10_480))]);
}

#[test]
fn faults_come_at_their_rates_and_do_not_shift_each_other() {
    let half = Chance::from_ppb(500_000_000);
    let reorder = Reorder { chance: half, by: Span::from_millis(5) };
    let one = |change: fn(&mut LinkConfig)| fates(2000, change);
    let pick =
        |list: &[Fate], which: fn(&Fate) -> bool| -> Vec<bool> { list.iter().map(which).collect() };
    let held: fn(&Fate) -> bool = |fate| matches!(fate, Fate::Deliver { held_back: true, .. });
    let twin: fn(&Fate) -> bool = |fate| matches!(fate, Fate::Deliver { twin: Some(_), .. });
    let damaged: fn(&Fate) -> bool = |fate| matches!(fate, Fate::Deliver { corrupt: true, .. });
    let lost: fn(&Fate) -> bool = |fate| matches!(fate, Fate::Drop(DropCause::Loss));
    let together = fates(2000, |config| {
        let none = Impairments::NONE;
        config.impairments = Impairments { reorder, duplicate: half, corrupt: half, ..none };
    });
    for (which, alone) in [
        (held, fates(2000, |config| config.impairments.reorder = reorder)),
        (twin, one(|config| config.impairments.duplicate = Chance::from_ppb(500_000_000))),
        (damaged, one(|config| config.impairments.corrupt = Chance::from_ppb(500_000_000))),
    ] {
        let hits = pick(&together, which);
        let count = hits.iter().filter(|hit| **hit).count();
        assert!((900..1100).contains(&count), "{count}");
        assert_eq!(hits, pick(&alone, which));
        assert_eq!(pick(&together, lost), vec![false; 2000]);
    }
    assert_ne!(pick(&together, held), pick(&together, twin));
}

#[test]
fn counters_tell_what_went_wrong() {
    let mut link = link(fixed(25_000_000), |config| {
        config.impairments.duplicate = Chance::ALWAYS;
        config.impairments.corrupt = Chance::ALWAYS;
        config.outages = vec![(ms(1), ms(2))];
    });
    for n in 0..3 {
        link.offer(ms(n), 100);
    }
    let counters = link.counters();
    assert_eq!((counters.offered_packets, counters.delivered_packets), (3, 2));
    assert_eq!((counters.delivered_bytes, counters.duplicated_packets), (200, 2));
    assert_eq!((counters.corrupted_packets, counters.reordered_packets), (2, 0));
}

#[test]
fn a_managed_queue_tells_fates_when_packets_leave_it() {
    let mut link = link(fixed(12_000_000), |config| {
        config.aqm = Aqm::CODEL;
        config.queue = QueueLimit::Delay(Span::from_millis(10));
    });
    assert_eq!(link.next_dequeue(), Time::NEVER);
    // 10 ms at this rate are ten packets, including the one in transmission.
    let mut told = Vec::new();
    assert_eq!(link.offer(us(100), 1500), Fate::Queued);
    assert_eq!(link.next_dequeue(), us(100));
    link.dequeue(us(100), |fate| told.push(fate));
    for _ in 0..9 {
        assert_eq!(link.offer(us(100), 1500), Fate::Queued);
    }
    assert_eq!(link.offer(us(100), 1500), Fate::Drop(DropCause::Queue));
    assert_eq!((link.queued_packets(us(100)), link.queued_bytes(us(1100))), (10, 13_500));
    assert_eq!(link.next_dequeue(), us(1100));
    // A late call does not change the departures.
    link.dequeue(us(3500), |fate| told.push(fate));
    let expected: Vec<Fate> =
        (1..=4).map(|n| Fate::deliver(us(1000 * n + 100), us(1000 * n + 100))).collect();
    assert_eq!(told, expected);
    assert_eq!(link.next_dequeue(), us(4100));
    let counters = link.counters();
    assert_eq!((counters.offered_packets, counters.delivered_packets), (11, 4));
    assert_eq!((counters.dropped_queue, counters.dropped_aqm), (1, 0));
}

#[test]
fn a_managed_queue_drops_at_its_head() {
    // One packet leaves each millisecond, and eleven arrive in ten milliseconds.
    let mut link = link(fixed(12_000_000), |config| {
        config.aqm = Aqm::CODEL;
        config.queue = QueueLimit::Infinite;
    });
    let mut dropped = Vec::new();
    for n in 0..400 {
        let at = us(n * 10_000 / 11);
        while link.next_dequeue() <= at {
            let turn = link.next_dequeue();
            link.dequeue(turn, |fate| {
                if fate == Fate::Drop(DropCause::Aqm) {
                    dropped.push(turn.since(Time::ZERO).as_micros() / 1000);
                }
            });
        }
        assert_eq!(link.offer(at, 1500), Fate::Queued);
    }
    // Packet n arrives at 10 n / 11 ms and waits n / 11 ms. The wait is 5 ms from n = 55 on, which is sent
    // at 55 ms. Then steps of 100, 100 and 70.7 ms follow.
    assert_eq!(dropped, [155, 255, 326]);
    assert_eq!(link.counters().dropped_aqm, 3);
}

#[test]
fn what_goes_wrong_on_a_link_heals() {
    let mut link = link(fixed(8_000_000), |config| {
        let (loss, heals) = (Chance::ALWAYS.into(), ms(10));
        config.impairments = Impairments { loss, heals, ..Impairments::NONE };
    });
    assert_eq!(link.offer(us(9_999), 1_000), Fate::Drop(DropCause::Loss));
    assert_eq!(link.offer(ms(10), 1_000), Fate::deliver(ms(11), ms(11)));
    let mut link = self::link(fixed(8_000_000), |config| {
        config.impairments = always_faulty(ms(2));
    });
    let held = Fate::Deliver {
        departs: ms(1),
        arrives: ms(6),
        held_back: true,
        twin: Some(ms(6)),
        corrupt: true,
    };
    // The second packet departs after the faults have ended.
    assert_eq!(
        [link.offer(us(0), 1_000), link.offer(us(0), 1_000)],
        [held, Fate::deliver(ms(2), ms(2))]
    );
}

/// Poisson packets of 3 Mbit/s share a link of 10 Mbit/s with constant offers. They do not change the random
/// losses of the offered packets and are not counted as offered.
#[test]
fn cross_traffic_takes_its_share_of_a_link() {
    let cross =
        CrossTraffic { rate: Rate::from_bps(3_000_000), size: 1_000, arrivals: Arrivals::Poisson };
    let run = |cross: Vec<CrossTraffic>, seed| {
        let mut config = LinkConfig::new(fixed(10_000_000), Span::from_millis(5));
        config.queue = QueueLimit::Bytes(1 << 20);
        config.impairments.loss = Chance::from_ppb(10_000_000).into();
        config.cross = cross;
        let mut link = Link::new(&config, seed, &["a"]);
        // At 4 Mbit/s there is room for both.
        let offers = 20_000u64;
        let lost: Vec<u64> = (0..offers)
            .filter(|n| {
                link.offer(Time::from_nanos(n * 3_000_000), 1_500) == Fate::Drop(DropCause::Loss)
            })
            .collect();
        let end = Time::from_nanos(offers * 3_000_000);
        assert_eq!(link.counters().offered_packets, offers);
        (lost, link.cross_bytes(end), link.queued_bytes(end))
    };
    let (alone, none, _) = run(Vec::new(), 1);
    assert_eq!(none, Vec::<u64>::new());
    let (beside, passed, _) = run(vec![cross], 1);
    assert_eq!(alone, beside);
    let rate = passed[0] as f64 * 8.0 / 60.0;
    assert!((rate / 3e6 - 1.0).abs() < 0.02, "{rate}");
    assert_eq!(run(vec![cross], 1), run(vec![cross], 1));
    assert_ne!(run(vec![cross], 1).1, run(vec![cross], 2).1);
    // 8 Mbit/s in addition to 4 do not fit: the queue is full and drops packets.
    let heavy = CrossTraffic { rate: Rate::from_bps(8_000_000), ..cross };
    let (_, passed, queued) = run(vec![heavy], 1);
    assert!(queued > 1_000_000, "{queued}");
    let rate = passed[0] as f64 * 8.0 / 60.0;
    assert!((5.5e6..7.0e6).contains(&rate), "{rate}");
}
