//! Statistics over runs. All functions here are pure, even the bootstrap.
//!
//! * [`Summary`] describes one measure of one row.
//! * [`against`] compares rows with one of them over the same seeds: the typical ratio, its 95 % interval,
//!   and whether the rows differ beyond chance.
//! * [`interval`] returns a bootstrap interval of any other statistic over runs, paired or not.

mod bootstrap;
mod normal;
mod paired;
mod student;

pub use bootstrap::{Interval, interval, resample};
pub(crate) use normal::{deviation, normal};
pub use paired::{MARGIN, NAMING_ERROR, Paired, against};
use plait_base::RandomStream;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub(crate) use student::critical;

/// Number of bootstrap resamples.
const RESAMPLES: usize = 2_000;

/// Summary of one measure over the runs of a row.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median: the 50th percentile.
    pub median: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
    /// 95 % confidence interval of the mean: percentile bootstrap with 2000 resamples.
    pub ci95: [f64; 2],
    /// Number of runs.
    pub n: u32,
}

/// The statistics of a [`Summary`] by name, in the order of its fields.
pub const STATISTICS: &[&str] = &["mean", "median", "p95", "min", "max", "n"];

impl Summary {
    /// Summarises `values`, one for each run; `None` if no value is finite. Other values are left out and do
    /// not count in `n`. The bootstrap draws from the stream of `seed` and `purpose`.
    #[must_use]
    pub fn of(values: &[f64], seed: u64, purpose: &str) -> Option<Summary> {
        let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let n = u32::try_from(values.len()).unwrap_or(u32::MAX);
        // If all values are equal, the sums below would only add rounding errors.
        if min == max {
            return Some(Summary {
                mean: min,
                median: min,
                p95: min,
                min,
                max,
                ci95: [min, min],
                n,
            });
        }
        let mean = mean(&values).clamp(min, max);
        Some(Summary {
            mean,
            median: percentile(&sorted, 50.0)?,
            p95: percentile(&sorted, 95.0)?,
            min,
            max,
            ci95: bootstrap(&values, seed, purpose).map(|edge| edge.clamp(min, max)),
            n,
        })
    }

    /// Returns the statistic with this name; `None` if [`STATISTICS`] does not have it.
    #[must_use]
    pub fn statistic(&self, name: &str) -> Option<f64> {
        Some(match name {
            "mean" => self.mean,
            "median" => self.median,
            "p95" => self.p95,
            "min" => self.min,
            "max" => self.max,
            "n" => f64::from(self.n),
            _ => return None,
        })
    }
}

/// Returns the `percent`-th percentile of ascending values, interpolated linearly between the two nearest
/// ranks: rank = percent/100 (n - 1), the default of numpy. Returns `None` for an empty list.
#[must_use]
pub fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = percent.clamp(0.0, 100.0) / 100.0 * last as f64;
    let below = (rank as usize).min(last);
    let above = (below + 1).min(last);
    let fraction = rank - below as f64;
    let (low, high) = (*sorted.get(below)?, *sorted.get(above)?);
    // The midpoint form of a difference may overshoot by a rounding error; this does not.
    Some((low + (high - low) * fraction).clamp(low, high))
}

/// Returns the median of values in any order; `None` for an empty list.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, 50.0)
}

/// Returns the factor by which `value` is better than `reference`; above 1 is better. If lower is better, the
/// ratio is inverted. Returns `None` if a value is not above zero, because the ratio has no meaning then.
#[must_use]
pub fn speedup(value: f64, reference: f64, higher_is_better: bool) -> Option<f64> {
    let (top, bottom) = if higher_is_better { (value, reference) } else { (reference, value) };
    let ratio = top / bottom;
    (bottom > 0.0 && top > 0.0 && ratio.is_finite()).then_some(ratio)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Returns the middle 95 % of the means of resamples with replacement.
fn bootstrap(values: &[f64], seed: u64, purpose: &str) -> [f64; 2] {
    let mut stream = RandomStream::new(seed, &["bootstrap", purpose]);
    let count = values.len() as u64;
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let drawn = (0..count).map(|_| values[stream.below(count) as usize]);
            drawn.sum::<f64>() / count as f64
        })
        .collect();
    means.sort_by(f64::total_cmp);
    let edge = |percent| percentile(&means, percent).unwrap_or_default();
    [edge(2.5), edge(97.5)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_interpolate_as_numpy_does() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(percentile(&values, 50.0), Some(2.5));
        // numpy.percentile([1, 2, 3, 4], 95) = 3.85
        assert!((percentile(&values, 95.0).unwrap() - 3.85).abs() < 1e-12);
        assert_eq!(percentile(&values, 0.0), Some(1.0));
        assert_eq!(percentile(&values, 100.0), Some(4.0));
        assert_eq!(percentile(&[], 50.0), None);
        assert_eq!(median(&[9.0, 1.0, 5.0]), Some(5.0));
    }

    #[test]
    fn a_summary_of_five_runs() {
        let summary = Summary::of(&[4.0, 1.0, 3.0, 2.0, 10.0], 1, "x").unwrap();
        assert_eq!((summary.mean, summary.median, summary.n), (4.0, 3.0, 5));
        assert_eq!((summary.min, summary.max), (1.0, 10.0));
        // Rank 3.8 of 1 2 3 4 10.
        assert!((summary.p95 - 8.8).abs() < 1e-12);
        let [low, high] = summary.ci95;
        assert!(low < 4.0 && high > 4.0 && low >= 1.0 && high <= 10.0, "{low} {high}");
    }

    #[test]
    fn one_run_has_an_interval_of_one_point() {
        let summary = Summary::of(&[0.1], 1, "x").unwrap();
        assert_eq!((summary.ci95, summary.n), ([0.1, 0.1], 1));
        let equal = Summary::of(&[0.1; 30], 1, "x").unwrap();
        assert_eq!((equal.mean, equal.ci95, equal.n), (0.1, [0.1, 0.1], 30));
        assert_eq!(Summary::of(&[], 1, "x"), None);
        assert_eq!(Summary::of(&[f64::NAN], 1, "x"), None);
    }

    #[test]
    fn the_interval_shrinks_with_the_root_of_n_and_depends_on_the_seed_only() {
        let few: Vec<f64> = (0..10).map(f64::from).collect();
        let many: Vec<f64> = (0..1_000).map(|i| f64::from(i % 10)).collect();
        let width = |values: &[f64]| {
            let [low, high] = Summary::of(values, 3, "x").unwrap().ci95;
            high - low
        };
        // Standard error of ten values 0..9: 2.87 / sqrt(10) = 0.908; 1.96 times that in each direction is
        // 3.56.
        assert!((width(&few) - 3.56).abs() < 0.3, "{}", width(&few));
        assert!((width(&many) * 10.0 - width(&few)).abs() < 0.4);
        assert_eq!(Summary::of(&few, 3, "x"), Summary::of(&few, 3, "x"));
        assert_ne!(Summary::of(&few, 3, "x"), Summary::of(&few, 4, "x"));
    }

    #[test]
    fn a_speedup_above_one_is_better_for_every_measure() {
        assert_eq!(speedup(50.0, 100.0, false), Some(2.0));
        assert_eq!(speedup(50.0, 100.0, true), Some(0.5));
        assert_eq!(speedup(0.0, 100.0, false), None);
        assert_eq!(speedup(1.0, 0.0, true), None);
    }

    proptest! {
        #[test]
        fn a_summary_is_ordered(values in prop::collection::vec(-1e9f64..1e9, 1..40)) {
            let summary = Summary::of(&values, 5, "p").unwrap();
            prop_assert!(summary.min <= summary.median && summary.median <= summary.p95);
            prop_assert!(summary.p95 <= summary.max);
            prop_assert!(summary.min <= summary.ci95[0] && summary.ci95[0] <= summary.ci95[1]);
            prop_assert!(summary.ci95[1] <= summary.max);
            prop_assert!(summary.min <= summary.mean && summary.mean <= summary.max);
        }
    }
}
