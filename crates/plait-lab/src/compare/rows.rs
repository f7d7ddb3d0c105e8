//! Computes the rows of a report from the outcomes of runs: statistics, speedups, ranks, the digest.

use super::judge::{Bench, central};
use super::{Cell, Outcomes, RunOutcome, run_seed, why};
use crate::bound::Bound;
use crate::report::{
    COMPETING, Failure, Findings, Messages, Precision, Report, Row, RunRecord, Standing, Traffic,
};
use crate::scenario::Scenario;
use crate::stats::{Summary, median, speedup};
use plait_app::measure::{Distribution, MEASURES, Measures, PathMeasures, Value, is_higher_better};
use plait_base::Span;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Returns the bound of a run of a cell.
pub(super) type BoundOf<'a> = &'a dyn Fn(&Cell, u64) -> Option<Bound>;

/// Returns the report of a scenario from the outcomes of its runs.
pub(super) fn report(
    scenario: &Scenario,
    cells: &[Cell],
    outcomes: &Outcomes,
    bound: BoundOf<'_>,
) -> Report {
    let primary = scenario.workload.primary();
    let mut rows: Vec<Row> =
        cells.iter().zip(outcomes).map(|(cell, runs)| row(cell, runs, bound)).collect();
    let bench = Bench::new(scenario, outcomes);
    let best_path = bench.best_path(&rows);
    rate(&mut rows, best_path, primary);
    why::tell(&mut rows, scenario, outcomes);
    let best_path = best_path.map(|best| &rows[best]);
    let mut report = Report {
        command: scenario.command_line(),
        seed: scenario.seed,
        runs: u32::try_from(outcomes.first().map_or(0, Vec::len)).unwrap_or(u32::MAX),
        host_jitter_us: Some(scenario.host_jitter().as_micros()).filter(|micros| *micros > 0),
        workload: scenario.workload.to_string(),
        primary_measure: primary.to_owned(),
        paths: scenario.paths.iter().map(|path| path.report(scenario.ideal)).collect(),
        compete: scenario.compete.iter().map(ToString::to_string).collect(),
        findings: Findings {
            best_path: best_path.map(|row| row.scheduler.clone()),
            best_path_cc: best_path.map(|row| row.cc.clone()),
            ..Findings::default()
        },
        rows,
        interrupted: outcomes.iter().flatten().any(Option::is_none),
        digest: digest(cells, outcomes),
        ..Report::default()
    };
    bench.judge(cells, &mut report);
    report.precision = precision(scenario, &report);
    report.findings.expectations =
        scenario.expect.iter().map(|expectation| expectation.evaluate(&report)).collect();
    report
}

fn row(cell: &Cell, runs: &[Option<RunOutcome>], bound: BoundOf<'_>) -> Row {
    let label = cell.to_string();
    let cc = cell.cc.name();
    let made = runs.iter().flatten();
    let counted: Vec<&RunOutcome> = made.filter(|run| run.counts()).collect();
    let completed: Vec<&Measures> = counted.iter().map(|run| &run.measures).collect();
    let failures: Vec<Failure> = (0u32..)
        .zip(runs)
        .filter_map(|(run, outcome)| Some((run, outcome.as_ref()?)))
        .filter_map(|(run, outcome)| {
            let reason = outcome.failure(&cell.scenario)?;
            Some(Failure { seed: run_seed(cell.scenario.seed, run), reason })
        })
        .collect();
    let mut measures = BTreeMap::new();
    for entry in MEASURES {
        let Value::Run(of) = entry.value else { continue };
        let values: Vec<f64> = completed.iter().filter_map(|run| of(run)).collect();
        let purpose = format!("{label}/{cc}/{}", entry.name);
        if let Some(summary) = Summary::of(&values, cell.scenario.seed, &purpose) {
            measures.insert(entry.name.to_owned(), summary);
        }
    }
    let (together, competing) = competition(cell, &counted, &label);
    measures.extend(together.map(|summary| (COMPETING.to_owned(), summary)));
    let mean = |values: &mut dyn Iterator<Item = f64>| {
        let (sum, count) = values.fold((0.0, 0u32), |(sum, n), value| (sum + value, n + 1));
        (count > 0).then(|| sum / f64::from(count))
    };
    let by_path = |of: fn(&PathMeasures) -> Option<f64>| -> BTreeMap<String, f64> {
        let paths = cell.scenario.paths.iter().enumerate();
        let mean_of =
            |at: usize| mean(&mut completed.iter().filter_map(|run| of(run.paths.get(at)?)));
        paths.filter_map(|(at, path)| Some((path.name.clone(), mean_of(at)?))).collect()
    };
    let extra_on =
        |at: usize| mean(&mut completed.iter().filter_map(|run| extra_on(run, run.paths.get(at)?)));
    let extra_by_path = || -> BTreeMap<String, f64> {
        let paths = cell.scenario.paths.iter().enumerate();
        paths.filter_map(|(at, path)| Some((path.name.clone(), extra_on(at)?))).collect()
    };
    let path_bytes = by_path(|path| Some(path.sent_bytes as f64));
    Row {
        messages: messages(&completed),
        traffic: Traffic {
            path_share: by_path(|path| path.path_share),
            path_sent_share: shares(&path_bytes),
            path_bytes,
            extra_share: mean(&mut completed.iter().filter_map(|run| extra(run))),
            path_extra_share: match cell.scenario.has_prices() {
                true => extra_by_path(),
                false => BTreeMap::new(),
            },
            rtt_ms: by_path(|path| path.rtt_ms),
            reinjected_share: mean(&mut completed.iter().filter_map(|run| run.reinjected_share)),
            retransmitted_share: mean(
                &mut completed.iter().filter_map(|run| run.retransmitted_share),
            ),
        },
        scheduler: label,
        cc,
        measures,
        competing,
        incomplete: u32::try_from(failures.len()).unwrap_or(u32::MAX),
        failures,
        standing: Standing { of_bound: of_bound(cell, runs, bound), ..Standing::default() },
        ..Row::default()
    }
}

/// Returns the share of each path in the bytes of all paths; empty if there are none.
fn shares(path_bytes: &BTreeMap<String, f64>) -> BTreeMap<String, f64> {
    let all: f64 = path_bytes.values().sum();
    let share = |(path, bytes): (&String, &f64)| (path.clone(), bytes / all);
    path_bytes.iter().filter(|_| all > 0.0).map(share).collect()
}

/// Returns the median share of the bound that the runs reached in the primary measure.
fn of_bound(cell: &Cell, runs: &[Option<RunOutcome>], bound: BoundOf<'_>) -> Option<f64> {
    let primary = cell.scenario.workload.primary();
    let counted = (0u32..)
        .zip(runs)
        .filter_map(|(run, outcome)| Some((run, outcome.as_ref().filter(|it| it.counts())?)));
    let share = |(run, outcome): (u32, &RunOutcome)| {
        bound(cell, run_seed(cell.scenario.seed, run))?.share(primary, &outcome.measures)
    };
    median(&counted.map(share).collect::<Option<Vec<f64>>>()?)
}

/// Returns the ratio of copies and reinjections to first transmissions in a run.
pub(crate) fn extra(run: &Measures) -> Option<f64> {
    let copies = run.reinjected_share?;
    let first = 1.0 - copies - run.retransmitted_share.unwrap_or(0.0);
    (first > 0.0).then(|| copies / first)
}

/// Returns the ratio of copies and reinjections on one path to first transmissions on all paths in a run.
fn extra_on(run: &Measures, path: &PathMeasures) -> Option<f64> {
    let all: u64 = run.paths.iter().map(|path| path.extra_bytes).sum();
    Some(extra(run)? * path.extra_bytes as f64 / all.max(1) as f64)
}

/// Returns the delays of the messages of all runs, pooled.
fn messages(runs: &[&Measures]) -> Option<Messages> {
    let mut delays: Vec<Span> =
        runs.iter().flat_map(|run| run.message_delays.iter().copied()).collect();
    let pooled = Distribution::exact(&mut delays)?;
    Some(Messages {
        median_ms: pooled.median,
        p95_ms: pooled.p95,
        p99_ms: pooled.p99,
        max_ms: pooled.max,
        n: runs.iter().filter_map(|run| run.message_delay_ms).map(|delay| delay.n).sum(),
    })
}

/// Returns every run with all its measures.
pub(super) fn each_run(scenario: &Scenario, outcomes: &Outcomes) -> Vec<RunRecord> {
    let of_row = |(row, runs): (usize, &Vec<Option<RunOutcome>>)| -> Vec<RunRecord> {
        let record = |(run, outcome): (u32, &Option<RunOutcome>)| {
            let outcome = outcome.as_ref()?;
            Some(RunRecord {
                row,
                run,
                seed: run_seed(scenario.seed, run),
                failure: outcome.failure(scenario),
                values: outcome.values(scenario),
            })
        };
        (0u32..).zip(runs).filter_map(record).collect()
    };
    outcomes.iter().enumerate().flat_map(of_row).collect()
}

impl RunOutcome {
    /// Returns the measures of the run by name; the measures of a path as `path_share.wifi`. A measure that
    /// the run lacks is absent.
    #[must_use]
    pub fn values(&self, scenario: &Scenario) -> Vec<(String, f64)> {
        let paths = || self.measures.paths.iter().enumerate();
        let named = |name: &str, path: usize| {
            let path = scenario.paths.get(path).map_or("", |path| path.name.as_str());
            format!("{name}.{path}")
        };
        let mut values = Vec::new();
        for entry in MEASURES {
            match entry.value {
                Value::Run(of) => {
                    values.extend(of(&self.measures).map(|value| (entry.name.to_owned(), value)));
                }
                Value::Path(of) => values.extend(
                    paths().filter_map(|(at, path)| Some((named(entry.name, at), of(path)?))),
                ),
            }
        }
        values.extend(paths().map(|(at, path)| (named("sent_bytes", at), path.sent_bytes as f64)));
        values.extend(extra(&self.measures).map(|extra| ("extra_share".to_owned(), extra)));
        let priced = paths().filter(|_| scenario.has_prices());
        values.extend(priced.filter_map(|(at, path)| {
            Some((named("path_extra_share", at), extra_on(&self.measures, path)?))
        }));
        values
    }
}

/// Returns the precision reached by `--until ci=`: the widest interval of a scheduler against the best row.
/// Without schedulers, or with only one row, it is the widest interval of a row's mean.
fn precision(scenario: &Scenario, report: &Report) -> Option<Precision> {
    let wanted = scenario.budget.precision.filter(|_| scenario.is_random())?;
    let schedulers = report.rows.iter().any(|row| !row.scheduler.starts_with("tcp:"));
    let rows = report
        .rows
        .iter()
        .filter(|row| row.incomplete == 0 && (!schedulers || !row.scheduler.starts_with("tcp:")));
    let half = |row: &Row| match row.standing.paired_vs_best {
        // If only a few runs differ, one end of the interval is the ratio itself, so the other end counts.
        Some(found) if found.differing_runs.is_some() => {
            found.ci95.map(|[low, high]| (found.ratio - low).max(high - found.ratio) / found.ratio)
        }
        Some(found) => found.ci95.map(|[low, high]| (high - low) / 2.0 / found.ratio),
        None if report.rows.len() > 1 => Some(0.0),
        None => {
            let summary = row.measures.get(&report.primary_measure).filter(|it| it.n > 1)?;
            Some((summary.ci95[1] - summary.ci95[0]) / 2.0 / summary.mean)
        }
    };
    let widest = rows.map(half).try_fold(0.0, |widest: f64, half| Some(widest.max(half?)));
    Some(Precision {
        wanted,
        widest,
        reached: widest.is_some_and(|widest| widest <= wanted) && report.runs > 1,
        max_runs: MAX_RUNS_FOR_PRECISION.max(scenario.budget.runs),
    })
}

/// Limit of runs for `--until ci=`, unless `--runs` is larger.
const MAX_RUNS_FOR_PRECISION: u32 = 1_000;

impl Precision {
    /// Returns the number of runs to make after `runs`; `None` if the precision or the limit is reached. The
    /// width falls with the square root of the number of runs. One step at most doubles that number, or adds 10
    /// runs if that is more.
    pub(super) fn next(&self, runs: u32) -> Option<u32> {
        if self.reached || runs >= self.max_runs {
            return None;
        }
        let ratio = self.widest.map_or(f64::INFINITY, |widest| widest / self.wanted);
        let needed = (f64::from(runs) * ratio * ratio * 1.1) as u32;
        let least = runs.saturating_add(10);
        Some(needed.clamp(least, runs.saturating_mul(2).max(least)).min(self.max_runs))
    }
}

/// Returns the goodput of competing flows: the mean over all of them, and over each kind.
fn competition(
    cell: &Cell,
    runs: &[&RunOutcome],
    label: &str,
) -> (Option<Summary>, BTreeMap<String, Summary>) {
    let summary = |what: &str, flows: &dyn Fn(&RunOutcome) -> Vec<f64>| {
        let each = |run: &&RunOutcome| {
            let flows = flows(run);
            (!flows.is_empty()).then(|| flows.iter().sum::<f64>() / flows.len() as f64)
        };
        let values: Vec<f64> = runs.iter().filter_map(each).collect();
        Summary::of(&values, cell.scenario.seed, &format!("{label}/{}/{what}", cell.cc.name()))
    };
    let kinds = cell.scenario.compete.iter().enumerate().filter_map(|(at, kind)| {
        let name = kind.to_string();
        let found = summary(&name, &|run| run.competing.get(at).cloned().unwrap_or_default())?;
        Some((name, found))
    });
    (summary(COMPETING, &|run| run.competing.concat()), kinds.collect())
}

/// Fills in the speedups over the best single path of all controllers, and the aggregation benefit.
fn rate(rows: &mut [Row], best_path: Option<usize>, primary: &str) {
    let higher = is_higher_better(primary);
    let reference = best_path.and_then(|best| central(&rows[best], primary));
    for row in rows.iter_mut() {
        row.standing.speedup_vs_best_path = central(row, primary)
            .zip(reference)
            .and_then(|(value, reference)| speedup(value, reference, higher));
    }
    rate_aggregation(rows);
}

/// Fills in the aggregation benefit of the multipath rows (variant E: against measured goodputs).
fn rate_aggregation(rows: &mut [Row]) {
    let goodput = |row: &Row| {
        let summary = row.measures.get("goodput_mbps")?;
        (row.incomplete == 0).then_some(summary.median)
    };
    let single = |row: &Row| row.scheduler.starts_with("tcp:");
    for index in 0..rows.len() {
        let cc = rows[index].cc.clone();
        let references: Option<Vec<f64>> =
            rows.iter().filter(|row| single(row) && row.cc == cc).map(goodput).collect();
        if single(&rows[index]) {
            continue;
        }
        rows[index].standing.aggregation_benefit = goodput(&rows[index])
            .zip(references)
            .and_then(|(goodput, references)| plait_app::aggregation_benefit(goodput, &references));
    }
}

/// Returns a SHA-256 over the scheduler and controller of each row, and the measures and segment hash of each
/// run, in order. Every text is preceded by its length and every run is marked, so two different lists of
/// runs cannot hash alike. The names are included because two schedulers that happen to decide alike are
/// still different.
fn digest(cells: &[Cell], outcomes: &Outcomes) -> String {
    let mut hasher = Sha256::new();
    for (cell, runs) in cells.iter().zip(outcomes) {
        for name in [cell.to_string(), cell.cc.to_string()] {
            hasher.update((name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
        }
        hasher.update((runs.len() as u64).to_le_bytes());
        for run in runs {
            let Some(run) = run else {
                hasher.update([0]);
                continue;
            };
            hasher.update([1, u8::from(run.counts())]);
            hasher.update(run.hash.to_le_bytes());
            let mut count = 0u64;
            run.measures.hash_into(&mut |name, bits| {
                hasher.update((name.len() as u64).to_le_bytes());
                hasher.update(name.as_bytes());
                hasher.update(bits.to_le_bytes());
                count += 1;
            });
            hasher.update(count.to_le_bytes());
        }
    }
    hex(&hasher.finalize())
}

/// Returns the bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 15)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregation_is_rated_against_the_single_paths() {
        let summary = |median: f64| Summary::of(&[median], 1, "test").unwrap();
        let row = |name: &str, goodput: Option<f64>| {
            let mut row = Row { scheduler: name.into(), cc: "cubic".into(), ..Row::default() };
            row.measures.extend(goodput.map(|it| ("goodput_mbps".to_owned(), summary(it))));
            row
        };
        let mut rows = vec![
            row("ecf", Some(25.0)),
            row("minrtt", Some(10.0)),
            row("blest", None),
            row("tcp:wifi", Some(20.0)),
            row("tcp:lte", Some(10.0)),
        ];
        rate_aggregation(&mut rows);
        let benefits: Vec<Option<f64>> =
            rows.iter().map(|row| row.standing.aggregation_benefit).collect();
        assert_eq!(benefits, [Some(0.5), Some(-0.5), None, None, None]);
    }
}
