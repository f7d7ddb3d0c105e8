//! Cells x seeds: every row of a comparison over the same seeds, in parallel, with a report that
//! does not depend on how many ran at a time.

mod judge;
mod rows;
mod why;

use crate::error::ScenarioError;
use crate::report::{Document, Report, Varied};
use crate::scenario::Scenario;
use crate::vary::{Point, Vary};
use crate::workers::on_threads;
use plait_app::Measures;
use plait_app::measure::Habits;
use plait_base::{RandomStream, Span};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A row of the table as it is to be run.
#[derive(Clone, PartialEq, Debug)]
pub struct Cell {
    /// What it runs in: paths, workload, settings.
    pub scenario: Arc<Scenario>,
    /// Who chooses the path.
    pub subject: Subject,
    /// Congestion controller.
    pub cc: plait_cc::Spec,
}

/// Who chooses the path of a segment.
#[derive(Clone, PartialEq, Debug)]
pub enum Subject {
    /// A scheduler, over all paths.
    Scheduler(plait_sched::Spec),
    /// Nobody: plain TCP on the path at this index.
    SinglePath(usize),
}

/// What one run gave.
#[derive(Clone, PartialEq, Debug)]
pub struct RunOutcome {
    /// What was measured. Paths are those of the scenario, in its order, in a single-path run too.
    pub measures: Measures,
    /// Goodput in Mbit/s of each flow that competed, from its start to the end of the run: a list for
    /// each of [`Scenario::compete`].
    pub competing: Vec<Vec<f64>>,
    /// How it spent its time, where somebody looked.
    pub habits: Option<Habits>,
    /// From the start of its application to its end.
    pub length: Span,
    /// Running hash over every segment sent and delivered.
    pub hash: u64,
    /// Whether the workload finished before the deadline.
    pub completed: bool,
    /// That its connection broke, when and why, in words.
    pub broke: Option<String>,
    /// The first violation of an invariant, in words, where they are checked.
    pub violation: Option<String>,
}

impl RunOutcome {
    /// Whether its measures count: it finished, and nothing was wrong with it.
    #[must_use]
    pub const fn counts(&self) -> bool {
        self.completed && self.violation.is_none()
    }

    /// Why its measures do not count, in words.
    #[must_use]
    pub fn failure(&self, scenario: &Scenario) -> Option<String> {
        match (&self.violation, &self.broke) {
            (Some(violation), _) => Some(format!("invariant violated: {violation}")),
            (None, _) if self.completed => None,
            (None, Some(broke)) => Some(broke.clone()),
            (None, None) => Some(format!("not finished after {}", scenario.deadline())),
        }
    }
}

/// What runs a cell: the simulator, or a stand-in.
pub trait World: Sync {
    /// Runs a cell once. The same cell and seed give the same outcome.
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome;

    /// Whether reports get a record of every run. They take about 1 kB each.
    fn keeps_runs(&self) -> bool {
        false
    }
}

/// A world whose reports have a record of every run ([`Report::each_run`]).
#[derive(Clone, Copy, Default, Debug)]
pub struct KeepRuns<W>(pub W);

impl<W: World> World for KeepRuns<W> {
    fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
        self.0.run(cell, seed)
    }

    fn keeps_runs(&self) -> bool {
        true
    }
}

/// How a comparison is watched and stopped.
pub struct Control<'a> {
    /// Told after every run: how many are done, of how many. Called from several threads.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Once true, no further run begins, and what is there is reported.
    pub cancelled: &'a AtomicBool,
}

impl Cell {
    /// Whether Multipath TCP is spoken.
    #[must_use]
    pub const fn multipath(&self) -> bool {
        matches!(self.subject, Subject::Scheduler(_))
    }

    /// The settings of its connection.
    #[must_use]
    pub fn connection(&self) -> plait_core::Config {
        self.scenario.connection(self.multipath())
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

/// The rows of a scenario: for each congestion controller the schedulers, then plain TCP on each
/// path. With one path a connection is plain TCP, and there are no scheduler rows.
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

/// The seed of run `run`: every row of a run meets the same network.
///
/// Run 0 has `seed` itself, so any run can be made alone by giving its seed. The others are drawn
/// from it: were they `seed + run`, comparisons with neighbouring seeds would share most runs.
#[must_use]
pub fn run_seed(seed: u64, run: u32) -> u64 {
    if run == 0 { seed } else { RandomStream::new(seed, &["run", &run.to_string()]).bits() }
}

/// Runs a scenario, and with `--vary` every point of it. Hosts jitter if nothing else is random
/// ([`Scenario::compared`]).
///
/// # Errors
/// If a trace of a sweep can no longer be read.
pub fn compare<W: World>(
    scenario: &Scenario,
    world: &W,
    control: &Control<'_>,
) -> Result<Document, ScenarioError> {
    let mut points = scenario.points(&plait_app::file::named)?;
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
    Ok(Document { command: scenario.command_line(), varied, points: reports, digest })
}

/// How many runs are done, of how many.
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
        let mut report = rows::report(scenario, &cells, &outcomes);
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

/// The outcomes by cell, then run; `None` where it was cancelled before.
type Outcomes = Vec<Vec<Option<RunOutcome>>>;

/// Runs every cell until it has as many runs. Seed by seed, so that an interrupted comparison has as
/// many runs of one row as of another.
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
            let (run, cell) = (made + job / cells.len(), &cells[job % cells.len()]);
            let run = u32::try_from(run).unwrap_or(u32::MAX);
            let outcome = world.run(cell, run_seed(scenario.seed, run));
            if let Ok(mut slot) = slot.lock() {
                *slot = Some(outcome);
            }
            let done = tally.done.fetch_add(1, Ordering::Relaxed) + 1;
            (control.progress)(done, tally.total.load(Ordering::Relaxed));
        }
    };
    on_threads(scenario.jobs, jobs, worker);
    let mut flat = slots.into_iter().map(|slot| slot.into_inner().unwrap_or(None));
    for _ in made..runs as usize {
        for list in outcomes.iter_mut() {
            list.push(flat.next().flatten());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawScenario;
    use plait_app::measure::PathMeasures;

    /// Completion depends on the row, the seed and, where asked, on chance.
    struct Fake;

    impl World for Fake {
        fn run(&self, cell: &Cell, seed: u64) -> RunOutcome {
            let name = cell.to_string();
            let base = match name.as_str() {
                "minrtt" => 100.0,
                "ecf" => 50.0,
                "tcp:wifi" => 80.0,
                _ => 400.0,
            };
            let noise = RandomStream::new(seed, &["noise"]).unit();
            let rtt = cell.scenario.paths.iter().map(|path| path.delay.down.start.as_millis_f64());
            let completion_ms = Some(base + noise + rtt.sum::<f64>());
            let share = PathMeasures { path_share: Some(0.5), ..PathMeasures::default() };
            let measures = Measures {
                complete: true,
                completion_ms,
                reinjected_share: Some(0.25),
                paths: vec![share; cell.scenario.paths.len()],
                ..Measures::default()
            };
            // minrtt does not finish with one seed of three.
            let failed = name == "minrtt" && seed.is_multiple_of(3);
            let violation = (cell.scenario.check && failed).then(|| "snd_una ahead".to_owned());
            let completed = !failed || violation.is_some();
            let (competing, habits, hash) = (Vec::new(), None, seed);
            let length = Span::from_secs(1);
            let broke = None;
            RunOutcome { measures, competing, habits, length, hash, completed, broke, violation }
        }
    }

    fn scenario(more: &[(&str, &str)]) -> Scenario {
        let mut raw = RawScenario::new();
        let base = [
            ("path", "wifi:rtt=20ms,rate=25mbit,loss=1%"),
            ("path", "lte:rtt=60ms,rate=10mbit"),
            ("workload", "download:512kB"),
            ("schedulers", "minrtt,ecf"),
            ("runs", "8"),
        ];
        let replaced = |name: &str| name != "path" && more.iter().any(|(other, _)| *other == name);
        for (name, text) in base.iter().filter(|(name, _)| !replaced(name)).chain(more) {
            raw.argument(name, text).unwrap();
        }
        raw.build().unwrap()
    }

    fn run(scenario: &Scenario) -> Document {
        let control = Control { progress: &|_, _| (), cancelled: &AtomicBool::new(false) };
        compare(scenario, &Fake, &control).unwrap()
    }

    fn only(mut document: Document) -> Report {
        assert!(document.single().is_some());
        document.points.remove(0)
    }

    #[test]
    fn rows_are_in_order_and_speedups_above_one_are_better() {
        let report = only(run(&scenario(&[])));
        let names: Vec<&str> = report.rows.iter().map(|row| row.scheduler.as_str()).collect();
        assert_eq!(names, ["minrtt", "ecf", "tcp:wifi", "tcp:lte"]);
        assert_eq!(report.best_path.as_deref(), Some("tcp:wifi"));
        let ecf = &report.rows[1];
        let (row, best) = (ecf.measures["completion_ms"], report.rows[2].measures["completion_ms"]);
        assert_eq!(ecf.speedup_vs_best_path, Some(best.median / row.median));
        assert!(ecf.speedup_vs_best_path.unwrap() > 1.0);
        assert_eq!(report.rows[2].speedup_vs_best_path, Some(1.0));
        assert!(report.rows[3].speedup_vs_best_path.unwrap() < 0.5);
        assert_eq!((row.n, ecf.reinjected_share, ecf.path_share["lte"]), (8, Some(0.25), 0.5));
        assert!(!ecf.measures.contains_key("goodput_mbps"));
    }

    #[test]
    fn unfinished_runs_are_counted_and_in_no_statistic() {
        let report = only(run(&scenario(&[("expect", "minrtt.completion_ms < 1000")])));
        let minrtt = &report.rows[0];
        let unfinished = (0..8).filter(|run| run_seed(1, *run).is_multiple_of(3)).count() as u32;
        assert!((1..8).contains(&unfinished));
        let counts = (minrtt.incomplete, minrtt.measures["completion_ms"].n);
        assert_eq!(counts, (unfinished, 8 - unfinished));
        assert_eq!(minrtt.speedup_vs_best_path, None);
        assert!(!report.expectations[0].holds);
        assert_eq!(minrtt.failures.len(), unfinished as usize);
        assert!(minrtt.failures[0].seed.is_multiple_of(3));
        assert_eq!(minrtt.failures[0].reason, "not finished after 3600s");
    }

    #[test]
    fn a_violated_invariant_is_a_failure_with_its_seed() {
        let report = only(run(&scenario(&[("check", "on")])));
        let minrtt = &report.rows[0];
        assert!(minrtt.incomplete > 0);
        assert_eq!(minrtt.failures[0].reason, "invariant violated: snd_una ahead");
        assert!(report.rows[1].failures.is_empty());
    }

    #[test]
    fn the_report_does_not_depend_on_jobs_but_on_the_seed() {
        let digest = |more: &[(&str, &str)]| only(run(&scenario(more))).digest;
        let one = only(run(&scenario(&[("jobs", "1")])));
        let mut four = only(run(&scenario(&[("jobs", "4")])));
        four.command.clone_from(&one.command);
        assert_eq!(one, four);
        assert_eq!(one.digest.len(), 64);
        assert_ne!(one.digest, digest(&[("seed", "2")]));
        assert_ne!(one.digest, digest(&[("runs", "7")]));
        assert_ne!(one.digest, digest(&[("schedulers", "ecf,minrtt")]));
    }

    #[test]
    fn runs_of_neighbouring_seeds_are_not_shared() {
        let seeds = |seed: u64| (0..100).map(move |run| run_seed(seed, run));
        assert_eq!(run_seed(7, 0), 7);
        let all: std::collections::BTreeSet<u64> = seeds(1).chain(seeds(2)).collect();
        assert_eq!(all.len(), 200);
    }

    #[test]
    fn without_chance_one_run_is_made() {
        let mut raw = RawScenario::new();
        for (name, text) in [
            ("path", "wifi:rtt=20ms,rate=25mbit"),
            ("workload", "download:512kB"),
            ("cc", "cubic,lia"),
            ("exact", "on"),
        ] {
            raw.argument(name, text).unwrap();
        }
        let report = only(run(&raw.build().unwrap()));
        // One path is plain TCP.
        let names: Vec<String> =
            report.rows.iter().map(|row| format!("{}/{}", row.scheduler, row.cc)).collect();
        assert_eq!(names, ["tcp:wifi/cubic", "tcp:wifi/lia"]);
        let summary = report.rows[0].measures["completion_ms"];
        assert_eq!((report.runs, summary.n, summary.ci95), (1, 1, [summary.mean; 2]));
    }

    #[test]
    fn a_cancelled_comparison_reports_what_it_has() {
        let cancelled = AtomicBool::new(false);
        let stop = |done: usize, total: usize| {
            assert!(done <= total && total == 32);
            if done == 4 {
                cancelled.store(true, Ordering::Relaxed);
            }
        };
        let control = Control { progress: &stop, cancelled: &cancelled };
        let report = only(compare(&scenario(&[("jobs", "1")]), &Fake, &control).unwrap());
        assert!(report.interrupted);
        assert!(report.rows.iter().all(|row| row.measures["completion_ms"].n == 1));
    }

    #[test]
    fn a_sweep_has_a_report_a_point_and_checks_each() {
        let document = run(&scenario(&[
            ("vary", "lte.rtt=40ms..400ms:10"),
            ("expect", "ecf.completion_ms < 100"),
        ]));
        assert!(!document.holds());
        let sweep = &document;
        assert_eq!(sweep.points.len(), 10);
        assert_eq!(sweep.points[9].vary["lte.rtt"], "400ms");
        assert_eq!(sweep.points[9].paths[1].rtt_us, 400_000);
        assert!(sweep.points[0].expectations[0].holds && !sweep.points[9].expectations[0].holds);
        assert!(sweep.command.contains("--vary") && !sweep.points[0].command.contains("--vary"));
    }

    #[test]
    fn the_json_has_the_documented_shape_and_reads_back() {
        let document = run(&scenario(&[]));
        let value = serde_json::to_value(&document).unwrap();
        assert_eq!(value["schema"], "plait.compare/1");
        assert_eq!(value["paths"][0]["rate_down_bps"], 25_000_000);
        assert_eq!(value["paths"][0]["rtt_us"], 20_000);
        assert_eq!(value["rows"][1]["scheduler"], "ecf");
        for key in ["mean", "median", "p95", "min", "max", "ci95", "n"] {
            assert!(!value["rows"][1]["measures"]["completion_ms"][key].is_null(), "{key}");
        }
        assert!(value["rows"][1]["measures"].get("goodput_mbps").is_none());
        let mut written = document.clone();
        // Runs are for tables of runs alone.
        written.points.iter_mut().for_each(|point| point.each_run.clear());
        assert_eq!(serde_json::from_value::<Document>(value.clone()).unwrap(), written);
        let sweep = serde_json::to_value(run(&scenario(&[("vary", "lte.rtt=40ms,50ms")]))).unwrap();
        let keys = |value: &serde_json::Value| {
            value.as_object().unwrap().keys().cloned().collect::<Vec<String>>()
        };
        assert_eq!(keys(&sweep), keys(&value));
        assert_eq!(keys(&sweep["points"][0]), keys(&value["points"][0]));
        assert_eq!(sweep["rows"].as_array().unwrap().len(), 8);
        assert_eq!(
            (&sweep["rows"][5]["point"], &sweep["rows"][5]["vary"]["lte.rtt"]),
            (&1.into(), &"50ms".into())
        );
        let schema = crate::schema("compare").unwrap().to_string();
        for key in ["speedup_vs_best_path", "path_share", "ci95", "digest", "points"] {
            assert!(schema.contains(key), "{key}");
        }
        assert_eq!(crate::schema("nothing"), None);
    }
}
