//! The test of the test: bugs are planted in the core, one at a time, and the swarm has to find
//! each within 1,000 seeds. They are there only in a build with the feature `planted-bugs`:
//! `cargo test -p plait-lab --features planted-bugs --test planted -- --nocapture`.

use plait_core::planted::{Planted, plant};
use plait_lab::Control;
use plait_lab::swarm::{Options, Report, swarm};
use std::sync::atomic::AtomicBool;

const SEEDS: u64 = 1_000;

fn hunt(seeds: u64) -> Report {
    let options = Options { from: 1, seeds, jobs: None, first_only: true, wire: false };
    swarm(&options, &Control { progress: &|_, _| {}, cancelled: &AtomicBool::new(false) })
}

/// One test, for the switch is that of the whole process.
#[test]
fn every_planted_bug_is_found() {
    // A panic that a bug brings about is a finding; it need not be printed.
    std::panic::set_hook(Box::new(|_| {}));
    let sane = hunt(100).failures;
    let mut missed = Vec::new();
    println!("{:<18} {:>6}  how", "planted bug", "seeds");
    for &bug in Planted::ALL {
        plant(Some(bug));
        let report = hunt(SEEDS);
        plant(None);
        let name = format!("{bug:?}");
        match report.failures.first() {
            Some(failure) => {
                let violation = &failure.violation;
                let what: String = violation.what.chars().take(90).collect();
                println!("{name:<18} {:>6}  {:?}: {what}", report.seeds, violation.broken);
            }
            None => {
                println!("{name:<18} {:>6}  not found", "-");
                missed.push(name);
            }
        }
    }
    let _ = std::panic::take_hook();
    assert!(sane.is_empty(), "something breaks without a planted bug: {sane:?}");
    assert!(missed.is_empty(), "not found within {SEEDS} seeds: {missed:?}");
}
