//! Verdicts with other seeds on the claims that hold.

use plait_lab::experiment::{Again, ClaimVerdict};
use schemars::JsonSchema;
use serde::Serialize;

/// The claims that hold, judged with another seed. Claims that do not depend on chance are omitted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Repeated {
    /// The seed.
    pub seed: u64,
    /// Number of judged claims.
    pub claims: usize,
    /// Number of claims that hold again.
    pub holds: usize,
    /// Number of runs.
    runs: usize,
}

impl From<&Again> for Repeated {
    fn from(again: &Again) -> Repeated {
        let holds = again.judged.iter().filter(|it| it.standing == ClaimVerdict::Holds).count();
        Repeated { seed: again.seed, claims: again.judged.len(), holds, runs: again.runs }
    }
}

/// Returns how many claims hold again with each seed; `None` without `--again`.
pub(super) fn repeated(list: &[Repeated]) -> Option<String> {
    let claims = list.first()?.claims;
    let each = list.iter().map(|it| format!("{} with seed {}", it.holds, it.seed));
    let each = each.collect::<Vec<_>>().join(", ");
    Some(format!(
        "Claims that hold with the first seed and depend on chance: {claims}. These hold again: {each}"
    ))
}
