//! The `--json` document of `plait experiment run` and `plait reproduce`. Tables are made from it.

mod again;
mod cells;
mod sensitivity;

pub use again::Repeated;
pub use cells::{CellValues, Values};
pub use sensitivity::Sensitivity;

use again::repeated;
use cells::cells;
use plait_lab::Subject;
use plait_lab::experiment::{
    Ablated, Again, ClaimVerdict, Experiment, Judged, PAPERS, Proven, Results, Settled, Unrun,
};
use schemars::JsonSchema;
use sensitivity::sensitivities;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Runs and their verdicts.
pub struct Made {
    /// The runs, and the verdicts on the claims.
    pub settled: Settled,
    /// The claims that hold, judged with further seeds.
    pub repeated: Vec<Again>,
    /// The claims, judged with the alternatives for values that the papers do not specify.
    pub ablated: Vec<Ablated>,
    /// The experiments that a quick run skips.
    pub left_out: Vec<LeftOut>,
    /// Seed of the first run of each cell.
    pub seed: u64,
    /// True if runs are missing because of an interrupt.
    pub interrupted: bool,
}

/// Output of `plait reproduce --json` and `plait experiment run --json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "Document")]
pub struct ReproductionDocument {
    /// `plait.reproduce/1` or `plait.experiment/1`.
    pub schema: String,
    /// Command line that runs it again.
    pub command: String,
    /// Version and commit of the program.
    pub version: String,
    /// True if it has fewer points and runs, and only core claims.
    quick: bool,
    /// Seed of the first run of each cell.
    pub seed: u64,
    /// Confidence of each look at the runs. All looks at a claim together have a confidence of
    /// 0.95.
    pub confidence: f64,
    /// Number of runs, with the additional runs of undecided claims.
    pub runs: usize,
    /// The experiments, in order.
    pub experiments: Vec<ExperimentSummary>,
    /// The cells of the experiments with their values, in order. They have the runs that the files
    /// specify. The manifest of `--output` has no cells, because the directory has every run.
    pub cells: Vec<CellValues>,
    /// The experiments that `--quick` leaves out, because none of their claims is a core claim.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The claims, in the order of the experiments.
    pub claims: Vec<Verdict>,
    /// Number of claims by standing: `holds`, `fails`, `undecided`, `proven`, `miss`, ...
    pub tally: BTreeMap<String, u32>,
    /// Results of the claims that hold, with each further seed; empty without `--again`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<Repeated>,
    /// Results of each claim for alternative values of settings that its paper does not specify;
    /// empty without `--ablate`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ablation: Vec<Sensitivity>,
    /// True if it was interrupted, so that runs are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
}

/// The standing of a claim that holds with the first seed, but not with every further seed.
const VARIES: &str = "varies";

/// An experiment that was run.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Told")]
pub struct ExperimentSummary {
    /// Its name.
    id: String,
    /// Its title.
    title: String,
    /// Number of its cells: rows at points.
    cells: usize,
    /// Number of its runs.
    pub runs: usize,
    /// Seed of the first run of each cell.
    pub seed: u64,
    /// Number of runs that did not finish or broke an invariant.
    failed: usize,
}

/// An experiment that a quick run leaves out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Number of its claims, none of them a core claim.
    pub claims: usize,
}

impl LeftOut {
    /// Returns why it was not run, and the command that runs it.
    pub(crate) fn sentence(&self) -> String {
        let claims = match self.claims {
            1 => "1 claim, but no core claim".to_owned(),
            count => format!("{count} claims, but no core claims"),
        };
        format!("{} has {claims}: leave --quick out to run it.", self.id)
    }
}

impl From<&Experiment> for LeftOut {
    fn from(it: &Experiment) -> LeftOut {
        LeftOut { id: it.id.clone(), title: it.title.clone(), claims: it.claims.len() }
    }
}

/// A claim and its verdict.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Verdict {
    /// The claim.
    pub id: String,
    /// Its experiment.
    pub experiment: String,
    /// `exact`, `hard` or `soft`.
    pub kind: String,
    /// The claim in the words of the paper.
    pub paper: String,
    /// The statement that was judged.
    #[serde(skip_serializing_if = "String::is_empty")]
    statement: String,
    /// The result.
    pub got: String,
    /// Its standing. `holds` and `fails`: with a confidence of 95 %, or computed for exact claims.
    /// `undecided`: neither. `miss`: it fails for a known cause. `holds again`: a listed miss
    /// holds. `varies`: it holds with the first seed and not with each of `--again`. `proven`: by a
    /// test. `not run`: it was not judged. `no file`: no experiment judges it.
    pub standing: String,
    /// Known reason why it does not hold.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// True if the command fails because of it.
    pub gates: bool,
    /// Share of bootstrap resamples in which the statement holds; absent if nothing is random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// Largest number of runs of a cell behind the verdict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// Number of networks behind the verdict, if they are a sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub networks: Option<usize>,
    /// Estimated factor of runs (or networks) that would decide an undecided claim. An undecided claim without
    /// it is so close to its bound that a thousand times the runs are too few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Its verdicts with the further seeds of `--again`, in order. Only claims that hold and depend
    /// on chance have them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub again: Vec<String>,
}

/// A paper, or a group of experiments whose names share a prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Paper {
    /// The prefix of its experiments' names.
    pub(crate) tag: String,
    /// Its title.
    pub(crate) title: String,
    /// The place of publication; empty if the experiments belong to no paper.
    pub(crate) place: String,
}

/// Returns the papers of a document in their order, then the groups that belong to no paper.
pub(crate) fn papers(document: &ReproductionDocument) -> Vec<Paper> {
    let mut tags: Vec<&str> = Vec::new();
    let experiments = document.experiments.iter().map(|it| tag(&it.id));
    let left_out = document.left_out.iter().map(|it| tag(&it.id));
    for tag in experiments.chain(left_out).chain(document.claims.iter().map(Verdict::paper_tag)) {
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    let place = |tag: &str| PAPERS.iter().position(|known| known.0 == tag);
    tags.sort_by_key(|tag| place(tag).unwrap_or(PAPERS.len()));
    let paper = |tag: &str| match place(tag).map(|at| PAPERS[at]) {
        Some((tag, title, place)) => (tag.to_owned(), title.to_owned(), place.to_owned()),
        None => (tag.to_owned(), format!("Experiments `{tag}`"), String::new()),
    };
    let papers = tags.into_iter().map(paper);
    papers.map(|(tag, title, place)| Paper { tag, title, place }).collect()
}

/// Returns the part of an experiment's or claim's name before the first `-`.
fn tag(id: &str) -> &str {
    id.split('-').next().unwrap_or(id)
}

impl Verdict {
    /// Returns the tag of the paper. A claim that a test proves has no experiment; its own name has
    /// the tag.
    pub(crate) fn paper_tag(&self) -> &str {
        tag(if self.experiment.is_empty() { &self.id } else { &self.experiment })
    }
}

impl From<&Judged> for Verdict {
    fn from(judged: &Judged) -> Verdict {
        let why = match &judged.standing {
            ClaimVerdict::Miss(why) => why.clone(),
            ClaimVerdict::HoldsAgain => {
                "it is on the list of misses, where it no longer belongs".to_owned()
            }
            _ => String::new(),
        };
        Verdict {
            id: judged.claim.id.clone(),
            experiment: judged.experiment.clone(),
            kind: judged.claim.kind.name().to_owned(),
            paper: judged.claim.says.clone(),
            statement: judged.claim.holds.text.clone(),
            got: judged.got(),
            standing: judged.standing.name().to_owned(),
            why,
            gates: judged.gates(),
            share: judged.share,
            runs: Some(judged.runs),
            networks: judged.networks,
            factor: judged.factor,
            again: Vec::new(),
        }
    }
}

/// Returns the claims proven by tests that `wanted` selects, as rows for the table of a paper.
pub fn proven(proven: &Proven, wanted: impl Fn(&str) -> bool) -> Vec<Verdict> {
    let verdict = |(id, claim): (&String, &plait_lab::experiment::ProvenClaim)| Verdict {
        id: id.clone(),
        experiment: String::new(),
        kind: "exact".to_owned(),
        paper: claim.says.clone(),
        statement: String::new(),
        got: {
            let proofs = claim.proofs().map(|(file, test)| format!("the test {test} of {file}"));
            format!("computed by {}", proofs.collect::<Vec<_>>().join(" and "))
        },
        standing: "proven".to_owned(),
        why: String::new(),
        gates: false,
        share: None,
        runs: None,
        networks: None,
        factor: None,
        again: Vec::new(),
    };
    proven.0.iter().filter(|(id, _)| wanted(id)).map(verdict).collect()
}

/// Returns the claims that no experiment judges, each with its reason.
pub fn unrun(list: &Unrun, wanted: impl Fn(&str) -> bool) -> Vec<Verdict> {
    let verdict = |(id, claim): (&String, &plait_lab::experiment::UnrunClaim)| Verdict {
        id: id.clone(),
        experiment: String::new(),
        kind: claim.kind.name().to_owned(),
        paper: claim.says.clone(),
        statement: String::new(),
        got: String::new(),
        standing: "no file".to_owned(),
        why: claim.why.clone(),
        gates: false,
        share: None,
        runs: None,
        networks: None,
        factor: None,
        again: Vec::new(),
    };
    list.0.iter().filter(|(id, _)| wanted(id)).map(verdict).collect()
}

/// Adds `--import MODULE` to a command for each class of Python that a file names. The command does not name them.
fn importing(mut command: String, results: &[Results]) -> String {
    let cells = results.iter().flat_map(|it| &it.plan.cells);
    let classes = cells.filter_map(|planned| match &planned.cell.subject {
        Subject::Scheduler(spec) => spec.class(),
        Subject::SinglePath(_) => None,
    });
    let modules: BTreeSet<&str> = classes.filter_map(|class| class.split(':').next()).collect();
    // No command can import the main program.
    let flags = modules.iter().filter(|module| **module != "__main__");
    let flags: String = flags.map(|module| format!("--import {module} ")).collect();
    if command.starts_with("plait ") {
        command.insert_str("plait ".len(), &flags);
    }
    command
}

impl ReproductionDocument {
    /// Creates the document of the runs.
    pub fn of(
        schema: &str,
        command: String,
        made: &Made,
        quick: bool,
        others: Vec<Verdict>,
    ) -> ReproductionDocument {
        let mut claims = others;
        claims.extend(made.settled.judged.iter().map(Verdict::from));
        for judged in made.repeated.iter().flat_map(|it| &it.judged) {
            if let Some(claim) = claims.iter_mut().find(|it| it.id == judged.claim.id) {
                claim.again.push(judged.standing.name().to_owned());
            }
        }
        for claim in &mut claims {
            if claim.again.iter().any(|again| again != ClaimVerdict::Holds.name()) {
                VARIES.clone_into(&mut claim.standing);
            }
        }
        let mut tally = BTreeMap::new();
        for claim in &claims {
            *tally.entry(claim.standing.clone()).or_insert(0) += 1;
        }
        ReproductionDocument {
            schema: schema.to_owned(),
            command: importing(command, &made.settled.results),
            version: crate::PROGRAM.to_owned(),
            quick,
            seed: made.seed,
            confidence: made.settled.confidence,
            runs: made.settled.runs,
            experiments: made.settled.results.iter().map(told).collect(),
            again: made.repeated.iter().map(Repeated::from).collect(),
            cells: made.settled.results.iter().flat_map(cells).collect(),
            left_out: made.left_out.clone(),
            ablation: sensitivities(&made.settled.judged, &made.ablated),
            claims,
            tally,
            interrupted: made.interrupted,
        }
    }

    /// Returns true if it has an experiment of a paper.
    pub(crate) fn of_papers(&self) -> bool {
        let mut run = self.experiments.iter().map(|it| tag(&it.id));
        run.any(|tag| PAPERS.iter().any(|known| known.0 == tag))
    }

    /// Returns one sentence for each kind of claim, with the counts of its standings.
    pub(crate) fn headline(&self) -> String {
        let count = |kind: &str, words: &[&str]| {
            let of = self.claims.iter().filter(|it| it.kind == kind);
            of.filter(|it| words.contains(&it.standing.as_str())).count()
        };
        let mut lines = Vec::new();
        for kind in ["hard", "soft"] {
            let of = |words: &[&str]| count(kind, words);
            let all = self.claims.iter().filter(|it| it.kind == kind).count();
            if all == 0 {
                continue;
            }
            let known = of(&["miss"]);
            let fails = of(&["fails", "miss"]);
            let cause =
                if known > 0 { format!(" ({known} for a known cause)") } else { String::new() };
            let rest = of(&["not run", "no file"]);
            let rest = if rest > 0 { format!(", {rest} not judged") } else { String::new() };
            let varies = of(&[VARIES]);
            let varies = match varies {
                0 => String::new(),
                1 => ", 1 varies with the seed".to_owned(),
                more => format!(", {more} vary with the seed"),
            };
            lines.push(format!(
                "{all} {kind} {}: {} hold, {fails} fail{cause}, {} undecided{varies}{rest}",
                if all == 1 { "claim" } else { "claims" },
                of(&["holds", "holds again"]),
                of(&["undecided"]),
            ));
        }
        let exact = count("exact", &["holds", "proven"]);
        let broken = count("exact", &["fails", "miss"]);
        if exact + broken > 0 {
            lines.push(format!(
                "{} exact claims, computed and not estimated: {exact} hold, {broken} fail",
                exact + broken
            ));
        }
        lines.extend(repeated(&self.again));
        lines.iter().map(|line| format!("{line}.\n")).collect()
    }

    /// Returns a line for each claim that makes the run fail.
    #[must_use]
    pub fn broken(&self) -> Vec<String> {
        let gates = self.claims.iter().filter(|claim| claim.gates);
        gates.map(|claim| format!("{} {}: {}", claim.id, claim.standing, claim.got)).collect()
    }
}

fn told(results: &Results) -> ExperimentSummary {
    let plan = &results.plan;
    let runs = results.runs.iter().flatten().flatten();
    ExperimentSummary {
        id: plan.experiment.id.clone(),
        title: plan.experiment.title.clone(),
        cells: plan.cells.len(),
        runs: runs.clone().count(),
        seed: plan.cells.first().map_or(0, |planned| planned.cell.scenario.seed),
        failed: runs.filter(|run| run.failure.is_some()).count(),
    }
}
