//! Tests paths with a cost: when they carry data, and how much of it is copies.

use crate::common;
use plait_app::{Measures, Role};
use plait_base::{SubflowId, Time};
use plait_core::{Carry, Event};
use plait_lab::{Cell, Simulator, World};
use plait_sim::{Watch, Who};

const LINKS: &str = "--path wifi:rate=20mbit,rtt=22ms --path lte:rate=10mbit,rtt=60ms,cost=1";

/// The payload bytes that the server sent.
#[derive(Default)]
struct Sent {
    first: u64,
    /// Copies on each subflow but the first.
    again: u64,
}

impl Watch for Sent {
    fn on_core(&mut self, _now: Time, who: Who, event: &Event) {
        if let Event::DataSent { subflow, data, carry } = event
            && who.host == Role::Server
        {
            match carry {
                Carry::New => self.first += data.len(),
                Carry::Redundant | Carry::Opportunistic if *subflow != SubflowId::FIRST => {
                    self.again += data.len();
                }
                _ => {}
            }
        }
    }
}

fn cell(line: &str) -> Cell {
    plait_lab::cells(&common::scenario(line)).swap_remove(0)
}

/// Returns the measures of a run that ends in time.
fn run(line: &str, seed: u64) -> Measures {
    let outcome = Simulator.run(&cell(line), seed);
    assert!(outcome.measures.complete, "{line}");
    outcome.measures
}

/// Returns the share of the second path in all payload bytes.
fn second(measures: &Measures) -> f64 {
    let sent = |at: usize| measures.paths[at].sent_bytes as f64;
    sent(1) / (sent(0) + sent(1))
}

/// Returns the share of the second path for the default scheduler.
fn share(workload: &str, goal: &str, seed: u64) -> f64 {
    second(&run(&format!("{LINKS} --workload {workload} --goal {goal} --schedulers slot"), seed))
}

#[test]
fn a_stream_below_the_rate_of_the_free_path_leaves_the_other_one_unused() {
    for goal in ["aggregate", "interactive", "handover", "thrifty"] {
        for (workload, seed) in [
            ("stream:10kB@40ms,for=10s", 1),
            ("stream:10kB@40ms,for=10s", 2),
            ("stream:60kB@40ms,for=10s", 3),
        ] {
            let share = share(workload, goal, seed);
            assert!(share < 0.01, "{workload}, {goal}: {share}");
        }
    }
}

#[test]
fn a_stream_above_it_and_a_download_use_the_other_one() {
    for goal in ["aggregate", "interactive"] {
        for workload in ["stream:125kB@40ms,for=10s", "download:2MB", "bulk:5s"] {
            let share = share(workload, goal, 1);
            assert!(share > 0.1, "{workload}, {goal}: {share}");
        }
    }
    for goal in ["handover", "thrifty"] {
        for workload in ["stream:125kB@40ms,for=5s", "download:2MB"] {
            let share = share(workload, goal, 1);
            assert!(share < 0.01, "{workload}, {goal}: {share}");
        }
    }
}

#[test]
fn handover_and_thrifty_use_the_other_path_in_an_outage() {
    for goal in ["handover", "thrifty"] {
        let line = format!(
            "--path wifi:rate=20mbit,rtt=22ms,down=1s.. --path lte:rate=10mbit,rtt=60ms,cost=1 \
             --workload download:4MB --goal {goal} --schedulers slot"
        );
        let share = second(&run(&line, 1));
        assert!(share > 0.2, "{goal}: {share}");
    }
}

#[test]
fn copies_on_a_path_with_a_cost_stay_below_their_share() {
    let mut copied = 0;
    for seed in 0..12_u64 {
        let (loss, jitter) = (seed % 4, 5 * (seed % 3));
        let (rate, rtt) = (5 + 3 * (seed % 5), 10 + 17 * (seed % 6));
        for workload in ["stream:20kB@30ms,for=6s", "download:3MB"] {
            for (goal, most) in [("aggregate", 0.05), ("interactive", 0.05), ("thrifty", 0.0)] {
                let line = format!(
                    "--path wifi:rate={rate}mbit,rtt={rtt}ms,loss={loss}%,jitter={jitter}ms \
                     --path lte:rate=10mbit,rtt=60ms,loss=1%,cost=3 --workload {workload} \
                     --goal {goal} --schedulers slot"
                );
                let mut sent = Sent::default();
                let outcome = plait_lab::simulate(&cell(&line), seed, &mut sent);
                assert_eq!(outcome.violation, None, "{line}");
                copied += sent.again;
                let share = sent.again as f64 / sent.first as f64;
                assert!(share <= most, "{share}: {line} (seed {seed})");
            }
        }
    }
    // The links give reason to copy.
    assert!(copied > 100_000, "{copied}");
}

#[test]
fn without_costs_the_decorator_changes_no_run() {
    let line = "--path wifi:rate=20mbit,rtt=22ms,loss=1% --path lte:rate=10mbit,rtt=60ms \
                --workload download:2MB --schedulers";
    for seed in 1..4 {
        let plain = run(&format!("{line} slot"), seed);
        let priced = run(&format!("{line} slot+price"), seed);
        assert_eq!(format!("{plain:?}"), format!("{priced:?}"));
    }
}
