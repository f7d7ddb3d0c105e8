//! `plait run`: one run, in depth.

use crate::console::{Console, check_writable, deliver, json, write};
use crate::export::Watchers;
use crate::export::capture::Capture;
use crate::export::events::{EventLog, Header};
use crate::export::page::{self, Collector};
use crate::export::qlog::Qlog;
use crate::failure::Failure;
use crate::flags::RunFlags;
use crate::progress::{self, Clock};
use crate::recorder::Recorder;
use crate::render::{PathCounters, PathSeries, Timeline, again, figure, percent};
use plait_app::measure::{MEASURES, Value};
use plait_base::Time;
use plait_lab::{Cell, PathReport, RawScenario, Scenario};
use plait_sim::Watch;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

const EXAMPLES: &str = "Examples:
  plait run --path wifi-home --path lte-att --workload download:2MB
  plait run --path wifi-home --path lte-att --workload bulk:5s --scheduler ecf
  plait run --path wifi-home --path lte-att --workload bulk:2s --html run.html";

/// One run in depth: each path over time, and what held the sender back
///
/// Takes one scheduler (minrtt where nothing is said) and one congestion controller; with a single
/// path it is plain TCP. It is the first run that `plait compare` makes with the same seed.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: RunFlags,
    /// Write the scenario to this file as well
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    save_scenario: Option<PathBuf>,
    /// Write one JSON document (`plait schema run`)
    #[arg(long)]
    json: bool,
    /// Write to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write a page with the run drawn over time; it needs nothing but a browser
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every event as JSON lines (`plait schema events`)
    #[arg(long, value_name = "FILE", alias = "trace-events")]
    events: Option<PathBuf>,
    /// Write the packets, as the data's sender sees them, with the scheduler's reasons (pcapng)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pcap: Option<PathBuf>,
    /// Write what the data's sender sees and decides in the sequential form of qlog
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    qlog: Option<PathBuf>,
}

/// `plait run --json`.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct Document {
    /// Always `plait.run/1`.
    schema: &'static str,
    /// The line that runs it again.
    pub(crate) command: String,
    /// The seed.
    pub(crate) seed: u64,
    /// The scheduler in canonical form, or `tcp:PATH`.
    pub(crate) scheduler: String,
    /// The congestion controller in canonical form.
    pub(crate) cc: String,
    /// The workload.
    pub(crate) workload: String,
    /// The paths, the primary first.
    pub(crate) paths: Vec<PathReport>,
    /// Goodput in Mbit/s of each flow that competed, by kind: `reno@wifi*2`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) competing_mbps: BTreeMap<String, Vec<f64>>,
    /// Whether the workload finished.
    pub(crate) complete: bool,
    /// That the connection broke, when and why, where it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    broke: Option<String>,
    /// Whether Ctrl-C ended the run, in virtual time; all else is until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interrupted_ms: Option<f64>,
    /// Measures of the run; what the workload does not have is absent.
    pub(crate) measures: BTreeMap<String, f64>,
    /// Measures and totals of each path, in the order of `paths`.
    per_path: Vec<PathDocument>,
    /// How long the sender was held back, by what.
    blocked_ms: BTreeMap<String, f64>,
    /// Length of a bin of `timeline`.
    bin_ms: f64,
    /// Each path over time.
    timeline: Vec<SeriesDocument>,
    /// Hash over every segment sent and delivered, in hexadecimal.
    pub(crate) segment_hash: String,
}

/// One path's part.
#[derive(Serialize, JsonSchema, Debug)]
struct PathDocument {
    /// Its name.
    name: String,
    /// Payload bytes sent, all kinds.
    sent_bytes: u64,
    /// Data segments sent.
    segments: u64,
    /// Bytes sent again on the subflow that carried them.
    retransmitted_bytes: u64,
    /// Bytes that had been sent on another subflow.
    reinjected_bytes: u64,
    /// Packets that the path lost, both ways.
    lost_packets: u64,
    /// Its measures.
    measures: BTreeMap<String, f64>,
}

/// One path over time, one value a bin.
#[derive(Serialize, JsonSchema, Debug)]
struct SeriesDocument {
    /// Its name.
    name: String,
    /// Payload bytes sent.
    sent_bytes: Vec<u64>,
    /// Congestion window, greatest in the bin; 0 before there is one.
    cwnd_bytes: Vec<u64>,
    /// Bytes in the queue in the direction of the data, greatest in the bin.
    queue_bytes: Vec<u64>,
    /// Packets lost.
    lost_packets: Vec<u32>,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let (scenario, cell) = args.cell()?;
    check_writable("--output", args.output.as_deref())?;
    args.check_distinct()?;
    super::compare::save(&scenario, args.save_scenario.as_deref())?;
    let command = one_run_line(&scenario, "plait run");
    let names = scenario.paths.iter().map(|path| path.name.as_str());
    let mut recorder = Recorder::new(scenario.workload.sender(), names);
    let mut log = args.event_log(&scenario, &cell, &command)?;
    let mut capture = args.capture(&scenario, &cell, &command)?;
    let mut qlog = args.qlog(&cell, &command)?;
    let mut drawn = args.drawn(&scenario)?;
    let cancelled = progress::on_interrupt()?;
    let mut clock = Clock::new(console, &scenario.workload, cancelled);
    console.remark(2, &format!("plait: {cell}, seed {}", scenario.seed));
    let mut watchers = Watchers(vec![&mut recorder, &mut clock]);
    watchers.0.extend(log.as_mut().map(|log| log as &mut dyn Watch));
    watchers.0.extend(qlog.as_mut().map(|qlog| qlog as &mut dyn Watch));
    watchers.0.extend(capture.as_mut().map(|capture| capture as &mut dyn Watch));
    watchers.0.extend(drawn.as_mut().map(|(_, seen)| seen as &mut dyn Watch));
    let outcome = plait_lab::simulate(&cell, scenario.seed, &mut watchers);
    clock.clear();
    finish(log, capture, qlog)?;
    if let Some(violation) = outcome.violation {
        return Err(Failure::Internal(format!("invariant violated: {violation}")));
    }
    let title = format!("{cell}, {}, {}, seed {}", cell.cc, scenario.workload, scenario.seed);
    let complete = outcome.complete();
    // A run that was done by then is a whole one.
    let interrupted = (!complete && cancelled.load(Ordering::Relaxed))
        .then(|| outcome.ended.since(Time::ZERO).as_millis_f64());
    let competing = plait_lab::competing(&scenario, &outcome);
    let broke = plait_lab::broke(&cell, &outcome);
    let connection = outcome.pairs.into_iter().flatten().next();
    let measures = connection.map(|connection| connection.measures).unwrap_or_default();
    let mut timeline = recorder.finish(title, outcome.ended);
    tell_paths(&mut timeline, &measures);
    let hash = outcome.digest.value();
    let mut document = document(&scenario, &cell, &measures, &timeline, (complete, hash, command));
    let kinds = scenario.compete.iter().map(ToString::to_string);
    document.competing_mbps = kinds.zip(competing).collect();
    document.interrupted_ms = interrupted;
    document.broke.clone_from(&broke);
    if let Some((file, seen)) = drawn {
        write("--html", file, &page::render(&document, &timeline.counters, seen)?)?;
    }
    let text = if args.json {
        json(&document)?
    } else {
        let console = if args.output.is_some() { console.plain() } else { console };
        let drawing = timeline.to_text(console.width, console.colour);
        let measured = headline(&measures, console.width);
        format!("{drawing}\n{measured}{}", document.ending(console.width))
    };
    deliver(&text, args.output.as_deref())?;
    match (complete, interrupted) {
        (true, _) => Ok(()),
        (false, Some(_)) => Err(Failure::Interrupted),
        (false, None) => Err(unfinished(outcome.ended, broke, &timeline)),
    }
}

/// Why the workload did not finish, as far as that can be seen.
fn unfinished(ended: Time, broke: Option<String>, timeline: &Timeline) -> Failure {
    let idle = |path: &&PathCounters| path.segments == 0;
    let idle: Vec<&str> =
        timeline.counters.iter().filter(idle).map(|path| path.name.as_str()).collect();
    let nowhere = match idle.as_slice() {
        [] => String::new(),
        names => format!("; no data went over {}", names.join(", ")),
    };
    let ended = ended.since(Time::ZERO);
    let what = broke.unwrap_or_else(|| format!("the workload did not finish in {ended}"));
    Failure::Peer(format!("{what}{nowhere}\n  see what happened: --events FILE"))
}

/// Ends the files that were written while the run went on.
fn finish(
    log: Option<EventLog>,
    capture: Option<Capture>,
    qlog: Option<Qlog>,
) -> Result<(), Failure> {
    log.map_or(Ok(()), EventLog::finish)?;
    capture.map_or(Ok(()), Capture::finish)?;
    qlog.map_or(Ok(()), Qlog::finish)
}

/// Gives the drawn paths what was measured of them.
fn tell_paths(timeline: &mut Timeline, measures: &plait_app::Measures) {
    let sent: u64 = timeline.counters.iter().map(|path| path.sent_bytes).sum();
    for (counters, path) in timeline.counters.iter_mut().zip(&measures.paths) {
        counters.share = counters.sent_bytes as f64 / sent.max(1) as f64;
        counters.rtt_ms = match (path.rtt_min_ms, path.rtt_ms, path.rtt_max_ms) {
            (Some(min), Some(mean), Some(max)) => Some((min, mean, max)),
            _ => None,
        };
    }
}

impl Document {
    /// What stands below the measures: the flows beside it, how it ended where that was early, and
    /// the line that runs it again.
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

impl Args {
    /// Fails where two flags name one file.
    fn check_distinct(&self) -> Result<(), Failure> {
        let files = [
            ("--output", &self.output),
            ("--html", &self.html),
            ("--events", &self.events),
            ("--pcap", &self.pcap),
            ("--qlog", &self.qlog),
            ("--save-scenario", &self.save_scenario),
        ];
        let mut named = files.iter().filter_map(|(flag, file)| Some((flag, file.as_deref()?)));
        while let Some((flag, file)) = named.next() {
            if let Some((other, _)) = named.clone().find(|(_, other)| *other == file) {
                let file = file.display();
                let text = format!("{other}: `{file}`: {flag} names the same file");
                return Err(Failure::Usage(text));
            }
        }
        Ok(())
    }

    /// The file of `--events`, with its header.
    fn event_log(
        &self,
        scenario: &Scenario,
        cell: &Cell,
        command: &str,
    ) -> Result<Option<EventLog>, Failure> {
        let Some(file) = &self.events else { return Ok(None) };
        let paths: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
        let header = Header {
            schema: "plait.events/1",
            command,
            scenario: scenario.to_toml(),
            seed: scenario.seed,
            version: format!("{} ({})", env!("CARGO_PKG_VERSION"), env!("PLAIT_COMMIT")),
            scheduler: cell.to_string(),
            cc: cell.cc.to_string(),
            workload: scenario.workload.to_string(),
            paths: &paths,
        };
        EventLog::create(file, header).map(Some)
    }

    /// The file of `--qlog`.
    fn qlog(&self, cell: &Cell, command: &str) -> Result<Option<Qlog>, Failure> {
        let create = |file: &PathBuf| Qlog::create(file, cell, command);
        self.qlog.as_ref().map(create).transpose()
    }

    /// The file of `--pcap`.
    fn capture(
        &self,
        scenario: &Scenario,
        cell: &Cell,
        command: &str,
    ) -> Result<Option<Capture>, Failure> {
        let create = |file: &PathBuf| Capture::create(file, cell, scenario.seed, command);
        self.pcap.as_ref().map(create).transpose()
    }

    /// The file of `--html` and the observer for it. The file is made at once: a run is not made
    /// for a page that cannot be written.
    fn drawn(&self, scenario: &Scenario) -> Result<Option<(&Path, Collector)>, Failure> {
        let Some(file) = self.html.as_deref() else { return Ok(None) };
        write("--html", file, "")?;
        let paths = scenario.paths.iter();
        let outages = paths.map(|path| [path.outages.as_slice(), &path.gone].concat()).collect();
        let seen = Collector::new(scenario.workload.sender(), outages);
        Ok(Some((file, seen)))
    }

    /// The one cell that was asked for.
    pub(crate) fn cell(&self) -> Result<(Scenario, Cell), Failure> {
        let draft = self.scenario.0.draft().map_err(|error| Failure::Usage(error.to_string()))?;
        one_cell(draft, "plait run")
    }
}

/// The scenario of one run and its cell, for `command`; `flag` names its scheduler.
pub(crate) fn one_cell(mut draft: RawScenario, command: &str) -> Result<(Scenario, Cell), Failure> {
    // The flag of one run is in the singular.
    let usage = |error: plait_lab::ScenarioError| {
        Failure::Usage(error.to_string().replacen("--schedulers:", "--scheduler:", 1))
    };
    for (name, one) in [("schedulers", "minrtt"), ("runs", "1")] {
        if !draft.says(name) {
            draft.argument(name, one).map_err(usage)?;
        }
    }
    let mut scenario = draft.build().map_err(usage)?;
    // A file of `plait compare` may ask for many; this is the first of them.
    scenario.runs = 1;
    super::compare::check_window(&scenario)?;
    let several = |flag: &str, given: usize, allowed: &str| {
        Failure::Usage(format!(
            "--{flag}: `{command}` takes one, {given} are given\n  allowed: {allowed}"
        ))
    };
    if scenario.schedulers.len() > 1 && scenario.paths.len() > 1 {
        let names: Vec<String> = scenario.schedulers.iter().map(ToString::to_string).collect();
        let others = if command == "plait explain" {
            format!(
                "one, and others to compare its decisions with: --scheduler {} --compare-with {}",
                names[0],
                names[1..].join(",")
            )
        } else {
            format!("one of {}; `plait compare` runs several", names.join(" "))
        };
        return Err(several("scheduler", names.len(), &others));
    }
    if scenario.ccs.len() > 1 {
        let names: Vec<String> = scenario.ccs.iter().map(ToString::to_string).collect();
        return Err(several("cc", names.len(), &format!("one of {}", names.join(" "))));
    }
    if !scenario.vary.is_empty() || !scenario.expect.is_empty() {
        let text = format!("`{command}` is one run: --vary and --expect belong to `plait compare`");
        return Err(Failure::Usage(text));
    }
    if scenario.precision.is_some() {
        let text = format!(
            "--until: `{command}` is one run: ci= belongs to `plait compare`\n  allowed: a time"
        );
        return Err(Failure::Usage(text));
    }
    let cell = plait_lab::cells(&scenario).into_iter().next();
    let cell = cell.ok_or_else(|| Failure::Internal("a scenario without a row".to_owned()))?;
    Ok((scenario, cell))
}

/// The line that runs one run again by `command`.
pub(crate) fn one_run_line(scenario: &Scenario, command: &str) -> String {
    let line = scenario.command_line().replacen("plait compare", command, 1);
    line.replacen(" --schedulers ", " --scheduler ", 1).replacen(" --runs 1 ", " ", 1)
}

/// The measures of the run that are there, on as many lines as they need.
fn headline(measures: &plait_app::Measures, width: usize) -> String {
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
    crate::render::wrap(&parts.collect::<Vec<_>>().join(", "), width.min(96)).join("\n") + "\n"
}

/// A line for each kind of competing flows.
fn beside(competing: &BTreeMap<String, Vec<f64>>) -> String {
    let line = |(kind, flows): (&String, &Vec<f64>)| {
        let flows: Vec<String> = flows.iter().map(|mbps| figure(*mbps)).collect();
        format!("beside it: {kind} {} Mbit/s\n", flows.join(", "))
    };
    competing.iter().map(line).collect()
}

fn document(
    scenario: &Scenario,
    cell: &Cell,
    measures: &plait_app::Measures,
    timeline: &Timeline,
    (complete, hash, command): (bool, u64, String),
) -> Document {
    let of_run = MEASURES.iter().filter_map(|entry| match entry.value {
        Value::Run(of) => Some((entry.name.to_owned(), of(measures)?)),
        Value::Path(_) => None,
    });
    let mut blocked_ms = BTreeMap::new();
    for (cause, from, to) in &timeline.blocked {
        *blocked_ms.entry(cause.key().to_owned()).or_insert(0.0) += to.since(*from).as_millis_f64();
    }
    let per_path = timeline.counters.iter().enumerate();
    Document {
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

fn path_document(
    counters: &PathCounters,
    measures: Option<&plait_app::measure::PathMeasures>,
) -> PathDocument {
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
