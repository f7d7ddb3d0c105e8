//! Runs cells in the simulator.

use crate::bound::{Bound, BoundedRun};
use crate::compare::{Cell, RunOutcome, Subject, World};
use crate::scenario::{Both, Competition, Path, Scenario, Sender, Subflows, Udp};
use crate::ssthresh_cache;
use plait_app::measure::{HabitObserver, ideal_bit_rate};
use plait_app::{AppEvent, Role, Workload};
use plait_base::{PathId, Rate, Span, Time};
use plait_core::{Config, ConnectionSpec, Detail, Event, PathConfig};
use plait_link::{Impairments, LinkConfig};
use plait_sim::{
    ConnectionOutcome, ConnectionSetup, Outcome, PairSetup, PathSetup, Setup, SharedLink, Watch,
    Who,
};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The simulator as the world of a comparison.
#[derive(Clone, Copy, Default, Debug)]
pub struct Simulator;

impl World for Simulator {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        run_outcome(cell, seed, simulate(cell, seed, &mut Unseen))
    }

    fn run_unless(&self, cell: &Cell, seed: u64, cancelled: &AtomicBool) -> Option<RunOutcome> {
        let outcome = simulate_unless(cell, seed, &mut Unseen, cancelled)?;
        Some(run_outcome(cell, seed, outcome))
    }

    fn bound(&self, cell: &Cell, seed: u64) -> Option<Bound> {
        bound_of(cell, seed)
    }
}

/// The simulator with a record of how each run spends its time. The runs are the same, and have
/// [`RunOutcome::habits`].
#[derive(Clone, Copy, Default, Debug)]
pub struct Attentive;

impl World for Attentive {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        let mut watch = Watching::of(cell);
        let outcome = run_outcome(cell, seed, simulate(cell, seed, &mut watch));
        RunOutcome { habits: Some(watch.0.finish()), ..outcome }
    }

    fn run_unless(&self, cell: &Cell, seed: u64, cancelled: &AtomicBool) -> Option<RunOutcome> {
        let mut watch = Watching::of(cell);
        let outcome = simulate_unless(cell, seed, &mut watch, cancelled)?;
        let habits = Some(watch.0.finish());
        Some(RunOutcome { habits, ..run_outcome(cell, seed, outcome) })
    }

    fn bound(&self, cell: &Cell, seed: u64) -> Option<Bound> {
        bound_of(cell, seed)
    }
}

/// Passes all events to the observer of habits.
struct Watching(HabitObserver);

impl Watching {
    fn of(cell: &Cell) -> Watching {
        Watching(HabitObserver::new(&cell.scenario.workload, cell.scenario.paths.len()))
    }
}

impl Watch for Watching {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        // Of several connections, only the first is watched.
        if who.connection == 0 {
            self.0.on_core(now, who.host, event);
        }
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        if who.connection == 0 {
            self.0.on_app(now, who.host, event);
        }
    }
}

/// Returns the best values that any sender could reach in a run of the cell, if its workload has a bound.
#[must_use]
pub fn bound_of(cell: &Cell, seed: u64) -> Option<Bound> {
    let scenario = &cell.scenario;
    let begin = scenario.start(seed);
    Bound::of(BoundedRun {
        setup: &setup_with(cell, seed, &[]),
        workload: &scenario.workload,
        begin,
        end: begin + scenario.deadline(),
        config: &cell.connection(),
        plain: &scenario.connection(false),
        subflows: match scenario.transport.subflows {
            Subflows::EachPath(each) => each,
            Subflows::Mesh4 => 2,
        },
        cc: &cell.cc,
    })
}

pub(crate) fn run_outcome(cell: &Cell, seed: u64, outcome: Outcome) -> RunOutcome {
    let completed = outcome.complete();
    let competing = competing(&cell.scenario, &outcome);
    let broke = broke(cell, &outcome);
    let length = outcome.ended.since(cell.scenario.start(seed));
    let connection = outcome.pairs.into_iter().flatten().next();
    let mut measures = connection.map(|connection| connection.measures).unwrap_or_default();
    if let Some(playback) = &mut measures.playback {
        let ideal = ideal_bit_rate_mbps(&cell.scenario);
        playback.bit_rate_ratio = playback.bit_rate_mbps.zip(ideal).map(|(ours, best)| ours / best);
    }
    RunOutcome {
        measures,
        competing,
        habits: None,
        length,
        hash: outcome.digest.value(),
        completed,
        broke,
        violation: outcome.violation,
    }
}

/// Returns the best bit rate that a player could show over all paths of the scenario, even if a row uses
/// fewer.
fn ideal_bit_rate_mbps(scenario: &Scenario) -> Option<f64> {
    let Workload::Video(video) = &scenario.workload else { return None };
    // The mean rate does not depend on the seed.
    let links = scenario.links(scenario.seed);
    let rates: Vec<Rate> = links.iter().map(|links| links.link.down.rate.mean_rate()).collect();
    Some(ideal_bit_rate(&rates, video.top()?).as_bps() as f64 / 1e6).filter(|best| *best > 0.0)
}

/// A watcher that does nothing.
pub(crate) struct Unseen;

impl Watch for Unseen {
    fn detail(&self) -> Detail {
        Detail::Measures
    }
}

/// Runs a cell once with a watcher. The outcome has the paths of the scenario, in its order.
#[must_use]
pub fn simulate(cell: &Cell, seed: u64, watch: &mut dyn Watch) -> Outcome {
    of_scenario(cell, plait_sim::run_watched(&setup(cell, seed), watch))
}

/// Runs a cell as [`simulate`] does. If `cancelled` becomes true, the run stops within
/// [`plait_sim::EVENTS_BETWEEN_LOOKS`] events and returns `None`.
#[must_use]
pub fn simulate_unless(
    cell: &Cell,
    seed: u64,
    watch: &mut dyn Watch,
    cancelled: &AtomicBool,
) -> Option<Outcome> {
    let thresholds = ssthresh_cache::thresholds(cell, seed, cancelled)?;
    let setup = setup_with(cell, seed, &thresholds);
    Some(of_scenario(cell, plait_sim::run_unless(&setup, watch, cancelled)?))
}

/// Removes the paths that only competing flows use.
fn of_scenario(cell: &Cell, mut outcome: Outcome) -> Outcome {
    let paths = cell.scenario.paths.len();
    outcome.links.truncate(paths);
    for connection in outcome.pairs.iter_mut().flatten() {
        connection.measures.paths.truncate(paths);
    }
    outcome
}

/// Returns when the connection of a run broke, and the state of its paths, in words; `None` if it did not
/// break.
#[must_use]
pub fn broke(cell: &Cell, outcome: &Outcome) -> Option<String> {
    let at = outcome.pairs.first()?.first()?.broke?;
    let used: Vec<&Path> = match &cell.subject {
        Subject::Scheduler(_) => cell.scenario.paths.iter().collect(),
        Subject::SinglePath(path) => cell.scenario.paths.get(*path).into_iter().collect(),
    };
    let then = |spans: &[(Time, Time)]| spans.iter().any(|(from, to)| (*from..*to).contains(&at));
    let cause = match used.len() == 1 {
        _ if used.is_empty() => "",
        true if then(&used[0].gone) => ": its only address was gone",
        true if then(&used[0].outages) => ": its only path was down",
        false if used.iter().all(|path| then(&path.gone)) => ": all its addresses were gone",
        false if used.iter().all(|path| then(&path.gone) || then(&path.outages)) => {
            ": all its paths were down or gone"
        }
        _ => "",
    };
    let seconds = at.since(Time::ZERO).as_millis_f64() / 1e3;
    Some(format!("the connection broke at {seconds:.2} s{cause}"))
}

/// Returns the goodput in Mbit/s of each competing flow, by kind.
#[must_use]
pub fn competing(scenario: &Scenario, outcome: &Outcome) -> Vec<Vec<f64>> {
    let flow = |pair: &Vec<ConnectionOutcome>| {
        pair.first().and_then(|flow| flow.measures.goodput_mbps).unwrap_or(0.0)
    };
    let mut flows = outcome.pairs.iter().skip(1).map(flow);
    // The list of each link has the sources of cross traffic in the order of their kinds.
    let mut sources: Vec<_> = outcome.cross.iter().map(|link| link.iter()).collect();
    let micros = outcome.ended.since(Time::ZERO).as_nanos() as f64 / 1e3;
    let kind = |kind: &Competition| {
        let count = kind.flows as usize;
        match &kind.sender {
            Sender::Tcp(_) => flows.by_ref().take(count).collect(),
            Sender::Udp(_) => {
                let link = link_of(scenario, outcome.cross.len(), kind)
                    .and_then(|link| sources.get_mut(link));
                let bytes = link.into_iter().flatten().take(count);
                bytes.map(|bytes| *bytes as f64 * 8.0 / micros.max(1.0)).collect()
            }
        }
    };
    scenario.compete.iter().map(kind).collect()
}

/// Returns the index into [`Outcome::cross`] of the link that this competing flow uses. Of the `links` links,
/// the paths of the scenario come first and its shared links last.
fn link_of(scenario: &Scenario, links: usize, kind: &Competition) -> Option<usize> {
    let place = |list: &[Path]| list.iter().position(|link| link.name == kind.over);
    let shared = || Some(links.checked_sub(scenario.shared.len())? + place(&scenario.shared)?);
    place(&scenario.paths).or_else(shared)
}

/// Returns the set-up of one run of a cell. It has the paths with the randomness of `seed`, a pair
/// of hosts with the connection, and a pair for each competing flow. Every row has every path, so
/// that all rows get the same network. It first runs the earlier transfers, if there are any, to
/// find the thresholds that the sender has stored.
#[must_use]
pub fn setup(cell: &Cell, seed: u64) -> Setup {
    let known = ssthresh_cache::thresholds(cell, seed, &AtomicBool::new(false));
    setup_with(cell, seed, &known.unwrap_or_default())
}

/// Returns the same set-up for a sender that remembers these slow start thresholds, by path.
pub(crate) fn setup_with(cell: &Cell, seed: u64, thresholds: &[Option<u64>]) -> Setup {
    let scenario = &cell.scenario;
    let links = scenario.links(seed);
    let end = |link: &LinkConfig, path: &Path, way: &str| {
        let mut link = link.clone();
        scenario.add_host_jitter(&mut link, seed, &path.name, way);
        link
    };
    let paths = scenario.paths.iter().zip(&links).map(|(path, links)| PathSetup {
        name: path.name.clone(),
        down: end(&links.link.down, path, "down"),
        up: end(&links.link.up, path, "up"),
        nic_down: links.nic,
        nic_up: links.nic,
        via: scenario.via(path),
        middlebox: path.middlebox,
        removed: path.gone.clone(),
        resting: Vec::new(),
    });
    let spec = connection_spec(cell, seed);
    let mut sender = spec.clone();
    for config in &mut sender.paths {
        config.ssthresh = thresholds.get(config.path.index()).copied().flatten();
    }
    let (client, server) = match scenario.workload.sender() {
        Role::Server => (spec, sender),
        Role::Client => (sender, spec),
    };
    let shared = |link: &Path| {
        let links = link.links(scenario.ideal, seed);
        SharedLink { name: link.name.clone(), down: links.link.down, up: links.link.up }
    };
    let workload = scenario.workload.clone();
    let connection = ConnectionSetup { client, server, workload, start: scenario.start(seed) };
    let mut setup = Setup {
        seed,
        paths: paths.collect(),
        shared: scenario.shared.iter().map(shared).collect(),
        pairs: vec![PairSetup { connections: vec![connection], background: false }],
        until: scenario.start(seed) + scenario.deadline(),
        check: scenario.check,
        wire: scenario.wire,
        linger: false,
        send_cost: if scenario.ideal { Span::ZERO } else { scenario.transport.send_cost },
    };
    for (index, kind) in scenario.compete.iter().enumerate() {
        let cc = match &kind.sender {
            Sender::Tcp(cc) => cc,
            Sender::Udp(udp) => {
                cross_traffic(&mut setup, kind, udp);
                continue;
            }
        };
        for flow in 0..kind.flows {
            let path = way_of(kind, scenario, &mut setup.paths);
            let start = Competition::start(seed, index, flow);
            setup.pairs.push(competing_pair(cc, path, scenario, start));
        }
    }
    setup
}

/// Adds the sources of cross traffic to their link.
fn cross_traffic(setup: &mut Setup, kind: &Competition, udp: &Udp) {
    let links = setup.paths.iter_mut().map(|path| (&path.name, &mut path.down));
    let shared = setup.shared.iter_mut().map(|link| (&link.name, &mut link.down));
    if let Some((_, link)) = links.chain(shared).find(|link| *link.0 == kind.over) {
        link.cross.extend((0..kind.flows).map(|_| udp.0));
    }
}

/// Returns the path of a competing flow: a path of the scenario, or a new path into the shared link. The new
/// path copies rate, queue, delay and jitter of the first path through the link, so that only the controllers
/// differ. It has none of that path's other impairments.
fn way_of(kind: &Competition, scenario: &Scenario, paths: &mut Vec<PathSetup>) -> PathId {
    let known = scenario.paths.iter().position(|path| path.name == kind.over);
    let link = scenario.shared.iter().position(|link| link.name == kind.over);
    let like = scenario.paths.iter().position(|path| link.is_some() && scenario.via(path) == link);
    let index = known.unwrap_or(paths.len());
    // A competing flow uses one of the scenario's paths or one of its links.
    if let Some(like) = like.filter(|_| known.is_none()).and_then(|like| paths.get(like)) {
        let whole = |link: &LinkConfig| LinkConfig {
            queue: link.queue,
            delay_steps: link.delay_steps.clone(),
            impairments: Impairments { jitter: link.impairments.jitter, ..Impairments::NONE },
            ..LinkConfig::new(link.rate.clone(), link.delay)
        };
        paths.push(PathSetup {
            // A scenario cannot give this name, because it contains a space.
            name: format!("{} {index}", kind.over),
            down: whole(&like.down),
            up: whole(&like.up),
            middlebox: plait_sim::MiddleboxConfig::default(),
            removed: Vec::new(),
            resting: Vec::new(),
            ..like.clone()
        });
    }
    PathId(index as u32)
}

/// Returns the hosts of a competing flow: plain TCP with the settings of the connection, except that the
/// buffers have their default sizes.
fn competing_pair(
    cc: &plait_cc::Spec,
    path: PathId,
    scenario: &Scenario,
    start: Span,
) -> PairSetup {
    let usual = Config::default();
    let config = scenario.connection(false).with(|it| {
        it.buffers.rcvbuf = usual.buffers.rcvbuf;
        it.buffers.sndbuf = usual.buffers.sndbuf;
    });
    let scheduler = plait_sched::Spec::of(&plait_sched::SCHEDULERS[0]);
    let cc = cc.clone();
    let spec = ConnectionSpec {
        config,
        paths: vec![PathConfig { path, backup: false, ssthresh: None }],
        addresses: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| cc.build()),
    };
    let connection = ConnectionSetup {
        client: spec.clone(),
        server: spec,
        workload: Workload::Bulk { duration: scenario.deadline() },
        start: Time::ZERO + start,
    };
    PairSetup { connections: vec![connection], background: true }
}

/// The server's second address in a mesh.
const SECOND_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2));

/// Returns the specification of both ends of the cell's connection.
fn connection_spec(cell: &Cell, seed: u64) -> ConnectionSpec {
    let scenario = &cell.scenario;
    let (used, scheduler) = match &cell.subject {
        Subject::Scheduler(spec) => ((0..scenario.paths.len()).collect(), spec.clone()),
        // With one subflow, all schedulers decide alike.
        Subject::SinglePath(path) => {
            (vec![*path], plait_sched::Spec::of(&plait_sched::SCHEDULERS[0]))
        }
    };
    let links = scenario.links(seed);
    let path_config = |index: &usize| PathConfig {
        path: PathId(*index as u32),
        backup: links.get(*index).is_some_and(|links| links.backup),
        ssthresh: None,
    };
    let config = cell.connection();
    let controllers: Vec<plait_cc::Spec> = (0..scenario.paths.len())
        .map(|path| controller(cell, &config, path, &links, seed))
        .collect();
    let addresses = match scenario.transport.subflows {
        Subflows::Mesh4 if config.multipath => vec![SECOND_ADDRESS],
        _ => Vec::new(),
    };
    ConnectionSpec {
        config,
        paths: used.iter().map(path_config).collect(),
        addresses,
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |path| match controllers.get(path.index()) {
            Some(spec) => spec.build(),
            None => plait_cc::Spec::default().build(),
        }),
    }
}

/// Returns the controller of a path. It replaces `BDP` by the whole packets that the path holds without a
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
    let mut rtt = path.delay.round_trip();
    let mean = |link: &Both<LinkConfig>| match scenario.workload.sender() {
        Role::Server => link.down.rate.mean_rate(),
        Role::Client => link.up.rate.mean_rate(),
    };
    let mut rate = mean(own);
    if let Some(shared) = scenario.via(path).and_then(|index| scenario.shared.get(index)) {
        rtt += shared.delay.round_trip();
        rate = rate.min(mean(&shared.links(scenario.ideal, seed).link));
    }
    let packets = rate.bytes_in(rtt) / u64::from(config.packets.mtu.max(1));
    cell.cc.with_bdp(packets.max(1) * config.segment_payload())
}
