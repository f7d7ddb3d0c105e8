//! The rules of slot, one by one.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::model::{MSS, Model, path};
use plait_base::{DataRange, Dsn, Span, SubflowId, SubflowSet, Time};
use plait_sched::{Decision, Notice, Outcome, Scheduler, Spec, Unacked, What};

const MAIN: SubflowId = SubflowId(0);
const SIDE: SubflowId = SubflowId(1);
/// RTTs in ms.
const MAIN_RTT: u64 = 40;
const SIDE_RTT: u64 = 20;

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).unwrap().build()
}

fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

fn segment(index: u64) -> DataRange {
    DataRange::with_len(Dsn::ZERO + index * MSS, MSS)
}

/// A main path of 40 ms and a side path of 20 ms, both with windows of ten segments.
fn paths(segments: u64) -> Model {
    Model::new(vec![path(0, MAIN_RTT, 10), path(1, SIDE_RTT, 10)], segments * MSS)
}

/// Ten segments leave the subflow at once and are acknowledged one by one, `spacing` ms apart. That is the
/// pace of the link.
fn teach_rate(scheduler: &mut dyn Scheduler, model: &mut Model, subflow: SubflowId, spacing: u64) {
    let rtt = model.view().subflow(subflow).unwrap().srtt.unwrap();
    for index in 0..10 {
        let waited = Span::from_millis(spacing * index);
        model.now = at(1_000) + rtt + waited;
        let notice = Notice::Acked {
            subflow,
            bytes: MSS,
            rtt: Some(rtt + waited),
            bandwidth: 0,
            first_unacked: None,
        };
        scheduler.on_notice(&model.view(), notice);
    }
    model.now = at(2_000);
}

fn ask(scheduler: &mut dyn Scheduler, model: &Model) -> (Option<SubflowId>, Option<What>) {
    match model.ask(scheduler, &mut Outcome::default()) {
        Decision::Send { subflow, what, .. } => (Some(subflow), Some(what)),
        _ => (None, None),
    }
}

/// Asks and applies until no data is sent. Returns the subflow and the kind of each segment.
fn send_all(scheduler: &mut dyn Scheduler, model: &mut Model) -> Vec<(SubflowId, What)> {
    let (mut sent, mut out) = (Vec::new(), Outcome::default());
    loop {
        let decision = model.ask(scheduler, &mut out);
        let Decision::Send { subflow, what, .. } = decision else { return sent };
        model.apply(decision, &[]);
        sent.push((subflow, what));
        assert!(sent.len() < 100, "{sent:?}");
    }
}

#[test]
fn a_side_path_of_unknown_rate_carries_copies_only() {
    for (probe, new_data) in [("on", false), ("off", true)] {
        let mut scheduler = build(&format!("slot:probe={probe}"));
        let mut model = paths(200);
        teach_rate(&mut *scheduler, &mut model, MAIN, 2);
        let sent = send_all(&mut *scheduler, &mut model);
        let on_side: Vec<_> = sent.iter().filter(|it| it.0 == SIDE).map(|it| it.1).collect();
        assert!(!on_side.is_empty(), "probe={probe}");
        let new = on_side.iter().any(|it| matches!(it, What::New { .. }));
        assert_eq!(new, new_data, "probe={probe}: {on_side:?}");
    }
}

/// The first path of a light stream has sent too little at a time for a sample of its rate.
#[test]
fn a_path_of_unknown_rate_that_has_carried_the_connection_alone_carries_new_data() {
    for alone in [false, true] {
        let mut scheduler = build("slot");
        let mut model = paths(200);
        if alone {
            let second = model.subflows.split_off(1);
            let rtt = Some(Span::from_millis(MAIN_RTT));
            let notice =
                Notice::Acked { subflow: MAIN, bytes: MSS, rtt, bandwidth: 0, first_unacked: None };
            scheduler.on_notice(&model.view(), notice);
            model.subflows.extend(second);
        }
        // The rate of the second path is higher than the window of the first one allows.
        teach_rate(&mut *scheduler, &mut model, SIDE, 2);
        let sent = send_all(&mut *scheduler, &mut model);
        let new = sent.iter().any(|it| it.0 == MAIN && matches!(it.1, What::New { .. }));
        assert_eq!(new, alone, "{sent:?}");
    }
}

/// A path of which nothing is known but its RTT may be far slower than its window suggests.
#[test]
fn an_untried_path_carries_copies_only_until_it_has_delivered_ten_segments() {
    for (delivered, new_data) in [(9, false), (10, true)] {
        let mut scheduler = build("slot");
        let mut model = paths(200);
        let second = model.subflows.split_off(1);
        let ack = |subflow, bytes, rtt| Notice::Acked {
            subflow,
            bytes,
            rtt: Some(Span::from_millis(rtt)),
            bandwidth: 0,
            first_unacked: None,
        };
        // The first path has carried the connection alone.
        scheduler.on_notice(&model.view(), ack(MAIN, MSS, MAIN_RTT));
        model.subflows.extend(second);
        scheduler.on_notice(&model.view(), ack(SIDE, delivered * MSS, SIDE_RTT));
        let sent = send_all(&mut *scheduler, &mut model);
        let new = sent.iter().any(|it| it.0 == SIDE && matches!(it.1, What::New { .. }));
        assert_eq!(new, new_data, "{delivered}: {sent:?}");
    }
}

/// Segments that leave a path at once after a pause wait for each other. On the side path the first arrives after
/// 10 ms and each other one 4 ms later, on the main path the first after 20 ms. So the fourth segment goes there.
/// Without the rule, data within the 20 ms of the side path's RTT seems to wait for nothing.
#[test]
fn segments_after_a_pause_wait_for_each_other() {
    for (backlog, on_side) in [("on", 3), ("off", 7)] {
        let mut scheduler = build(&format!("slot:backlog={backlog},hedge=off,risk=0,doubt=off"));
        let mut model = paths(200);
        teach_rate(&mut *scheduler, &mut model, MAIN, 2);
        teach_rate(&mut *scheduler, &mut model, SIDE, 4);
        let sent = send_all(&mut *scheduler, &mut model);
        let first_on_main = sent.iter().position(|it| it.0 == MAIN);
        assert_eq!(first_on_main, Some(on_side), "backlog={backlog}: {sent:?}");
    }
}

#[test]
fn a_side_path_of_known_rate_carries_new_data() {
    let mut scheduler = build("slot");
    let mut model = paths(200);
    teach_rate(&mut *scheduler, &mut model, MAIN, 2);
    teach_rate(&mut *scheduler, &mut model, SIDE, 4);
    assert_eq!(ask(&mut *scheduler, &model), (Some(SIDE), Some(What::New { offset: 0 })));
}

/// A controller that paces lets no run leave faster than it is acknowledged, but knows the bandwidth.
#[test]
fn a_side_path_whose_controller_knows_the_bandwidth_carries_new_data() {
    for (bandwidth, new_data) in [(0, false), (250 * MSS, true)] {
        let mut scheduler = build("slot");
        let mut model = paths(200);
        teach_rate(&mut *scheduler, &mut model, MAIN, 2);
        let rtt = Some(Span::from_millis(SIDE_RTT));
        let notice =
            Notice::Acked { subflow: SIDE, bytes: MSS, rtt, bandwidth, first_unacked: None };
        scheduler.on_notice(&model.view(), notice);
        let sent = send_all(&mut *scheduler, &mut model);
        let new = sent.iter().any(|it| it.0 == SIDE && matches!(it.1, What::New { .. }));
        assert_eq!(new, new_data, "{bandwidth}");
    }
}

#[test]
fn a_side_path_of_remembered_rate_carries_new_data() {
    let mut scheduler = build("slot");
    let mut model = paths(200);
    teach_rate(&mut *scheduler, &mut model, MAIN, 2);
    let (rate, min_rtt) = (250 * MSS, Span::from_millis(SIDE_RTT));
    let notice = Notice::Remembered { subflow: SIDE, rate, min_rtt };
    scheduler.on_notice(&model.view(), notice);
    assert_eq!(ask(&mut *scheduler, &model), (Some(SIDE), Some(What::New { offset: 0 })));
    // A subflow that reuses the id begins without it.
    let notice = Notice::SubflowsChanged { live: SubflowSet(0b11), began: Some(SIDE) };
    scheduler.on_notice(&model.view(), notice);
    let sent = send_all(&mut *scheduler, &mut model);
    assert!(!sent.iter().any(|it| it.0 == SIDE && matches!(it.1, What::New { .. })), "{sent:?}");
}

/// Returns the next transmission after the carrier of the first segment has lost it. The other path has room.
fn after_a_loss(spec: &str, mut model: Model) -> Option<What> {
    let mut scheduler = build(spec);
    teach_rate(&mut *scheduler, &mut model, MAIN, 2);
    teach_rate(&mut *scheduler, &mut model, SIDE, 4);
    send_all(&mut *scheduler, &mut model);
    let sent = model.view().queue.sent_from(Dsn::ZERO).unwrap();
    let (start, other) = (sent.range.start, SubflowId(1 - sent.first.0));
    model.subflows[other.index()].inflight = 0;
    let range = DataRange::with_len(start, MSS);
    scheduler.on_notice(&model.view(), Notice::Lost { subflow: sent.first, range });
    ask(&mut *scheduler, &model).1
}

#[test]
fn a_loss_is_copied_only_if_the_data_at_hand_does_not_outlast_its_repair() {
    let copy = Some(What::Redundant(segment(0)));
    // 180 segments at 750 segments a second take 240 ms; 4 take 5 ms.
    assert_ne!(after_a_loss("slot", paths(200)), copy);
    assert_eq!(after_a_loss("slot:patient=off", paths(200)), copy);
    assert_eq!(after_a_loss("slot", paths(24)), copy);
}

/// The retransmission arrives after 40 ms at most, and a copy on the other path after 100 ms.
#[test]
fn lost_data_takes_no_place_of_other_data_if_the_retransmission_arrives_sooner() {
    for (repair, copied) in [("on", false), ("off", true)] {
        let model = Model::new(vec![path(0, MAIN_RTT, 10), path(1, 200, 10)], 200 * MSS);
        let next = after_a_loss(&format!("slot:patient=off,repair={repair}"), model);
        let copy = Some(What::Redundant(segment(0)));
        assert_eq!(next == copy, copied, "repair={repair}: {next:?}");
    }
}

/// Returns the subflow of the next segment if `lost_segments` were lost on the side path, of which ten were
/// acknowledged, and `unsent` segments wait.
fn choice_with_loss(spec: &str, lost_segments: u64, unsent: u64) -> Option<SubflowId> {
    let lost = DataRange::with_len(Dsn::ZERO, lost_segments * MSS);
    choice_with_losses(spec, [lost], unsent)
}

/// The same with these losses.
fn choice_with_losses(
    spec: &str,
    losses: impl IntoIterator<Item = DataRange>,
    unsent: u64,
) -> Option<SubflowId> {
    let mut scheduler = build(spec);
    let mut model = paths(unsent);
    teach_rate(&mut *scheduler, &mut model, MAIN, 2);
    teach_rate(&mut *scheduler, &mut model, SIDE, 4);
    for range in losses {
        scheduler.on_notice(&model.view(), Notice::Lost { subflow: SIDE, range });
    }
    ask(&mut *scheduler, &model).0
}

/// Losses that are noticed in one round trip are repaired together.
#[test]
fn losses_of_one_round_trip_count_once() {
    let losses = (0..400).map(segment);
    assert_eq!(choice_with_losses("slot", losses.clone(), 1), Some(SIDE));
    assert_eq!(choice_with_losses("slot:once=off", losses, 1), Some(MAIN));
}

#[test]
fn new_data_avoids_a_side_path_if_losses_cost_more_than_it_saves() {
    assert_eq!(choice_with_loss("slot", 0, 1), Some(SIDE));
    assert_eq!(choice_with_loss("slot", 400, 1), Some(MAIN));
    assert_eq!(choice_with_loss("slot:risk=0", 400, 1), Some(SIDE));
    // 200 segments keep the main path busy for 400 ms, longer than a repair takes.
    assert_eq!(choice_with_loss("slot", 400, 200), Some(SIDE));
}

/// If data waits for the window, a loss stops all of it. A segment then saves its own time on the main path only.
#[test]
fn new_data_avoids_a_side_path_with_losses_if_it_waits_for_the_window() {
    for (segments, choice) in [(20, SIDE), (200, MAIN)] {
        let mut scheduler = build("slot");
        let mut model = paths(segments);
        model.connection.wnd_end = segment(19).end;
        teach_rate(&mut *scheduler, &mut model, MAIN, 2);
        teach_rate(&mut *scheduler, &mut model, SIDE, 4);
        scheduler.on_notice(
            &model.view(),
            Notice::Lost { subflow: SIDE, range: DataRange::with_len(Dsn::ZERO, 40 * MSS) },
        );
        assert_eq!(ask(&mut *scheduler, &model).0, Some(choice), "{segments}");
    }
}

#[test]
fn data_of_the_first_subflow_is_copied_if_it_is_late_when_a_second_one_begins() {
    let mut scheduler = build("slot:hedge=off,probe=off");
    let mut model = Model::new(vec![path(0, MAIN_RTT, 10)], 30 * MSS);
    model.connection.wnd_end = Dsn::ZERO + 10 * MSS;
    assert_eq!(send_all(&mut *scheduler, &mut model).len(), 10);

    model.subflows.push(path(1, 100, 10));
    model.now = at(30);
    let live = SubflowSet(0b11);
    let notice = Notice::SubflowsChanged { live, began: Some(SIDE) };
    scheduler.on_notice(&model.view(), notice);
    assert_eq!(ask(&mut *scheduler, &model), (None, None));
    // The acknowledgements are due an RTT after the second subflow began.
    let due = 30 + MAIN_RTT;
    model.now = at(due + 1);
    assert_eq!(ask(&mut *scheduler, &model), (None, None));
    model.now = at(due + 2);
    let copy = Some(What::Redundant(segment(0)));
    assert_eq!(ask(&mut *scheduler, &model), (Some(SIDE), copy));
}

/// The main path has acknowledged the first four of its segments.
fn four_acked() -> Notice {
    let rtt = Some(Span::from_millis(MAIN_RTT));
    let first_unacked = Some(Unacked { dsn: segment(4).start, pair_at: Time::ZERO });
    Notice::Acked { subflow: MAIN, bytes: 4 * MSS, rtt, bandwidth: 0, first_unacked }
}

/// Ten of `segments` leave the main path, and a full window keeps others back.
fn ten_on_the_first(spec: &str, segments: u64, second_rtt: u64) -> (Box<dyn Scheduler>, Model) {
    let mut scheduler = build(spec);
    let mut model = Model::new(vec![path(0, MAIN_RTT, 10)], segments * MSS);
    model.connection.wnd_end = Dsn::ZERO + 10 * MSS;
    assert_eq!(send_all(&mut *scheduler, &mut model).len(), 10);
    model.subflows.push(path(1, second_rtt, 10));
    let notice = Notice::SubflowsChanged { live: SubflowSet(0b11), began: Some(SIDE) };
    scheduler.on_notice(&model.view(), notice);
    (scheduler, model)
}

/// The DATA_ACK stays at 0, and the subflow has acknowledged four segments.
#[test]
fn data_that_its_subflow_has_passed_on_is_not_copied() {
    for (passed, first) in [("on", 4), ("off", 0)] {
        let spec = format!("slot:hedge=off,probe=off,passed={passed}");
        let (mut scheduler, mut model) = ten_on_the_first(&spec, 30, 100);
        scheduler.on_notice(&model.view(), four_acked());
        model.now = at(1_000);
        let copy = Some(What::Redundant(segment(first)));
        assert_eq!(ask(&mut *scheduler, &model), (Some(SIDE), copy), "passed={passed}");
    }
}

/// Data that is left after four of ten segments were acknowledged is copied, as nothing new waits.
#[test]
fn a_path_hedges_the_first_data_that_was_not_passed_on() {
    for (passed, first) in [("on", 4), ("off", 0)] {
        let spec = format!("slot:probe=off,eager=off,passed={passed}");
        let (mut scheduler, mut model) = ten_on_the_first(&spec, 10, MAIN_RTT);
        scheduler.on_notice(&model.view(), four_acked());
        let copies = send_all(&mut *scheduler, &mut model);
        let expected: Vec<_> = (first..10).map(|it| (SIDE, What::Redundant(segment(it)))).collect();
        assert_eq!(copies, expected, "passed={passed}");
    }
}

/// The main path may send ten segments in 40 ms. A segment on the longer path arrives after 40 ms, and its acknowledgement
/// returns on the main path after 20 more. In these 60 ms, the main path would send 15 segments.
#[test]
fn a_longer_path_gets_no_data_that_takes_the_room_of_the_main_path() {
    const LONG_RTT: u64 = 80;
    let new_data_on_the_longer_path = |spec: &str, room: u64, free: u64, long_rtt: u64| {
        let mut scheduler = build(spec);
        let both = vec![path(0, MAIN_RTT, 10), path(1, long_rtt, 10)];
        let mut model = Model::new(both, 200 * MSS);
        teach_rate(&mut *scheduler, &mut model, MAIN, 2);
        teach_rate(&mut *scheduler, &mut model, SIDE, 4);
        (model.connection.sndbuf, model.connection.sndbuf_free) = (room * MSS, free);
        let sent = send_all(&mut *scheduler, &mut model);
        sent.iter().any(|it| it.0 == SIDE && matches!(it.1, What::New { .. }))
    };
    for (room, new_data) in [(15, false), (16, true)] {
        assert_eq!(new_data_on_the_longer_path("slot", room, 0, LONG_RTT), new_data, "{room}");
        assert!(new_data_on_the_longer_path("slot:hold=off", room, 0, LONG_RTT), "{room}");
        // No data waits for room.
        assert!(new_data_on_the_longer_path("slot", room, MSS, LONG_RTT), "{room}");
        // The path is as long as the main one.
        assert!(new_data_on_the_longer_path("slot", room, 0, MAIN_RTT), "{room}");
    }
}

/// Ten segments leave the main path at once, and the side path copies them as far as its budget allows.
fn copies_in_advance(spec: &str) -> (Box<dyn Scheduler>, Model, usize) {
    let (mut scheduler, mut model) = ten_on_the_first(spec, 10, MAIN_RTT);
    let copies = send_all(&mut *scheduler, &mut model);
    assert!(copies.iter().all(|(subflow, _)| *subflow == SIDE), "{copies:?}");
    (scheduler, model, copies.len())
}

#[test]
fn without_a_budget_no_copy_leaves_in_advance() {
    assert_eq!(copies_in_advance("slot:probe=off,eager=off").2, 10);
    assert_eq!(copies_in_advance("slot:probe=off,eager=off,spare=0").2, 0);
}

#[test]
fn while_the_send_buffer_is_full_its_own_budget_holds() {
    for (free, copies) in [(MSS, 10), (MSS - 1, 0)] {
        let spec = "slot:probe=off,eager=off,full=0";
        let (mut scheduler, mut model) = ten_on_the_first(spec, 10, MAIN_RTT);
        model.connection.sndbuf_free = free;
        assert_eq!(send_all(&mut *scheduler, &mut model).len(), copies, "{free}");
    }
}

/// A DATA_ACK of the copies comes after 40 ms, and the acknowledgements of the originals come at `original` ms, after a
/// silence of up to 40 ms that a delayed acknowledgement may explain. Returns the time that the copies saved.
fn saved_ms(original: u64) -> f64 {
    let (mut scheduler, mut model, _) = copies_in_advance("slot:probe=off,eager=off");
    // slot has not counted the data of the subflow that was alone.
    assert!(scheduler.load_state("spare.0.sent", (10 * MSS) as f64));
    for nth in 0..10 {
        let position = (nth + 1) * MSS;
        assert!(scheduler.load_state(&format!("flight.{nth}.position"), position as f64));
    }
    let mut acked = |model: &mut Model, subflow: SubflowId, millis| {
        model.now = at(millis);
        let it = &mut model.subflows[subflow.index()];
        (it.inflight, it.outstanding) = (0, 0);
        let rtt = Some(Span::from_millis(millis));
        let notice =
            Notice::Acked { subflow, bytes: 10 * MSS, rtt, bandwidth: 0, first_unacked: None };
        scheduler.on_notice(&model.view(), notice);
        let edge = Dsn::ZERO + 10 * MSS;
        let notice = Notice::DataAck { old: model.connection.snd_una, new: edge, edge: None };
        model.connection.snd_una = edge;
        scheduler.on_notice(&model.view(), notice);
    };
    acked(&mut model, SIDE, 40);
    acked(&mut model, MAIN, original);
    let state = state_of(&*scheduler);
    state.iter().find(|(name, _)| name == "spare.1.saved_ns").map_or(0.0, |(_, ns)| ns / 1e6)
}

#[test]
fn copies_save_the_time_until_the_originals_arrive() {
    // 2 ms do not count.
    assert_eq!(saved_ms(140), 98.0);
    assert_eq!(saved_ms(43), 1.0);
    assert_eq!(saved_ms(42), 0.0);
}

/// After copies have saved time, others leave without a budget.
#[test]
fn copies_that_have_saved_time_need_no_budget() {
    for (saved, copies) in [(0.0, 0), (19e6, 0), (21e6, 10)] {
        let spec = "slot:probe=off,eager=off,spare=0";
        let (mut scheduler, mut model) = ten_on_the_first(spec, 10, MAIN_RTT);
        assert!(scheduler.load_state("busy.time_ns", 1e9));
        assert!(scheduler.load_state("spare.1.saved_ns", saved));
        assert_eq!(send_all(&mut *scheduler, &mut model).len(), copies, "{saved}");
    }
}

/// Returns the segments that are copied right after the first of ten, sent 15 ms ago, counts as lost. The
/// retransmission needs 20 ms, and the copies 10 ms.
fn copies_after_a_loss(spec: &str) -> Vec<u64> {
    let (mut scheduler, mut model) = ten_on_the_first(spec, 30, SIDE_RTT);
    model.now = at(15);
    let lost = Notice::Lost { subflow: MAIN, range: segment(0) };
    scheduler.on_notice(&model.view(), lost);
    let copied = |(subflow, what)| match what {
        What::Redundant(range) => {
            assert_eq!(subflow, SIDE);
            range.start.get() / MSS
        }
        _ => panic!("{what:?}"),
    };
    send_all(&mut *scheduler, &mut model).into_iter().map(copied).collect()
}

#[test]
fn all_data_behind_a_loss_waits_for_its_repair() {
    let spec = "slot:hedge=off,probe=off,eager=off";
    assert_eq!(copies_after_a_loss(spec), (0..10).collect::<Vec<_>>());
    assert_eq!(copies_after_a_loss(&format!("{spec},repair=off")), [0]);
}

/// Without `eager`, data is late only 45 ms later.
#[test]
fn data_is_not_late_soon_if_the_scheduler_is_not_eager() {
    let mut scheduler = build("slot:hedge=off,probe=off,eager=off");
    let mut model = Model::new(vec![path(0, MAIN_RTT, 10), path(1, 100, 10)], 10 * MSS);
    assert_eq!(ask(&mut *scheduler, &model).0, Some(MAIN));
    send_all(&mut *scheduler, &mut model);
    model.now = at(MAIN_RTT + 45);
    assert_eq!(ask(&mut *scheduler, &model), (None, None));
    model.now = at(MAIN_RTT + 46);
    let copy = Some(What::Redundant(segment(0)));
    assert_eq!(ask(&mut *scheduler, &model), (Some(SIDE), copy));
}

/// A receiver holds the acknowledgement of a lone segment back for 40 ms. That of a second one comes at once.
#[test]
fn a_path_is_not_silent_because_the_acknowledgement_of_a_lone_segment_is_held_back() {
    for (in_flight, choice) in [(1, MAIN), (2, SIDE)] {
        let mut scheduler = build("slot:probe=off,risk=0");
        let mut model = Model::new(vec![path(0, SIDE_RTT, 10), path(1, MAIN_RTT, 10)], 20 * MSS);
        for _ in 0..in_flight {
            let decision = model.ask(&mut *scheduler, &mut Outcome::default());
            assert!(matches!(decision, Decision::Send { subflow: MAIN, .. }), "{decision:?}");
            model.apply(decision, &[]);
        }
        // 30 ms more than the RTT, twice its variation and 10 ms.
        let varies = model.subflows[0].rttvar.times(2);
        model.now = model.now + Span::from_millis(SIDE_RTT + 10 + 30) + varies;
        assert_eq!(ask(&mut *scheduler, &model).0, Some(choice), "{in_flight}");
    }
}

/// A receiver acknowledges a lone segment when the next one arrives. So that acknowledgement is not overdue before a round trip.
#[test]
fn a_path_is_not_silent_because_a_lone_segment_waits_for_the_next_one() {
    let mut scheduler = build("slot:probe=off,risk=0,copies=off");
    let mut model = Model::new(vec![path(0, SIDE_RTT, 10), path(1, MAIN_RTT, 10)], 20 * MSS);
    let mut send = |model: &mut Model| {
        let decision = model.ask(&mut *scheduler, &mut Outcome::default());
        assert!(matches!(decision, Decision::Send { subflow: MAIN, .. }), "{decision:?}");
        model.apply(decision, &[]);
    };
    send(&mut model);
    let varies = model.subflows[0].rttvar.times(2);
    model.now = model.now + Span::from_millis(SIDE_RTT + 10 + 30) + varies;
    for _ in 0..4 {
        send(&mut model);
    }
}

/// A receiver can have held the acknowledgement of a lone segment back since the one before it. Only the rest of a long RTT is
/// a queue: with 40 ms of it, the segment would arrive later on the side path than on the main one.
#[test]
fn an_acknowledgement_that_may_have_been_held_back_shows_no_queue() {
    for (held, silence, segments, choice) in
        [("on", 40, 1, SIDE), ("off", 40, 1, MAIN), ("on", 1, 1, MAIN), ("on", 40, 2, MAIN)]
    {
        let mut scheduler = build(&format!("slot:held={held},risk=0,copies=off"));
        let mut model = paths(200);
        teach_rate(&mut *scheduler, &mut model, MAIN, 2);
        teach_rate(&mut *scheduler, &mut model, SIDE, 4);
        model.subflows[1].inflight = MSS;
        let mut acked = |model: &mut Model, millis: u64, segments: u64| {
            let rtt = Some(Span::from_millis(SIDE_RTT + 40));
            model.now = at(millis);
            model.subflows[1].last_rtt = rtt;
            model.subflows[1].rtt_at = model.now;
            let (subflow, bytes, first_unacked) = (SIDE, segments * MSS, None);
            let notice = Notice::Acked { subflow, bytes, rtt, bandwidth: 0, first_unacked };
            scheduler.on_notice(&model.view(), notice);
        };
        acked(&mut model, 2_000, 2);
        acked(&mut model, 2_000 + silence, segments);
        let case = format!("held={held}, {segments} segments after {silence} ms");
        assert_eq!(ask(&mut *scheduler, &model).0, Some(choice), "{case}");
    }
}

/// A queue that lasts less long than the silence before an acknowledgement was empty in between, so the sender set the pace.
#[test]
fn a_queue_that_was_empty_in_between_shows_no_rate() {
    for (spec, wait, learnt) in
        [("slot", 10, 2 * MSS * 100), ("slot", 9, 0), ("slot:queued=off", 10, 0)]
    {
        let mut scheduler = build(spec);
        let mut model = paths(200);
        model.subflows[1].inflight = 4 * MSS;
        for index in 1..=10 {
            let rtt = Some(Span::from_millis(SIDE_RTT + wait));
            let (subflow, bytes, first_unacked) = (SIDE, 2 * MSS, None);
            model.now = at(1_000 + 10 * index);
            let notice = Notice::Acked { subflow, bytes, rtt, bandwidth: 0, first_unacked };
            scheduler.on_notice(&model.view(), notice);
        }
        let mut rate = 0;
        scheduler.save_state(&mut |name, value| {
            if name == "rate.1.now" {
                rate = value as u64;
            }
        });
        assert_eq!(rate, learnt, "{spec}, a wait of {wait} ms");
    }
}

/// The receiver holds the acknowledgement of each lone segment back for 40 ms. That is no wait in a queue.
#[test]
fn acknowledgements_that_the_receiver_holds_back_show_no_rate() {
    for (spec, learnt) in [("slot", 0), ("slot:held=off", MSS * 1_000 / 41)] {
        let mut scheduler = build(spec);
        let mut model = paths(200);
        model.subflows[1].inflight = 4 * MSS;
        for index in 1..=10 {
            let rtt = Some(Span::from_millis(SIDE_RTT + 41));
            model.now = at(1_000 + 41 * index);
            let notice =
                Notice::Acked { subflow: SIDE, bytes: MSS, rtt, bandwidth: 0, first_unacked: None };
            scheduler.on_notice(&model.view(), notice);
        }
        let state = state_of(&*scheduler);
        let rate = state.iter().find(|(name, _)| name == "rate.1.now").map_or(0.0, |it| it.1);
        assert_eq!(rate as u64, learnt, "{spec}");
    }
}

/// A stream sends a burst each round trip, so each burst leaves just before the last one is acknowledged. The path
/// of 20 ms is silent for 26 ms. That is too long only if its segments left before.
#[test]
fn an_acknowledgement_is_overdue_a_round_trip_after_its_segments_were_sent() {
    for (sent, choice) in [(1_950, MAIN), (1_985, SIDE)] {
        let mut scheduler = build("slot:risk=0,copies=off");
        let mut model = paths(200);
        teach_rate(&mut *scheduler, &mut model, MAIN, 4);
        teach_rate(&mut *scheduler, &mut model, SIDE, 1);
        model.now = at(1_974);
        model.subflows[1].inflight = 4 * MSS;
        let rtt = Some(Span::from_millis(SIDE_RTT));
        let first_unacked = Some(Unacked { dsn: Dsn::ZERO, pair_at: at(sent) });
        let notice =
            Notice::Acked { subflow: SIDE, bytes: 2 * MSS, rtt, bandwidth: 0, first_unacked };
        scheduler.on_notice(&model.view(), notice);
        model.now = at(2_000);
        assert_eq!(ask(&mut *scheduler, &model).0, Some(choice), "sent at {sent} ms");
    }
}

/// A path of 250 ms has four times the rate of one of 20 ms. A window of 50 segments lets it carry 50 in 250 ms, and
/// the short path 62.
#[test]
fn the_main_path_carries_most_within_the_window() {
    for (within, window, choice) in [("on", 50, SIDE), ("off", 50, MAIN), ("on", 1_000, SIDE)] {
        let mut scheduler = build(&format!("slot:within={within},risk=100,copies=off"));
        let mut model = Model::new(vec![path(0, 250, 400), path(1, SIDE_RTT, 100)], 2_000 * MSS);
        model.connection.wnd_end = Dsn::ZERO + window * MSS;
        teach_rate(&mut *scheduler, &mut model, MAIN, 1);
        teach_rate(&mut *scheduler, &mut model, SIDE, 4);
        let case = format!("within={within}, {window} segments");
        assert_eq!(ask(&mut *scheduler, &model).0, Some(choice), "{case}");
    }
}

/// Decides for a main path that acknowledges segments at once, so that its rate is `mss / spacing`.
fn fast_decision(spec: &str, spacing_us: u64) -> (Box<dyn Scheduler>, Model, Decision) {
    let mut scheduler = build(spec);
    let mut model = Model::new(vec![path(0, MAIN_RTT, 100), path(1, MAIN_RTT + 1, 10)], 50 * MSS);
    let rtt = model.view().subflow(MAIN).unwrap().srtt.unwrap();
    for index in 0..100 {
        let waited = Span::from_micros(spacing_us * index);
        model.now = at(1_000) + rtt + waited;
        let notice = Notice::Acked {
            subflow: MAIN,
            bytes: MSS,
            rtt: Some(rtt + waited),
            bandwidth: 0,
            first_unacked: None,
        };
        scheduler.on_notice(&model.view(), notice);
    }
    model.now = at(2_000);
    let decision = model.ask(&mut *scheduler, &mut Outcome::default());
    (scheduler, model, decision)
}

fn granted(decision: Decision) -> u64 {
    match decision {
        Decision::Send { subflow: MAIN, what: What::New { offset: 0 }, grant, .. } => grant,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_decision_holds_for_the_segments_of_a_tenth_of_a_millisecond() {
    // A segment takes 10 us.
    let (_, _, decision) = fast_decision("slot", 10);
    assert_eq!(granted(decision) / MSS, 10);
    let (_, _, decision) = fast_decision("slot:burst=40", 10);
    assert_eq!(granted(decision) / MSS, 4);
    let (_, _, decision) = fast_decision("slot:burst=0", 10);
    assert_eq!(granted(decision), MSS);
    // It takes 1 ms.
    let (_, _, decision) = fast_decision("slot", 1_000);
    assert_eq!(granted(decision), MSS);
}

#[test]
fn a_burst_is_the_same_if_the_scheduler_is_asked_for_each_segment() {
    let (mut scheduler, mut model, decision) = fast_decision("slot", 10);
    let state = state_of(&*scheduler);
    for left in (1..=10).rev() {
        let again = model.ask(&mut *scheduler, &mut Outcome::default());
        assert_eq!(granted(again), left * MSS);
        assert_eq!(state_of(&*scheduler), state);
        model.apply(again, &[]);
    }
    assert_eq!(granted(decision), 10 * MSS);
    // The next decision is a new one.
    let next = model.ask(&mut *scheduler, &mut Outcome::default());
    assert_eq!(granted(next), 10 * MSS);
    assert_ne!(state_of(&*scheduler), state);
}

#[test]
fn an_acknowledgement_ends_a_burst_and_its_unsent_segments_have_no_prediction() {
    let (mut scheduler, mut model, decision) = fast_decision("slot", 10);
    for _ in 0..3 {
        model.apply(decision, &[]);
    }
    let flights = |scheduler: &dyn Scheduler| {
        state_of(scheduler).iter().filter(|(name, _)| name.ends_with(".arrives_ns")).count()
    };
    assert_eq!(flights(&*scheduler), 10);
    let notice =
        Notice::Acked { subflow: SIDE, bytes: 1, rtt: None, bandwidth: 0, first_unacked: None };
    scheduler.on_notice(&model.view(), notice);
    assert_eq!(flights(&*scheduler), 3);
    // slot counts the bytes that have left, and not those of the burst that have not.
    let state = state_of(&*scheduler);
    let sent =
        state.iter().filter(|(name, _)| name.starts_with("spare.") && name.ends_with(".sent"));
    assert_eq!(sent.map(|(_, bytes)| bytes).sum::<f64>(), (3 * MSS) as f64);
    assert!(state_of(&*scheduler).iter().all(|(name, _)| !name.starts_with("burst.")));
}

fn state_of(scheduler: &dyn Scheduler) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    scheduler.save_state(&mut |name, value| all.push((name.to_owned(), value)));
    all
}
