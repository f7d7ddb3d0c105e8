//! The tables: a row for each scheduler, a line for each point of a sweep, or a map of a grid.

use super::{
    EXACT, behind, central, is_tcp, label, names_of_paths, ordered, primary, ratio,
    typical_speedup, undecided,
};
use crate::render::{Align, Column, Emphasis, Table, bar, figure, percent};
use plait_lab::stats::Summary;
use plait_lab::{Document, Report, Row};

/// Length of the longest bar in columns.
const BAR: usize = 12;

pub(super) fn table(report: &Report) -> Table {
    let mut table = Table::new(columns(report));
    let rows = ordered(report);
    let longest = rows.iter().filter_map(|row| central(report, row)).fold(0.0, f64::max);
    for row in rows {
        let group = row.standing.group.map_or(String::new(), |group| group.to_string());
        let mut cells = vec![format!("{group:>2} {}", row.scheduler)];
        if several_ccs(report) {
            cells.push(row.cc.clone());
        }
        cells.extend(numbers(report, row, longest));
        let emphasis = match typical_speedup(report, row) {
            _ if row.standing.group == Some(1) => Emphasis::Best,
            _ if is_tcp(row) => Emphasis::Reference,
            Some(ratio) if ratio < 1.0 - EXACT && slower(report, row) => Emphasis::Bad,
            _ => Emphasis::None,
        };
        table.row(emphasis, cells);
    }
    table
}

fn several_ccs(report: &Report) -> bool {
    report.rows.iter().any(|row| report.rows.first().is_some_and(|first| first.cc != row.cc))
}

/// Returns true if the typical run of a row is significantly worse than the best path alone.
pub(super) fn slower(report: &Report, row: &Row) -> bool {
    let (_, _, more) = primary(report);
    row.standing.paired_vs_best_path.is_some_and(|it| it.told_apart && (it.ratio > 1.0) != more)
}

/// Returns true if the numbers of the table are percentiles of messages.
pub(super) fn of_messages(report: &Report) -> bool {
    let many = |row: &Row| row.messages.is_some_and(|it| it.n > u64::from(report.runs));
    report.primary_measure == "message_delay_ms" && report.rows.iter().any(many)
}

fn columns(report: &Report) -> Vec<Column> {
    let (_, unit, _) = primary(report);
    let right = |title: &str| Column::new(title, Align::Right);
    let mut columns = vec![Column::new("   scheduler", Align::Left)];
    if several_ccs(report) {
        columns.push(Column::new("cc", Align::Left));
    }
    if of_messages(report) {
        columns.extend([right("p50 ms"), right("p99 ms"), right("worst ms").dispensable(4)]);
    } else if spread(report) {
        columns.extend([right(&format!("median {unit}")), right("p95").dispensable(3)]);
        columns.push(right("min..max").dispensable(6));
        columns.push(right("mean [95 % ci]").dispensable(8));
    } else {
        columns.push(right(&format!("value {unit}")));
    }
    columns.push(Column::new("", Align::Left).dispensable(7).drawing());
    columns.push(right("behind best, %"));
    columns.push(Column::new("vs best path", Align::Left));
    columns.extend(report.compete.iter().map(|flows| {
        let title = format!("{flows}{}", if flows.contains('*') { ", each" } else { "" });
        right(&title).dispensable(3)
    }));
    columns.extend([
        right(&names_of_paths(report)).dispensable(1),
        right("extra").dispensable(2),
        right("retransmitted").dispensable(9),
    ]);
    columns
}

/// Returns true if a row has more than one run, so that it has a spread.
pub(super) fn spread(report: &Report) -> bool {
    let mut summaries =
        report.rows.iter().filter_map(|row| row.measures.get(&report.primary_measure));
    summaries.any(|summary| summary.n > 1)
}

/// Returns the cells of a row from its first number on.
fn numbers(report: &Report, row: &Row, longest: f64) -> Vec<String> {
    let dash = || "-".to_owned();
    let summary = row.measures.get(&report.primary_measure);
    let mut cells = match (of_messages(report), spread(report)) {
        (true, _) => row
            .messages
            .map_or([(); 3].map(|()| dash()), |it| [it.median_ms, it.p99_ms, it.max_ms].map(figure))
            .to_vec(),
        (false, true) => summary
            .map_or([(); 4].map(|()| dash()), |it| {
                let [low, high] = it.ci95;
                [
                    figure(it.median),
                    figure(it.p95),
                    format!("{}..{}", short(it.min), short(it.max)),
                    format!("{} [{}, {}]", figure(it.mean), figure(low), figure(high)),
                ]
            })
            .to_vec(),
        (false, false) => vec![summary.map_or_else(dash, |it| figure(it.median))],
    };
    cells.push(central(report, row).map_or_else(String::new, |value| bar(value, longest, BAR)));
    cells.push(match behind(report, row) {
        Some(text) => text,
        None if row.standing.group == Some(1) => "best".to_owned(),
        None => dash(),
    });
    cells.push(match (row.incomplete, typical_speedup(report, row)) {
        (0, _) if is_best_path(report, row) => "best path".to_owned(),
        (0, speedup) => speedup.map_or_else(dash, ratio),
        (1, _) => "1 run failed".to_owned(),
        (runs, _) => format!("{runs} runs failed"),
    });
    let median = |it: &Summary| figure(it.median);
    cells.extend(
        report.compete.iter().map(|flows| row.competing.get(flows).map_or_else(dash, median)),
    );
    cells.push(shares(report, row));
    cells.push(match row.traffic.extra_share {
        Some(share) if !is_tcp(row) => percent(share),
        _ => dash(),
    });
    cells.push(row.traffic.retransmitted_share.map_or_else(dash, percent));
    cells
}

fn is_best_path(report: &Report, row: &Row) -> bool {
    report.findings.best_path.as_deref() == Some(row.scheduler.as_str())
        && report.findings.best_path_cc.as_deref().is_none_or(|cc| cc == row.cc)
}

/// Returns the share of each path in all payload bytes sent, including copies: `81/19 %`.
fn shares(report: &Report, row: &Row) -> String {
    let all: f64 = row.traffic.path_bytes.values().sum();
    if all <= 0.0 {
        return "-".to_owned();
    }
    let share = |path: &plait_lab::PathReport| {
        format!(
            "{:.0}",
            row.traffic.path_bytes.get(&path.name).copied().unwrap_or(0.0) / all * 100.0
        )
    };
    format!("{} %", report.paths.iter().map(share).collect::<Vec<_>>().join("/"))
}

/// Formats a number with about three digits, which suffice for spreads.
pub(super) fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Returns a line for each point and a column for each row of the reports, in as many tables as the
/// width requires. A row that is first or tied first at its point is marked.
pub(super) fn sweep_tables(document: &Document, width: usize) -> Vec<Table> {
    let Some(first) = document.points.first() else { return Vec::new() };
    let names: Vec<String> = first.rows.iter().map(|row| label(first, row)).collect();
    let place = |report: &Report| -> Vec<String> {
        let value = |varied: &plait_lab::Varied| report.vary.get(&varied.name).cloned();
        document.varied.iter().map(|varied| value(varied).unwrap_or_default()).collect()
    };
    let cell = |report: &Report, row: usize| {
        let Some(row) = report.rows.get(row) else { return "-".to_owned() };
        let leads = leading(report).iter().any(|it| std::ptr::eq(*it, row));
        let mark = if leads && !undecided(report) { "*" } else { "" };
        match central(report, row) {
            Some(value) => format!("{mark}{}", figure(value)),
            None => "-".to_owned(),
        }
    };
    let widest = |cells: &mut dyn Iterator<Item = usize>| cells.max().unwrap_or(0) + 2;
    let leading: usize = (0..document.varied.len())
        .map(|at| {
            let title = document.varied[at].name.chars().count();
            let cells = document.points.iter().map(|report| place(report)[at].chars().count());
            widest(&mut cells.chain([title]))
        })
        .sum();
    let mut tables = Vec::new();
    let mut rows = 0..names.len();
    while !rows.is_empty() {
        let (start, mut used) = (rows.start, leading);
        while let Some(row) = rows.clone().next() {
            let cells = document.points.iter().map(|report| cell(report, row).chars().count());
            used += widest(&mut cells.chain([names[row].chars().count()]));
            if used > width + 2 && row > start {
                break;
            }
            rows.next();
        }
        let mut columns: Vec<Column> =
            document.varied.iter().map(|varied| Column::new(&varied.name, Align::Right)).collect();
        columns.extend(names[start..rows.start].iter().map(|it| Column::new(it, Align::Right)));
        let mut table = Table::new(columns);
        for report in &document.points {
            let mut cells = place(report);
            cells.extend((start..rows.start).map(|row| cell(report, row)));
            table.row(Emphasis::None, cells);
        }
        tables.push(table);
    }
    tables
}

/// Returns the first row of each point of a grid. A line is a value of the first setting, a column
/// a value of the second. The width determines the number of tables. Documents that do not vary
/// exactly two settings have none.
pub(super) fn map(document: &Document, width: usize) -> Vec<Table> {
    let [down, across] = document.varied.as_slice() else { return Vec::new() };
    let corner = format!("{} \\ {}", down.name, across.name);
    let columns: Vec<(&String, Vec<String>)> = across
        .values
        .iter()
        .map(|other| {
            let cell = |value: &String| {
                let at = |report: &&Report| {
                    report.vary.get(&down.name) == Some(value)
                        && report.vary.get(&across.name) == Some(other)
                };
                document.points.iter().find(at).map_or("-".to_owned(), winner)
            };
            (other, down.values.iter().map(cell).collect())
        })
        .collect();
    let cells = columns.iter().flat_map(|(title, cells)| cells.iter().chain([*title]));
    let widest = cells.map(|cell| cell.chars().count()).max().unwrap_or(0) + 2;
    let each = (width.saturating_sub(corner.chars().count()) / widest).max(1);
    let part = |columns: &[(&String, Vec<String>)]| {
        let titles = columns.iter().map(|(title, _)| Column::new(title, Align::Left));
        let corner = Column::new(&corner, Align::Right);
        let mut table = Table::new(std::iter::once(corner).chain(titles).collect());
        for (at, value) in down.values.iter().enumerate() {
            let cells = columns.iter().map(|(_, cells)| cells[at].clone());
            table.row(Emphasis::None, std::iter::once(value.clone()).chain(cells).collect());
        }
        table
    };
    columns.chunks(each).map(part).collect()
}

/// Returns the first row of a report and the number of rows tied with it, as in `ecf +2`.
fn winner(report: &Report) -> String {
    let leading = leading(report);
    let Some(leader) = leading.first() else { return "-".to_owned() };
    match leading.len() - 1 {
        0 => label(report, leader),
        tied => format!("{} +{tied}", label(report, leader)),
    }
}

/// Returns the rows that are first at a point, best first. They are the first group and the best
/// path alone, unless one of the two is ahead of the other.
fn leading(report: &Report) -> Vec<&Row> {
    let rows = ordered(report);
    let group: Vec<&Row> =
        rows.iter().copied().filter(|row| row.standing.group == Some(1)).collect();
    let path = rows.iter().copied().find(|row| is_tcp(row) && is_best_path(report, row));
    // The best path is behind if the best scheduler differs significantly from it and is not
    // slower.
    let told_apart = |row: &Row| row.standing.paired_vs_best_path.is_none_or(|it| it.told_apart);
    let path_is_behind =
        group.first().is_some_and(|row| !is_tcp(row) && told_apart(row) && !slower(report, row));
    let path = path.filter(|_| !path_is_behind);
    let ahead = |row: &&Row| !(path.is_some() && slower(report, row));
    let mut leading: Vec<&Row> = group.into_iter().filter(ahead).collect();
    if let Some(path) = path.filter(|path| !leading.iter().any(|row| std::ptr::eq(*row, *path))) {
        leading.push(path);
    }
    let (_, _, more) = primary(report);
    let value =
        |row: &Row| central(report, row).map_or(f64::INFINITY, |m| if more { -m } else { m });
    leading.sort_by(|a, b| value(a).total_cmp(&value(b)));
    leading
}
