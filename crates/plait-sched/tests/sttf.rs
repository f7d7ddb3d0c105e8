//! STTF against a plain reference of its rule, and the claims of its paper.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model;
use crate::model::states::any_paths;
use crate::model::{MSS, Model, given, noted, pair, path, places, runs, subflow};
use plait_base::{DataRange, Dsn, Span, SubflowId, Time};
use plait_sched::{Decision, Outcome, Reason, Scheduler, Spec, SubflowView};
use proptest::prelude::*;

const A: SubflowId = SubflowId(0);
const B: SubflowId = SubflowId(1);

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

/// Returns the whole RTTs that segment `q` waits, counted round by round.
fn rounds(mut q: u64, free: u64, mut cwnd: u64, ssthresh: Option<u64>) -> u64 {
    if q <= free {
        return 0;
    }
    let grow = |cwnd: u64| match ssthresh {
        None => 2 * cwnd,
        Some(threshold) if 2 * cwnd <= threshold => 2 * cwnd,
        Some(threshold) if cwnd < threshold => threshold,
        Some(_) => cwnd + 1,
    };
    q -= free;
    let mut rounds = 1;
    cwnd = grow(cwnd);
    while q > cwnd {
        q -= cwnd;
        rounds += 1;
        cwnd = grow(cwnd);
    }
    rounds
}

/// Returns twice the transfer time in ns of the segment behind `assigned` others.
fn sttf_twice(path: &SubflowView, assigned: u64) -> u64 {
    let free = path.cwnd.saturating_sub(path.inflight) / MSS;
    let ssthresh = path.ssthresh.map(|bytes| bytes / MSS);
    let waits = rounds(assigned + 1, free, path.cwnd / MSS, ssthresh);
    (2 * waits + 1) * path.last_rtt.or(path.srtt).unwrap().as_nanos()
}

fn near_symmetric(paths: &[SubflowView]) -> bool {
    let rtts = || paths.iter().map(|it| it.last_rtt.or(it.srtt).unwrap().as_nanos());
    let (least, greatest) = (rtts().min().unwrap(), rtts().max().unwrap());
    greatest - least <= 1_000_000 || greatest * 100 < least * 110
}

/// Returns the subflow of the next segment, with `lines` segments ahead of it, and extends that
/// line.
fn sttf_next(paths: &[SubflowView], lines: &mut [u64]) -> usize {
    let times = paths.iter().zip(&*lines).map(|(path, line)| sttf_twice(path, *line));
    let best = times.enumerate().min_by_key(|(at, time)| (*time, *at)).unwrap().0;
    lines[best] += 1;
    best
}

proptest! {
    #![proptest_config(model::cases(2_000))]

    #[test]
    fn the_closed_form_of_sttf_is_the_simulation(
        q in 1..20_000_u64,
        free in 0..200_u64,
        cwnd in 1..300_u64,
        ssthresh in prop::option::of(0..600_u64),
        rtt_us in 1..1_000_000_u64,
    ) {
        let (cwnd, free) = (cwnd.max(free), free);
        let one = SubflowView {
            inflight: (cwnd - free) * MSS,
            queued: (q - 1) * MSS,
            ssthresh: ssthresh.map(|segments| segments * MSS),
            ..subflow(0, Span::from_micros(rtt_us), cwnd * MSS)
        };
        let far = path(1, 1_000_000, 10);
        let mut out = Outcome::default();
        Model::new(vec![one, far], MSS).ask(&mut *build("sttf:symmetric=off"), &mut out);
        let expected = sttf_twice(&one, q - 1) as f64 / 2e6;
        let actual = noted(&out, "arrival_ms", 0).unwrap();
        prop_assert!((actual - expected).abs() <= 1e-9 * expected, "{} {}", actual, expected);
    }

    /// STTF places all assigned data again. It takes over the whole new map if some subflow would
    /// have more than `tolerance` segments more or fewer.
    #[test]
    fn sttf_takes_over_a_map_that_differs_by_more_than_the_tolerance(
        paths in any_paths(),
        map in prop::collection::vec((1..30_u64, 0..8_u8), 1..12),
        nearly in any::<bool>(),
        tolerance in prop::sample::select(vec![0, 1, 1, 1, 5]),
    ) {
        prop_assume!(!near_symmetric(&paths));
        let count = paths.len();
        let mut model = Model::new(paths, 0);
        let total: u64 = map.iter().map(|(len, _)| len).sum();
        let mut lines = vec![0; count];
        let fresh: Vec<SubflowView> =
            model.subflows.iter().map(|it| SubflowView { queued: 0, ..*it }).collect();
        let wanted: Vec<usize> = (0..total).map(|_| sttf_next(&fresh, &mut lines)).collect();
        let mut now: Vec<usize> = if nearly {
            wanted.clone()
        } else {
            let of = |(len, at): &(u64, u8)| vec![usize::from(*at) % count; *len as usize];
            map.iter().flat_map(of).collect()
        };
        if nearly {
            // One or two segments are on another subflow.
            for (len, at) in map.iter().take(2) {
                let place = (*len * 7) as usize % now.len();
                now[place] = usize::from(*at) % count;
            }
        }
        for (at, owner) in now.iter().enumerate() {
            let segment = DataRange::with_len(Dsn::new(at as u64 * MSS), MSS);
            model.queue.unsent.insert(segment);
            model.assign(&[(segment, SubflowId(*owner as u8))]);
        }
        let differs = (0..count).any(|at| {
            let held = now.iter().filter(|owner| **owner == at).count() as u64;
            held.abs_diff(lines[at]) > tolerance
        });
        let (mut scheduler, mut out) = (build(&format!("sttf:tolerance={tolerance}")), Outcome::default());
        let decision = model.ask(&mut *scheduler, &mut out);
        let rescheduled = decision == Decision::Assign { reason: Reason::Rescheduled };
        prop_assert_eq!(rescheduled, differs, "{:?}", decision);
        if differs {
            let then: Vec<usize> = out.plan.iter().flat_map(|(run, owner)| {
                vec![owner.index(); (run.len() / MSS) as usize]
            }).collect();
            prop_assert_eq!(then, wanted);
            // After it is taken over, the map stays.
            model.assign(&out.plan);
            let next = model.ask(&mut *scheduler, &mut out);
            let waits = matches!(next, Decision::Wait { reason: Reason::AssignedBusy, .. });
            prop_assert!(waits, "{:?}", next);
        }
    }
}

proptest! {
    #[test]
    fn sttf_assigns_each_segment_where_its_transfer_ends_first(paths in any_paths()) {
        prop_assume!(!near_symmetric(&paths));
        let mut lines: Vec<u64> = paths.iter().map(|it| it.queued / MSS).collect();
        let mut model = Model::new(paths, 300 * MSS);
        let (mut scheduler, mut out) = (build("sttf"), Outcome::default());
        for _ in 0..300 {
            let expected = sttf_next(&model.subflows.clone(), &mut lines) as u8;
            let decision = model.ask(&mut *scheduler, &mut out);
            let (chosen, at_once) = match decision {
                Decision::Send { subflow, .. } => (subflow, true),
                Decision::Assign { .. } => (out.plan[0].1, false),
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(chosen.0, expected);
            let it = model.subflow_mut(chosen);
            prop_assert_eq!(at_once, it.queued == 0 && it.inflight + MSS <= it.cwnd);
            if at_once {
                it.inflight += MSS;
                lines[chosen.index()] -= 1;
            } else {
                it.queued += MSS;
            }
            model.connection.unsent -= MSS;
            let _ = model.queue.unsent.remove(model.queue.unsent.nth(0, MSS).unwrap());
        }
    }

    #[test]
    fn on_nearly_equal_paths_sttf_decides_as_minrtt_does(
        base_us in 500..300_000_u64,
        more in prop::collection::vec(0.0..1.0_f64, 1..4),
        cwnds in prop::collection::vec(1..40_u64, 4),
    ) {
        let limit = (base_us as f64 * 0.0999).max(1_000.0);
        let rtts = std::iter::once(0.0).chain(more).map(|part| base_us + (limit * part) as u64);
        let paths = rtts.zip(0_u8..).zip(cwnds).map(|((rtt, id), cwnd)| {
            subflow(id, Span::from_micros(rtt), cwnd * MSS)
        });
        let mut models = [Model::new(paths.collect(), 200 * MSS), Model::new(vec![], 0)];
        models[1] = models[0].clone();
        let mut schedulers = [build("sttf"), build("minrtt")];
        let mut out = Outcome::default();
        loop {
            let [a, b] = [0, 1].map(|at| {
                let decision = models[at].ask(&mut *schedulers[at], &mut out);
                models[at].apply(decision, &[]);
                decision
            });
            // minrtt grants all room of a subflow; STTF grants one segment.
            prop_assert_eq!(a.one_segment(MSS), b.one_segment(MSS));
            if !matches!(a, Decision::Send { .. }) {
                break;
            }
        }
    }
}

#[test]
fn nearly_equal_is_up_to_a_millisecond_or_below_ten_per_cent() {
    let plans = |first_us: u64, second_us: u64| {
        let rtts = [first_us, second_us].into_iter().zip(0_u8..);
        let paths = rtts.map(|(rtt, id)| SubflowView {
            inflight: 10 * MSS,
            ..subflow(id, Span::from_micros(rtt), 10 * MSS)
        });
        let model = Model::new(paths.collect(), MSS);
        let decision = model.ask(&mut *build("sttf"), &mut Outcome::default());
        matches!(decision, Decision::Assign { .. })
    };
    assert!(!plans(2_000, 3_000) && plans(2_000, 3_001));
    assert!(!plans(100_000, 109_999) && plans(100_000, 110_000) && plans(110_000, 100_000));
}

/// ton-u12, ton-u14.
#[test]
fn transfer_times_follow_slow_start_and_congestion_avoidance() {
    let arrivals = |ssthresh: Option<u64>, segments: usize| {
        let mut model = pair([10, 1_000_000], segments as u64);
        model.subflows[0].ssthresh = ssthresh.map(|it| it * MSS);
        let (mut scheduler, mut out) = (build("sttf"), Outcome::default());
        let mut next = || {
            let decision = model.ask(&mut *scheduler, &mut out);
            assert_eq!(given(&mut model, decision, &out), Some(A));
            noted(&out, "arrival_ms", 0).unwrap()
        };
        (0..segments).map(|_| next()).collect::<Vec<f64>>()
    };
    let last_of_each = |times: &[f64]| {
        let runs = times.chunk_by(|a, b| a == b);
        runs.scan(0, |sum, run| {
            *sum += run.len();
            Some((*sum, run[0]))
        })
        .collect::<Vec<_>>()
    };
    let slow_start = [(10, 5.0), (30, 15.0), (70, 25.0), (150, 35.0), (310, 45.0)];
    assert_eq!(last_of_each(&arrivals(None, 310)), slow_start);
    let avoidance = [(10, 5.0), (21, 15.0), (33, 25.0), (46, 35.0)];
    assert_eq!(last_of_each(&arrivals(Some(9), 46)), avoidance);
}

/// ton-u13.
#[test]
fn the_slow_subflow_gets_the_first_segment_that_arrives_there_sooner() {
    let runs_on = |rtts, segments: u64| {
        let mut model = pair(rtts, segments);
        runs(&places(&mut model, &mut *build("sttf"), segments as usize))
    };
    assert_eq!(runs_on([10, 100], 311), [(0, 310), (1, 1)]);
    assert_eq!(runs_on([10, 40], 40), [(0, 30), (1, 10)]);
}

/// ton-u8.
#[test]
fn a_burst_is_assigned_to_the_fast_subflow_whether_small_queues_hold_it_back_or_not() {
    for held in [false, true] {
        let mut model = pair([10, 100], 15);
        model.tsq = true;
        model.subflows[0].tsq_blocked = held;
        let (mut scheduler, mut out) = (build("sttf"), Outcome::default());
        let mut arrivals = Vec::new();
        for _ in 0..15 {
            let decision = model.ask(&mut *scheduler, &mut out);
            arrivals.push(noted(&out, "arrival_ms", 0).unwrap());
            assert_eq!(matches!(decision, Decision::Send { .. }), !held && arrivals.len() <= 10);
            assert_eq!(given(&mut model, decision, &out), Some(A));
        }
        assert_eq!(arrivals, [[5.0; 10].as_slice(), &[15.0; 5]].concat());
    }
}

/// ton-u15: an acknowledgement frees the fast subflow.
#[test]
fn an_acknowledgement_moves_the_map_where_it_changes_it_by_more_than_a_segment() {
    // 40 segments: 21 and 9 on the fast subflow, and 10 between them on the slow one.
    let assigned = || {
        let mut model = pair([10, 40], 40);
        for it in &mut model.subflows {
            it.ssthresh = Some(10 * MSS);
        }
        let mut scheduler = build("sttf");
        let at = places(&mut model, &mut *scheduler, 40);
        assert_eq!(runs(&at), [(0, 21), (1, 10), (0, 9)]);
        (model, scheduler)
    };
    // With its whole window free, the fast subflow can take 10 + 11 + 12 segments, which is more
    // than its own
    // 20. It would take one from the slow subflow, but none is left: all are sent.
    let (mut model, mut scheduler) = assigned();
    assert_eq!([model.subflows[0].queued / MSS, model.subflows[1].queued / MSS], [20, 0]);
    model.subflow_mut(A).inflight = 0;
    let mut out = Outcome::default();
    let next = model.ask(&mut *scheduler, &mut out);
    assert!(matches!(next, Decision::Wait { reason: Reason::AssignedBusy, .. }), "{next:?}");
    // If the ten segments of the slow subflow still wait, they move to the fast one.
    for (held, moves) in [(0, false), (1, false), (2, true), (10, true)] {
        let (mut model, mut scheduler) = assigned();
        let range = DataRange::with_len(Dsn::new(40 * MSS), held * MSS);
        model.queue.unsent.insert(range);
        model.assign(&[(range, B)]);
        model.subflow_mut(A).inflight = 0;
        let next = model.ask(&mut *scheduler, &mut out);
        assert_eq!(next == Decision::Assign { reason: Reason::Rescheduled }, moves, "{held}");
        assert!(!moves || out.plan.iter().all(|(_, owner)| *owner == A));
    }
}

/// A state written by hand may count ten segments for a subflow and assign all DSNs to it. Placing
/// them one by one would not end.
#[test]
fn a_queue_without_end_is_not_placed_to_its_end() {
    let mut model = pair([10, 40], 10);
    let all = DataRange::between(0, u64::MAX);
    model.queue.unsent.insert(all);
    model.assign(&[(all, B)]);
    model.subflow_mut(B).queued = 10 * MSS;
    let mut out = Outcome::default();
    let next = model.ask(&mut *build("sttf"), &mut out);
    assert_eq!(next, Decision::Assign { reason: Reason::Rescheduled });
    let placed: u64 = out.plan.iter().map(|(range, _)| range.len()).sum();
    assert_eq!(placed, 11 * MSS);
}

#[test]
fn a_stale_rtt_gives_way_to_the_least_one() {
    let ask = |spec: &str, age_ms: u64| {
        let mut model = pair([200, 50], 1);
        model.subflows[0].min_rtt = Some(Span::from_millis(10));
        model.subflows[0].rto = Span::from_millis(400);
        model.now = Time::from_nanos(5_000_000_000);
        model.subflows[0].rtt_at = Time::from_nanos((5_000 - age_ms) * 1_000_000);
        model.subflows[1].rtt_at = model.now;
        let mut out = Outcome::default();
        let decision = model.ask(&mut *build(spec), &mut out);
        given(&mut model, decision, &out)
    };
    assert_eq!((ask("sttf", 400), ask("sttf", 401)), (Some(B), Some(A)));
    assert_eq!(ask("sttf:stale=off", 4_000), Some(B));
    assert_eq!(
        (ask("sttf:age_ms=1000", 1_000), ask("sttf:age_ms=1000", 1_001)),
        (Some(B), Some(A))
    );
}

#[test]
fn the_estimate_takes_the_latest_rtt_or_the_smoothed_one() {
    let mut model = pair([10, 100], 1);
    model.subflows[0].last_rtt = Some(Span::from_millis(300));
    let on = |spec| {
        let mut out = Outcome::default();
        let decision = model.ask(&mut *build(spec), &mut out);
        given(&mut model.clone(), decision, &out)
    };
    assert_eq!((on("sttf"), on("sttf:rtt=smoothed")), (Some(B), Some(A)));
}
