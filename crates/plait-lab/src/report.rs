//! The report of a comparison: what `plait compare --json` prints.

use crate::expect::Verdict;
use crate::stats::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the document.
pub const SCHEMA: &str = "plait.compare/1";

/// The measure of what competing flows got.
pub(crate) const COMPETING: &str = "competing_mbps";

/// One comparison: every row over the same paths, workload and seeds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Always `plait.compare/1`.
    pub schema: String,
    /// The line that runs it again.
    pub command: String,
    /// Seed of the first run; those of the others are drawn from it.
    pub seed: u64,
    /// Runs a row; 1 where nothing is random.
    pub runs: u32,
    /// The workload as given.
    pub workload: String,
    /// The measure that speedups compare.
    pub primary_measure: String,
    /// The varied setting and its value at this point of a sweep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vary: BTreeMap<String, String>,
    /// The paths, the primary first.
    pub paths: Vec<PathReport>,
    /// Plain TCP flows beside the connection, as on the command line: `reno@wifi*2`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compete: Vec<String>,
    /// The rows: schedulers first, then plain TCP on each path.
    pub rows: Vec<Row>,
    /// Scheduler-free row with the best median: `tcp:PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_path: Option<String>,
    /// What became of the expectations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Verdict>,
    /// Whether runs are missing because it was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// SHA-256, in hexadecimal, over each run's measures and segment hash.
    pub digest: String,
}

/// A path as it was simulated. A rate, queue or trace that is absent is without limit.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathReport {
    /// Name.
    pub name: String,
    /// Profile it started from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Rate from server to client in bits per second, over IP packets; the mean where it varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_down_bps: Option<u64>,
    /// Rate from client to server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_up_bps: Option<u64>,
    /// Round-trip propagation in microseconds; at the start where it changes.
    pub rtt_us: u64,
    /// Propagation from server to client in microseconds, likewise.
    pub owd_down_us: u64,
    /// Propagation from client to server in microseconds, likewise.
    pub owd_up_us: u64,
    /// Greatest jitter, each way, in microseconds.
    pub jitter_us: u64,
    /// Loss from server to client, as a share; the mean where it comes in bursts.
    pub loss: f64,
    /// Loss from client to server, as a share; the mean where it comes in bursts.
    pub loss_up: f64,
    /// Queue from server to client: `50ms`, `64KiB`, `100pkt`, `inf`.
    pub queue: String,
    /// Management of the queues: `codel`; none where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aqm: Option<String>,
    /// Share of the packets that are held back, each way, and for how long: `1%:5ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<String>,
    /// Share of the packets that arrive twice, each way.
    #[serde(default, skip_serializing_if = "no_share")]
    pub duplicate: f64,
    /// Share of the packets that arrive damaged, each way.
    #[serde(default, skip_serializing_if = "no_share")]
    pub corrupt: f64,
    /// The shared link that packets go through after the path's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// Trace file from server to client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Trace file from client to server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_up: Option<String>,
    /// Used only when no other works.
    pub backup: bool,
    /// Everything that was said of it beyond its profile, as on the command line: steps, outages,
    /// bursts of loss and the host's link are told here in full.
    pub settings: Vec<String>,
}

fn no_share(share: &f64) -> bool {
    *share == 0.0
}

/// One row of the table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Scheduler in canonical form, or `tcp:PATH`.
    pub scheduler: String,
    /// Congestion controller in canonical form.
    pub cc: String,
    /// Measures of the completed runs. What a workload does not have is absent, never zero. Beside
    /// competing flows `competing_mbps` is there: the goodput of one of them, from its start to the
    /// end of the run, in the mean of all of them.
    pub measures: BTreeMap<String, Summary>,
    /// Goodput of a competing flow in Mbit/s, for each kind of them; mean of the flows of a kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub competing: BTreeMap<String, Summary>,
    /// First-transmission payload bytes of each path over all of them; mean of the runs.
    pub path_share: BTreeMap<String, f64>,
    /// RTT that the sender measured on each path, in milliseconds; mean of the runs' means. A path
    /// without a sample is absent.
    #[serde(default)]
    pub rtt_ms: BTreeMap<String, f64>,
    /// Reinjected payload bytes over all that were sent; mean of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reinjected_share: Option<f64>,
    /// Retransmitted payload bytes over all that were sent; mean of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_share: Option<f64>,
    /// Ratio of the medians of the primary measure to those of the best single path with the same
    /// controller; above 1 is better for every measure. Absent where either row is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup_vs_best_path: Option<f64>,
    /// Aggregation benefit of the median goodput against the goodputs of the single paths with the
    /// same controller: 1 is their sum, 0 the best of them, -1 nothing delivered. Absent for single
    /// paths, and where a row is incomplete or has no goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregation_benefit: Option<f64>,
    /// Why it was fast or slow here, against the best row; where it was asked for (`--explain`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Runs that did not finish in time or broke an invariant; they are in no statistic.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub incomplete: u32,
    /// Those runs, each with the seed that makes it again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
}

/// A run that is in no statistic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The seed that makes this run again, as the only one.
    pub seed: u64,
    /// What became of it.
    pub reason: String,
}

/// A comparison repeated over the points of `--vary`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sweep {
    /// Always `plait.compare/1`.
    pub schema: String,
    /// The line that runs it again.
    pub command: String,
    /// One report a point, in the order of the sweep.
    pub points: Vec<Report>,
    /// SHA-256, in hexadecimal, over the digests of the points.
    pub digest: String,
}

/// What `plait compare --json` prints: a report, or with `--vary` a sweep.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[allow(clippy::large_enum_variant, reason = "there is one of it a process")]
pub enum Document {
    /// One comparison.
    Report(Report),
    /// One a point.
    Sweep(Sweep),
}

impl Document {
    /// The reports in it, in order.
    #[must_use]
    pub fn reports(&self) -> &[Report] {
        match self {
            Document::Report(report) => std::slice::from_ref(report),
            Document::Sweep(sweep) => &sweep.points,
        }
    }

    /// The lines that run it, or a point of it, again.
    pub fn commands(&mut self) -> impl Iterator<Item = &mut String> {
        let (whole, points) = match self {
            Document::Report(report) => (None, std::slice::from_mut(report)),
            Document::Sweep(sweep) => (Some(&mut sweep.command), sweep.points.as_mut_slice()),
        };
        whole.into_iter().chain(points.iter_mut().map(|report| &mut report.command))
    }

    /// Whether every expectation holds at every point.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.reports().iter().flat_map(|report| &report.expectations).all(|verdict| verdict.holds)
    }
}

/// The JSON Schema (draft 2020-12) of a command's document: `compare`.
#[must_use]
pub fn schema(command: &str) -> Option<serde_json::Value> {
    match command {
        "compare" => Some(schemars::schema_for!(Document).to_value()),
        _ => None,
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
