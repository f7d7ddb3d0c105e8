//! `plait compare`: one workload, the given paths, all schedulers, many seeds.

use crate::console::{Console, json, write};
use crate::failure::Failure;
use crate::flags::ScenarioFlags;
use crate::output::{Output, TableFormat};
use crate::progress::{self, Tally};
use plait_app::{Role, file};
use plait_base::Rate;
use plait_lab::scenario::Speed;
use plait_lab::{Attentive, Control, Document, KeepRuns, Scenario, Simulator, Verdict};
use plait_report::capture::Capture;
use plait_report::render::comparison;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

const EXAMPLES: &str = "Examples:
  plait compare --path wifi-home --path lte-att --workload download:512kB
  plait compare --path wifi-home --path a:rtt=9ms,rate=1mbit --workload bulk:2s
  plait compare --path wifi-home --path lte-att --workload burst:15seg --json";

/// Compare schedulers: the same workload over the same paths and seeds
///
/// Every scheduler gets a row, and plain TCP on each path always stands beside them. A number
/// carries its unit: 25mbit, 64KiB, 15seg, 40ms, 1%.
///
/// Exit codes: 0 if a run has finished (the table names the runs that have not, and the cause), 1 if an
/// --expect does not hold, 2 for wrong arguments, 4 if no run has finished.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    scenario: ScenarioFlags,
    /// Write the scenario to this file as well
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    save_scenario: Option<PathBuf>,
    /// Write the packets of the first run (pcapng): the first row, the first seed
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pcap: Option<PathBuf>,
    /// Say why each row was fast or slow (takes longer)
    #[arg(long)]
    explain: bool,
    /// With --format csv: a line for each run with all its measures, not one for each number of a row
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
    let mut document = compared.map_err(|error| Failure::Usage(error.to_string()))?;
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
    if let Some(violation) = violation(&document) {
        return Err(Failure::Internal(violation));
    }
    if cancelled.load(Ordering::Relaxed) {
        return Err(Failure::Interrupted);
    }
    judge(&document)?;
    let mut rows = document.reports().iter().flat_map(|report| &report.rows).peekable();
    let nothing = rows.peek().is_some() && rows.all(|row| row.measures.is_empty());
    if nothing { Err(Failure::Peer("no run finished".to_owned())) } else { Ok(()) }
}

impl Args {
    pub(crate) fn scenario(&self) -> Result<Scenario, Failure> {
        let built = self.scenario.draft().and_then(|draft| draft.build_with(&file::named));
        let scenario = built.map_err(|error| Failure::Usage(error.to_string()))?;
        check_window(&scenario)?;
        Ok(scenario.compared())
    }

    /// Writes the file of `--pcap`: the first run once more.
    fn capture(&self, scenario: &Scenario) -> Result<(), Failure> {
        let Some(file) = &self.pcap else { return Ok(()) };
        let points =
            scenario.points(&file::named).map_err(|error| Failure::Usage(error.to_string()))?;
        let first = points.first().map_or(scenario, |point| &point.scenario);
        let Some(cell) = plait_lab::cells(&first.compared()).into_iter().next() else {
            return Ok(());
        };
        let command = scenario.command_line();
        let mut capture = Capture::create(file, &cell, first.seed, &command)?;
        // What comes of it is in the report.
        let _ = plait_lab::simulate(&cell, first.seed, &mut capture);
        capture.finish()?;
        Ok(())
    }

    fn text(&self, document: &Document, console: Console) -> Result<String, Failure> {
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

/// `fixed:cwnd=BDP` needs a rate to multiply.
pub(crate) fn check_window(scenario: &Scenario) -> Result<(), Failure> {
    if !scenario.ccs.iter().any(plait_cc::Spec::needs_bdp) {
        return Ok(());
    }
    let upward = scenario.workload.sender() == Role::Client;
    let unlimited = |path: &&plait_lab::scenario::Path| {
        let speed = if upward { &path.speed.up } else { &path.speed.down };
        scenario.ideal || speed.as_ref().map_or(Rate::INFINITE, Speed::mean) == Rate::INFINITE
    };
    match scenario.paths.iter().find(unlimited) {
        None => Ok(()),
        Some(path) => Err(Failure::Usage(format!(
            "--cc: `fixed:cwnd=BDP` needs a rate, and path `{}` has none\n  allowed: fixed:cwnd=20seg, fixed:cwnd=64KiB",
            path.name
        ))),
    }
}

/// The first run in which an invariant of the protocol was broken.
fn violation(document: &Document) -> Option<String> {
    let rows = document.reports().iter().flat_map(|report| &report.rows);
    let broken = |row: &plait_lab::Row| {
        let failure =
            row.failures.iter().find(|failure| failure.reason.starts_with("invariant"))?;
        Some(format!("{}, seed {}: {}", row.scheduler, failure.seed, failure.reason))
    };
    rows.into_iter().find_map(broken)
}

/// Fails where an expectation does not hold, and says with which values.
fn judge(document: &Document) -> Result<(), Failure> {
    let mut broken = Vec::new();
    for report in document.reports() {
        let point: String =
            report.vary.iter().map(|(key, value)| format!(" at {key}={value}")).collect();
        for verdict in report.expectations.iter().filter(|verdict| !verdict.holds) {
            broken.push(format!("expected{point}: {}\n  {}", verdict.expectation, values(verdict)));
        }
    }
    if broken.is_empty() { Ok(()) } else { Err(Failure::Claim(broken.join("\n"))) }
}

/// The comparisons of a verdict with their values.
fn values(verdict: &Verdict) -> String {
    let number =
        |value: Option<f64>| value.map_or("(no value)".to_owned(), plait_report::render::figure);
    let parts = verdict.comparisons.iter().map(|it| {
        let word = if it.holds { "holds" } else { "fails" };
        format!(
            "{} is {}, {} is {}: {} {word}",
            it.left,
            number(it.left_value),
            it.right,
            number(it.right_value),
            it.relation
        )
    });
    parts.collect::<Vec<_>>().join("; ")
}
