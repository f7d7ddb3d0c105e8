//! The report of a comparison as text: a table, a few sentences, and the command that runs it
//! again.

mod csv;
mod expectations;
mod heading;
mod parts;
mod sweep;
mod tables;
mod verdict;

use super::{again, wrap};
pub use csv::{csv, csv_of_runs};
pub use expectations::broken;
use heading::{heading, title};
pub use parts::Parts;
use plait_app::measure::{MEASURES, is_higher_better};
use plait_lab::{ComparisonDocument, Report, Row};
use sweep::{map, sweep_tables};
use tables::{legend, table};
use verdict::{limits, verdict};

/// Ratios closer to 1 than this count as equal.
const EXACT: f64 = 0.005;

/// The legend of the map of a grid.
const MAP_LEGEND: &str =
    "The first row of each point. +N: these runs do not distinguish N more rows from it.";

/// Returns the document as text, in lines of at most `width` columns.
#[must_use]
pub fn text(document: &ComparisonDocument, width: usize, colour: bool) -> String {
    let again = again(&document.command, width);
    let paragraph = |text: &str| match text {
        "" => String::new(),
        text => format!("{}\n\n", wrap(text, width).join("\n")),
    };
    if let Some(report) = document.single() {
        let head = heading(report, width);
        let table = table(report);
        let legend = paragraph(&legend(report, &table.left_out(width)));
        let table = table.to_text(width, colour);
        let verdict = paragraph(&verdict(report));
        let limits: String = limits(report).iter().map(|line| paragraph(line)).collect();
        let why = why(report, width);
        return format!("{head}\n{table}\n{verdict}{limits}{legend}{why}{again}\n");
    }
    let Some(first) = document.points.first() else { return String::new() };
    let head = wrap(&title(first), width).join("\n");
    let maps = map(document, width);
    let legend = match maps.is_empty() {
        true => String::new(),
        false => paragraph(MAP_LEGEND) + "\n",
    };
    let maps: Vec<String> = maps.iter().map(|table| table.to_text(width, colour)).collect();
    let map = maps.join("\n") + &legend;
    let tables: Vec<String> =
        sweep_tables(document, width).iter().map(|it| it.to_text(width, colour)).collect();
    let precision = paragraph(&verdict::precision_of_points(document).unwrap_or_default());
    let limits: String = shared_limits(document).iter().map(|line| paragraph(line)).collect();
    let legend = "* first at its point, or not distinguished from the first row by these runs";
    format!("{head}\n\n{map}{}\n{legend}\n\n{precision}{limits}{again}\n", tables.join("\n"))
}

/// Returns the verdict of each point as one line of text. If a setting was varied, the values of the point
/// precede its verdict.
#[must_use]
pub fn verdicts(document: &ComparisonDocument) -> Vec<String> {
    let line = |report: &Report| {
        let values = report.vary.iter().map(|(name, value)| format!("{name}={value}"));
        let place = values.collect::<Vec<_>>().join(" ");
        if place.is_empty() { verdict(report) } else { format!("{place}: {}", verdict(report)) }
    };
    document.reports().iter().map(line).collect()
}

/// Returns the lines about buffers of a sweep, each once.
fn shared_limits(document: &ComparisonDocument) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for report in document.reports() {
        let place: Vec<String> =
            report.vary.iter().map(|(name, value)| format!("{name}={value}")).collect();
        lines.extend(limits(report).iter().map(|line| format!("{}: {line}", place.join(" "))));
    }
    let more = lines.len().saturating_sub(3);
    lines.truncate(3);
    if more > 0 {
        lines.push(format!("At {more} more points a buffer holds rows back (--json has them)."));
    }
    lines
}

/// Returns the names of the paths: `wifi/lte`.
fn names_of_paths(report: &Report) -> String {
    report.paths.iter().map(|path| path.name.as_str()).collect::<Vec<_>>().join("/")
}

/// Returns the number of runs that every row has. It is below the requested number if the
/// comparison was interrupted.
fn made(report: &Report) -> u32 {
    let runs = report.rows.iter().filter_map(|row| {
        let summary = row.measures.get(&report.primary_measure)?;
        Some(summary.n.saturating_add(row.incomplete))
    });
    runs.min().unwrap_or(report.runs)
}

/// Returns true if there is only one run although runs would differ, so that rows cannot be
/// distinguished.
fn undecided(report: &Report) -> bool {
    let random = report.host_jitter_us.is_some()
        || report.runs > 1
        || report
            .rows
            .iter()
            .any(|row| row.standing.paired_vs_best.is_some_and(|it| it.ci95.is_none()))
            && report.command.contains("--runs 1 ");
    made(report) == 1 && random
}

/// Returns by how many per cent a row is behind the best in a typical run, with its interval.
fn behind(report: &Report, row: &Row) -> Option<String> {
    let (_, _, more) = primary(report);
    let difference = row.standing.paired_vs_best?;
    // If higher values are better, a ratio of 0.9 is 10 % behind.
    let percent = |ratio: f64| if more { (1.0 - ratio) * 100.0 } else { (ratio - 1.0) * 100.0 };
    let number = |value: f64| match value.abs() {
        // With few runs, an end of the interval may be meaningless.
        v if v >= 9_999.5 => ">9999".to_owned(),
        v if v >= 99.5 => format!("{value:.0}"),
        v if v < 0.05 => "0".to_owned(),
        _ => format!("{value:.1}"),
    };
    let middle = number(percent(difference.ratio));
    Some(match difference.ci95 {
        None => middle,
        Some([low, high]) => {
            let (low, high) = if more { (high, low) } else { (low, high) };
            format!("{middle} [{}, {}]", number(percent(low)), number(percent(high)))
        }
    })
}

/// Returns the reasons why each row was fast or slow, if they were requested.
fn why(report: &Report, width: usize) -> String {
    let rows = ordered(report);
    let told: Vec<(String, &String)> =
        rows.iter().filter_map(|row| Some((label(report, row), row.why.as_ref()?))).collect();
    let Some(longest) = told.iter().map(|(name, _)| name.chars().count()).max() else {
        return String::new();
    };
    let margin = format!("\n{}", " ".repeat(longest + 4));
    let line = |(name, why): &(String, &String)| {
        let lines = wrap(why, width.saturating_sub(longest + 4).max(30));
        format!("  {name:<longest$}  {}\n", lines.join(&margin))
    };
    format!("{}\n", told.iter().map(line).collect::<String>())
}

/// Returns the document as Markdown.
pub fn markdown(document: &ComparisonDocument) -> String {
    if let Some(report) = document.single() {
        let rows = ordered(report);
        let why = rows.iter().filter_map(|row| Some((label(report, row), row.why.as_ref()?)));
        let why: String = why.map(|(name, why)| format!("* `{name}`: {why}\n")).collect();
        let why = if why.is_empty() { why } else { format!("\n{why}") };
        let limits: String = limits(report).iter().map(|line| format!("\n{line}\n")).collect();
        return format!(
            "{}\n\n{}\n{}\n{limits}{why}\n    {}\n",
            title(report),
            table(report).to_markdown(),
            verdict(report),
            report.command
        );
    }
    let Some(first) = document.points.first() else { return String::new() };
    let map: String = map(document, usize::MAX / 2)
        .iter()
        .map(|table| format!("{}\n", table.to_markdown()))
        .collect();
    let tables: Vec<String> =
        sweep_tables(document, usize::MAX / 2).iter().map(super::Table::to_markdown).collect();
    format!("{}\n\n{map}{}\n    {}\n", title(first), tables.join("\n"), document.command)
}

/// Returns the name of a report's primary measure, its unit, and true if higher is better.
fn primary(report: &Report) -> (String, &'static str, bool) {
    let name = &report.primary_measure;
    let entry = MEASURES.iter().find(|entry| entry.name == name);
    let unit = entry.map_or("", |entry| entry.unit);
    // The name ends in its unit: `completion_ms`, `goodput_mbps`.
    let (words, _) = name.rsplit_once('_').unwrap_or((name, ""));
    let words = words.replace('_', " ");
    (words, unit, is_higher_better(name))
}

/// Returns the typical speedup of a row over the best path alone within one run. If the runs cannot
/// be paired, it is the ratio of the medians.
fn typical_speedup(report: &Report, row: &Row) -> Option<f64> {
    let (_, _, more) = primary(report);
    let medians = row.standing.speedup_vs_best_path?;
    let typical =
        row.standing.paired_vs_best_path.map(|it| if more { it.ratio } else { 1.0 / it.ratio });
    Some(typical.unwrap_or(medians))
}

fn is_tcp(row: &Row) -> bool {
    row.scheduler.starts_with("tcp:")
}

/// Returns the number that ranks a row: the pooled median for messages, otherwise the median of its
/// runs.
fn central(report: &Report, row: &Row) -> Option<f64> {
    let summary = row.measures.get(&report.primary_measure)?;
    let messages = row.messages.filter(|_| report.primary_measure == "message_delay_ms");
    Some(messages.map_or(summary.median, |messages| messages.median_ms))
}

/// Returns scheduler rows by group and value, best first and rows without a value last, then plain
/// TCP.
fn ordered(report: &Report) -> Vec<&Row> {
    let (_, _, more) = primary(report);
    let key = |row: &Row| {
        let value = central(report, row).map_or(f64::INFINITY, |m| if more { -m } else { m });
        (
            row.standing.group.unwrap_or(u32::MAX),
            if row.incomplete > 0 { f64::INFINITY } else { value },
        )
    };
    let mut rows: Vec<&Row> = report.rows.iter().filter(|row| !is_tcp(row)).collect();
    rows.sort_by(|a, b| {
        let (a, b) = (key(a), key(b));
        a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
    });
    rows.extend(report.rows.iter().filter(|row| is_tcp(row)));
    rows
}

/// Formats a ratio: `1.32x faster`, `1.08x slower`, `the same`.
fn ratio(speedup: f64) -> String {
    match speedup {
        r if !r.is_finite() || r <= 0.0 => "-".to_owned(),
        r if r > 1.0 + EXACT => format!("{r:.2}x faster"),
        r if r < 1.0 - EXACT => format!("{:.2}x slower", 1.0 / r),
        _ => "the same".to_owned(),
    }
}

/// Returns the name of a row: the scheduler, with the controller if there are several.
fn label(report: &Report, row: &Row) -> String {
    let many = report.rows.iter().any(|other| other.cc != row.cc);
    if many { format!("{} ({})", row.scheduler, row.cc) } else { row.scheduler.clone() }
}

#[cfg(test)]
mod tests;
