//! Compares two schedulers on a scenario in a text: no file is read or written.

use plait_lab::scenario::no_files;
use plait_lab::{Control, EndedRun, RawScenario, Simulator, compare};
use std::sync::atomic::AtomicBool;

const SCENARIO: &str = r#"
workload = "download:512kB"
schedulers = "minrtt,ecf"
runs = 5
path = ["wifi:rtt=25ms,rate=25mbit,loss=0.5%", "lte:rtt=60ms,rate=8mbit"]
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = RawScenario::from_toml("scenario", SCENARIO)?.build()?;
    // Another thread may set it to stop the comparison; the report then has the runs that ended.
    let cancelled = AtomicBool::new(false);
    let each_run = |run: EndedRun<'_>| {
        println!("{}, seed {}: {:?} ms", run.cell, run.seed, run.outcome.measures.completion_ms);
    };
    let control = Control { each_run: &each_run, ..Control::unwatched(&cancelled) };
    let document = compare(&scenario, &Simulator, &control, &no_files)?;
    for row in document.reports().iter().flat_map(|report| &report.rows) {
        println!("{}: median {:.1} ms", row.scheduler, row.measures["completion_ms"].median);
    }
    Ok(())
}

#[test]
fn it_runs() {
    assert!(main().is_ok());
}
