//! Judges claims that hold again with other seeds.

use super::run::Progress;
use super::store::Store;
use super::{ClaimVerdict, Experiment, Judged, Looks, Unsettled, settle};
use crate::compare::World;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// The verdicts with one additional seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Again {
    /// The seed.
    pub seed: u64,
    /// The claims that hold with the first seed, in the order of the experiments.
    pub judged: Vec<Judged>,
    /// Number of additional runs.
    pub runs: usize,
}

/// Judges the claims of `judged` that hold again, with each of the `times` seeds that follow the seed of
/// `looks`. Only the points that these claims use are run. A claim without randomness is left out, because
/// every seed gives the same answer. An interrupted seed is left out.
///
/// # Errors
/// If a plan cannot be made, or the store cannot be written.
pub fn again<W: World>(
    experiments: &[Experiment],
    judged: &[Judged],
    looks: &Looks<'_>,
    times: u32,
    world: &W,
    store: &Store,
    progress: &Progress<'_>,
) -> Result<Vec<Again>, Unsettled> {
    let held: BTreeSet<&str> = judged
        .iter()
        .filter(|it| it.standing == ClaimVerdict::Holds && it.share.is_some())
        .map(|it| it.claim.id.as_str())
        .collect();
    let mut chosen = experiments.to_vec();
    for experiment in &mut chosen {
        experiment.claims.retain(|claim| held.contains(claim.id.as_str()));
    }
    chosen.retain(|experiment| !experiment.claims.is_empty());
    let mut list = Vec::new();
    for further in 1..=times {
        let seed = looks.seed.wrapping_add(u64::from(further));
        let looks = Looks { seed, claims_only: true, ..*looks };
        let settled = settle(&chosen, &looks, world, store, progress)?;
        if progress.cancelled.load(Ordering::Relaxed) {
            break;
        }
        list.push(Again { seed, judged: settled.judged, runs: settled.runs });
    }
    Ok(list)
}
