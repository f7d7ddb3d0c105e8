//! What `plait explain --json` prints.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the document.
pub const SCHEMA: &str = "plait.explain/1";

/// Why data waited in a run. Times count from the start of the run.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Explanation {
    /// Always `plait.explain/1`.
    pub schema: &'static str,
    /// The line that explains it again.
    pub command: String,
    /// The seed.
    pub seed: u64,
    /// The scheduler in canonical form, or `tcp:PATH`.
    pub scheduler: String,
    /// The congestion controller in canonical form.
    pub cc: String,
    /// The workload.
    pub workload: String,
    /// Names of the paths, the primary first.
    pub paths: Vec<String>,
    /// When the run ended.
    pub ended_ms: f64,
    /// Whether the workload finished.
    pub complete: bool,
    /// The measure that the workload is made for.
    pub primary_measure: String,
    /// Its value in the run; absent where the run does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_value: Option<f64>,
    /// Stretches in which data waited, in the whole run.
    pub stalls_found: usize,
    /// Those that the question covers: all, or those at the instant asked for.
    pub stalls_asked: usize,
    /// The longest of those that were asked for, the longest first. With an instant at which nothing waited it is
    /// the last decision before it.
    pub stalls: Vec<Explained>,
}

/// A stretch in which data waited.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Explained {
    /// `out-of-order`, `message`, `tail`, `receive-window`, `send-buffer`, `scheduler`; `decision`
    /// where nothing waited at the instant asked for.
    pub kind: &'static str,
    /// Since when.
    pub from_ms: f64,
    /// Until when.
    pub to_ms: f64,
    /// How long.
    pub length_ms: f64,
    /// The message, from 0, where one was late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<u64>,
    /// What waited, the blocking segment included.
    pub waiting: Bytes,
    /// The segment that was waited for.
    pub blocking: Bytes,
    /// Every time that it was sent, in order.
    pub sent: Vec<Sending>,
    /// When it first arrived at the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrived_ms: Option<f64>,
    /// When all that waited was readable in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readable_ms: Option<f64>,
    /// The decisions to blame: the one that gave the segment to its subflow, and before it the first
    /// that declined to send it although a subflow had room.
    pub decisions: Vec<Judged>,
    /// The greatest cost of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ms: Option<f64>,
}

/// A range of data; DSNs count from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Bytes {
    /// First byte.
    pub dsn: u64,
    /// How many.
    pub len_bytes: u64,
}

/// A segment leaves.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Sending {
    /// When.
    pub at_ms: f64,
    /// The subflow.
    pub subflow: u8,
    /// Its path.
    pub path: String,
    /// `new`, `retransmission`, `tail-probe`, `reinjection`, `redundant` or `opportunistic`.
    pub carry: &'static str,
}

/// A decision, what weighed in it, and what the others would have been worth.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Judged {
    /// Its number among those of the sender, from 1.
    pub number: u64,
    /// When it was made.
    pub at_ms: f64,
    /// send, assign or wait.
    pub decision: &'static str,
    /// The subflow that was chosen, or is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflow: Option<u8>,
    /// Its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Why, as a word.
    pub reason: &'static str,
    /// What it saw of the live subflows.
    pub subflows: Vec<Seen>,
    /// The numbers that the scheduler noted; `name.ID` where they are a subflow's.
    pub numbers: BTreeMap<String, f64>,
    /// When the segment was to arrive on the chosen subflow, by the plain estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
    /// How much later it arrived than that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ms: Option<f64>,
    /// How much later it arrived than the earliest that the plain estimate gave for any candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret_ms: Option<f64>,
    /// The run again with this one decision changed: one entry for each other subflow.
    pub alternatives: Vec<Alternative>,
    /// What the decision cost: when the waiting data were readable, less when they would have been
    /// with the best of the alternatives. Zero or less: it was right. Absent where there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ms: Option<f64>,
    /// What other schedulers say in the same state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Opinion>,
}

/// A subflow as a decision saw it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Seen {
    /// The subflow.
    pub subflow: u8,
    /// Its path.
    pub path: String,
    /// It could be chosen: alive, and no backup while another is.
    pub candidate: bool,
    /// It had room for a segment.
    pub usable: bool,
    /// Smoothed RTT; absent before the first sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srtt_ms: Option<f64>,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// In flight.
    pub inflight_bytes: u64,
    /// What the window still took.
    pub free_bytes: u64,
    /// When the segment would have arrived by the plain estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
}

/// A replay with one decision changed.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Alternative {
    /// The subflow that got the segment instead.
    pub subflow: u8,
    /// Its path.
    pub path: String,
    /// When what had waited was readable in order; absent where it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readable_ms: Option<f64>,
    /// How much sooner that is than in the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_ms: Option<f64>,
    /// How much sooner the blocking segment alone would have been readable. Where this is more, what
    /// was sent after it took its place on the slow subflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_saved_ms: Option<f64>,
    /// The measure that the workload is made for, in the replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_value: Option<f64>,
}

/// What another scheduler says in the state of a decision.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Opinion {
    /// The scheduler in canonical form.
    pub scheduler: String,
    /// send, assign, wait or idle.
    pub decision: &'static str,
    /// The subflow that it would have chosen, or waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflow: Option<u8>,
    /// Its path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Why, as a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The numbers that it weighed.
    pub numbers: BTreeMap<String, f64>,
    /// It would have done what the run did.
    pub agrees: bool,
}
