//! Claims of "ECF" (CoNEXT 2017) about its example and its two tests. `claims.rs`, `rules.rs` and
//! `burst_table.rs` test others.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model::burst::{LARGE, burst};
use crate::model::{MSS, Model, path};
use plait_base::{DataRange, DataRangeSet, Dsn, Span, SubflowId};
use plait_sched::{Decision, Outcome, Reason, Scheduler, Spec, SubflowView};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const FAST: SubflowId = SubflowId(0);
const SLOW: SubflowId = SubflowId(1);

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

fn noted(out: &Outcome, name: &str) -> f64 {
    out.numbers.iter().find(|number| number.name == name).unwrap().value
}

fn full(path: SubflowView) -> SubflowView {
    SubflowView { inflight: path.cwnd, ..path }
}

fn waiting(scheduler: &dyn Scheduler) -> bool {
    let mut state = BTreeMap::new();
    scheduler.save_state(&mut |name, value| {
        state.insert(name.to_owned(), value);
    });
    state["waiting"] > 0.5
}

/// ecf-u1: eleven segments and windows of ten. The split sends one on the slow path and leaves the
/// fast path idle for 90 of 100 ms. Waiting completes in 20 ms.
#[test]
fn ecf_u1_waiting_is_done_in_a_fifth_of_the_time_of_the_split() {
    let split = burst("minrtt", &[10, 100], LARGE, 11);
    assert_eq!((split.completion_ms(), split.idle_ms(FAST)), (100, 90));
    let wait = burst("ecf", &[10, 100], LARGE, 11);
    assert_eq!((wait.completion_ms(), wait.idle_ms(FAST)), (20, 0));
}

/// ecf-u3 and the flag of ecf-u4: the numbers of segments at which each form waits, with the flag
/// clear and set.
#[test]
fn ecf_u3_the_numbers_of_segments_for_which_it_waits() {
    for (spec, first) in [("ecf", 1), ("ecf:floor=off", 2)] {
        for (was_waiting, end) in [(false, 90), (true, 115)] {
            for k in 1..200 {
                let model = Model::new(vec![full(path(0, 10, 10)), path(1, 100, 10)], k * MSS);
                let mut scheduler = build(spec);
                assert!(scheduler.load_state("waiting", if was_waiting { 1.0 } else { 0.0 }));
                let decision = model.ask(&mut *scheduler, &mut Outcome::default());
                let waits = decision
                    == Decision::Wait { on: Some(FAST), reason: Reason::FastFinishesSooner };
                assert_eq!(waits, (first..end).contains(&k), "{spec} {was_waiting} {k}");
                // A wait sets the flag, the first test clears it, and the second test does not
                // change it.
                let flag = waits || was_waiting && k < end;
                assert_eq!(waiting(&*scheduler), flag, "{spec} {was_waiting} {k}");
            }
        }
    }
}

/// ecf-u8: the larger of the two RTT variations enters both tests.
#[test]
fn ecf_u8_the_variation_enters_both_tests() {
    for (fast_var, slow_var, waits, numbers) in [
        (0, 0, false, [100.0, 95.0]),
        (0, 10, true, [100.0, 105.0]),
        (10, 0, true, [100.0, 105.0]),
        (10, 4, true, [100.0, 105.0]),
    ] {
        let varied = |it: SubflowView, ms| SubflowView { rttvar: Span::from_millis(ms), ..it };
        let fast = varied(full(path(0, 50, 10)), fast_var);
        let model = Model::new(vec![fast, varied(path(1, 95, 2), slow_var)], 10 * MSS);
        let mut out = Outcome::default();
        let decision = model.ask(&mut *build("ecf"), &mut out);
        assert_eq!(matches!(decision, Decision::Wait { .. }), waits);
        let close = |name, wanted: f64| (noted(&out, name) - wanted).abs() < 1e-9;
        assert!(close("lhs_ms", numbers[0]) && close("rhs_ms", numbers[1]), "{:?}", out.numbers);
        if waits {
            assert!(close("lhs2_ms", 475.0) && close("rhs2_ms", 110.0), "{:?}", out.numbers);
        }
    }
}

/// The data that subflows have sent, and the data acknowledged on them.
#[derive(Default)]
struct Kernel {
    out: [VecDeque<DataRange>; 2],
    acked: DataRangeSet,
}

impl Kernel {
    /// Applies one event to the subflow, if it applies there.
    fn step(&mut self, model: &mut Model, what: u8, at: u8) {
        let (id, line) = (SubflowId(at), &mut self.out[usize::from(at)]);
        match what {
            // Assigned.
            0 => {
                if let Some(first) = model.queue.unsent.first() {
                    model.assign(&[(DataRange::with_len(first.start, MSS), id)]);
                }
            }
            // Sent by the first subflow that has assigned data and room.
            1 => {
                if let Some((id, range)) = model.send_assigned() {
                    self.out[id.index()].push_back(range);
                }
            }
            // Acknowledged on the subflow.
            2 => {
                if let Some(range) = line.pop_front() {
                    model.subflow_mut(id).inflight -= range.len();
                    self.acked.insert(range);
                }
            }
            // Acknowledged at the data level, later than on the subflow.
            _ => {
                let edge = self.acked.first().filter(|first| first.start == Dsn::ZERO);
                model.data_ack(edge.map_or(Dsn::ZERO, |first| first.end));
            }
        }
    }

    /// Computes the kernel's sum: the queued bytes of the connection, less two parts. These are the
    /// bytes queued on subflows, and the bytes that only the connection still counts as sent.
    fn k(&self, model: &Model, written: u64) -> u64 {
        let una = model.connection.snd_una.get();
        let out: u64 = self.out.iter().map(|line| line.len() as u64).sum();
        let queued: u64 = model.subflows.iter().map(|it| it.queued).sum();
        let covered = self.acked.iter().map(|it| it.end.get().max(una) - it.start.get().max(una));
        let meta_out = out + covered.sum::<u64>() / MSS;
        (written - una).saturating_sub(queued + out * MSS).saturating_sub((meta_out - out) * MSS)
    }
}

proptest! {
    /// ecf-u6: for any sequence of assignments, transmissions and acknowledgements of full
    /// segments.
    #[test]
    fn ecf_u6_k_is_what_the_queues_of_the_kernel_leave(
        segments in 1..60_u64,
        steps in prop::collection::vec((0..4_u8, 0..2_u8), 0..200),
    ) {
        let mut model = Model::new(vec![path(0, 10, 10), path(1, 100, 10)], segments * MSS);
        let mut kernel = Kernel::default();
        for (what, at) in steps {
            kernel.step(&mut model, what, at);
        }
        // The fast subflow is full and the slow one has room, so the scheduler reads k.
        let fast = model.subflow_mut(FAST);
        fast.cwnd = (fast.inflight + fast.queued).max(MSS);
        fast.inflight = fast.cwnd - fast.queued;
        model.subflow_mut(SLOW).cwnd = 1_000 * MSS;
        let (left, window) = (model.connection.unsent, model.subflows[0].cwnd);
        prop_assert_eq!(kernel.k(&model, segments * MSS), left);
        let mut out = Outcome::default();
        model.ask(&mut *build("ecf:floor=off"), &mut out);
        if left > 0 {
            prop_assert_eq!(noted(&out, "k_bytes"), left as f64);
            // The first test uses it.
            let lhs = 10.0 * (1.0 + left as f64 / window as f64);
            prop_assert!((noted(&out, "lhs_ms") - lhs).abs() < 1e-9 * lhs);
        }
    }
}
