//! Compares every scheduler with plain TCP on the best single path, over many links and loads. The worst
//! result of a scheduler determines its rank.

mod ground;
pub mod random;

pub use ground::{Ground, measured, own, recorded, select};

use crate::compare::{Control, World, compare};
use crate::error::{Fault, Place, ScenarioError};
use crate::report::{Report, Row};
use crate::scenario::{Reader, Scenario};
use crate::stats::{median, speedup};
use plait_app::Workload;
use plait_app::measure::is_higher_better;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Name and version of the document.
pub const SCHEMA: &str = "plait.scoreboard/1";

/// Variants that are measured beside every scheduler of the list: the decorators, and the interpretations of
/// ECF and BLEST that lead to different decisions.
pub const VARIANTS: &str = "minrtt+rp,minrtt+bm,minrtt+copy,ecf+rp,ecf+copy,stms-c+copy,\
                            ecf:floor=off,ecf:m=4,ecf:count_queued=on,\
                            blest:mode=paper,blest+rp:mode=retransmit";

/// Smallest ratio that counts as equal to the best single path. It allows for the DSS option, 20 of 1448
/// bytes in each packet, rounded up.
pub const EQUAL: f64 = 0.98;

/// The document that `plait scoreboard --json` prints.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Board {
    /// Always `plait.scoreboard/1`.
    pub schema: String,
    /// The command line that runs it again.
    pub command: String,
    /// Seed of the first run of every cell.
    pub seed: u64,
    /// Runs of a row if its links have randomness; otherwise a row has one run.
    pub runs: u32,
    /// Congestion controller of every row.
    pub cc: String,
    /// The schedulers, the one with the best worst cell first.
    pub standings: Vec<Standing>,
    /// The cells, the worst of the first scheduler first.
    pub cells: Vec<Cell>,
    /// Grounds that are missing, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// True if cells are missing because the scoreboard was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// SHA-256, in hexadecimal, over the digests of the comparisons.
    pub digest: String,
}

/// A scheduler over all cells.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// Scheduler in canonical form.
    pub scheduler: String,
    /// Smallest ratio to the best single path; 0 if a run failed.
    pub worst: f64,
    /// The cell of the smallest ratio.
    pub worst_cell: String,
    /// Median of the ratios.
    pub median: f64,
    /// Largest ratio.
    pub best: f64,
    /// The cell of the largest ratio.
    pub best_cell: String,
    /// Number of cells in which the scheduler is more than 2 % slower than the best single path.
    pub slower: u32,
}

/// A measure of a load over links.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Name of the cell: the links, and for a stream the percentile of the message delay.
    pub cell: String,
    /// The links and the load, as on a command line of `plait compare`.
    pub settings: String,
    /// The measure.
    pub measure: String,
    /// The best single path with plain TCP: `tcp:PATH`.
    pub best_path: String,
    /// Median of the best single path.
    pub best_path_median: f64,
    /// By scheduler.
    pub scores: BTreeMap<String, Score>,
}

/// The result of a scheduler in a cell.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// Median of the runs; absent if a run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median: Option<f64>,
    /// Ratio of the medians; above 1 is better than the best single path. 0 if a run failed.
    pub ratio: f64,
}

/// The grounds and settings of a scoreboard.
#[derive(Clone, Debug)]
pub struct Options {
    /// Links and loads.
    pub grounds: Vec<Ground>,
    /// Grounds that are known to be missing.
    pub missing: Vec<String>,
    /// Settings of every comparison: schedulers, cc, runs, seed, jobs.
    pub settings: Vec<(&'static str, String)>,
    /// The command line that runs it again.
    pub command: String,
}

impl Options {
    /// Refuses several controllers.
    ///
    /// # Errors
    /// If `cc` names more than one.
    pub fn check(&self) -> Result<(), ScenarioError> {
        one_controller(&self.settings)
    }
}

/// Refuses settings with several controllers.
fn one_controller(settings: &[(&'static str, String)]) -> Result<(), ScenarioError> {
    let several = settings.iter().find(|(name, cc)| *name == "cc" && cc.contains(','));
    several.map_or(Ok(()), |(_, cc)| {
        let place = Place::Argument("--cc".to_owned());
        Err(ScenarioError::new(&place, Fault::Conflict, cc, "a scoreboard has one controller"))
    })
}

/// Refuses a path with a cost or a quota. A scoreboard ranks by speed alone and has no bytes by path.
fn without_prices(scenario: &Scenario) -> Result<(), ScenarioError> {
    let Some(path) = scenario.paths.iter().find(|path| path.usage.has_price()) else {
        return Ok(());
    };
    let place = Place::Argument("--path or --links".to_owned());
    let problem = "a scoreboard ranks by speed alone, so a path has neither cost nor quota";
    let allowed =
        "paths without cost= and quota=; `plait compare --goal` has the bytes of each path";
    Err(ScenarioError::new(&place, Fault::Conflict, &path.name, problem).allow(allowed))
}

/// Measures every ground, one comparison after the other.
///
/// # Errors
/// As [`Options::check`], and if a setting is refused or a path has a cost or a quota, before any run.
pub fn scoreboard<W: World>(
    options: &Options,
    world: &W,
    control: &Control<'_>,
    read: Reader<'_>,
) -> Result<Board, ScenarioError> {
    options.check()?;
    let scenarios: Vec<(&Ground, Scenario)> = options
        .grounds
        .iter()
        .map(|ground| Ok((ground, ground.scenario(&options.settings, read)?)))
        .collect::<Result<_, ScenarioError>>()?;
    scenarios.iter().try_for_each(|(_, scenario)| without_prices(scenario))?;
    let runs = |(_, it): &(&Ground, Scenario)| {
        (it.schedulers.len() + it.paths.len()) * it.ccs.len() * it.effective_runs() as usize
    };
    let total: usize = scenarios.iter().map(runs).sum();
    let first = scenarios.first().map(|(_, scenario)| scenario);
    let mut board = Board {
        schema: SCHEMA.to_owned(),
        command: options.command.clone(),
        seed: first.map_or(0, |it| it.seed),
        runs: first.map_or(0, |it| it.budget.runs),
        cc: first.and_then(|it| it.ccs.first()).map_or(String::new(), plait_cc::Spec::name),
        standings: Vec::new(),
        cells: Vec::new(),
        missing: options.missing.clone(),
        interrupted: false,
        digest: String::new(),
    };
    let (before, mut hasher) = (AtomicUsize::new(0), Sha256::new());
    for entry in &scenarios {
        let done = before.load(Ordering::Relaxed);
        let advance = |now: usize, _: usize| (control.progress)(done + now, total);
        let own = Control { progress: &advance, ..*control };
        let document = compare(&entry.1, world, &own, read)?;
        before.fetch_add(runs(entry), Ordering::Relaxed);
        for report in document.reports() {
            hasher.update(report.digest.as_bytes());
            board.interrupted |= report.interrupted;
        }
        if control.cancelled.load(Ordering::Relaxed) {
            // The interrupted comparison has fewer runs than the others.
            board.interrupted = true;
            break;
        }
        if let Some(report) = document.single() {
            board.take(entry.0, &entry.1.workload, report);
        }
    }
    board.digest = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    board.judge();
    Ok(board)
}

/// Returns the measures of a load, each with a suffix for the name of the cell. For a stream they
/// are the median and the 99th percentile of the message delay.
fn measures(workload: &Workload) -> Vec<(&'static str, &'static str)> {
    match workload {
        Workload::Stream { .. } => {
            vec![("message_delay_median_ms", " p50"), ("message_delay_p99_ms", " p99")]
        }
        other => vec![(other.primary(), "")],
    }
}

impl Board {
    /// Adds the cells of a comparison.
    fn take(&mut self, ground: &Ground, workload: &Workload, report: &Report) {
        for (measure, suffix) in measures(workload) {
            let name = format!("{}{suffix}", ground.name);
            match cell(name.clone(), ground, measure, report) {
                Some(cell) => self.cells.push(cell),
                None => self.missing.push(format!("{name}: plain TCP finishes on no path")),
            }
        }
    }

    /// Computes the ranks from the cells.
    fn judge(&mut self) {
        let names: Vec<String> = self
            .cells
            .first()
            .map(|cell| cell.scores.keys().cloned().collect())
            .unwrap_or_default();
        self.standings = names.iter().filter_map(|name| self.standing(name)).collect();
        // Of equal schedulers, the better median comes first, then the name.
        self.standings
            .sort_by(|a, b| b.worst.total_cmp(&a.worst).then(b.median.total_cmp(&a.median)));
        let Some(first) = self.standings.first().map(|it| it.scheduler.clone()) else { return };
        let ratio = |cell: &Cell| cell.scores.get(&first).map_or(0.0, |score| score.ratio);
        self.cells.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    }

    fn standing(&self, scheduler: &str) -> Option<Standing> {
        let each: Vec<(&str, f64)> = self
            .cells
            .iter()
            .filter_map(|cell| Some((cell.cell.as_str(), cell.scores.get(scheduler)?.ratio)))
            .collect();
        let worst = each.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        let best = each.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
        let ratios: Vec<f64> = each.iter().map(|(_, ratio)| *ratio).collect();
        Some(Standing {
            scheduler: scheduler.to_owned(),
            worst: worst.1,
            worst_cell: worst.0.to_owned(),
            median: median(&ratios)?,
            best: best.1,
            best_cell: best.0.to_owned(),
            slower: u32::try_from(ratios.iter().filter(|it| **it < EQUAL).count())
                .unwrap_or(u32::MAX),
        })
    }
}

/// Returns one measure of a comparison; `None` if plain TCP lacks it on every path.
fn cell(name: String, ground: &Ground, measure: &str, report: &Report) -> Option<Cell> {
    let higher = is_higher_better(measure);
    let value = |row: &Row| {
        let summary = row.measures.get(measure).filter(|_| row.incomplete == 0);
        summary.map(|summary| summary.median)
    };
    let is_single = |row: &&Row| row.scheduler.starts_with("tcp:");
    let singles = report.rows.iter().filter(is_single);
    let (best_path_median, best_path) = singles
        .filter_map(|row| Some((value(row)?, row.scheduler.clone())))
        .reduce(|best, other| if (other.0 > best.0) == higher { other } else { best })?;
    let score = |row: &Row| {
        let median = value(row);
        let ratio = median.and_then(|value| speedup(value, best_path_median, higher));
        Score { median, ratio: ratio.unwrap_or(0.0) }
    };
    let scores = report.rows.iter().filter(|row| !is_single(row));
    Some(Cell {
        cell: name,
        settings: ground.command(),
        measure: measure.to_owned(),
        best_path,
        best_path_median,
        scores: scores.map(|row| (row.scheduler.clone(), score(row))).collect(),
    })
}

#[cfg(test)]
mod tests;
