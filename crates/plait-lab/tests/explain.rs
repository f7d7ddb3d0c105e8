//! Tests `plait explain`: the cost of a decision is the difference of two runs, and explaining does not
//! change the run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use plait_app::{AppEvent, Role};
use plait_base::{DataRange, Dsn, SubflowId, Time};
use plait_core::Event;
use plait_lab::explain::{Explanation, Question, Which, explain};
use plait_lab::scenario::no_files;
use plait_lab::{
    Attentive, Cell, Control, RawScenario, Simulator, cells, compare, setup, simulate,
};
use plait_sched::{Decision, Notice, Outcome, Scheduler, Spec, View, What};
use plait_sim::{Watch, Who};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A run of one scheduler.
fn cell(flags: &[(&str, &str)]) -> Cell {
    let mut raw = RawScenario::new();
    for (name, text) in flags {
        raw.argument(name, text).unwrap();
    }
    cells(&raw.build().unwrap()).into_iter().next().unwrap()
}

fn asked(cell: &Cell, seed: u64, which: Which, others: &[&str]) -> Explanation {
    let schedulers = others.iter().map(|name| Spec::parse(name).unwrap()).collect();
    explain(cell, seed, &Question { which, schedulers }, None, &|_, _| ()).unwrap()
}

/// Eleven segments; the window of the fast path holds ten. RTTs of 10 ms and 100 ms, no queues.
const BURST: &[(&str, &str)] = &[
    ("path", "fast:rtt=10ms"),
    ("path", "slow:rtt=100ms"),
    ("workload", "burst:11seg"),
    ("schedulers", "minrtt"),
    ("ideal", "on"),
];

/// Lossy paths with a queue. A message is one window plus a segment, so minrtt makes the whole message wait
/// for a segment on the slow path.
const STREAM: &[(&str, &str)] = &[
    ("path", "fast:rate=10mbit,rtt=20ms,loss=0.5%"),
    ("path", "slow:rate=3mbit,rtt=200ms,loss=0.5%"),
    ("workload", "stream:15kB@1s,for=10s"),
    ("schedulers", "minrtt"),
];

/// Computed by hand: the window of the fast path is full at time 0, so minrtt sends the eleventh segment on
/// the slow path. The segment arrives after 50 ms. On the fast path it could leave with the first
/// acknowledgement, at 10 ms, and arrive at 15 ms. The cost is 35 ms.
#[test]
fn the_cost_of_the_last_segment_of_a_burst_is_that_of_the_hand() {
    let cell = cell(BURST);
    let found = asked(&cell, 1, Which::Slowest(1), &["minrtt", "ecf", "otias"]);
    let [stall] = found.stalls.as_slice() else { panic!("{found:?}") };
    assert_eq!((stall.kind, stall.length_ms, stall.cost_ms), ("tail", 45.0, Some(35.0)));
    let [decision] = stall.decisions.as_slice() else { panic!("{stall:?}") };
    assert_eq!((decision.decision, decision.path.as_deref()), ("send", Some("slow")));
    assert_eq!(decision.reason, "lowest-rtt");
    assert_eq!(decision.subflows[0].free_bytes, 0, "the fast window is full");
    // The estimates are 50 ms for the slow path; for the fast one 5 ms and a tenth of a round trip.
    let sooner = |nth: usize| decision.subflows[nth].predicted_ms.unwrap() - decision.at_ms;
    assert!((sooner(0) - 6.0).abs() < 1e-9 && (sooner(1) - 50.0).abs() < 1e-9);
    assert_eq!(decision.error_ms, Some(0.0));
    assert!((decision.regret_ms.unwrap() - 44.0).abs() < 1e-9);
    assert_eq!(
        (found.primary_value, decision.alternatives[0].primary_value),
        (Some(50.0), Some(15.0))
    );
    let said: Vec<(&str, Option<&str>, bool)> =
        decision.others.iter().map(|it| (it.decision, it.path.as_deref(), it.agrees)).collect();
    let (fast, slow) = (Some("fast"), Some("slow"));
    assert_eq!(said, [("send", slow, true), ("wait", fast, false), ("assign", fast, false)]);
}

/// Keeps one segment for a subflow; written independently of the scheduler that `explain` uses.
#[derive(Debug)]
struct Keeps {
    inner: Box<dyn Scheduler>,
    at: Time,
    segment: DataRange,
    on: SubflowId,
}

impl Scheduler for Keeps {
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let mss = u64::from(view.connection.mss);
        let decision = self.inner.schedule(view, out).one_segment(mss);
        let Decision::Send { what: What::New { .. }, reason, .. } = decision else {
            return decision;
        };
        let next = view.queue.unsent_at(0, mss);
        if view.now != self.at || next != Some(self.segment) {
            return decision;
        }
        out.plan.push((self.segment, self.on));
        Decision::Assign { reason }
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        self.inner.on_notice(view, notice);
    }
}

/// Records when the reader has all data below a position.
struct Until(u64, Option<Time>);

impl Watch for Until {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if let Event::DataReadable { data, .. } = event
            && who.host == Role::Client
            && data.end >= Dsn::new(self.0)
        {
            self.1.get_or_insert(now);
        }
    }

    fn on_app(&mut self, _: Time, _: Who, _: &AppEvent) {}
}

/// For several seeds: `explain` names a segment that minrtt sent on the slow path. The cost that it reports
/// is the difference between two runs that this test makes.
#[test]
fn the_cost_is_the_difference_between_two_runs() {
    let cell = cell(STREAM);
    let mut judged = 0;
    for seed in 1..6 {
        let found = asked(&cell, seed, Which::Slowest(20), &[]);
        for stall in &found.stalls {
            let [decision] = stall.decisions.as_slice() else { continue };
            let (Some(cost), [other]) = (stall.cost_ms, decision.alternatives.as_slice()) else {
                continue;
            };
            let (slow, fast) = (Some("slow"), "fast");
            if (decision.path.as_deref(), other.path.as_str()) != (slow, fast) {
                continue;
            }
            let end = stall.waiting.dsn + stall.waiting.len_bytes;
            let segment =
                DataRange::with_len(Dsn::new(stall.blocking.dsn), stall.blocking.len_bytes);
            let mut run = Until(end, None);
            let _ = simulate(&cell, seed, &mut run);
            let mut changed = setup(&cell, seed);
            let inner = Arc::clone(&changed.pairs[0].connections[0].server.scheduler);
            let at = Time::from_nanos((decision.at_ms * 1e6).round() as u64);
            let on = SubflowId(other.subflow);
            changed.pairs[0].connections[0].server.scheduler =
                Arc::new(move || Box::new(Keeps { inner: inner(), at, segment, on }));
            let mut otherwise = Until(end, None);
            let _ = plait_sim::run_watched(&changed, &mut otherwise);
            let millis = |at: Option<Time>| at.unwrap().as_nanos() as f64 / 1e6;
            let difference = millis(run.1) - millis(otherwise.1);
            assert!((difference - cost).abs() < 1e-6, "{seed}: {difference} {stall:?}");
            judged += usize::from(cost > 20.0);
        }
    }
    assert!(judged >= 10, "{judged} decisions that cost more than a round trip of the fast path");
}

/// A decision to wait is judged as well: ecf holds a segment although the slow path has room.
#[test]
fn a_wait_that_was_right_costs_nothing() {
    let flags: Vec<(&str, &str)> = BURST
        .iter()
        .map(|(name, text)| if *name == "schedulers" { (*name, "ecf") } else { (*name, *text) })
        .collect();
    let cell = cell(&flags);
    let found = asked(&cell, 1, Which::Slowest(5), &["minrtt"]);
    let waited = found.stalls.iter().flat_map(|it| &it.decisions).find(|it| it.decision == "wait");
    let waited = waited.unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!((waited.reason, waited.path.as_deref()), ("fast-finishes-sooner", Some("fast")));
    // 15 ms with waiting, 50 ms on the slow path.
    assert_eq!(waited.cost_ms, Some(-35.0));
    assert_eq!(waited.others[0].path.as_deref(), Some("slow"));
    assert!(!waited.others[0].agrees);
}

/// The explained run is the original run, for every question.
#[test]
fn asking_changes_nothing() {
    for name in ["minrtt", "blest+rp", "sttf", "linux", "daps"] {
        let mut flags = STREAM.to_vec();
        flags.pop();
        flags.push(("schedulers", name));
        let cell = cell(&flags);
        let alone = simulate(&cell, 3, &mut Until(0, None));
        let mean = alone.pairs[0][0].measures.value("message_delay_ms");
        let found = asked(&cell, 3, Which::Slowest(2), &["ecf", "sttf", "stms-a", "minrtt+bm"]);
        assert_eq!(found.primary_value, mean, "{name}");
        // A copy of the same scheduler decides as the original.
        let own = asked(&cell, 3, Which::Slowest(20), &[name]);
        for decision in own.stalls.iter().flat_map(|stall| &stall.decisions) {
            assert!(decision.others.iter().all(|it| it.agrees), "{name}: {decision:?}");
            assert!(
                decision.others.iter().all(|it| Some(it.reason) == Some(Some(decision.reason)))
            );
        }
    }
}

/// `compare --explain` makes the same runs, with a sentence for each row. The sentence has the known cause: a
/// window of 64 KiB fills behind the slow path, and ecf waits.
#[test]
fn each_row_says_why_and_the_runs_are_the_same() {
    let mut raw = RawScenario::new();
    for (name, text) in [
        ("path", "fast:rate=10mbit,rtt=20ms,queue=20ms"),
        ("path", "slow:rate=2mbit,rtt=300ms"),
        ("workload", "download:3MB"),
        ("schedulers", "ecf,roundrobin,minrtt"),
        ("rcvbuf", "128KiB"),
    ] {
        raw.argument(name, text).unwrap();
    }
    let scenario = raw.build().unwrap();
    let never = AtomicBool::new(false);
    let control = Control::unwatched(&never);
    let told = compare(&scenario, &Attentive, &control, &no_files).unwrap();
    let plain = compare(&scenario, &Simulator, &control, &no_files).unwrap();
    let (told, plain) = (&told.reports()[0], &plain.reports()[0]);
    assert_eq!(told.digest, plain.digest);
    assert!(plain.rows.iter().all(|row| row.why.is_none()));
    let why = |name: &str| {
        let row = told.rows.iter().find(|row| row.scheduler == name).unwrap();
        row.why.clone().unwrap_or_else(|| panic!("{name}"))
    };
    let best = told.rows.iter().filter(|row| row.why.as_ref().unwrap().starts_with("the best row"));
    assert_eq!(best.count(), 1);
    for (name, words) in [
        ("roundrobin", "receive window blocked "),
        ("roundrobin", " behind slow ("),
        ("tcp:slow", "receive window blocked "),
    ] {
        assert!(why(name).contains(words), "{name}: {}", why(name));
    }
    // A single path has no facts about the other path.
    let foreign = ["behind fast", "for fast", "fast idle", "on fast"];
    assert!(foreign.iter().all(|words| !why("tcp:slow").contains(words)), "{}", why("tcp:slow"));
}
