//! Runs cells in the simulator.

use crate::bound::{Bound, BoundedRun};
use crate::compare::{Cell, RunOutcome, Subject, World};
use crate::path_memory;
use crate::run_setup::{Unseen, setup_with};
use crate::scenario::{Competition, Path, Scenario, Sender, Subflows};
use crate::ssthresh_cache;
use plait_app::measure::{HabitObserver, ideal_bit_rate};
use plait_app::{AppEvent, Workload};
use plait_base::{Rate, Time};
use plait_core::{Event, TimedOut};
use plait_sim::{ConnectionOutcome, Outcome, Setup, Watch, Who};
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
    let setup = setup_unless(cell, seed, cancelled)?;
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
    let connection = outcome.pairs.first()?.first()?;
    let at = connection.broke?;
    let ends = [&connection.client, &connection.server];
    let mut given_up = ends.into_iter().flatten().filter_map(|end| end.timed_out);
    let spent = given_up.any(|why| why == TimedOut::Quota);
    let used: Vec<&Path> = match &cell.subject {
        Subject::Scheduler(_) => cell.scenario.paths.iter().collect(),
        Subject::SinglePath(path) => cell.scenario.paths.get(*path).into_iter().collect(),
    };
    let then = |spans: &[(Time, Time)]| spans.iter().any(|(from, to)| (*from..*to).contains(&at));
    let cause = match used.len() == 1 {
        _ if spent => ": the quotas of all its paths are used up (over_quota)",
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
/// that all rows get the same network. It first runs the earlier connections, if there are any, to
/// find the thresholds and the path memories that they have left.
#[must_use]
pub fn setup(cell: &Cell, seed: u64) -> Setup {
    let setup = setup_unless(cell, seed, &AtomicBool::new(false));
    setup.unwrap_or_else(|| setup_with(cell, seed, &[]))
}

/// As [`setup`]; returns `None` if `cancelled` becomes true.
pub(crate) fn setup_unless(cell: &Cell, seed: u64, cancelled: &AtomicBool) -> Option<Setup> {
    let thresholds = ssthresh_cache::thresholds(cell, seed, cancelled)?;
    path_memory::with_memory(cell, seed, setup_with(cell, seed, &thresholds), cancelled)
}
