//! From the outcomes of runs to the rows of a report: statistics, speedups, ranks, the digest.

use super::{Cell, Outcomes, RunOutcome, run_seed, why};
use crate::report::{COMPETING, Failure, Report, Row, SCHEMA};
use crate::scenario::Scenario;
use crate::stats::{Summary, speedup};
use plait_app::measure::{Better, MEASURES, Measures, PathMeasures, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// The report of a scenario whose runs are made.
pub(super) fn report(scenario: &Scenario, cells: &[Cell], outcomes: &Outcomes) -> Report {
    let primary = scenario.workload.primary();
    let mut rows: Vec<Row> =
        cells.iter().zip(outcomes).map(|(cell, runs)| row(cell, runs)).collect();
    let best_path = rank(&mut rows, primary);
    why::tell(&mut rows, scenario, outcomes);
    let mut report = Report {
        schema: SCHEMA.to_owned(),
        command: scenario.command_line(),
        seed: scenario.seed,
        runs: scenario.effective_runs(),
        workload: scenario.workload.to_string(),
        primary_measure: primary.to_owned(),
        vary: BTreeMap::new(),
        paths: scenario.paths.iter().map(|path| path.report(scenario.ideal)).collect(),
        compete: scenario.compete.iter().map(ToString::to_string).collect(),
        rows,
        best_path,
        expectations: Vec::new(),
        interrupted: outcomes.iter().flatten().any(Option::is_none),
        digest: digest(cells, outcomes),
    };
    report.expectations =
        scenario.expect.iter().map(|expectation| expectation.evaluate(&report)).collect();
    report
}

fn row(cell: &Cell, runs: &[Option<RunOutcome>]) -> Row {
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
    Row {
        path_share: by_path(|path| path.path_share),
        rtt_ms: by_path(|path| path.rtt_ms),
        reinjected_share: mean(&mut completed.iter().filter_map(|run| run.reinjected_share)),
        retransmitted_share: mean(&mut completed.iter().filter_map(|run| run.retransmitted_share)),
        scheduler: label,
        cc,
        measures,
        competing,
        speedup_vs_best_path: None,
        aggregation_benefit: None,
        why: None,
        incomplete: u32::try_from(failures.len()).unwrap_or(u32::MAX),
        failures,
    }
}

/// What a competing flow got, in the mean of all of them and of those of each kind.
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

/// Fills in the speedups over the best single path with the same controller, and names the best
/// path of all.
fn rank(rows: &mut [Row], primary: &str) -> Option<String> {
    let higher = MEASURES
        .iter()
        .find(|entry| entry.name == primary)
        .is_some_and(|entry| entry.better == Better::Higher);
    let better = |a: f64, b: f64| if higher { a > b } else { a < b };
    let value = |row: &Row| {
        // The median of the runs that finished would flatter a row that has others.
        let finished = row.incomplete == 0;
        row.measures.get(primary).filter(|_| finished).map(|summary| summary.median)
    };
    let mut best: BTreeMap<String, f64> = BTreeMap::new();
    let mut best_of_all: Option<(f64, String)> = None;
    for row in rows.iter().filter(|row| row.scheduler.starts_with("tcp:")) {
        let Some(value) = value(row) else { continue };
        if best.get(&row.cc).is_none_or(|known| better(value, *known)) {
            best.insert(row.cc.clone(), value);
        }
        if best_of_all.as_ref().is_none_or(|(known, _)| better(value, *known)) {
            best_of_all = Some((value, row.scheduler.clone()));
        }
    }
    for row in rows.iter_mut() {
        let reference = best.get(&row.cc).copied();
        row.speedup_vs_best_path = value(row)
            .zip(reference)
            .and_then(|(value, reference)| speedup(value, reference, higher));
    }
    rate_aggregation(rows);
    best_of_all.map(|(_, name)| name)
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
        rows[index].aggregation_benefit = goodput(&rows[index])
            .zip(references)
            .and_then(|(goodput, references)| plait_app::aggregation_benefit(goodput, &references));
    }
}

/// SHA-256 over each row's scheduler and controller, and each run's measures and segment hash; rows
/// in their order, runs in theirs. Every text is preceded by its length and every run marked, so
/// that no two lists of runs look alike. The names are there because two schedulers that happen to
/// decide alike are still two.
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

/// Bytes in hexadecimal.
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
        let benefits: Vec<Option<f64>> = rows.iter().map(|row| row.aggregation_benefit).collect();
        assert_eq!(benefits, [Some(0.5), Some(-0.5), None, None, None]);
    }
}
