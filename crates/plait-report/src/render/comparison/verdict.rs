//! The sentences below the table.

use super::tables::slower;
use super::{central, is_tcp, label, made, ordered, primary, ratio, typical_speedup, undecided};
use crate::render::{figure, percent};
use plait_lab::stats::MARGIN;
use plait_lab::{ComparisonDocument, Difference, Precision, Report, Row, TailDifference};

/// Greatest number of names in a sentence.
const MAX_NAMES: usize = 8;

/// Returns the result of the comparison: the first row, the rows slower than the best path alone,
/// identical rows, the tail, and missing data.
pub(super) fn verdict(report: &Report) -> String {
    let mut sentences = first(report);
    sentences.extend(slower_than_path(report));
    if !report.findings.identical.is_empty() {
        let sets: Vec<String> = report.findings.identical.iter().map(|rows| list(rows)).collect();
        sentences.push(format!("Identical in every run: {}.", sets.join("; ")));
    }
    sentences.extend(few_differ(report));
    sentences.extend(report.findings.tails.iter().map(|tail| tail_sentence(report, tail)));
    sentences.extend(failures(report));
    sentences.extend(runs(report));
    if report.interrupted {
        sentences.push("Interrupted: runs are missing.".to_owned());
    }
    sentences.join(" ")
}

/// Returns lines about buffers that limit the rows, each with the flag that helps.
pub(super) fn limits(report: &Report) -> Vec<String> {
    let line = |limit: &plait_lab::BufferLimit| {
        let buffer = if limit.flag == "--sndbuf" { "send" } else { "receive" };
        let larger = limit.size_bytes.saturating_mul(4);
        let size = |bytes: u64| match bytes >= 1 << 20 {
            true => format!("{}MiB", bytes >> 20),
            false => format!("{}KiB", bytes >> 10),
        };
        let whom = match limit.rows.len() == report.rows.len() {
            true => "all rows".to_owned(),
            false => list(&limit.rows),
        };
        let most = if limit.grows { "at most " } else { "" };
        format!(
            "The {buffer} buffer ({most}{}) holds back {whom} for up to {} of the time: try {} {}.",
            size(limit.size_bytes),
            percent(limit.longest_share),
            limit.flag,
            size(larger)
        )
    };
    report.findings.limits.iter().map(line).collect()
}

/// Returns the reference of the speedups.
fn reference(report: &Report) -> String {
    let path = report.rows.iter().find(|row| {
        Some(&row.scheduler) == report.findings.best_path.as_ref()
            && report.findings.best_path_cc.as_ref().is_none_or(|cc| *cc == row.cc)
    });
    match path {
        Some(row) => format!("{}, the best path alone", label(report, row)),
        None => "the best path alone".to_owned(),
    }
}

/// Names the rows that are first or tied first.
fn first(report: &Report) -> Vec<String> {
    let rows = ordered(report);
    let schedulers: Vec<&Row> =
        rows.iter().copied().filter(|row| !is_tcp(row) && row.standing.group.is_some()).collect();
    let Some(leader) = schedulers.first() else { return Vec::new() };
    let leading: Vec<&Row> = schedulers
        .iter()
        .copied()
        .filter(|row| row.standing.group == leader.standing.group)
        .collect();
    let names: Vec<String> = leading.iter().map(|row| label(report, row)).collect();
    let several = names.len() > 1;
    let tied = match (several, made(report)) {
        (false, _) => String::new(),
        (true, 1) => " (one run cannot distinguish them)".to_owned(),
        (true, runs) if leading.iter().any(|row| likely(row.standing.paired_vs_best)) => {
            format!(" (more than {runs} runs are needed to distinguish them)")
        }
        (true, _) if leading.iter().any(|row| small(row.standing.paired_vs_best)) => {
            format!(" (no significant difference above {} %)", MARGIN * 100.0)
        }
        (true, runs) => format!(" (not distinguished by {runs} runs)"),
    };
    let names = list(&names);
    let reference = reference(report);
    let gain = gain(report, &leading);
    let (leads, comes) = if several { ("are tied first", "come") } else { ("is first", "comes") };
    let tie = |row: &Row| row.standing.paired_vs_best_path.is_some_and(|it| !it.told_apart);
    let sentence = match (!tie(leader), leader.standing.speedup_vs_best_path) {
        (true, Some(_)) if slower(report, leader) => {
            format!("No scheduler reaches {reference}; {names} {comes} closest{tied}: {gain}.")
        }
        (false, Some(_)) => {
            let tied_rows: Vec<&Row> = leading.iter().copied().filter(|row| tie(row)).collect();
            let none = if tied_rows.len() < leading.len() {
                let ties: Vec<String> = tied_rows.iter().map(|row| label(report, row)).collect();
                let are = if ties.len() == 1 { "is" } else { "are" };
                format!("{} {are} not", list(&ties))
            } else if schedulers.iter().all(|row| tie(row)) {
                "No scheduler is".to_owned()
            } else {
                "None of group 1 is".to_owned()
            };
            // The runs show a difference, but one too small to count.
            let above = match tied_rows.iter().any(|row| small(row.standing.paired_vs_best_path)) {
                true => format!(" by more than {} %", MARGIN * 100.0),
                false => String::new(),
            };
            let from = format!("{none} distinguished{above} from {reference}");
            format!("{from}; {names} {leads}{tied}, {gain}.")
        }
        (_, speedup) => {
            let gain = match speedup {
                Some(_) => format!(": {gain} than {reference}"),
                None => String::new(),
            };
            match several {
                true => format!("Tied first{tied}: {names}{}.", gain.replacen(':', ";", 1)),
                false => format!("{names} is first{gain}."),
            }
        }
    };
    vec![sentence]
}

/// Returns the least distance of the ratio from 1 that its interval allows; 0 if the interval includes 1.
fn least_distance(found: &Difference) -> Option<f64> {
    let [low, high] = found.ci95?;
    Some((low - 1.0).max(1.0 - high).max(0.0))
}

/// Returns true if the runs show a difference, but perhaps one too small to distinguish the rows.
fn small(found: Option<Difference>) -> bool {
    let small = |least: f64| least > 0.0 && least <= MARGIN;
    found.filter(|it| !it.told_apart).and_then(|it| least_distance(&it)).is_some_and(small)
}

/// Returns true if the interval has only differences that count, but too few runs exclude chance.
fn likely(found: Option<Difference>) -> bool {
    let undecided = found.filter(|it| !it.told_apart);
    undecided.and_then(|it| least_distance(&it)).is_some_and(|least| least > MARGIN)
}

/// Returns `1.20x faster`, or `1.16x to 1.20x faster` for several rows.
fn gain(report: &Report, rows: &[&Row]) -> String {
    let speedups: Vec<f64> = rows.iter().filter_map(|row| typical_speedup(report, row)).collect();
    let most = speedups.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = speedups.iter().copied().fold(f64::INFINITY, f64::min);
    let (from, to) = (ratio(most), ratio(least));
    match (from.split_once(' '), to.split_once(' ')) {
        _ if from == to => from,
        (Some((most, word)), Some((least, other))) if word == other => {
            let (low, high) = if word == "slower" { (most, least) } else { (least, most) };
            format!("{low} to {high} {word}")
        }
        _ => format!("{from} to {to}"),
    }
}

/// Names the schedulers that are slower than the best path alone.
fn slower_than_path(report: &Report) -> Option<String> {
    let rows = ordered(report);
    let rated: Vec<&Row> = rows
        .into_iter()
        .filter(|row| !is_tcp(row) && row.standing.speedup_vs_best_path.is_some())
        .collect();
    if rated.is_empty() {
        return None;
    }
    let slower: Vec<String> = rated
        .iter()
        .filter(|row| slower(report, row))
        .map(|row| {
            let typical = typical_speedup(report, row).map_or_else(String::new, ratio);
            format!("{} ({typical})", label(report, row))
        })
        .collect();
    match slower.is_empty() {
        true if undecided(report) => None,
        true => Some("None is measurably slower than the best path alone.".to_owned()),
        false => Some(format!("Slower than the best path alone: {}.", list(&slower))),
    }
}

/// Names the rows that differ from the best one in only a few runs.
fn few_differ(report: &Report) -> Option<String> {
    let rows = ordered(report);
    let differing = |row: &&Row| {
        let found = row.standing.paired_vs_best?;
        Some((label(report, row), found.differing_runs.filter(|_| found.ratio == 1.0)?))
    };
    let mut told: Vec<String> = Vec::new();
    for (name, runs) in rows.iter().filter_map(differing) {
        let differ = if runs == 1 { "differs" } else { "differ" };
        told.push(match told.is_empty() {
            true => format!("{name} ({runs} of {} runs {differ})", made(report)),
            false => format!("{name} ({runs})"),
        });
    }
    (!told.is_empty()).then(|| format!("Typically equal to the best: {}.", list(&told)))
}

/// Returns `At p99 of the messages, ecf+copy is 12x better than tcp:wifi (41.00 against 2009 ms).`
fn tail_sentence(report: &Report, tail: &TailDifference) -> String {
    let (_, unit, _) = primary(report);
    let medians = report
        .rows
        .iter()
        .find(|row| label(report, row) == tail.row)
        .and_then(|row| central(report, row))
        .zip(
            report
                .rows
                .iter()
                .find(|row| label(report, row) == tail.other)
                .and_then(|row| central(report, row)),
        );
    let same = medians.is_some_and(|(own, other)| (own / other - 1.0).abs() < 0.02);
    let what = match (tail.percentile, tail.of_messages) {
        (100, _) => "longest message".to_owned(),
        (percentile, true) => format!("p{percentile} of messages"),
        (percentile, false) => format!("p{percentile} of runs"),
    };
    let times = match tail.times {
        times if times >= 9.95 => format!("{times:.0}x"),
        times => format!("{times:.1}x"),
    };
    let begin = if same {
        format!("{} and {} have about the same median, but the", tail.row, tail.other)
    } else {
        "The".to_owned()
    };
    format!(
        "{begin} {what} is {times} shorter with {} than with {} ({} against {} {unit}).",
        tail.row,
        tail.other,
        figure(tail.value),
        figure(tail.other_value),
    )
}

fn failures(report: &Report) -> Option<String> {
    let rows = ordered(report);
    let unfinished: Vec<String> =
        rows.iter().filter(|row| row.incomplete > 0).map(|row| label(report, row)).collect();
    if unfinished.is_empty() {
        return None;
    }
    let mut reasons = rows.iter().flat_map(|row| &row.failures).map(|it| it.reason.as_str());
    let reason = reasons.next().map(|reason| format!(" ({reason})")).unwrap_or_default();
    Some(format!("Some runs failed{reason} and are in no number: {}.", list(&unfinished)))
}

/// Returns a sentence with the widest interval that `--until` reached in a sweep.
pub(super) fn precision_of_points(document: &ComparisonDocument) -> Option<String> {
    let reports = document.reports();
    let told: Vec<(&Report, Precision)> =
        reports.iter().filter_map(|report| Some((report, report.precision?))).collect();
    let (_, precision) = told.first()?;
    let wanted = percent(precision.wanted);
    let fewest = told.iter().map(|it| it.0.runs).min()?;
    let most = told.iter().map(|it| it.0.runs).max()?;
    let runs = if fewest == most { most.to_string() } else { format!("{fewest} to {most}") };
    let missed: Vec<String> = told
        .iter()
        .filter(|it| !it.1.reached)
        .map(|(report, precision)| {
            let place: Vec<String> =
                report.vary.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let widest = precision
                .widest
                .map_or("no interval".to_owned(), |it| format!("+-{}", percent(it)));
            format!("{} ({widest})", place.join(" "))
        })
        .collect();
    Some(match missed.is_empty() {
        true => format!("Every point has the precision of +-{wanted}, after {runs} runs."),
        false => format!(
            "The precision of +-{wanted} is not reached at {} of {} points, after {runs} runs: {}.",
            missed.len(),
            told.len(),
            list(&missed)
        ),
    })
}

/// Explains how the number of runs limits the verdict.
fn runs(report: &Report) -> Option<String> {
    if let Some(precision) = report.precision {
        let widest = precision.widest.map_or("no interval".to_owned(), |widest| {
            format!("the widest interval is +-{}", percent(widest))
        });
        let wanted = percent(precision.wanted);
        let runs = report.runs;
        return Some(match precision.reached {
            true => format!("After {runs} runs {widest} (asked for: +-{wanted})."),
            false => {
                format!("The precision of +-{wanted} is not reached: after {runs} runs {widest}.")
            }
        });
    }
    let one = report.runs == 1 && report.rows.len() > 1 && undecided(report);
    one.then(|| "One run cannot distinguish rows: use --runs 30.".to_owned())
}

/// Joins names, shortened if there are many.
fn list(names: &[String]) -> String {
    match names.len() > MAX_NAMES {
        false => names.join(", "),
        true => {
            let rest = names.len() - MAX_NAMES + 1;
            format!("{} and {rest} more", names[..MAX_NAMES - 1].join(", "))
        }
    }
}
