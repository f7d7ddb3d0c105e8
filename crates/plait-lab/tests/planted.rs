//! Tests the swarm: it must find each of the bugs planted in the core and in the engine, one at a time. Only
//! builds with the feature `planted-bugs` contain them, and those of the core are in a patch: `tests/planted cargo test
//! -p plait-lab --features planted-bugs --test planted -- --nocapture`. `PLAIT_SEED=S` starts at seed S instead of 1.

use plait_core::planted as core;
use plait_engine::planted as engine;
use plait_lab::Control;
use plait_lab::swarm::{Only, Options, Report, swarm};
use std::sync::atomic::AtomicBool;

/// Number of cases, by kind, within which each bug must be found.
const NETWORKS: u64 = 1_000;
const SERVERS: u64 = 300;

/// Bugs of the core that only a server with many clients shows.
const OF_SERVERS: [core::Planted; 1] = [core::Planted::WaitsInFull];

fn hunt(only: Only, seeds: u64) -> Report {
    let from = std::env::var("PLAIT_SEED").ok().and_then(|it| it.parse().ok()).unwrap_or(1);
    let only = Some(only);
    let options = Options { from, seeds, jobs: None, first_only: true, wire: false, only };
    swarm(&options, &Control::unwatched(&AtomicBool::new(false))).expect("seeds that there are")
}

/// Searches for the planted bug and prints where it was found. Returns true if it was found.
fn is_found(name: &str, only: Only) -> bool {
    let report = hunt(only, if only == Only::Server { SERVERS } else { NETWORKS });
    let server = report.server.as_ref().and_then(|it| it.failures.first());
    let violation = report.failures.first().map(|it| &it.violation);
    let violation = violation.or(server.map(|it| &it.violation));
    let Some(violation) = violation else {
        println!("{name:<18} {:>6}  not found", "-");
        return false;
    };
    let what: String = violation.what.chars().take(90).collect();
    println!("{name:<18} {:>6}  {:?}: {what}", report.seeds, violation.broken);
    true
}

/// One test, because the switches affect the whole process.
#[test]
fn every_planted_bug_is_found() {
    const {
        assert!(
            core::IN_PLACE,
            "build it in the tree with the patch: `tests/planted cargo test ...`"
        );
    };
    // A panic caused by a bug is a finding, and need not be printed.
    std::panic::set_hook(Box::new(|_| {}));
    let sane = [hunt(Only::Network, 100).broken, hunt(Only::Server, 100).broken];
    let mut missed = Vec::new();
    println!("{:<18} {:>6}  how", "planted bug", "seeds");
    for &bug in core::Planted::ALL {
        let only = if OF_SERVERS.contains(&bug) { Only::Server } else { Only::Network };
        core::plant(Some(bug));
        let name = format!("{bug:?}");
        if !is_found(&name, only) {
            missed.push(name);
        }
        core::plant(None);
    }
    for &bug in engine::Planted::ALL {
        engine::plant(Some(bug));
        let name = format!("{bug:?}");
        if !is_found(&name, Only::Server) {
            missed.push(name);
        }
        engine::plant(None);
    }
    let _ = std::panic::take_hook();
    assert_eq!(sane, [0, 0], "something breaks without a planted bug");
    assert!(missed.is_empty(), "not found: {missed:?}");
}
