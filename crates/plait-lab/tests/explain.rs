//! Tests `plait explain`: the cost of a decision is the difference of two runs, and explaining does not
//! change the run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use plait_app::{AppEvent, Role};
use plait_base::{DataRange, Dsn, SubflowId, Time};
use plait_core::Event;
use plait_lab::explain::{ExplainControl, Explanation, Question, Unexplained, Which, explain};
use plait_lab::scenario::no_files;
use plait_lab::{
    Attentive, Cell, Control, RawScenario, Simulator, cells, compare, setup, simulate,
};
use plait_sched::{About, Decision, Entry, Notice, Outcome, Params, Scheduler, Spec, View, What};
use plait_sim::{EVENTS_BETWEEN_LOOKS, Watch, Who};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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
    let never = AtomicBool::new(false);
    let control = ExplainControl::unwatched(&never);
    explain(cell, seed, &Question { which, schedulers }, None, &control).unwrap()
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

/// Set by [`Stopper`] and by the tests of cancellation, and read by `explain`.
static CANCELLED: AtomicBool = AtomicBool::new(false);
/// Number of objects of [`Stopper`].
static BUILT: AtomicU64 = AtomicU64::new(0);
/// Number of the object that sets [`CANCELLED`] at its first decision.
static STOPS_AT: AtomicU64 = AtomicU64::new(0);
/// Decisions of all objects.
static DECISIONS: AtomicU64 = AtomicU64::new(0);
/// Decisions of all objects after [`CANCELLED`] was set.
static LATE: AtomicU64 = AtomicU64::new(0);
/// Limit of [`LATE`]. An event has several decisions if several segments leave.
const MOST_LATE: u64 = 4 * EVENTS_BETWEEN_LOOKS;

/// The built-in `minrtt`, of which one object cancels the explanation.
#[derive(Debug)]
struct Stopper {
    number: u64,
    inner: Box<dyn Scheduler>,
}

impl Stopper {
    fn build(_: &Params) -> Box<dyn Scheduler> {
        let number = BUILT.fetch_add(1, Ordering::Relaxed) + 1;
        Box::new(Stopper { number, inner: Spec::parse("minrtt").unwrap().build() })
    }
}

impl Scheduler for Stopper {
    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        DECISIONS.fetch_add(1, Ordering::Relaxed);
        if CANCELLED.load(Ordering::Relaxed) {
            LATE.fetch_add(1, Ordering::Relaxed);
        } else if self.number >= STOPS_AT.load(Ordering::Relaxed) {
            CANCELLED.store(true, Ordering::Relaxed);
        }
        self.inner.schedule(view, out)
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        self.inner.on_notice(view, notice);
    }
}

/// The explanation stops in its first run, in the run that queries other schedulers, in a replay, and between
/// replays. No further run begins, and the run under way stops after a few of its decisions.
#[test]
fn an_explanation_that_is_cancelled_stops_in_each_of_its_runs() {
    let minrtt = plait_sched::SCHEDULERS[0];
    let about = About { name: "stopper", aliases: &[], ..minrtt.about };
    plait_sched::register_apart(&[Entry { about, build: Stopper::build, ..minrtt }]).unwrap();
    let mut flags = STREAM.to_vec();
    flags.truncate(2);
    flags.push(("workload", "stream:15kB@1s,for=3600s"));
    flags.extend([("schedulers", "stopper"), ("jobs", "1")]);
    let cell = cell(&flags);
    let stopped = |others: &[&str], stops_at, most| {
        let schedulers = others.iter().map(|name| Spec::parse(name).unwrap()).collect();
        let question = Question { which: Which::Slowest(20), schedulers };
        explained_until(&cell, &question, stops_at, most)
    };
    // A run builds an object for each end, and a third one if it queries a scheduler.
    let (run, querying) = (2, 3);
    let never = u64::MAX;
    let asked = &["stopper"];
    assert_eq!(stopped(asked, 1, never), Stopped { built: run, threads: 0, replays: 0 });
    let built = run + querying;
    assert_eq!(stopped(asked, run + 1, never), Stopped { built, threads: 0, replays: 0 });
    let until_replay = Stopped { built: built + run, threads: 1, replays: 0 };
    assert_eq!(stopped(asked, built + 1, never), until_replay);
    assert_eq!(stopped(&[], never, 2), Stopped { built: 3 * run, threads: 1, replays: 2 });
    let decisions = DECISIONS.load(Ordering::Relaxed) / 3;
    assert!(
        decisions > 3 * MOST_LATE,
        "{decisions} decisions of a run, and {MOST_LATE} are allowed"
    );
}

/// How far an explanation came.
#[derive(PartialEq, Debug)]
struct Stopped {
    /// Number of objects of [`Stopper`].
    built: u64,
    /// Number of threads that made replays.
    threads: u64,
    /// Number of finished replays.
    replays: u64,
}

/// Explains until the object with the number `stops_at` decides, or until `most` replays are finished.
fn explained_until(cell: &Cell, question: &Question, stops_at: u64, most: u64) -> Stopped {
    for (count, value) in [(&BUILT, 0), (&DECISIONS, 0), (&LATE, 0), (&STOPS_AT, stops_at)] {
        count.store(value, Ordering::Relaxed);
    }
    CANCELLED.store(false, Ordering::Relaxed);
    let (threads, replays) = (AtomicU64::new(0), AtomicU64::new(0));
    let progress = |done: usize, total: usize| {
        assert!(done < total, "{total} replays are too few to stop between them");
        if replays.fetch_add(1, Ordering::Relaxed) + 1 == most {
            CANCELLED.store(true, Ordering::Relaxed);
        }
    };
    let on_thread = |work: &(dyn Fn() + Sync)| {
        threads.fetch_add(1, Ordering::Relaxed);
        work();
    };
    let control =
        ExplainControl { progress: &progress, on_thread: &on_thread, cancelled: &CANCELLED };
    assert_eq!(explain(cell, 1, question, None, &control), Err(Unexplained::Cancelled));
    let late = LATE.load(Ordering::Relaxed);
    assert!(late < MOST_LATE, "{late} decisions after the cancellation");
    let built = BUILT.load(Ordering::Relaxed);
    Stopped { built, threads: threads.into_inner(), replays: replays.into_inner() }
}
