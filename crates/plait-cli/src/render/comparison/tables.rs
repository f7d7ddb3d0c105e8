//! The tables: a row for each scheduler, or a line for each point of a sweep.

use super::{EQUAL, best, is_tcp, label, median, ordered, primary, ratio};
use crate::render::{Align, Column, Emphasis, Table, bar, figure, percent};
use plait_lab::stats::Summary;
use plait_lab::{PathReport, Report, Row};

/// Columns of the longest bar.
const BAR: usize = 12;

pub(super) fn table(report: &Report) -> Table {
    let (_, unit, _) = primary(report);
    let many_ccs =
        report.rows.iter().any(|row| report.rows.first().is_some_and(|r| r.cc != row.cc));
    let mut columns = vec![Column::new("  scheduler", Align::Left)];
    if many_ccs {
        columns.push(Column::new("cc", Align::Left));
    }
    columns.push(Column::new(&format!("{} {unit}", middle(report)), Align::Right));
    if spread(report) {
        columns.push(Column::new("min..p95", Align::Right).dispensable(2));
        columns.push(Column::new("mean [95 % ci]", Align::Right).dispensable(5));
    }
    columns.extend([
        Column::new("", Align::Left).dispensable(3).drawing(),
        Column::new("vs best path", Align::Left),
    ]);
    columns.extend(report.compete.iter().map(|flows| {
        Column::new(
            &format!("{flows}{}", if flows.contains('*') { ", each" } else { "" }),
            Align::Right,
        )
    }));
    columns.extend([
        Column::new("path share", Align::Right).dispensable(1),
        Column::new("reinjected", Align::Right).dispensable(4),
        Column::new("retransmitted", Align::Right).dispensable(6),
    ]);
    let mut table = Table::new(columns);
    let rows = ordered(report);
    let best = best(report, &rows);
    let longest = rows.iter().filter_map(|row| median(report, row)).fold(0.0, f64::max);
    for row in rows {
        let is_best = best.is_some_and(|best| std::ptr::eq(best, row));
        let mut cells = vec![format!("{} {}", if is_best { '*' } else { ' ' }, row.scheduler)];
        if many_ccs {
            cells.push(row.cc.clone());
        }
        cells.extend(numbers(report, row, longest));
        let emphasis = match row.speedup_vs_best_path {
            _ if is_best => Emphasis::Best,
            _ if is_tcp(row) => Emphasis::Reference,
            Some(ratio) if ratio < 1.0 - EQUAL => Emphasis::Bad,
            _ => Emphasis::None,
        };
        table.row(emphasis, cells);
    }
    table
}

/// Whether a row has more than one run, so that there is a spread to show.
fn spread(report: &Report) -> bool {
    let mut summaries =
        report.rows.iter().filter_map(|row| row.measures.get(&report.primary_measure));
    summaries.any(|summary| summary.n > 1)
}

/// What a row's number is: the median of its runs, or the value of the only one.
fn middle(report: &Report) -> &'static str {
    if spread(report) { "median" } else { "value" }
}

/// The cells of a row from the median on.
fn numbers(report: &Report, row: &Row, longest: f64) -> Vec<String> {
    let share = |path: &PathReport| {
        row.path_share
            .get(&path.name)
            .map_or("-".to_owned(), |share| format!("{:.0}", share * 100.0))
    };
    let shares: Vec<String> = report.paths.iter().map(share).collect();
    let optional = |share: Option<f64>| share.map_or("-".to_owned(), percent);
    let ending = [
        format!("{} %", shares.join("/")),
        if is_tcp(row) { "-".to_owned() } else { optional(row.reinjected_share) },
        optional(row.retransmitted_share),
    ];
    let summary = row.measures.get(&report.primary_measure);
    let middle = |it: &Summary| figure(it.median);
    let mut cells = vec![summary.map_or("-".to_owned(), middle)];
    if spread(report) {
        let dash = || ["-".to_owned(), "-".to_owned()];
        cells.extend(summary.map_or_else(dash, |summary| {
            let [low, high] = summary.ci95;
            [
                format!("{}..{}", short(summary.min), short(summary.p95)),
                format!("{} [{}, {}]", figure(summary.mean), figure(low), figure(high)),
            ]
        }));
    }
    cells.push(summary.map_or_else(String::new, |summary| bar(summary.median, longest, BAR)));
    cells.push(match (row.incomplete, row.speedup_vs_best_path) {
        // The best path of this controller is what its rows are measured against.
        (0, Some(1.0)) if is_tcp(row) => "best path".to_owned(),
        (0, speedup) => speedup.map_or("-".to_owned(), ratio),
        (1, _) => "1 run failed".to_owned(),
        (runs, _) => format!("{runs} runs failed"),
    });
    let competing = |flows| row.competing.get(flows).map_or("-".to_owned(), middle);
    cells.extend(report.compete.iter().map(competing));
    cells.extend(ending);
    cells
}

/// A number with about three digits: spreads need no more.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A line for each point, a column for each row of the reports; the best of a line is marked.
pub(super) fn sweep_table(points: &[Report]) -> Table {
    let Some(first) = points.first() else { return Table::default() };
    let varied = first.vary.keys().next().map_or("", String::as_str);
    let mut columns = vec![Column::new(varied, Align::Right)];
    columns.extend(first.rows.iter().map(|row| Column::new(&label(first, row), Align::Right)));
    let mut table = Table::new(columns);
    for report in points {
        let rows: Vec<&Row> = report.rows.iter().collect();
        let best = best(report, &rows);
        let cell = |row: &&Row| {
            let mark = if best.is_some_and(|best| std::ptr::eq(best, *row)) { "*" } else { "" };
            match median(report, row) {
                Some(value) if row.incomplete == 0 => format!("{mark}{}", figure(value)),
                _ => "-".to_owned(),
            }
        };
        let point = report.vary.values().next().cloned().unwrap_or_default();
        table.row(Emphasis::None, [point].into_iter().chain(rows.iter().map(cell)).collect());
    }
    table
}
