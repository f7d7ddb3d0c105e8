//! Common behaviour of the schedulers that assign ahead.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model::{MSS, given, pair, places};
use plait_base::{Dsn, SubflowId};
use plait_sched::{CaState, Decision, Outcome, Reason, Scheduler, Spec};

const A: SubflowId = SubflowId(0);

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

#[test]
fn what_is_beyond_the_window_is_not_assigned() {
    for spec in ["otias", "sttf", "daps:retransmit=off"] {
        let mut model = pair([10, 100], 50);
        model.connection.wnd_end = Dsn::new(20 * MSS + 1);
        let (mut scheduler, mut out) = (build(spec), Outcome::default());
        while let decision = model.ask(&mut *scheduler, &mut out)
            && given(&mut model, decision, &out).is_some()
        {}
        assert_eq!(model.connection.unsent, 30 * MSS, "{spec}");
        // The slow subflow has room and could resend the data that blocks the window.
        let last = model.ask(&mut *scheduler, &mut out);
        assert!(matches!(last, Decision::Wait { reason: Reason::SendWindow, .. }), "{spec}");
    }
}

#[test]
fn all_assigned_is_a_wait_for_the_subflow_that_has_the_first_of_it() {
    for spec in ["otias", "sttf", "daps"] {
        let mut model = pair([10, 100], 30);
        let (mut scheduler, mut out) = (build(spec), Outcome::default());
        places(&mut model, &mut *scheduler, 30);
        let waits = Decision::Wait { on: Some(A), reason: Reason::AssignedBusy };
        assert_eq!(model.ask(&mut *scheduler, &mut out), waits, "{spec}");
        model.subflow_mut(A).ca = CaState::Loss;
        let waits = Decision::Wait { on: None, reason: Reason::AllBusy };
        let mut fresh = build(spec);
        let mut decision = model.ask(&mut *fresh, &mut out);
        if spec == "sttf" {
            // One candidate is left, and STTF does not plan for one.
            decision = model.ask(&mut *fresh, &mut out);
        }
        assert_eq!(decision, waits, "{spec}");
    }
}

/// ton-u18.
#[test]
fn of_the_schedulers_ecf_alone_looks_at_what_is_left() {
    let decision = |spec: &str, unsent: u64| {
        let mut model = pair([10, 100], unsent);
        model.subflows[0].inflight = 10 * MSS;
        let mut out = Outcome::default();
        let decision = model.ask(&mut *build(spec), &mut out);
        (decision, out.plan)
    };
    for spec in ["daps", "otias", "minrtt", "daps:round=0"] {
        for unsent in [2, 10, 89, 90, 1000] {
            assert_eq!(decision(spec, unsent), decision(spec, 1), "{spec} {unsent}");
        }
    }
    assert_ne!(decision("ecf", 89), decision("ecf", 90));
}
