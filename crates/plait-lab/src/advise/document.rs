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
    /// The draws.
    #[serde(flatten)]
    pub drawn: Drawn,
    /// The path on which bonded connections begin in place of the first given one, and what gains from that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstPath>,
    /// The paths. Connections begin on the first one.
    pub paths: Vec<String>,
    /// What is known of each path, as given: `rate=18mbit..25mbit,rtt=22ms`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub known: Vec<String>,
    /// Cost of each path, or an empty list if no path has a quota or costs more than another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<Price>,
    /// Backup paths: they carry data only while all other paths are down. Empty if all paths are backups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backups: Vec<String>,
    /// The link that all paths share, if it carries less than the paths together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<String>,
    /// Paths whose rate is unknown in a direction. Then nothing was run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_rates: Vec<String>,
    /// The advice in a few sentences.
    pub answer: String,
    /// The scheduler and the goal to take; absent if the links are not worth bonding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub take: Option<Choice>,
    /// One line for each load, then one for an outage of each path.
    pub lines: Vec<Line>,
    /// The loads with each goal. Only if a path has a cost or a quota, because otherwise goals change little.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalLine>,
    /// Changes that help without a second path or beside it, the best first.
    pub remedies: Vec<Remedy>,
}

impl Line {
    /// Returns true if a value of the line stands for loads that do not end.
    #[must_use]
    pub fn fails(&self, value: f64) -> bool {
        super::fails(&self.measure, value)
    }
}

/// How the links were drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Drawn {
    /// Seed of the draws.
    pub seed: u64,
    /// Links that were drawn.
    pub draws: u32,
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
    /// The best path alone, by the median over all draws. A backup counts only if all paths are backups, and a path
    /// whose quota the load exceeds only if there is no other.
    pub best_path: String,
    /// Median of the best path alone over all draws, with plain TCP. A load that does not end counts as an hour, and a
    /// video that does not play as 0.001 Mbit/s.
    pub alone: f64,
    /// Median of both paths over all draws, with the default scheduler.
    pub bonded: f64,
    /// How much better the default scheduler is than the best path alone.
    pub gain: Gain,
    /// The same for the 99th percentile of the messages, or for the slowest tenth of the draws.
    pub tail: f64,
    /// How much better a second path is that is used only if the first one is down. Only for an outage of the
    /// best path, and only if messages do not wait for its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<Gain>,
    /// Share of the data on each path.
    pub shares: Vec<f64>,
    /// Copies over payload.
    pub extra: f64,
    /// Payload bytes that were sent on each path, with copies and retransmissions; mean over the draws.
    #[serde(default)]
    pub path_bytes: Vec<f64>,
    /// Bytes of the copies on each path; mean over the draws.
    #[serde(default)]
    pub extra_bytes: Vec<f64>,
    /// What the interval says.
    pub verdict: Verdict,
}

/// The settings of a bonded connection.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The scheduler, as for `--scheduler`.
    pub scheduler: String,
    /// The goal, as for `--goal`.
    pub goal: String,
    /// The cost of each path, as for `--cost`. A backup costs more than all other paths, so it carries data only while they
    /// are down. Empty if all paths are free.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub costs: Vec<u32>,
}

/// What a path costs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// The price of a byte, relative to other paths.
    pub cost: u32,
    /// The payload that each end may send over the path, as given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<String>,
    /// Loads that exceed the quota alone in most draws, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exceeded_by: Vec<String>,
}

/// The result of a load with a goal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GoalLine {
    /// The load in words, as in its line.
    pub load: String,
    /// The goal, as for `--goal`.
    pub goal: String,
    /// How much better it is than the best path alone.
    pub gain: Gain,
    /// Payload bytes that were sent on each path, with copies and retransmissions; mean over the draws.
    pub path_bytes: Vec<f64>,
    /// True if no goal is more than 5 % faster for this load.
    pub suffices: bool,
    /// True if this is the goal to take for the load: the one that suffices with the least bytes on paths with a
    /// cost or a quota.
    pub advised: bool,
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
    /// In an outage, messages wait for its end, because the other paths carry too little.
    Stalled,
}

/// A path that connections should begin on in place of the first one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FirstPath {
    /// The path.
    pub path: String,
    /// The loads that gain from it.
    pub loads: Vec<FirstLine>,
}

/// A load that begins on another path than the first one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FirstLine {
    /// The load in words, as in its line.
    pub load: String,
    /// How much better it is than on the first path, in the same draws.
    pub gain: Gain,
    /// True if the load does not end on the first path in most draws.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only: bool,
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
    /// The path to begin on, if this is the change. Only if the order of the paths is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first: Option<FirstPath>,
}
