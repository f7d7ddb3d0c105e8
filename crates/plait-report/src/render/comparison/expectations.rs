//! The expectations that failed.

use crate::render::figure;
use plait_lab::{ComparisonDocument, Verdict};

/// Returns each expectation that failed, with its point and its values.
#[must_use]
pub fn broken(document: &ComparisonDocument) -> String {
    let mut broken = Vec::new();
    for report in document.reports() {
        let point: String =
            report.vary.iter().map(|(key, value)| format!(" at {key}={value}")).collect();
        for verdict in report.findings.expectations.iter().filter(|verdict| !verdict.holds) {
            broken.push(format!("expected{point}: {}\n  {}", verdict.expectation, values(verdict)));
        }
    }
    broken.join("\n")
}

/// Returns the comparisons of a verdict with their values.
fn values(verdict: &Verdict) -> String {
    let number = |value: Option<f64>| value.map_or("(no value)".to_owned(), figure);
    let parts = verdict.comparisons.iter().map(|it| {
        let word = if it.holds { "holds" } else { "fails" };
        let (left, right) = (number(it.left_value), number(it.right_value));
        format!("{} is {left}, {} is {right}: {} {word}", it.left, it.right, it.relation)
    });
    parts.collect::<Vec<_>>().join("; ")
}
