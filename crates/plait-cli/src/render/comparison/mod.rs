//! The report of a comparison as people read it: a table, a sentence or two, and the line that
//! runs it again.

mod csv;
mod heading;
mod tables;
mod verdict;

use super::wrap;
pub(crate) use csv::csv;
use heading::{heading, title};
use plait_app::measure::{Better, MEASURES};
use plait_lab::{Document, Report, Row};
use tables::{sweep_table, table};
use verdict::verdict;

/// Ratios closer to 1 than this count as equal.
const EQUAL: f64 = 0.005;

/// The document as text.
pub(crate) fn text(document: &Document, width: usize, colour: bool) -> String {
    match document {
        Document::Report(report) => {
            let head = heading(report);
            let table = table(report).to_text(width, colour);
            let verdict = match verdict(report) {
                nothing if nothing.is_empty() => nothing,
                text => format!("{}\n\n", wrap(&text, width).join("\n")),
            };
            let why = why(report, width);
            format!("{head}\n{table}\n{verdict}{why}Run again: {}\n", report.command)
        }
        Document::Sweep(sweep) => {
            let Some(first) = sweep.points.first() else { return String::new() };
            let table = sweep_table(&sweep.points).to_text(width, colour);
            let head = format!("{}\n", title(first));
            format!("{head}\n{table}\n* best of its line\nRun again: {}\n", sweep.command)
        }
    }
}

/// Why each row was fast or slow, where that was asked for.
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

/// The document as Markdown.
pub(crate) fn markdown(document: &Document) -> String {
    match document {
        Document::Report(report) => {
            let rows = ordered(report);
            let why = rows.iter().filter_map(|row| Some((label(report, row), row.why.as_ref()?)));
            let why: String = why.map(|(name, why)| format!("* `{name}`: {why}\n")).collect();
            let why = if why.is_empty() { why } else { format!("\n{why}") };
            format!(
                "{}\n\n{}\n{}\n{why}\n    {}\n",
                title(report),
                table(report).to_markdown(),
                verdict(report),
                report.command
            )
        }
        Document::Sweep(sweep) => {
            let Some(first) = sweep.points.first() else { return String::new() };
            let table = sweep_table(&sweep.points).to_markdown();
            format!("{}\n\n{table}\n    {}\n", title(first), sweep.command)
        }
    }
}

/// What a report's primary measure is called, its unit, and whether more is better.
fn primary(report: &Report) -> (String, &'static str, bool) {
    let name = &report.primary_measure;
    let entry = MEASURES.iter().find(|entry| entry.name == name);
    let unit = entry.map_or("", |entry| entry.unit);
    // The name ends in its unit: `completion_ms`, `goodput_mbps`.
    let (words, _) = name.rsplit_once('_').unwrap_or((name, ""));
    let words = words.replace('_', " ");
    (words, unit, entry.is_some_and(|entry| entry.better == Better::Higher))
}

fn is_tcp(row: &Row) -> bool {
    row.scheduler.starts_with("tcp:")
}

fn median(report: &Report, row: &Row) -> Option<f64> {
    row.measures.get(&report.primary_measure).map(|summary| summary.median)
}

/// Scheduler rows, best first and those without a value last, then plain TCP.
fn ordered(report: &Report) -> Vec<&Row> {
    let (_, _, more) = primary(report);
    let key = |row: &Row| {
        let value = median(report, row).map_or(f64::INFINITY, |m| if more { -m } else { m });
        if row.incomplete > 0 { f64::INFINITY } else { value }
    };
    let mut rows: Vec<&Row> = report.rows.iter().filter(|row| !is_tcp(row)).collect();
    rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
    rows.extend(report.rows.iter().filter(|row| is_tcp(row)));
    rows
}

/// The best row of all that finished, plain TCP included.
fn best<'a>(report: &Report, rows: &[&'a Row]) -> Option<&'a Row> {
    let (_, _, more) = primary(report);
    let finished = rows.iter().filter(|row| row.incomplete == 0);
    let valued = finished.filter_map(|row| Some((median(report, row)?, *row)));
    let sign = if more { -1.0 } else { 1.0 };
    valued.min_by(|a, b| (sign * a.0).total_cmp(&(sign * b.0))).map(|(_, row)| row)
}

/// `1.32x faster`, `1.08x slower`, `the same`.
fn ratio(speedup: f64) -> String {
    match speedup {
        r if !r.is_finite() || r <= 0.0 => "-".to_owned(),
        r if r > 1.0 + EQUAL => format!("{r:.2}x faster"),
        r if r < 1.0 - EQUAL => format!("{:.2}x slower", 1.0 / r),
        _ => "the same".to_owned(),
    }
}

/// Name of a row: the scheduler, with the controller where there are several.
fn label(report: &Report, row: &Row) -> String {
    let many = report.rows.iter().any(|other| other.cc != row.cc);
    if many { format!("{} ({})", row.scheduler, row.cc) } else { row.scheduler.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_lab::{PathReport, Sweep, stats::Summary};

    fn row(scheduler: &str, median: f64, speedup: Option<f64>, share: f64) -> Row {
        let summary = Summary {
            mean: median * 1.02,
            median,
            p95: median * 1.2,
            min: median * 0.9,
            max: median * 1.3,
            ci95: [median * 0.99, median * 1.05],
            n: 30,
        };
        Row {
            scheduler: scheduler.to_owned(),
            cc: "cubic".to_owned(),
            measures: [("completion_ms".to_owned(), summary)].into(),
            path_share: [("wifi".to_owned(), share), ("lte".to_owned(), 1.0 - share)].into(),
            reinjected_share: Some(0.004),
            retransmitted_share: Some(0.012),
            speedup_vs_best_path: speedup,
            ..Row::default()
        }
    }

    fn report() -> Report {
        let path = |name: &str, mbit: u64, rtt_us: u64| PathReport {
            name: name.to_owned(),
            rate_down_bps: Some(mbit * 1_000_000),
            rate_up_bps: Some(mbit * 1_000_000),
            rtt_us,
            queue: "60kB".to_owned(),
            loss: 0.016,
            ..PathReport::default()
        };
        let mut slow = row("daps", 900.0, None, 0.5);
        slow.incomplete = 2;
        Report {
            schema: plait_lab::SCHEMA.to_owned(),
            command: "plait compare --path wifi:... --path lte:... --workload download:512kB"
                .to_owned(),
            seed: 1,
            runs: 30,
            workload: "download:512kB".to_owned(),
            primary_measure: "completion_ms".to_owned(),
            vary: [].into(),
            paths: vec![path("wifi", 25, 25_000), path("lte", 10, 80_000)],
            compete: Vec::new(),
            rows: vec![
                slow,
                row("roundrobin", 700.0, Some(0.85714), 0.55),
                row("minrtt", 500.0, Some(1.2), 0.7),
                row("ecf", 455.0, Some(1.3187), 0.8),
                row("blest", 457.0, Some(1.3129), 0.79),
                row("tcp:wifi", 600.0, Some(1.0), 1.0),
                row("tcp:lte", 1300.0, Some(0.4615), 0.0),
            ],
            best_path: Some("tcp:wifi".to_owned()),
            expectations: vec![],
            interrupted: false,
            digest: String::new(),
        }
    }

    #[test]
    fn a_comparison_reads_at_a_glance() {
        insta::assert_snapshot!(text(&Document::Report(report()), 130, false));
    }

    #[test]
    fn a_narrow_terminal_keeps_what_matters() {
        let narrow = text(&Document::Report(report()), 60, false);
        insta::assert_snapshot!(narrow);
        // All but the line to copy fits.
        let widest =
            narrow.lines().filter(|l| !l.starts_with("Run again")).map(|l| l.chars().count());
        assert!(widest.max().unwrap() <= 66);
    }

    #[test]
    fn markdown_and_csv_carry_the_numbers() {
        insta::assert_snapshot!(markdown(&Document::Report(report())));
        let csv = csv(&Document::Report(report()));
        assert!(csv.lines().any(|line| line == ",ecf,cubic,path_share.wifi,0.8,,,,,,,"), "{csv}");
        assert!(csv.contains(",ecf,cubic,completion_ms,464.1,455,546,409.5,591.5,"), "{csv}");
    }

    #[test]
    fn a_sweep_marks_the_best_of_each_line() {
        let mut point = report();
        point.vary = [("lte.rtt".to_owned(), "80ms".to_owned())].into();
        let mut other = point.clone();
        other.vary = [("lte.rtt".to_owned(), "400ms".to_owned())].into();
        if let Some(summary) = other.rows[5].measures.get_mut("completion_ms") {
            summary.median = 1.0;
        }
        let sweep = Sweep {
            schema: plait_lab::SCHEMA.to_owned(),
            command: "plait compare ...".to_owned(),
            points: vec![point, other],
            digest: String::new(),
        };
        insta::assert_snapshot!(text(&Document::Sweep(sweep), 100, false));
    }

    #[test]
    fn the_verdict_is_honest_where_nothing_wins() {
        let mut lost = report();
        lost.rows.retain(|row| {
            row.scheduler != "ecf" && row.scheduler != "blest" && row.scheduler != "minrtt"
        });
        assert!(verdict(&lost).starts_with("No scheduler reaches tcp:wifi, the best path alone; roundrobin comes closest: 1.17x slower."));
    }
}
