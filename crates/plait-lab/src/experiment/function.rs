//! The functions of statements.

use super::array::Array;
use super::statement::Statistic;
use crate::stats::percentile;

/// A function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Function {
    Min,
    Max,
    Sum,
    Mean,
    Median,
    Quantile,
    Spread,
    Abs,
    Count,
    Share,
    Increasing,
    Decreasing,
    First,
    Slope,
    Correlation,
    Spearman,
    Benefit,
}

/// Name, function, least and greatest number of arguments.
pub(super) const FUNCTIONS: &[(&str, Function, usize, usize)] = &[
    // With one argument: the least over all of its points. With several: the least of them at each point.
    ("min", Function::Min, 1, 16),
    ("max", Function::Max, 1, 16),
    // Over all points.
    ("sum", Function::Sum, 1, 1),
    ("mean", Function::Mean, 1, 1),
    ("median", Function::Median, 1, 1),
    // quantile(x, 25%)
    ("quantile", Function::Quantile, 2, 2),
    // max(a, b, ...) / min(a, b, ...) at each point.
    ("spread", Function::Spread, 2, 16),
    ("abs", Function::Abs, 1, 1),
    // The number of points at which a relation holds, and their share.
    ("count", Function::Count, 1, 1),
    ("share", Function::Share, 1, 1),
    // 1 if each value is at least (at most) the previous one, otherwise 0. The slack is a share of the
    // previous value, and a second slack is a number: increasing(x, 5%), increasing(x, 0, 0.05).
    ("increasing", Function::Increasing, 1, 3),
    ("decreasing", Function::Decreasing, 1, 3),
    // first(relation, at(axis)): the number of the first point at which the relation holds.
    ("first", Function::First, 2, 2),
    // slope(x, at(axis)): the slope of the least-squares line through the points.
    ("slope", Function::Slope, 2, 2),
    ("correlation", Function::Correlation, 2, 2),
    ("spearman", Function::Spearman, 2, 2),
    // benefit(goodput, reference, ...): the aggregation benefit at each point.
    ("benefit", Function::Benefit, 2, 9),
];

impl Function {
    pub(super) fn named(name: &str) -> Option<Function> {
        FUNCTIONS.iter().find(|entry| entry.0 == name).map(|entry| entry.1)
    }

    /// Returns true if the value is 1 or 0.
    pub(super) const fn judges(self) -> bool {
        matches!(self, Function::Increasing | Function::Decreasing)
    }

    /// Returns true if the function counts the points at which its first argument is true.
    pub(super) const fn counts(self) -> bool {
        matches!(self, Function::Count | Function::Share | Function::First)
    }

    fn bounds(self) -> (usize, usize) {
        FUNCTIONS.iter().find(|entry| entry.1 == self).map_or((1, 1), |entry| (entry.2, entry.3))
    }

    pub(super) fn takes(self, count: usize) -> bool {
        let (least, most) = self.bounds();
        (least..=most).contains(&count)
    }

    pub(super) fn arguments(self) -> String {
        match self.bounds() {
            (1, 1) => "1 argument".to_owned(),
            (least, most) if least == most => format!("{least} arguments"),
            (least, most) => format!("{least} to {most} arguments"),
        }
    }

    /// Returns the margin of each pair of neighbours for `increasing` and `decreasing`; `None` for other
    /// functions.
    pub(super) fn margins(self, arguments: &[Array]) -> Option<Vec<f64>> {
        let (first, slacks) = arguments.split_first()?;
        match self {
            Function::Increasing => Some(monotone(&first.data, slacks, false)),
            Function::Decreasing => Some(monotone(&first.data, slacks, true)),
            _ => None,
        }
    }

    /// Returns the value; `None` if the arguments have different points.
    pub(super) fn of(self, arguments: &[Array]) -> Option<Array> {
        let (first, others) = arguments.split_first()?;
        let second = || others.first();
        let scalar = |value| Some(Array::scalar(value));
        let folded = |of: fn(f64, f64) -> f64| {
            others.iter().try_fold(first.clone(), |all, it| all.zip(it, of))
        };
        match self {
            Function::Min if others.is_empty() => {
                scalar(first.data.iter().copied().fold(f64::INFINITY, least))
            }
            Function::Max if others.is_empty() => {
                scalar(first.data.iter().copied().fold(f64::NEG_INFINITY, most))
            }
            Function::Min => folded(least),
            Function::Max => folded(most),
            Function::Spread => folded(most)?.zip(&folded(least)?, |most, least| most / least),
            Function::Sum => scalar(first.data.iter().sum()),
            Function::Mean => scalar(first.data.iter().sum::<f64>() / first.data.len() as f64),
            Function::Median => scalar(quantile(&first.data, 0.5)),
            Function::Quantile => scalar(quantile(&first.data, *second()?.data.first()?)),
            Function::Abs => Some(first.clone().map(f64::abs)),
            Function::Count => scalar(first.data.iter().sum()),
            Function::Share => scalar(first.data.iter().sum::<f64>() / first.data.len() as f64),
            Function::Increasing => scalar(is_monotone(&first.data, others, false)),
            Function::Decreasing => scalar(is_monotone(&first.data, others, true)),
            Function::First => {
                let found =
                    first.zip(second()?, |holds, at| if holds > 0.0 { at } else { f64::NAN })?;
                scalar(found.data.into_iter().find(|at| !at.is_nan()).unwrap_or(f64::INFINITY))
            }
            Function::Slope => {
                let (spread, together, _) = moments(second()?, first)?;
                scalar(together / spread)
            }
            Function::Correlation => {
                let (x, together, y) = moments(first, second()?)?;
                scalar(together / libm::sqrt(x * y))
            }
            Function::Spearman => {
                let (x, together, y) = moments(&ranks(first), &ranks(second()?))?;
                scalar(together / libm::sqrt(x * y))
            }
            Function::Benefit => benefit(first, others),
        }
    }
}

/// Returns the smaller value. A missing value stays missing.
fn least(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }
}

fn most(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }
}

pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, share * 100.0).unwrap_or(f64::NAN)
}

/// Returns the margin of each pair of neighbours, relative to the first of the two; negative for a pair in
/// the wrong order.
fn monotone(values: &[f64], slacks: &[Array], down: bool) -> Vec<f64> {
    let slack = |at: usize| slacks.get(at).and_then(|it| it.data.first()).copied().unwrap_or(0.0);
    let margin = |pair: &[f64]| {
        let (before, after) = (pair[0], pair[1]);
        let room = slack(0) * before.abs() + slack(1) + 1e-9 * before.abs();
        let change = if down { before - after } else { after - before };
        let margin = (change + room) / before.abs().max(after.abs()).max(f64::MIN_POSITIVE);
        if margin.is_nan() { f64::NEG_INFINITY } else { margin }
    };
    values.windows(2).map(margin).collect()
}

fn is_monotone(values: &[f64], slacks: &[Array], down: bool) -> f64 {
    if values.iter().any(|value| value.is_nan()) {
        return f64::NAN;
    }
    f64::from(u8::from(monotone(values, slacks, down).iter().all(|margin| *margin >= 0.0)))
}

/// Returns the sums of squares and products about the means.
fn moments(a: &Array, b: &Array) -> Option<(f64, f64, f64)> {
    let xs = a.zip(b, |a, _| a)?.data;
    let ys = a.zip(b, |_, b| b)?.data;
    let mean = |list: &[f64]| list.iter().sum::<f64>() / list.len() as f64;
    let (mx, my) = (mean(&xs), mean(&ys));
    let sum = |of: &dyn Fn(f64, f64) -> f64| xs.iter().zip(&ys).map(|(x, y)| of(*x, *y)).sum();
    Some((
        sum(&|x, _| (x - mx) * (x - mx)),
        sum(&|x, y| (x - mx) * (y - my)),
        sum(&|_, y| (y - my) * (y - my)),
    ))
}

/// Returns the rank of each number; equal numbers share the mean of their ranks. Missing values stay missing.
fn ranks(of: &Array) -> Array {
    let below = |value: f64| of.data.iter().filter(|other| **other < value).count() as f64;
    let equal = |value: f64| of.data.iter().filter(|other| **other == value).count() as f64;
    let rank = |value: f64| match value.is_nan() {
        true => f64::NAN,
        false => below(value) + (equal(value) + 1.0) / 2.0,
    };
    of.clone().map(rank)
}

fn benefit(goodput: &Array, references: &[Array]) -> Option<Array> {
    // First brings all arrays to the same points, then computes point by point.
    let wide = |of: &Array| {
        references.iter().try_fold(of.clone(), |all, it| all.zip(it, |value, _| value))
    };
    let goodput = wide(goodput)?;
    let lists: Option<Vec<Array>> =
        references.iter().map(|it| goodput.zip(it, |_, value| value)).collect();
    let lists = lists?;
    let data = (0..goodput.data.len()).map(|at| {
        let around: Vec<f64> = lists.iter().map(|list| list.data[at]).collect();
        let known = !goodput.data[at].is_nan() && around.iter().all(|value| !value.is_nan());
        let found = plait_app::aggregation_benefit(goodput.data[at], &around);
        found.filter(|_| known).unwrap_or(f64::NAN)
    });
    Some(Array { data: data.collect(), dims: goodput.dims.clone() })
}

/// Returns a statistic over the runs of a cell.
pub(super) fn of_runs(statistic: Statistic, mut values: Vec<f64>) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    match statistic {
        Statistic::Count => return values.len() as f64,
        Statistic::Mean if values.windows(2).all(|pair| pair[0] == pair[1]) => return values[0],
        Statistic::Mean => return mean(&values),
        Statistic::Variance => {
            let middle = mean(&values);
            let squares = values.iter().map(|value| (value - middle) * (value - middle));
            return squares.sum::<f64>() / (values.len() as f64 - 1.0).max(1.0);
        }
        _ => {}
    }
    values.sort_by(f64::total_cmp);
    let percent = match statistic {
        Statistic::Min => 0.0,
        Statistic::Max => 100.0,
        Statistic::Percentile(percent) => f64::from(percent),
        _ => 50.0,
    };
    percentile(&values, percent).unwrap_or(f64::NAN)
}
