//! The report of a comparison, as `plait compare --json` prints it.

mod path;
mod verdict;

pub use path::{PathDelays, PathLosses, PathRates, PathReport};
pub use verdict::{Compared, Verdict};

use crate::stats::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the document.
pub const SCHEMA: &str = "plait.compare/1";

/// The name of the measure for the goodput of competing flows.
pub(crate) const COMPETING: &str = "competing_mbps";

/// One point of a comparison: every row over the same paths, workload and seeds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The command line that runs this point again.
    pub command: String,
    /// Seed of the first run; the seeds of the other runs are derived from it.
    pub seed: u64,
    /// Runs of each row; 1 if nothing is random.
    pub runs: u32,
    /// Jitter of hosts in microseconds; absent if hosts have no jitter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_jitter_us: Option<u64>,
    /// Precision reached by `--until ci=`; absent without that flag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// The workload as given.
    pub workload: String,
    /// Name of the measure that speedups compare.
    pub primary_measure: String,
    /// The varied settings and their values at this point; empty without `--vary`.
    pub vary: BTreeMap<String, String>,
    /// The paths, the primary first.
    pub paths: Vec<PathReport>,
    /// Competing flows, as on the command line: `reno@wifi*2`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compete: Vec<String>,
    /// The rows: for each congestion controller the schedulers, then plain TCP on each path.
    pub rows: Vec<Row>,
    /// Findings over its runs.
    #[serde(flatten)]
    pub findings: Findings,
    /// True if the comparison was interrupted, so that runs are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// SHA-256, in hexadecimal, over each run's measures and segment hash.
    pub digest: String,
    /// Every run that was made, row by row, if the world keeps them
    /// ([`KeepRuns`](crate::KeepRuns)).
    #[serde(skip)]
    pub each_run: Vec<RunRecord>,
}

/// Findings over the runs of a comparison.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Plain TCP with the best median, over all paths and controllers: `tcp:PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_path: Option<String>,
    /// Congestion controller of `best_path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_path_cc: Option<String>,
    /// Groups of rows with identical runs: every segment at the same time, every measure equal.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identical: Vec<Vec<String>>,
    /// Differences of high percentiles that the medians do not show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailDifference>,
    /// Buffers that held rows back for at least a tenth of the time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<BufferLimit>,
    /// The verdicts on the expectations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Verdict>,
}

/// The precision that `--until ci=` reached.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Precision {
    /// Largest allowed half-width of every interval against the best row, as a share of the value.
    pub wanted: f64,
    /// Largest half-width of an interval; absent after one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widest: Option<f64>,
    /// True if `widest` is at most `wanted`. If false, the limit of runs was reached or the comparison was
    /// interrupted.
    pub reached: bool,
    /// Limit of the runs of a row.
    pub max_runs: u32,
}

/// A high percentile that is lower in one row than in another, beyond chance.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TailDifference {
    /// The row.
    pub row: String,
    /// The row that `row` is compared with.
    pub other: String,
    /// The percentile: 99 or 100 (the longest) over messages, 95 over runs.
    pub percentile: u32,
    /// True for a percentile of messages, pooled over runs; false for a percentile of runs.
    pub of_messages: bool,
    /// Value of the percentile in `row`.
    pub value: f64,
    /// Value of the percentile in `other`.
    pub other_value: f64,
    /// Factor by which `row` is better.
    pub times: f64,
}

/// A buffer that held rows back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BufferLimit {
    /// The flag that enlarges the buffer: `--sndbuf` or `--rcvbuf`.
    pub flag: String,
    /// Largest size of the buffer in bytes.
    pub size_bytes: u64,
    /// The buffer grows up to this size.
    #[serde(default)]
    pub grows: bool,
    /// Largest share of the time for which the buffer held back one of the rows.
    pub longest_share: f64,
    /// The rows that the buffer held back for at least a tenth of the time.
    pub rows: Vec<String>,
}

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRecord {
    /// Index of the row in [`Report::rows`].
    pub row: usize,
    /// Number of the run, from 0.
    pub run: u32,
    /// The seed that reproduces the run.
    pub seed: u64,
    /// Why the run counts in no statistic; `None` if it counts.
    pub failure: Option<String>,
    /// Measures by name; the measures of a path as `path_share.wifi`.
    pub values: Vec<(String, f64)>,
}

/// One row of the table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Index of the row's point in the list of points.
    pub point: usize,
    /// The varied settings and their values; empty without `--vary`.
    pub vary: BTreeMap<String, String>,
    /// Scheduler in canonical form, or `tcp:PATH`.
    pub scheduler: String,
    /// Congestion controller in canonical form.
    pub cc: String,
    /// Measures of the completed runs. A measure that the workload lacks is absent, never zero. If there are
    /// competing flows, `competing_mbps` is their mean goodput, from the start of each flow to the end of the
    /// run.
    pub measures: BTreeMap<String, Summary>,
    /// Goodput of a competing flow in Mbit/s, by kind of flow; mean over the flows of the kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub competing: BTreeMap<String, Summary>,
    /// Delays of the messages of all runs, pooled; absent if the workload has no messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Messages>,
    /// Bytes, RTTs and shares by path.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Comparison with the other rows.
    #[serde(flatten)]
    pub standing: Standing,
    /// Reason why it was fast or slow here, against the best row; with `--explain` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Number of runs that did not finish in time or broke an invariant. No statistic includes
    /// them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub incomplete: u32,
    /// The incomplete runs, each with the seed that reproduces it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<Failure>,
}

/// Traffic of a row, by path.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// Share of each path in the payload bytes of first transmissions; mean over the runs.
    pub path_share: BTreeMap<String, f64>,
    /// Share of each path in `path_bytes`: all payload bytes sent, with copies and retransmissions.
    #[serde(default)]
    pub path_sent_share: BTreeMap<String, f64>,
    /// Payload bytes sent on each path, with copies and retransmissions; mean over the runs.
    #[serde(default)]
    pub path_bytes: BTreeMap<String, f64>,
    /// Ratio of copies and reinjections to first transmissions, in payload bytes; mean over the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_share: Option<f64>,
    /// Ratio of copies and reinjections on each path to first transmissions on all paths, in payload bytes;
    /// mean over the runs. Empty if no path has a cost or a quota.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub path_extra_share: BTreeMap<String, f64>,
    /// RTT that the sender measured on each path, in milliseconds; mean over the means of the runs. A path
    /// without an RTT sample is absent.
    #[serde(default)]
    pub rtt_ms: BTreeMap<String, f64>,
    /// Share of reinjections in all payload bytes sent; mean over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reinjected_share: Option<f64>,
    /// Share of retransmissions in all payload bytes sent; mean over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmitted_share: Option<f64>,
}

impl Traffic {
    /// Returns the numbers that each path has, by name.
    #[must_use]
    pub fn by_path(&self) -> [(&'static str, &BTreeMap<String, f64>); 5] {
        [
            ("path_share", &self.path_share),
            ("path_sent_share", &self.path_sent_share),
            ("path_bytes", &self.path_bytes),
            ("path_extra_share", &self.path_extra_share),
            ("rtt_ms", &self.rtt_ms),
        ]
    }
}

/// Comparison of a row with the other rows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// Ratio of the median of the primary measure to that of the best single path over all controllers. For
    /// messages it compares the pooled median delays. Above 1 is better for every measure. Absent if either
    /// row is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup_vs_best_path: Option<f64>,
    /// This row against the best single path, paired by run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired_vs_best_path: Option<Difference>,
    /// This row against the best scheduler, paired by run. Absent for the best scheduler, and if either row
    /// is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired_vs_best: Option<Difference>,
    /// Group of the scheduler, from 1: a scheduler is in a group if it does not differ from the group's best
    /// beyond chance. Group 1 has the best scheduler. Absent for plain TCP beside schedulers, and if the row
    /// is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// Aggregation benefit of the median goodput. The single paths with the same controller set the
    /// scale: 1 is the sum of their goodputs, 0 the best of them, -1 nothing delivered. Absent for
    /// single paths, and if a row is incomplete or has no goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregation_benefit: Option<f64>,
    /// Share of the bound that the row reached in the primary measure, as the median over its runs. The
    /// bound is the best value that any sender could reach over these links: 1 is the bound, and lower
    /// is worse. Absent for workloads without a bound, and if no run counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_bound: Option<f64>,
}

/// A run that counts in no statistic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The seed that reproduces this run as the only one.
    pub seed: u64,
    /// Reason why the run does not count.
    pub reason: String,
}

/// Delays of the messages of all runs of a row, in milliseconds. Percentiles are interpolated. A run with
/// more than 4,096 messages contributes 4,096 of them, at evenly spaced ranks.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Messages {
    /// 50th percentile.
    pub median_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// Longest.
    pub max_ms: f64,
    /// Number of messages.
    pub n: u64,
}

/// One row against another, over the runs of both with the same seeds
/// ([`stats::against`](crate::stats::against)).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Typical ratio of this row's value to the other's in one run; above 1 if this row's value is larger.
    /// For messages the value is the median delay of a run.
    pub ratio: f64,
    /// 95 % confidence interval of the ratio; absent after one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// True if the rows differ by more than 1 % and beyond chance, corrected for the number of rows.
    pub told_apart: bool,
    /// Number of runs whose ratio differs from `ratio`, if all other runs have the same ratio. Absent if the
    /// ratio varies from run to run, or never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub differing_runs: Option<u32>,
}

/// A setting that `--vary` varied.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Varied {
    /// Its name: `lte.rtt`.
    pub name: String,
    /// Its values in order.
    pub values: Vec<String>,
}

/// The document that `plait compare --json` prints. It has the same shape with and without `--vary`; without
/// it there is one point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(into = "Wire", from = "Wire")]
pub struct ComparisonDocument {
    /// The command line that runs the comparison again.
    pub command: String,
    /// The varied settings. The values of the last one change fastest.
    pub varied: Vec<Varied>,
    /// One report for each point. The points of a grid follow the values of the first setting, then of the
    /// second.
    pub points: Vec<Report>,
    /// SHA-256, in hexadecimal: the digest of the point without `--vary`, otherwise over the digests of all
    /// points.
    pub digest: String,
}

impl ComparisonDocument {
    /// Returns the reports, in order.
    #[must_use]
    pub fn reports(&self) -> &[Report] {
        &self.points
    }

    /// Returns the report if no setting was varied.
    #[must_use]
    pub fn single(&self) -> Option<&Report> {
        self.points.first().filter(|_| self.varied.is_empty())
    }

    /// Returns the command lines of the document and of each point.
    pub fn commands(&mut self) -> impl Iterator<Item = &mut String> {
        let points = self.points.iter_mut().map(|report| &mut report.command);
        std::iter::once(&mut self.command).chain(points)
    }

    /// Returns the first run that broke an invariant of the protocol.
    #[must_use]
    pub fn violation(&self) -> Option<String> {
        self.reports().iter().flat_map(|report| &report.rows).find_map(|row| {
            let failure = row.failures.iter().find(|it| it.reason.starts_with("invariant"))?;
            Some(format!("{}, seed {}: {}", row.scheduler, failure.seed, failure.reason))
        })
    }

    /// Returns true if there are rows but none of their runs finished.
    #[must_use]
    pub fn has_nothing(&self) -> bool {
        let mut rows = self.reports().iter().flat_map(|report| &report.rows).peekable();
        rows.peek().is_some() && rows.all(|row| row.measures.is_empty())
    }

    /// Returns true if every expectation holds at every point.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.reports()
            .iter()
            .flat_map(|report| &report.findings.expectations)
            .all(|verdict| verdict.holds)
    }
}

/// The document in its JSON form, with the rows of all points in one list.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Document")]
struct Wire {
    /// Always `plait.compare/1`.
    schema: String,
    /// The command line that runs the comparison again.
    command: String,
    /// Seed of the first run of each row.
    seed: u64,
    /// Largest number of runs of a row.
    runs: u32,
    /// The workload as given; the workload of the first point if it is varied.
    workload: String,
    /// Name of the measure that speedups compare.
    primary_measure: String,
    /// The varied settings; empty without `--vary`. The values of the last one change fastest.
    varied: Vec<Varied>,
    /// The paths of the first point, the primary first.
    paths: Vec<PathReport>,
    /// Competing flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    compete: Vec<String>,
    /// The rows of all points, in the order of the points, as one table.
    rows: Vec<Row>,
    /// The points, each with its rows; one point without `--vary`.
    points: Vec<Report>,
    /// Plain TCP with the best median at the first point: `tcp:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    best_path: Option<String>,
    /// The verdicts on the expectations, at all points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    expectations: Vec<Verdict>,
    /// True if runs are missing because the comparison was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    /// SHA-256, in hexadecimal, of the measures and segment hash of each run.
    digest: String,
}

impl From<ComparisonDocument> for Wire {
    fn from(document: ComparisonDocument) -> Wire {
        let ComparisonDocument { command, varied, points, digest } = document;
        let first = points.first().cloned().unwrap_or_default();
        Wire {
            schema: SCHEMA.to_owned(),
            command,
            seed: first.seed,
            runs: points.iter().map(|point| point.runs).max().unwrap_or(0),
            workload: first.workload,
            primary_measure: first.primary_measure,
            varied,
            paths: first.paths,
            compete: first.compete,
            rows: points.iter().flat_map(|point| point.rows.iter().cloned()).collect(),
            best_path: first.findings.best_path,
            expectations: points
                .iter()
                .flat_map(|it| it.findings.expectations.iter().cloned())
                .collect(),
            interrupted: points.iter().any(|point| point.interrupted),
            points,
            digest,
        }
    }
}

impl From<Wire> for ComparisonDocument {
    fn from(wire: Wire) -> ComparisonDocument {
        let Wire { command, varied, points, digest, .. } = wire;
        ComparisonDocument { command, varied, points, digest }
    }
}

/// Returns the JSON Schema (draft 2020-12) of a command's document; the only command is `compare`.
#[must_use]
pub fn schema(command: &str) -> Option<serde_json::Value> {
    match command {
        "compare" => Some(schemars::schema_for!(ComparisonDocument).to_value()),
        _ => None,
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
