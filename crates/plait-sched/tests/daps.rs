//! DAPS against a reference of its two loops, and the claims of its papers.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model;
use crate::model::{MSS, Model, given, pair, path, places, runs, subflow};
use plait_base::{DataRange, Dsn, Span, SubflowId, Time};
use plait_sched::{Decision, Notice, Outcome, Reason, Scheduler, Spec, SubflowView, View, What};
use proptest::prelude::*;

const A: SubflowId = SubflowId(0);
const B: SubflowId = SubflowId(1);

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

/// The reference: two loops, one millisecond at a time.
struct Daps {
    delays: Vec<u64>,
    windows: Vec<u64>,
    order: Vec<usize>,
    end: u64,
    t: u64,
    i: usize,
    left: Option<u64>,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Daps {
    fn begin(paths: &[SubflowView], round: u64) -> Daps {
        let srtt = |at: usize| paths[at].srtt.unwrap();
        let mut order: Vec<usize> = (0..paths.len()).collect();
        order.sort_by_key(|at| (srtt(*at), *at));
        let mut delays: Vec<u64> = (0..paths.len())
            .map(|at| {
                let exact = srtt(at).as_nanos() / 1_000_000 / 2;
                let multiples = (exact + round / 2).checked_div(round);
                multiples.map_or(exact, |multiples| multiples * round).max(1)
            })
            .collect();
        let end = loop {
            let lcm = delays.iter().fold(1_u64, |lcm, d| lcm / gcd(lcm, *d) * d);
            if lcm <= 10_000 {
                break lcm;
            }
            delays.iter_mut().for_each(|delay| *delay = (*delay / 2).max(1));
        };
        let windows = paths.iter().map(|it| (it.cwnd / MSS).max(1)).collect();
        Daps { delays, windows, order, end, t: 1, i: 0, left: None }
    }

    fn next(&mut self) -> Option<usize> {
        while self.t <= self.end {
            while self.i < self.order.len() {
                let at = self.order[self.i];
                if self.t.is_multiple_of(self.delays[at]) {
                    let left = self.left.get_or_insert(self.windows[at]);
                    if *left > 0 {
                        *left -= 1;
                        return Some(at);
                    }
                    self.left = None;
                }
                self.i += 1;
            }
            self.i = 0;
            self.t += 1;
        }
        None
    }
}

proptest! {
    #![proptest_config(model::cases(400))]

    #[test]
    fn daps_follows_the_two_loops(
        paths in prop::collection::vec((0..300_000_u64, 0..40_u64), 2..5),
        round in prop::sample::select(vec![0, 1, 3, 4, 4, 5, 100]),
        segments in 1..3_000_usize,
        dies in 0..3_000_usize,
    ) {
        let paths = paths.into_iter().zip(0..);
        let paths: Vec<SubflowView> =
            paths.map(|((srtt, cwnd), id)| subflow(id, Span::from_micros(srtt), cwnd * MSS)).collect();
        let mut model = Model::new(paths.clone(), 4_000 * MSS);
        let (mut scheduler, mut out) = (build(&format!("daps:round={round}")), Outcome::default());
        let mut reference = Daps::begin(&paths, round);
        let mut first = 0;
        for nth in 0..segments {
            if nth == dies {
                // A new plan for the remaining subflows.
                model.subflows[0].pf = true;
                model.unassign();
                first = 1;
                let live = model.subflows.iter().skip(1).map(|it| it.id).collect();
                scheduler.on_notice(&model.view(), Notice::SubflowsChanged { live, began: None });
                reference = Daps::begin(&paths[1..], round);
            }
            let expected = reference.next().unwrap_or_else(|| {
                reference = Daps::begin(&paths[first..], round);
                reference.next().unwrap()
            });
            let decision = model.ask(&mut *scheduler, &mut out);
            let subflow = given(&mut model, decision, &out);
            prop_assert_eq!(subflow, Some(SubflowId((expected + first) as u8)), "segment {}", nth);
        }
    }
}

/// ton-u19.
#[test]
fn a_plan_for_ten_and_a_hundred_ms_gives_the_slow_path_what_comes_after_the_fast_ones_runs() {
    for window in [1, 10, 37] {
        for (round, length, fast_runs) in [(0, 50, 10), (4, 52, 13)] {
            let mut model = pair([10, 100], 2_000);
            model.subflows.iter_mut().for_each(|it| it.cwnd = window * MSS);
            let mut scheduler = build(&format!("daps:round={round}"));
            let all = ((fast_runs + 1) * window) as usize;
            let at = places(&mut model, &mut *scheduler, all);
            let fast = (fast_runs * window) as usize;
            assert_eq!(runs(&at), [(0, fast), (1, window as usize)]);
            let mut out = Outcome::default();
            model.ask(&mut *scheduler, &mut out);
            let plan = out.numbers.iter().find(|number| number.name == "plan_ms").unwrap();
            assert_eq!(plan.value, f64::from(length));
        }
    }
}

#[test]
fn a_plan_is_halved_until_it_is_short_enough() {
    // 13 and 30 ms have 390. Halved, 6 and 15 have 30.
    for (cap, length) in [(390, 390), (389, 30), (29, 21), (20, 3), (2, 1)] {
        let mut out = Outcome::default();
        let model = pair([27, 61], 1);
        model.ask(&mut *build(&format!("daps:round=0,cap_ms={cap}")), &mut out);
        let plan = out.numbers.iter().find(|number| number.name == "plan_ms").unwrap();
        assert_eq!(plan.value, f64::from(length), "{cap}");
    }
}

#[test]
fn windows_are_smoothed_once_per_rtt() {
    let mut model = pair([20, 60], 10_000);
    let (mut scheduler, mut out) = (build("daps:round=0"), Outcome::default());
    let mut smoothed = |model: &Model| {
        model.ask(&mut *scheduler, &mut out);
        let mut eighths = 0.0;
        scheduler.save_state(&mut |name, value| {
            eighths = if name == "smoothed.0" { value } else { eighths };
        });
        eighths / 8.0 / MSS as f64
    };
    assert_eq!(smoothed(&model), 10.0);
    model.subflows[0].cwnd = 18 * MSS;
    for (at_ms, segments) in [(19, 10.0), (20, 11.0), (39, 11.0), (40, 11.875)] {
        model.now = Time::from_nanos(at_ms * 1_000_000);
        assert_eq!(smoothed(&model), segments, "{at_ms}");
    }
}

#[test]
fn a_run_has_the_window_of_the_plan_or_of_its_beginning() {
    let second_run = |spec: &str| {
        let mut model = pair([20, 60], 10_000);
        let mut scheduler = build(spec);
        places(&mut model, &mut *scheduler, 10);
        model.subflows.iter_mut().for_each(|it| it.cwnd = 3 * MSS);
        runs(&places(&mut model, &mut *scheduler, 33))
    };
    assert_eq!(second_run("daps:round=0"), [(0, 20), (1, 10), (0, 3)]);
    // Two runs of three on the fast path and one on the slow path; the next plan has runs of three.
    let reactive = [(0, 6), (1, 3), (0, 9), (1, 3), (0, 9), (1, 3)];
    assert_eq!(second_run("daps:round=0,planned_cwnd=off,smooth=off"), reactive);
    // The smoothed window has not changed yet.
    assert_eq!(second_run("daps:round=0,planned_cwnd=off"), [(0, 20), (1, 10), (0, 3)]);
}

/// Data planned for a window that has shrunk to one segment moves to a subflow on which it arrives
/// sooner. It moves if its own time exceeds twice the sum of the longest other time and one RTT.
#[test]
fn a_window_that_came_down_gives_back_what_was_planned_for_it() {
    let ms = Span::from_millis;
    for (spec, busy, passes) in
        [("daps", 0, true), ("daps", 80, true), ("daps", 90, false), ("daps:back=off", 0, false)]
    {
        let windows = [1, 10, 10].map(|it| it * MSS);
        let paths = (0..).zip(windows).map(|(id, cwnd)| subflow(id, ms(100), cwnd)).collect();
        let mut model = Model::new(paths, 0);
        // Needs 20 RTTs on the first subflow, and none on the second.
        for (id, from, segments) in [(0, 0, 20), (2, 20, busy)].into_iter().filter(|it| it.2 > 0) {
            model
                .queue
                .assign(DataRange::with_len(Dsn::new(from * MSS), segments * MSS), SubflowId(id));
            let holder = model.subflow_mut(SubflowId(id));
            (holder.queued, holder.inflight) = (segments * MSS, holder.cwnd);
        }
        let (mut scheduler, mut out) = (build(spec), Outcome::default());
        let decision = model.ask(&mut *scheduler, &mut out);
        assert_eq!(matches!(decision, Decision::Assign { .. }), passes, "{spec} {busy}");
        if passes {
            assert_eq!(out.plan, [(DataRange::between(0, 10 * MSS), B)]);
        }
    }
}

#[test]
fn a_subflow_in_slow_start_after_a_loss_is_left_out_where_that_is_asked_for() {
    let first = |spec: &str, ssthresh: Option<u64>| {
        let mut model = pair([20, 60], 100);
        model.subflows[0].ssthresh = ssthresh.map(|segments| segments * MSS);
        places(&mut model, &mut *build(spec), 1)[0]
    };
    assert_eq!(first("daps", Some(10)), 0);
    assert_eq!(first("daps:slow_start=off", Some(10)), 1);
    assert_eq!((first("daps:slow_start=off", Some(9)), first("daps:slow_start=off", None)), (0, 0));
}

#[test]
fn where_the_window_is_full_daps_resends_what_a_free_subflow_has_not_had() {
    let mut model = pair([10, 100], 100);
    for at in 0..10 {
        model
            .queue
            .record(DataRange::with_len(Dsn::new(at * MSS), MSS), if at < 3 { A } else { B });
    }
    model.connection.unsent = 90 * MSS;
    (model.connection.snd_nxt, model.connection.wnd_end) = (Dsn::new(10 * MSS), Dsn::new(10 * MSS));
    model.subflows[0].inflight = 8 * MSS;
    model.subflows[1].inflight = 7 * MSS;
    let (mut scheduler, mut out) = (build("daps"), Outcome::default());
    let mut resent = Vec::new();
    while let decision @ Decision::Send { what: What::OppRetx(range), reason, subflow, .. } =
        model.ask(&mut *scheduler, &mut out)
    {
        assert_eq!(reason, Reason::Opportunistic);
        resent.push((subflow.0, range.start.get() / MSS));
        model.apply(decision, &[]);
    }
    // The oldest data first: the data of A on B while B has room, then the data of B on A.
    assert_eq!(resent, [(1, 0), (1, 1), (1, 2), (0, 3), (0, 4)]);
    let off = model.ask(&mut *build("daps:retransmit=off"), &mut out);
    assert!(matches!(off, Decision::Wait { .. }));
}

/// The search for data to resend continues at its last position, unless data below that may have
/// been sent since.
#[test]
fn resending_finds_what_a_search_from_the_beginning_finds() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let steps = prop::collection::vec((0..6_u8, 0..2_u8), 1..60);
    for _ in 0..300 {
        let steps = proptest::strategy::ValueTree::current(
            &Strategy::new_tree(&steps, &mut runner).unwrap(),
        );
        // Plans give four segments to the first subflow and two to the second. The second sends its
        // share before the first has sent all of its own.
        let mut model = pair([10, 20], 60);
        model.subflows.iter_mut().for_each(|it| it.cwnd = 2 * MSS);
        model.connection.wnd_end = Dsn::new(6 * MSS);
        let (mut scheduler, mut out) = (build("daps:round=0"), Outcome::default());
        for (step, id) in steps {
            let it = &mut model.subflows[usize::from(id)];
            match step {
                0 | 1 => it.inflight = it.inflight.saturating_sub(2 * MSS),
                2 => it.inflight = it.cwnd,
                3 => {
                    let next = model.connection.snd_una + MSS;
                    if next < model.connection.snd_nxt {
                        model.data_ack(next);
                    }
                }
                _ => while model.send_assigned().is_some() {},
            }
            let mut fresh = build("daps:round=0");
            scheduler.save_state(&mut |name, value| assert!(fresh.load_state(name, value)));
            let (mut expected, mut plan) = (Decision::Idle, Outcome::default());
            for chosen in [true, false] {
                let asked: &mut dyn Scheduler = if chosen { &mut *fresh } else { &mut *scheduler };
                let decision = model.ask(asked, if chosen { &mut plan } else { &mut out });
                if chosen {
                    expected = decision;
                } else {
                    assert_eq!(decision, expected);
                }
            }
            model.apply(expected, &[]);
            model.assign(&out.plan);
        }
    }
}

/// A plan depends on the view alone.
#[test]
fn a_plan_is_made_anew_for_a_subflow_that_comes() {
    let mut model = Model::new(vec![path(0, 10, 10)], 500 * MSS);
    let (mut scheduler, mut out) = (build("daps:round=0"), Outcome::default());
    let ask = |view: &View<'_>, scheduler: &mut dyn Scheduler, out: &mut Outcome| {
        out.clear();
        scheduler.schedule(view, out)
    };
    for _ in 0..5 {
        let decision = ask(&model.view(), &mut *scheduler, &mut out);
        model.apply(decision, &[]);
    }
    model.subflows.push(path(1, 100, 10));
    let at = places(&mut model, &mut *scheduler, 110);
    assert_eq!(runs(&at), [(0, 100), (1, 10)]);
}
