//! Advises whether to bond links: draws links from what is known of them, and runs real loads over them with
//! the default scheduler, with a backup path, and with plain TCP on each path alone.

mod document;
mod first;
mod goals;
mod judge;
mod line;
mod links;
mod loads;

pub use document::{
    Advice, Choice, Drawn, FirstLine, FirstPath, Gain, GoalLine, Line, Price, Remedy, SCHEMA,
    Verdict,
};
pub use links::{LOSSLESS_ONE_OF, USUAL_LOSSES};

use crate::compare::{RunOutcome, Subject, World, cells, extra, run_seed};
use crate::error::{Fault, Place, ScenarioError};
use crate::scenario::{PlacedText, RawScenario, Scenario};
use crate::stats::median;
use crate::workers::on_threads;
use links::UncertainPath;
use loads::{CALLS, LOADS, Load, OUTAGE, REMEDIES};
use plait_app::measure::{MEASURES, Value, is_higher_better};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// Draws for which remedies are tried.
const REMEDY_DRAWS: u32 = 12;
/// Smallest typical gain of a remedy that is worth naming.
const NOTABLE_REMEDY: f64 = 1.05;

/// What to advise on.
#[derive(Clone, Debug)]
pub struct Options {
    /// The paths, and the settings of all runs. A value of a path may be an 80 % interval, `18mbit..22mbit`.
    pub raw: RawScenario,
    /// Links to draw.
    pub draws: u32,
    /// Seed of the draws.
    pub seed: u64,
    /// Factor from a rate that is given without an interval to either end of its 80 % interval.
    pub spread: f64,
    /// Runs at a time; by default one for each core.
    pub jobs: Option<NonZeroUsize>,
    /// The command line that gives the advice again.
    pub command: String,
    /// Names of the loads to run. If it is empty, all loads run, also with outages and remedies.
    pub loads: Vec<String>,
    /// Connections begin on the first path, even if another one is better.
    pub keep_order: bool,
}

/// What the advice needs of its caller.
#[derive(Clone, Copy)]
pub struct AdviceControl<'a> {
    /// Called after each draw with the number of ended draws and the total. With a search for the first path, the links are
    /// drawn twice.
    pub progress: &'a (dyn Fn(usize, usize) + Sync),
    /// Once true, no further run begins.
    pub cancelled: &'a AtomicBool,
    /// Returns the files that the paths name.
    pub read: &'a (dyn Fn(&str) -> std::io::Result<String> + Sync),
}

/// The runs of one load in one draw.
#[derive(Clone, Default, Debug)]
struct Played {
    /// The measure: the default scheduler, then each path alone.
    values: Vec<f64>,
    /// The measure of the tail; empty if the load has none.
    tails: Vec<f64>,
    /// With the other paths as backups of each path; empty if there is no outage.
    backups: Vec<f64>,
    /// With each path after the first one as the first; only for short loads, if the order is kept.
    firsts: Vec<f64>,
    shares: Vec<f64>,
    extra: f64,
    /// Payload bytes on each path.
    path_bytes: Vec<f64>,
    /// Bytes of copies on each path.
    extra_bytes: Vec<f64>,
    /// The other goals in their order; empty if no path has a cost or a quota.
    goals: Vec<GoalRun>,
    /// For each path, true if plain TCP on it alone exceeds its quota.
    over_quota: Vec<bool>,
}

/// A run with a goal other than the default.
#[derive(Clone, Debug)]
struct GoalRun {
    /// The measure of the line: the one of the tail in an outage.
    value: f64,
    path_bytes: Vec<f64>,
}

/// A load with the path that has an outage.
type Case = (&'static Load, Option<usize>);

/// Draws links, runs the loads over them and advises. Connections begin on the path on which small downloads and pages
/// are fastest, unless the order is kept.
///
/// # Errors
/// If a path or a setting is refused, before any run.
pub fn advise<W: World>(
    options: &Options,
    world: &W,
    control: &AdviceControl<'_>,
) -> Result<Advice, ScenarioError> {
    let mut options = options.clone();
    // Connections begin on a backup only if the order is kept.
    if !options.keep_order {
        options.raw.paths.sort_by_key(goals::is_backup);
    }
    let mut known = goals::known(&options.raw);
    goals::without_equal_costs(&mut options.raw);
    let mut paths = UncertainPath::all(&options.raw, options.spread)?;
    if paths.len() < 2 {
        let place = Place::Argument("--path".to_owned());
        let error =
            ScenarioError::new(&place, Fault::Missing, "", "advice is about two links or more");
        return Err(error.allow("--path NAME:rate=RATE,rtt=TIME for each link"));
    }
    let unknown: Vec<(String, links::Unknown)> =
        paths.iter().filter_map(|it| Some((it.name().to_owned(), it.unknown?))).collect();
    // Only the short loads depend on the path on which connections begin.
    let searches = unknown.is_empty() && options.loads.is_empty() && !options.keep_order;
    let phases = if searches { 2 } else { 1 };
    let maker = Maker { options: &options, paths: &paths, world, control, phases };
    let first = if searches { first::better_path(&maker)? } else { None };
    if let Some(at) = first.as_ref().and_then(|it| paths.iter().position(|p| p.name() == it.path)) {
        paths[..=at].rotate_right(1);
        options.raw.paths[..=at].rotate_right(1);
        known[..=at].rotate_right(1);
    }
    let mut advice = Advice {
        schema: SCHEMA.to_owned(),
        command: options.command.clone(),
        drawn: Drawn { seed: options.seed, draws: 0, interrupted: false },
        first,
        paths: paths.iter().map(|it| it.name().to_owned()).collect(),
        known,
        prices: goals::prices(&options.raw),
        backups: goals::backups(&options.raw),
        shared: None,
        unknown_rates: unknown.iter().map(|it| it.0.clone()).collect(),
        answer: judge::unknown(&unknown),
        take: None,
        lines: Vec::new(),
        goals: Vec::new(),
        remedies: Vec::new(),
    };
    if advice.unknown_rates.is_empty() {
        let maker = Maker { options: &options, paths: &paths, world, control, phases };
        run(&maker, &mut advice)?;
        advice.take = goals::choice(&advice);
        advice.answer = judge::answer(&advice);
    }
    Ok(advice)
}

/// Runs everything, and fills in the lines and the remedies.
fn run<W: World>(maker: &Maker<'_, W>, advice: &mut Advice) -> Result<(), ScenarioError> {
    let Maker { options, paths, .. } = maker;
    let all = options.loads.is_empty();
    let outages = (0..paths.len()).filter(|_| all).map(|path| (&CALLS, Some(path)));
    let cases: Vec<Case> = LOADS
        .iter()
        .filter(|load| all || options.loads.iter().any(|name| name == load.name))
        .map(|load| (load, None))
        .chain(outages)
        .collect();
    // The first draw reads every setting.
    for (load, down) in &cases {
        let scenario = maker.scenario(0, load, *down, &[])?;
        advice.shared = goals::bottleneck(&scenario);
        if let Some(path) = down {
            maker.scenario(0, load, *down, &[("backup", &path.to_string())])?;
        }
    }
    let played: Vec<(u32, Vec<Played>)> = maker
        .draws(maker.phases - 1, &|draw| cases.iter().map(|case| maker.play(draw, case)).collect());
    advice.drawn.draws = u32::try_from(played.len()).unwrap_or(u32::MAX);
    advice.drawn.interrupted = advice.drawn.draws < maker.total();
    let mut firsts: Vec<Vec<FirstLine>> = Vec::new();
    for (at, (load, down)) in cases.iter().enumerate() {
        let of_case: Vec<&Played> = played.iter().filter_map(|(_, all)| all.get(at)).collect();
        // In an outage, the user of one path has the one that is best for calls without it.
        let calls = advice.lines.iter().find(|it| it.name == CALLS.name);
        let own = calls.and_then(|it| advice.paths.iter().position(|path| *path == it.best_path));
        let outage = down.map(|path| (path, own.unwrap_or(path)));
        if let Some(line) = line::line(load, outage, &of_case, advice) {
            firsts.push(first::lines(load, &of_case, advice.paths.len()));
            advice.goals.extend(goals::lines(load, &line, &of_case, advice));
            for (path, price) in advice.prices.iter_mut().enumerate() {
                if down.is_none() && line::exceeds_quota(&of_case, path) {
                    price.exceeded_by.push(line.name.clone());
                }
            }
            advice.lines.push(line);
        }
    }
    if !advice.drawn.interrupted && all {
        advice.remedies = maker.remedies(&played);
        advice.remedies.extend(first::remedy(&firsts, &advice.paths, &|_| true));
        advice.remedies.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    }
    Ok(())
}

/// Makes the runs.
struct Maker<'a, W> {
    options: &'a Options,
    paths: &'a [UncertainPath],
    world: &'a W,
    control: &'a AdviceControl<'a>,
    /// How many times the links are drawn.
    phases: usize,
}

impl<W: World> Maker<'_, W> {
    /// Returns the number of draws in a phase.
    fn total(&self) -> u32 {
        self.options.draws.max(1)
    }

    /// Plays each draw in a phase. Returns the draws in their order; those that were cancelled are missing.
    fn draws<T: Send>(
        &self,
        phase: usize,
        play: &(dyn Fn(u32) -> Option<T> + Sync),
    ) -> Vec<(u32, T)> {
        let draws = self.total();
        let (before, total) = (phase * draws as usize, self.phases * draws as usize);
        let played: Mutex<Vec<(u32, T)>> = Mutex::new(Vec::new());
        let (next, done) = (AtomicU32::new(0), AtomicUsize::new(before));
        on_threads(self.options.jobs, draws as usize, || {
            while !self.control.cancelled.load(Ordering::Relaxed) {
                let draw = next.fetch_add(1, Ordering::Relaxed);
                if draw >= draws {
                    return;
                }
                let Some(ended) = play(draw) else { return };
                if let Ok(mut list) = played.lock() {
                    list.push((draw, ended));
                }
                (self.control.progress)(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            }
        });
        let mut played = played.into_inner().unwrap_or_default();
        // The draws end in any order; sums do not depend on it.
        played.sort_by_key(|(draw, _)| *draw);
        played
    }

    /// Returns the scenario of a load over the links of a draw.
    fn scenario(
        &self,
        draw: u32,
        load: &Load,
        down: Option<usize>,
        changes: &[(&str, &str)],
    ) -> Result<Scenario, ScenarioError> {
        let seed = run_seed(self.options.seed, draw);
        let mut raw = self.options.raw.clone();
        let first = changes.iter().find(|it| it.0 == "first").and_then(|it| it.1.parse().ok());
        for (at, (raw, path)) in raw.paths.iter_mut().zip(self.paths).enumerate() {
            raw.fields = path.draw(seed);
            let place = raw.name.place.clone();
            let mut set = |key: &str, text: Option<&str>| {
                raw.fields.retain(|it| it.0 != key);
                let text = text.map(|it| (key.to_owned(), PlacedText::new(&place, it)));
                raw.fields.extend(text);
            };
            for (key, text) in changes {
                match *key {
                    "aqm" => set("aqm", Some(text)),
                    "backup" => set("backup", (*text != at.to_string()).then_some("on")),
                    _ => {}
                }
            }
            // A path may have other outages, too.
            if down == Some(at) {
                raw.fields.push(("down".to_owned(), PlacedText::new(&place, OUTAGE)));
            }
        }
        // Connections begin on the first path.
        if let Some(first) = first.filter(|first| *first < raw.paths.len()) {
            let path = raw.paths.remove(first);
            raw.paths.insert(0, path);
        }
        let fixed = [
            ("workload", load.workload),
            ("schedulers", plait_sched::DEFAULT),
            ("exact", "on"),
            ("runs", "1"),
            // Live, plait is the sender of downloads, and a kernel receives them.
            ("receiver", "6.18"),
        ];
        let of_links = |it: &&(&str, &str)| ["aqm", "backup", "first"].contains(&it.0);
        for (name, text) in fixed.iter().chain(changes.iter().filter(|it| !of_links(it))) {
            raw.forget(name);
            raw.argument(name, text)?;
        }
        raw.build_with(&|name| (self.control.read)(name))
    }

    /// Runs a load over the links of a draw; `None` if it was cancelled or a file has vanished.
    fn play(&self, draw: u32, (load, down): &Case) -> Option<Played> {
        let scenario = self.scenario(draw, load, *down, &[]).ok()?;
        let seed = run_seed(self.options.seed, draw);
        let mut played = Played::default();
        for cell in cells(&scenario) {
            let outcome = self.world.run_unless(&cell, seed, self.control.cancelled)?;
            let bonded = matches!(cell.subject, Subject::Scheduler(_));
            let measured = value(&outcome, load.measure);
            played.values.push(if bonded { load.model.live(measured) } else { measured });
            if let Some(tail) = load.tail {
                played.tails.push(value(&outcome, tail));
            }
            if !bonded {
                let path = scenario.paths.get(played.over_quota.len());
                let quota = path.and_then(|it| it.usage.quota);
                played.over_quota.push(quota.is_some_and(|it| first_time(&outcome) > it as f64));
            } else {
                played.extra = extra(&outcome.measures).unwrap_or(0.0);
                let paths = &outcome.measures.paths;
                played.shares = paths.iter().map(|path| path.path_share.unwrap_or(0.0)).collect();
                played.path_bytes = bytes(&outcome);
                played.extra_bytes = paths.iter().map(|path| path.extra_bytes as f64).collect();
            }
        }
        if scenario.has_prices() {
            for goal in goals::others() {
                played.goals.push(self.with_goal(draw, (load, *down), goal)?);
            }
        }
        // The path of an outage with the others as its backups.
        if let Some(path) = down {
            played.backups.push(self.changed(draw, (load, *down), ("backup", *path))?);
        } else if load.is_short && self.options.keep_order && self.options.loads.is_empty() {
            played.firsts = self.firsts(draw, load)?;
        }
        Some(played)
    }

    /// Returns the measure of a load with each path after the first one as the first; `None` if a run was cancelled.
    fn firsts(&self, draw: u32, load: &'static Load) -> Option<Vec<f64>> {
        let others = 1..self.paths.len();
        others.map(|first| self.changed(draw, (load, None), ("first", first))).collect()
    }

    /// Returns the measure of a load with another first path or with the other paths as backups; `None` if the run was
    /// cancelled.
    fn changed(&self, draw: u32, (load, down): Case, (change, path): (&str, usize)) -> Option<f64> {
        let scenario = self.scenario(draw, load, down, &[(change, &path.to_string())]).ok()?;
        let cell = cells(&scenario).into_iter().next()?;
        let seed = run_seed(self.options.seed, draw);
        let outcome = self.world.run_unless(&cell, seed, self.control.cancelled)?;
        let value = value(&outcome, load.measure_of_line(down.is_some()));
        Some(load.model.live(value))
    }

    /// Runs a load with a goal; `None` if it was cancelled.
    fn with_goal(
        &self,
        draw: u32,
        (load, down): (&'static Load, Option<usize>),
        goal: &str,
    ) -> Option<GoalRun> {
        let scenario = self.scenario(draw, load, down, &[("goal", goal)]).ok()?;
        let cell = cells(&scenario).into_iter().next()?;
        let seed = run_seed(self.options.seed, draw);
        let outcome = self.world.run_unless(&cell, seed, self.control.cancelled)?;
        let measure = load.measure_of_line(down.is_some());
        let value = load.model.live(value(&outcome, measure));
        Some(GoalRun { value, path_bytes: bytes(&outcome) })
    }

    /// Tries each remedy on the first draws, for downloads and calls.
    fn remedies(&self, played: &[(u32, Vec<Played>)]) -> Vec<Remedy> {
        let mut found: Vec<Remedy> = Vec::new();
        for (change, settings) in REMEDIES {
            let gain = |at: usize| -> Option<(f64, &'static str)> {
                let load = LOADS.get(at)?;
                let ratio = |(draw, all): &(u32, Vec<Played>)| {
                    let before = *all.get(at)?.values.first()?;
                    let scenario = self.scenario(*draw, load, None, settings).ok()?;
                    let cell = cells(&scenario).into_iter().next()?;
                    let seed = run_seed(self.options.seed, *draw);
                    let outcome = self.world.run_unless(&cell, seed, self.control.cancelled)?;
                    let after = load.model.live(value(&outcome, load.measure));
                    Some(better(load.measure, after, before))
                };
                let first = played.iter().take(REMEDY_DRAWS as usize);
                let ratios: Vec<f64> = first.filter_map(ratio).collect();
                Some((median(&ratios)?, load.name))
            };
            // Large downloads and calls.
            let best = [1, 3].into_iter().filter_map(gain).max_by(|a, b| a.0.total_cmp(&b.0));
            if let Some((gain, load)) = best.filter(|it| it.0 >= NOTABLE_REMEDY) {
                let (change, load) = (change.to_owned(), load.to_owned());
                found.push(Remedy { change, load, gain, first: None });
            }
        }
        found
    }
}

/// The value of a run that did not end, if higher is better.
const NOTHING: f64 = 1e-3;
/// The value in ms of a run that did not end, if lower is better.
const UNFINISHED_MS: f64 = 3_600_000.0;

/// Returns true if a value of a measure stands for a run that did not end.
fn fails(measure: &str, value: f64) -> bool {
    if is_higher_better(measure) { value <= NOTHING } else { value >= UNFINISHED_MS }
}

/// Returns a measure of a run. A run that did not end has the worst value.
fn value(outcome: &RunOutcome, measure: &str) -> f64 {
    let worst = if is_higher_better(measure) { NOTHING } else { UNFINISHED_MS };
    let entry = MEASURES.iter().find(|entry| entry.name == measure);
    let Some(Value::Run(of)) = entry.map(|entry| entry.value) else { return worst };
    if !outcome.counts() {
        return worst;
    }
    of(&outcome.measures).unwrap_or(worst)
}

/// Returns how much better `ours` is than `theirs`; above 1 is better.
fn better(measure: &str, ours: f64, theirs: f64) -> f64 {
    if is_higher_better(measure) { ours / theirs } else { theirs / ours }
}

/// Returns the payload bytes of a run that are no retransmissions, rounded. A quota counts them.
fn first_time(outcome: &RunOutcome) -> f64 {
    let again = outcome.measures.retransmitted_share.unwrap_or(0.0);
    (bytes(outcome).iter().sum::<f64>() * (1.0 - again)).round()
}

/// Returns the payload bytes of a run on each path.
fn bytes(outcome: &RunOutcome) -> Vec<f64> {
    outcome.measures.paths.iter().map(|path| path.sent_bytes as f64).collect()
}

#[cfg(test)]
mod tests;
