//! Properties of every link and every arrival of packets.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write;
use std::sync::Arc;

use plait_base::{Chance, Rate, Span, Time};
use plait_link::{
    Aqm, DropCause, Fate, Link, LinkConfig, QueueLimit, RateSource, Reorder, Service, Trace,
    TraceFormat,
};
use proptest::prelude::*;

const UNITS_PER_BYTE: u128 = 8_000_000_000;

/// Returns the capacity in (from, to] in bits per second times nanoseconds. It is summed row by row as a
/// simple reference for the service.
fn capacity(source: &RateSource, from: u64, to: u64) -> u128 {
    match source {
        RateSource::Fixed(rate) => u128::from(to - from) * u128::from(rate.as_bps()),
        RateSource::Steps(steps) => {
            let mut units = 0;
            for (index, (start, rate)) in steps.iter().enumerate() {
                let start = if index == 0 { 0 } else { start.as_nanos() };
                let end = steps.get(index + 1).map_or(u64::MAX, |next| next.0.as_nanos());
                let overlap = end.min(to).saturating_sub(start.max(from));
                units += u128::from(overlap) * u128::from(rate.as_bps());
            }
            units
        }
        RateSource::Trace { trace, offset } => {
            let period = trace.duration().as_nanos();
            let shift = offset.as_nanos() % period;
            let (from, to) = (from + shift, to + shift);
            let text = match trace.format() {
                TraceFormat::Mahimahi => trace.to_mahimahi(),
                TraceFormat::Csv => trace.name().to_string(),
            };
            let mut units = 0;
            for lap in from / period..=to / period {
                let base = lap * period;
                let mut start = base;
                for line in text.lines() {
                    match line.split_once(',') {
                        None => {
                            let stamp = base + line.parse::<u64>().unwrap() * 1_000_000;
                            if from < stamp && stamp <= to {
                                units += 1500 * UNITS_PER_BYTE;
                            }
                        }
                        Some((millis, rate)) => {
                            let millis: u64 = millis.replace('.', "").parse().unwrap();
                            let end = base + millis * 1_000_000;
                            let overlap = end.min(to).saturating_sub(start.max(from));
                            units += u128::from(overlap) * 8 * rate.parse::<u128>().unwrap();
                            start = end;
                        }
                    }
                }
            }
            units
        }
    }
}

fn rate() -> impl Strategy<Value = Rate> {
    prop_oneof![1 => Just(Rate::ZERO), 9 => (100_000u64..200_000_000).prop_map(Rate::from_bps)]
}

fn source() -> impl Strategy<Value = RateSource> {
    let fixed =
        (1_000_000u64..10_000_000_000).prop_map(|bps| RateSource::Fixed(Rate::from_bps(bps)));
    let steps = (prop::collection::vec((1u64..30_000_000, rate()), 2..12), 1u64..200_000_000)
        .prop_map(|(rows, last)| {
            let mut at = Time::ZERO;
            let mut list = Vec::new();
            for (length, rate) in rows {
                list.push((at, rate));
                at += Span::from_nanos(length);
            }
            // The last rate is above zero, so that every packet departs.
            list.push((at, Rate::from_bps(last)));
            RateSource::Steps(list)
        });
    let mahimahi =
        (prop::collection::vec(0u32..6, 1..40), 0u64..500_000_000).prop_map(|(gaps, offset)| {
            let mut at = 1;
            let mut text = String::new();
            for gap in gaps {
                at += gap;
                writeln!(text, "{at}").unwrap();
            }
            let trace = Arc::new(Trace::parse("t", &text).unwrap());
            RateSource::Trace { trace, offset: Span::from_nanos(offset) }
        });
    let csv = (prop::collection::vec((1u64..30, rate()), 1..12), 0u64..500_000_000).prop_map(
        |(rows, offset)| {
            let mut at = 0;
            let mut text = String::new();
            for (length, rate) in rows {
                at += length;
                writeln!(text, "{}.{:03},{}", at / 1000, at % 1000, rate.as_bps() / 8).unwrap();
            }
            at += 5;
            writeln!(text, "{}.{:03},20000", at / 1000, at % 1000).unwrap();
            // The name is the text, so that the oracle can parse it again.
            let trace = Arc::new(Trace::parse(&text, &text).unwrap());
            RateSource::Trace { trace, offset: Span::from_nanos(offset) }
        },
    );
    prop_oneof![fixed, steps, mahimahi, csv]
}

/// Gaps in nanoseconds, often none, and sizes in bytes.
fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap =
        prop_oneof![4 => Just(0), 3 => 0u64..200_000, 2 => 0u64..5_000_000, 1 => 0u64..200_000_000];
    let size = prop_oneof![2 => Just(1500), 1 => Just(52), 2 => 1u32..4000];
    prop::collection::vec((gap, size), 1..60)
}

fn limit() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        Just(QueueLimit::Infinite),
        (0u64..30_000).prop_map(QueueLimit::Bytes),
        (0u32..20).prop_map(QueueLimit::Packets),
        (0u64..50_000_000).prop_map(|nanos| QueueLimit::Delay(Span::from_nanos(nanos))),
    ]
}

proptest! {
    /// A packet departs at the first nanosecond at which the capacity suffices, neither earlier nor later.
    /// The capacity is summed since the queue was last empty, for the packet and all before it.
    #[test]
    fn departures_are_the_exact_integral_of_the_rate(source in source(), packets in packets()) {
        let mut service = Service::new(&source);
        let (mut at, mut start, mut before, mut bytes) = (0u64, 0u64, 0u64, 0u128);
        for (gap, size) in packets {
            at += gap;
            if at >= before {
                (start, bytes) = (at, 0);
            }
            bytes += u128::from(size);
            let departs = service.serve(Time::from_nanos(at), size).as_nanos();
            prop_assert!(departs > at && departs >= before);
            prop_assert_eq!(service.free_at().as_nanos(), departs);
            prop_assert!(capacity(&source, start, departs) >= bytes * UNITS_PER_BYTE);
            prop_assert!(capacity(&source, start, departs - 1) < bytes * UNITS_PER_BYTE);
            before = departs;
        }
    }

    /// In any interval, a link delivers at most the capacity of its rate plus one packet.
    #[test]
    fn a_link_delivers_what_its_rate_allows_in_order(
        source in source(),
        packets in packets(),
        queue in limit(),
        jitter in prop_oneof![Just(0), 0u64..20_000_000],
        steps in prop::collection::vec((0u64..100_000_000, 0u64..50_000_000), 0..4),
    ) {
        let mut config = LinkConfig::new(source.clone(), Span::from_millis(7));
        config.queue = queue;
        config.impairments.jitter = Span::from_nanos(jitter);
        let step = |(at, delay): &(u64, u64)| (Time::from_nanos(*at), Span::from_nanos(*delay));
        config.delay_steps = steps.iter().map(step).collect();
        config.delay_steps.sort();
        let delay_at = |at: Time| {
            let step = config.delay_steps.iter().rev().find(|step| step.0 <= at);
            step.map_or(config.delay, |step| step.1)
        };
        config.impairments.loss = Chance::from_ppb(50_000_000).into();
        config.outages = vec![(Time::from_nanos(20_000_000), Time::from_nanos(30_000_000))];
        let mut link = Link::new(&config, 3, &["t"]);
        let mut at = Time::ZERO;
        let mut delivered: Vec<(Time, Time, u32)> = Vec::new();
        for (gap, size) in &packets {
            at += Span::from_nanos(*gap);
            let idle = link.queued_packets(at) == 0;
            let fate = link.offer(at, *size);
            prop_assert!(!idle || !matches!(fate, Fate::Drop(DropCause::Queue)));
            match queue {
                QueueLimit::Bytes(limit) => prop_assert!(link.queued_packets(at) <= 1 || link.queued_bytes(at) <= limit),
                QueueLimit::Packets(limit) => prop_assert!(link.queued_packets(at) <= limit.max(1) as usize),
                _ => (),
            }
            if let Fate::Deliver { departs, arrives, .. } = fate {
                let earliest = departs + delay_at(departs);
                let before = delivered.last().map_or(Time::ZERO, |before| before.1);
                prop_assert!(arrives >= earliest);
                prop_assert!(arrives <= (earliest + config.impairments.jitter).max(before));
                if let Some(before) = delivered.last() {
                    prop_assert!(before.0 <= departs && before.1 <= arrives);
                }
                delivered.push((departs, arrives, *size));
            }
        }
        // Intervals are closed: several packets may leave at one delivery opportunity.
        for (index, first) in delivered.iter().enumerate() {
            let from = first.0.as_nanos() - 1;
            let mut bytes = 0;
            for later in &delivered[index..] {
                bytes += u128::from(later.2);
                let allowed = capacity(&source, from, later.0.as_nanos());
                let packet = u128::from(first.2.max(1500)) * UNITS_PER_BYTE;
                prop_assert!(bytes * UNITS_PER_BYTE <= allowed + packet);
            }
        }
        let counters = link.counters();
        prop_assert_eq!(counters.offered_packets, packets.len() as u64);
        prop_assert_eq!(counters.delivered_packets, delivered.len() as u64);
        prop_assert_eq!(counters.held_packets, 0);
        prop_assert_eq!(counters.offered_packets, counters.delivered_packets + counters.dropped_packets());
        prop_assert_eq!(counters.delivered_bytes, delivered.iter().map(|packet| u64::from(packet.2)).sum::<u64>());
    }

    /// With any faults, packets that are held back keep their order, and so do the other packets. The
    /// departures are the same as on a link without faults.
    #[test]
    fn faults_change_arrivals_only(
        source in source(),
        packets in packets(),
        jitter in prop_oneof![Just(0), 0u64..20_000_000],
        by in 1u64..50_000_000,
        chances in (0u32..=1_000_000_000, 0u32..=1_000_000_000, 0u32..=1_000_000_000),
    ) {
        let mut config = LinkConfig::new(source, Span::from_millis(7));
        config.impairments.jitter = Span::from_nanos(jitter);
        let mut well = Link::new(&config, 3, &["t"]);
        let by = Span::from_nanos(by);
        config.impairments.reorder = Reorder { chance: Chance::from_ppb(chances.0), by };
        config.impairments.duplicate = Chance::from_ppb(chances.1);
        config.impairments.corrupt = Chance::from_ppb(chances.2);
        let mut link = Link::new(&config, 3, &["t"]);
        let (mut at, mut last) = (Time::ZERO, [Time::ZERO; 2]);
        for (gap, size) in packets {
            at += Span::from_nanos(gap);
            match (well.offer(at, size), link.offer(at, size)) {
                (Fate::Deliver { departs: a, arrives: plain, .. },
                 Fate::Deliver { departs: b, arrives, held_back, twin, .. }) => {
                    prop_assert_eq!(a, b);
                    prop_assert_eq!(arrives, if held_back { plain + by } else { plain });
                    prop_assert!(twin.is_none_or(|twin| twin == arrives));
                    prop_assert!(last[usize::from(held_back)] <= arrives);
                    last[usize::from(held_back)] = arrives;
                }
                (a, b) => prop_assert_eq!(a, b),
            }
        }
    }

    /// The fast path gives each packet the fate that the slow path gives it, and the same counters.
    #[test]
    fn the_fast_path_agrees_with_the_slow_path(
        source in source(),
        limit in limit(),
        packets in packets(),
        jitter in prop_oneof![Just(0), 0u64..20_000_000],
        loss in prop_oneof![Just(0), 0u32..=1_000_000_000],
    ) {
        let mut config = LinkConfig::new(source, Span::from_millis(7));
        config.queue = limit;
        config.impairments.jitter = Span::from_nanos(jitter);
        config.impairments.loss = Chance::from_ppb(loss).into();
        let (mut slow, mut fast) = (Link::new(&config, 3, &["t"]), Link::new(&config, 3, &["t"]));
        let arrival = |fate| match fate {
            Fate::Deliver { arrives, .. } => Ok(arrives),
            Fate::Drop(cause) => Err(cause),
            Fate::Queued => Ok(Time::NEVER),
        };
        let (mut at, mut passed) = (Time::ZERO, 0);
        for (gap, size) in packets {
            at += Span::from_nanos(gap);
            let quick = fast.try_pass(at, size);
            passed += usize::from(quick.is_some());
            let fate = quick.unwrap_or_else(|| arrival(fast.offer(at, size)));
            prop_assert_eq!(fate, arrival(slow.offer(at, size)));
        }
        prop_assert_eq!(fast.counters(), slow.counters());
        prop_assert!(passed > 0 || config.queue != QueueLimit::Infinite);
    }

    /// A managed queue in which no wait exceeds the target is a drop-tail queue, for any times of the calls.
    #[test]
    fn a_patient_managed_queue_is_a_drop_tail_queue(
        source in source(),
        packets in packets(),
        queue in prop_oneof![
            Just(QueueLimit::Infinite),
            (0u64..30_000).prop_map(QueueLimit::Bytes),
            (0u32..20).prop_map(QueueLimit::Packets),
        ],
        jitter in prop_oneof![Just(0), 0u64..20_000_000],
    ) {
        let mut config = LinkConfig::new(source, Span::from_millis(7));
        config.queue = queue;
        config.impairments.jitter = Span::from_nanos(jitter);
        config.outages = vec![(Time::from_nanos(20_000_000), Time::from_nanos(30_000_000))];
        let mut plain = Link::new(&config, 3, &["t"]);
        config.aqm = Aqm::Codel { target: Span::from_secs(86_400), interval: Span::ZERO };
        let mut managed = Link::new(&config, 3, &["t"]);
        let (mut expected, mut told) = (Vec::new(), Vec::new());
        let mut at = Time::ZERO;
        for (gap, size) in packets {
            at += Span::from_nanos(gap);
            managed.dequeue(at, |fate| told.push(fate));
            let now = managed.offer(at, size);
            match plain.offer(at, size) {
                Fate::Drop(DropCause::Queue) => {
                    prop_assert_eq!(now, Fate::Drop(DropCause::Queue));
                }
                fate if now == Fate::Queued => expected.push(fate),
                fate => prop_assert_eq!(fate, now),
            }
            prop_assert_eq!(managed.queued_bytes(at), plain.queued_bytes(at));
            prop_assert_eq!(managed.queued_packets(at), plain.queued_packets(at));
        }
        managed.dequeue(Time::from_nanos(u64::MAX - 1), |fate| told.push(fate));
        prop_assert_eq!(managed.next_dequeue(), Time::NEVER);
        prop_assert_eq!(told, expected);
        prop_assert_eq!(managed.counters(), plain.counters());
    }

    /// A constant rate gives the same result in each notation.
    #[test]
    fn fixed_steps_and_csv_of_one_rate_agree(
        bytes_per_second in 1_000u64..1_000_000_000,
        cuts in prop::collection::vec(1u64..50_000_000, 1..6),
        packets in packets(),
    ) {
        let rate = Rate::from_bps(bytes_per_second * 8);
        let mut at = Time::ZERO;
        let mut steps = vec![(at, rate)];
        for cut in cuts {
            at += Span::from_nanos(cut);
            steps.push((at, rate));
        }
        let text = format!("0.017,{bytes_per_second}\n0.05,{bytes_per_second}\n");
        let trace = Arc::new(Trace::parse("t", &text).unwrap());
        let mut services = [
            Service::new(&RateSource::Fixed(rate)),
            Service::new(&RateSource::Steps(steps)),
            Service::new(&RateSource::Trace { trace, offset: Span::from_millis(31) }),
        ];
        let mut at = Time::ZERO;
        for (gap, size) in packets {
            at += Span::from_nanos(gap);
            let departs = services.each_mut().map(|service| service.serve(at, size));
            prop_assert_eq!(departs[0], departs[1]);
            prop_assert_eq!(departs[0], departs[2]);
        }
    }
}
