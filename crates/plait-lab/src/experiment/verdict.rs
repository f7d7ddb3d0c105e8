//! What becomes of claims.

use super::Claim;
use super::eval::{Cells, Evaluator, Shown};
use super::misses::Misses;
use super::names::Names;
use super::results::Results;
use super::statement::Value;
use crate::stats::percentile;
use plait_base::Stream;

/// Resamples for the interval of a value.
const RESAMPLES: usize = 400;
/// Relations that are told one by one.
const TOLD: usize = 3;

/// How a claim stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// It holds.
    Holds,
    /// It does not, and nothing says why.
    Fails,
    /// It does not, which is known, for this reason.
    Miss(String),
    /// It is listed as one that does not hold, and it does.
    HoldsAgain,
    /// Runs are missing.
    Unknown,
}

impl Standing {
    /// Its word.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Standing::Holds => "holds",
            Standing::Fails => "fails",
            Standing::Miss(_) => "miss",
            Standing::HoldsAgain => "holds again",
            Standing::Unknown => "not run",
        }
    }
}

/// A claim that was compared with what came out.
#[derive(Clone, PartialEq, Debug)]
pub struct Judged {
    /// The experiment.
    pub experiment: String,
    /// The claim.
    pub claim: Claim,
    /// How it stands.
    pub standing: Standing,
    /// Its relations, each where it is tightest.
    pub shown: Vec<Shown>,
    /// The 95 % interval of the left value of each, over the runs.
    pub intervals: Vec<Option<[f64; 2]>>,
}

impl Judged {
    /// Whether the run is a failure because of it.
    #[must_use]
    pub fn gates(&self) -> bool {
        let gates = self.claim.kind.gates();
        matches!(self.standing, Standing::HoldsAgain) || gates && self.standing == Standing::Fails
    }

    /// What came out, in a line.
    #[must_use]
    pub fn got(&self) -> String {
        let count = self.shown.len();
        let mut order: Vec<usize> = (0..count).collect();
        // What does not hold first.
        order.sort_by_key(|at| self.shown[*at].holds);
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

/// A number with four digits that count.
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

/// Compares the claims of an experiment with what came out.
#[must_use]
pub fn judge(results: &Results, misses: &Misses) -> Vec<Judged> {
    let experiment = &results.plan.experiment;
    let rows = experiment.row_names();
    let names = Names { rows: &rows, axes: &experiment.axes, paths: &experiment.paths };
    let evaluator = Evaluator { names, cells: results };
    let many = results.plan.cells.iter().any(|cell| cell.runs > 1);
    let judged = |claim: &Claim| {
        let shown = evaluator.judge(&claim.holds);
        let holds = !shown.is_empty() && shown.iter().all(|it| it.holds);
        let missing = results.interrupted()
            && shown
                .iter()
                .any(|it| it.left_value.is_nan() || !it.sign.is_empty() && it.right_value.is_nan());
        let standing = match (holds, misses.0.get(&claim.id)) {
            _ if missing => Standing::Unknown,
            (true, None) => Standing::Holds,
            (true, Some(_)) => Standing::HoldsAgain,
            (false, None) => Standing::Fails,
            (false, Some(miss)) => Standing::Miss(miss.why.clone()),
        };
        let intervals = if many { intervals(results, names, claim, &shown) } else { Vec::new() };
        Judged {
            experiment: experiment.id.clone(),
            claim: claim.clone(),
            standing,
            shown,
            intervals,
        }
    };
    experiment.claims.iter().map(judged).collect()
}

/// The interval of each left value: the runs are drawn anew, the same for all cells, as they share
/// their seeds.
fn intervals(
    results: &Results,
    names: Names<'_>,
    claim: &Claim,
    shown: &[Shown],
) -> Vec<Option<[f64; 2]>> {
    let runs = results.plan.cells.iter().map(|cell| cell.runs as usize).max().unwrap_or(1);
    let mut stream = Stream::new(0, &["claim", &claim.id]);
    let mut drawn: Vec<Vec<f64>> = vec![Vec::new(); shown.len()];
    for _ in 0..RESAMPLES {
        let picks = (0..runs).map(|_| stream.below(runs as u64) as usize).collect();
        let cells = Resampled { results, picks };
        let evaluator = Evaluator { names, cells: &cells };
        for (at, shown) in shown.iter().enumerate().filter(|(_, shown)| !shown.sign.is_empty()) {
            drawn[at].push(evaluator.again(&claim.holds, at, shown));
        }
    }
    drawn
        .into_iter()
        .map(|mut values| {
            values.retain(|value| value.is_finite());
            values.sort_by(f64::total_cmp);
            Some([percentile(&values, 2.5)?, percentile(&values, 97.5)?])
        })
        .collect()
}

/// The same cells with other runs.
struct Resampled<'a> {
    results: &'a Results,
    picks: Vec<usize>,
}

impl Cells for Resampled<'_> {
    fn only(&self, row: usize, axis: usize) -> Option<&[usize]> {
        self.results.only(row, axis)
    }

    fn runs(&self, row: usize, at: &[usize]) -> usize {
        Cells::runs(self.results, row, at)
    }

    fn values(&self, row: usize, at: &[usize], value: &Value) -> Vec<f64> {
        let values = Cells::values(self.results, row, at, value);
        if values.len() != self.picks.len() {
            return values;
        }
        self.picks.iter().map(|run| values[*run]).collect()
    }
}
