//! Tests the verdicts of a comparison on rows with a known difference. Rows with the same rule do
//! not differ, and a planted difference is found.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common::scenario;
use plait_base::RandomStream;
use plait_lab::scenario::no_files;
use plait_lab::{
    Cell, Control, Report, Row, RunOutcome, Simulator, Subject, World, compare, run_seed,
};
use std::sync::atomic::AtomicBool;

/// The row that runs another rule.
const TWIN: &str = "roundrobin";

/// Runs `ecf` as `roundrobin` as well.
struct Twins {
    /// True if the twin has other seeds, and therefore other losses, phases and jitter.
    independent: bool,
    /// The factor of the twin's completion time.
    factor: f64,
}

impl World for Twins {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        let is_twin = cell.to_string() == TWIN;
        let mut cell = cell.clone();
        if is_twin {
            cell.subject = Subject::Scheduler(plait_sched::Spec::parse("ecf").unwrap());
        }
        let seed = if is_twin && self.independent { run_seed(seed, 77) } else { seed };
        let mut outcome = Simulator.run(&cell, seed);
        if is_twin {
            let completion = &mut outcome.measures.completion_ms;
            *completion = completion.map(|it| it * self.factor);
        }
        outcome
    }
}

/// Returns the number of scenarios of a test: 200 in the long version.
fn scenarios(short: u64) -> u64 {
    if std::env::var_os("PLAIT_SOAK").is_some() { 200 } else { short }
}

/// Draws a scenario: two paths with or without loss, a download or a stream.
fn drawn(nth: u64, downloads: bool) -> String {
    let mut stream = RandomStream::new(nth, &["verdicts"]);
    let mut path = |name: &str| {
        let rate = stream.within(2_000, 40_000);
        let rtt = stream.within(8, 120);
        let queue = stream.within(20, 200);
        let loss = ["0%", "0%", "0.1%", "0.5%", "1%"][stream.below(5) as usize];
        format!("--path {name}:rate={rate}kbit,rtt={rtt}ms,queue={queue}ms,loss={loss}")
    };
    let paths = format!("{} {}", path("a"), path("b"));
    let kb = stream.within(50, 400);
    let workload = match stream.below(4) {
        0 if !downloads => format!("stream:{}kB@40ms,for=2s", kb / 40 + 1),
        _ => format!("download:{kb}kB"),
    };
    format!("{paths} --workload {workload} --schedulers ecf,{TWIN} --runs 30 --seed {}", nth + 1)
}

fn reported(line: &str, world: &Twins) -> Report {
    let never = AtomicBool::new(false);
    let control = Control::unwatched(&never);
    compare(&scenario(line), world, &control, &no_files).unwrap().points.remove(0)
}

fn twins(report: &Report) -> [&Row; 2] {
    ["ecf", TWIN].map(|name| report.rows.iter().find(|row| row.scheduler == name).unwrap())
}

#[test]
fn the_same_rule_under_two_names_is_identical_and_tied() {
    for nth in 0..scenarios(12) {
        let line = drawn(nth, false);
        let report = reported(&line, &Twins { independent: false, factor: 1.0 });
        let [ecf, twin] = twins(&report);
        assert_eq!((ecf.standing.group, twin.standing.group), (Some(1), Some(1)), "{line}");
        let named = |set: &Vec<String>| ["ecf", TWIN].iter().all(|it| set.iter().any(|n| n == it));
        assert!(
            report.findings.identical.iter().any(named),
            "{line}: {:?}",
            report.findings.identical
        );
        assert!(
            report.findings.tails.iter().all(|tail| tail.other != TWIN && tail.row != TWIN),
            "{line}"
        );
    }
}

#[test]
fn the_same_rule_with_other_randomness_never_wins() {
    for nth in 0..scenarios(20) {
        let line = drawn(nth, false);
        let report = reported(&line, &Twins { independent: true, factor: 1.0 });
        let [ecf, twin] = twins(&report);
        assert_eq!(
            (ecf.standing.group, twin.standing.group),
            (Some(1), Some(1)),
            "{line}: {ecf:?} {twin:?}"
        );
        let between = |name: &str| name == "ecf" || name == TWIN;
        let said =
            report.findings.tails.iter().find(|tail| between(&tail.row) && between(&tail.other));
        assert_eq!(said, None, "{line}");
    }
}

#[test]
fn five_percent_over_the_same_networks_are_told() {
    let count = scenarios(20);
    let mut told = 0;
    for nth in 0..count {
        let never = AtomicBool::new(false);
        let control = Control::unwatched(&never);
        let document =
            compare(&scenario(&drawn(nth, true)), &Planted, &control, &no_files).unwrap();
        let [ecf, twin] = twins(&document.points[0]);
        told += u64::from(ecf.standing.group == Some(1) && twin.standing.group == Some(2));
    }
    assert!(told * 100 >= count * 95, "{told} of {count}");
}

/// Runs `ecf` as `roundrobin` as well, 5 % slower and with an additional scatter of 3 %.
struct Planted;

impl World for Planted {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        // The sum of twelve uniform numbers minus six is nearly normal, with standard deviation 1.
        let mut stream = RandomStream::new(seed, &["scatter"]);
        let normal = (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0;
        Twins { independent: false, factor: 1.05 * (1.0 + 0.03 * normal) }.run(cell, seed)
    }
}
