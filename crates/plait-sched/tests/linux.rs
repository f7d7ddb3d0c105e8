//! Cases of `linux` worked by hand: the subflow of a retransmission, and the end of a burst.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model::{MSS, Model, given, pair, path};
use plait_base::{DataRange, Dsn, SubflowId, SubflowSet};
use plait_sched::{Decision, Outcome, Reason, Scheduler, Spec, SubflowView, What};

const A: SubflowId = SubflowId(0);
const B: SubflowId = SubflowId(1);
const C: SubflowId = SubflowId(2);

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

fn ask(spec: &str, model: &Model) -> Decision {
    model.ask(&mut *build(spec), &mut Outcome::default())
}

/// `A` after consecutive timeouts with no packet received.
fn silent(timeouts: u32) -> SubflowView {
    SubflowView { pf: true, timeouts, outstanding: 4 * MSS, ..path(0, 10, 10) }
}

/// Creates a segment that waits for reinjection before new data; `carried` have carried it.
fn again(subflows: Vec<SubflowView>, carried: &[SubflowId]) -> Model {
    let mut model = Model::new(subflows, 20 * MSS);
    model.reinject(DataRange::with_len(Dsn::ZERO, MSS), carried.iter().copied().collect());
    model
}

fn reinjects(subflow: SubflowId) -> Decision {
    let (what, reason) = (What::Reinject, Reason::Reinjection);
    Decision::Send { subflow, what, grant: MSS, reason }
}

#[test]
fn what_a_stale_subflow_has_waits_for_no_idle_one() {
    let busy = SubflowView { outstanding: 5 * MSS, inflight: 5 * MSS, ..path(1, 50, 10) };
    let idle = path(1, 50, 10);
    for (stale, timeouts) in [(4, 1), (4, 3), (4, 4), (4, 9), (1, 1)] {
        let spec = format!("linux:stale={stale}");
        let decision = ask(&spec, &again(vec![silent(timeouts), busy], &[A]));
        assert_eq!(decision == reinjects(B), timeouts >= stale, "{spec}, {timeouts}");
        // A subflow that holds no data retransmits at once, as always.
        assert_eq!(ask(&spec, &again(vec![silent(timeouts), idle], &[A])), reinjects(B));
    }
}

/// The same holds for the data of a closed subflow. Data that a live subflow has too is left to
/// that one.
#[test]
fn what_nobody_has_any_more_is_pending_anew() {
    let busy = |id, segments| {
        let held = segments * MSS;
        SubflowView { outstanding: held, inflight: held, ..path(id, 50, 10) }
    };
    let closed = SubflowView { open: false, ..path(0, 10, 10) };
    let decision = ask("linux", &again(vec![closed, busy(1, 5), busy(2, 3)], &[A]));
    assert_eq!(decision, reinjects(C), "the least linger");
    let both = again(vec![silent(4), busy(1, 5)], &[A, B]);
    assert!(matches!(ask("linux", &both), Decision::Assign { .. }));
    // It goes before new data: if no subflow has room, new data waits too.
    let full = ask("linux", &again(vec![silent(4), busy(1, 10)], &[A]));
    assert_eq!(full, Decision::Wait { on: Some(B), reason: Reason::UntriedBusy });
}

/// Data assigned to a failed subflow and not sent lies below the data that it had sent. The reader
/// needs it first.
#[test]
fn new_data_below_what_is_sent_again_goes_before_it() {
    for (new, again_at, sent_again) in [(10, 0, true), (0, 10, false)] {
        let mut model = Model::new(vec![silent(1), path(1, 50, 10)], 0);
        model.queue.unsent.insert(DataRange::with_len(Dsn::new(new * MSS), 5 * MSS));
        model.connection.unsent = 5 * MSS;
        model.reinject(
            DataRange::with_len(Dsn::new(again_at * MSS), MSS),
            [A].into_iter().collect(),
        );
        let decision = ask("linux", &model);
        assert_eq!(decision == reinjects(B), sent_again, "{decision:?}");
        let assigned = matches!(decision, Decision::Assign { .. });
        let sent = matches!(decision, Decision::Send { what: What::New { .. }, .. });
        assert_eq!(assigned || sent, !sent_again, "{decision:?}");
    }
}

/// A backup subflow takes part if no other is alive.
#[test]
fn what_a_stale_subflow_has_goes_to_a_backup_as_the_last_choice() {
    let backup = SubflowView { backup: true, outstanding: MSS, inflight: MSS, ..path(1, 5, 10) };
    let slow = SubflowView { outstanding: 8 * MSS, inflight: 8 * MSS, ..path(2, 300, 10) };
    assert_eq!(ask("linux", &again(vec![silent(4), backup], &[A])), reinjects(B));
    assert_eq!(ask("linux", &again(vec![silent(4), backup, slow], &[A])), reinjects(C));
}

/// A burst ends with the last byte written. Each later write selects the subflow that drains first
/// (Linux 6.6 and later). Linux 6.5 kept the rest of 65,428 bytes for the subflow that began the
/// burst.
#[test]
fn a_later_write_begins_a_burst_of_its_own() {
    let message = 20 * MSS;
    let mut model = pair([10, 100], 20);
    let mut scheduler = build("linux");
    let mut out = Outcome::default();
    let mut write = |model: &mut Model, end: u64| {
        model.queue.unsent.insert(DataRange::between(end - message, end));
        model.connection.unsent = model.queue.unsent.len();
        let decision = model.ask(&mut *scheduler, &mut out);
        assert_eq!(out.plan.len(), 1);
        assert_eq!(out.plan[0].0, DataRange::between(end - message, end));
        let subflow = given(model, decision, &out);
        // By default the message is sent and acknowledged.
        model.queue.assigned.clear();
        model.subflows.iter_mut().for_each(|it| it.queued = 0);
        subflow
    };
    assert_eq!(write(&mut model, message), Some(A), "the first of two");
    assert_eq!(write(&mut model, 2 * message), Some(A));
    // The burst would have 29,200 of its 65,428 bytes left.
    model.subflow_mut(A).outstanding = 2 * MSS;
    assert_eq!(write(&mut model, 3 * message), Some(B), "A holds something");
    (model.subflow_mut(A).outstanding, model.subflow_mut(B).outstanding) = (0, 2 * MSS);
    assert_eq!(write(&mut model, 4 * message), Some(A));
}

/// `linux` waits for the subflow with the least linger, and never for a backup beside a regular
/// one. `+rp` retransmits on that subflow.
#[test]
fn rp_resends_where_linux_waits_for_the_window() {
    let resent = |backup: bool| {
        let mut model = pair([10, 100], 48);
        model.connection.wnd_end = Dsn::new(10 * MSS);
        let mut scheduler = build("linux+rp:strict=off");
        let mut out = Outcome::default();
        let decision = model.ask(&mut *scheduler, &mut out);
        assert_eq!(given(&mut model, decision, &out), Some(A));
        while model.send_assigned().is_some() {}
        model.queue.sent.iter_mut().for_each(|sent| sent.carried = SubflowSet::one(B));
        model.subflow_mut(A).backup = backup;
        let a = model.subflow_mut(A);
        (a.inflight, a.outstanding) = (0, 0);
        model.ask(&mut *scheduler, &mut out)
    };
    assert!(matches!(resent(false), Decision::Send { what: What::OppRetx(_), subflow: A, .. }));
    assert_eq!(resent(true), Decision::Wait { on: Some(B), reason: Reason::SendWindow });
}
