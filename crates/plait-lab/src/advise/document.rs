//! The document of an advice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Name and version of the document.
pub const SCHEMA: &str = "plait.advice/1";

/// The document that `plait advise --json` prints.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// Always `plait.advice/1`.
    pub schema: String,
    /// The command line that gives the advice again.
    pub command: String,
    /// Seed of the draws.
    pub seed: u64,
    /// Links that were drawn.
    pub draws: u32,
    /// The paths.
    pub paths: Vec<String>,
    /// Paths whose rate is unknown. Then nothing was run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_rates: Vec<String>,
    /// The advice in one or two sentences.
    pub answer: String,
    /// One line for each load, then one for an outage of each path.
    pub lines: Vec<Line>,
    /// Changes that help without a second path or beside it, the best first.
    pub remedies: Vec<Remedy>,
    /// True if draws are missing because the command was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

/// The result for a load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// The load in words.
    pub name: String,
    /// The load as for `--workload`.
    pub workload: String,
    /// Whether a path has an outage during the load.
    pub outage: bool,
    /// The measure.
    pub measure: String,
    /// The best path alone, by the median over all draws.
    pub best_path: String,
    /// Median of the best path alone over all draws, with plain TCP.
    pub alone: f64,
    /// Median of both paths over all draws, with the default scheduler.
    pub bonded: f64,
    /// How much better the default scheduler is than the best path alone.
    pub gain: Gain,
    /// The same for the 99th percentile of the messages, or for the slowest tenth of the draws.
    pub tail: f64,
    /// How much better a second path is that is used only if the first one is down. Only for an outage of the
    /// best path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Gain>,
    /// Share of the data on each path.
    pub shares: Vec<f64>,
    /// Copies over payload.
    pub extra: f64,
    /// What the interval says.
    pub verdict: Verdict,
}

/// A ratio of speeds; above 1 is better than the best path alone.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Gain {
    /// Median over the draws.
    pub median: f64,
    /// Lower end of the 80 % interval: one draw in ten is below it.
    pub low: f64,
    /// Upper end of the 80 % interval.
    pub high: f64,
}

/// What the gain of a load says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A second path helps.
    Gain,
    /// A second path harms.
    Loss,
    /// A second path changes little.
    Nothing,
    /// The links are not known well enough.
    Unclear,
}

/// A change that helps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Remedy {
    /// The change in words, with its setting.
    pub change: String,
    /// The load that it helps most.
    pub load: String,
    /// How much faster the load gets, in the median of the draws.
    pub gain: f64,
}
