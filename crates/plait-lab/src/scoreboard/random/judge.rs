//! Judges schedulers over the cells of a random scoreboard.

use super::{Comparison, PathOrder, Played, RandomOptions};
use crate::stats::median;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// Name and version of the document.
pub const SCHEMA: &str = "plait.scoreboard.random/1";

/// Number of cells in the list of the worst.
const WORST_CELLS: usize = 20;
/// Property of the comparisons in which plain TCP is fastest on the first path.
const BEST_PATH_FIRST: &str = "best path first";
/// Bounds between the columns and rows of the map: ratios of rates and of RTTs.
const STEPS: [f64; 6] = [1.0 / 16.0, 1.0 / 4.0, 1.0 / 1.5, 1.5, 4.0, 16.0];

/// The document that `plait scoreboard --random N --json` prints.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RandomBoard {
    /// Always `plait.scoreboard.random/1`.
    pub schema: String,
    /// The command line that runs it again.
    pub command: String,
    /// Seed of the draw.
    pub seed: u64,
    /// True if the path on which plain TCP is fastest is dialled first.
    pub best_path_first: bool,
    /// Runs of each row; a value is their median.
    pub runs: u32,
    /// Number of comparisons: two for a stream, else one for each cell.
    pub comparisons: usize,
    /// The schedulers, the one that is least often more than 10 % slower than `startable` first.
    pub standings: Vec<Standing>,
    /// The best scheduler of each comparison: no choice between these schedulers harms less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_of_each: Option<Against>,
    /// `startable` in further runs against itself: the harm that chance alone shows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<Against>,
    /// The schedulers by property of the cell.
    pub classes: Vec<Class>,
    /// The first scheduler by the ratios of the paths' rates and RTTs.
    pub map: Vec<MapCell>,
    /// The worst cells of the first scheduler against `startable`, the worst first.
    pub worst: Vec<Worst>,
    /// Every cell.
    pub cells: Vec<Played>,
    /// Cells that could not be judged, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// True if cells are missing because the scoreboard was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// What a scheduler is compared with.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Baseline {
    /// The lesser of plain TCP on the first path, and plain TCP on another one plus two RTTs of the first.
    Startable,
    /// Plain TCP on the best path.
    Known,
    /// Plain TCP on the first path.
    First,
}

impl Baseline {
    /// Every baseline.
    pub const ALL: [Baseline; 3] = [Baseline::Startable, Baseline::Known, Baseline::First];

    /// Returns its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Baseline::Startable => "startable",
            Baseline::Known => "known",
            Baseline::First => "first",
        }
    }

    const fn of(self, comparison: &Comparison) -> f64 {
        match self {
            Baseline::Startable => comparison.startable,
            Baseline::Known => comparison.known,
            Baseline::First => comparison.first,
        }
    }
}

/// A scheduler over all cells.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// Scheduler in canonical form.
    pub scheduler: String,
    /// Against each baseline.
    pub against: BTreeMap<Baseline, Against>,
    /// Geometric mean of its time over that of the best scheduler of the cell.
    pub vs_best: f64,
    /// Median share of the bound, over the comparisons that have one: 1 is the bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_bound: Option<f64>,
    /// Mean of copies over payload.
    pub extra: f64,
}

/// A scheduler against a baseline.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Against {
    /// Share of the comparisons in which it takes more than 2 % longer.
    pub worse_2: f64,
    /// Share of the comparisons in which it takes more than 10 % longer.
    pub worse_10: f64,
    /// Largest ratio of the times; above 1 is slower.
    pub worst: f64,
    /// Number of the cell of the largest ratio.
    pub worst_cell: u32,
    /// Median of the ratios.
    pub median: f64,
}

/// The schedulers in cells with a property.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Class {
    /// The property, such as `download` or `loss`. `best path first` is one of each comparison.
    pub class: String,
    /// Number of comparisons.
    pub comparisons: usize,
    /// Against `startable`, by scheduler.
    pub against: BTreeMap<String, Against>,
    /// The best scheduler of each comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_of_each: Option<Against>,
    /// `startable` in further runs against itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<Against>,
}

/// The first scheduler in cells with like ratios of the paths.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MapCell {
    /// Least and largest rate of the second path over that of the first; `null` is no limit.
    pub rate_ratio: [Option<f64>; 2],
    /// Least and largest RTT of the second path over that of the first; `null` is no limit.
    pub rtt_ratio: [Option<f64>; 2],
    /// Number of comparisons.
    pub comparisons: usize,
    /// Geometric mean of its time over that of `startable`; below 1 is faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
}

/// A cell in which a scheduler is slow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Worst {
    /// Number of the cell.
    pub number: u32,
    /// The measure.
    pub measure: String,
    /// Time of the scheduler over that of `startable`.
    pub ratio: f64,
    /// The command line that compares the rows of the cell.
    pub command: String,
}

/// Judges the schedulers over the cells that were played.
#[must_use]
pub fn judge(
    options: &RandomOptions,
    cells: Vec<Played>,
    missing: Vec<String>,
    interrupted: bool,
) -> RandomBoard {
    let pairs: Vec<(&Played, &Comparison)> =
        cells.iter().flat_map(|cell| cell.comparisons.iter().map(move |it| (cell, it))).collect();
    let names: BTreeSet<&String> = pairs.iter().flat_map(|(_, it)| it.values.keys()).collect();
    let mut standings: Vec<Standing> =
        names.iter().filter_map(|name| standing(name, &cells, &pairs)).collect();
    standings.sort_by(by_harm);
    let first = standings.first().map_or(String::new(), |it| it.scheduler.clone());
    RandomBoard {
        schema: SCHEMA.to_owned(),
        command: options.command.clone(),
        seed: options.seed,
        best_path_first: options.order == PathOrder::Known,
        runs: options.runs,
        comparisons: pairs.len(),
        best_of_each: best_of_each(&pairs),
        again: again(&pairs),
        classes: classes(&names, &pairs),
        map: map(&first, &pairs),
        worst: worst(&first, &pairs),
        standings,
        cells,
        missing,
        interrupted,
    }
}

/// Orders schedulers by the share of comparisons in which they are more than 10 % slower. If that is
/// equal, by the share with more than 2 %, and then by their time over that of the best scheduler.
pub(super) fn by_harm(a: &Standing, b: &Standing) -> Ordering {
    let shares = |it: &Standing| {
        let against = it.against.get(&Baseline::Startable);
        against.map_or([f64::INFINITY; 2], |it| [it.worse_10, it.worse_2])
    };
    let [a_10, a_2] = shares(a);
    let [b_10, b_2] = shares(b);
    let by_shares = a_10.total_cmp(&b_10).then(a_2.total_cmp(&b_2));
    by_shares.then(a.vs_best.total_cmp(&b.vs_best))
}

fn standing(name: &str, cells: &[Played], pairs: &[(&Played, &Comparison)]) -> Option<Standing> {
    let against = Baseline::ALL
        .into_iter()
        .map(|baseline| Some((baseline, against(name, baseline, pairs)?)))
        .collect::<Option<_>>()?;
    let value = |it: &Comparison| it.values.get(name).copied();
    let shares: Vec<f64> =
        pairs.iter().filter_map(|(_, it)| Some(it.bound? / value(it)?)).collect();
    let extra: Vec<f64> = cells.iter().filter_map(|it| it.extra.get(name).copied()).collect();
    Some(Standing {
        scheduler: name.to_owned(),
        against,
        vs_best: geometric(pairs.iter().filter_map(|(_, it)| Some(value(it)? / best(it))))?,
        of_bound: median(&shares),
        extra: extra.iter().sum::<f64>() / extra.len().max(1) as f64,
    })
}

fn against(name: &str, baseline: Baseline, pairs: &[(&Played, &Comparison)]) -> Option<Against> {
    let ratio = |(cell, it): &(&Played, &Comparison)| {
        Some((it.values.get(name)? / baseline.of(it), cell.number))
    };
    judged(&pairs.iter().filter_map(ratio).collect::<Vec<_>>())
}

fn best(comparison: &Comparison) -> f64 {
    comparison.values.values().copied().fold(f64::INFINITY, f64::min)
}

/// Compares the best scheduler of each comparison with `startable`.
fn best_of_each(pairs: &[(&Played, &Comparison)]) -> Option<Against> {
    let ratio = |(cell, it): &(&Played, &Comparison)| (best(it) / it.startable, cell.number);
    judged(&pairs.iter().map(ratio).collect::<Vec<_>>())
}

/// Compares `startable` with itself in further runs.
fn again(pairs: &[(&Played, &Comparison)]) -> Option<Against> {
    let ratio = |(cell, it): &(&Played, &Comparison)| (it.again / it.startable, cell.number);
    judged(&pairs.iter().map(ratio).collect::<Vec<_>>())
}

/// Judges ratios of times, each with the number of its cell. Returns `None` of nothing.
fn judged(ratios: &[(f64, u32)]) -> Option<Against> {
    let (worst, worst_cell) = *ratios.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let values: Vec<f64> = ratios.iter().map(|(ratio, _)| *ratio).collect();
    let share = |limit: f64| {
        values.iter().filter(|ratio| **ratio > limit).count() as f64 / values.len() as f64
    };
    Some(Against {
        worse_2: share(1.02),
        worse_10: share(1.1),
        worst,
        worst_cell,
        median: median(&values)?,
    })
}

fn classes(names: &BTreeSet<&String>, pairs: &[(&Played, &Comparison)]) -> Vec<Class> {
    let all: BTreeSet<&str> =
        pairs.iter().flat_map(|(cell, _)| &cell.classes).map(String::as_str).collect();
    let class = |class: &str| {
        let within: Vec<(&Played, &Comparison)> =
            pairs.iter().filter(|(cell, it)| has(cell, it, class)).copied().collect();
        let row =
            |name: &&String| Some(((*name).clone(), against(name, Baseline::Startable, &within)?));
        let against = names.iter().filter_map(row).collect();
        let (class, comparisons) = (class.to_owned(), within.len());
        Class {
            class,
            comparisons,
            against,
            best_of_each: best_of_each(&within),
            again: again(&within),
        }
    };
    [BEST_PATH_FIRST].into_iter().chain(all).map(class).collect()
}

fn has(cell: &Played, comparison: &Comparison, class: &str) -> bool {
    match class {
        BEST_PATH_FIRST => comparison.first <= comparison.known,
        _ => cell.classes.iter().any(|it| it == class),
    }
}

fn map(name: &str, pairs: &[(&Played, &Comparison)]) -> Vec<MapCell> {
    let step = |ratio: f64| STEPS.iter().filter(|step| **step <= ratio).count();
    let limits = |at: usize| [at.checked_sub(1).map(|at| STEPS[at]), STEPS.get(at).copied()];
    let mut map = Vec::new();
    for rtt in 0..=STEPS.len() {
        for rate in 0..=STEPS.len() {
            let within = pairs
                .iter()
                .filter(|(cell, _)| step(cell.rtt_ratio) == rtt && step(cell.rate_ratio) == rate);
            let ratios: Vec<f64> =
                within.filter_map(|(_, it)| Some(it.values.get(name)? / it.startable)).collect();
            map.push(MapCell {
                rate_ratio: limits(rate),
                rtt_ratio: limits(rtt),
                comparisons: ratios.len(),
                mean: geometric(ratios.into_iter()),
            });
        }
    }
    map
}

fn worst(name: &str, pairs: &[(&Played, &Comparison)]) -> Vec<Worst> {
    let mut list: Vec<Worst> = pairs
        .iter()
        .filter_map(|(cell, it)| {
            let ratio = it.values.get(name)? / it.startable;
            let (measure, command) = (it.measure.clone(), cell.command.clone());
            Some(Worst { number: cell.number, measure, ratio, command })
        })
        .collect();
    list.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    list.truncate(WORST_CELLS);
    list
}

/// Returns the geometric mean; `None` of nothing.
fn geometric(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = ratios.fold((0.0, 0u32), |(sum, n), it| (sum + libm::log(it), n + 1));
    (count > 0).then(|| libm::exp(sum / f64::from(count)))
}
