//! The report of one run: its document, its timeline and its text.

use crate::recorder::Recorder;
use crate::render::{PathCounters, PathSeries, Timeline, again, figure, percent, wrap};
use plait_app::Measures;
use plait_app::measure::{MEASURES, PathMeasures, Value};
use plait_base::Time;
use plait_lab::{Cell, PathReport};
use plait_sim::Outcome;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The report of one run.
///
/// ```
/// use plait_report::{recorder::Recorder, run::Report};
///
/// let mut draft = plait_lab::RawScenario::new();
/// for (name, text) in [
///     ("path", "wifi-home"),
///     ("path", "lte-att"),
///     ("workload", "download:64kB"),
///     ("schedulers", "ecf"),
/// ] {
///     draft.argument(name, text)?;
/// }
/// let scenario = draft.build()?;
/// let cell = &plait_lab::cells(&scenario)[0];
/// let paths = scenario.paths.iter().map(|path| path.name.as_str());
/// let mut recorder = Recorder::new(scenario.workload.sender(), paths);
/// let outcome = plait_lab::simulate(cell, scenario.seed, &mut recorder);
/// let report = Report::of(cell, outcome, recorder, scenario.command_line(), false);
/// assert!(report.document.complete);
/// assert!(report.to_text(80, false).contains("wifi-home"));
/// # Ok::<(), plait_lab::ScenarioError>(())
/// ```
#[derive(Debug)]
pub struct Report {
    /// The document of `plait run --json`.
    pub document: RunDocument,
    /// Each path over time.
    pub timeline: Timeline,
    measures: Measures,
}

impl Report {
    /// Creates the report of a run that a recorder watched, with the seed of its scenario.
    /// `command` reproduces the run. `stopped` is true if the user asked it to end early.
    #[must_use]
    pub fn of(
        cell: &Cell,
        outcome: Outcome,
        recorder: Recorder,
        command: String,
        stopped: bool,
    ) -> Report {
        let scenario = &cell.scenario;
        let title = format!("{cell}, {}, {}, seed {}", cell.cc, scenario.workload, scenario.seed);
        let complete = outcome.complete();
        // A run that was complete before the interrupt counts as complete.
        let interrupted_ms =
            (!complete && stopped).then(|| outcome.ended.since(Time::ZERO).as_millis_f64());
        let competing = plait_lab::competing(scenario, &outcome);
        let broke = plait_lab::broke(cell, &outcome);
        let hash = outcome.digest.value();
        let ended = outcome.ended;
        let connection = outcome.pairs.into_iter().flatten().next();
        let measures = connection.map(|connection| connection.measures).unwrap_or_default();
        let mut timeline = recorder.finish(title, ended);
        tell_paths(&mut timeline, cell, &measures);
        let kinds = scenario.compete.iter().map(ToString::to_string);
        let document = RunDocument {
            competing_mbps: kinds.zip(competing).collect(),
            broke,
            interrupted_ms,
            ..document(cell, &measures, &timeline, (complete, hash, command))
        };
        Report { document, timeline, measures }
    }

    /// Returns the timeline, the measures, and the command that runs it again.
    #[must_use]
    pub fn to_text(&self, width: usize, colour: bool) -> String {
        let drawing = self.timeline.to_text(width, colour);
        let measured = headline(&self.measures, width);
        format!("{drawing}\n{measured}{}", self.document.ending(width))
    }
}

/// `plait run --json`.
#[derive(Serialize, JsonSchema, Debug)]
#[schemars(title = "Document")]
pub struct RunDocument {
    /// Always `plait.run/1`.
    pub schema: &'static str,
    /// Command line that runs it again.
    pub command: String,
    /// The seed.
    pub seed: u64,
    /// The scheduler in canonical form, or `tcp:PATH`.
    pub scheduler: String,
    /// The congestion controller in canonical form.
    pub cc: String,
    /// The workload.
    pub workload: String,
    /// The paths, the primary first.
    pub paths: Vec<PathReport>,
    /// Goodput in Mbit/s of each competing flow, by kind: `reno@wifi*2`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub competing_mbps: BTreeMap<String, Vec<f64>>,
    /// True if the workload finished.
    pub complete: bool,
    /// Time and reason of a failure of the connection; absent if it did not fail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke: Option<String>,
    /// Virtual time at which the user stopped the run; all values end there. Absent if it was not
    /// stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted_ms: Option<f64>,
    /// Measures of the run. A measure that the workload lacks is absent.
    pub measures: BTreeMap<String, f64>,
    /// Measures and totals of each path, in the order of `paths`.
    pub per_path: Vec<PathDocument>,
    /// Time for which the sender was blocked, by cause.
    pub blocked_ms: BTreeMap<String, f64>,
    /// Length of a bin of `timeline`.
    pub bin_ms: f64,
    /// Each path over time.
    pub timeline: Vec<SeriesDocument>,
    /// Hash over every segment sent and delivered, in hexadecimal.
    pub segment_hash: String,
}

/// One path's part.
#[derive(Serialize, JsonSchema, Debug)]
pub struct PathDocument {
    /// Its name.
    pub name: String,
    /// Payload bytes sent, all kinds.
    pub sent_bytes: u64,
    /// Data segments sent.
    pub segments: u64,
    /// Bytes retransmitted on the same subflow.
    pub retransmitted_bytes: u64,
    /// Bytes that were sent before on another subflow.
    pub reinjected_bytes: u64,
    /// Payload bytes that the quota leaves to the sender; absent without a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_left_bytes: Option<u64>,
    /// Payload bytes that the sender has sent beyond the quota; absent without a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_over_bytes: Option<u64>,
    /// Packets lost on the path, in both directions.
    pub lost_packets: u64,
    /// Its measures.
    pub measures: BTreeMap<String, f64>,
}

/// One path over time, with one value per bin.
#[derive(Serialize, JsonSchema, Debug)]
pub struct SeriesDocument {
    /// Its name.
    pub name: String,
    /// Payload bytes sent.
    pub sent_bytes: Vec<u64>,
    /// Largest congestion window in the bin; 0 before the subflow exists.
    pub cwnd_bytes: Vec<u64>,
    /// Largest queue in the bin, in bytes, in the direction of the data.
    pub queue_bytes: Vec<u64>,
    /// Packets lost.
    pub lost_packets: Vec<u32>,
}

impl RunDocument {
    /// Returns the text below the measures: the competing flows, the reason for an early end, and
    /// the command that runs it again.
    fn ending(&self, width: usize) -> String {
        let unfinished = match self.interrupted_ms {
            Some(at) => format!("Interrupted after {} s.\n", figure(at / 1e3)),
            None if self.complete => String::new(),
            None => match &self.broke {
                Some(broke) => format!("The workload did not finish: {broke}.\n"),
                None => "The workload did not finish.\n".to_owned(),
            },
        };
        let again = again(&self.command, width);
        format!("{}{unfinished}{again}\n", beside(&self.competing_mbps))
    }
}

/// Copies the measures and the quota of each path to the timeline.
fn tell_paths(timeline: &mut Timeline, cell: &Cell, measures: &Measures) {
    for (counters, path) in timeline.counters.iter_mut().zip(&cell.scenario.paths) {
        // A single path ignores its quota.
        counters.quota = path.usage.quota.filter(|_| cell.multipath());
    }
    let sent: u64 = timeline.counters.iter().map(|path| path.sent_bytes).sum();
    for (counters, path) in timeline.counters.iter_mut().zip(&measures.paths) {
        counters.share = counters.sent_bytes as f64 / sent.max(1) as f64;
        counters.rtt_ms = match (path.rtt_min_ms, path.rtt_ms, path.rtt_max_ms) {
            (Some(min), Some(mean), Some(max)) => Some((min, mean, max)),
            _ => None,
        };
    }
}

/// Returns the measures that the run has, on as many lines as needed.
fn headline(measures: &Measures, width: usize) -> String {
    let parts = MEASURES.iter().filter_map(|entry| match entry.value {
        Value::Run(of) => {
            let text = match of(measures)? {
                share if entry.name.ends_with("_share") => percent(share),
                value if value.fract() == 0.0 => format!("{value}"),
                value => figure(value),
            };
            Some(format!("{} {text}", entry.name))
        }
        Value::Path(_) => None,
    });
    wrap(&parts.collect::<Vec<_>>().join(", "), width.min(96)).join("\n") + "\n"
}

/// Returns a line for each kind of competing flows.
fn beside(competing: &BTreeMap<String, Vec<f64>>) -> String {
    let line = |(kind, flows): (&String, &Vec<f64>)| {
        let flows: Vec<String> = flows.iter().map(|mbps| figure(*mbps)).collect();
        format!("competing flows: {kind} {} Mbit/s\n", flows.join(", "))
    };
    competing.iter().map(line).collect()
}

fn document(
    cell: &Cell,
    measures: &Measures,
    timeline: &Timeline,
    (complete, hash, command): (bool, u64, String),
) -> RunDocument {
    let scenario = &cell.scenario;
    let of_run = MEASURES.iter().filter_map(|entry| match entry.value {
        Value::Run(of) => Some((entry.name.to_owned(), of(measures)?)),
        Value::Path(_) => None,
    });
    let mut blocked_ms = BTreeMap::new();
    for (cause, from, to) in &timeline.blocked {
        *blocked_ms.entry(cause.key().to_owned()).or_insert(0.0) += to.since(*from).as_millis_f64();
    }
    let per_path = timeline.counters.iter().enumerate();
    RunDocument {
        schema: "plait.run/1",
        command,
        seed: scenario.seed,
        scheduler: cell.to_string(),
        cc: cell.cc.to_string(),
        workload: scenario.workload.to_string(),
        paths: scenario.paths.iter().map(|path| path.report(scenario.ideal)).collect(),
        competing_mbps: BTreeMap::new(),
        complete,
        broke: None,
        interrupted_ms: None,
        measures: of_run.collect(),
        per_path: per_path.map(|(at, path)| path_document(path, measures.paths.get(at))).collect(),
        blocked_ms,
        bin_ms: timeline.bin.as_millis_f64(),
        timeline: timeline.paths.iter().map(series_document).collect(),
        segment_hash: format!("{hash:016x}"),
    }
}

fn path_document(counters: &PathCounters, measures: Option<&PathMeasures>) -> PathDocument {
    let of_path = MEASURES.iter().filter_map(|entry| match (entry.value, measures) {
        (Value::Path(of), Some(measures)) => Some((entry.name.to_owned(), of(measures)?)),
        _ => None,
    });
    PathDocument {
        name: counters.name.clone(),
        sent_bytes: counters.sent_bytes,
        segments: counters.segments,
        retransmitted_bytes: counters.retransmitted_bytes,
        reinjected_bytes: counters.reinjected_bytes,
        quota_left_bytes: counters.quota_rest().map(|(left, _)| left),
        quota_over_bytes: counters.quota_rest().map(|(_, over)| over),
        lost_packets: counters.lost,
        measures: of_path.collect(),
    }
}

fn series_document(path: &PathSeries) -> SeriesDocument {
    SeriesDocument {
        name: path.name.clone(),
        sent_bytes: path.sent_bytes.clone(),
        cwnd_bytes: path.cwnd_bytes.clone(),
        queue_bytes: path.queue_bytes.clone(),
        lost_packets: path.lost.clone(),
    }
}
