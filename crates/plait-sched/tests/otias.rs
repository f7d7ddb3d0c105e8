//! OTIAS against a plain reference of its rule.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model::states::any_paths;
use crate::model::{MSS, Model, noted, subflow};
use plait_base::{DataRange, Span, SubflowId};
use plait_sched::{Decision, Outcome, Reason, Scheduler, Spec, SubflowView};
use proptest::prelude::*;

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

/// Returns twice T, so that half an RTT is a whole number. Rounds are counted one by one.
fn otias_twice(path: &SubflowView) -> u64 {
    let can = (path.cwnd.max(path.inflight) - path.inflight) / MSS;
    let mut behind = (path.queued / MSS + 1).saturating_sub(can);
    let mut rounds = 0;
    while behind > 0 {
        behind = behind.saturating_sub(path.cwnd / MSS);
        rounds += 1;
    }
    (2 * rounds + 1) * path.srtt.unwrap().as_nanos()
}

proptest! {
    #[test]
    fn otias_assigns_each_segment_where_it_arrives_first(paths in any_paths(), blocked in any::<u8>()) {
        let mut model = Model::new(paths, 200 * MSS);
        model.tsq = true;
        for it in &mut model.subflows {
            it.tsq_blocked = blocked >> it.id.0 & 1 == 1;
        }
        let (mut scheduler, mut out) = (build("otias"), Outcome::default());
        for _ in 0..200 {
            let decision = model.ask(&mut *scheduler, &mut out);
            let free = model.subflows.iter().filter(|it| !it.tsq_blocked);
            let Some(best) = free.min_by_key(|it| (otias_twice(it), it.id)).map(|it| it.id) else {
                prop_assert_eq!(decision, Decision::Wait { on: None, reason: Reason::AllBusy });
                break;
            };
            for it in &model.subflows {
                let expected = otias_twice(it) as f64 / 2e6;
                prop_assert!((noted(&out, "arrival_ms", it.id.0).unwrap() - expected).abs() < 1e-6);
            }
            let chosen = model.view().subflow(best).copied().unwrap();
            let at_once = chosen.queued == 0 && chosen.inflight < chosen.cwnd;
            prop_assert_eq!(matches!(decision, Decision::Send { .. }), at_once);
            // The model's `queued` is given directly, and is not the sum of its assigned ranges.
            match decision {
                Decision::Send { subflow, .. } => prop_assert_eq!(subflow, best),
                Decision::Assign { .. } => prop_assert_eq!(out.plan[0].1, best),
                other => panic!("{other:?}"),
            }
            let it = model.subflow_mut(best);
            if at_once { it.inflight += MSS } else { it.queued += MSS }
            model.connection.unsent -= MSS;
            let _ = model.queue.unsent.remove(model.queue.unsent.nth(0, MSS).unwrap());
        }
    }

    /// The wait of the paper is compared as an exact ratio.
    #[test]
    fn otias_with_the_wait_of_the_paper_does_not_round(paths in any_paths()) {
        let model = Model::new(paths, MSS);
        let mut out = Outcome::default();
        let decision = model.ask(&mut *build("otias:wait=paper"), &mut out);
        let time = |it: &SubflowView| {
            let can = (it.cwnd.max(it.inflight) - it.inflight) as f64;
            let wait = (it.queued as f64 - can).max(0.0) / it.cwnd as f64;
            (wait + 0.5) * it.srtt.unwrap().as_millis_f64()
        };
        let chosen = match decision {
            Decision::Send { subflow, .. } => subflow,
            _ => out.plan[0].1,
        };
        let least = model.subflows.iter().map(time).fold(f64::MAX, f64::min);
        let chosen = time(model.view().subflow(chosen).unwrap());
        prop_assert!(chosen <= least * (1.0 + 1e-12), "{} {}", chosen, least);
    }
}

/// A queue behind a full window of one segment moves, and only once. A subflow with room sends its
/// own data, so two subflows do not pass it to and fro.
#[test]
fn a_window_of_one_segment_hands_its_queue_to_one_that_has_room() {
    let ms = Span::from_millis;
    for (spec, passes) in
        [("otias", true), ("otias:back=off", false), ("linux", true), ("linux:back=off", false)]
    {
        let mut model = Model::new(vec![subflow(0, ms(100), MSS), subflow(1, ms(100), MSS)], 0);
        model.queue.assign(DataRange::between(0, 3 * MSS), SubflowId(0));
        model.subflow_mut(SubflowId(0)).queued = 3 * MSS;
        model.subflow_mut(SubflowId(0)).inflight = MSS;
        let (mut scheduler, mut out) = (build(spec), Outcome::default());
        let first = model.ask(&mut *scheduler, &mut out);
        assert_eq!(matches!(first, Decision::Assign { .. }), passes, "{spec}: {first:?}");
        if passes {
            assert_eq!(out.plan, [(DataRange::between(0, MSS), SubflowId(1))]);
            model.queue.assign(DataRange::between(0, MSS), SubflowId(1));
            model.subflow_mut(SubflowId(0)).queued = 2 * MSS;
            model.subflow_mut(SubflowId(1)).queued = MSS;
        }
        // It does not move back once this subflow has room too.
        for inflight in [MSS, 0] {
            model.subflow_mut(SubflowId(0)).inflight = inflight;
            let then = model.ask(&mut *scheduler, &mut out);
            assert!(matches!(then, Decision::Wait { .. }), "{spec}: {then:?}");
        }
    }
}

/// A queue moves from any full window if its own time exceeds twice the sum of the longest other
/// time and the slowest RTT. `otias` does so only with small queues (TSQ), which may have blocked
/// the other subflow at the time of the assignment. `linux` always does so.
#[test]
fn a_queue_of_many_windows_is_handed_on() {
    let ms = Span::from_millis;
    for (spec, tsq, windows, passes) in [
        ("otias", true, 2, false),
        ("otias", true, 3, true),
        ("otias", false, 3, false),
        ("otias:back=off", true, 3, false),
        ("linux", true, 2, false),
        ("linux", true, 3, true),
        ("linux", false, 3, true),
        ("linux:back=off", true, 3, false),
    ] {
        let paths = vec![subflow(0, ms(300), 20 * MSS), subflow(1, ms(10), 20 * MSS)];
        let mut model = Model::new(paths, 0);
        model.tsq = tsq;
        let queued = windows * 20 * MSS;
        model.queue.assign(DataRange::between(0, queued), SubflowId(0));
        model.subflow_mut(SubflowId(0)).queued = queued;
        model.subflow_mut(SubflowId(0)).inflight = 20 * MSS;
        let (mut scheduler, mut out) = (build(spec), Outcome::default());
        let decision = model.ask(&mut *scheduler, &mut out);
        assert_eq!(matches!(decision, Decision::Assign { .. }), passes, "{spec}: {decision:?}");
        if passes {
            assert_eq!(out.plan, [(DataRange::between(0, 20 * MSS), SubflowId(1))]);
        }
    }
}
