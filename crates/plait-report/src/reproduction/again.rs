//! Verdicts with other seeds on the claims that hold.

use plait_lab::experiment::{Again, Standing};
use schemars::JsonSchema;
use serde::Serialize;

/// The claims that hold, judged with another seed. Claims without anything random are left out.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Repeated {
    /// The seed.
    pub seed: u64,
    /// How many claims were judged.
    pub claims: usize,
    /// How many of them hold again.
    pub holds: usize,
    /// How many runs were made for them.
    runs: usize,
}

impl From<&Again> for Repeated {
    fn from(again: &Again) -> Repeated {
        let holds = again.judged.iter().filter(|it| it.standing == Standing::Holds).count();
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
