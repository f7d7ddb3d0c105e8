//! The table of a comparison: a row for each scheduler.

use super::{
    EXACT, behind, central, is_tcp, made, names_of_paths, ordered, primary, ratio, typical_speedup,
};
use crate::render::{Align, Column, Emphasis, Table, bar, figure, percent};
use plait_lab::stats::Summary;
use plait_lab::{Messages, Report, Row};

/// Length of the longest bar in columns.
const BAR: usize = 12;

/// A column of the table of rows. The table, its Markdown and the legend read [`COLUMNS`].
pub(super) struct RowColumn {
    /// Heading. `{unit}` is the unit of the primary measure, `{paths}` the names of the paths, and
    /// `{flows}` the competing flows of the column.
    title: &'static str,
    align: Align,
    /// 0 is never dropped. If the width is too small, columns with the highest rank are dropped
    /// first.
    rank: fn(&Report) -> u8,
    /// True if the legend names the column when it is dropped.
    missed: bool,
    /// Sentence of the legend, if the column needs one.
    legend: fn(&Report) -> String,
    /// Returns true if the table of this report has the column.
    shown_if: fn(&Report) -> bool,
    cell: Cell,
}

/// How the cells of an entry are made.
enum Cell {
    /// Text.
    Text(fn(&Report, &Row) -> String),
    /// A drawing, which Markdown leaves out.
    Drawing(fn(&Report, &Row) -> String),
    /// A column for each kind of competing flows, which is the last argument.
    Flows(fn(&Row, &str) -> String),
}

/// A column of numbers that is always shown, for entries that differ from it.
const NUMBER: RowColumn = RowColumn {
    title: "",
    align: Align::Right,
    rank: |_| 0,
    missed: false,
    legend: |_| String::new(),
    shown_if: |_| true,
    cell: Cell::Text(|_, _| String::new()),
};

/// The columns from left to right. docs/compare.md explains each of them.
pub(super) const COLUMNS: &[RowColumn] = &[
    RowColumn {
        title: "   scheduler",
        align: Align::Left,
        legend: |_| {
            "First column: schedulers of one group differ by at most 1 %, or only within chance."
                .to_owned()
        },
        cell: Cell::Text(|_, row| {
            let group = row.standing.group.map_or(String::new(), |group| group.to_string());
            format!("{group:>2} {}", row.scheduler)
        }),
        ..NUMBER
    },
    RowColumn {
        title: "cc",
        align: Align::Left,
        shown_if: several_ccs,
        cell: Cell::Text(|_, row| row.cc.clone()),
        ..NUMBER
    },
    RowColumn {
        title: "p50 ms",
        shown_if: of_messages,
        cell: Cell::Text(|_, row| messages(row, |it| it.median_ms)),
        ..NUMBER
    },
    RowColumn {
        title: "p99 ms",
        shown_if: of_messages,
        cell: Cell::Text(|_, row| messages(row, |it| it.p99_ms)),
        ..NUMBER
    },
    RowColumn {
        title: "worst ms",
        rank: |_| 4,
        missed: true,
        shown_if: of_messages,
        cell: Cell::Text(|_, row| messages(row, |it| it.max_ms)),
        ..NUMBER
    },
    RowColumn {
        title: "median {unit}",
        shown_if: of_runs,
        cell: Cell::Text(|report, row| {
            of_measure(row, &report.primary_measure, |it| figure(it.median))
        }),
        ..NUMBER
    },
    RowColumn {
        title: "p95",
        rank: |_| 3,
        shown_if: of_runs,
        cell: Cell::Text(|report, row| {
            of_measure(row, &report.primary_measure, |it| figure(it.p95))
        }),
        ..NUMBER
    },
    RowColumn {
        title: "min..max",
        rank: |_| 6,
        shown_if: of_runs,
        cell: Cell::Text(|report, row| {
            of_measure(row, &report.primary_measure, |it| {
                format!("{}..{}", short(it.min), short(it.max))
            })
        }),
        ..NUMBER
    },
    RowColumn {
        title: "mean [95 % ci]",
        rank: |_| 8,
        shown_if: of_runs,
        cell: Cell::Text(|report, row| {
            of_measure(row, &report.primary_measure, |it| {
                let [low, high] = it.ci95.map(figure);
                format!("{} [{low}, {high}]", figure(it.mean))
            })
        }),
        ..NUMBER
    },
    RowColumn {
        title: "value {unit}",
        shown_if: |report| !of_messages(report) && !spread(report),
        cell: Cell::Text(|report, row| {
            of_measure(row, &report.primary_measure, |it| figure(it.median))
        }),
        ..NUMBER
    },
    RowColumn { align: Align::Left, rank: |_| 7, cell: Cell::Drawing(drawn), ..NUMBER },
    RowColumn {
        title: "behind best, %",
        legend: behind_legend,
        cell: Cell::Text(|report, row| match behind(report, row) {
            Some(text) => text,
            None if row.standing.group == Some(1) => "best".to_owned(),
            None => dash(),
        }),
        ..NUMBER
    },
    RowColumn {
        title: "vs best path",
        align: Align::Left,
        rank: |report| if has_prices(report) { 2 } else { 0 },
        missed: true,
        cell: Cell::Text(|report, row| match (row.incomplete, typical_speedup(report, row)) {
            (0, _) if is_best_path(report, row) => "best path".to_owned(),
            (0, speedup) => speedup.map_or_else(dash, ratio),
            (1, _) => "1 run failed".to_owned(),
            (runs, _) => format!("{runs} runs failed"),
        }),
        ..NUMBER
    },
    RowColumn {
        title: "of bound",
        rank: |_| 5,
        shown_if: |report| report.rows.iter().any(|row| row.standing.of_bound.is_some()),
        legend: |_| "Of bound: share of the highest speed that any sender could reach.".to_owned(),
        cell: Cell::Text(|_, row| row.standing.of_bound.map_or_else(dash, percent)),
        ..NUMBER
    },
    RowColumn {
        title: "{flows}",
        rank: |_| 3,
        cell: Cell::Flows(|row, flows| {
            row.competing.get(flows).map_or_else(dash, |it| figure(it.median))
        }),
        ..NUMBER
    },
    RowColumn {
        title: "{paths}",
        // The bytes of a path with a price are the purpose of the comparison.
        rank: |report| if has_prices(report) { 1 } else { 2 },
        missed: true,
        legend: |report| {
            let paths = names_of_paths(report);
            match has_prices(report) {
                true => format!("{paths}: share of all bytes sent, with copies (path_sent_share)."),
                false => format!("{paths}: bytes sent on each path."),
            }
        },
        cell: Cell::Text(shares),
        ..NUMBER
    },
    RowColumn {
        // Without it, the bytes on each path would hide copies.
        title: "extra",
        rank: |_| 1,
        missed: true,
        legend: |report| match has_prices(report) {
            true => "Extra: copies over payload, by the path that carried them.".to_owned(),
            false => "Extra: copies over payload.".to_owned(),
        },
        cell: Cell::Text(|report, row| match row.traffic.extra_share {
            Some(_) if !is_tcp(row) && has_prices(report) => extra_by_path(report, row),
            Some(share) if !is_tcp(row) => percent(share),
            _ => dash(),
        }),
        ..NUMBER
    },
    RowColumn {
        title: "retransmitted",
        rank: |_| 9,
        cell: Cell::Text(|_, row| row.traffic.retransmitted_share.map_or_else(dash, percent)),
        ..NUMBER
    },
];

/// A column in the table of one report.
struct Placed<'a> {
    shown: &'static RowColumn,
    title: String,
    /// The competing flows that the column is for; empty in other columns.
    flows: &'a str,
}

impl RowColumn {
    /// Returns the heading in the table of a report.
    pub(super) fn title(&self, report: &Report, flows: &str) -> String {
        let (_, unit, _) = primary(report);
        let each = if flows.contains('*') { ", each" } else { "" };
        let title = self.title.replace("{unit}", unit).replace("{paths}", &names_of_paths(report));
        title.replace("{flows}", &format!("{flows}{each}"))
    }
}

impl Placed<'_> {
    fn column(&self, report: &Report) -> Column {
        let rank = (self.shown.rank)(report);
        let column = Column::new(&self.title, self.shown.align).dispensable(rank);
        match self.shown.cell {
            Cell::Drawing(_) => column.drawing(),
            Cell::Text(_) | Cell::Flows(_) => column,
        }
    }

    fn cell(&self, report: &Report, row: &Row) -> String {
        match self.shown.cell {
            Cell::Text(cell) | Cell::Drawing(cell) => cell(report, row),
            Cell::Flows(cell) => cell(row, self.flows),
        }
    }
}

/// Returns the columns that the table of a report has.
fn placed(report: &Report) -> Vec<Placed<'_>> {
    let mut placed = Vec::new();
    for shown in COLUMNS.iter().filter(|shown| (shown.shown_if)(report)) {
        let one = |flows| Placed { shown, title: shown.title(report, flows), flows };
        match shown.cell {
            Cell::Flows(_) => placed.extend(report.compete.iter().map(|flows| one(flows))),
            Cell::Text(_) | Cell::Drawing(_) => placed.push(one("")),
        }
    }
    placed
}

pub(super) fn table(report: &Report) -> Table {
    let columns = placed(report);
    let mut table = Table::new(columns.iter().map(|column| column.column(report)).collect());
    for row in ordered(report) {
        let emphasis = match typical_speedup(report, row) {
            _ if row.standing.group == Some(1) => Emphasis::Best,
            _ if is_tcp(row) => Emphasis::Reference,
            Some(ratio) if ratio < 1.0 - EXACT && slower(report, row) => Emphasis::Bad,
            _ => Emphasis::None,
        };
        table.row(emphasis, columns.iter().map(|column| column.cell(report, row)).collect());
    }
    table
}

/// Explains the columns of the table, and names those that are dropped because of the width. The
/// legend is empty if no row is compared with another.
pub(super) fn legend(report: &Report, left_out: &[&str]) -> String {
    if report.rows.iter().all(|row| row.standing.paired_vs_best.is_none()) {
        return String::new();
    }
    let columns = placed(report);
    let (dropped, kept): (Vec<&Placed<'_>>, Vec<&Placed<'_>>) =
        columns.iter().partition(|it| left_out.contains(&it.title.as_str()));
    let mut sentences: Vec<String> =
        kept.iter().map(|it| (it.shown.legend)(report)).filter(|it| !it.is_empty()).collect();
    let missed = dropped.iter().filter(|it| it.shown.missed);
    let missed: Vec<&str> = missed.map(|it| it.title.as_str()).collect();
    if !missed.is_empty() {
        sentences.push(format!("Not enough columns for: {}.", missed.join(", ")));
    }
    sentences.join(" ")
}

fn dash() -> String {
    "-".to_owned()
}

/// Returns a number of the messages of all runs of a row.
fn messages(row: &Row, number: fn(&Messages) -> f64) -> String {
    row.messages.as_ref().map_or_else(dash, |it| figure(number(it)))
}

/// Returns a statistic of a measure of a row.
fn of_measure(row: &Row, name: &str, text: fn(&Summary) -> String) -> String {
    row.measures.get(name).map_or_else(dash, text)
}

/// Draws the number that ranks a row; the longest bar is that of the largest number.
fn drawn(report: &Report, row: &Row) -> String {
    let values = report.rows.iter().filter_map(|row| central(report, row));
    let longest = values.fold(0.0, f64::max);
    central(report, row).map_or_else(String::new, |value| bar(value, longest, BAR))
}

fn behind_legend(report: &Report) -> String {
    let interval = if made(report) == 1 { "" } else { " [95 % interval]" };
    let messages = match of_messages(report) {
        true => " It compares the median message delay of each run.",
        false => "",
    };
    format!("Behind best: typical difference from the best scheduler in a run{interval}.{messages}")
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

/// Returns true if the numbers of the table are statistics of more than one run.
fn of_runs(report: &Report) -> bool {
    !of_messages(report) && spread(report)
}

/// Returns true if a row has more than one run, so that it has a spread.
pub(super) fn spread(report: &Report) -> bool {
    let mut summaries =
        report.rows.iter().filter_map(|row| row.measures.get(&report.primary_measure));
    summaries.any(|summary| summary.n > 1)
}

pub(super) fn is_best_path(report: &Report, row: &Row) -> bool {
    report.findings.best_path.as_deref() == Some(row.scheduler.as_str())
        && report.findings.best_path_cc.as_deref().is_none_or(|cc| cc == row.cc)
}

/// Returns the share of each path in all payload bytes sent, including copies: `81/19 %`.
fn shares(report: &Report, row: &Row) -> String {
    let shares = &row.traffic.path_sent_share;
    if shares.is_empty() {
        return dash();
    }
    let share = |path: &plait_lab::PathReport| {
        format!("{:.0}", shares.get(&path.name).copied().unwrap_or(0.0) * 100.0)
    };
    format!("{} %", report.paths.iter().map(share).collect::<Vec<_>>().join("/"))
}

/// Returns true if the rows have the copies on each path, because a path has a cost or a quota.
fn has_prices(report: &Report) -> bool {
    report.rows.iter().any(|row| !row.traffic.path_extra_share.is_empty())
}

/// Returns the copies on each path over the payload: `4.1/0.3 %`.
fn extra_by_path(report: &Report, row: &Row) -> String {
    let share = |path: &plait_lab::PathReport| {
        let share = row.traffic.path_extra_share.get(&path.name).copied().unwrap_or(0.0);
        percent(share).trim_end_matches([' ', '%']).to_owned()
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
