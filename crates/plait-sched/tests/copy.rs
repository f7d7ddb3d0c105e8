//! What `+copy` copies, and when, cases worked by hand.
#![allow(clippy::unwrap_used, clippy::panic)]

mod model;

use model::{MSS, Model, pair};
use plait_base::{ByteRange, SubflowId};
use plait_sched::{Decision, Outcome, Reason, Scheduler, Spec, SubflowView, What};

const A: SubflowId = SubflowId(0);
const B: SubflowId = SubflowId(1);

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

/// What is sent until it is Idle or waits: the subflow, the segment, and whether it is a copy.
fn sent(model: &mut Model, scheduler: &mut dyn Scheduler) -> (Vec<(u8, u64, bool)>, Decision) {
    let mut list = Vec::new();
    loop {
        let decision = model.ask(scheduler, &mut Outcome::default());
        let Decision::Send { what, reason, .. } = decision else { return (list, decision) };
        let copy = matches!(what, What::Redundant(_));
        assert_eq!(copy, reason == Reason::Copy);
        let (subflow, range) = model.apply(decision, &[]).unwrap();
        list.push((subflow.0, range.start / MSS, copy));
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
    // Ten go the fast way, five the slow one; then an acknowledgement makes room on the fast one.
    let mut model = pair([10, 100], 15);
    let mut scheduler = build("minrtt+copy");
    let (list, _) = sent(&mut model, &mut *scheduler);
    let copies: Vec<_> = list.iter().filter(|(.., copy)| *copy).copied().collect();
    assert_eq!(copies, [0, 1, 2, 3, 4].map(|segment| (1, segment, true)));
    model.subflow_mut(A).inflight = 0;
    model.data_ack(10 * MSS);
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
    // Nor while ECF holds it back for the fast subflow, although the slow one has room.
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
    model.data_ack(3 * MSS);
    let (list, _) = sent(&mut model, &mut *scheduler);
    assert_eq!(list, [(1, 3, true)]);
    // Each copies a range once: what it has passed over is in its state.
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
    model.reinject(ByteRange::with_len(0, MSS), [A].into_iter().collect());
    let decision = model.ask(&mut *scheduler, &mut Outcome::default());
    assert!(
        matches!(decision, Decision::Send { subflow: B, what: What::Reinject, .. }),
        "{decision:?}"
    );
}
