//! Scoreboards over random links: how often, and by how much, each scheduler is slower than plain TCP.

mod draw;
mod judge;
#[cfg(test)]
mod tests;

pub use draw::{Drawn, draw};
pub use judge::{Against, Baseline, Class, MapCell, RandomBoard, SCHEMA, Standing, judge};

use super::{measures, one_controller};
use crate::compare::{Cell, RunOutcome, Subject, World, cells, extra};
use crate::error::ScenarioError;
use crate::scenario::{RawScenario, Scenario, no_files, quoted};
use crate::workers::on_threads;
use plait_app::measure::{MEASURES, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The cells and rows of a random scoreboard.
#[derive(Clone, Debug)]
pub struct RandomOptions {
    /// Number of cells.
    pub count: u32,
    /// Seed of the draw.
    pub seed: u64,
    /// Which path is dialled first.
    pub order: PathOrder,
    /// The schedulers, as in `--schedulers`.
    pub schedulers: String,
    /// Settings of every comparison, such as the controller.
    pub settings: Vec<(&'static str, String)>,
    /// Cells at a time; by default one for each core.
    pub jobs: Option<NonZeroUsize>,
    /// The command line that runs it again.
    pub command: String,
}

/// Which path is dialled first.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum PathOrder {
    /// Any of them, by chance.
    #[default]
    Startable,
    /// The path on which plain TCP is fastest.
    Known,
}

/// A cell that was run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Played {
    /// Number of the cell, from 0.
    pub number: u32,
    /// The command line that compares the rows of the cell.
    pub command: String,
    /// Properties of the cell, such as `download` and `loss`.
    pub classes: Vec<String>,
    /// Rate of the second path over that of the first.
    pub rate_ratio: f64,
    /// RTT of the second path over that of the first.
    pub rtt_ratio: f64,
    /// One for each measure: two for a stream, the median and the 99th percentile of the message delay.
    pub comparisons: Vec<Comparison>,
    /// Copies over payload, by scheduler.
    pub extra: BTreeMap<String, f64>,
}

/// A measure of a cell, in ms; lower is better.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The measure.
    pub measure: String,
    /// Plain TCP on the first path.
    pub first: f64,
    /// Plain TCP on the best path.
    pub known: f64,
    /// The lesser of plain TCP on the first path, and plain TCP on another one plus two RTTs of the first.
    pub startable: f64,
    /// The bound, if the load has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// By scheduler. A run that did not finish counts as its deadline.
    pub values: BTreeMap<String, f64>,
}

/// What a random scoreboard needs of its caller.
#[derive(Clone, Copy)]
pub struct RandomControl<'a> {
    /// Called after every cell with the number of ended cells and the total.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Once true, no further cell begins.
    pub cancelled: &'a AtomicBool,
    /// Returns a cell of an earlier scoreboard with these options.
    pub known: &'a (dyn Fn(u32) -> Option<Played> + Sync),
    /// Keeps a cell.
    pub keep: &'a (dyn Fn(&Played) + Sync),
}

/// Runs the cells of a random scoreboard, and judges the schedulers.
///
/// # Errors
/// If a setting is refused, before any run.
pub fn random_scoreboard<W: World>(
    options: &RandomOptions,
    world: &W,
    control: &RandomControl<'_>,
) -> Result<RandomBoard, ScenarioError> {
    one_controller(&options.settings)?;
    // The first cell reads every setting that the cells share.
    scenario(options, &draw(options.seed, 0).settings)?;
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let total = options.count as usize;
    let played: Mutex<Vec<Played>> = Mutex::new(Vec::new());
    let missing: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let worker = || {
        while !control.cancelled.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(number) = u32::try_from(number).ok().filter(|it| *it < options.count) else {
                return;
            };
            let found = match (control.known)(number) {
                Some(known) => Ok(known),
                None => match play(options, number, world, control.cancelled) {
                    Ok(None) => return,
                    Ok(Some(new)) => {
                        (control.keep)(&new);
                        Ok(new)
                    }
                    Err(why) => Err(format!("cell {number}: {why}")),
                },
            };
            match found {
                Ok(cell) => played.lock().map_or((), |mut list| list.push(cell)),
                Err(why) => missing.lock().map_or((), |mut list| list.push(why)),
            }
            (control.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
        }
    };
    on_threads(options.jobs, total, worker);
    let mut played = played.into_inner().unwrap_or_default();
    played.sort_by_key(|cell| cell.number);
    let mut missing = missing.into_inner().unwrap_or_default();
    missing.sort();
    let interrupted = played.len() + missing.len() < total;
    Ok(judge(options, played, missing, interrupted))
}

fn scenario(
    options: &RandomOptions,
    settings: &[(&'static str, String)],
) -> Result<Scenario, ScenarioError> {
    let mut raw = RawScenario::new();
    for (name, text) in settings.iter().chain(&options.settings) {
        raw.argument(name, text)?;
    }
    raw.argument("schedulers", &options.schedulers)?;
    raw.argument("exact", "on")?;
    raw.argument("runs", "1")?;
    raw.build_with(&no_files)
}

/// Runs a cell. Returns `None` if it was cancelled, and the reason if it cannot be judged.
fn play<W: World>(
    options: &RandomOptions,
    number: u32,
    world: &W,
    cancelled: &AtomicBool,
) -> Result<Option<Played>, String> {
    let mut drawn = draw(options.seed, number);
    let seed = options.seed.wrapping_add(u64::from(number));
    let run = |cell: &Cell| world.run_unless(cell, seed, cancelled);
    let refused = |error: ScenarioError| error.to_string();
    let mut made = scenario(options, &drawn.settings).map_err(refused)?;
    let Some(mut singles) = singles(&made, run) else { return Ok(None) };
    if options.order == PathOrder::Known {
        let (measure, _) = measures(&made.workload)[0];
        let value = |run: &(Cell, RunOutcome)| value(&run.1, measure, &made);
        let best = (0..singles.len())
            .min_by(|a, b| value(&singles[*a]).total_cmp(&value(&singles[*b])))
            .unwrap_or(0);
        drawn.put_first(best);
        made = scenario(options, &drawn.settings).map_err(refused)?;
        singles = match self::singles(&made, run) {
            Some(singles) => singles,
            None => return Ok(None),
        };
    }
    if singles.iter().all(|(_, run)| !run.counts()) {
        return Err("plain TCP finishes on no path".to_owned());
    }
    let rows = cells(&made).into_iter().filter(|it| matches!(it.subject, Subject::Scheduler(_)));
    let Some(rows) = rows.map(|cell| Some((run(&cell)?, cell))).collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let bound = singles.first().and_then(|(cell, _)| world.bound(cell, seed));
    let comparison = |(measure, _): (&'static str, &'static str)| {
        let tcp: Vec<f64> = singles.iter().map(|(_, run)| value(run, measure, &made)).collect();
        let first = tcp[0];
        let late = 2.0 * drawn.rtts_ms.first().copied().unwrap_or(0.0);
        let other = tcp.iter().skip(1).map(|value| value + late).fold(first, f64::min);
        Comparison {
            measure: measure.to_owned(),
            first,
            known: tcp.iter().copied().fold(first, f64::min),
            startable: other,
            bound: bound.as_ref().and_then(|bound| bound.of_measure(measure)),
            values: rows
                .iter()
                .map(|(run, cell)| (cell.to_string(), value(run, measure, &made)))
                .collect(),
        }
    };
    let extra = |(run, cell): &(RunOutcome, Cell)| Some((cell.to_string(), extra(&run.measures)?));
    Ok(Some(Played {
        number,
        command: command(options, &drawn, seed),
        classes: drawn.classes.iter().map(|class| (*class).to_owned()).collect(),
        rate_ratio: drawn.rate_ratio,
        rtt_ratio: drawn.rtt_ratio,
        comparisons: measures(&made.workload).into_iter().map(comparison).collect(),
        extra: rows.iter().filter_map(extra).collect(),
    }))
}

/// Runs plain TCP on each path.
fn singles(
    scenario: &Scenario,
    run: impl Fn(&Cell) -> Option<RunOutcome>,
) -> Option<Vec<(Cell, RunOutcome)>> {
    let single = |cell: &Cell| matches!(cell.subject, Subject::SinglePath(_));
    let rows = cells(scenario).into_iter().filter(single);
    rows.map(|cell| Some((cell.clone(), run(&cell)?))).collect()
}

/// Returns a measure of a run in ms, or the deadline if the run did not finish.
fn value(run: &RunOutcome, measure: &str, scenario: &Scenario) -> f64 {
    let deadline = scenario.deadline().as_millis_f64();
    let entry = MEASURES.iter().find(|entry| entry.name == measure).filter(|_| run.counts());
    let Some(Value::Run(of)) = entry.map(|entry| entry.value) else { return deadline };
    of(&run.measures).unwrap_or(deadline)
}

/// Returns the command line that compares the rows of a cell.
fn command(options: &RandomOptions, drawn: &Drawn, seed: u64) -> String {
    let flag = |(name, text): &(&str, String)| format!(" --{name} {}", quoted(text));
    let settings: String = drawn.settings.iter().chain(&options.settings).map(flag).collect();
    let schedulers = quoted(&options.schedulers);
    format!("plait compare{settings} --schedulers {schedulers} --exact --runs 1 --seed {seed}")
}

impl Drawn {
    /// Moves a path to the front.
    fn put_first(&mut self, index: usize) {
        self.settings[..=index].rotate_right(1);
        self.rtts_ms[..=index].rotate_right(1);
    }
}
