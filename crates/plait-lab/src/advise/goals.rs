//! The goal to take: what each goal makes of the loads, if paths have a price.

use super::line::values_of;
use super::{Advice, Choice, Gain, GoalLine, Line, Load, Played, Price, Verdict, better, judge};
use crate::scenario::{Path, RawPath, RawScenario, Scenario};
use plait_sched::Goal;

/// The default goal.
const USUAL: &str = "aggregate";
/// The goal of links of which one is used at a time.
pub(super) const ONE_AT_A_TIME: &str = "handover";
/// The goal with which a path that costs more than the others is a backup.
const SPARED: &str = "thrifty";
/// Goals whose bytes differ by less than this share of a load cost the same.
const SAME_BYTES: f64 = 0.01;

/// Returns the goals other than the default, in their order.
pub(super) fn others() -> impl Iterator<Item = &'static str> {
    Goal::ALL.iter().map(|(word, _)| *word).filter(|word| *word != USUAL)
}

/// Returns what is known of each path, as given.
pub(super) fn known(raw: &RawScenario) -> Vec<String> {
    let text = |path: &RawPath| {
        let fields = path.fields.iter().map(|(key, given)| match given.text.as_str() {
            "" => key.clone(),
            text => format!("{key}={text}"),
        });
        fields.collect::<Vec<_>>().join(",")
    };
    raw.paths.iter().map(text).collect()
}

/// Returns the cost and the quota of a path. The scenario refuses bad values before any run.
pub(super) fn price(path: &RawPath) -> Price {
    Price {
        cost: path.field("cost").and_then(|it| it.text.trim().parse().ok()).unwrap_or(0),
        quota: path.field("quota").map(|it| it.text.clone()),
        exceeded_by: Vec::new(),
    }
}

/// Returns the cost and the quota of each path; an empty list if no path has a quota or costs more than another.
pub(super) fn prices(raw: &RawScenario) -> Vec<Price> {
    let prices: Vec<Price> = raw.paths.iter().map(price).collect();
    let least = prices.iter().map(|it| it.cost).min().unwrap_or(0);
    let has_price = |it: &Price| it.cost > least || it.quota.is_some();
    if prices.iter().any(has_price) { prices } else { Vec::new() }
}

/// Removes equal costs, which are no price.
pub(super) fn without_equal_costs(raw: &mut RawScenario) {
    // An invalid cost counts as zero here, and stays for its error.
    if prices(raw).is_empty() && raw.paths.iter().all(|it| price(it).cost > 0) {
        raw.paths.iter_mut().for_each(|it| it.fields.retain(|(key, _)| key != "cost"));
    }
}

/// Returns true if a path is used only while no other one works. The scenario refuses bad values before any run.
pub(super) fn is_backup(path: &RawPath) -> bool {
    path.field("backup").is_some_and(|it| !matches!(it.text.trim(), "off" | "false"))
}

/// Returns the names of the backup paths; an empty list if all paths are backups.
pub(super) fn backups(raw: &RawScenario) -> Vec<String> {
    let (backups, others): (Vec<&RawPath>, Vec<&RawPath>) =
        raw.paths.iter().partition(|it| is_backup(it));
    if others.is_empty() {
        return Vec::new();
    }
    backups.iter().map(|it| it.name.text.clone()).collect()
}

/// Returns true if live commands can use the paths with a goal as they were simulated. They have no backup paths, but with
/// these goals a path that costs more than all others carries data only while the others are down.
fn keeps_backups(goal: &str, advice: &Advice) -> bool {
    advice.backups.is_empty() || [ONE_AT_A_TIME, SPARED].contains(&goal)
}

/// Returns the cost of each path for the goal to take; an empty list if all are free. A backup costs more than all other
/// paths.
fn costs(advice: &Advice) -> Vec<u32> {
    let cost = |at: usize| advice.prices.get(at).map_or(0, |it| it.cost);
    let is_backup = |at: &usize| advice.backups.contains(&advice.paths[*at]);
    let all = 0..advice.paths.len();
    let most = all.clone().filter(|at| !is_backup(at)).map(cost).max().unwrap_or(0);
    let costs: Vec<u32> = all
        .map(|at| if is_backup(&at) { cost(at).max(most.saturating_add(1)) } else { cost(at) })
        .collect();
    if costs.iter().all(|it| *it == 0) { Vec::new() } else { costs }
}

/// Returns the scheduler, the goal and the costs to take; `None` if the links are not worth bonding, or if that is not
/// clear.
pub(super) fn choice(advice: &Advice) -> Option<Choice> {
    let goal = advised(advice)?;
    let scheduler = plait_sched::DEFAULT.to_owned();
    Some(Choice { scheduler, goal: goal.to_owned(), costs: costs(advice) })
}

/// Returns the shared link of all paths, if it carries less than the paths together.
pub(super) fn bottleneck(scenario: &Scenario) -> Option<String> {
    let first = scenario.via(scenario.paths.first()?)?;
    let link = scenario.shared.get(first)?;
    let rate = |path: &Path| path.speed.down.as_ref().map(|speed| speed.mean().as_bps());
    let together = scenario.paths.iter().filter_map(rate).fold(0, u64::saturating_add);
    let all = scenario.paths.iter().all(|path| scenario.via(path) == Some(first));
    (all && rate(link)? < together).then(|| link.name.clone())
}

/// Returns the result of a load with each goal; nothing if no path has a price.
pub(super) fn lines(
    load: &Load,
    line: &Line,
    played: &[&Played],
    advice: &Advice,
) -> Vec<GoalLine> {
    let Advice { paths, prices, .. } = advice;
    let Some(best) = paths.iter().position(|it| *it == line.best_path) else { return Vec::new() };
    if prices.is_empty() {
        return Vec::new();
    }
    let alone = values_of(played, best + 1, line.outage);
    let of = |goal: &str, values: &[f64], path_bytes: Vec<f64>| {
        let ratios = values.iter().zip(&alone);
        let ratios: Vec<f64> =
            ratios.map(|(ours, theirs)| better(&line.measure, *ours, *theirs)).collect();
        Some(GoalLine {
            load: line.name.clone(),
            goal: goal.to_owned(),
            gain: Gain::live(&ratios, &alone, load)?,
            path_bytes,
            suffices: false,
            advised: false,
        })
    };
    let usual = of(USUAL, &values_of(played, 0, line.outage), line.path_bytes.clone());
    let mut found: Vec<GoalLine> = usual.into_iter().collect();
    for (at, goal) in others().enumerate() {
        let runs = || played.iter().filter_map(|it| it.goals.get(at));
        let values: Vec<f64> = runs().map(|run| run.value).collect();
        let mean = |path: usize| -> f64 {
            let sum: f64 = runs().filter_map(|run| run.path_bytes.get(path)).sum();
            sum / runs().count().max(1) as f64
        };
        found.extend(of(goal, &values, (0..paths.len()).map(mean).collect()));
    }
    let fastest = found.iter().map(|it| it.gain.median).fold(0.0, f64::max);
    for it in &mut found {
        it.suffices = it.gain.median * judge::NOTABLE >= fastest;
    }
    let sufficient =
        found.iter().enumerate().filter(|(_, it)| it.suffices && keeps_backups(&it.goal, advice));
    let candidates: Vec<(usize, f64)> =
        sufficient.map(|(at, it)| (at, cost(&it.path_bytes, prices))).collect();
    let all: f64 = line.path_bytes.iter().sum();
    if let Some(at) = cheapest(&candidates, all * SAME_BYTES) {
        found[at].advised = true;
    }
    found
}

/// Returns the bytes on paths with a price, times their costs. A byte of a quota counts as one with the cost 1.
fn cost(path_bytes: &[f64], prices: &[Price]) -> f64 {
    let least = prices.iter().map(|it| it.cost).min().unwrap_or(0);
    let weight = |price: &Price| match &price.quota {
        Some(_) => f64::from((price.cost - least).max(1)),
        None => f64::from(price.cost - least),
    };
    path_bytes.iter().zip(prices).map(|(bytes, price)| bytes * weight(price)).sum()
}

/// Returns the first candidate whose cost is at most `same` above the least cost.
fn cheapest(candidates: &[(usize, f64)], same: f64) -> Option<usize> {
    let least = candidates.iter().map(|it| it.1).fold(f64::INFINITY, f64::min);
    candidates.iter().find(|it| it.1 <= least + same).map(|it| it.0)
}

/// Returns the goal to take; `None` if the links are not worth bonding, or if that is not clear.
///
/// With prices it is the goal that suffices for the most loads; among equals, the one with the least bytes on paths
/// with a price. Without prices it is the default if a load gains, and one path at a time if only outages do. With a backup
/// path, it is a goal that keeps it one.
fn advised(advice: &Advice) -> Option<&'static str> {
    let speed = advice.lines.iter().any(|it| !it.outage && it.verdict == Verdict::Gain);
    if !speed && !advice.lines.iter().any(judge::is_kept_alive) {
        return None;
    }
    if advice.goals.is_empty() {
        return Some(match speed {
            false => ONE_AT_A_TIME,
            true if advice.backups.is_empty() => USUAL,
            true => SPARED,
        });
    }
    let of = |goal: &'static str| advice.goals.iter().filter(move |it| it.goal == goal);
    let words = Goal::ALL.iter().map(|(word, _)| *word);
    let words = words.filter(|word| keeps_backups(word, advice));
    let most = words.clone().map(|goal| of(goal).filter(|it| it.suffices).count()).max()?;
    let mut candidates: Vec<(&'static str, f64)> = Vec::new();
    for goal in words.filter(|goal| of(goal).filter(|it| it.suffices).count() == most) {
        candidates.push((goal, of(goal).map(|it| cost(&it.path_bytes, &advice.prices)).sum()));
    }
    let all: f64 = of(USUAL).flat_map(|it| &it.path_bytes).sum();
    let numbered: Vec<(usize, f64)> =
        candidates.iter().enumerate().map(|(at, it)| (at, it.1)).collect();
    cheapest(&numbered, all * SAME_BYTES).and_then(|at| candidates.get(at)).map(|it| it.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_cost_what_their_path_costs_above_the_cheapest() {
        let price = |cost, quota: Option<&str>| Price {
            cost,
            quota: quota.map(str::to_owned),
            exceeded_by: Vec::new(),
        };
        let bytes = [100.0, 10.0, 1.0];
        let costs = [price(1, None), price(1, Some("1MB")), price(4, None)];
        assert_eq!(cost(&bytes, &costs), 10.0 + 3.0);
        assert_eq!(cost(&bytes, &[price(0, None), price(2, Some("1MB")), price(0, None)]), 20.0);
        assert_eq!(cost(&bytes, &[]), 0.0);
    }

    #[test]
    fn among_equal_costs_the_first_goal_is_taken() {
        assert_eq!(cheapest(&[(0, 5.0), (2, 4.5), (3, 0.0)], 1.0), Some(3));
        assert_eq!(cheapest(&[(0, 0.5), (3, 0.0)], 1.0), Some(0));
        assert_eq!(cheapest(&[], 1.0), None);
    }
}
