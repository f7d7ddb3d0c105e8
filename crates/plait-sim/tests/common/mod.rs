//! Builders of scenarios for the tests.
#![allow(dead_code, reason = "each test file uses its own part")]

use plait_app::Workload;
use plait_base::{Chance, PathId, Rate, Span, Time};
use plait_core::{Config, ConnectionSpec, PathConfig};
use plait_link::{LinkConfig, QueueLimit, RateSource};
use plait_sim::{
    ConnectionSetup, MiddleboxConfig, Outcome, PairSetup, PathSetup, Setup, Watch, run, run_watched,
};
use std::sync::Arc;

pub(crate) fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + ms(millis)
}

/// A path without a rate limit and without a queue.
pub(crate) fn ideal(name: &str, rtt: Span) -> PathSetup {
    let link = |delay| LinkConfig {
        queue: QueueLimit::Infinite,
        ..LinkConfig::new(RateSource::Fixed(Rate::INFINITE), delay)
    };
    PathSetup {
        name: name.into(),
        down: link(rtt.over(2)),
        up: link(rtt.minus(rtt.over(2))),
        nic_down: Rate::INFINITE,
        nic_up: Rate::INFINITE,
        via: None,
        middlebox: MiddleboxConfig::default(),
        removed: Vec::new(),
        resting: Vec::new(),
    }
}

/// A path with a rate each way and the default queue.
pub(crate) fn limited(name: &str, mbit: u64, rtt: Span) -> PathSetup {
    let rate = RateSource::Fixed(Rate::from_bps(mbit * 1_000_000));
    PathSetup {
        name: name.into(),
        down: LinkConfig::new(rate.clone(), rtt.over(2)),
        up: LinkConfig::new(rate, rtt.minus(rtt.over(2))),
        nic_down: Rate::from_bps(1_000_000_000),
        nic_up: Rate::from_bps(1_000_000_000),
        via: None,
        middlebox: MiddleboxConfig::default(),
        removed: Vec::new(),
        resting: Vec::new(),
    }
}

pub(crate) fn with_loss(mut path: PathSetup, ppb: u32) -> PathSetup {
    path.down.impairments.loss = Chance::from_ppb(ppb).into();
    path.up.impairments.loss = Chance::from_ppb(ppb).into();
    path
}

pub(crate) fn silent(mut path: PathSetup, from: Time, to: Time) -> PathSetup {
    path.down.outages.push((from, to));
    path.up.outages.push((from, to));
    path
}

/// Returns the configuration of one connection over all `paths`.
pub(crate) fn spec(
    scheduler: &str,
    controller: &str,
    paths: usize,
    config: Config,
) -> ConnectionSpec {
    let scheduler = plait_sched::Spec::parse(scheduler).expect("scheduler");
    let controller = plait_cc::Spec::parse(controller).expect("controller");
    let path = |id| PathConfig::new(PathId(id));
    ConnectionSpec {
        config,
        paths: (0..paths as u32).map(path).collect(),
        addresses: Vec::new(),
        scheduler: Arc::new(move || scheduler.build()),
        controller: Arc::new(move |_| controller.build()),
    }
}

pub(crate) fn setup(paths: Vec<PathSetup>, spec: &ConnectionSpec, workload: &str) -> Setup {
    let connection = ConnectionSetup {
        client: spec.clone(),
        server: spec.clone(),
        workload: Workload::parse(workload).expect("workload"),
        start: Time::ZERO,
    };
    Setup {
        seed: 1,
        paths,
        shared: Vec::new(),
        pairs: vec![PairSetup { connections: vec![connection], background: false, memory: None }],
        until: Time::ZERO + Span::from_secs(3_600),
        check: true,
        wire: false,
        linger: false,
        send_cost: Span::ZERO,
    }
}

/// Runs plain TCP on one path and returns the outcome.
pub(crate) fn tcp(path: PathSetup, controller: &str, config: &Config, workload: &str) -> Outcome {
    let config = Config { multipath: false, ..config.clone() };
    checked(&setup(vec![path], &spec("minrtt", controller, 1, config), workload))
}

pub(crate) fn checked(setup: &Setup) -> Outcome {
    let outcome = run(setup);
    assert_eq!(outcome.violation, None);
    outcome
}

/// Runs a set-up that must finish, and returns its watcher.
pub(crate) fn watched<W: Watch + Default>(setup: &Setup) -> W {
    let mut seen = W::default();
    let outcome = run_watched(setup, &mut seen);
    assert_eq!(outcome.violation, None);
    assert!(outcome.complete(), "ended at {:?}", outcome.ended);
    seen
}

/// Sends one ACK per segment, as hand calculations assume.
pub(crate) fn textbook() -> Config {
    Config { delayed_ack: false, ..Config::default() }
}
