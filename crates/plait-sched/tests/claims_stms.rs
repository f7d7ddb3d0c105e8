//! Claims of "STMS: Improving MPTCP Throughput Under Heterogeneous Networks" (ATC 2018) about its
//! gap, in its example of 20 and 200 ms. `claims.rs` and `references.rs` test others.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model::{MSS, Model, path};
use plait_base::{Dsn, Span, SubflowId, Time};
use plait_sched::{
    Decision, LeftEdge, Notice, Outcome, Reason, Scheduler, Spec, SubflowView, What,
};

const FAST: SubflowId = SubflowId(0);
const SLOW: SubflowId = SubflowId(1);

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

fn state(scheduler: &dyn Scheduler, wanted: &str) -> Option<f64> {
    let mut found = None;
    scheduler.save_state(&mut |name, value| {
        if name == wanted {
            found = Some(value);
        }
    });
    found
}

/// Returns the gap after DATA_ACKs. Each has a time in ms, a number of segments, and the subflow
/// that carried the first of them.
fn gap_after(acks: &[(u64, u64, SubflowId)]) -> f64 {
    let mut model = Model::new(vec![path(0, 20, 50), path(1, 200, 50)], MSS);
    let mut scheduler = build("stms-a:gap0=100");
    for (at, segments, first) in acks {
        model.now = Time::ZERO + Span::from_millis(*at);
        let old = model.connection.snd_una;
        let new = old + segments * MSS;
        model.connection.snd_una = new;
        let edge = Some(LeftEdge { first: *first, again: false });
        scheduler.on_notice(&model.view(), Notice::DataAck { old, new, edge });
    }
    state(&*scheduler, "gap.1").unwrap()
}

/// stms-u8: DATA_ACKs of one or two segments are no samples. Longer ones move the gap by their
/// length.
#[test]
fn stms_u8_the_gap_moves_by_what_a_data_ack_covers() {
    for covered in [1, 2, 3, 7, 60] {
        let moved = if covered > 2 { covered as f64 } else { 0.0 };
        assert_eq!(gap_after(&[(110, covered, SLOW)]), 100.0 + moved, "{covered}");
        assert_eq!(gap_after(&[(110, covered, FAST)]), 100.0 - moved, "{covered}");
    }
}

/// stms-u8: the interval is the mean of 20 and 200 ms. It is the minimum time between changes of
/// the gap, and the time after which an old sample has no weight.
#[test]
fn stms_u8_samples_are_averaged_over_110_ms() {
    assert_eq!(gap_after(&[(109, 30, SLOW)]), 100.0);
    assert_eq!(gap_after(&[(110, 30, SLOW)]), 130.0);
    // The gap changes at 110 ms and not again before 220 ms.
    assert_eq!(gap_after(&[(110, 30, SLOW), (219, 30, SLOW)]), 130.0);
    assert_eq!(gap_after(&[(110, 30, SLOW), (220, 30, SLOW)]), 160.0);
    // A sample after 11 of 110 ms has a weight of one tenth: 0.9 * 40 - 0.1 * 10.
    assert_eq!(gap_after(&[(99, 40, SLOW), (110, 10, FAST)]), 135.0);
    // A sample after 110 ms or more has the whole weight.
    assert_eq!(gap_after(&[(0, 40, SLOW), (110, 10, FAST)]), 90.0);
    assert_eq!(gap_after(&[(0, 40, SLOW), (1_000, 10, FAST)]), 90.0);
}

/// A gap beyond the send window keeps the slow subflow idle. Then a DATA_ACK covers many segments
/// only after a loss. With `resting` such a loss lowers the gap to the calculated one: 50 * 180 /
/// 40 = 225.
#[test]
fn losses_lower_the_gap_of_a_slow_subflow_that_rests() {
    for (lost, gap0, outstanding, first, wanted) in [
        ("resting", 300, 0, FAST, 270.0),
        ("resting", 240, 0, FAST, 225.0),
        ("resting", 100, 0, FAST, 100.0),
        ("resting", 300, MSS, FAST, 300.0),
        ("resting", 300, 0, SLOW, 300.0),
        ("off", 300, 0, FAST, 300.0),
        ("on", 300, MSS, FAST, 270.0),
        ("on", 300, 0, SLOW, 330.0),
    ] {
        let mut model = Model::new(vec![path(0, 20, 50), path(1, 200, 50)], MSS);
        model.subflow_mut(SLOW).outstanding = outstanding;
        model.now = Time::ZERO + Span::from_millis(110);
        model.connection.snd_una = Dsn::new(30 * MSS);
        let mut scheduler = build(&format!("stms-a:gap0={gap0},count_lost={lost}"));
        let edge = Some(LeftEdge { first, again: true });
        scheduler.on_notice(
            &model.view(),
            Notice::DataAck { old: Dsn::ZERO, new: Dsn::new(30 * MSS), edge },
        );
        let gap = state(&*scheduler, "gap.1");
        assert_eq!(gap, Some(wanted), "{lost} {gap0} {outstanding} {first:?}");
    }
}

/// A slow subflow with a gap beyond half of the send buffer gets the calculated gap, which is 225.
/// It must have sent nothing for 16 intervals of 110 ms.
#[test]
fn a_gap_beyond_half_of_the_buffer_falls_if_the_slow_subflow_rests() {
    let beyond = 300 * MSS * 2 - 1;
    for (rest, sndbuf, outstanding, after_ms, wanted) in [
        ("", beyond, 0, 1_760, 225.0),
        ("", beyond, 0, 1_759, 300.0),
        ("", beyond + 1, 0, 1_760, 300.0),
        ("", beyond, MSS, 1_760, 300.0),
        (",rest=1", beyond, 0, 110, 225.0),
        (",rest=0", beyond, 0, 9_000, 300.0),
    ] {
        let mut model = Model::new(vec![path(0, 20, 50), path(1, 200, 50)], MSS);
        model.connection.sndbuf = sndbuf;
        model.subflow_mut(SLOW).outstanding = outstanding;
        model.subflow_mut(SLOW).latest.last_send = Time::ZERO + Span::from_millis(50);
        model.now = Time::ZERO + Span::from_millis(50 + after_ms);
        let mut scheduler = build(&format!("stms-a:gap0=300{rest}"));
        let edge = Some(LeftEdge { first: FAST, again: false });
        scheduler
            .on_notice(&model.view(), Notice::DataAck { old: Dsn::ZERO, new: Dsn::new(MSS), edge });
        let gap = state(&*scheduler, "gap.1");
        assert_eq!(gap, Some(wanted), "{rest} {sndbuf} {outstanding} {after_ms}");
    }
}

/// Returns the subflow and the number of the next segment, or the reason for a wait.
fn next(model: &mut Model, scheduler: &mut dyn Scheduler) -> Result<(SubflowId, u64), Reason> {
    let mut out = Outcome::default();
    match model.ask(scheduler, &mut out) {
        Decision::Wait { reason, .. } => Err(reason),
        decision => {
            let (id, range) = model.apply(decision, &[]).unwrap();
            Ok((id, range.start.get() / MSS))
        }
    }
}

/// stms-u9.
#[test]
fn stms_u9_the_slow_subflow_takes_what_lies_a_gap_ahead() {
    let full = |it: SubflowView| SubflowView { inflight: it.cwnd, ..it };
    let start =
        |unsent: u64| Model::new(vec![full(path(0, 20, 10)), path(1, 200, 3)], unsent * MSS);
    let mut scheduler = build("stms-a:gap0=20");
    let mut model = start(40);
    for segment in [20, 21, 22] {
        assert_eq!(next(&mut model, &mut *scheduler), Ok((SLOW, segment)));
    }
    assert_eq!(next(&mut model, &mut *scheduler), Err(Reason::AllBusy));
    // The fast subflow skips the segments that the slow one has taken.
    model.subflow_mut(FAST).cwnd = 1_000 * MSS;
    model.subflow_mut(FAST).inflight = 0;
    let rest: Vec<_> = (0..37).map(|_| next(&mut model, &mut *scheduler).unwrap()).collect();
    let left = (0..20).chain(23..40).map(|segment| (FAST, segment));
    assert_eq!(rest, left.collect::<Vec<_>>());
    assert_eq!(model.connection.unsent, 0);
    // The gap leaves twenty segments to the fast subflow. Of 21, the last one is beyond the gap.
    assert_eq!(next(&mut start(20), &mut *build("stms-a:gap0=20")), Err(Reason::GapReserved));
    assert_eq!(next(&mut start(21), &mut *build("stms-a:gap0=20")), Ok((SLOW, 20)));
    for (window, wanted) in [(21 * MSS - 1, Err(Reason::GapReserved)), (21 * MSS, Ok((SLOW, 20)))] {
        let mut model = start(40);
        model.connection.wnd_end = Dsn::new(window);
        assert_eq!(next(&mut model, &mut *build("stms-a:gap0=20")), wanted, "{window}");
    }
    // The gap is an offset into the unsent data.
    let model = start(40);
    let decision = model.ask(&mut *build("stms-a:gap0=20"), &mut Outcome::default());
    assert!(
        matches!(decision, Decision::Send { what: What::New { offset }, .. } if offset == 20 * MSS)
    );
}

/// stms-u12: table 1 of the paper, in tenths of Mbit/s and hundredths of a per cent. The paper
/// prints 28.4 Mbit/s for a single TCP connection. Its last column follows from 28.3 in every row,
/// and from no other tenth in any row. This test checks the paper alone, and none of our code.
#[test]
fn stms_u12_the_utilisation_of_table_1_has_another_denominator() {
    for (fast, printed) in [(121, 4_276), (208, 7_350), (250, 8_834), (265, 9_364)] {
        // fast / single, rounded to a hundredth of a per cent.
        let column = |single: u64| (2 * fast * 10_000 + single) / (2 * single);
        let single: Vec<u64> = (100..400).filter(|single| column(*single) == printed).collect();
        assert_eq!(single, [283], "{fast}");
    }
}
