//! The report of a comparison: what `plait compare --json` prints.

mod path;

pub use path::{PathDelays, PathLosses, PathRates, PathReport};

use crate::expect::Verdict;
use crate::stats::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name and version of the document.
pub const SCHEMA: &str = "plait.compare/1";

/// The measure of what competing flows got.
pub(crate) const COMPETING: &str = "competing_mbps";

/// One point of a comparison: every row over the same paths, workload and seeds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The line that runs it again.
    pub command: String,
    /// Seed of the first run; those of the others are drawn from it.
    pub seed: u64,
    /// Runs of each row; 1 if nothing is random.
    pub runs: u32,
    /// Jitter of hosts in microseconds; absent without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_jitter_us: Option<u64>,
    /// What `--until ci=` came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// The workload as given.
    pub workload: String,
    /// The measure that speedups compare.
    pub primary_measure: String,
    /// The varied settings and their values at this point; empty without `--vary`.
    pub vary: BTreeMap<String, String>,
    /// The paths, the primary first.
    pub paths: Vec<PathReport>,
    /// Plain TCP flows beside the connection, as on the command line: `reno@wifi*2`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compete: Vec<String>,
    /// The rows: for each congestion controller the schedulers, then plain TCP on each path.
    pub rows: Vec<Row>,
    /// What its runs showed.
    #[serde(flatten)]
    pub findings: Findings,
    /// Whether runs are missing because it was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// SHA-256, in hexadecimal, over each run's measures and segment hash.
    pub digest: String,
    /// Every run that was made, row by row, if the world keeps them
    /// ([`KeepRuns`](crate::KeepRuns)).
    #[serde(skip)]
    pub each_run: Vec<RunRecord>,
}

/// What the runs of a comparison showed.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// Plain TCP with the best median, over all paths and controllers: `tcp:PATH`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_path: Option<String>,
    /// Its congestion controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub best_path_cc: Option<String>,
    /// Names of rows whose runs are identical: every segment at the same time, every measure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub identical: Vec<Vec<String>>,
    /// Differences of high percentiles that the medians do not show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tails: Vec<TailDifference>,
    /// Buffers that held rows back for a tenth of the time or more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<BufferLimit>,
    /// What became of the expectations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Verdict>,
}

/// What `--until ci=` came to.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Precision {
    /// Half of the width that every interval against the best row may have, as a share of the value.
    pub wanted: f64,
    /// The widest half of an interval that there is; absent after one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub widest: Option<f64>,
    /// Whether it is narrow enough; if not, the limit of runs was met, or it was interrupted.
    pub reached: bool,
    /// The most runs of a row that would have been made.
    pub max_runs: u32,
}

/// A high percentile of a row that is shorter than that of another, beyond chance.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TailDifference {
    /// The row.
    pub row: String,
    /// The row that it is compared with.
    pub other: String,
    /// The percentile: 99 or 100 (the longest) over messages, 95 over runs.
    pub percentile: u32,
    /// Whether it is one of messages, pooled over runs, and not one of runs.
    pub of_messages: bool,
    /// Its value in `row`.
    pub value: f64,
    /// Its value in `other`.
    pub other_value: f64,
    /// How many times better `row` is.
    pub times: f64,
}

/// A buffer that held rows back.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BufferLimit {
    /// The flag that makes it larger: `--sndbuf` or `--rcvbuf`.
    pub flag: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// The share of the time for which it held back the row that it held back longest.
    pub longest_share: f64,
    /// The rows that it held back for at least a tenth of the time.
    pub rows: Vec<String>,
}

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub struct RunRecord {
    /// Index of its row in [`Report::rows`].
    pub row: usize,
    /// Number of the run, from 0.
    pub run: u32,
    /// The seed that makes it again.
    pub seed: u64,
    /// Why it is in no statistic.
    pub failure: Option<String>,
    /// What was measured, by name; numbers of a path as `path_share.wifi`.
    pub values: Vec<(String, f64)>,
}

/// One row of the table.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// Index of its point in the list of points.
    pub point: usize,
    /// The varied settings and their values; empty without `--vary`.
    pub vary: BTreeMap<String, String>,
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
    /// Delays of the messages of all runs together, if the workload has messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Messages>,
    /// What was sent on which path.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// How it compares with the other rows.
    #[serde(flatten)]
    pub standing: Standing,
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

/// What a row sent on which path.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Traffic {
    /// First-transmission payload bytes of each path over all of them; mean of the runs.
    pub path_share: BTreeMap<String, f64>,
    /// Payload bytes sent on each path, copies and retransmissions included; mean of the runs.
    #[serde(default)]
    pub path_bytes: BTreeMap<String, f64>,
    /// Copies and reinjections over first transmissions, in payload bytes; mean of the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_share: Option<f64>,
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
}

/// How a row compares with the other rows.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// Ratio of the medians of the primary measure (of messages: of their pooled median delays) to
    /// those of the best single path over all controllers; above 1 is better for every measure. Absent
    /// if either row is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speedup_vs_best_path: Option<f64>,
    /// The same run by run: this row against the best single path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired_vs_best_path: Option<Difference>,
    /// Run by run against the best scheduler. Absent for that row itself, and if either is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired_vs_best: Option<Difference>,
    /// Schedulers of one group cannot be told apart from the best of the group; group 1 has the best of
    /// all. Absent for plain TCP beside schedulers, and if the row is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// Aggregation benefit of the median goodput against the goodputs of the single paths with the
    /// same controller: 1 is their sum, 0 the best of them, -1 nothing delivered. Absent for single
    /// paths, and where a row is incomplete or has no goodput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregation_benefit: Option<f64>,
}

/// A run that is in no statistic.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// The seed that makes this run again, as the only one.
    pub seed: u64,
    /// What became of it.
    pub reason: String,
}

/// Delays of the messages of all runs of a row, in milliseconds. Percentiles are interpolated; of runs
/// with more than 4,096 messages each, so many at even ranks count.
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
    /// Typical ratio of this row's value to the other's in one run, above 1 if this row's is larger. Of
    /// messages the value is the median delay of a run.
    pub ratio: f64,
    /// 95 % confidence interval of the ratio; absent for one run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// Whether the rows differ beyond chance, with all rows taken into account, and by more than 1 %.
    pub told_apart: bool,
    /// Runs whose ratio differs from `ratio` if all others have the same one. Absent if the ratio varies
    /// from run to run, or never.
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

/// What `plait compare --json` prints. It has the same shape with and without `--vary`: without it
/// there is one point.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(into = "Wire", from = "Wire")]
pub struct Document {
    /// The line that runs it again.
    pub command: String,
    /// The settings that were varied, the slowest first.
    pub varied: Vec<Varied>,
    /// One report for each point; the points of a grid in the order of the first setting's values,
    /// then of the second's.
    pub points: Vec<Report>,
    /// SHA-256, in hexadecimal: the point's without `--vary`, otherwise over those of the points.
    pub digest: String,
}

impl Document {
    /// The reports in it, in order.
    #[must_use]
    pub fn reports(&self) -> &[Report] {
        &self.points
    }

    /// The report, if nothing was varied.
    #[must_use]
    pub fn single(&self) -> Option<&Report> {
        self.points.first().filter(|_| self.varied.is_empty())
    }

    /// The lines that run it, or a point of it, again.
    pub fn commands(&mut self) -> impl Iterator<Item = &mut String> {
        let points = self.points.iter_mut().map(|report| &mut report.command);
        std::iter::once(&mut self.command).chain(points)
    }

    /// The first run in which an invariant of the protocol was broken.
    #[must_use]
    pub fn violation(&self) -> Option<String> {
        self.reports().iter().flat_map(|report| &report.rows).find_map(|row| {
            let failure = row.failures.iter().find(|it| it.reason.starts_with("invariant"))?;
            Some(format!("{}, seed {}: {}", row.scheduler, failure.seed, failure.reason))
        })
    }

    /// Whether it has rows and none of their runs has finished.
    #[must_use]
    pub fn has_nothing(&self) -> bool {
        let mut rows = self.reports().iter().flat_map(|report| &report.rows).peekable();
        rows.peek().is_some() && rows.all(|row| row.measures.is_empty())
    }

    /// Whether every expectation holds at every point.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.reports()
            .iter()
            .flat_map(|report| &report.findings.expectations)
            .all(|verdict| verdict.holds)
    }
}

/// The document as it is written: the rows of all points in one list.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "Document")]
struct Wire {
    /// Always `plait.compare/1`.
    schema: String,
    /// The line that runs it again.
    command: String,
    /// Seed of the first run of each row.
    seed: u64,
    /// Most runs that a row has.
    runs: u32,
    /// The workload as given; that of the first point if it is varied.
    workload: String,
    /// The measure that speedups compare.
    primary_measure: String,
    /// The settings that were varied, the slowest first; empty without `--vary`.
    varied: Vec<Varied>,
    /// The paths of the first point, the primary first.
    paths: Vec<PathReport>,
    /// Plain TCP flows beside the connection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    compete: Vec<String>,
    /// The rows of all points, in the order of the points: a table in itself.
    rows: Vec<Row>,
    /// The points, each with its rows: one without `--vary`.
    points: Vec<Report>,
    /// Plain TCP with the best median at the first point: `tcp:PATH`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    best_path: Option<String>,
    /// What became of the expectations, at all points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    expectations: Vec<Verdict>,
    /// Whether runs are missing because it was interrupted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    /// SHA-256, in hexadecimal, over each run's measures and segment hash.
    digest: String,
}

impl From<Document> for Wire {
    fn from(document: Document) -> Wire {
        let Document { command, varied, points, digest } = document;
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

impl From<Wire> for Document {
    fn from(wire: Wire) -> Document {
        let Wire { command, varied, points, digest, .. } = wire;
        Document { command, varied, points, digest }
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
