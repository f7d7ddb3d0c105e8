//! The runs and networks behind a claim, and whether they are enough for a verdict.

use super::Claim;
use super::plan::measures_of;
use super::results::Results;
use crate::stats::{critical, normal};
use std::collections::{BTreeMap, BTreeSet};

/// Fewest random runs of a cell, or fewest networks of a sample, for a verdict.
const LEAST_RUNS: usize = 8;
/// Share of all runs that must keep a bound on the largest or least value.
const KEPT_SHARE: f64 = 0.95;

/// The runs and networks that a claim uses.
pub(super) struct Evidence {
    /// True if other seeds could give another answer.
    pub(super) random: bool,
    /// True if every random cell has enough runs, or there are enough networks.
    pub(super) enough: bool,
    /// Number of runs, or networks, that the spread is estimated from.
    pub(super) size: usize,
    /// Axes that are samples of networks, with the points that the claim uses.
    pub(super) sampled: BTreeMap<usize, Vec<usize>>,
    /// Number of runs that a bound on the largest or least value was checked in, if there is such a bound.
    bounded_runs: Option<usize>,
}

impl Evidence {
    pub(super) fn of(results: &Results, claim: &Claim) -> Evidence {
        let experiment = &results.plan.experiment;
        let looked_at = measures_of(experiment, claim);
        let mut sampled = BTreeMap::new();
        for (axis, known) in experiment.axes.iter().enumerate().filter(|(_, it)| it.is_sample()) {
            // A network that one of the rows lacks cannot replace another one.
            let mut rows: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for (row, at, _) in &looked_at {
                rows.entry(*row).or_default().insert(at[axis]);
            }
            let mut sets = rows.into_values();
            let Some(points) = sets.next() else { continue };
            if points.len() > 1 && sets.all(|other| other == points) && known.points.len() > 1 {
                sampled.insert(axis, points.into_iter().collect::<Vec<_>>());
            }
        }
        let cells: BTreeSet<usize> =
            looked_at.iter().filter_map(|(row, at, _)| results.plan.position(*row, at)).collect();
        let random = |cell: &usize| results.plan.cells[*cell].cell.scenario.is_random();
        let runs = |cell: &usize| results.plan.cells[*cell].runs as usize;
        let networks = sampled.values().map(Vec::len).max().unwrap_or(0);
        let least = cells.iter().filter(|cell| random(cell)).map(runs).min();
        let bounds: BTreeSet<usize> = looked_at
            .iter()
            .filter(|(.., value)| claim.holds.bounds_every_run(value))
            .filter_map(|(row, at, _)| results.plan.position(*row, at))
            .filter(random)
            .collect();
        Evidence {
            random: networks > 0 || least.is_some(),
            enough: networks >= LEAST_RUNS || least.is_none_or(|runs| runs >= LEAST_RUNS),
            size: if networks > 0 { networks } else { least.unwrap_or(1) },
            sampled,
            bounded_runs: (!bounds.is_empty()).then(|| bounds.iter().map(runs).sum()),
        }
    }

    /// Returns the share of resamples that corresponds to this doubt, given the few runs.
    pub(super) fn expanded(&self, doubt: f64) -> f64 {
        let size = self.size.max(2) as f64;
        // A resample draws one run fewer than there are, but as many networks as there are.
        let drawn = if self.sampled.is_empty() { 1.0 } else { libm::sqrt(size / (size - 1.0)) };
        // `critical` is two-sided.
        normal(-drawn * critical(self.size.max(2) - 1, 2.0 * doubt))
    }

    /// Returns how many times the runs are the fewest for a verdict.
    pub(super) fn least_factor(&self, confidence: f64) -> f64 {
        let least = if self.enough { 1.0 } else { LEAST_RUNS as f64 / self.size as f64 };
        let bounded = self.bounded_runs.map_or(1.0, |runs| kept_runs(confidence) / runs as f64);
        least.max(bounded)
    }

    /// Returns true if a bound that no run broke holds for nearly all runs, with this confidence.
    pub(super) fn kept(&self, confidence: f64) -> bool {
        self.bounded_runs.is_none_or(|runs| agrees(runs, confidence))
    }
}

/// Returns true if a property of all `runs` runs holds for nearly all runs, with this confidence.
pub(super) fn agrees(runs: usize, confidence: f64) -> bool {
    runs as f64 >= kept_runs(confidence)
}

/// Returns how many runs must have a property for [`agrees`].
fn kept_runs(confidence: f64) -> f64 {
    libm::ceil(libm::log(1.0 - confidence) / libm::log(KEPT_SHARE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_runs_need_at_least_as_many_as_a_verdict() {
        let evidence = |size, bounded_runs| Evidence {
            random: true,
            enough: size >= LEAST_RUNS,
            size,
            sampled: BTreeMap::new(),
            bounded_runs,
        };
        assert_eq!(evidence(5, None).least_factor(0.95), 1.6);
        assert_eq!(evidence(10, None).least_factor(0.95), 1.0);
        // A bound on every run needs 59 of them.
        assert_eq!(evidence(10, Some(10)).least_factor(0.95), 5.9);
    }
}
