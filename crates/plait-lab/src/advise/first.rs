//! The path on which connections begin: the other paths join a round trip after the first data.

use super::judge::NOTABLE;
use super::loads::LOADS;
use super::{FirstLine, FirstPath, Gain, Load, Maker, Played, Remedy, better, fails, goals};
use crate::compare::World;
use crate::error::ScenarioError;
use crate::scenario::RawPath;
use crate::stats::median;

/// Returns the path that is better than the first one to begin on, over all draws; `None` if there is none, or a run was
/// cancelled. A path that costs more than the first one, has a quota or is a backup is not taken for that.
pub(super) fn better_path<W: World>(
    maker: &Maker<'_, W>,
) -> Result<Option<FirstPath>, ScenarioError> {
    let loads: Vec<&'static Load> = LOADS.iter().filter(|it| it.is_short).collect();
    for load in &loads {
        maker.scenario(0, load, None, &[])?;
    }
    let play = |draw: u32| -> Option<Vec<Played>> {
        let one = |load: &&'static Load| {
            let values = vec![maker.changed(draw, (*load, None), ("first", 0))?];
            Some(Played { values, firsts: maker.firsts(draw, load)?, ..Played::default() })
        };
        loads.iter().map(one).collect()
    };
    let played = maker.draws(0, &play);
    if played.len() < maker.total() as usize {
        return Ok(None);
    }
    let lines_of = |at: usize| {
        let of_load: Vec<&Played> = played.iter().filter_map(|(_, all)| all.get(at)).collect();
        lines(loads[at], &of_load, maker.paths.len())
    };
    let firsts: Vec<Vec<FirstLine>> = (0..loads.len()).map(lines_of).collect();
    let names: Vec<String> = maker.paths.iter().map(|it| it.name().to_owned()).collect();
    let paths = &maker.options.raw.paths;
    let may_be = |at: usize| {
        let both = paths.first().zip(paths.get(at));
        both.is_some_and(|(first, other)| may_be_first(first, other))
    };
    Ok(remedy(&firsts, &names, &may_be).and_then(|it| it.first))
}

/// Returns true if data may go to the path `other` at any time, and costs no more there than on the `first` one.
fn may_be_first(first: &RawPath, other: &RawPath) -> bool {
    let backup = goals::is_backup(other);
    let (first, other) = (goals::price(first), goals::price(other));
    !backup && other.quota.is_none() && other.cost <= first.cost
}

/// Returns the results of a load with each path after the first one as the first of `paths`; nothing if the first path
/// does not matter for the load.
pub(super) fn lines(load: &Load, played: &[&Played], paths: usize) -> Vec<FirstLine> {
    let line = |nth: usize| {
        let ratio = |it: &&Played| -> Option<f64> {
            Some(better(load.measure, *it.firsts.get(nth)?, *it.values.first()?))
        };
        let ratios: Vec<f64> = played.iter().filter_map(ratio).collect();
        let first = |it: &&Played| it.values.first().copied();
        let firsts: Vec<f64> = played.iter().filter_map(first).collect();
        let only = median(&firsts).is_some_and(|it| fails(load.measure, it));
        Some(FirstLine { load: load.name.to_owned(), gain: Gain::of(&ratios)?, only })
    };
    (0..paths.saturating_sub(1)).filter_map(line).collect()
}

/// Returns true if a load gains in nine of ten draws, and typically by a notable amount.
fn is_better(gain: &Gain) -> bool {
    gain.low > 1.0 && gain.median >= NOTABLE
}

/// Returns true if a load is slower in nine of ten draws, and typically by a notable amount.
fn is_worse(gain: &Gain) -> bool {
    gain.high < 1.0 && gain.median <= 1.0 / NOTABLE
}

/// Returns the path to begin on in place of the first one: a load gains, and none gets slower. Among several it is the
/// one with the largest product of gains. `firsts` has the lines of each load. Only paths at places for which `may_be`
/// holds are taken.
pub(super) fn remedy(
    firsts: &[Vec<FirstLine>],
    paths: &[String],
    may_be: &dyn Fn(usize) -> bool,
) -> Option<Remedy> {
    let mut best: Option<(f64, Remedy)> = None;
    for (nth, path) in paths.iter().skip(1).enumerate().filter(|(nth, _)| may_be(nth + 1)) {
        let lines: Vec<&FirstLine> = firsts.iter().filter_map(|it| it.get(nth)).collect();
        let product: f64 = lines.iter().map(|it| it.gain.median).product();
        let slower = lines.iter().any(|it| is_worse(&it.gain));
        let gaining = lines.iter().filter(|it| is_better(&it.gain)).map(|it| (*it).clone());
        let loads: Vec<FirstLine> = gaining.collect();
        let most = loads.iter().max_by(|a, b| a.gain.median.total_cmp(&b.gain.median));
        let Some(most) = most.filter(|_| !slower) else { continue };
        if best.as_ref().is_none_or(|(known, _)| product > *known) {
            let remedy = Remedy {
                change: format!("to begin on {path} (as the first --from or --path)"),
                load: most.load.clone(),
                gain: most.gain.median,
                first: Some(FirstPath { path: path.clone(), loads: loads.clone() }),
            };
            best = Some((product, remedy));
        }
    }
    best.map(|(_, remedy)| remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the path to begin on. Each load has the gains of the paths b and c as low end, median and high end.
    fn advised(loads: &[&[(f64, f64, f64)]]) -> Option<String> {
        let line = |&(low, median, high): &(f64, f64, f64)| FirstLine {
            load: "load".to_owned(),
            gain: Gain { median, low, high },
            only: false,
        };
        let firsts: Vec<Vec<FirstLine>> =
            loads.iter().map(|gains| gains.iter().map(line).collect()).collect();
        let paths = ["a", "b", "c"].map(str::to_owned);
        remedy(&firsts, &paths, &|_| true).map(|it| it.first.unwrap().path)
    }

    #[test]
    fn a_path_is_first_only_if_it_certainly_helps_and_never_harms() {
        assert_eq!(advised(&[&[(1.2, 1.5, 2.0)]]).as_deref(), Some("b"));
        // Its interval reaches below 1, or the gain is small.
        assert_eq!(advised(&[&[(0.99, 1.5, 2.0)]]), None);
        assert_eq!(advised(&[&[(1.01, 1.04, 1.1)]]), None);
        // The other load gets slower.
        assert_eq!(advised(&[&[(1.2, 1.5, 2.0)], &[(0.7, 0.8, 0.9)]]), None);
        assert_eq!(advised(&[&[(1.2, 1.5, 2.0)], &[(0.7, 0.98, 1.2)]]).as_deref(), Some("b"));
        assert_eq!(advised(&[&[(1.2, 1.5, 2.0), (1.3, 1.6, 2.0)]]).as_deref(), Some("c"));
        // Loads for which the first path does not matter have no lines.
        assert_eq!(advised(&[&[], &[(1.2, 1.5, 2.0)], &[]]).as_deref(), Some("b"));
        assert_eq!(advised(&[]), None);
    }
}
