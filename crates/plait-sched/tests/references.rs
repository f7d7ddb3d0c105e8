//! The rules against a second, plain implementation on random states. The tests share no code with
//! the schedulers.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model;
use crate::model::{MSS, Model, subflow};
use plait_base::{DataRange, Dsn, Span, SubflowId, Time};
use plait_sched::{
    CaState, Decision, Effect, LeftEdge, Notice, Outcome, Reason, Scheduler, Spec, SubflowView,
    What,
};
use proptest::prelude::*;

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

prop_compose! {
    /// A subflow of a real connection: windows in segments, sometimes not whole ones.
    fn any_subflow()(
        rtt_us in prop_oneof![Just(0_u64), 1_000..400_000_u64, prop::sample::select(vec![10_000, 20_000, 100_000])],
        (cwnd, inflight, queued) in (0..60 * MSS, 0..60_u64, prop_oneof![3 => Just(0_u64), 1 => 0..20_u64]),
        whole in any::<bool>(),
        ssthresh in prop::option::of(1..80_u64),
        (open, joined, pf, backup, tsq) in (
            prop::bool::weighted(0.95), prop::bool::weighted(0.95), prop::bool::weighted(0.05),
            prop::bool::weighted(0.2), prop::bool::weighted(0.1),
        ),
        ca in prop::sample::select(vec![
            CaState::Open, CaState::Open, CaState::Open, CaState::Disorder, CaState::Recovery, CaState::Loss,
        ]),
        rttvar_us in 0..50_000_u64,
    ) -> SubflowView {
        let cwnd = if whole { cwnd / MSS * MSS } else { cwnd };
        SubflowView {
            open, joined, pf, backup, ca,
            tsq_blocked: tsq,
            srtt: (rtt_us > 0).then(|| Span::from_micros(rtt_us)),
            rttvar: Span::from_micros(rttvar_us),
            ssthresh: ssthresh.map(|it| it * MSS),
            inflight: (inflight * MSS).min(cwnd + MSS),
            queued: queued * MSS,
            ..subflow(0, Span::ZERO, cwnd)
        }
    }
}

fn any_model() -> impl Strategy<Value = Model> {
    let subflows = prop::collection::vec(any_subflow(), 2..5);
    let window = prop_oneof![3 => Just(u64::MAX), 1 => 0..40 * MSS];
    (subflows, 1..400_u64, window, any::<bool>()).prop_map(|(mut subflows, unsent, window, tsq)| {
        for (subflow, id) in subflows.iter_mut().zip(0..) {
            subflow.id = SubflowId(id);
        }
        let mut model = Model::new(subflows, unsent * MSS);
        model.connection.wnd_end = Dsn::new(window);
        model.tsq = tsq;
        model
    })
}

/// A second implementation of the shared rules.
mod rule {
    use super::*;

    pub(super) fn alive(s: &SubflowView) -> bool {
        s.open && s.joined && !s.pf && s.ca != CaState::Loss
    }

    pub(super) fn candidates(model: &Model) -> Vec<SubflowView> {
        let alive: Vec<SubflowView> = model.subflows.iter().copied().filter(alive).collect();
        let regular: Vec<SubflowView> = alive.iter().copied().filter(|s| !s.backup).collect();
        if regular.is_empty() { alive } else { regular }
    }

    pub(super) fn usable(model: &Model, s: &SubflowView) -> bool {
        alive(s) && s.inflight + s.queued + MSS <= s.cwnd && !(model.tsq && s.tsq_blocked)
    }

    /// Returns the smoothed RTT in ns. A subflow without a sample is the slowest.
    pub(super) fn srtt(s: &SubflowView) -> u64 {
        s.srtt.map_or(u64::MAX, Span::as_nanos)
    }
}

/// Checks a rule that sends new data from the front. `chosen` is the expected subflow; `None`
/// expects a wait. If the window is closed, the decision must wait for `chosen`.
fn expect_front(model: &Model, decision: Decision, chosen: Option<SubflowId>) {
    let closed = model.connection.wnd_end < Dsn::new(MSS);
    match (decision, chosen) {
        (Decision::Send { subflow, .. }, Some(wanted)) => {
            assert!(subflow == wanted && !closed, "{decision:?}, wanted {wanted}");
        }
        (Decision::Wait { on, reason: Reason::SendWindow }, Some(wanted)) => {
            assert!(on == Some(wanted) && closed, "{decision:?}, wanted {wanted}");
        }
        (Decision::Wait { .. }, None) => {}
        _ => panic!("{decision:?}, wanted {chosen:?}"),
    }
}

proptest! {
    #![proptest_config(model::cases(3_000))]

    /// csws-u3 and random states: 3 * min/srtt * cwnd, in whole segments, two at least.
    #[test]
    fn bm_caps_as_the_formula_says(
        model in any_model(),
        min_us in 500..200_000_u64,
        lambda_milli in 0..8_000_u64,
        (rate, by_rate) in (0..20_000_000_u64, any::<bool>()),
    ) {
        let mut model = model;
        model.subflows[0].latest.delivery_rate = rate;
        let lambda = lambda_milli as f64 / 1e3;
        let estimate = if by_rate { "rate" } else { "formula" };
        let mut scheduler = build(&format!("minrtt+bm:lambda={lambda},estimate={estimate}"));
        scheduler.load_state("bm_min_srtt.0_ms", min_us as f64 / 1e3);
        let mut out = Outcome::default();
        let decision = model.ask(&mut *scheduler, &mut out);
        let first = model.subflows[0];
        let wanted = first.srtt.filter(|_| !by_rate || rate > 0).map(|srtt| {
            let (min_us, srtt_us) = (min_us.min(srtt.as_micros()), srtt.as_micros());
            // Thousandths of lambda, millionths of a second.
            let (above, below) = if by_rate {
                (lambda_milli * min_us * rate, 1_000 * 1_000_000)
            } else {
                (lambda_milli * min_us * first.cwnd, 1_000 * srtt_us)
            };
            let segments = above / below / MSS;
            (segments * MSS).min(first.cwnd).max(2 * MSS)
        });
        let cap = out.effects.iter().find_map(|effect| match *effect {
            Effect::Cap { subflow: SubflowId(0), bytes } => bytes,
            _ => None,
        });
        prop_assert_eq!(cap, wanted.filter(|cap| *cap < first.cwnd));
        // A sent segment keeps the bytes in flight below the cap.
        if let Decision::Send { subflow: SubflowId(0), .. } = decision {
            prop_assert!(first.inflight + first.queued + MSS <= cap.unwrap_or(u64::MAX));
        }
    }

    #[test]
    fn strict_takes_the_first_that_has_room(model in any_model()) {
        let chosen = rule::candidates(&model).into_iter().find(|s| rule::usable(&model, s));
        let decision = model.ask(&mut *build("strict"), &mut Outcome::default());
        expect_front(&model, decision, chosen.map(|s| s.id));
    }

    #[test]
    fn rtt_threshold_leaves_what_is_above_idle(model in any_model(), threshold in 0..300_u64) {
        let candidates = rule::candidates(&model);
        let limit = threshold * 1_000_000;
        let mut low: Vec<SubflowView> =
            candidates.iter().copied().filter(|s| rule::srtt(s) < limit).collect();
        if low.is_empty() {
            low = candidates;
            low.sort_by_key(|s| (rule::srtt(s), s.id));
        }
        let chosen = low.into_iter().find(|s| rule::usable(&model, s));
        let spec = format!("rtt-threshold:threshold={threshold}");
        let decision = model.ask(&mut *build(&spec), &mut Outcome::default());
        expect_front(&model, decision, chosen.map(|s| s.id));
    }

    /// stms-u6, stms-u9 and random states: equation 2, and the choice from a list of segments.
    #[test]
    fn stms_leaves_the_gap_to_the_fast_one(
        model in any_model(),
        taken in prop::collection::vec(0..400_u64, 0..30),
        (a, tail) in (any::<bool>(), any::<bool>()),
    ) {
        let mut model = model;
        for segment in taken {
            model.queue.unsent.remove(DataRange::with_len(Dsn::new(segment * MSS), MSS));
        }
        model.connection.unsent = model.queue.unsent.len();
        let unsent: Vec<u64> =
            model.queue.unsent.iter().flat_map(|it| it.start.get() / MSS..it.end.get() / MSS).collect();
        if unsent.is_empty() {
            return Ok(());
        }
        let spec = format!("stms-{}:tail_use_slow={tail}", if a { "a" } else { "c" });
        let decision = model.ask(&mut *build(&spec), &mut Outcome::default());
        let mut lanes = rule::candidates(&model);
        lanes.sort_by_key(|s| (rule::srtt(s), s.id));
        let gap = |slow: &SubflowView| {
            let mut bytes = 0;
            for faster in lanes.iter().take_while(|it| it.id != slow.id) {
                let (Some(f), Some(s)) = (faster.srtt, slow.srtt) else { return 0 };
                let (f, s) = (u128::from(f.as_nanos()), u128::from(s.as_nanos()));
                bytes += u128::from(faster.cwnd) * (s - f) / (2 * f);
            }
            (bytes / u128::from(MSS)) as usize
        };
        let in_window = |segment: u64| (segment + 1) * MSS <= model.connection.wnd_end.get();
        let mut wanted = None;
        for (at, lane) in lanes.iter().enumerate().filter(|(_, it)| rule::usable(&model, it)) {
            let index = if at == 0 { 0 } else { gap(lane) };
            let index = if tail { index.min(unsent.len() - 1) } else { index };
            let segment = unsent.get(index).copied().filter(|it| in_window(*it));
            if segment.is_some() || at == 0 {
                wanted = segment.map(|it| (lane.id, it));
                break;
            }
        }
        let got = match decision {
            Decision::Send { subflow, what, .. } => {
                Some((subflow, model.range(what).unwrap().start.get() / MSS))
            }
            Decision::Wait { .. } => None,
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(got, wanted);
        let ahead = matches!(decision, Decision::Send { what: What::New { offset }, .. } if offset > 0);
        prop_assert!(!ahead || got.is_some_and(|(id, _)| id != lanes[0].id));
    }

    /// stms-u8 on random DATA_ACKs, in floats.
    #[test]
    fn stms_a_learns_as_algorithm_2_says(
        (fast_ms, more_ms) in (5..100_u64, 1..300_u64),
        gap0 in 0..500_u64,
        window in prop_oneof![Just(1_000_000_u64), 1..600_u64],
        events in prop::collection::vec(
            (0..200_u64, 1..60_u64, any::<bool>(), prop::bool::weighted(0.2), any::<bool>()),
            1..40,
        ),
        lost in prop::sample::select(vec!["off", "resting", "on"]),
    ) {
        let slow_ms = fast_ms + more_ms;
        let paths = [(0, fast_ms), (1, slow_ms)];
        let subflows = paths.map(|(id, rtt)| subflow(id, Span::from_millis(rtt), 10 * MSS));
        let mut model = Model::new(subflows.to_vec(), MSS);
        let mut scheduler = build(&format!("stms-a:gap0={gap0},count_lost={lost}"));
        let interval = (fast_ms + slow_ms) as f64 / 2.0;
        let (mut ewma, mut gap, mut now, mut applied) = (0.0_f64, gap0 as i64, 0, 0);
        let mut sampled: Option<u64> = None;
        for (pause, covered, on_slow, again, resting) in events {
            now += pause;
            model.subflow_mut(SubflowId(1)).outstanding = if resting { 0 } else { MSS };
            model.now = Time::ZERO + Span::from_millis(now);
            let old = model.connection.snd_una;
            model.connection.snd_una += covered * MSS;
            model.connection.wnd_end = model.connection.snd_una + window * MSS;
            let edge = Some(LeftEdge { first: SubflowId(u8::from(on_slow)), again });
            let new = model.connection.snd_una;
            scheduler.on_notice(&model.view(), Notice::DataAck { old, new, edge });
            let left_out = match lost {
                "on" => false,
                "resting" => again && (on_slow || !resting),
                _ => again,
            };
            if covered > 2 && !left_out {
                let mut delta = if on_slow { covered as f64 } else { -(covered as f64) };
                if again && lost == "resting" {
                    // Not below the gap that stms-c calculates for a window of ten segments.
                    let calculated = (10 * more_ms / (2 * fast_ms)) as i64;
                    delta = delta.max(-(gap - calculated).max(0) as f64);
                }
                if delta != 0.0 {
                    let a = sampled.map_or(1.0, |last| (((now - last) as f64) / interval).min(1.0));
                    ewma = (1.0 - a) * ewma + a * delta;
                    sampled = Some(now);
                }
            }
            if (now - applied) as f64 >= interval && ewma.abs() > 1e-9 {
                // A half that floats do not represent exactly shows nothing.
                prop_assume!((ewma.abs().fract() - 0.5).abs() > 1e-6 || ewma.fract().abs() == 0.5);
                gap = (gap + ewma.round() as i64).clamp(0, window as i64);
                (ewma, applied) = (0.0, now);
            }
            let mut state = std::collections::BTreeMap::new();
            scheduler.save_state(&mut |name, value| {
                state.insert(name.to_owned(), value);
            });
            prop_assert_eq!(state["gap.1"], gap as f64);
            prop_assert!((state.get("ewma.1").copied().unwrap_or(0.0) - ewma).abs() < 1e-6);
        }
    }

    /// The rule of `linux`: least linger, bursts, averages.
    #[test]
    fn linux_weighs_lingers(
        model in any_model(),
        loads in prop::collection::vec((0..300_000_u64, prop_oneof![1 => Just(0), 6 => 1_000..20_000_000_u64], prop_oneof![1 => Just(0), 4 => 1_000..20_000_000_u64], 0..6_u32), 5),
        (sndbuf, percent) in (1..250_000_u64, prop::sample::select(vec![100_u64, 160])),
    ) {
        let mut model = model;
        let truesize = percent as f64 / 100.0;
        let mut scheduler = build(&format!("linux:stale=4,back=off,sndbuf={sndbuf},truesize={truesize}"));
        let mut looked = Vec::new();
        for (subflow, (wmem, avg, pace, timeouts)) in model.subflows.iter_mut().zip(&loads) {
            subflow.outstanding = *wmem;
            (subflow.pacing_rate, subflow.timeouts) = (*pace, *timeouts);
            if *avg > 0 {
                scheduler.load_state(&format!("avg_pace.{}", subflow.id), *avg as f64);
            }
            if subflow.open && subflow.joined && *timeouts < 4 {
                let held = (*wmem + subflow.queued) * percent / 100;
                looked.push((*subflow, held, if *avg > 0 { *avg } else { *pace }));
            }
        }
        let regular = looked.iter().any(|(it, ..)| !it.backup);
        let mut group: Vec<_> =
            looked.into_iter().filter(|(it, _, avg)| it.backup != regular && *avg > 0).collect();
        // The first subflow with the least linger.
        group.sort_by(|a, b| (u128::from(a.1) * u128::from(b.2)).cmp(&(u128::from(b.1) * u128::from(a.2))));
        let window = model.connection.wnd_end.get();
        let mut out = Outcome::default();
        let decision = model.ask(&mut *scheduler, &mut out);
        match group.first() {
            None => prop_assert!(matches!(decision, Decision::Wait { .. }), "{:?}", decision),
            Some((_, held, _)) if *held >= sndbuf => {
                prop_assert!(matches!(decision, Decision::Wait { reason: Reason::SendMemory, .. }), "{:?}", decision);
            }
            Some(_) if window == 0 => {
                prop_assert!(matches!(decision, Decision::Wait { reason: Reason::SendWindow, .. }), "{:?}", decision);
            }
            Some((best, held, avg)) => {
                prop_assert!(matches!(decision, Decision::Assign { reason: Reason::LeastLinger }), "{:?}", decision);
                prop_assert_eq!(out.plan.len(), 1);
                let (range, subflow) = out.plan[0];
                prop_assert_eq!((subflow, range.start), (best.id, Dsn::ZERO));
                let burst = window.min(65_428);
                // At most the burst, the unsent data, or the free buffer rounded up to a segment.
                let memory = (sndbuf - held) * 100 / percent;
                let most = burst.min(model.connection.unsent);
                prop_assert!(range.len() == most.min(memory.div_ceil(MSS).max(1) * MSS));
                let pace = best.pacing_rate;
                let mean = (u128::from(*avg) * u128::from(*held) + u128::from(pace) * u128::from(burst))
                    / u128::from(held + burst);
                let mut saved = None;
                scheduler.save_state(&mut |name, value| {
                    if name == format!("avg_pace.{subflow}") {
                        saved = Some(value);
                    }
                });
                prop_assert_eq!(saved.unwrap_or(0.0), mean as f64);
            }
        }
    }
}
