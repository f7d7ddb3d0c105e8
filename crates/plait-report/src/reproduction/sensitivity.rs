//! How a verdict depends on values that a paper does not specify.

use plait_lab::experiment::{Ablated, ClaimVerdict, Judged};
use schemars::JsonSchema;
use serde::Serialize;

/// Results of a claim for alternative values of settings that its paper does not specify.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Sensitivity {
    /// The claim.
    pub id: String,
    /// `exact`, `hard` or `soft`.
    pub kind: String,
    /// Its verdict with the values of the file.
    pub standing: String,
    /// Number of judged settings, with the setting of the file.
    pub settings: usize,
    /// Number of settings with which it holds.
    pub holds: usize,
    /// Number of settings with which it fails.
    pub fails: usize,
    /// Share of the settings with a verdict in which it holds: `all`, `most` (more than half),
    /// `few` or `none`.
    pub word: String,
    /// Settings with a verdict other than that of the file.
    pub other: Vec<String>,
}

/// Returns the verdicts of each claim over all values, in the order of the claims.
pub(super) fn sensitivities(judged: &[Judged], ablated: &[Ablated]) -> Vec<Sensitivity> {
    // A miss counts as failing; a listed miss that holds counts as holding.
    let plain = |judged: &Judged| match &judged.standing {
        ClaimVerdict::Miss(_) => ClaimVerdict::Fails.name(),
        ClaimVerdict::HoldsAgain => ClaimVerdict::Holds.name(),
        other => other.name(),
    };
    let sensitivity = |first: &Judged| {
        let id = &first.claim.id;
        let own = plain(first);
        let varied: Vec<(String, &str)> = ablated
            .iter()
            .flat_map(|it| it.judged.iter().map(move |judged| (it, judged)))
            .filter(|(_, judged)| judged.claim.id == *id)
            .map(|(it, judged)| (format!("{}: {}", it.what, it.is), plain(judged)))
            .collect();
        let all = || varied.iter().map(|(_, word)| *word).chain([own]);
        let count = |word: &str| all().filter(|it| *it == word).count();
        let (holds, fails) = (count("holds"), count("fails"));
        let word = match (holds, fails) {
            (0, 0) => "undecided",
            (0, _) => "none",
            (_, 0) => "all",
            _ if holds > fails => "most",
            _ => "few",
        };
        let other = varied.iter().filter(|(_, word)| *word != own);
        Sensitivity {
            id: id.clone(),
            kind: first.claim.kind.name().to_owned(),
            standing: own.to_owned(),
            settings: varied.len() + 1,
            holds,
            fails,
            word: word.to_owned(),
            other: other.map(|(name, word)| format!("{name} ({word})")).collect(),
        }
    };
    match ablated.is_empty() {
        true => Vec::new(),
        false => judged.iter().map(sensitivity).collect(),
    }
}
