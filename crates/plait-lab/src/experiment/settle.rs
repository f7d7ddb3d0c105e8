//! Makes as many runs as a verdict needs. An undecided exact or hard claim gets twice the runs, repeatedly,
//! up to a limit. A soft claim keeps the runs of its file, because its failure does not change the
//! exit code.
//!
//! Each look at the runs could stop at a chance result. The allowed doubt is therefore divided among the
//! looks. With at most four looks each has a confidence of 98.75 %, and all of them together 95 %.

use super::judgement::CONFIDENCE;
use super::misses::Misses;
use super::run::{Progress, run};
use super::store::Store;
use super::{ClaimKind, ClaimVerdict, Experiment, Judged, Plan, Results, judge};
use crate::compare::World;
use crate::error::ScenarioError;
use crate::scenario::Reader;
use std::sync::atomic::Ordering;

/// The settings for reaching verdicts.
#[derive(Clone, Copy)]
pub struct Looks<'a> {
    /// Seed of the first run of each cell, and of sampled networks.
    pub seed: u64,
    /// If true, only core claims are judged, on the points of a quick run.
    pub quick: bool,
    /// If true, points that no claim uses are left out.
    pub claims_only: bool,
    /// Largest factor on the runs of a file.
    pub most: u32,
    /// Claims that are known to fail.
    pub misses: &'a Misses,
    /// Returns the content of files that experiments name.
    pub read: Reader<'a>,
}

/// Runs and verdicts.
#[derive(Clone, PartialEq, Debug)]
pub struct Settled {
    /// The runs of the first look.
    pub results: Vec<Results>,
    /// The last additional runs of each experiment that needed them.
    pub further: Vec<Results>,
    /// The claims, in the order of the experiments.
    pub judged: Vec<Judged>,
    /// The confidence of each look.
    pub confidence: f64,
    /// Total number of runs.
    pub runs: usize,
}

/// Why no verdict was reached.
#[derive(Debug)]
pub enum Unsettled {
    /// A setting is invalid at some point of a sweep.
    Plan(ScenarioError),
    /// Writing to the store failed.
    Store(std::io::Error),
}

impl Looks<'_> {
    /// Returns the largest number of looks; the runs double from one to the next.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.most.max(1).ilog2() + 1
    }

    /// Returns the confidence of each look.
    #[must_use]
    pub fn confidence(&self) -> f64 {
        1.0 - (1.0 - CONFIDENCE) / f64::from(self.count())
    }

    /// Returns the plan of the first look.
    ///
    /// # Errors
    /// If a setting is invalid at some point of the sweep.
    pub fn plan(&self, experiment: &Experiment) -> Result<Plan, ScenarioError> {
        self.enlarged(experiment, 1, |_| true)
    }

    fn enlarged(
        &self,
        experiment: &Experiment,
        times: u32,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Plan, ScenarioError> {
        let chosen = if self.quick { experiment.quickened() } else { experiment.clone() };
        let mut larger = chosen.enlarged(self.seed, times)?;
        larger.claims.retain(|claim| wanted(&claim.id));
        // An experiment without claims keeps every point, and makes the runs of its `[quick]` table.
        let claims_only =
            self.claims_only || self.quick && !experiment.claims.is_empty() || times > 1;
        Plan::of(&larger, claims_only, self.read)
    }
}

/// Runs experiments and judges their claims.
///
/// # Errors
/// If a plan cannot be made, or writing to the store fails. The store keeps the runs that were made before.
pub fn settle<W: World>(
    experiments: &[Experiment],
    looks: &Looks<'_>,
    world: &W,
    store: &Store,
    progress: &Progress<'_>,
) -> Result<Settled, Unsettled> {
    let first: Result<Vec<Plan>, ScenarioError> =
        experiments.iter().map(|it| looks.plan(it)).collect();
    let mut first = first.map_err(Unsettled::Plan)?;
    first.retain(|plan| !plan.cells.is_empty());
    let results = run(first, world, store, progress).map_err(Unsettled::Store)?;
    let confidence = looks.confidence();
    let judge_all = |results: &[Results]| -> Vec<Judged> {
        results.iter().flat_map(|it| judge(it, looks.misses, confidence)).collect()
    };
    let mut settled = Settled {
        judged: judge_all(&results),
        runs: made(&results),
        results,
        further: Vec::new(),
        confidence,
    };
    for look in 1..looks.count() {
        let open = |id: &str| {
            let undecided = |it: &Judged| {
                let counts = it.claim.kind != ClaimKind::Soft;
                it.claim.id == id && counts && it.standing == ClaimVerdict::Undecided
            };
            settled.judged.iter().any(undecided)
        };
        let more: Result<Vec<Plan>, ScenarioError> = experiments
            .iter()
            .filter(|it| it.claims.iter().any(|claim| open(&claim.id)))
            .map(|it| looks.enlarged(it, 1 << look, open))
            .collect();
        let more = more.map_err(Unsettled::Plan)?;
        if more.is_empty() || progress.cancelled.load(Ordering::Relaxed) {
            break;
        }
        let results = run(more, world, store, progress).map_err(Unsettled::Store)?;
        settled.runs += made(&results);
        for judged in judge_all(&results) {
            let known = settled.judged.iter_mut().find(|it| it.claim.id == judged.claim.id);
            // A look that was interrupted decides nothing.
            if let Some(known) = known.filter(|_| judged.standing != ClaimVerdict::Unknown) {
                *known = judged;
            }
        }
        for one in results {
            let id = &one.plan.experiment.id;
            settled.further.retain(|known| known.plan.experiment.id != *id);
            settled.further.push(one);
        }
    }
    Ok(settled)
}

fn made(results: &[Results]) -> usize {
    results.iter().flat_map(|it| &it.runs).flatten().flatten().count()
}
