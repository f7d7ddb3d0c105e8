//! `plait run`: makes one run and reports it in depth.

use crate::console::{Console, check_writable, deliver, json, write};
use crate::failure::Failure;
use crate::flags::RunFlags;
use crate::progress::{self, Clock};
use plait_app::file;
use plait_base::Time;
use plait_lab::{Cell, RawScenario, Scenario};
use plait_report::capture::Capture;
use plait_report::events::{EventLog, Header};
use plait_report::page::{self, Collector};
use plait_report::qlog::Qlog;
use plait_report::recorder::Recorder;
use plait_report::run::Report;
use plait_report::{Error, Watchers};
use plait_sim::Watch;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

const EXAMPLES: &str = "Examples:
  plait run --path wifi-home --path lte-att --workload download:2MB
  plait run --path wifi-home --path lte-att --workload bulk:5s --scheduler ecf
  plait run --path wifi-home --path lte-att --workload bulk:2s --html run.html";

/// Show one run in depth: paths over time, and why the sender waits
///
/// Takes one scheduler and one congestion controller. With a single path, the run
/// is plain TCP. The run is the same as the first run of `plait compare` with the same seed.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: RunFlags,
    /// Also write the scenario to this file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    save_scenario: Option<PathBuf>,
    /// Write one JSON document (`plait schema run`)
    #[arg(long)]
    json: bool,
    /// Write to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Draw the run over time on an HTML page
    ///
    /// A browser shows the page without a network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write every event as JSON lines
    ///
    /// `plait schema events` describes them.
    #[arg(long, value_name = "FILE", alias = "trace-events")]
    events: Option<PathBuf>,
    /// Write the packets at the sender of the data, with the scheduler's reasons (pcapng)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pcap: Option<PathBuf>,
    /// Write the packets and decisions of the sender of the data, in the sequential form of qlog
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    qlog: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let cell = args.cell()?;
    let scenario = &cell.scenario;
    check_writable("--output", args.output.as_deref())?;
    args.check_distinct()?;
    super::compare::save(scenario, args.save_scenario.as_deref())?;
    let command = cell.command_line("plait run");
    let names = scenario.paths.iter().map(|path| path.name.as_str());
    let mut recorder = Recorder::new(scenario.workload.sender(), names);
    let mut log = args.event_log(&cell, &command)?;
    let mut capture = args.capture(&cell, &command)?;
    let mut qlog = args.qlog(&cell, &command)?;
    let mut drawn = args.drawn(scenario)?;
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
    let ended = outcome.ended;
    let stopped = cancelled.load(Ordering::Relaxed);
    let report = Report::of(&cell, outcome, recorder, command, stopped);
    let Report { document, timeline, .. } = &report;
    if let Some((file, seen)) = drawn {
        write("--html", file, &page::render(document, &timeline.counters, seen)?)?;
    }
    let text = if args.json {
        json(document)?
    } else {
        let console = if args.output.is_some() { console.plain() } else { console };
        report.to_text(console.width, console.colour)
    };
    deliver(&text, args.output.as_deref())?;
    match (document.complete, document.interrupted_ms) {
        (true, _) => Ok(()),
        (false, Some(_)) => Err(Failure::Interrupted),
        (false, None) => Err(unfinished(ended, &report)),
    }
}

/// Explains why the workload did not finish, if the cause is visible.
fn unfinished(ended: Time, report: &Report) -> Failure {
    let counters = report.timeline.counters.iter();
    let idle: Vec<&str> =
        counters.filter(|path| path.segments == 0).map(|path| path.name.as_str()).collect();
    let nowhere = match idle.as_slice() {
        [] => String::new(),
        names => format!("; no data went over {}", names.join(", ")),
    };
    let ended = ended.since(Time::ZERO);
    let broke = report.document.broke.clone();
    let what = broke.unwrap_or_else(|| format!("the workload did not finish in {ended}"));
    Failure::Peer(format!("{what}{nowhere}\n  see what happened: --events FILE"))
}

/// Completes the files that were written during the run.
fn finish(
    log: Option<EventLog>,
    capture: Option<Capture>,
    qlog: Option<Qlog>,
) -> Result<(), Error> {
    log.map_or(Ok(()), EventLog::finish)?;
    capture.map_or(Ok(()), Capture::finish)?;
    qlog.map_or(Ok(()), Qlog::finish)
}

impl Args {
    /// Fails if two flags name the same file.
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
                let text =
                    format!("{other}: `{file}`: {flag} names the same file\n  give another one");
                return Err(Failure::Usage(text));
            }
        }
        Ok(())
    }

    /// Creates the file of `--events`, with its header.
    fn event_log(&self, cell: &Cell, command: &str) -> Result<Option<EventLog>, Failure> {
        let Some(file) = &self.events else { return Ok(None) };
        let scenario = &cell.scenario;
        let paths: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
        let header = Header {
            schema: "plait.events/1",
            command,
            scenario: scenario.to_toml(),
            seed: scenario.seed,
            version: plait_report::PROGRAM.to_owned(),
            scheduler: cell.to_string(),
            cc: cell.cc.to_string(),
            workload: scenario.workload.to_string(),
            paths: &paths,
        };
        Ok(Some(EventLog::create(file, header)?))
    }

    /// Creates the file of `--qlog`.
    fn qlog(&self, cell: &Cell, command: &str) -> Result<Option<Qlog>, Failure> {
        let create = |file: &PathBuf| Qlog::create(file, cell, command);
        Ok(self.qlog.as_ref().map(create).transpose()?)
    }

    /// Creates the file of `--pcap`.
    fn capture(&self, cell: &Cell, command: &str) -> Result<Option<Capture>, Failure> {
        let create = |file: &PathBuf| Capture::create(file, cell, cell.scenario.seed, command);
        Ok(self.pcap.as_ref().map(create).transpose()?)
    }

    /// Creates the file of `--html` and its observer. The file is created first, so that no run is wasted on a
    /// page that cannot be written.
    fn drawn(&self, scenario: &Scenario) -> Result<Option<(&Path, Collector)>, Failure> {
        let Some(file) = self.html.as_deref() else { return Ok(None) };
        write("--html", file, "")?;
        Ok(Some((file, page::collector(scenario))))
    }

    /// Returns the only cell of the scenario.
    pub(crate) fn cell(&self) -> Result<Cell, Failure> {
        one_cell(&self.scenario.0.draft()?, "plait run")
    }
}

/// Returns the only run of a scenario for `command`, whose scheduler flag is singular.
pub(crate) fn one_cell(draft: &RawScenario, command: &str) -> Result<Cell, Failure> {
    draft.build_one(command, &file::named).map_err(|error| {
        Failure::Usage(error.to_string().replacen("--schedulers:", "--scheduler:", 1))
    })
}
