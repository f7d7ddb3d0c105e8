//! Runs cells x seeds in parallel: every row of a comparison gets the same seeds. The report does not depend
//! on the number of parallel runs.

mod address;
mod judge;
mod rows;
mod why;
mod world;

pub use address::Address;
pub(crate) use rows::extra;
pub use world::{Control, EndedRun, KeepRuns, RunOutcome, World};

use crate::error::ScenarioError;
use crate::report::{ComparisonDocument, Report, Varied};
use crate::scenario::{Point, Vary};
use crate::scenario::{Reader, Scenario};
use crate::workers::on_threads;
use plait_base::RandomStream;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A row of the table, ready to run.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// Paths, workload and settings.
    pub scenario: Arc<Scenario>,
    /// The scheduler, or the single path.
    pub subject: Subject,
    /// Congestion controller.
    pub cc: plait_cc::Spec,
}

/// How a row chooses paths: with a scheduler, or as plain TCP on one path.
#[derive(Clone, PartialEq, Debug)]
pub enum Subject {
    /// A scheduler, over all paths.
    Scheduler(plait_sched::Spec),
    /// Plain TCP on the path with this index.
    SinglePath(usize),
}

impl Cell {
    /// Returns true if the connection negotiates Multipath TCP.
    #[must_use]
    pub const fn multipath(&self) -> bool {
        matches!(self.subject, Subject::Scheduler(_))
    }

    /// Returns the settings of the connection.
    #[must_use]
    pub fn connection(&self) -> plait_core::Config {
        let scheduler = match &self.subject {
            Subject::Scheduler(scheduler) => Some(scheduler),
            Subject::SinglePath(_) => None,
        };
        let pacing = self.scenario.pacing(scheduler);
        self.scenario.connection(self.multipath()).with(|it| it.window.pacing = pacing)
    }

    /// Returns the class, `module:Class`, that the scheduler is. Its name does not tell what it does.
    #[must_use]
    pub fn class(&self) -> Option<&'static str> {
        match &self.subject {
            Subject::Scheduler(spec) => spec.class(),
            Subject::SinglePath(_) => None,
        }
    }
}

/// The scheduler in canonical form, or `tcp:PATH`.
impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            Subject::Scheduler(spec) => spec.fmt(f),
            Subject::SinglePath(index) => {
                let path = self.scenario.paths.get(*index);
                write!(f, "tcp:{}", path.map_or("", |path| path.name.as_str()))
            }
        }
    }
}

/// Returns the rows of a scenario: for each congestion controller the schedulers, then plain TCP on each
/// path. With one path the connection is plain TCP, and there are no scheduler rows.
#[must_use]
pub fn cells(scenario: &Scenario) -> Vec<Cell> {
    let scenario = Arc::new(scenario.clone());
    let mut cells = Vec::new();
    for cc in &scenario.ccs {
        let schedulers =
            if scenario.paths.len() > 1 { scenario.schedulers.as_slice() } else { &[] };
        let multipath = schedulers.iter().cloned().map(Subject::Scheduler);
        let single = (0..scenario.paths.len()).map(Subject::SinglePath);
        cells.extend(multipath.chain(single).map(|subject| Cell {
            scenario: Arc::clone(&scenario),
            subject,
            cc: cc.clone(),
        }));
    }
    cells
}

/// Returns the seed of run `run`; with it, every row meets the same network.
///
/// Run 0 uses `seed` itself, so giving its seed reproduces any run alone. The seeds of the other runs are
/// derived from `seed`. If they were `seed + run`, comparisons with neighbouring seeds would share most runs.
#[must_use]
pub fn run_seed(seed: u64, run: u32) -> u64 {
    if run == 0 { seed } else { RandomStream::new(seed, &["run", &run.to_string()]).bits() }
}

/// Runs a scenario, and with `--vary` every point of it. If nothing else is random, hosts get jitter
/// ([`Scenario::compared`]). Each point of a sweep reads its traces again with `read`. For a scenario that
/// names no file, pass [`no_files`](crate::scenario::no_files).
///
/// # Examples
/// ```
/// use plait_lab::scenario::no_files;
/// use plait_lab::{Control, RawScenario, Simulator, compare};
/// use std::sync::atomic::AtomicBool;
///
/// let text = "workload = 'download:64kB'\nschedulers = 'minrtt,ecf'\nruns = 2\n\
///             path = ['wifi:rtt=25ms,rate=25mbit', 'lte:rtt=60ms,rate=8mbit']";
/// let scenario = RawScenario::from_toml("scenario", text)?.build()?;
/// let cancelled = AtomicBool::new(false);
/// let document = compare(&scenario, &Simulator, &Control::unwatched(&cancelled), &no_files)?;
/// let rows: Vec<&str> =
///     document.reports()[0].rows.iter().map(|row| row.scheduler.as_str()).collect();
/// assert_eq!(rows, ["minrtt", "ecf", "tcp:wifi", "tcp:lte"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If a trace of a sweep can no longer be read.
pub fn compare<W: World>(
    scenario: &Scenario,
    world: &W,
    control: &Control<'_>,
    read: Reader<'_>,
) -> Result<ComparisonDocument, ScenarioError> {
    let mut points = scenario.points(read)?;
    if points.is_empty() {
        points.push(Point { values: Vec::new(), scenario: scenario.clone() });
    }
    points.iter_mut().for_each(|point| point.scenario = point.scenario.compared());
    let total = points.iter().map(|point| runs_of(&point.scenario)).sum();
    let tally = Tally { done: AtomicUsize::new(0), total: AtomicUsize::new(total) };
    let mut reports: Vec<Report> = Vec::new();
    for point in &points {
        if control.cancelled.load(Ordering::Relaxed) && !reports.is_empty() {
            break;
        }
        let mut report = compare_one(&point.scenario, world, control, &tally);
        report.vary = point.values.iter().cloned().collect();
        for row in &mut report.rows {
            row.point = reports.len();
            row.vary.clone_from(&report.vary);
        }
        reports.push(report);
    }
    let varied = |vary: &Vary| Varied { name: vary.name().into(), values: vary.points().to_vec() };
    let mut hasher = Sha256::new();
    for report in &reports {
        hasher.update(report.digest.as_bytes());
    }
    let digest = match reports.as_slice() {
        [only] if scenario.vary.is_empty() => only.digest.clone(),
        _ => rows::hex(&hasher.finalize()),
    };
    let varied = scenario.vary.iter().map(varied).collect();
    Ok(ComparisonDocument { command: scenario.command_line(), varied, points: reports, digest })
}

/// Counts the ended runs.
struct Tally {
    done: AtomicUsize,
    total: AtomicUsize,
}

fn runs_of(scenario: &Scenario) -> usize {
    let rows = if scenario.paths.len() > 1 { scenario.schedulers.len() } else { 0 };
    (rows + scenario.paths.len()) * scenario.ccs.len() * scenario.effective_runs() as usize
}

fn compare_one<W: World>(
    scenario: &Scenario,
    world: &W,
    control: &Control<'_>,
    tally: &Tally,
) -> Report {
    let cells = cells(scenario);
    let mut outcomes: Outcomes = cells.iter().map(|_| Vec::new()).collect();
    let mut runs = scenario.effective_runs();
    loop {
        run_more(&cells, scenario, world, control, tally, (&mut outcomes, runs));
        let bound = |cell: &Cell, seed: u64| world.bound(cell, seed);
        let mut report = rows::report(scenario, &cells, &outcomes, &bound);
        let cancelled = control.cancelled.load(Ordering::Relaxed);
        let Some(next) = report.precision.and_then(|it| it.next(runs)).filter(|_| !cancelled)
        else {
            if world.keeps_runs() {
                report.each_run = rows::each_run(scenario, &outcomes);
            }
            return report;
        };
        tally.total.fetch_add((next - runs) as usize * cells.len(), Ordering::Relaxed);
        runs = next;
    }
}

/// The outcomes by cell, then run; `None` for a run that was cancelled.
type Outcomes = Vec<Vec<Option<RunOutcome>>>;

/// Runs every cell until it has the wanted number of runs, seed by seed. Therefore an interrupted
/// comparison has the same number of runs for every row.
fn run_more<W: World>(
    cells: &[Cell],
    scenario: &Scenario,
    world: &W,
    control: &Control<'_>,
    tally: &Tally,
    (outcomes, runs): (&mut Outcomes, u32),
) {
    let made = outcomes.first().map_or(0, Vec::len);
    let jobs = cells.len() * (runs as usize).saturating_sub(made);
    let slots: Vec<Mutex<Option<RunOutcome>>> = (0..jobs).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while !control.cancelled.load(Ordering::Relaxed) {
            let job = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = slots.get(job) else { return };
            let (run, row) = (made + job / cells.len(), job % cells.len());
            let (run, cell) = (u32::try_from(run).unwrap_or(u32::MAX), &cells[row]);
            let seed = run_seed(scenario.seed, run);
            let Some(outcome) = world.run_unless(cell, seed, control.cancelled) else { return };
            (control.each_run)(EndedRun { cell, row, run, seed, outcome: &outcome });
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(outcome);
            }
            let done = tally.done.fetch_add(1, Ordering::Relaxed) + 1;
            (control.progress)(done, tally.total.load(Ordering::Relaxed));
        }
    };
    on_threads(scenario.budget.jobs, jobs, worker);
    let mut flat = slots.into_iter().map(|slot| slot.into_inner().unwrap_or(None));
    for _ in made..runs as usize {
        for list in outcomes.iter_mut() {
            list.push(flat.next().flatten());
        }
    }
}

#[cfg(test)]
mod tests;
