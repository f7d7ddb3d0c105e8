//! The simulator as a world of the laboratory: a cell and a seed become a set-up, its outcome
//! becomes measures.

use plait_base::{PathId, Rate, Time};
use plait_core::{ConnectionSpec, PathConfig};
use plait_lab::scenario::{Path, PathLinks};
use plait_lab::{Cell, RunOutcome, Scenario, Subject, World};
use plait_sim::{ConnectionSetup, PairSetup, PathSetup, Setup, Watch};
use std::sync::{Arc, Mutex};

/// Bytes of a packet that no payload can be: headers and timestamps.
const OVERHEAD: u64 = 52;

/// Virtual time.
#[derive(Default)]
pub(crate) struct Simulator {
    violation: Mutex<Option<String>>,
}

impl Simulator {
    /// The first invariant that a run with `--check` found violated.
    pub(crate) fn violation(&self) -> Option<String> {
        self.violation.lock().ok().and_then(|found| found.clone())
    }

    /// Runs a cell once, with somebody who watches.
    pub(crate) fn run_watched(cell: &Cell, seed: u64, watch: &mut dyn Watch) -> plait_sim::Outcome {
        plait_sim::run_watched(&setup(cell, seed), watch)
    }

    fn outcome(&self, cell: &Cell, seed: u64, outcome: plait_sim::Outcome) -> RunOutcome {
        if let (Some(violation), Ok(mut found)) = (&outcome.violation, self.violation.lock()) {
            found.get_or_insert_with(|| format!("{cell}, seed {seed}: {violation}"));
        }
        let completed = outcome.complete() && outcome.violation.is_none();
        let hash = outcome.digest.value();
        let connection = outcome.pairs.into_iter().flatten().next();
        RunOutcome {
            measures: connection.map(|connection| connection.measures).unwrap_or_default(),
            hash,
            completed,
        }
    }
}

impl World for Simulator {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        self.outcome(cell, seed, plait_sim::run(&setup(cell, seed)))
    }
}

/// One pair of hosts with one connection over the paths of the scenario.
fn setup(cell: &Cell, seed: u64) -> Setup {
    let scenario = &cell.scenario;
    let links = scenario.links(seed);
    let spec = connection(cell, &links);
    let connection = ConnectionSetup {
        client: spec.clone(),
        server: spec,
        workload: scenario.workload.clone(),
        start: Time::ZERO,
    };
    let path = |(path, links): (&Path, PathLinks)| PathSetup {
        name: path.name.clone(),
        down: links.link.down,
        up: links.link.up,
        nic_down: links.nic,
        nic_up: links.nic,
    };
    Setup {
        seed,
        paths: scenario.paths.iter().zip(links).map(path).collect(),
        pairs: vec![PairSetup { connections: vec![connection] }],
        until: Time::ZERO + scenario.deadline(),
        check: scenario.check,
        linger: false,
    }
}

fn connection(cell: &Cell, links: &[PathLinks]) -> ConnectionSpec {
    let every = links
        .iter()
        .enumerate()
        .map(|(index, links)| PathConfig { path: PathId(index as u16), backup: links.backup });
    let (paths, scheduler) = match &cell.subject {
        Subject::Scheduler(spec) => (every.collect(), spec.clone()),
        Subject::SinglePath(at) => {
            let only: Vec<_> = every.skip(*at).take(1).collect();
            // With one path there is nothing to choose; every scheduler does the same.
            (only, plait_sched::Spec::of(&plait_sched::SCHEDULERS[0]))
        }
    };
    let config = cell.connection();
    let payload = config.segment_payload();
    let of_path = |path: &Path| {
        let product = bandwidth_delay(&cell.scenario, path).unwrap_or(u64::MAX);
        let mtu = u64::from(config.mtu).max(OVERHEAD);
        cell.cc.with_bdp((product / mtu).saturating_mul(payload).max(payload))
    };
    let controllers: Vec<plait_cc::Spec> = cell.scenario.paths.iter().map(of_path).collect();
    let default = cell.cc.clone();
    ConnectionSpec {
        config,
        paths,
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |path| controllers.get(path.index()).unwrap_or(&default).build()),
    }
}

/// Mean rate times propagation of a path in the direction of the data, in bytes of IP packets;
/// `None` where the rate has no limit.
pub(crate) fn bandwidth_delay(scenario: &Scenario, path: &Path) -> Option<u64> {
    let upward = matches!(scenario.workload, plait_app::Workload::Upload { .. });
    let speed = if upward { &path.speed.up } else { &path.speed.down };
    let rate = speed.as_ref().filter(|_| !scenario.ideal).map(plait_lab::scenario::Speed::mean)?;
    (rate != Rate::INFINITE).then(|| rate.bytes_in(path.delay.down + path.delay.up))
}
