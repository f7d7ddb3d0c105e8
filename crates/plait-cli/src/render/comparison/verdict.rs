//! The sentences below the table.

use super::{EQUAL, best, is_tcp, label, ordered, ratio};
use plait_lab::{Report, Row};

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
pub(super) fn verdict(report: &Report) -> String {
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
