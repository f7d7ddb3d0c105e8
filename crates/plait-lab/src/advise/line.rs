//! The line of a load: what its runs over all draws say.

use super::loads::STALLED_MS;
use super::{Advice, Gain, Line, Load, Played, Verdict, better};
use crate::stats::{median, percentile};
use plait_app::measure::is_higher_better;

/// Returns the line of a load; `None` without a draw.
///
/// `outage` has the path that fails, and the best path alone without an outage.
pub(super) fn line(
    load: &Load,
    outage: Option<(usize, usize)>,
    played: &[&Played],
    advice: &Advice,
) -> Option<Line> {
    let paths = &advice.paths;
    let down = outage.map(|it| it.0);
    let measure = load.measure_of_line(down.is_some());
    let values = |of: usize| values_of(played, of, down.is_some());
    let bonded = values(0);
    let best = match outage {
        Some((_, own)) => own,
        None => best_alone(measure, played, advice)?,
    };
    let alone = values(best + 1);
    let ratios = |ours: &[f64], theirs: &[f64]| -> Vec<f64> {
        ours.iter().zip(theirs).map(|(ours, theirs)| better(measure, *ours, *theirs)).collect()
    };
    let gain = Gain::live(&ratios(&bonded, &alone), &alone, load)?;
    let tail = match load.tail {
        Some(tail) => {
            let of = |at: usize| -> Vec<f64> {
                played.iter().filter_map(|it| it.tails.get(at).copied()).collect()
            };
            better(tail, median(&of(0))?, median(&of(best + 1))?)
        }
        None => better(measure, slowest_tenth(measure, &bonded)?, slowest_tenth(measure, &alone)?),
    };
    let backups: Vec<f64> = played.iter().flat_map(|it| it.backups.iter().copied()).collect();
    let is_stalled = |delay: f64| down.is_some() && delay >= STALLED_MS;
    let backup_helps = down == Some(best) && median(&backups).is_some_and(|it| !is_stalled(it));
    let stalled = is_stalled(median(&bonded)?);
    let means = |of: &dyn Fn(&Played) -> &[f64]| mean_of_each(played, paths.len(), of);
    Some(Line {
        name: match down {
            Some(path) => format!("{} while {} is down", load.name, paths.get(path)?),
            None => load.name.to_owned(),
        },
        workload: load.workload.to_owned(),
        outage: down.is_some(),
        measure: measure.to_owned(),
        best_path: paths.get(best)?.clone(),
        alone: median(&alone)?,
        bonded: median(&bonded)?,
        gain,
        tail,
        backup: Gain::live(&ratios(&backups, &alone), &alone, load).filter(|_| backup_helps),
        shares: means(&|it: &Played| &it.shares),
        extra: played.iter().map(|it| it.extra).sum::<f64>() / played.len().max(1) as f64,
        path_bytes: means(&|it: &Played| &it.path_bytes),
        extra_bytes: means(&|it: &Played| &it.extra_bytes),
        verdict: match gain.verdict() {
            Verdict::Gain if stalled => Verdict::Stalled,
            verdict => verdict,
        },
    })
}

/// Returns the best path alone. A backup counts only if there is no other path, and a path with too small a quota only if
/// there is no better one.
fn best_alone(measure: &str, played: &[&Played], advice: &Advice) -> Option<usize> {
    let rank = |path: &usize| median(&values_of(played, *path + 1, false)).unwrap_or(f64::NAN);
    let order = |a: &usize, b: &usize| rank(a).total_cmp(&rank(b));
    let spared =
        |path: usize| (advice.backups.contains(&advice.paths[path]), exceeds_quota(played, path));
    let least = (0..advice.paths.len()).map(spared).min()?;
    let all = (0..advice.paths.len()).filter(|path| spared(*path) == least);
    if is_higher_better(measure) { all.max_by(order) } else { all.min_by(order) }
}

/// Returns true if a load exceeds the quota of a path alone in most draws.
pub(super) fn exceeds_quota(played: &[&Played], path: usize) -> bool {
    let draws = played.iter().filter(|it| it.over_quota.get(path) == Some(&true));
    draws.count() * 2 > played.len()
}

/// Returns the measure of the line in every draw: of the default scheduler (0), or of a path alone (from 1).
pub(super) fn values_of(played: &[&Played], of: usize, outage: bool) -> Vec<f64> {
    let list = |it: &&Played| -> Option<f64> {
        let list = if outage { &it.tails } else { &it.values };
        list.get(of).copied()
    };
    played.iter().filter_map(list).collect()
}

/// Returns the mean over the draws for each path.
fn mean_of_each(played: &[&Played], paths: usize, of: &dyn Fn(&Played) -> &[f64]) -> Vec<f64> {
    let sum = |at: usize| -> f64 { played.iter().filter_map(|it| of(it).get(at)).sum() };
    (0..paths).map(|at| sum(at) / played.len().max(1) as f64).collect()
}

/// Returns the value that the worst tenth of the draws exceeds.
fn slowest_tenth(measure: &str, values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, if is_higher_better(measure) { 10.0 } else { 90.0 })
}
