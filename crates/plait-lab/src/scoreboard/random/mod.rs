//! Scoreboards over random links: how often, and by how much, each scheduler is slower than plain TCP.

mod draw;
mod judge;
#[cfg(test)]
mod tests;

pub use draw::{Drawn, draw};
pub use judge::{Against, Baseline, Class, MapCell, RandomBoard, SCHEMA, Standing, judge};

use super::measures;
use crate::bound::Bound;
use crate::compare::{Cell, RunOutcome, Subject, World, cells, extra};
use crate::error::ScenarioError;
use crate::scenario::{RawScenario, Scenario, no_files, quoted};
use crate::stats::median;
use crate::workers::on_threads;
use plait_app::measure::{MEASURES, Value};
use plait_base::RandomStream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Distance between the seeds of a cell and those of the runs that show how much chance alone changes.
const OTHER_SEEDS: u64 = 1 << 32;

/// The cells and rows of a random scoreboard.
#[derive(Clone, Debug)]
pub struct RandomOptions {
    /// Number of cells.
    pub count: u32,
    /// Seed of the draw.
    pub seed: u64,
    /// Which path is dialled first.
    pub order: PathOrder,
    /// Runs of each row, with a seed each; a value is their median.
    pub runs: u32,
    /// The schedulers, as in `--schedulers`.
    pub schedulers: String,
    /// Settings of every comparison, such as the controller. Of several controllers, each cell has one.
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
    /// `startable` in further runs, with other losses and jitter.
    pub again: f64,
    /// The bound, if the load has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<f64>,
    /// By scheduler, the median of its runs. A run that did not finish counts as its deadline.
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
    // The first cell reads every setting that the cells share.
    let controllers = scenario(options, &draw(options.seed, 0).settings)?.ccs;
    let options = &RandomOptions { runs: options.runs.max(1), ..options.clone() };
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
                None => match play((options, &controllers), number, world, control.cancelled) {
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
    (options, controllers): (&RandomOptions, &[plait_cc::Spec]),
    number: u32,
    world: &W,
    cancelled: &AtomicBool,
) -> Result<Option<Played>, String> {
    let mut drawn = draw(options.seed, number);
    let options = &with_one_controller(options, controllers, &mut drawn);
    let seed = options.seed.wrapping_add(u64::from(number));
    let runs = Runs { world, cancelled, first: seed, count: options.runs };
    let refused = |error: ScenarioError| error.to_string();
    let mut made = scenario(options, &drawn.settings).map_err(refused)?;
    let Some(mut singles) = runs.singles(&made) else { return Ok(None) };
    if options.order == PathOrder::Known {
        let (measure, _) = measures(&made.workload)[0];
        let value = |it: &usize| value(&singles[*it], measure, &made);
        let best = (0..singles.len()).min_by(|a, b| value(a).total_cmp(&value(b))).unwrap_or(0);
        drawn.put_first(best);
        made = scenario(options, &drawn.settings).map_err(refused)?;
        singles = match runs.singles(&made) {
            Some(singles) => singles,
            None => return Ok(None),
        };
    }
    if singles.iter().flatten().all(|run| !run.counts()) {
        return Err("plain TCP finishes on no path".to_owned());
    }
    let others = Runs { first: seed.wrapping_add(OTHER_SEEDS), ..runs };
    let Some(again) = others.singles(&made) else { return Ok(None) };
    let rows = cells(&made).into_iter().filter(|it| matches!(it.subject, Subject::Scheduler(_)));
    let rows = rows.map(|cell| Some((runs.of(&cell)?, cell.to_string())));
    let Some(rows) = rows.collect::<Option<Vec<_>>>() else { return Ok(None) };
    let bounds = runs.bounds(&made);
    let comparison = |(measure, _): (&'static str, &'static str)| {
        let late = 2.0 * drawn.rtts_ms.first().copied().unwrap_or(0.0);
        let all = |singles: &[Vec<RunOutcome>]| -> Vec<f64> {
            singles.iter().map(|runs| value(runs, measure, &made)).collect()
        };
        let startable = |tcp: &[f64]| tcp.iter().skip(1).map(|it| it + late).fold(tcp[0], f64::min);
        let tcp = all(&singles);
        let bounds: Vec<f64> = bounds.iter().filter_map(|it| it.of_measure(measure)).collect();
        Comparison {
            measure: measure.to_owned(),
            first: tcp[0],
            known: tcp.iter().copied().fold(tcp[0], f64::min),
            startable: startable(&tcp),
            again: startable(&all(&again)),
            bound: median(&bounds),
            values: rows
                .iter()
                .map(|(runs, name)| (name.clone(), value(runs, measure, &made)))
                .collect(),
        }
    };
    let extra = |(runs, name): &(Vec<RunOutcome>, String)| {
        let shares: Vec<f64> = runs.iter().filter_map(|run| extra(&run.measures)).collect();
        let sum: f64 = shares.iter().sum();
        (!shares.is_empty()).then(|| (name.clone(), sum / shares.len() as f64))
    };
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

/// Returns the options of a cell. Of several controllers it has one, drawn from a stream of its own.
fn with_one_controller(
    options: &RandomOptions,
    controllers: &[plait_cc::Spec],
    drawn: &mut Drawn,
) -> RandomOptions {
    let mut own = options.clone();
    if controllers.len() > 1 {
        let words = ["random scoreboard", "cc", &drawn.number.to_string()];
        let at = RandomStream::new(options.seed, &words).below(controllers.len() as u64);
        let cc = &controllers[at as usize];
        let given = own.settings.iter_mut().filter(|(name, _)| *name == "cc");
        given.for_each(|(_, text)| *text = cc.name());
        drawn.classes.push(cc.entry().about.name);
    }
    own
}

/// The runs of a cell's rows.
struct Runs<'a, W> {
    world: &'a W,
    cancelled: &'a AtomicBool,
    /// Seed of the first run.
    first: u64,
    count: u32,
}

impl<W> Clone for Runs<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Runs<'_, W> {}

impl<W: World> Runs<'_, W> {
    fn seeds(&self) -> impl Iterator<Item = u64> + use<W> {
        let first = self.first;
        (0..u64::from(self.count)).map(move |run| first.wrapping_add(run))
    }

    /// Runs a row. Returns `None` if it was cancelled.
    fn of(&self, cell: &Cell) -> Option<Vec<RunOutcome>> {
        self.seeds().map(|seed| self.world.run_unless(cell, seed, self.cancelled)).collect()
    }

    /// Runs plain TCP on each path. Returns `None` if it was cancelled.
    fn singles(&self, scenario: &Scenario) -> Option<Vec<Vec<RunOutcome>>> {
        single_cells(scenario).map(|cell| self.of(&cell)).collect()
    }

    /// Returns the bound of each run, if the load has one.
    fn bounds(&self, scenario: &Scenario) -> Vec<Bound> {
        single_cells(scenario).next().map_or_else(Vec::new, |cell| {
            self.seeds().filter_map(|seed| self.world.bound(&cell, seed)).collect()
        })
    }
}

/// Returns the rows of plain TCP, one for each path.
fn single_cells(scenario: &Scenario) -> impl Iterator<Item = Cell> + use<> {
    cells(scenario).into_iter().filter(|cell| matches!(cell.subject, Subject::SinglePath(_)))
}

/// Returns the median of a measure of runs in ms. A run that did not finish counts as its deadline.
fn value(runs: &[RunOutcome], measure: &str, scenario: &Scenario) -> f64 {
    let deadline = scenario.deadline().as_millis_f64();
    let one = |run: &RunOutcome| {
        let entry = MEASURES.iter().find(|entry| entry.name == measure).filter(|_| run.counts());
        let Some(Value::Run(of)) = entry.map(|entry| entry.value) else { return deadline };
        of(&run.measures).unwrap_or(deadline)
    };
    median(&runs.iter().map(one).collect::<Vec<f64>>()).unwrap_or(deadline)
}

/// Returns the command line that compares the rows of a cell.
fn command(options: &RandomOptions, drawn: &Drawn, seed: u64) -> String {
    let flag = |(name, text): &(&str, String)| format!(" --{name} {}", quoted(text));
    let settings: String = drawn.settings.iter().chain(&options.settings).map(flag).collect();
    let schedulers = quoted(&options.schedulers);
    let runs = options.runs;
    format!("plait compare{settings} --schedulers {schedulers} --exact --runs {runs} --seed {seed}")
}

impl Drawn {
    /// Moves a path to the front.
    fn put_first(&mut self, index: usize) {
        self.settings[..=index].rotate_right(1);
        self.rtts_ms[..=index].rotate_right(1);
    }
}
