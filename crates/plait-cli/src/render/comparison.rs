//! The report of a comparison as people read it: a table, a sentence or two, and the line that
//! runs it again.

use super::{Align, Column, Emphasis, Table, bar, figure, percent, wrap};
use plait_app::measure::{Better, MEASURES};
use plait_lab::stats::Summary;
use plait_lab::{Document, PathReport, Report, Row};

/// Columns of the longest bar.
const BAR: usize = 12;
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
            format!("{head}\n{table}\n{verdict}Run again: {}\n", report.command)
        }
        Document::Sweep(sweep) => {
            let Some(first) = sweep.points.first() else { return String::new() };
            let table = sweep_table(&sweep.points).to_text(width, colour);
            let head = format!("{}\n", title(first));
            format!("{head}\n{table}\n* best of its line\nRun again: {}\n", sweep.command)
        }
    }
}

/// The document as Markdown.
pub(crate) fn markdown(document: &Document) -> String {
    match document {
        Document::Report(report) => format!(
            "{}\n\n{}\n{}\n\n    {}\n",
            title(report),
            table(report).to_markdown(),
            verdict(report),
            report.command
        ),
        Document::Sweep(sweep) => {
            let Some(first) = sweep.points.first() else { return String::new() };
            let table = sweep_table(&sweep.points).to_markdown();
            format!("{}\n\n{table}\n    {}\n", title(first), sweep.command)
        }
    }
}

/// The document as CSV: one line for each number of each row.
pub(crate) fn csv(document: &Document) -> String {
    let header = [
        "vary",
        "scheduler",
        "cc",
        "measure",
        "mean",
        "median",
        "p95",
        "min",
        "max",
        "ci95_low",
        "ci95_high",
        "n",
    ];
    let mut lines = Vec::new();
    for report in document.reports() {
        let point: Vec<String> =
            report.vary.iter().map(|(key, value)| format!("{key}={value}")).collect();
        for row in &report.rows {
            let start = |name: &str| {
                vec![point.join(" "), row.scheduler.clone(), row.cc.clone(), name.to_owned()]
            };
            let competing = row.competing.iter();
            let competing = competing.map(|(flows, it)| (format!("competing_mbps.{flows}"), it));
            let measures = row.measures.iter().map(|(name, it)| (name.clone(), it));
            for (name, it) in measures.chain(competing) {
                let numbers = [it.mean, it.median, it.p95, it.min, it.max, it.ci95[0], it.ci95[1]];
                let mut line = start(&name);
                line.extend(numbers.iter().map(f64::to_string));
                line.push(it.n.to_string());
                lines.push(line);
            }
            let shares =
                row.path_share.iter().map(|(path, share)| (format!("path_share.{path}"), *share));
            let rtts = row.rtt_ms.iter().map(|(path, rtt)| (format!("rtt_ms.{path}"), *rtt));
            let plain = [
                ("reinjected_share", row.reinjected_share),
                ("retransmitted_share", row.retransmitted_share),
                ("speedup_vs_best_path", row.speedup_vs_best_path),
            ];
            let plain =
                plain.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            for (name, value) in shares.chain(rtts).chain(plain) {
                let mut line = start(&name);
                line.push(value.to_string());
                line.resize(header.len(), String::new());
                lines.push(line);
            }
        }
    }
    super::csv(&header, &lines)
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

fn title(report: &Report) -> String {
    let (words, unit, more) = primary(report);
    let runs = match report.runs {
        1 => "1 run (nothing is random)".to_owned(),
        runs => format!("{runs} runs"),
    };
    let runs = if report.runs == 1 && report.command.contains("--runs 1 ") {
        "1 run".to_owned()
    } else {
        runs
    };
    let better = if more { "more" } else { "less" };
    let cut = if report.interrupted { ", interrupted" } else { "" };
    format!(
        "{}: {words} in {unit}, {better} is better; {runs}, seed {}{cut}",
        report.workload, report.seed
    )
}

fn heading(report: &Report) -> String {
    let paths: String =
        report.paths.iter().map(|path| format!("  {}\n", path_line(path))).collect();
    let beside = match report.compete.as_slice() {
        [] => String::new(),
        flows => format!("  beside it all the time: {}\n", flows.join(", ")),
    };
    format!("{}\n{paths}{beside}", title(report))
}

fn path_line(path: &PathReport) -> String {
    let rate = |bps: Option<u64>| bps.map_or("no rate limit".to_owned(), super::rate);
    let speed = match (path.rate_down_bps, path.rate_up_bps) {
        (down, up) if down == up => rate(down),
        (down, up) => format!("{} down, {} up", rate(down), rate(up)),
    };
    let mut words = vec![speed, format!("rtt {}", super::millis(path.rtt_us as f64 / 1e3))];
    let queue = plait_app::quantity::bytes(&path.queue).map(super::bytes);
    words.push(format!("queue {}", queue.unwrap_or_else(|_| path.queue.clone())));
    let extra = |words: &mut Vec<String>, name: &str, share: f64| {
        if share > 0.0 {
            words.push(format!("{name} {}", percent(share)));
        }
    };
    extra(&mut words, "loss", path.loss);
    extra(&mut words, "loss up", path.loss_up);
    if path.jitter_us > 0 {
        words.push(format!("jitter {}", super::millis(path.jitter_us as f64 / 1e3)));
    }
    if let Some(trace) = &path.trace {
        words.push(format!("trace {trace}"));
    }
    if path.backup {
        words.push("backup".to_owned());
    }
    // What the words above do not tell, as it was written.
    let told =
        ["rate=", "rtt=", "owd_", "queue=", "loss=", "loss_up=", "jitter=", "trace", "backup"];
    let whole = |said: &&String| {
        let stepped = ["rate", "rtt", "owd"].iter().any(|key| said.starts_with(key));
        let steps = stepped && said.contains('@');
        let bursts = said.starts_with("loss") && said.contains("ge:");
        let split = path.owd_down_us != path.owd_up_us && said.starts_with("owd_");
        let plain = told.iter().any(|key| said.starts_with(key));
        let rates = said.starts_with("rate_") && !steps;
        steps || bursts || split || !(plain || rates || said.starts_with("profile="))
    };
    words.extend(path.settings.iter().filter(whole).cloned());
    format!("{}: {}", path.name, words.join(", "))
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

fn table(report: &Report) -> Table {
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

/// What a row's speed-up is measured against: the best path alone under its own controller.
fn reference(report: &Report, row: &Row) -> String {
    let many = report.rows.iter().any(|other| other.cc != row.cc);
    let alone = report.rows.iter().filter(|it| is_tcp(it) && it.cc == row.cc);
    let whose = if many { format!(" under {}", row.cc) } else { String::new() };
    match best(report, &alone.collect::<Vec<_>>()) {
        Some(path) => format!("{}, the best path alone{whose}", path.scheduler),
        None => format!("the best path alone{whose}"),
    }
}

/// A path alone under another controller that is ahead of the first row, if there is one.
fn ahead(report: &Report, first: &Row) -> Option<String> {
    let rows: Vec<&Row> =
        report.rows.iter().filter(|row| row.cc != first.cc || !is_tcp(row)).collect();
    let best = best(report, &rows).filter(|row| is_tcp(row))?;
    Some(format!("{} is ahead of all.", label(report, best)))
}

/// Who wins, and whether anything is slower than the best path alone.
fn verdict(report: &Report) -> String {
    let rows = ordered(report);
    let finished: Vec<(&Row, f64)> = rows
        .iter()
        .filter(|row| !is_tcp(row))
        .filter_map(|row| Some((*row, row.speedup_vs_best_path?)))
        .collect();
    let mut sentences = Vec::new();
    if let Some((first, speedup)) = finished.first() {
        let reference = reference(report, first);
        let close: Vec<String> = finished
            .iter()
            .skip(1)
            .filter(|(_, other)| speedup / other < 1.01)
            .map(|(row, _)| label(report, row))
            .collect();
        let beside = match close.as_slice() {
            [] => String::new(),
            names => format!(" ({} within 1 %)", names.join(", ")),
        };
        let name = label(report, first);
        sentences.push(match *speedup {
            s if s > 1.0 + EQUAL => {
                format!("{name} is first{beside}: {} than {reference}.", ratio(s))
            }
            s if s < 1.0 - EQUAL => format!(
                "No scheduler reaches {reference}; {name} comes closest{beside}: {}.",
                ratio(s)
            ),
            _ => format!("No scheduler beats {reference}; {name} equals it{beside}."),
        });
        sentences.extend(ahead(report, first));
        let slower: Vec<String> = finished
            .iter()
            .filter(|(_, speedup)| *speedup < 1.0 - EQUAL)
            .map(|(row, speedup)| format!("{} ({})", label(report, row), ratio(*speedup)))
            .collect();
        if slower.is_empty() {
            sentences.push("None is slower than the best path alone.".to_owned());
        } else if *speedup >= 1.0 - EQUAL {
            sentences.push(format!("Slower than the best path alone: {}.", slower.join(", ")));
        }
    }
    let unfinished: Vec<String> =
        rows.iter().filter(|row| row.incomplete > 0).map(|row| label(report, row)).collect();
    if !unfinished.is_empty() {
        let mut reasons = rows.iter().flat_map(|row| &row.failures).map(|it| it.reason.as_str());
        let reason = reasons.next().map(|reason| format!(" ({reason})")).unwrap_or_default();
        let names = unfinished.join(", ");
        sentences.push(format!("Some runs failed{reason} and are in no number: {names}."));
    }
    if report.interrupted {
        sentences.push("Interrupted: runs are missing.".to_owned());
    }
    sentences.join(" ")
}

/// A line for each point, a column for each row of the reports; the best of a line is marked.
fn sweep_table(points: &[Report]) -> Table {
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

#[cfg(test)]
mod tests {
    use super::*;
    use plait_lab::{Sweep, stats::Summary};

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
