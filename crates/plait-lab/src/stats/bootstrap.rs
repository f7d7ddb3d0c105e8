//! Bootstrap intervals of any statistic over runs.
//!
//! [`interval`] resamples runs, not values. A statistic over several rows uses the same runs of all rows, so
//! runs that share a seed stay paired. The result depends only on the arguments.
//!
//! ```
//! use plait_lab::stats::interval;
//!
//! let (ours, theirs) = ([9.0, 11.0, 10.0, 12.0, 8.0], [10.0, 13.0, 11.0, 13.0, 9.0]);
//! // The ratio of the means, over the same runs of both.
//! let ratio = |runs: &[usize]| {
//!     let sum = |of: &[f64]| runs.iter().map(|run| of[*run]).sum::<f64>();
//!     sum(&ours) / sum(&theirs)
//! };
//! let found = interval(5, 0.95, 1, "an example", ratio).unwrap();
//! assert!(found.low < 1.0 && found.high < 1.0, "ours is shorter: {found:?}");
//! ```

use super::percentile;
use plait_base::RandomStream;

/// Number of resamples.
const RESAMPLES: usize = 2_000;

/// The value of a statistic and its confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Interval {
    /// The statistic over all runs.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Returns true if every value of the interval is below `limit`.
    #[must_use]
    pub fn is_below(&self, limit: f64) -> bool {
        self.high < limit
    }

    /// Returns true if every value of the interval is above `limit`.
    #[must_use]
    pub fn is_above(&self, limit: f64) -> bool {
        self.low > limit
    }
}

/// Returns the statistic over `runs` runs and its confidence interval at `level` (0.95), by the
/// bias-corrected and accelerated bootstrap (BCa, Efron 1987) with 2,000 resamples.
///
/// `statistic` gets indices below `runs`, with repetition, and `0..runs` for the value itself. The draws come
/// from the stream of `seed` and `purpose`. Resamples with a statistic that is not finite are left out.
/// Returns `None` for fewer than two runs, if the value is not finite, and if more than half of the resamples
/// are left out.
#[must_use]
pub fn interval(
    runs: usize,
    level: f64,
    seed: u64,
    purpose: &str,
    statistic: impl Fn(&[usize]) -> f64,
) -> Option<Interval> {
    let all: Vec<usize> = (0..runs).collect();
    let value = Some(statistic(&all)).filter(|value| runs > 1 && value.is_finite())?;
    let mut found = Vec::with_capacity(RESAMPLES);
    resample(runs, RESAMPLES, seed, purpose, |picked| {
        let again = statistic(picked);
        if again.is_finite() {
            found.push(again);
        }
    });
    if found.len() * 2 < RESAMPLES {
        return None;
    }
    found.sort_by(f64::total_cmp);
    let without = |run: usize| {
        let rest: Vec<usize> = all.iter().copied().filter(|other| *other != run).collect();
        statistic(&rest)
    };
    let acceleration = acceleration(&all.iter().map(|run| without(*run)).collect::<Vec<f64>>());
    let below = found.iter().filter(|it| **it < value).count() as f64;
    let equal = found.iter().filter(|it| **it == value).count() as f64;
    let bias = normal_quantile((below + equal / 2.0) / found.len() as f64);
    let edge = |share: f64| {
        let shifted = bias + normal_quantile(share);
        let adjusted = bias + shifted / (1.0 - acceleration * shifted);
        let share = if adjusted.is_finite() { normal_share(adjusted) } else { share };
        percentile(&found, share * 100.0)
    };
    let tail = (1.0 - level.clamp(0.0, 1.0)) / 2.0;
    let (low, high) = (edge(tail)?, edge(1.0 - tail)?);
    Some(Interval { value, low: low.min(value), high: high.max(value) })
}

/// Calls `each` with `count` resamples of the runs `0..runs`, drawn with replacement.
pub fn resample(
    runs: usize,
    count: usize,
    seed: u64,
    purpose: &str,
    mut each: impl FnMut(&[usize]),
) {
    let mut stream = RandomStream::new(seed, &["resample", purpose]);
    let mut picked = vec![0; runs];
    for _ in 0..count {
        picked.iter_mut().for_each(|run| *run = stream.below(runs as u64) as usize);
        each(&picked);
    }
}

/// Returns the acceleration of BCa, from the statistic without each run; 0 if it does not vary.
fn acceleration(without: &[f64]) -> f64 {
    let mean = without.iter().sum::<f64>() / without.len() as f64;
    let (mut squares, mut cubes) = (0.0, 0.0);
    for value in without {
        let apart = mean - value;
        squares += apart * apart;
        cubes += apart * apart * apart;
    }
    let scale = 6.0 * squares * libm::sqrt(squares);
    if scale > 0.0 && cubes.is_finite() { cubes / scale } else { 0.0 }
}

/// Returns the probability that a standard normal variable is below `value`.
fn normal_share(value: f64) -> f64 {
    libm::erfc(-value * core::f64::consts::FRAC_1_SQRT_2) / 2.0
}

/// Returns the value that a standard normal variable is below with probability `share`.
pub(super) fn normal_quantile(share: f64) -> f64 {
    let share = share.clamp(1e-9, 1.0 - 1e-9);
    let (mut low, mut high) = (-7.0, 7.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if normal_share(middle) < share { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        for (share, expected) in [(0.5, 0.0), (0.975, 1.959_964), (0.05, -1.644_854)] {
            assert!((normal_quantile(share) - expected).abs() < 1e-6, "{share}");
        }
    }

    #[test]
    fn the_interval_of_a_mean_has_the_textbook_width() {
        // Standard error of 0..99: 29.01 / sqrt(100) = 2.90; 1.96 of it each way.
        let mean = |runs: &[usize]| runs.iter().sum::<usize>() as f64 / runs.len() as f64;
        let found = interval(100, 0.95, 3, "x", mean).unwrap();
        assert_eq!(found.value, 49.5);
        assert!((found.high - found.low - 2.0 * 1.96 * 2.90).abs() < 0.7, "{found:?}");
        assert_eq!(Some(found), interval(100, 0.95, 3, "x", mean));
        assert_ne!(Some(found), interval(100, 0.95, 4, "x", mean));
        assert_eq!(interval(1, 0.95, 3, "x", mean), None);
        assert_eq!(interval(5, 0.95, 3, "x", |_| f64::NAN), None);
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_truth_for_skewed_values_too() {
        // Exponential values with mean 1: the percentile bootstrap of 30 values covers it in 91 %.
        let mut stream = RandomStream::new(5, &["skewed"]);
        let mut held = 0;
        for trial in 0..200 {
            let values: Vec<f64> = (0..30).map(|_| -libm::log(1.0 - stream.unit())).collect();
            let mean = |runs: &[usize]| runs.iter().map(|run| values[*run]).sum::<f64>() / 30.0;
            let found = interval(30, 0.95, trial, "skewed", mean).unwrap();
            held += u32::from(found.low <= 1.0 && 1.0 <= found.high);
        }
        assert!((178..=198).contains(&held), "{held} of 200");
    }
}
