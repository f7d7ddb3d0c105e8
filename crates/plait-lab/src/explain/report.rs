//! The document that `plait explain --json` prints.

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Name and version of the document.
pub const SCHEMA: &str = "plait.explain/1";

/// Explains why data waited in a run. Times count from the start of the run.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Explanation {
    /// Always `plait.explain/1`.
    pub schema: &'static str,
    /// The command line that explains it again.
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
    /// End of the run.
    pub ended_ms: f64,
    /// True if the workload finished.
    pub complete: bool,
    /// The primary measure of the workload.
    pub primary_measure: String,
    /// Value of the primary measure; absent if the run lacks it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_value: Option<f64>,
    /// Number of stalls in the whole run. In a stall, data waits.
    pub stalls_found: usize,
    /// Number of stalls that the question covers: all, or the stalls at the requested time.
    pub stalls_asked: usize,
    /// The longest of the covered stalls, the longest first. If no data waited at the requested time, the
    /// last decision before it.
    pub stalls: Vec<Explained>,
}

/// A stall, in which data waited.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Explained {
    /// `out-of-order`, `message`, `tail`, `receive-window`, `send-buffer`, `scheduler`; `decision` if no data
    /// waited at the requested time.
    pub kind: &'static str,
    /// Start of the stall.
    pub from_ms: f64,
    /// End of the stall.
    pub to_ms: f64,
    /// Length of the stall.
    pub length_ms: f64,
    /// Index of the late message, from 0; absent if no message was late.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<u64>,
    /// The waiting data, with the blocking segment.
    pub waiting: Bytes,
    /// The blocking segment, which the data waited for.
    pub blocking: Bytes,
    /// All transmissions of the blocking segment, in order.
    pub sent: Vec<Sending>,
    /// Time at which the blocking segment first arrived at the peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrived_ms: Option<f64>,
    /// Time at which all waiting data was readable in order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readable_ms: Option<f64>,
    /// The responsible decisions: the one that gave the segment to its subflow, and an earlier one.
    /// The earlier one is the first that did not send it although a subflow had room.
    pub decisions: Vec<Judged>,
    /// Largest cost of the decisions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ms: Option<f64>,
}

/// A range of data; DSNs count from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Bytes {
    /// First byte.
    pub dsn: u64,
    /// Number of bytes.
    pub len_bytes: u64,
}

/// A transmission of a segment.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Sending {
    /// Time of the transmission.
    pub at_ms: f64,
    /// The subflow.
    pub subflow: u8,
    /// Its path.
    pub path: String,
    /// `new`, `retransmission`, `tail-probe`, `reinjection`, `redundant` or `opportunistic`.
    pub carry: &'static str,
}

/// A decision, its inputs, and the value of the alternatives.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Judged {
    /// Number of the decision at the sender, from 1.
    pub number: u64,
    /// Time of the decision.
    pub at_ms: f64,
    /// send, assign or wait.
    pub decision: &'static str,
    /// The subflow that was chosen, or that the scheduler waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflow: Option<u8>,
    /// Path of the subflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The reason, as a word.
    pub reason: &'static str,
    /// The state of the live subflows at the decision.
    pub subflows: Vec<Seen>,
    /// The numbers that the scheduler recorded; `name.ID` for a number of a subflow.
    pub numbers: BTreeMap<String, f64>,
    /// Predicted arrival of the segment on the chosen subflow, by the plain estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
    /// Difference between the actual and the predicted arrival.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_ms: Option<f64>,
    /// Difference between the actual arrival and the earliest one that the plain estimate predicts over all
    /// candidates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regret_ms: Option<f64>,
    /// Replays with this one decision changed: one for each other subflow that it could have chosen.
    pub alternatives: Vec<Alternative>,
    /// Cost of the decision: the time at which the waiting data was readable, minus that time in the best
    /// alternative. Zero or less means that the decision was right. Absent without alternatives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_ms: Option<f64>,
    /// The decisions of other schedulers in the same state.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Opinion>,
}

/// A subflow at the time of a decision.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Seen {
    /// The subflow.
    pub subflow: u8,
    /// Its path.
    pub path: String,
    /// True if the subflow could be chosen: it is alive, and no backup while a regular subflow is alive.
    pub candidate: bool,
    /// True if the subflow had room for a segment.
    pub usable: bool,
    /// Smoothed RTT; absent before the first sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srtt_ms: Option<f64>,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Bytes in flight.
    pub inflight_bytes: u64,
    /// Free bytes of the congestion window.
    pub free_bytes: u64,
    /// Predicted arrival of the segment, by the plain estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_ms: Option<f64>,
}

/// A replay with one decision changed.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Alternative {
    /// The subflow that got the segment in the replay.
    pub subflow: u8,
    /// Its path.
    pub path: String,
    /// Time at which the data that waited in the run was readable in order; absent if it never was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readable_ms: Option<f64>,
    /// Time saved compared with the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saved_ms: Option<f64>,
    /// Time saved for the blocking segment alone. If this is more than `saved_ms`, later data took its place
    /// on the slow subflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment_saved_ms: Option<f64>,
    /// Value of the primary measure in the replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_value: Option<f64>,
}

/// The decision of another scheduler in the same state.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Opinion {
    /// The scheduler in canonical form.
    pub scheduler: String,
    /// send, assign, wait or idle.
    pub decision: &'static str,
    /// The subflow that it would choose, or wait for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subflow: Option<u8>,
    /// Path of the subflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The reason, as a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The numbers that the scheduler recorded.
    pub numbers: BTreeMap<String, f64>,
    /// True if it would have chosen the same subflow as the run; after a wait, none.
    pub agrees: bool,
}
