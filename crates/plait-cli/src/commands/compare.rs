//! `plait compare`: runs one workload over the given paths with all schedulers and many seeds.

use crate::console::{Console, json, write};
use crate::failure::Failure;
use crate::flags::ScenarioFlags;
use crate::output::{Output, TableFormat};
use crate::progress::{self, Tally};
use plait_app::file;
use plait_lab::{Attentive, ComparisonDocument, Control, KeepRuns, Scenario, Simulator};
use plait_report::capture::Capture;
use plait_report::render::comparison;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

const EXAMPLES: &str = "Examples:
  plait compare --path wifi-home --path lte-att --workload download:512kB
  plait compare --path wifi-home --path a:rtt=9ms,rate=1mbit --workload bulk:2s
  plait compare --path wifi-home --path lte-att --workload burst:15seg --json";

/// Compare schedulers over the same workload, paths and seeds
///
/// The report has a row for every scheduler, and a row for plain TCP on each path. Write each number
/// with its unit: 25mbit, 64KiB, 15seg, 40ms, 1%.
///
/// Exit codes: 0 if a run has finished (the table names unfinished runs and their cause), 1 if an
/// --expect does not hold, 2 for wrong arguments, 4 if no run has finished.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioFlags,
    /// Also write the scenario to this file
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    save_scenario: Option<PathBuf>,
    /// Write the packets of the first run (first row, first seed) to this file (pcapng)
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pcap: Option<PathBuf>,
    /// Explain why rows were fast or slow (takes longer)
    #[arg(long)]
    explain: bool,
    /// With --format csv, write a line for each run with all its measures
    #[arg(long, requires = "format", conflicts_with = "json", hide_short_help = true)]
    per_run: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let scenario = args.scenario()?;
    args.output.check()?;
    if args.per_run && args.output.format != Some(TableFormat::Csv) {
        let problem =
            "--per-run: only CSV has a line for each run\n  allowed: --format csv --per-run";
        return Err(Failure::Usage(problem.to_owned()));
    }
    save(&scenario, args.save_scenario.as_deref())?;
    args.capture(&scenario)?;
    let cancelled = progress::on_interrupt()?;
    let tally = Tally::new(console);
    let advance = |done: usize, total: usize| tally.tell(done, total);
    let rows = plait_lab::cells(&scenario).len();
    console.remark(2, &format!("plait: {rows} rows, {} runs each", scenario.effective_runs()));
    let control = Control { progress: &advance, ..Control::unwatched(cancelled) };
    let compared = match (args.explain, args.per_run) {
        (true, _) => plait_lab::compare(&scenario, &KeepRuns(Attentive), &control, &file::named),
        (false, true) => {
            plait_lab::compare(&scenario, &KeepRuns(Simulator), &control, &file::named)
        }
        (false, false) => plait_lab::compare(&scenario, &Simulator, &control, &file::named),
    };
    let mut document = compared?;
    if args.explain {
        document.commands().for_each(|command| command.push_str(" --explain"));
    }
    tally.clear();

    args.output.deliver(&args.text(&document, console)?)?;
    for row in document.reports().iter().flat_map(|report| &report.rows) {
        for failure in &row.failures {
            let text = format!("{}, seed {}: {}", row.scheduler, failure.seed, failure.reason);
            console.remark(2, &format!("plait: {text}"));
        }
    }
    if let Some(violation) = document.violation() {
        return Err(Failure::Internal(violation));
    }
    if cancelled.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    if !document.holds() {
        return Err(Failure::Claim(comparison::broken(&document)));
    }
    if document.has_nothing() { Err(Failure::Peer("no run finished".to_owned())) } else { Ok(()) }
}

impl Args {
    pub(crate) fn scenario(&self) -> Result<Scenario, Failure> {
        Ok(self.scenario.draft()?.build_with(&file::named)?.compared())
    }

    /// Writes the file of `--pcap` by repeating the first run.
    fn capture(&self, scenario: &Scenario) -> Result<(), Failure> {
        let Some(file) = &self.pcap else { return Ok(()) };
        let points = scenario.points(&file::named)?;
        let first = points.first().map_or(scenario, |point| &point.scenario);
        let Some(cell) = plait_lab::cells(&first.compared()).into_iter().next() else {
            return Ok(());
        };
        let command = scenario.command_line();
        let mut capture = Capture::create(file, &cell, first.seed, &command)?;
        // The report already contains the outcome.
        let _ = plait_lab::simulate(&cell, first.seed, &mut capture);
        capture.finish()?;
        Ok(())
    }

    fn text(&self, document: &ComparisonDocument, console: Console) -> Result<String, Failure> {
        let console = self.output.reader(console);
        match (self.output.json, self.output.format) {
            (true, _) => json(document),
            (_, Some(TableFormat::Csv)) if self.per_run => Ok(comparison::csv_of_runs(document)),
            (_, Some(TableFormat::Csv)) => Ok(comparison::csv(document)),
            (_, Some(TableFormat::Markdown)) => Ok(comparison::markdown(document)),
            (_, None) => Ok(comparison::text(document, console.width, console.colour)),
        }
    }
}

/// Writes the file of `--save-scenario`.
pub(crate) fn save(scenario: &Scenario, file: Option<&Path>) -> Result<(), Failure> {
    file.map_or(Ok(()), |file| write("--save-scenario", file, &scenario.to_toml()))
}
