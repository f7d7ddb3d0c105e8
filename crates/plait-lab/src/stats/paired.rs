//! Compares rows run by run, over the same seeds.
//!
//! Two rows of a comparison have the same network in each run. The ratio of their values in a run therefore
//! scatters less than the values. [`against`] compares rows with a reference row:
//!
//! * The **typical ratio** is exp(m), and m is the 20 % trimmed mean of ln(value / reference) over the runs:
//!   the lowest and the highest fifth of the runs have no weight. A retransmission timeout in a few runs
//!   moves it little; [`super::interval`] over a high percentile shows such runs. Fewer than ten runs are not
//!   trimmed.
//! * Its **95 % interval** is m +- c se. se is the standard error of Yuen (1974) from the winsorised
//!   variance. c is the 95th percentile of |t| over 10,000 resamples of the runs (studentised bootstrap), and
//!   at least Student's t.
//! * If all runs that are not trimmed have the same ratio, the standard error is 0 and ignores the runs that
//!   differ. Then the interval reaches from the common ratio as far as the mean of ln(ratio) can lie. In each
//!   direction that is the mean deviation of the differing runs times their largest likely share. The mean
//!   deviation is its upper bound by Student's t, at most the largest deviation. The share is the upper bound
//!   of Clopper and Pearson at 97.5 %.
//! * Rows are **distinguished** if the interval excludes 1, the ratio is more than [`MARGIN`] from 1, and one of
//!   two tests rejects chance. One test compares t with its own resamples; if the standard error is 0, it asks
//!   whether the interval above still excludes 1 at the level of the test. The other is an exact sign test over
//!   the runs. Each test has half of [`NAMING_ERROR`].
//!
//! The reference is usually the best row, partly by luck, and there are several rows. The error rate is low
//! for both reasons: thirteen equal rows have 78 pairs, and 78 x 0.05 % are 4 %. With more than fourteen rows
//! the rate decreases, so that the total over all pairs stays below 5 %.

use super::bootstrap::resample;
use super::percentile;
use super::student::critical;

/// Probability that two equal rows are distinguished.
pub const NAMING_ERROR: f64 = 0.000_5;

/// Probability that any two of several equal rows are distinguished.
const FAMILY_ERROR: f64 = 0.05;

/// Smallest notable distance of a ratio from 1; below it, rows are tied even if the interval is narrow.
pub const MARGIN: f64 = 0.01;

/// Resamples for the percentiles of |t|.
const RESAMPLES: usize = 10_000;

/// Smallest standard error of a resample, as a part of the standard error of all runs. A resample of few runs
/// may hardly vary, so its |t| would have no bound. With ten runs, no difference would then be certain.
const LEAST_ERROR: f64 = 1.0 / 3.0;

/// Fewest runs for which the extreme fifths are trimmed.
const FEWEST_TRIMMED_RUNS: usize = 10;

/// A row against the reference, over the runs of both.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Paired {
    /// Typical ratio of the row's value to the reference's in one run; above 1 if the row's is larger.
    pub ratio: f64,
    /// 95 % confidence interval of `ratio`; for one run from 0 to infinity.
    pub ci95: [f64; 2],
    /// True if the rows differ beyond chance and beyond [`MARGIN`].
    pub told_apart: bool,
    /// True if every run has the same value as the reference, to the bit.
    pub equal: bool,
    /// Number of runs whose ratio differs from the common ratio of the runs that are not trimmed; 0 if these
    /// vary.
    pub differing: u32,
}

/// Compares `rows` with `reference`: value `i` of each belongs to run `i`.
///
/// Returns `None` for a row with another number of runs than the reference, without runs, or with a value
/// that is not above zero. The bootstrap draws from the stream of `seed` and `purpose`, the same runs for all
/// rows.
#[must_use]
pub fn against(
    reference: &[f64],
    rows: &[&[f64]],
    seed: u64,
    purpose: &str,
) -> Vec<Option<Paired>> {
    let samples: Vec<Option<Sample>> = rows.iter().map(|row| Sample::of(reference, row)).collect();
    let varying: Vec<&Sample> =
        samples.iter().flatten().filter(|sample| sample.error > 0.0).collect();
    let runs = reference.len();
    let mut own = vec![Vec::new(); varying.len()];
    if !varying.is_empty() {
        let mut counts = vec![0u32; runs];
        resample(runs, RESAMPLES, seed, purpose, |picked| {
            counts.fill(0);
            picked.iter().for_each(|run| counts[*run] += 1);
            for (sample, own) in varying.iter().zip(&mut own) {
                own.push(sample.student(&counts));
            }
        });
    }
    let pairs = (rows.len() * (rows.len() + 1)) as f64 / 2.0;
    let error = NAMING_ERROR.min(FAMILY_ERROR / pairs.max(1.0));
    let mut own = own.into_iter();
    let mut judge = |sample: &Sample| {
        let resampled = if sample.error > 0.0 { own.next() } else { None };
        sample.judged(resampled.unwrap_or_default(), error)
    };
    samples.iter().map(|sample| sample.as_ref().map(&mut judge)).collect()
}

/// The logarithms of the ratios of one row.
struct Sample {
    /// The logarithms in ascending order, each with its run.
    sorted: Vec<(f64, usize)>,
    /// Their trimmed mean.
    mean: f64,
    /// Standard error of the mean; 0 for one run, and if the runs that are not trimmed are equal.
    error: f64,
    /// Number of runs that differ from the mean if the runs that are not trimmed are equal; otherwise 0.
    differing: u32,
}

impl Sample {
    fn of(reference: &[f64], row: &[f64]) -> Option<Sample> {
        let usable = |values: &[f64]| values.iter().all(|value| *value > 0.0 && value.is_finite());
        if row.len() != reference.len() || row.is_empty() || !usable(row) || !usable(reference) {
            return None;
        }
        let ratios = row.iter().zip(reference).map(|(ours, theirs)| libm::log(ours / theirs));
        let mut sorted: Vec<(f64, usize)> = ratios.zip(0..).collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sample = Sample { sorted, mean: 0.0, error: 0.0, differing: 0 };
        (sample.mean, sample.error) = sample.trimmed(|_| 1);
        let (runs, trim) = (sample.sorted.len(), trimmed_runs(sample.sorted.len()));
        if sample.error == 0.0 && runs > 1 {
            // The common value is exact; the mean is rounded.
            let common = sample.sorted[trim].0;
            sample.mean = common;
            let differing = sample.sorted.iter().filter(|it| it.0 != common).count();
            sample.differing = u32::try_from(differing).unwrap_or(u32::MAX);
        }
        Some(sample)
    }

    /// Returns the trimmed mean and its standard error if each run occurs `count` times; the counts add up to
    /// the number of runs.
    fn trimmed(&self, count: impl Fn(usize) -> u32) -> (f64, f64) {
        let runs = self.sorted.len();
        let trim = trimmed_runs(runs);
        let kept = runs - 2 * trim;
        // Ranks [trim, runs - trim) are kept; ranks outside take the nearest kept value.
        let (mut rank, mut sum) = (0, 0.0);
        let (mut least, mut most) = (f64::NAN, f64::NAN);
        for (value, run) in &self.sorted {
            let next = rank + count(*run) as usize;
            let inside = next.min(runs - trim).saturating_sub(rank.max(trim));
            if inside > 0 {
                least = if least.is_nan() { *value } else { least };
                most = *value;
                sum += value * inside as f64;
            }
            rank = next;
        }
        let mean = sum / kept as f64;
        // The winsorised values have a different mean.
        let (mut total, mut squares) = (0.0, 0.0);
        for (value, run) in &self.sorted {
            let (value, times) = (value.clamp(least, most) - mean, f64::from(count(*run)));
            total += value * times;
            squares += value * value * times;
        }
        let spread = (squares - total * total / runs as f64).max(0.0);
        let freedom = kept.saturating_sub(1);
        if freedom == 0 || least == most {
            return (mean, 0.0);
        }
        (mean, libm::sqrt(spread / (kept * freedom) as f64))
    }

    /// Returns |t| of a resample.
    fn student(&self, counts: &[u32]) -> f64 {
        let (mean, error) = self.trimmed(|run| counts[run]);
        (mean - self.mean).abs() / error.max(LEAST_ERROR * self.error)
    }

    /// Returns the verdict, from |t| of the resamples and the error rate.
    fn judged(&self, mut resampled: Vec<f64>, error: f64) -> Paired {
        resampled.sort_by(f64::total_cmp);
        let runs = self.sorted.len();
        let freedom = (runs - 2 * trimmed_runs(runs)).saturating_sub(1);
        let half = |error: f64| {
            let resampled = percentile(&resampled, 100.0 * (1.0 - error)).unwrap_or(0.0);
            resampled.max(critical(freedom, error)) * self.error
        };
        let alike = self.sorted.first().map(|it| it.0) == self.sorted.last().map(|it| it.0);
        let ratio = libm::exp(self.mean);
        if runs == 1 {
            let ci95 = [0.0, f64::INFINITY];
            let equal = self.mean == 0.0;
            return Paired { ratio, ci95, told_apart: false, equal, differing: 0 };
        }
        let [low, high] = match self.error > 0.0 {
            true => [self.mean - half(0.05), self.mean + half(0.05)],
            false => self.reach(0.05),
        };
        let excludes_equality = |[low, high]: [f64; 2]| low > 0.0 || high < 0.0;
        let beyond = match self.error > 0.0 {
            true => self.mean.abs() > half(error / 2.0),
            false => excludes_equality(self.reach(error / 2.0)),
        };
        Paired {
            ratio,
            ci95: [libm::exp(low), libm::exp(high)],
            told_apart: (beyond || self.signs_tell(error / 2.0))
                && excludes_equality([low, high])
                && (ratio - 1.0).abs() > MARGIN,
            equal: alike && self.mean == 0.0,
            differing: self.differing,
        }
    }

    /// Returns how far the mean may lie in each direction if a few runs differ and all others are equal, with
    /// a probability of `1 - error`.
    fn reach(&self, error: f64) -> [f64; 2] {
        let side = |sign: f64| {
            let deviations = self.sorted.iter().map(|it| sign * (it.0 - self.mean));
            let differing: Vec<f64> = deviations.filter(|it| *it > 0.0).collect();
            let few = differing.len();
            let largest = differing.iter().copied().fold(0.0, f64::max);
            if few < 2 {
                return greatest_share(few, self.sorted.len(), error) * largest;
            }
            let mean = differing.iter().sum::<f64>() / few as f64;
            let squares = differing.iter().map(|it| (it - mean) * (it - mean)).sum::<f64>();
            let deviation = libm::sqrt(squares / (few * (few - 1)) as f64);
            let likely = (mean + critical(few - 1, error) * deviation).min(largest);
            greatest_share(few, self.sorted.len(), error) * likely
        };
        [self.mean - side(-1.0), self.mean + side(1.0)]
    }

    /// Returns true if one sign is more frequent than chance allows, with probability `error`. Runs without a
    /// difference do not count.
    fn signs_tell(&self, error: f64) -> bool {
        let above = self.sorted.iter().filter(|it| it.0 > 0.0).count();
        let below = self.sorted.iter().filter(|it| it.0 < 0.0).count();
        let (all, few) = (above + below, above.min(below));
        // The binomial tail, starting with its first term.
        let mut term = libm::exp2(-(all as f64));
        let mut tail = term;
        for nth in 0..few {
            term *= (all - nth) as f64 / (nth + 1) as f64;
            tail += term;
        }
        all > 0 && 2.0 * tail < error
    }
}

/// Returns the upper bound of Clopper and Pearson on the share of differing runs. With this share,
/// at most `few` of `runs` runs differ with a probability of `error / 2`.
fn greatest_share(few: usize, runs: usize, error: f64) -> f64 {
    if few == 0 || few >= runs {
        return if few == 0 { 0.0 } else { 1.0 };
    }
    let at_most_few = |share: f64| {
        let mut term = libm::pow(1.0 - share, runs as f64);
        let mut tail = term;
        for nth in 0..few {
            term *= (runs - nth) as f64 / (nth + 1) as f64 * share / (1.0 - share);
            tail += term;
        }
        tail
    };
    let (mut low, mut high) = (few as f64 / runs as f64, 1.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if at_most_few(middle) > error / 2.0 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Returns the number of runs that are trimmed at each end.
const fn trimmed_runs(runs: usize) -> usize {
    if runs < FEWEST_TRIMMED_RUNS { 0 } else { runs / 5 }
}

#[cfg(test)]
mod tests {
    use super::super::bootstrap::normal_quantile;
    use super::*;
    use plait_base::RandomStream;

    fn normal(stream: &mut RandomStream) -> f64 {
        normal_quantile(stream.unit())
    }

    fn two(reference: &[f64], row: &[f64]) -> Paired {
        against(reference, &[row], 1, "test")[0].unwrap()
    }

    #[test]
    fn five_runs_give_the_paired_t_interval() {
        // ln ratios ln 1.1, ln 1.2, ln 1.15, ln 1.1, ln 1.2: mean 0.139005, standard deviation
        // 0.043506 / sqrt(5) = 0.019457; t(4) at 95 % is 2.7764.
        let found = two(&[10.0; 5], &[11.0, 12.0, 11.5, 11.0, 12.0]);
        assert!((libm::log(found.ratio) - 0.139_005).abs() < 2e-5, "{found:?}");
        let half = (libm::log(found.ci95[1]) - libm::log(found.ci95[0])) / 2.0;
        assert!(half > 2.776 * 0.0194 && half < 0.12, "{half}");
        assert!(!found.told_apart && !found.equal);
    }

    #[test]
    fn ten_runs_are_trimmed_and_winsorised_by_hand() {
        // Logarithms -9 0 1 2 3 4 5 6 7 90 (hundredths). Two are trimmed at each end: the mean of
        // 1..6 is 3.5. Winsorised 1 1 1 2 3 4 5 6 6 6: mean 3.5, squares around it 42.5;
        // standard error sqrt(42.5 / (6 x 5)) = 1.190.
        let row: Vec<f64> = [90.0, 0.0, 3.0, 1.0, -9.0, 4.0, 7.0, 5.0, 2.0, 6.0]
            .iter()
            .map(|it| libm::exp(it / 100.0))
            .collect();
        let sample = Sample::of(&[1.0; 10], &row).unwrap();
        assert!((sample.mean - 0.035).abs() < 1e-12, "{}", sample.mean);
        assert!((sample.error - 0.011_902).abs() < 1e-6, "{}", sample.error);
        // A resample repeats some runs and omits others.
        let counts = [2, 2, 0, 0, 0, 0, 0, 0, 0, 0].map(|it: u32| it * 5 / 2);
        let (mean, error) = sample.trimmed(|run| counts[run]);
        assert!((mean - 0.45).abs() < 1e-12 && error > 0.0, "{mean} {error}");
    }

    #[test]
    fn equal_rows_are_equal_and_one_run_says_nothing() {
        let values = [3.0, 4.0, 5.0];
        let same = two(&values, &values);
        assert!(same.equal && !same.told_apart);
        assert_eq!((same.ratio, same.ci95), (1.0, [1.0, 1.0]));
        let one = two(&[3.0], &[9.0]);
        assert!(!one.told_apart && !one.equal && two(&[3.0], &[3.0]).equal);
        assert!((one.ratio - 3.0).abs() < 1e-12 && one.ci95 == [0.0, f64::INFINITY]);
        // A ratio that is the same in every run needs no statistics.
        assert!(two(&values, &values.map(|it| it * 1.05)).told_apart);
        assert!(!two(&values, &values.map(|it| it * 1.005)).told_apart);
        assert_eq!(against(&values, &[&[1.0], &[0.0, 1.0, 1.0]], 1, "x"), [None, None]);
    }

    /// Three runs of thirty differ by 15 %: the trimmed mean has no error, but is not certain.
    #[test]
    fn a_few_runs_that_differ_give_the_interval_a_width() {
        let row = |runs: usize, differing: usize, common: f64| -> Vec<f64> {
            (0..runs).map(|run| if run < differing { 85.0 } else { common }).collect()
        };
        let found = two(&[100.0; 30], &row(30, 3, 100.0));
        assert_eq!((found.ratio, found.differing, found.equal), (1.0, 3, false));
        // 3 of 30: at most 26.53 % (printed tables of Clopper and Pearson). 0.2653 x ln 0.85 = -0.0431.
        assert!((found.ci95[0] - 0.957_8).abs() < 1e-4 && found.ci95[1] == 1.0, "{found:?}");
        assert!(!found.told_apart);
        // With ten times the runs, the interval is narrower, but still includes the mean.
        let more = two(&[100.0; 300], &row(300, 30, 100.0));
        assert!(found.ci95[0] < more.ci95[0] && more.ci95[0] < 0.985, "{more:?}");
        // A common difference is distinguished unless the differing runs may outweigh it.
        assert!(two(&[100.0; 30], &row(30, 3, 110.0)).told_apart);
        assert!(!two(&[100.0; 30], &row(30, 6, 102.0)).told_apart);
        // One long run among many short ones does not count for all of them.
        let mut mixed = row(300, 0, 100.0);
        mixed.iter_mut().take(40).for_each(|it| *it = 101.0);
        mixed[0] = 200.0;
        let mixed = two(&[100.0; 300], &mixed);
        assert!(mixed.ci95[0] == 1.0 && mixed.ci95[1] < 1.02, "{mixed:?}");
        assert_eq!(
            two(&[100.0; 30], &row(30, 0, 110.0)).ci95.map(|it| (it * 1e6).round()),
            [1.1e6; 2]
        );
    }

    /// Two of ten runs differ by 1 % from a common ratio of 1.28: the difference is certain.
    #[test]
    fn a_large_common_difference_is_distinguished_with_ten_runs() {
        let with = |common: f64, differing: &[f64]| {
            let mut row = [100.0 * common; 10];
            row.iter_mut().zip(differing).for_each(|(value, other)| *value = *other);
            two(&[100.0; 10], &row)
        };
        let found = with(1.28, &[129.3, 129.3]);
        assert!(found.told_apart && found.ci95[0] > 1.279, "{found:?}");
        // One run in the other direction may be one of several.
        assert!(with(1.28, &[120.0]).told_apart);
        assert!(!with(1.02, &[80.0]).told_apart);
        assert!(!with(1.0, &[150.0, 160.0]).told_apart);
    }

    #[test]
    fn a_few_timeouts_do_not_hide_five_percent() {
        // 30 runs with 1 % of scatter, and in each row a timeout doubles three of them.
        let mut stream = RandomStream::new(2, &["timeouts"]);
        let mut told = 0;
        for _ in 0..50 {
            let mut draw = |scale: f64| -> Vec<f64> {
                let hit = stream.below(10) as usize;
                let value = |run: usize, stream: &mut RandomStream| {
                    let timeout = if run % 10 == hit { 2.0 } else { 1.0 };
                    scale * timeout * libm::exp(0.01 * normal(stream))
                };
                (0..30).map(|run| value(run, &mut stream)).collect()
            };
            let (reference, row) = (draw(100.0), draw(105.0));
            told += u32::from(two(&reference, &row).told_apart);
        }
        assert!(told >= 48, "{told} of 50");
    }

    #[test]
    fn twelve_rows_of_equal_worth_are_told_apart_from_the_best_almost_never() {
        // Heavy tails: a timeout hits each run of a row with a probability of one in five.
        let mut stream = RandomStream::new(3, &["null"]);
        let mut false_alarms = 0;
        const TRIALS: u32 = 60;
        for trial in 0..TRIALS {
            let mut row = || -> Vec<f64> {
                let mut value = || {
                    let timeout = if stream.below(5) == 0 { 3.0 } else { 1.0 };
                    timeout * libm::exp(0.05 * normal(&mut stream))
                };
                (0..30).map(|_| value()).collect()
            };
            let rows: Vec<Vec<f64>> = (0..13).map(|_| row()).collect();
            let total = |row: &[f64]| row.iter().map(|it| libm::log(*it)).sum::<f64>();
            let best = rows.iter().min_by(|a, b| total(a).total_cmp(&total(b))).unwrap();
            let all: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            let found = against(best, &all, u64::from(trial), "null");
            false_alarms += u32::from(found.iter().flatten().any(|it| it.told_apart));
        }
        assert!(false_alarms <= 2, "{false_alarms} of {TRIALS}");
    }

    /// Trimming leaves six of ten runs, and a resample of them may hardly vary.
    #[test]
    fn ten_runs_tell_a_large_difference_apart_and_have_bounded_intervals() {
        let mut stream = RandomStream::new(6, &["ten"]);
        let (mut false_alarms, mut held, mut told) = (0, 0, 0);
        for trial in 0..100 {
            let mut row = |scale: f64, scatter: f64, timeout: f64| -> Vec<f64> {
                let mut value = || {
                    let hit = if stream.below(5) < 2 { timeout } else { 1.0 };
                    scale * hit * libm::exp(scatter * normal(&mut stream))
                };
                (0..10).map(|_| value()).collect()
            };
            let (short, long) = (row(100.0, 0.001, 1.0), row(155.0, 0.001, 1.0));
            told += u32::from(against(&short, &[&long], trial, "ten")[0].unwrap().told_apart);
            // Four runs of ten are ten times as long, in all rows alike.
            let rows: Vec<Vec<f64>> = (0..13).map(|_| row(100.0, 0.02, 10.0)).collect();
            let all: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
            let found = against(&rows[0], &all[1..], trial, "ten");
            let found: Vec<Paired> = found.into_iter().flatten().collect();
            false_alarms += u32::from(found.iter().any(|it| it.told_apart));
            held += found.iter().filter(|it| it.ci95[0] <= 1.0 && 1.0 <= it.ci95[1]).count();
            let widest = found.iter().map(|it| it.ci95[1]).fold(0.0, f64::max);
            assert!(widest < 1e5, "{widest}");
        }
        assert_eq!(told, 100);
        assert!(false_alarms <= 4 && held >= 1_080, "{false_alarms} of 100, {held} of 1200");
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut stream = RandomStream::new(4, &["coverage"]);
        let mut held = 0;
        for trial in 0..200 {
            let row: Vec<f64> =
                (0..20).map(|_| libm::exp(0.05 + 0.1 * normal(&mut stream))).collect();
            let found = against(&[1.0; 20], &[&row], trial, "coverage")[0].unwrap();
            let truth = libm::exp(0.05);
            held += u32::from(found.ci95[0] <= truth && truth <= found.ci95[1]);
        }
        assert!((182..=200).contains(&held), "{held} of 200");
    }
}
