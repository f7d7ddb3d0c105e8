//! Cells in the simulator.

use crate::compare::{Cell, RunOutcome, Subject, World};
use crate::scenario::{Both, Path};
use plait_app::Host;
use plait_base::{PathId, Time};
use plait_core::{ConnectionSpec, PathConfig};
use plait_link::LinkConfig;
use plait_sim::{ConnectionSetup, Outcome, PairSetup, PathSetup, Setup, SharedLink, Watch};
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
        via: scenario.via(path),
    });
    let spec = connection_spec(cell, seed);
    let shared = |link: &Path| {
        let links = link.links(scenario.ideal, seed);
        SharedLink { name: link.name.clone(), down: links.link.down, up: links.link.up }
    };
    let connection = ConnectionSetup {
        client: spec.clone(),
        server: spec,
        workload: scenario.workload,
        start: Time::ZERO,
    };
    Setup {
        seed,
        paths: paths.collect(),
        shared: scenario.shared.iter().map(shared).collect(),
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
    let controllers: Vec<plait_cc::Spec> = (0..scenario.paths.len())
        .map(|path| controller(cell, &config, path, &links, seed))
        .collect();
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
    seed: u64,
) -> plait_cc::Spec {
    if !cell.cc.needs_bdp() {
        return cell.cc.clone();
    }
    let scenario = &cell.scenario;
    let (path, own) = (&scenario.paths[path], &links[path].link);
    let mut rtt = path.delay.down + path.delay.up;
    let mean = |link: &Both<LinkConfig>| match scenario.workload.sender() {
        Host::Server => link.down.rate.mean_rate(),
        Host::Client => link.up.rate.mean_rate(),
    };
    let mut rate = mean(own);
    if let Some(shared) = scenario.via(path).and_then(|index| scenario.shared.get(index)) {
        rtt += shared.delay.down + shared.delay.up;
        rate = rate.min(mean(&shared.links(scenario.ideal, seed).link));
    }
    let packets = rate.bytes_in(rtt) / u64::from(config.mtu.max(1));
    cell.cc.with_bdp(packets.max(1) * config.segment_payload())
}
