//! Adds verdicts to a report: ties, identical rows, differences in the tail, and limiting buffers.

use super::{Cell, Outcomes, RunOutcome};
use crate::report::{BufferLimit, Difference, Messages, Report, Row, TailDifference};
use crate::scenario::Scenario;
use crate::stats::{NAMING_ERROR, Paired, against, interval, percentile};
use plait_app::measure::{Distribution, Measures, is_higher_better};
use plait_base::Span;

/// Exact values that are closer than this count as equal.
const EXACT_MARGIN: f64 = 0.005;

/// Smallest notable factor between two tails, and between the factor of the tails and that of the medians.
const TAIL_FACTOR: f64 = 1.2;

/// Smallest number of runs for a 95th percentile.
const FEWEST_TAIL_RUNS: usize = 20;

/// Smallest share of the time for which a buffer must hold back a row to be named.
const LIMITING_SHARE: f64 = 0.1;

/// Returns a number of one run.
type OfRun = fn(&Measures) -> Option<f64>;

/// A percentile that a verdict may mention.
struct Tail {
    percentile: u32,
    /// For messages: the value in one run.
    of_run: Option<fn(&Distribution) -> f64>,
    /// For messages: the value over all runs.
    pooled: fn(&Messages) -> f64,
}

impl Tail {
    const MESSAGES_P99: Tail =
        Tail { percentile: 99, of_run: Some(|run| run.p99), pooled: |all| all.p99_ms };
    const LONGEST_MESSAGE: Tail =
        Tail { percentile: 100, of_run: Some(|run| run.max), pooled: |all| all.max_ms };
    const RUNS_P95: Tail = Tail { percentile: 95, of_run: None, pooled: |all| all.p95_ms };

    fn value(&self, row: &Row, primary: &str) -> Option<f64> {
        match self.of_run {
            Some(_) => row.messages.as_ref().map(self.pooled),
            None => row.measures.get(primary).map(|it| it.p95),
        }
    }
}

/// The rows of a report with the outcomes of their runs.
pub(super) struct Bench<'a> {
    scenario: &'a Scenario,
    outcomes: &'a Outcomes,
    higher: bool,
    primary: &'static str,
    /// Runs that every row completed.
    runs: Vec<usize>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(scenario: &'a Scenario, outcomes: &'a Outcomes) -> Bench<'a> {
        let primary = scenario.workload.primary();
        let higher = is_higher_better(primary);
        let longest = outcomes.iter().map(Vec::len).max().unwrap_or(0);
        let made =
            |run: &usize| outcomes.iter().all(|row| row.get(*run).is_some_and(Option::is_some));
        Bench { scenario, outcomes, higher, primary, runs: (0..longest).filter(made).collect() }
    }

    /// Fills in the verdicts.
    pub(super) fn judge(&self, cells: &[Cell], report: &mut Report) {
        let best_path = self.best_path(&report.rows);
        if let Some(best) = best_path {
            let others: Vec<usize> = (0..report.rows.len()).filter(|row| *row != best).collect();
            let found = self.paired(&report.rows, best, &others, "best path");
            for (row, difference) in others.into_iter().zip(found) {
                report.rows[row].standing.paired_vs_best_path = difference;
            }
        }
        self.group(&mut report.rows);
        report.findings.identical = self.identical(&report.rows);
        report.findings.tails = self.tails(&report.rows, best_path);
        report.findings.limits = self.limits(cells, &report.rows);
    }

    /// Returns the index of plain TCP with the best median, over all controllers.
    pub(super) fn best_path(&self, rows: &[Row]) -> Option<usize> {
        self.ranked(rows).into_iter().find(|row| is_tcp(&rows[*row]))
    }

    /// Returns the rows that have a value and no failures, best first.
    fn ranked(&self, rows: &[Row]) -> Vec<usize> {
        let sign = if self.higher { -1.0 } else { 1.0 };
        let mut valued: Vec<(f64, usize)> = rows
            .iter()
            .enumerate()
            .filter_map(|(at, row)| Some((sign * central(row, self.primary)?, at)))
            .collect();
        valued.sort_by(|a, b| a.0.total_cmp(&b.0));
        valued.into_iter().map(|(_, at)| at).collect()
    }

    /// Compares all rows with the best scheduler, and groups the schedulers. The first group has the best
    /// scheduler and all that do not differ from it beyond chance. The next group starts with the best
    /// remaining scheduler, and so on. Without schedulers it groups the paths.
    fn group(&self, rows: &mut [Row]) {
        let ranked = self.ranked(rows);
        let (paths, mut left): (Vec<usize>, Vec<usize>) =
            ranked.iter().copied().partition(|row| is_tcp(&rows[*row]));
        if left.is_empty() {
            left.clone_from(&paths);
        } else if let Some(best) = left.first() {
            let found = self.paired(rows, *best, &paths, "paths");
            paths.iter().zip(found).for_each(|(row, it)| rows[*row].standing.paired_vs_best = it);
        }
        for group in 1.. {
            let Some(first) = left.first().copied() else { return };
            let others = left.split_off(1);
            rows[first].standing.group = Some(group);
            let found = self.paired(rows, first, &others, &format!("group {group}"));
            left.clear();
            for (row, difference) in others.into_iter().zip(found) {
                // A row with a better typical run than the row with the best median is not worse.
                let worse = |it: &Difference| (it.ratio > 1.0) != self.higher;
                if difference.is_some_and(|it| it.told_apart && worse(&it)) {
                    left.push(row);
                } else {
                    rows[row].standing.group = Some(group);
                }
                if group == 1 {
                    rows[row].standing.paired_vs_best = difference;
                }
            }
        }
    }

    /// Compares `others` with `reference`, run by run.
    fn paired(
        &self,
        rows: &[Row],
        reference: usize,
        others: &[usize],
        purpose: &str,
    ) -> Vec<Option<Difference>> {
        let values = |row: usize| match central(&rows[row], self.primary) {
            Some(_) => self.values(row, &|run| self.value(run)),
            None => Vec::new(),
        };
        let lists: Vec<Vec<f64>> = others.iter().map(|row| values(*row)).collect();
        let lists: Vec<&[f64]> = lists.iter().map(Vec::as_slice).collect();
        let found = against(&values(reference), &lists, self.scenario.seed, purpose);
        found.into_iter().map(|paired| Some(self.difference(&paired?))).collect()
    }

    fn difference(&self, paired: &Paired) -> Difference {
        let exact = !self.scenario.is_random();
        Difference {
            ratio: paired.ratio,
            ci95: paired.ci95.iter().all(|end| end.is_finite()).then_some(paired.ci95),
            told_apart: match exact {
                true => (paired.ratio - 1.0).abs() > EXACT_MARGIN,
                false => paired.told_apart,
            },
            differing_runs: Some(paired.differing).filter(|runs| *runs > 0),
        }
    }

    /// Returns the number of a run that rows are compared by: for messages the median delay.
    fn value(&self, measures: &Measures) -> Option<f64> {
        match self.primary {
            "message_delay_ms" => measures.message_delay_ms.map(|delay| delay.median),
            primary => measures.value(primary),
        }
    }

    /// Returns a number of each run of a row; empty if a run lacks it.
    fn values(&self, row: usize, of: &dyn Fn(&Measures) -> Option<f64>) -> Vec<f64> {
        let run = |run: &usize| of(&self.outcomes[row][*run].as_ref()?.measures);
        self.runs.iter().map(run).collect::<Option<Vec<f64>>>().unwrap_or_default()
    }

    /// Returns the groups of rows with equal measures and equal times of all segments, sent and
    /// delivered.
    fn identical(&self, rows: &[Row]) -> Vec<Vec<String>> {
        let same = |a: usize, b: usize| {
            let alike = |a: &RunOutcome, b: &RunOutcome| {
                a.hash == b.hash && a.completed == b.completed && a.measures == b.measures
            };
            !self.runs.is_empty()
                && self.outcomes[a].len() == self.outcomes[b].len()
                && self.outcomes[a].iter().zip(&self.outcomes[b]).all(|pair| match pair {
                    (Some(a), Some(b)) => alike(a, b),
                    (None, None) => true,
                    _ => false,
                })
        };
        let mut sets: Vec<Vec<usize>> = Vec::new();
        for row in 0..rows.len() {
            match sets.iter_mut().find(|set| same(set[0], row)) {
                Some(set) => set.push(row),
                None => sets.push(vec![row]),
            }
        }
        sets.retain(|set| set.len() > 1);
        let names = |set: Vec<usize>| set.into_iter().map(|row| label(rows, row)).collect();
        sets.into_iter().map(names).collect()
    }

    /// Returns differences in the tail that the medians hide. The row with the shortest tail is
    /// compared to the scheduler with the best median, and to the row with the longest tail in
    /// group 1. The scheduler with the shortest tail is compared to the best single path. If the
    /// 99th percentile of messages shows nothing, their maximum is used.
    fn tails(&self, rows: &[Row], best_path: Option<usize>) -> Vec<TailDifference> {
        let ranked = self.ranked(rows);
        let tails: &[Tail] = match self.of_messages(rows, &ranked) {
            true => &[Tail::MESSAGES_P99, Tail::LONGEST_MESSAGE],
            false if self.runs.len() < FEWEST_TAIL_RUNS => &[],
            false => &[Tail::RUNS_P95],
        };
        let first = ranked.iter().copied().find(|row| !is_tcp(&rows[*row]));
        let schedulers: Vec<usize> =
            ranked.iter().copied().filter(|row| !is_tcp(&rows[*row])).collect();
        let mut found: Vec<TailDifference> = Vec::new();
        for tail in tails.iter().filter(|_| !self.higher) {
            let value = |row: usize| tail.value(&rows[row], self.primary);
            let shortest = |list: &[usize]| {
                let tails = list.iter().filter_map(|row| Some((value(*row)?, *row)));
                tails.min_by(|a, b| a.0.total_cmp(&b.0)).map(|it| it.1)
            };
            // Of equal tails, the tail of the better row counts.
            let tied = schedulers.iter().rev().filter(|row| rows[**row].standing.group == Some(1));
            let tails = tied.filter_map(|row| Some((value(*row)?, *row)));
            let longest = tails.max_by(|a, b| a.0.total_cmp(&b.0)).map(|it| it.1);
            let pairs = [
                (shortest(&ranked), first),
                (shortest(&ranked), longest),
                (shortest(&schedulers), best_path),
            ];
            for (row, other) in pairs {
                let (Some(row), Some(other)) = (row, other) else { continue };
                let other_name = label(rows, other);
                if found.iter().all(|said| said.other != other_name) {
                    found.extend(self.tail(rows, tail, row, other));
                }
            }
        }
        found
    }

    /// Returns the difference of a tail between two rows, if it is notable and beyond chance.
    fn tail(&self, rows: &[Row], tail: &Tail, row: usize, other: usize) -> Option<TailDifference> {
        let value = tail.value(&rows[row], self.primary)?;
        let other_value = tail.value(&rows[other], self.primary)?;
        let times = other_value / value;
        let medians = central(&rows[other], self.primary)? / central(&rows[row], self.primary)?;
        let notable = times.is_finite() && times > TAIL_FACTOR && times > TAIL_FACTOR * medians;
        let told = notable && self.tail_told_apart(row, other, tail);
        told.then(|| TailDifference {
            row: label(rows, row),
            other: label(rows, other),
            percentile: tail.percentile,
            of_messages: tail.of_run.is_some(),
            value,
            other_value,
            times,
        })
    }

    /// Returns true if the rows have many messages in a run; their tail is then one of messages.
    fn of_messages(&self, rows: &[Row], ranked: &[usize]) -> bool {
        let many =
            |row: &usize| rows[*row].messages.is_some_and(|it| it.n > 2 * self.runs.len() as u64);
        !ranked.is_empty() && ranked.iter().all(many)
    }

    /// Returns true if the tail of `row` is shorter than that of `other` beyond chance.
    fn tail_told_apart(&self, row: usize, other: usize, tail: &Tail) -> bool {
        let seed = self.scenario.seed;
        if let Some(of_run) = tail.of_run {
            let each = |row| self.values(row, &|run| run.message_delay_ms.as_ref().map(of_run));
            let found = against(&each(row), &[&each(other)], seed, "tail of messages");
            let told = |it: &Paired| self.difference(it).told_apart && it.ratio > 1.0;
            return found.first().and_then(Option::as_ref).is_some_and(told);
        }
        let values = |row| self.values(row, &|run| self.value(run));
        let (ours, theirs) = (values(row), values(other));
        if ours.len() != theirs.len() {
            return false;
        }
        let p95 = |values: &[f64], runs: &[usize]| {
            let mut picked: Vec<f64> = runs.iter().map(|run| values[*run]).collect();
            picked.sort_by(f64::total_cmp);
            percentile(&picked, 95.0).unwrap_or(f64::NAN)
        };
        let ratio = |runs: &[usize]| libm::log(p95(&theirs, runs) / p95(&ours, runs));
        interval(ours.len(), 1.0 - 2.0 * NAMING_ERROR, seed, "tail of runs", ratio)
            .is_some_and(|found| found.is_above(0.0))
    }

    /// Returns the buffers that hold rows back.
    fn limits(&self, cells: &[Cell], rows: &[Row]) -> Vec<BufferLimit> {
        let (Some(cell), true) = (cells.first(), !self.runs.is_empty()) else { return Vec::new() };
        let config = cell.connection();
        let share = |row: usize, of: OfRun| {
            let each = self.outcomes[row].iter().flatten().filter(|run| run.length > Span::ZERO);
            let (mut sum, mut runs) = (0.0, 0.0);
            for run in each {
                sum += of(&run.measures).unwrap_or(0.0) / run.length.as_millis_f64();
                runs += 1.0;
            }
            if runs > 0.0 { sum / runs } else { 0.0 }
        };
        let sizes = config.buffers;
        let buffers: [(&str, u64, Option<u64>, OfRun); 2] = [
            ("--sndbuf", sizes.sndbuf, sizes.sndbuf_first, |run| run.sndbuf_blocked_ms),
            ("--rcvbuf", sizes.rcvbuf, sizes.rcvbuf_first, |run| run.rwnd_blocked_ms),
        ];
        let limit = |(flag, size_bytes, first, of): (&str, u64, Option<u64>, OfRun)| {
            let shares: Vec<f64> = (0..rows.len()).map(|row| share(row, of)).collect();
            let limited = (0..rows.len()).filter(|row| shares[*row] >= LIMITING_SHARE);
            let named: Vec<String> = limited.map(|row| label(rows, row)).collect();
            (!named.is_empty()).then(|| BufferLimit {
                flag: flag.to_owned(),
                size_bytes,
                grows: first.is_some_and(|it| it < size_bytes),
                longest_share: shares.iter().copied().fold(0.0, f64::max),
                rows: named,
            })
        };
        buffers.into_iter().filter_map(limit).collect()
    }
}

/// Returns the number that ranks a row; `None` if the row has failures. The median of the finished runs alone
/// would flatter such a row.
pub(super) fn central(row: &Row, primary: &str) -> Option<f64> {
    let summary = row.measures.get(primary).filter(|_| row.incomplete == 0)?;
    let messages = row.messages.as_ref().filter(|_| primary == "message_delay_ms");
    Some(messages.map_or(summary.median, |messages| messages.median_ms))
}

fn is_tcp(row: &Row) -> bool {
    row.scheduler.starts_with("tcp:")
}

/// Returns the name of a row: the scheduler, with the controller if there are several.
fn label(rows: &[Row], row: usize) -> String {
    let Row { scheduler, cc, .. } = &rows[row];
    match rows.iter().any(|other| other.cc != *cc) {
        true => format!("{scheduler} ({cc})"),
        false => scheduler.clone(),
    }
}

#[cfg(test)]
mod tests;
