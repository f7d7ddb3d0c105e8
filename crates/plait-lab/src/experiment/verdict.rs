//! Verdicts on claims.

use super::Claim;
use super::eval::Evaluator;
use super::finding::RelationResult;
use super::judgement::{Decision, decide};
use super::misses::Misses;
use super::names::Names;
use super::plan::measures_of;
use super::results::Results;

/// Largest number of relations in a line of text.
const TOLD: usize = 3;

/// The verdict on a claim.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClaimVerdict {
    /// The claim holds with the wanted confidence, or is exact and holds.
    Holds,
    /// The negation holds with the wanted confidence, and no cause is known.
    Fails,
    /// The negation holds with the wanted confidence, for this known reason.
    Miss(String),
    /// The claim is listed as a miss, but holds.
    HoldsAgain,
    /// The runs leave both answers open.
    Undecided,
    /// Runs are missing.
    Unknown,
}

impl ClaimVerdict {
    /// Returns the name of the verdict.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            ClaimVerdict::Holds => "holds",
            ClaimVerdict::Fails => "fails",
            ClaimVerdict::Miss(_) => "miss",
            ClaimVerdict::HoldsAgain => "holds again",
            ClaimVerdict::Undecided => "undecided",
            ClaimVerdict::Unknown => "not run",
        }
    }
}

/// A claim and its verdict.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// The experiment.
    pub experiment: String,
    /// The claim.
    pub claim: Claim,
    /// The verdict.
    pub standing: ClaimVerdict,
    /// The relations, each at the point with the smallest margin. For an undecided claim, each at the point
    /// with the least confidence.
    pub shown: Vec<RelationResult>,
    /// The 95 % interval of the left value of each relation, over the runs.
    pub intervals: Vec<Option<[f64; 2]>>,
    /// Share of the resamples in which the whole statement holds; absent if nothing is random.
    pub share: Option<f64>,
    /// Largest number of runs of a cell that the claim uses.
    pub runs: u32,
    /// Number of networks that the claim uses, if they are a sample.
    pub networks: Option<usize>,
    /// Estimated factor of runs (or networks) that would decide an undecided claim. It is absent if a thousand
    /// times the runs are too few: then the result is at the bound of the claim.
    pub factor: Option<f64>,
}

impl Judged {
    /// Returns true if this verdict makes the program fail.
    #[must_use]
    pub fn gates(&self) -> bool {
        let gates = self.claim.kind.gates();
        matches!(self.standing, ClaimVerdict::HoldsAgain)
            || gates && self.standing == ClaimVerdict::Fails
    }

    /// Returns the result in a line.
    #[must_use]
    pub fn got(&self) -> String {
        let count = self.shown.len();
        let mut order: Vec<usize> = (0..count).collect();
        // The least certain relation comes first; of equally certain ones, one that does not hold.
        order.sort_by(|a, b| {
            let (a, b) = (&self.shown[*a], &self.shown[*b]);
            a.confidence.total_cmp(&b.confidence).then(a.holds.cmp(&b.holds))
        });
        let told: Vec<String> = order.iter().take(TOLD).map(|at| self.one(*at)).collect();
        let mut text = told.join("; ");
        if count > TOLD {
            let held = self.shown.iter().filter(|shown| shown.holds).count();
            text = format!("{held} of {count} relations hold: {text}; ...");
        }
        text
    }

    fn one(&self, at: usize) -> String {
        let shown = &self.shown[at];
        if shown.sign.is_empty() {
            let list: Vec<String> = shown.list.iter().take(12).map(|it| figure(*it)).collect();
            return if list.is_empty() { shown.left.clone() } else { list.join(", ") };
        }
        let interval = match self.intervals.get(at).copied().flatten() {
            Some([low, high]) if low != high => format!(" [{}, {}]", figure(low), figure(high)),
            _ => String::new(),
        };
        let mut text = format!(
            "{}{interval} {} {}",
            figure(shown.left_value),
            shown.sign,
            figure(shown.right_value)
        );
        if !shown.place.is_empty() {
            text.push_str(&format!(" at {}", shown.place));
        }
        let (held, all) = shown.places;
        if all > 1 {
            text.push_str(&format!(" ({held} of {all})"));
        }
        text
    }
}

/// Returns a number with four significant digits.
#[must_use]
pub fn figure(value: f64) -> String {
    if value.is_nan() {
        return "no value".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "none" } else { "-inf" }.to_owned();
    }
    let decimals = match value.abs() {
        0.0 => 0,
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        size if size >= 10.0 => 2,
        size if size >= 1.0 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Judges the claims of an experiment from its runs, at this confidence.
#[must_use]
pub fn judge(results: &Results, misses: &Misses, confidence: f64) -> Vec<Judged> {
    let experiment = &results.plan.experiment;
    let rows = experiment.row_names();
    let names = Names { rows: &rows, axes: &experiment.axes, paths: &experiment.paths };
    let evaluator = Evaluator { names, cells: results };
    let judged = |claim: &Claim| {
        let looked_at = measures_of(experiment, claim);
        let cells: Vec<usize> =
            looked_at.iter().filter_map(|(row, at, _)| results.plan.position(*row, at)).collect();
        let missing = cells.iter().any(|cell| results.runs[*cell].iter().any(Option::is_none));
        let shown = evaluator.judge(&claim.holds);
        let (standing, share, shown, intervals, factor) = if missing {
            (ClaimVerdict::Unknown, None, shown, Vec::new(), None)
        } else {
            let opinion = decide(results, names, claim, shown, confidence);
            let standing = match (opinion.decision, misses.0.get(&claim.id)) {
                (Decision::Holds, None) => ClaimVerdict::Holds,
                (Decision::Holds, Some(_)) => ClaimVerdict::HoldsAgain,
                (Decision::Fails, None) => ClaimVerdict::Fails,
                (Decision::Fails, Some(miss)) => ClaimVerdict::Miss(miss.why.clone()),
                (Decision::Undecided, _) => ClaimVerdict::Undecided,
            };
            (standing, opinion.share, opinion.shown, opinion.intervals, opinion.factor)
        };
        let samples = (0..experiment.axes.len()).filter(|axis| experiment.axes[*axis].is_sample());
        let networks = |axis: usize| {
            let points: std::collections::BTreeSet<usize> =
                looked_at.iter().map(|(_, at, _)| at[axis]).collect();
            points.len()
        };
        Judged {
            experiment: experiment.id.clone(),
            claim: claim.clone(),
            standing,
            shown,
            intervals,
            share,
            runs: cells.iter().map(|cell| results.plan.cells[*cell].runs).max().unwrap_or(0),
            networks: samples.map(networks).max(),
            factor,
        }
    };
    experiment.claims.iter().map(judged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Experiment, Plan, RunRecord};

    /// The means satisfy both relations. At 20 ms the rows are close and hardly vary. At 40 ms they are far
    /// apart and vary so much that the claim is undecided.
    #[test]
    fn an_undecided_claim_shows_the_cell_in_doubt() {
        let text = r#"
title = "Two rows"
workload = "bulk:1s"
runs = 10
path = ["a:rtt={rtt},rate=20mbit,loss=1%", "b:rtt=20ms,rate=8mbit"]
[sweep]
rtt = ["20ms", "40ms"]
[row]
ours = { scheduler = "minrtt" }
theirs = { scheduler = "ecf" }
[[claim]]
id = "x-1"
kind = "hard"
says = "less"
holds = "ours.goodput_mbps.mean[rtt=20ms] <= 100 and ours.goodput_mbps.mean < theirs.goodput_mbps.mean"
"#;
        let plan = Plan::of(
            &Experiment::from_toml("x.toml", text).unwrap(),
            false,
            &crate::scenario::no_files,
        )
        .unwrap();
        let cells = plan.cells.iter().map(|cell| {
            let (middle, step) = match (cell.row, cell.at[0]) {
                (0, 0) => (1.0, 0.001),
                (1, 0) => (1.1, 0.001),
                (0, _) => (40.0, 7.0),
                _ => (50.0, -7.0),
            };
            let run = |run: usize| {
                let value = middle + step * (run as f64 - 4.5);
                let values = [("goodput_mbps".to_owned(), value)].into_iter().collect();
                Some(RunRecord { values, ..RunRecord::default() })
            };
            (0..10).map(run).collect()
        });
        let results = Results { runs: cells.collect(), plan: plan.clone() };
        let judged = &judge(&results, &Misses::default(), 0.95)[0];
        assert_eq!(judged.standing, ClaimVerdict::Undecided, "{}", judged.got());
        // The difference is 10 and its standard error 13.4: it must be 1.645 of them, so (1.645 / 0.746)^2 = 4.9.
        assert!(judged.factor.is_some_and(|it| (4.0..6.0).contains(&it)), "{:?}", judged.factor);
        let got = judged.got();
        let first = got.split(';').next().unwrap();
        assert!(first.starts_with("40 [") && first.contains("< 50 at rtt=40ms (2 of 2)"), "{got}");
    }
}
