//! Quotas under the decorator price: hand cases.
#![allow(clippy::panic)]

use crate::model::{MSS, Model, given, noted, path, places, runs};
use plait_base::{DataRange, Dsn, Span, SubflowId, SubflowSet};
use plait_sched::{CaState, Decision, Notice, Outcome, Reason, Scheduler, SentRange, Spec, What};

const FAST: SubflowId = SubflowId(0);
const SLOW: SubflowId = SubflowId(1);

fn build(spec: &str) -> Box<dyn Scheduler> {
    Spec::parse(spec).expect("a scheduler").build()
}

/// Returns two subflows, 10 ms and 50 ms, with 20 segments to send. The fast one has a quota.
fn limited(quota: u64) -> Model {
    let mut model = Model::new(vec![path(0, 10, 10), path(1, 50, 10)], 20 * MSS);
    model.set_quota(FAST, quota);
    model
}

fn decision(model: &Model, spec: &str) -> Decision {
    model.ask(&mut *build(spec), &mut Outcome::default())
}

/// Returns the subflow of a decision to send, or the reason of one to wait.
fn outcome(model: &Model, spec: &str) -> Result<SubflowId, Reason> {
    match decision(model, spec) {
        Decision::Send { subflow, .. } => Ok(subflow),
        Decision::Wait { reason, .. } => Err(reason),
        other => panic!("{other:?}"),
    }
}

/// The last 500 bytes of the quota hold no full segment.
#[test]
fn a_path_carries_full_segments_up_to_its_quota() {
    for spec in ["minrtt+price", "minrtt+price:goal=thrifty", "minrtt+price:over_quota=never"] {
        let mut model = limited(3 * MSS + 500);
        assert_eq!(runs(&places(&mut model, &mut *build(spec), 9)), [(0, 3), (1, 6)], "{spec}");
        assert_eq!(model.subflows[0].price.left, 500);
    }
    let mut free = limited(u64::MAX);
    assert_eq!(runs(&places(&mut free, &mut *build("minrtt+price"), 12)), [(0, 10), (1, 2)]);
}

#[test]
fn a_decision_has_the_rest_of_the_quota() {
    let mut out = Outcome::default();
    let model = limited(700);
    model.ask(&mut *build("minrtt+price"), &mut out);
    assert_eq!((noted(&out, "quota_left", 0), noted(&out, "rests", 0)), (Some(700.0), Some(1.0)));
    assert_eq!((noted(&out, "quota_left", 1), noted(&out, "rests", 1)), (None, None));
}

/// The other subflow is full, recovers from a timeout, is potentially failed, or closed.
#[test]
fn data_beyond_the_quota_is_sent_only_if_all_other_paths_cannot_send() {
    let changes: [fn(&mut Model); 4] = [
        |it| it.subflow_mut(SLOW).inflight = 10 * MSS,
        |it| it.subflow_mut(SLOW).ca = CaState::Loss,
        |it| it.subflow_mut(SLOW).pf = true,
        |it| it.subflow_mut(SLOW).open = false,
    ];
    for (nth, change) in changes.into_iter().enumerate() {
        let (mut model, down) = (limited(0), nth >= 2);
        change(&mut model);
        for (params, continues) in [
            ("", down),
            (":goal=interactive", down),
            (":goal=handover", down),
            (":goal=thrifty", false),
            (":goal=thrifty,over_quota=down", down),
            (":over_quota=never", false),
        ] {
            let expected = if continues { Ok(FAST) } else { Err(Reason::Quota) };
            let spec = format!("minrtt+price{params}");
            assert_eq!(outcome(&model, &spec), expected, "{nth}: {spec}");
        }
    }
}

/// A path that has only used up its quota is not down, so neither path carries more.
#[test]
fn no_data_is_sent_if_the_quotas_of_all_paths_are_used_up() {
    for goal in ["aggregate", "interactive", "handover", "thrifty"] {
        let spec = format!("minrtt+price:goal={goal}");
        let mut model = limited(MSS - 1);
        model.set_quota(SLOW, MSS);
        assert_eq!(outcome(&model, &spec), Ok(SLOW), "{spec}");
        model.set_quota(SLOW, MSS - 1);
        assert_eq!(outcome(&model, &spec), Err(Reason::Quota), "{spec}");
        // Subflows with the same quota count as one path, which has no other.
        let mut same = model.clone();
        same.subflow_mut(FAST).price.sharing = SubflowSet::one(SLOW);
        same.subflow_mut(SLOW).price.sharing = SubflowSet::one(FAST);
        let expected = if goal == "thrifty" { Err(Reason::Quota) } else { Ok(FAST) };
        assert_eq!(outcome(&same, &spec), expected, "{spec}");
        // If the other one is down, a path goes on.
        for (down, other) in [(FAST, SLOW), (SLOW, FAST)] {
            let mut model = model.clone();
            model.subflow_mut(down).pf = true;
            let expected = if goal == "thrifty" { Err(Reason::Quota) } else { Ok(other) };
            assert_eq!(outcome(&model, &spec), expected, "{spec}");
        }
    }
}

/// The regular path has used up its quota, so the backup path takes its place.
#[test]
fn a_backup_path_takes_the_place_of_one_whose_quota_is_used_up() {
    let mut model = limited(0);
    model.subflow_mut(SLOW).backup = true;
    assert_eq!(outcome(&model, "minrtt+price"), Ok(SLOW));
    model.set_quota(FAST, MSS);
    assert_eq!(outcome(&model, "minrtt+price"), Ok(FAST));
}

#[test]
fn the_next_cheapest_path_takes_the_place_of_one_whose_quota_is_used_up() {
    let mut model = Model::new(vec![path(0, 10, 10), path(1, 30, 10), path(2, 20, 10)], 3 * MSS);
    model.subflow_mut(SLOW).price.cost = 1;
    model.subflow_mut(SubflowId(2)).price.cost = 2;
    for goal in ["aggregate", "interactive", "handover", "thrifty"] {
        let spec = format!("minrtt+price:goal={goal}");
        model.set_quota(FAST, u64::MAX);
        model.subflow_mut(FAST).price.left = u64::MAX;
        assert_eq!(outcome(&model, &spec), Ok(FAST), "{spec}");
        model.set_quota(FAST, 0);
        assert_eq!(outcome(&model, &spec), Ok(SLOW), "{spec}");
    }
}

/// Lets the slow path have sent the first `segments` segments, and nothing be left to send.
fn all_sent(model: &mut Model, segments: u64) {
    model.queue.unsent.clear();
    model.connection.unsent = 0;
    model.connection.snd_nxt = Dsn::new(segments * MSS);
    let carried = SubflowSet::one(SLOW);
    for nth in 0..segments {
        let range = DataRange::with_len(Dsn::new(nth * MSS), MSS);
        model.queue.sent.push(SentRange { range, carried, first: SLOW });
    }
}

/// Returns true if the fast path carries a copy now.
fn copies(model: &Model, scheduler: &mut dyn Scheduler) -> bool {
    let decision = model.ask(scheduler, &mut Outcome::default());
    matches!(decision, Decision::Send { subflow: FAST, what: What::Redundant(_), .. })
}

/// A path with a quota carries copies by the same share as one with a cost, and none if the goal is thrifty.
#[test]
fn a_path_with_a_quota_or_a_cost_carries_few_copies() {
    for (quota, cost) in [(1_000 * MSS, 0), (u64::MAX, 1), (1_000 * MSS, 1)] {
        for (params, most) in [("", 5), (":copies=40", 40), (":copies=0", 0), (":goal=thrifty", 0)]
        {
            let mut model = limited(quota);
            model.subflow_mut(FAST).price.cost = cost;
            // The slow path is no cheaper, and has no room.
            model.subflow_mut(SLOW).price.cost = cost;
            model.subflow_mut(SLOW).cwnd = 0;
            model.subflow_mut(FAST).cwnd = 200 * MSS;
            all_sent(&mut model, 100);
            let scheduler = &mut *build(&format!("redundant+price{params}"));
            for _ in 0..200 {
                let decision = model.ask(scheduler, &mut Outcome::default());
                model.apply(decision, &[]);
            }
            let sent = model.sent[0] / MSS;
            assert_eq!(sent, most, "{params}, quota {quota}, cost {cost}");
        }
    }
}

/// slot tries a free path by copies alone, and one with a quota by new data.
#[test]
fn a_path_with_a_quota_that_gets_no_copies_is_used() {
    for (spec, used) in [("slot", false), ("slot+price:goal=thrifty", true)] {
        let mut model = Model::new(vec![path(0, 10, 10), path(1, 12, 10)], 40 * MSS);
        model.set_quota(SLOW, 1_000 * MSS);
        let scheduler = &mut *build(spec);
        let (subflow, rtt) = (FAST, model.subflows[0].srtt);
        let acked =
            Notice::Acked { subflow, bytes: 20 * MSS, rtt, bandwidth: 0, first_unacked: None };
        scheduler.on_notice(&model.view(), acked);
        let mut out = Outcome::default();
        let mut next = || {
            let decision = model.ask(scheduler, &mut out);
            given(&mut model, decision, &out)
        };
        assert_eq!((0..15).any(|_| next() == Some(SLOW)), used, "{spec}");
    }
}

/// Copies count, and none is sent beyond the quota even if no other path can send.
#[test]
fn no_copy_is_sent_beyond_the_quota() {
    let mut model = limited(MSS);
    all_sent(&mut model, 2);
    let copies = |model: &Model| copies(model, &mut *build("redundant+price:copies=100"));
    assert!(copies(&model));
    model.set_quota(FAST, MSS - 1);
    assert!(!copies(&model));
    model.subflow_mut(SLOW).pf = true;
    assert!(!copies(&model));
}

/// A scheduler that assigns ahead gets no more for the path than the quota holds.
#[test]
fn assigned_data_counts_as_sent() {
    for base in ["otias", "sttf", "linux"] {
        let mut scheduler = build(&format!("{base}+price"));
        let mut model = limited(4 * MSS);
        let mut out = Outcome::default();
        for _ in 0..200 {
            let decision = model.ask(&mut *scheduler, &mut out);
            match decision {
                Decision::Assign { .. } => model.assign(&out.plan),
                Decision::Send { .. } => drop(model.apply(decision, &out.effects)),
                _ => break,
            }
            while model.send_assigned().is_some() {}
        }
        let sent = model.sent[0] + model.subflows[0].queued;
        assert!((1..=4 * MSS).contains(&sent), "{base}: {sent}");
        assert!(model.sent[1] > 0, "{base}");
    }
}

/// The subflow has room, but the data assigned to it takes the rest of the quota.
#[test]
fn assigned_data_leaves_no_room_for_other_data() {
    let again = |quota: u64| {
        let mut model = limited(u64::MAX);
        model.assign(&[(DataRange::new(Dsn::new(MSS), Dsn::new(3 * MSS)), FAST)]);
        model.reinject(DataRange::new(Dsn::ZERO, Dsn::new(MSS)), SubflowSet::EMPTY);
        model.set_quota(FAST, quota);
        outcome(&model, "minrtt+price")
    };
    assert_eq!(again(3 * MSS), Ok(FAST));
    assert_eq!(again(3 * MSS - 1), Ok(SLOW));
}

/// Returns two subflows, 10 ms and 50 ms, with `segments` segments to send. The slow one has a cost.
fn priced(segments: u64) -> Model {
    let mut model = Model::new(vec![path(0, 10, 10), path(1, 50, 10)], segments * MSS);
    model.subflow_mut(SLOW).price.cost = 1;
    model
}

/// An application that writes, over a free path that delivers a segment every few milliseconds.
struct Source {
    model: Model,
    scheduler: Box<dyn Scheduler>,
    /// Segments that the application keeps in its send buffer; it writes nothing by itself if zero.
    buffer: u64,
}

impl Source {
    fn new(spec: &str) -> Source {
        let mut model = priced(0);
        model.queue.unsent.clear();
        Source { model, scheduler: build(spec), buffer: 0 }
    }

    /// Returns one that has written so many chunks of 1.6 s, one every 4 s.
    fn after_chunks(count: usize) -> Source {
        let mut source = Source::new("minrtt+price");
        for _ in 0..count {
            source.write(400);
            source.pass(4_000, 4);
        }
        source
    }

    fn write(&mut self, segments: u64) {
        let it = &mut self.model;
        let start = it.connection.snd_nxt.saturating_add(it.connection.unsent);
        it.queue.unsent.insert(DataRange::with_len(start, segments * MSS));
        it.connection.unsent += segments * MSS;
    }

    /// Passes `millis` milliseconds, `each` for a segment on the free path. Returns the segments that the other
    /// path carries, up to its window.
    fn pass(&mut self, millis: u64, each: u64) -> u64 {
        let other = self.model.subflow_mut(SLOW);
        (other.inflight, other.outstanding) = (0, 0);
        let before = self.model.sent[1];
        for at in 0..millis {
            self.model.now += Span::from_millis(1);
            let free = self.model.subflow_mut(FAST);
            if at % each == 0 {
                free.inflight = free.inflight.saturating_sub(MSS);
                free.outstanding = free.inflight;
            }
            let held: u64 = self.model.subflows.iter().map(|it| it.outstanding).sum();
            let held = (held + self.model.connection.unsent) / MSS;
            self.write(self.buffer.saturating_sub(held));
            let mut out = Outcome::default();
            while let decision @ Decision::Send { .. } =
                self.model.ask(&mut *self.scheduler, &mut out)
            {
                self.model.apply(decision, &[]);
            }
        }
        (self.model.sent[1] - before) / MSS
    }
}

/// Chunks of 1.6 s every 4 s. Only the first one has no history.
#[test]
fn bursts_that_the_free_path_carries_leave_the_other_one_unused() {
    for (spec, later) in [
        ("minrtt+price", 0),
        ("minrtt+price:goal=interactive", 0),
        ("minrtt+price:idle=0", 10),
        ("minrtt+price:goal=interactive,idle=0", 10),
        // The free path is idle for 60 % of the time.
        ("minrtt+price:idle=70", 10),
    ] {
        let mut source = Source::new(spec);
        for chunk in 0..6 {
            source.write(400);
            let expected = if chunk == 0 { 10 } else { later };
            assert_eq!(source.pass(4_000, 4), expected, "{spec}: chunk {chunk}");
        }
    }
}

/// The chunks fit both paths together, but not the free one.
#[test]
fn bursts_that_the_free_path_cannot_carry_use_the_other_one() {
    let mut source = Source::new("minrtt+price");
    for chunk in 0..6 {
        source.write(1_150);
        for part in 0..40 {
            let other = source.pass(100, 4);
            assert!(other > 0 || !(3..=30).contains(&part), "chunk {chunk}, part {part}");
        }
    }
}

#[test]
fn a_long_burst_uses_the_other_path_after_some_seconds() {
    let mut source = Source::after_chunks(6);
    source.write(100_000);
    assert_eq!(source.pass(1_000, 4), 0);
    assert_eq!(source.pass(9_000, 4), 10);
}

/// The chunk takes ten times as long as the ones before.
#[test]
fn a_free_path_that_slows_down_does_not_suffice() {
    let mut source = Source::after_chunks(3);
    source.write(50);
    assert_eq!(source.pass(400, 40), 0);
    assert_eq!(source.pass(200, 40), 10);
}

/// A send buffer of 8 segments does not fill the free path, which holds 10. One of 15 does.
#[test]
fn a_small_send_buffer_does_not_open_the_other_path() {
    for (buffer, opens) in [(8, false), (15, true)] {
        let mut source = Source::new("minrtt+price");
        source.buffer = buffer;
        source.model.connection.app_blocked = true;
        assert_eq!(source.pass(2_000, 1) > 0, opens, "{buffer}");
    }
}

/// The window holds what the free path has in flight.
#[test]
fn a_small_receive_window_does_not_open_the_other_path() {
    for (window, opens) in [(8, false), (15, true)] {
        let mut source = Source::new("minrtt+price");
        source.write(5_000);
        let mut other = 0;
        for _ in 0..2_000 {
            let it = &mut source.model;
            let held: u64 = it.subflows.iter().map(|it| it.outstanding).sum();
            let acked = it.connection.snd_nxt.get().saturating_sub(held);
            it.connection.wnd_end = Dsn::new(acked + window * MSS);
            other += source.pass(1, 1);
        }
        assert_eq!(other > 0, opens, "{window}");
    }
}

/// The application waits for room in the send buffer, or the receive window is full.
#[test]
fn nothing_is_copied_to_a_path_with_a_price_because_a_buffer_is_full() {
    for (quota, cost) in [(1_000 * MSS, 0), (u64::MAX, 1)] {
        let mut model = limited(quota);
        model.subflow_mut(FAST).price.cost = cost;
        model.subflow_mut(SLOW).price.cost = cost;
        all_sent(&mut model, 10);
        let scheduler = "redundant+price:copies=100";
        assert!(copies(&model, &mut *build(scheduler)));
        let mut blocked = model.clone();
        blocked.connection.app_blocked = true;
        assert!(!copies(&blocked, &mut *build(scheduler)));
        let mut closed = model;
        closed.queue.unsent.insert(DataRange::with_len(Dsn::new(10 * MSS), MSS));
        closed.connection.unsent = MSS;
        closed.connection.wnd_end = Dsn::new(10 * MSS);
        assert!(!copies(&closed, &mut *build(scheduler)));
        closed.connection.wnd_end = Dsn::new(11 * MSS);
        assert!(copies(&closed, &mut *build(scheduler)));
    }
}
