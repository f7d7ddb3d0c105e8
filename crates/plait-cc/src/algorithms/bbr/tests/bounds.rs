//! Bounds of window and rate, after any events.

use super::*;
use proptest::prelude::*;

/// Something that happens to a subflow.
#[derive(Clone, Debug)]
enum Event {
    Sample { gap: u64, acked: u64, rate: u64, back: u64, inflight: u64, lost: u64, bits: u8 },
    Lost { inflight: u64, lost: u64 },
    Recovery,
    Timeout,
    Recovered,
    Spurious,
    Idle { gap: u64 },
}

fn amount() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..200_000_u64, 1 => Just(0), 1 => any::<u64>().prop_map(|it| it >> 8)]
}

fn event() -> impl Strategy<Value = Event> {
    let gap = || prop_oneof![8 => 0..50_000_000_u64, 1 => 0..8_000_000_000_u64];
    prop_oneof![
        16 => (gap(), amount(), amount(), amount(), amount(), amount(), any::<u8>()).prop_map(
            |(gap, acked, rate, back, inflight, lost, bits)| {
                Event::Sample { gap, acked, rate, back, inflight, lost: lost / 50, bits }
            }
        ),
        2 => (amount(), amount()).prop_map(|(inflight, lost)| Event::Lost { inflight, lost }),
        1 => Just(Event::Recovery),
        1 => Just(Event::Timeout),
        1 => Just(Event::Recovered),
        1 => Just(Event::Spurious),
        1 => gap().prop_map(|gap| Event::Idle { gap }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// After a sample the window is between four segments and the larger of two BDPs with their allowances
    /// and the window before it. Rate and quantum are never 0.
    #[test]
    fn window_and_rate_stay_within_their_bounds(
        events in prop::collection::vec(event(), 1..300),
        mss in prop_oneof![1..2_000_u64, Just(1), Just(65_535)],
    ) {
        let mut flow = Flow::new();
        flow.window = RateWindow { cwnd: 10 * mss, mss, initial: 10 * mss };
        for event in events {
            let before = flow.window.cwnd;
            match event {
                Event::Sample { gap, acked, rate, back, inflight, lost, bits } => {
                    flow.now += Span::from_nanos(gap);
                    let prior_total = flow.total.saturating_sub(back);
                    let rtt = (bits & 4 != 0).then(|| Span::from_nanos(gap));
                    let sample = flow.sample(acked >> 8, rate);
                    flow.take(RateSample {
                        prior_total, inflight, lost, rtt,
                        app_limited: bits & 1 != 0,
                        cwnd_limited: bits & 2 != 0,
                        sack: bits & 8 != 0,
                        ..sample
                    });
                    let cwnd = flow.window.cwnd;
                    prop_assert!(cwnd >= 4 * mss && flow.bbr.quantum() >= 2 * mss, "{cwnd}");
                    let base = before.max(flow.bbr.output.prior_cwnd).max(4 * mss);
                    prop_assert!(cwnd <= base.saturating_add(acked >> 8), "{cwnd} after {base}");
                    if !flow.bbr.is_starting() && flow.bbr.phase != Phase::ProbeRtt {
                        let bdp = flow.bbr.bdp().unwrap_or(10 * mss);
                        let allowed = bdp / 4 * 9 + bdp / 100 + 6 * mss + 9
                            + flow.bbr.aggregation.extra()
                            + 3 * flow.bbr.quantum();
                        prop_assert!(cwnd <= allowed, "{cwnd} over {allowed}");
                    }
                }
                Event::Lost { inflight, lost } => {
                    let lost = flow.loss(inflight, lost);
                    flow.lose(LostSegment { len: mss, ..lost });
                    prop_assert!(flow.window.cwnd == before);
                }
                Event::Recovery => flow.bbr.on_recovery(&mut flow.window),
                Event::Timeout => {
                    flow.bbr.on_timeout(&mut flow.window);
                    prop_assert_eq!(flow.window.cwnd, mss);
                }
                Event::Recovered => flow.bbr.on_recovered(&mut flow.window),
                Event::Spurious => flow.bbr.on_spurious(flow.now, &mut flow.window),
                Event::Idle { gap } => {
                    flow.now += Span::from_nanos(gap);
                    flow.bbr.on_start(flow.now, true, Some(RTT), &mut flow.window);
                }
            }
            prop_assert!(flow.window.cwnd >= mss);
            prop_assert!(flow.pacing() > 0 && flow.bbr.quantum() > 0);
        }
    }
}
