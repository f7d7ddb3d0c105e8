//! A comparison as CSV, with a line for each number of each row, or with a line for each run.

use plait_lab::{ComparisonDocument, Difference, Report, Row, RunRecord};
use std::collections::BTreeSet;

/// The columns of a number, after the columns that identify its row.
const NUMBERS: [&str; 9] =
    ["measure", "mean", "median", "p95", "min", "max", "ci95_low", "ci95_high", "n"];

/// Returns the document as CSV, one line for each number of each row. The varied settings come
/// first, each in a column of its own.
#[must_use]
pub fn csv(document: &ComparisonDocument) -> String {
    let mut lines = Vec::new();
    for report in document.reports() {
        for row in &report.rows {
            let mut whose = place(document, report);
            whose.extend([row.scheduler.clone(), row.cc.clone()]);
            for numbers in summaries(row).into_iter().chain(plain(row)) {
                let mut line = whose.clone();
                line.extend(numbers);
                lines.push(line);
            }
        }
    }
    let mut header: Vec<&str> = document.varied.iter().map(|it| it.name.as_str()).collect();
    header.extend(["scheduler", "cc"]);
    header.extend(NUMBERS);
    crate::render::csv(&header, &lines)
}

/// Returns the document as CSV with one line for each run of each row. A line has the varied
/// settings, the row, the seed, and a column for every measure. Absent values are empty.
#[must_use]
pub fn csv_of_runs(document: &ComparisonDocument) -> String {
    let runs = || document.reports().iter().flat_map(|report| &report.each_run);
    let mut names: Vec<&str> = Vec::new();
    let mut known = BTreeSet::new();
    for (name, _) in runs().flat_map(|run| &run.values) {
        if known.insert(name) {
            names.push(name);
        }
    }
    let mut header: Vec<&str> = document.varied.iter().map(|it| it.name.as_str()).collect();
    header.extend(["scheduler", "cc", "run", "seed", "completed", "failure"]);
    header.extend(&names);
    let mut lines = Vec::new();
    for report in document.reports() {
        for run in &report.each_run {
            let mut line = place(document, report);
            line.extend(of_run(report, run));
            line.extend(names.iter().map(|name| {
                let value = run.values.iter().find(|(known, _)| known == name);
                value.map_or(String::new(), |(_, value)| value.to_string())
            }));
            lines.push(line);
        }
    }
    crate::render::csv(&header, &lines)
}

/// Returns the values of the varied settings.
fn place(document: &ComparisonDocument, report: &Report) -> Vec<String> {
    let value = |name: &String| report.vary.get(name).cloned().unwrap_or_default();
    document.varied.iter().map(|varied| value(&varied.name)).collect()
}

fn of_run(report: &Report, run: &RunRecord) -> [String; 6] {
    let (scheduler, cc) = report
        .rows
        .get(run.row)
        .map_or_else(Default::default, |row| (row.scheduler.clone(), row.cc.clone()));
    [
        scheduler,
        cc,
        run.run.to_string(),
        run.seed.to_string(),
        run.failure.is_none().to_string(),
        run.failure.clone().unwrap_or_default(),
    ]
}

/// Returns the measures of a row with their statistics.
fn summaries(row: &Row) -> Vec<Vec<String>> {
    let competing = row.competing.iter();
    let competing = competing.map(|(flows, it)| (format!("competing_mbps.{flows}"), it));
    let measures = row.measures.iter().map(|(name, it)| (name.clone(), it));
    let line = |(name, it): (String, &plait_lab::stats::Summary)| {
        let numbers = [it.mean, it.median, it.p95, it.min, it.max, it.ci95[0], it.ci95[1]];
        let mut line = vec![name];
        line.extend(numbers.iter().map(f64::to_string));
        line.push(it.n.to_string());
        line
    };
    measures.chain(competing).map(line).collect()
}

/// Returns the numbers of a row that have no statistics, in the column of the mean. Ratios have
/// their interval.
fn plain(row: &Row) -> Vec<Vec<String>> {
    let by_path = row.traffic.by_path();
    let by_path = by_path.iter().flat_map(|(name, of_paths)| {
        of_paths.iter().map(move |(path, it)| (format!("{name}.{path}"), *it))
    });
    let mut numbers: Vec<(String, f64)> = by_path.collect();
    let messages = row.messages.map(|it| {
        [
            ("pooled_message_delay_median_ms", it.median_ms),
            ("pooled_message_delay_p95_ms", it.p95_ms),
            ("pooled_message_delay_p99_ms", it.p99_ms),
            ("pooled_message_delay_max_ms", it.max_ms),
        ]
    });
    numbers.extend(messages.into_iter().flatten().map(|(name, it)| (name.to_owned(), it)));
    let optional = [
        ("extra_share", row.traffic.extra_share),
        ("reinjected_share", row.traffic.reinjected_share),
        ("retransmitted_share", row.traffic.retransmitted_share),
        ("speedup_vs_best_path", row.standing.speedup_vs_best_path),
        ("aggregation_benefit", row.standing.aggregation_benefit),
        ("group", row.standing.group.map(f64::from)),
    ];
    // A measure with statistics is written only once.
    let alone = optional.into_iter().filter(|(name, _)| !row.measures.contains_key(*name));
    numbers.extend(alone.filter_map(|(name, it)| Some((name.to_owned(), it?))));
    let mut lines: Vec<Vec<String>> = numbers
        .into_iter()
        .map(|(name, value)| {
            let mut line = vec![name, value.to_string()];
            line.resize(NUMBERS.len(), String::new());
            line
        })
        .collect();
    let ratios = [
        ("paired_vs_best", row.standing.paired_vs_best),
        ("paired_vs_best_path", row.standing.paired_vs_best_path),
    ];
    lines.extend(ratios.into_iter().filter_map(|(name, it)| Some(ratio(name, &it?))));
    lines
}

fn ratio(name: &str, difference: &Difference) -> Vec<String> {
    let mut line = vec![name.to_owned(), difference.ratio.to_string()];
    line.resize(NUMBERS.len(), String::new());
    for (place, end) in [6, 7].into_iter().zip(difference.ci95.into_iter().flatten()) {
        line[place] = end.to_string();
    }
    line
}
