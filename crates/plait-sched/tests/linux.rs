//! Where `linux` sends again, and the burst that it goes on with, cases worked by hand.
#![allow(clippy::unwrap_used, clippy::panic)]

mod model;

use model::{MSS, Model, given, pair, path};
use plait_base::{ByteRange, SubflowId, SubflowSet};
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

/// `A` has had so many timeouts since anything was received on it.
fn silent(timeouts: u32) -> SubflowView {
    SubflowView { pf: true, timeouts, outstanding: 4 * MSS, ..path(0, 10, 10) }
}

/// What `carried` have carried waits to be sent again, before new data.
fn again(subflows: Vec<SubflowView>, carried: &[SubflowId]) -> Model {
    let mut model = Model::new(subflows, 20 * MSS);
    model.reinject(ByteRange::with_len(0, MSS), carried.iter().copied().collect());
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
        // On one that holds nothing it goes out at once, as ever.
        assert_eq!(ask(&spec, &again(vec![silent(timeouts), idle], &[A])), reinjects(B));
    }
}

/// Also what a closed one had; but what a live one has too is left to that.
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
    // It comes before new data: where there is no room, that waits too.
    let full = ask("linux", &again(vec![silent(4), busy(1, 10)], &[A]));
    assert_eq!(full, Decision::Wait { on: Some(B), reason: Reason::UntriedBusy });
}

/// A backup takes part where no other is alive.
#[test]
fn what_a_stale_subflow_has_goes_to_a_backup_as_the_last_choice() {
    let backup = SubflowView { backup: true, outstanding: MSS, inflight: MSS, ..path(1, 5, 10) };
    let slow = SubflowView { outstanding: 8 * MSS, inflight: 8 * MSS, ..path(2, 300, 10) };
    assert_eq!(ask("linux", &again(vec![silent(4), backup], &[A])), reinjects(B));
    assert_eq!(ask("linux", &again(vec![silent(4), backup, slow], &[A])), reinjects(C));
}

/// The burst goes on where it began, on what has become a backup too; an opportunistic
/// retransmission is a choice of its own, and goes to no backup beside a live regular one.
#[test]
fn rp_does_not_follow_a_burst_to_a_backup() {
    let resent = |backup: bool| {
        let mut model = pair([10, 100], 48);
        model.connection.wnd_end = 10 * MSS;
        let mut scheduler = build("linux+rp:strict=off");
        scheduler.load_state("last", 0.0);
        scheduler.load_state("burst_left_bytes", (40 * MSS) as f64);
        let mut out = Outcome::default();
        let decision = model.ask(&mut *scheduler, &mut out);
        assert_eq!(given(&mut model, decision, &out), Some(A));
        while model.send_assigned().is_some() {}
        model.queue.sent.iter_mut().for_each(|sent| sent.carried = SubflowSet::one(B));
        model.subflow_mut(A).backup = backup;
        model.subflow_mut(A).inflight = 0;
        model.ask(&mut *scheduler, &mut out)
    };
    let waits = Decision::Wait { on: Some(A), reason: Reason::SendWindow };
    assert!(matches!(resent(false), Decision::Send { what: What::OppRetx(_), subflow: A, .. }));
    assert_eq!(resent(true), waits);
}
