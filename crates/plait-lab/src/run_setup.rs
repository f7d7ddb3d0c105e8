//! The set-up of a run in the simulator.

use crate::compare::{Cell, Subject};
use crate::scenario::{Both, Competition, Path, Scenario, Sender, Subflows, Udp};
use plait_app::{Role, Workload};
use plait_base::{PathId, Span, Time};
use plait_core::{Config, ConnectionSpec, PathConfig};
use plait_link::{Impairments, LinkConfig};
use plait_sim::{ConnectionSetup, PairSetup, PathSetup, Setup, SharedLink, Watch};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// A watcher that does nothing.
pub(crate) struct Unseen;

impl Watch for Unseen {
    fn watches(&self) -> bool {
        false
    }
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
    let receiver = ConnectionSpec { config: scenario.receiving(&spec.config), ..spec };
    let (client, server) = match scenario.workload.sender() {
        Role::Server => (receiver, sender),
        Role::Client => (sender, receiver),
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
        pairs: vec![PairSetup { connections: vec![connection], background: false, memory: None }],
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
            let path = path_of(kind, scenario, &mut setup.paths);
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
fn path_of(kind: &Competition, scenario: &Scenario, paths: &mut Vec<PathSetup>) -> PathId {
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
        (it.buffers.rcvbuf, it.buffers.sndbuf) = (usual.buffers.rcvbuf, usual.buffers.sndbuf);
        it.buffers.rcvbuf_first = it.buffers.rcvbuf_first.or(usual.buffers.rcvbuf_first);
        it.buffers.sndbuf_first = usual.buffers.sndbuf_first;
    });
    let scheduler = plait_sched::Spec::of(&plait_sched::SCHEDULERS[0]);
    let cc = cc.clone();
    let spec = ConnectionSpec {
        config,
        paths: vec![PathConfig::new(path)],
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
    PairSetup { connections: vec![connection], background: true, memory: None }
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
    let path_config = |index: &usize| {
        let usage = links.get(*index).map(|links| links.usage).unwrap_or_default();
        let alone = matches!(cell.subject, Subject::SinglePath(_));
        PathConfig {
            path: PathId(*index as u32),
            backup: usage.backup,
            ssthresh: None,
            cost: usage.cost,
            quota: usage.quota.filter(|_| !alone),
        }
    };
    let scheduler = scenario.priced(scheduler);
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
