//! Cells in the simulator.

use crate::compare::{Cell, RunOutcome, Subject, World};
use plait_app::Host;
use plait_base::{PathId, Time};
use plait_core::{ConnectionSpec, PathConfig};
use plait_sim::{ConnectionSetup, Outcome, PairSetup, PathSetup, Setup, Watch};
use std::sync::Arc;

/// The simulator as the world of a comparison.
#[derive(Clone, Copy, Default, Debug)]
pub struct Simulator;

impl World for Simulator {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        let mut outcome = plait_sim::run(&setup(cell, seed));
        let completed = outcome.complete();
        let connection = outcome.pairs.pop().and_then(|mut pair| pair.pop());
        RunOutcome {
            measures: connection.map(|connection| connection.measures).unwrap_or_default(),
            hash: outcome.digest.value(),
            completed,
            violation: outcome.violation,
        }
    }
}

/// Runs a cell once and lets somebody watch.
#[must_use]
pub fn simulate(cell: &Cell, seed: u64, watch: &mut dyn Watch) -> Outcome {
    plait_sim::run_watched(&setup(cell, seed), watch)
}

/// The set-up of one run of a cell: its paths with the randomness of `seed`, one pair of hosts, one
/// connection. Every path is there in every row, so that all rows meet the same network.
#[must_use]
pub fn setup(cell: &Cell, seed: u64) -> Setup {
    let scenario = &cell.scenario;
    let links = scenario.links(seed);
    let paths = scenario.paths.iter().zip(&links).map(|(path, links)| PathSetup {
        name: path.name.clone(),
        down: links.link.down.clone(),
        up: links.link.up.clone(),
        nic_down: links.nic,
        nic_up: links.nic,
        via: None,
    });
    let spec = connection_spec(cell, seed);
    let connection = ConnectionSetup {
        client: spec.clone(),
        server: spec,
        workload: scenario.workload,
        start: Time::ZERO,
    };
    Setup {
        seed,
        paths: paths.collect(),
        shared: Vec::new(),
        pairs: vec![PairSetup { connections: vec![connection] }],
        until: Time::ZERO + scenario.deadline(),
        check: scenario.check,
        linger: false,
    }
}

/// What both ends of the cell's connection are made from.
fn connection_spec(cell: &Cell, seed: u64) -> ConnectionSpec {
    let scenario = &cell.scenario;
    let (used, scheduler) = match &cell.subject {
        Subject::Scheduler(spec) => ((0..scenario.paths.len()).collect(), spec.clone()),
        // With one subflow every scheduler decides the same (schedulers 3.2).
        Subject::SinglePath(path) => {
            (vec![*path], plait_sched::Spec::of(&plait_sched::SCHEDULERS[0]))
        }
    };
    let links = scenario.links(seed);
    let path_config = |index: &usize| PathConfig {
        path: PathId(*index as u16),
        backup: links.get(*index).is_some_and(|links| links.backup),
    };
    let config = cell.connection();
    let controllers: Vec<plait_cc::Spec> =
        (0..scenario.paths.len()).map(|path| controller(cell, &config, path, &links)).collect();
    ConnectionSpec {
        config,
        paths: used.iter().map(path_config).collect(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |path| match controllers.get(path.index()) {
            Some(spec) => spec.build(),
            None => plait_cc::Spec::default().build(),
        }),
    }
}

/// The controller of a path, with `BDP` resolved: the whole packets that the path holds without a
/// queue, in payload bytes.
fn controller(
    cell: &Cell,
    config: &plait_core::Config,
    path: usize,
    links: &[crate::scenario::PathLinks],
) -> plait_cc::Spec {
    if !cell.cc.needs_bdp() {
        return cell.cc.clone();
    }
    let delay = &cell.scenario.paths[path].delay;
    let rtt = delay.down + delay.up;
    let link = &links[path].link;
    let rate = match cell.scenario.workload.sender() {
        Host::Server => link.down.rate.mean_rate(),
        Host::Client => link.up.rate.mean_rate(),
    };
    let packets = rate.bytes_in(rtt) / u64::from(config.mtu.max(1));
    cell.cc.with_bdp(packets.max(1) * config.segment_payload())
}
