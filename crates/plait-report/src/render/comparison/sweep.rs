//! The tables of a sweep: a line for each point, and a map of a grid.

use super::tables::{is_best_path, slower};
use super::{central, is_tcp, label, ordered, primary, undecided};
use crate::render::{Align, Column, Emphasis, Table, figure};
use plait_lab::{ComparisonDocument, Report, Row};

/// Returns a line for each point and a column for each row of the reports, in as many tables as the
/// width requires. A row that is first or tied first at its point is marked.
pub(super) fn sweep_tables(document: &ComparisonDocument, width: usize) -> Vec<Table> {
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
pub(super) fn map(document: &ComparisonDocument, width: usize) -> Vec<Table> {
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
