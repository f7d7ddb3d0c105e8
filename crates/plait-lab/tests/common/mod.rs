//! Runs scenarios in the form of a command line in the simulator.
#![allow(dead_code, reason = "every test program uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use plait_app::file;
use plait_lab::{Cell, Control, RawScenario, Report, Row, RunOutcome, Scenario, Simulator, World};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Parses the settings in `line`, such as `--path a:rtt=9ms,rate=1mbit --workload bulk:2s`. A setting without
/// a value is a switch.
pub(crate) fn raw(line: &str) -> RawScenario {
    let mut raw = RawScenario::new();
    for setting in line.split("--").skip(1) {
        let (name, text) = setting.trim().split_once(' ').unwrap_or((setting.trim(), "on"));
        raw.argument(name, text.trim()).unwrap_or_else(|error| panic!("{line}\n{error}"));
    }
    raw
}

pub(crate) fn scenario(line: &str) -> Scenario {
    raw(line).build_with(&file::named).unwrap_or_else(|error| panic!("{line}\n{error}"))
}

/// Returns the report of a comparison. It is exact if nothing is random and the line has no jitter.
pub(crate) fn report(line: &str) -> Report {
    let never = AtomicBool::new(false);
    let control = Control::unwatched(&never);
    let mut raw = raw(line);
    if !raw.says("exact") && !raw.says("host-jitter") {
        raw.argument("exact", "on").unwrap();
    }
    let scenario = raw.build_with(&file::named).unwrap_or_else(|error| panic!("{line}\n{error}"));
    match plait_lab::compare(&scenario, &Simulator, &control, &file::named) {
        Ok(mut document) => document.points.remove(0),
        Err(error) => panic!("{line}\n{error}"),
    }
}

/// Makes one run of each row, in the order of the report.
pub(crate) fn runs(line: &str) -> Vec<(Cell, RunOutcome)> {
    let scenario = scenario(line);
    let cells = plait_lab::cells(&scenario);
    cells
        .into_iter()
        .map(|cell| {
            let outcome = Simulator.run(&cell, scenario.seed);
            (cell, outcome)
        })
        .collect()
}

pub(crate) fn row<'a>(report: &'a Report, name: &str) -> &'a Row {
    report.rows.iter().find(|row| row.scheduler == name).unwrap_or_else(|| panic!("no row {name}"))
}

/// Returns the median of a measure in a row.
pub(crate) fn median(row: &Row, measure: &str) -> f64 {
    row.measures.get(measure).map_or(f64::NAN, |summary| summary.median)
}

/// Returns the directory of recorded links; prints a note if there are none.
pub(crate) fn recorded() -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("PLAIT_DATA").map_or_else(beside, PathBuf::from).join("traces");
    if data.is_dir() {
        return Some(data);
    }
    skipped(&format!("tests over recorded links: {} is absent", data.display()));
    None
}

/// Prints why a test is skipped. The test harness hides the output of `println!` in passing tests.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stdout(), "\nskipped: {why}");
}

/// Returns the goodputs in Mbit/s of the first row's connection and of each competing flow, for each seed.
pub(crate) fn shares(line: &str, seeds: u32) -> Vec<Vec<f64>> {
    let scenario = scenario(line);
    let cell = plait_lab::cells(&scenario).remove(0);
    let run = |run: u32| {
        let outcome = Simulator.run(&cell, plait_lab::run_seed(scenario.seed, run));
        assert!(outcome.counts(), "{line}: {:?}", outcome.violation);
        let own = outcome.measures.goodput_mbps.unwrap_or(0.0);
        [vec![own], outcome.competing.concat()].concat()
    };
    (0..seeds).map(run).collect()
}

/// Returns Jain's index of fairness: 1 if all flows get the same, 1/n if one gets everything.
pub(crate) fn jain(goodputs: &[f64]) -> f64 {
    let sum: f64 = goodputs.iter().sum();
    let squares: f64 = goodputs.iter().map(|it| it * it).sum();
    sum * sum / (goodputs.len() as f64 * squares)
}
