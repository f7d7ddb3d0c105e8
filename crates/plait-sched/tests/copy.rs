//! Cases of `+copy` worked by hand: the data that is copied, and when.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model;
use crate::model::{MSS, Model, pair, path};
use plait_base::{DataRange, Dsn, Span, SubflowId};
use plait_sched::{Decision, Outcome, Reason, Scheduler, Spec, SubflowView, What};
use proptest::prelude::*;

const A: SubflowId = SubflowId(0);
const B: SubflowId = SubflowId(1);

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

/// Sends until the scheduler is idle or waits. Returns the subflow and number of each segment, and
/// true if it is a copy.
fn sent(model: &mut Model, scheduler: &mut dyn Scheduler) -> (Vec<(u8, u64, bool)>, Decision) {
    let mut list = Vec::new();
    loop {
        let decision = model.ask(scheduler, &mut Outcome::default());
        let Decision::Send { what, reason, .. } = decision else { return (list, decision) };
        let copy = matches!(what, What::Redundant(_));
        assert_eq!(copy, reason == Reason::Copy);
        let (subflow, range) = model.apply(decision, &[]).unwrap();
        list.push((subflow.0, range.start.get() / MSS, copy));
    }
}

#[test]
fn once_all_is_sent_the_other_subflow_copies_it_in_order() {
    let mut model = pair([10, 100], 3);
    let (list, end) = sent(&mut model, &mut *build("minrtt+copy"));
    let new = [(0, 0, false), (0, 1, false), (0, 2, false)];
    let copies = [(1, 0, true), (1, 1, true), (1, 2, true)];
    assert_eq!(list, [new, copies].concat());
    assert_eq!(end, Decision::Idle);
}

#[test]
fn what_both_carry_a_part_of_is_copied_each_way_the_lower_rtt_first() {
    // Ten segments take the fast path and five the slow one. Then an acknowledgement makes room on
    // the fast path.
    let mut model = pair([10, 100], 15);
    let mut scheduler = build("minrtt+copy");
    let (list, _) = sent(&mut model, &mut *scheduler);
    let copies: Vec<_> = list.iter().filter(|(.., copy)| *copy).copied().collect();
    assert_eq!(copies, [0, 1, 2, 3, 4].map(|segment| (1, segment, true)));
    model.subflow_mut(A).inflight = 0;
    model.data_ack(Dsn::new(10 * MSS));
    let (list, _) = sent(&mut model, &mut *scheduler);
    assert_eq!(list, [10, 11, 12, 13, 14].map(|segment| (0, segment, true)));
}

#[test]
fn nothing_is_copied_while_new_data_waits() {
    let mut model = pair([10, 100], 40);
    let (list, end) = sent(&mut model, &mut *build("minrtt+copy"));
    assert_eq!(list.len(), 20);
    assert!(list.iter().all(|(.., copy)| !copy));
    assert!(matches!(end, Decision::Wait { .. }));
    // Nor does it copy while ECF waits for the fast subflow, although the slow one has room.
    let mut model = pair([10, 100], 11);
    let (list, end) = sent(&mut model, &mut *build("ecf+copy"));
    assert_eq!(
        (list.len(), end),
        (10, Decision::Wait { on: Some(A), reason: Reason::FastFinishesSooner })
    );
}

#[test]
fn what_is_acknowledged_is_not_copied_and_no_backup_copies() {
    let mut model = pair([10, 100], 4);
    let mut scheduler = build("minrtt+copy");
    *model.subflow_mut(B) = SubflowView { backup: true, ..*model.subflow_mut(B) };
    let (list, _) = sent(&mut model, &mut *scheduler);
    assert!(list.iter().all(|(subflow, _, copy)| *subflow == 0 && !copy), "{list:?}");
    model.subflow_mut(B).backup = false;
    model.data_ack(Dsn::new(3 * MSS));
    let (list, _) = sent(&mut model, &mut *scheduler);
    assert_eq!(list, [(1, 3, true)]);
    // Each subflow copies a range once: the end of the copied data is in the state.
    let mut state = Vec::new();
    scheduler.save_state(&mut |name, value| state.push((name.to_owned(), value)));
    assert!(state.contains(&("copied.1".to_owned(), (4 * MSS) as f64)), "{state:?}");
}

#[test]
fn what_lies_in_the_reinjection_queue_goes_first() {
    let mut model = pair([10, 100], 2);
    let mut scheduler = build("minrtt+copy");
    while !model.queue.unsent.is_empty() {
        let decision = model.ask(&mut *scheduler, &mut Outcome::default());
        model.apply(decision, &[]);
    }
    model.reinject(DataRange::with_len(Dsn::ZERO, MSS), [A].into_iter().collect());
    let decision = model.ask(&mut *scheduler, &mut Outcome::default());
    assert!(
        matches!(decision, Decision::Send { subflow: B, what: What::Reinject, .. }),
        "{decision:?}"
    );
}

/// Creates four segments in flight on A, and one on B. The latest RTTs are the given ones; the
/// lowest are 10 and 100 ms.
fn behind_a_queue(on_a_ms: u64, on_b_ms: u64) -> Model {
    let mut model = pair([10, 100], 4);
    for (id, least, last) in [(A, 10, on_a_ms), (B, 100, on_b_ms)] {
        let subflow = model.subflow_mut(id);
        subflow.min_rtt = Some(Span::from_millis(least));
        subflow.last_rtt = Some(Span::from_millis(last));
    }
    model.subflow_mut(B).inflight = MSS;
    model
}

#[test]
fn no_copy_waits_in_a_queue_that_the_original_does_not_meet() {
    let copies = |mut model: Model, spec: &str| {
        let (list, end) = sent(&mut model, &mut *build(spec));
        assert_eq!(end, Decision::Idle);
        list.iter().filter(|(.., copy)| *copy).count()
    };
    // Up to twice the lowest RTT there is no queue.
    assert_eq!(copies(behind_a_queue(10, 200), "minrtt+copy"), 4);
    assert_eq!(copies(behind_a_queue(10, 201), "minrtt+copy"), 0);
    assert_eq!(copies(behind_a_queue(10, 201), "minrtt+copy:queue=3"), 4);
    assert_eq!(copies(behind_a_queue(10, 2_000), "minrtt+copy:queue=1000"), 4);
    // The carrier has the longer queue, or the copy meets none, or the carrier is down.
    assert_eq!(copies(behind_a_queue(400, 300), "minrtt+copy"), 4);
    let mut empty = behind_a_queue(10, 300);
    empty.subflow_mut(B).inflight = 0;
    let (list, _) = sent(&mut empty, &mut *build("minrtt+copy"));
    assert_eq!(list.iter().filter(|(.., copy)| *copy).count(), 1, "the second would wait for it");
    let (mut model, mut scheduler) = (behind_a_queue(10, 300), build("minrtt+copy"));
    assert_eq!(sent(&mut model, &mut *scheduler).0.len(), 4);
    model.subflow_mut(A).pf = true;
    assert_eq!(sent(&mut model, &mut *scheduler).0.len(), 4);
}

proptest! {
    #![proptest_config(model::cases(300))]

    /// Every copy is on a subflow without a queue, or with a shorter queue than that of its
    /// carrier.
    #[test]
    fn copies_meet_no_queue(
        rtts in prop::array::uniform3((1..100_u64, 1..400_u64)),
        flights in prop::array::uniform3(0..12_u64),
        segments in 1..40_u64,
    ) {
        let paths = (0..).zip(rtts).map(|(id, (least, _))| path(id, least, 10));
        let mut model = Model::new(paths.collect(), segments * MSS);
        for (subflow, ((least, last), flight)) in
            model.subflows.iter_mut().zip(rtts.into_iter().zip(flights))
        {
            subflow.min_rtt = Some(Span::from_millis(least));
            subflow.last_rtt = Some(Span::from_millis(last.max(least)));
            subflow.inflight = flight * MSS;
        }
        let mut scheduler = build("minrtt+copy");
        for _ in 0..200 {
            let decision = model.ask(&mut *scheduler, &mut Outcome::default());
            if let Decision::Send { subflow, what: What::Redundant(range), .. } = decision {
                let copying = *model.subflow_mut(subflow);
                let first = model.queue.sent.iter().find(|it| it.range.covers(range)).unwrap().first;
                let stands = copying.last_rtt > copying.min_rtt.map(|least| least.times(2));
                let longer = model.subflow_mut(first).last_rtt < copying.last_rtt;
                prop_assert!(copying.inflight == 0 || !stands || !longer, "{:?}", copying);
            }
            if model.apply(decision, &[]).is_none() {
                break;
            }
        }
    }
}
