//! Properties that hold for any view and any sequence of events.

use plait_base::{Span, Time};
use plait_cc::{Ack, CONTROLLERS, Congestion, Flow, Flows, HyStart, IdleRestart, Settings, Spec};
use proptest::prelude::*;

/// Returns every controller, some also with other values of their parameters.
fn specs() -> Vec<&'static str> {
    let all = CONTROLLERS.iter().map(|entry| entry.about.name);
    all.chain(["olia:quality=l2/r", "wvegas:drain=mean", "wvegas:drain=off", "fixed:cwnd=20seg"])
        .collect()
}

#[derive(Clone, Debug)]
enum Event {
    Ack { bytes: u64, srtt: Span, limited: bool, round: bool },
    Loss { inflight: u64 },
    Timeout { inflight: u64, first: bool },
    Recovered,
    Idle { idle: Span, rto: Span, mode: IdleRestart },
    Send,
    Set { cwnd: u64 },
    Penalise { cwnd: u64, ssthresh: Option<u64> },
}

/// Ordinary sizes and extreme ones.
fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..200_000_u64, 1 => Just(0), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn span() -> impl Strategy<Value = Span> {
    prop_oneof![
        8 => (1_000_000..400_000_000_u64).prop_map(Span::from_nanos),
        1 => Just(Span::ZERO),
        1 => Just(Span::MAX),
        1 => any::<u64>().prop_map(Span::from_nanos),
    ]
}

fn mode() -> impl Strategy<Value = IdleRestart> {
    prop_oneof![Just(IdleRestart::Linux), Just(IdleRestart::Rfc5681), Just(IdleRestart::Off)]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        12 => (bytes(), span(), any::<bool>(), any::<bool>())
            .prop_map(|(bytes, srtt, limited, round)| Event::Ack { bytes, srtt, limited, round }),
        2 => bytes().prop_map(|inflight| Event::Loss { inflight }),
        1 => (bytes(), any::<bool>())
            .prop_map(|(inflight, first)| Event::Timeout { inflight, first }),
        2 => Just(Event::Recovered),
        2 => (span(), span(), mode()).prop_map(|(idle, rto, mode)| Event::Idle { idle, rto, mode }),
        2 => Just(Event::Send),
        1 => bytes().prop_map(|cwnd| Event::Set { cwnd }),
        1 => (bytes(), proptest::option::of(bytes()))
            .prop_map(|(cwnd, ssthresh)| Event::Penalise { cwnd, ssthresh }),
    ]
}

prop_compose! {
    fn flow()(
        cwnd in bytes(),
        ssthresh in proptest::option::of(bytes()),
        srtt in proptest::option::of(span()),
        mss in prop_oneof![Just(0_u32), Just(1), Just(1448), Just(u32::MAX)],
        in_recovery in any::<bool>(),
        live in any::<bool>(),
        loss_interval in bytes(),
    ) -> Flow {
        Flow { cwnd, ssthresh, srtt, mss, in_recovery, live, loss_interval }
    }
}

prop_compose! {
    fn settings()(
        mss in prop_oneof![6 => 500..9000_u32, 1 => Just(0), 1 => Just(u32::MAX)],
        initial_window in prop_oneof![6 => 1..50_u32, 1 => Just(0), 1 => Just(u32::MAX)],
        ssthresh in proptest::option::of(bytes()),
        slow_start_limit in prop_oneof![4 => 1..4_u32, 1 => Just(0), 1 => Just(u32::MAX)],
        hystart in prop_oneof![
            Just(HyStart::Off), Just(HyStart::PlusPlus), Just(HyStart::Linux), Just(HyStart::Linux3)
        ],
    ) -> Settings {
        Settings { mss, initial_window, ssthresh, slow_start_limit, hystart }
    }
}

fn apply(congestion: &mut Congestion, event: &Event, now: Time, flows: Flows<'_>) {
    match *event {
        Event::Ack { bytes, srtt, limited, round } => {
            let ack = Ack {
                now,
                bytes,
                rtt: Some(srtt),
                srtt,
                min_rtt: srtt,
                cwnd_limited: limited,
                round,
                acked: 0,
                sent: 0,
            };
            congestion.on_ack(&ack, flows);
        }
        Event::Loss { inflight } => congestion.on_loss(now, inflight, flows),
        Event::Timeout { inflight, first } => congestion.on_timeout(now, inflight, first, flows),
        Event::Recovered => congestion.on_recovered(now),
        Event::Idle { idle, rto, mode } => {
            let before = congestion.cwnd();
            let reset = congestion.idle(now, idle, rto, mode);
            let after = congestion.cwnd();
            assert_eq!(
                reset.map(|reset| (reset.before, reset.after)),
                (before != after).then_some((before, after))
            );
            assert!(after <= before);
            let _ = congestion.idle_until_initial(rto, mode);
        }
        Event::Send => congestion.on_send(),
        Event::Set { cwnd } => congestion.set_cwnd(cwnd),
        Event::Penalise { cwnd, ssthresh } => congestion.penalise(cwnd, ssthresh),
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Nothing panics, and window and threshold hold at least a segment.
    #[test]
    fn the_window_is_never_below_one_segment(
        spec in prop::sample::select(specs()),
        settings in settings(),
        mut all in prop::collection::vec(flow(), 0..=8),
        own in 0..9_usize,
        events in prop::collection::vec((event(), span()), 1..120),
    ) {
        let mut congestion = Congestion::new(settings, Spec::parse(spec).unwrap().build());
        let least = u64::from(settings.mss.max(1));
        let fixed = congestion.is_fixed().then(|| congestion.cwnd());
        let mut now = Time::ZERO;
        for (event, gap) in events {
            now += gap;
            let srtt = all.get(own).and_then(|flow| flow.srtt);
            if let Some(entry) = all.get_mut(own) {
                *entry = congestion.flow(srtt, true);
            }
            let before = congestion.cwnd();
            apply(&mut congestion, &event, now, Flows { all: &all, own });
            prop_assert!(congestion.cwnd() >= least);
            prop_assert!(congestion.ssthresh().is_none_or(|ssthresh| ssthresh >= least));
            prop_assert!(!(congestion.in_slow_start() && congestion.in_recovery()));
            if let Some(window) = fixed {
                prop_assert_eq!(congestion.cwnd(), window);
            }
            match event {
                Event::Loss { .. } => prop_assert!(congestion.cwnd() <= before.max(2 * least)),
                Event::Timeout { .. } => {
                    prop_assert_eq!(congestion.cwnd(), fixed.unwrap_or(least));
                }
                _ => {}
            }
        }
    }

    /// Without losses a window only grows. OLIA is left out because its window may shrink.
    #[test]
    fn growth_is_monotone_without_loss(
        spec in prop::sample::select(vec!["cubic", "reno", "lia"]),
        settings in settings(),
        all in prop::collection::vec(flow(), 1..=8),
        acks in prop::collection::vec((bytes(), span(), span()), 1..100),
    ) {
        let mut congestion = Congestion::new(settings, Spec::parse(spec).unwrap().build());
        let mut now = Time::ZERO;
        for (bytes, srtt, gap) in acks {
            now += gap;
            let before = congestion.cwnd();
            let event = Event::Ack { bytes, srtt, limited: true, round: false };
            apply(&mut congestion, &event, now, Flows { all: &all, own: 0 });
            prop_assert!(congestion.cwnd() >= before);
        }
    }

    /// LIA never grows faster than Reno, for any siblings.
    #[test]
    fn lia_is_never_faster_than_reno(
        all in prop::collection::vec(flow(), 1..=8),
        cwnd in 1..500_u64,
        acked in 1..10_000_u64,
    ) {
        let grown = |spec: &str| {
            let settings = Settings::default();
            let cwnd = cwnd * 1448;
            let start = Flow { cwnd, ssthresh: Some(1448), in_recovery: false, ..all[0] };
            let algorithm = Spec::parse(spec).unwrap().build();
            let mut congestion = Congestion::resumed(settings, algorithm, &start);
            let event =
                Event::Ack { bytes: acked, srtt: Span::from_millis(20), limited: true, round: true };
            apply(&mut congestion, &event, Time::ZERO, Flows { all: &all, own: 0 });
            congestion.cwnd()
        };
        prop_assert!(grown("lia") <= grown("reno"));
    }

    /// Any number of calls during one idle period has the same result as one.
    #[test]
    fn looking_often_is_looking_once(
        spec in prop::sample::select(specs()),
        segments in 1..3_000_u64,
        odd in 0..1448_u64,
        ssthresh in proptest::option::of(1..4_000_u64),
        rto in 1..2_000_u64,
        mode in mode(),
        mut looks in prop::collection::vec(0..30_000_u64, 1..20),
    ) {
        looks.sort_unstable();
        let rto = Span::from_millis(rto);
        let start = Flow {
            cwnd: segments * 1448 + odd,
            ssthresh: ssthresh.map(|segments| segments * 1448),
            srtt: None,
            mss: 1448,
            in_recovery: false,
            live: true,
            loss_interval: 0,
        };
        let algorithm = || Spec::parse(spec).unwrap().build();
        let mut often = Congestion::resumed(Settings::default(), algorithm(), &start);
        let mut once = Congestion::resumed(Settings::default(), algorithm(), &start);
        let needed = once.idle_until_initial(rto, mode);
        let mut reached = None;
        for look in &looks {
            let idle = Span::from_millis(*look);
            often.idle(Time::ZERO + idle, idle, rto, mode);
            if often.cwnd() <= often.initial_window() {
                reached.get_or_insert(idle);
            }
        }
        let idle = Span::from_millis(*looks.last().unwrap());
        once.idle(Time::ZERO + idle, idle, rto, mode);
        prop_assert_eq!((often.cwnd(), often.ssthresh()), (once.cwnd(), once.ssthresh()));
        // The predicted time matches the call at which the window gets there.
        if let Some(needed) = needed {
            let mut looks = looks.iter().map(|look| Span::from_millis(*look));
            let expected = looks.find(|idle| *idle >= needed);
            prop_assert_eq!(reached, expected);
        }
    }

    /// Any text is parsed or refused. A parsed spec has a canonical form that parses to the same
    /// spec.
    #[test]
    fn any_text_is_read_or_refused(
        text in "(cubic|olia|fixed|x)?(:(cwnd|quality|é)?(=[0-9a-zA-Z./]{0,6})?,?){0,2}",
    ) {
        match Spec::parse(&text) {
            Ok(spec) => prop_assert_eq!(Spec::parse(&spec.name()), Ok(spec)),
            Err(error) => {
                prop_assert!(text.contains(error.given()));
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
