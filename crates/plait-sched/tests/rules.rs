//! Cases worked by hand, one rule each, that the vectors do not cover.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model::{MSS, Model, subflow};
use plait_base::{DataRange, Dsn, Span, SubflowId, SubflowSet, Time};
use plait_sched::{
    CaState, Decision, Effect, Notice, Outcome, Reason, Scheduler, SentRange, Spec, SubflowView,
    What,
};
use std::collections::BTreeMap;

const A: SubflowId = SubflowId(0);
const B: SubflowId = SubflowId(1);
const C: SubflowId = SubflowId(2);

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

fn ask(spec: &str, model: &Model) -> (Decision, Vec<Effect>) {
    let mut out = Outcome::default();
    let decision = model.ask(&mut *build(spec), &mut out);
    (decision, out.effects)
}

fn path(id: u8, rtt_ms: u64, segments: u64) -> SubflowView {
    subflow(id, Span::from_millis(rtt_ms), segments * MSS)
}

fn full(path: SubflowView) -> SubflowView {
    SubflowView { inflight: path.cwnd, ..path }
}

fn state(scheduler: &dyn Scheduler) -> BTreeMap<String, f64> {
    let mut state = BTreeMap::new();
    scheduler.save_state(&mut |name, value| {
        state.insert(name.to_owned(), value);
    });
    state
}

fn sent_on(decision: Decision) -> Option<SubflowId> {
    match decision {
        Decision::Send { subflow, .. } => Some(subflow),
        _ => None,
    }
}

// minrtt

#[test]
fn equal_rtts_go_to_the_lower_id_and_no_sample_is_slowest() {
    let model = Model::new(vec![path(0, 20, 10), path(1, 20, 10)], MSS);
    assert_eq!(sent_on(ask("minrtt", &model).0), Some(A));
    let unknown = SubflowView { srtt: None, ..path(0, 0, 10) };
    let model = Model::new(vec![unknown, path(1, 900, 10)], MSS);
    assert_eq!(sent_on(ask("minrtt", &model).0), Some(B));
}

#[test]
fn what_is_queued_takes_room_and_a_segment_fits_exactly_or_not_at_all() {
    let model = |queued| {
        let fast = SubflowView { inflight: 7 * MSS, queued, ..path(0, 10, 10) };
        Model::new(vec![fast, path(1, 100, 10)], MSS)
    };
    assert_eq!(sent_on(ask("minrtt", &model(2 * MSS)).0), Some(A));
    assert_eq!(sent_on(ask("minrtt", &model(2 * MSS + 1)).0), Some(B));
}

#[test]
fn backup_waits_for_a_timeout_recovery_of_the_others_in_minrtt_only() {
    let loss = SubflowView { ca: CaState::Loss, ..path(0, 10, 10) };
    let backup = SubflowView { backup: true, ..path(1, 100, 10) };
    let model = Model::new(vec![loss, backup], MSS);
    let waits = Decision::Wait { on: None, reason: Reason::AllBusy };
    assert_eq!(ask("minrtt", &model).0, waits);
    for spec in ["ecf", "blest", "roundrobin", "redundant"] {
        assert_eq!(sent_on(ask(spec, &model).0), Some(B), "{spec}");
    }
}

#[test]
fn a_segment_is_checked_against_the_window_after_the_choice() {
    let mut model = Model::new(vec![full(path(0, 10, 10)), path(1, 100, 10)], 2 * MSS);
    model.connection.wnd_end = Dsn::new(MSS - 1);
    let waits = Decision::Wait { on: Some(B), reason: Reason::SendWindow };
    assert_eq!(ask("minrtt", &model).0, waits);
    model.connection.wnd_end = Dsn::new(MSS);
    assert_eq!(sent_on(ask("minrtt", &model).0), Some(B));
}

#[test]
fn the_only_subflow_says_why_it_waits() {
    let dead = SubflowView { pf: true, ..path(0, 10, 10) };
    let recovering = SubflowView { ca: CaState::Loss, ..path(0, 10, 10) };
    for (only, reason) in [(dead, Reason::NoSubflow), (recovering, Reason::AllBusy)] {
        let model = Model::new(vec![only], MSS);
        assert_eq!(ask("minrtt", &model).0, Decision::Wait { on: None, reason });
    }
}

// roundrobin

/// csws-u7: blocks of 8 KiB are six segments. The last one is short, and always on the second
/// subflow.
#[test]
fn turns_are_counted_in_segments() {
    for (mss, share) in [(1448, 0.530), (1428, 0.523)] {
        let mut model = Model::new(vec![path(0, 10, 10), path(1, 30, 10)], 0);
        model.connection.mss = mss;
        let (mut scheduler, mut out, mut on_first) = (build("rr"), Outcome::default(), 0);
        for block in 0..10 {
            model.queue.unsent.insert(DataRange::with_len(Dsn::new(block * 8192), 8192));
            model.connection.unsent = 8192;
            loop {
                let decision = model.ask(&mut *scheduler, &mut out);
                let Some((id, range)) = model.apply(decision, &[]) else { break };
                on_first += if id == A { range.len() } else { 0 };
            }
            for subflow in &mut model.subflows {
                subflow.inflight = 0;
            }
        }
        assert_eq!((on_first as f64 / 81_920.0 * 1e3).round(), share * 1e3);
    }
}

#[test]
fn a_turn_that_the_window_stops_is_not_used_up() {
    let mut model = Model::new(vec![path(0, 10, 10), path(1, 30, 10)], 4 * MSS);
    model.connection.wnd_end = Dsn::ZERO;
    let (mut scheduler, mut out) = (build("rr"), Outcome::default());
    for _ in 0..3 {
        let waits = Decision::Wait { on: Some(A), reason: Reason::SendWindow };
        assert_eq!(model.ask(&mut *scheduler, &mut out), waits);
    }
    model.connection.wnd_end = Dsn::MAX;
    assert_eq!(sent_on(model.ask(&mut *scheduler, &mut out)), Some(A));
}

// redundant

#[test]
fn a_subflow_that_joins_gets_copies_and_the_first_one_goes_on() {
    let mut model = Model::new(vec![path(0, 10, 10)], 8 * MSS);
    let (mut scheduler, mut out) = (build("redundant"), Outcome::default());
    for _ in 0..5 {
        let decision = model.ask(&mut *scheduler, &mut out);
        model.apply(decision, &[]);
    }
    model.subflows.push(path(1, 100, 10));
    let mut log = Vec::new();
    while let Some((id, range)) = {
        let decision = model.ask(&mut *scheduler, &mut out);
        model.apply(decision, &[])
    } {
        log.push((id.0, range.start.get() / MSS));
    }
    let copies: Vec<u64> = log.iter().filter(|(id, _)| *id == 1).map(|(_, dsn)| *dsn).collect();
    let on_first: Vec<u64> = log.iter().filter(|(id, _)| *id == 0).map(|(_, dsn)| *dsn).collect();
    assert_eq!(copies, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(on_first, [5, 6, 7]);
    assert_eq!(model.ask(&mut *scheduler, &mut out), Decision::Idle);
}

#[test]
fn copies_pass_a_closed_window_and_new_data_does_not() {
    let mut model = Model::new(vec![path(0, 10, 10), path(1, 100, 10)], 2 * MSS);
    model.connection.wnd_end = Dsn::new(MSS);
    let (mut scheduler, mut out) = (build("redundant"), Outcome::default());
    let mut next = || {
        let decision = model.ask(&mut *scheduler, &mut out);
        model.apply(decision, &[]);
        decision
    };
    assert!(matches!(next(), Decision::Send { subflow: A, what: What::New { .. }, .. }));
    assert!(matches!(next(), Decision::Send { subflow: B, what: What::Redundant(_), .. }));
    assert!(matches!(next(), Decision::Wait { reason: Reason::SendWindow, .. }));
}

// blest and ecf

/// ton-u11, ecf-u7.
#[test]
fn a_fast_subflow_with_room_is_used_whatever_the_estimate() {
    for spec in ["blest", "blest:mode=paper", "ecf", "ecf:floor=off"] {
        for (unsent, window) in [(1, 1), (1, 1000), (500, 1), (500, 1000)] {
            let mut model = Model::new(vec![path(0, 10, 10), path(1, 100, 10)], unsent * MSS);
            model.connection.wnd_end = Dsn::new(window * MSS);
            assert_eq!(sent_on(ask(spec, &model).0), Some(A), "{spec}");
        }
    }
}

#[test]
fn of_three_the_slow_one_is_the_fastest_with_room() {
    let model =
        Model::new(vec![path(0, 300, 10), full(path(1, 10, 10)), path(2, 30, 10)], 1000 * MSS);
    assert_eq!(sent_on(ask("ecf", &model).0), Some(C));
    assert_eq!(sent_on(ask("blest:mode=paper", &model).0), Some(C));
}

/// Creates a full fast subflow of 10 ms and an idle slow one of 100 ms.
fn unlike_pair(unsent: u64) -> Model {
    Model::new(vec![full(path(0, 10, 10)), path(1, 100, 10)], unsent)
}

/// ecf-u4.
#[test]
fn the_first_test_of_ecf_clears_waiting_and_the_second_leaves_it() {
    let waiting = |model: &Model| {
        let mut scheduler = build("ecf");
        assert!(scheduler.load_state("waiting", 1.0));
        let decision = model.ask(&mut *scheduler, &mut Outcome::default());
        (sent_on(decision), state(&*scheduler)["waiting"])
    };
    assert_eq!(waiting(&unlike_pair(120 * MSS)), (Some(B), 0.0));
    // 80 < 1.25 * 95, and 85 < 90.
    let mut model = Model::new(vec![full(path(0, 40, 10)), path(1, 85, 10)], 5 * MSS);
    for subflow in &mut model.subflows {
        subflow.rttvar = Span::from_millis(10);
    }
    assert_eq!(waiting(&model), (Some(B), 1.0));
}

/// ton-u10.
#[test]
fn lambda_in_paper_mode_moves_once_per_rtt_of_the_fast_subflow() {
    let start = Time::ZERO + Span::from_millis(500);
    let (mut scheduler, mut out) = (build("blest:mode=paper"), Outcome::default());
    let mut model = unlike_pair(9 * MSS);
    model.connection.start = start;
    let mut look = |at_ms: u64, blocked: bool| {
        model.now = start + Span::from_millis(at_ms);
        if blocked {
            scheduler.on_notice(&model.view(), Notice::WindowLimited);
        }
        model.ask(&mut *scheduler, &mut out);
        state(&*scheduler)["lambda_milli"]
    };
    let steps = [(0, false), (9, true), (10, false), (15, false), (20, false), (40, true)];
    assert_eq!(
        steps.map(|(at, blocked)| look(at, blocked)),
        [1000.0, 1000.0, 1010.0, 1010.0, 1000.0, 1010.0]
    );
    // The lower limit is 0.1 and the upper limit is 10.
    let low = (5..105).map(|at| look(10 * at, false)).last();
    assert_eq!(low, Some(100.0));
    let high = (105..1200).map(|at| look(10 * at, true)).last();
    assert_eq!(high, Some(10_000.0));
}

#[test]
fn blest_keeps_the_extremes_of_the_smoothed_rtt() {
    let (mut scheduler, mut out) = (build("blest"), Outcome::default());
    let mut model = unlike_pair(9 * MSS);
    for rtt in [12, 8, 30, 10] {
        model.subflows[0].srtt = Some(Span::from_millis(rtt));
        model.ask(&mut *scheduler, &mut out);
    }
    let state = state(&*scheduler);
    assert_eq!((state["min_srtt.0_ms"], state["max_srtt.0_ms"]), (8.0, 30.0));
    assert_eq!((state["min_srtt.1_ms"], state["max_srtt.1_ms"]), (100.0, 100.0));
}

#[test]
fn blest_counts_what_the_slow_subflow_has_queued_in_code_mode() {
    let room = |spec: &str| {
        let mut model = unlike_pair(9 * MSS);
        let slow = &mut model.subflows[1];
        (slow.inflight, slow.outstanding, slow.queued) = (2 * MSS, 2 * MSS, 3 * MSS);
        model.connection.wnd_end = Dsn::new(100 * MSS);
        let mut out = Outcome::default();
        model.ask(&mut *build(spec), &mut out);
        out.numbers.iter().find(|number| number.name == "room_bytes").unwrap().value
    };
    assert_eq!(room("blest"), 94.0 * MSS as f64);
    assert_eq!(room("blest:mode=paper"), 97.0 * MSS as f64);
}

// rp

/// Creates a connection whose sent data fills the window. `holders` carry its head; the rest is
/// unsent.
fn stalled(subflows: Vec<SubflowView>, holders: &[SubflowId], unsent: u64) -> Model {
    let mut model = Model::new(subflows, 10 * MSS + unsent);
    for holder in holders {
        for at in 0..10 {
            model.queue.record(DataRange::with_len(Dsn::new(at * MSS), MSS), *holder);
        }
    }
    model.connection.unsent = unsent;
    model.connection.snd_nxt = Dsn::new(10 * MSS);
    model.connection.wnd_end = Dsn::new(10 * MSS);
    model
}

fn retransmits(decision: Decision) -> bool {
    matches!(decision, Decision::Send { what: What::OppRetx(_), reason: Reason::Opportunistic, .. })
}

#[test]
fn rp_does_what_its_mode_says() {
    let model = stalled(vec![path(0, 10, 20), path(1, 100, 40)], &[B], MSS);
    for (spec, retransmit, penalise) in [
        ("minrtt+rp", true, true),
        ("minrtt+rp:mode=retransmit", true, false),
        ("minrtt+rp:mode=off", false, false),
        ("minrtt", false, false),
        ("ecf+rp", true, true),
        ("blest+rp:mode=retransmit", true, false),
    ] {
        let (decision, effects) = ask(spec, &model);
        assert_eq!((retransmits(decision), effects.len() == 1), (retransmit, penalise), "{spec}");
    }
}

/// The head waits in the queue of its holder. Under any base scheduler it is taken from there, and
/// the holder is penalised as if it had sent it.
#[test]
fn rp_takes_what_its_holder_has_not_sent() {
    let waiting = |to| {
        let mut model = stalled(vec![path(0, 10, 20), full(path(1, 100, 40))], &[A], MSS);
        model.queue.sent.retain(|sent| sent.range.start >= Dsn::new(3 * MSS));
        model.assign(&[(DataRange::between(0, 3 * MSS), to)]);
        model
    };
    // STTF is left out: it would place the head again first.
    for spec in ["otias+rp", "daps+rp", "linux+rp"] {
        let mut model = waiting(B);
        let (decision, effects) = ask(spec, &model);
        let taken = What::OppRetx(DataRange::between(0, MSS));
        assert!(retransmits(decision), "{spec}: {decision:?}");
        assert!(matches!(decision, Decision::Send { subflow: A, what, .. } if what == taken));
        assert_eq!(effects.len(), 1, "{spec}");
        model.apply(decision, &effects);
        assert_eq!(model.view().subflow(B).map(|it| it.queued), Some(2 * MSS));
        // A subflow sends its own assigned data without a retransmission.
        assert!(!retransmits(ask(spec, &waiting(A)).0), "{spec}");
    }
}

#[test]
fn rp_without_strict_asks_for_no_ratio() {
    let model = stalled(vec![path(0, 30, 20), path(1, 100, 40)], &[B], MSS);
    assert!(!retransmits(ask("minrtt+rp", &model).0));
    assert!(retransmits(ask("minrtt+rp:strict=off", &model).0));
    // Exactly four times is not more than four times.
    let model = stalled(vec![path(0, 25, 20), path(1, 100, 40)], &[B], MSS);
    assert!(!retransmits(ask("minrtt+rp", &model).0));
}

#[test]
fn rp_penalises_the_first_holder_and_only_one_that_is_slower_and_not_in_recovery() {
    let paths = || vec![path(0, 10, 20), path(1, 100, 40), path(2, 200, 40)];
    let penalised = |model: &Model| match ask("minrtt+rp", model).1[..] {
        [Effect::Penalise { subflow, cwnd, ssthresh: None }] => Some((subflow, cwnd / MSS)),
        _ => None,
    };
    assert_eq!(penalised(&stalled(paths(), &[C, B], MSS)), Some((B, 20)));
    assert_eq!(penalised(&stalled(paths(), &[C], MSS)), Some((C, 20)));
    let mut model = stalled(paths(), &[C, B], MSS);
    model.subflows[1].ca = CaState::Recovery;
    assert_eq!(penalised(&model), None);
    let faster = stalled(vec![full(path(0, 10, 20)), path(1, 100, 40)], &[A], MSS);
    assert_eq!(penalised(&faster), None);
}

#[test]
fn rp_penalises_every_holder_where_it_is_asked_to() {
    let mut model =
        stalled(vec![path(0, 10, 20), path(1, 100, 40), path(2, 200, 40)], &[C, B], MSS);
    let penalised = |spec: &str, model: &Model| -> Vec<SubflowId> {
        let of = |effect: &Effect| match *effect {
            Effect::Penalise { subflow, .. } => subflow,
            other => panic!("{other:?}"),
        };
        ask(spec, model).1.iter().map(of).collect()
    };
    assert_eq!(penalised("minrtt+rp", &model), [B]);
    assert_eq!(penalised("minrtt+rp:holders=every", &model), [B, C]);
    model.subflows[1].ca = CaState::Recovery;
    assert_eq!(penalised("minrtt+rp", &model), []);
    assert_eq!(penalised("minrtt+rp:holders=every", &model), [C]);
}

#[test]
fn rp_leaves_at_least_a_segment_of_window_and_two_of_threshold() {
    let mut model = stalled(vec![path(0, 10, 20), path(1, 100, 1)], &[B], MSS);
    model.subflows[1].ssthresh = Some(MSS);
    let penalty = Effect::Penalise { subflow: B, cwnd: MSS, ssthresh: Some(2 * MSS) };
    assert_eq!(ask("minrtt+rp", &model).1, [penalty]);
}

#[test]
fn a_full_send_buffer_lets_rp_retransmit_and_penalise_only_when_nothing_is_free() {
    let mut model = stalled(vec![path(0, 10, 20), path(1, 100, 40)], &[B], 0);
    assert_eq!(ask("minrtt+rp", &model).0, Decision::Idle);
    model.connection.app_blocked = true;
    let (decision, effects) = ask("minrtt+rp", &model);
    assert!(retransmits(decision) && effects.is_empty());
    assert_eq!(sent_on(decision), Some(A));
    model.connection.sndbuf_free = 0;
    assert_eq!(ask("minrtt+rp", &model).1.len(), 1);
}

#[test]
fn rp_needs_room_for_the_head_and_not_only_for_the_short_segment_that_waits() {
    let almost_full = SubflowView { inflight: 20 * MSS - 100, ..path(0, 10, 20) };
    let model = stalled(vec![almost_full, full(path(1, 100, 40))], &[B], 100);
    let waits = Decision::Wait { on: Some(A), reason: Reason::SendWindow };
    assert_eq!(ask("minrtt+rp", &model).0, waits);
}

/// The plain estimate: half an RTT, and the part of an RTT until the missing room is free.
#[test]
fn the_plain_estimate_counts_what_does_not_fit() {
    let arrival = |view: SubflowView| view.plain_arrival(MSS);
    let open = path(0, 40, 10);
    assert_eq!(arrival(open), Some(Span::from_millis(20)));
    // One segment of ten is missing: a tenth of an RTT more.
    assert_eq!(arrival(full(open)), Some(Span::from_millis(24)));
    // Five segments are assigned beyond the window, and this segment is the sixth.
    let queued = SubflowView { queued: 5 * MSS, ..full(open) };
    assert_eq!(arrival(queued), Some(Span::from_millis(44)));
    assert_eq!(arrival(SubflowView { srtt: None, ..open }), None);
    let capped = SubflowView { cap: 0, ..open };
    assert!(arrival(capped).is_some_and(|it| it > Span::from_secs(10)));
}

/// A second subflow has the first turn, because the only subflow has sent last.
#[test]
fn round_robin_counts_turns_while_there_is_one_subflow() {
    for (name, turns) in [("rr", [1, 0, 1, 0]), ("rr:num_segments=2", [0, 1, 1, 0])] {
        let ms = Span::from_millis;
        let mut model = Model::new(vec![subflow(0, ms(10), 10 * MSS)], 20 * MSS);
        let (mut scheduler, mut out) = (Spec::parse(name).unwrap().build(), Outcome::default());
        let mut step = |model: &mut Model| {
            let decision = model.ask(scheduler.as_mut(), &mut out);
            model.apply(decision, &[]).unwrap().0.0
        };
        assert_eq!([step(&mut model), step(&mut model), step(&mut model)], [0, 0, 0]);
        model.subflows.push(subflow(1, ms(20), 10 * MSS));
        let sent = turns.map(|_| step(&mut model));
        assert_eq!(sent, turns, "{name}");
    }
}

/// Data left for a failed path returns to the unsent data, below data sent beyond it. The reader
/// needs it first.
#[test]
fn new_data_below_what_is_reinjected_goes_before_it() {
    // `linux` retransmits as the kernel does.
    let ahead =
        plait_sched::SCHEDULERS.iter().filter(|it| it.queues_ahead && it.about.name != "linux");
    for entry in ahead {
        let dead = SubflowView { pf: true, ..full(path(0, 10, 10)) };
        let mut model = Model::new(vec![dead, path(1, 40, 10)], 0);
        let hole = DataRange::between(3 * MSS, 5 * MSS);
        model.queue.record(DataRange::between(0, 9 * MSS), A);
        model.queue.unsent.insert(hole);
        model.connection.unsent = hole.len();
        model.connection.snd_nxt = Dsn::new(9 * MSS);
        let waits = |range| SentRange { range, carried: SubflowSet::one(A), first: A };
        // Data below the hole goes before it.
        model.connection.reinject = Some(waits(DataRange::between(2 * MSS, 3 * MSS)));
        let below = ask(entry.about.name, &model).0;
        let is_again = matches!(below, Decision::Send { what: What::Reinject, .. });
        assert!(is_again, "{}: {below:?}", entry.about.name);
        model.connection.reinject = Some(waits(DataRange::between(5 * MSS, 9 * MSS)));
        let beyond = ask(entry.about.name, &model).0;
        let new = What::New { offset: 0 };
        let is_new = matches!(beyond, Decision::Send { subflow: B, what, .. } if what == new);
        assert!(is_new, "{}: {beyond:?}", entry.about.name);
    }
}
