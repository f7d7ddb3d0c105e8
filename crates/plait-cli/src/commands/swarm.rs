//! `plait swarm`: runs random networks and faults against the invariants.

use crate::console::{Console, json};
use crate::failure::Failure;
use crate::flags::whole;
use crate::output::{Output, TableFormat};
use crate::progress::{self, Tally};
use plait_app::file::{MOST_SETTINGS_BYTES, read_within};
use plait_lab::Control;
use plait_lab::scenario::MOST_JOBS;
use plait_lab::swarm::{
    Case, CaseError, Only, Options, REPLAY_SCHEMA, Replay, ServerCase, ServerReplay, Verdict,
    case_line, replay, replay_server, server_line, swarm,
};
use plait_report::render::swarm as render;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

const EXAMPLES: &str = "Examples:
  plait swarm --seeds 100
  plait swarm --seeds 100 --only server
  plait swarm --case '{\"seed\":7,\"paths\":[{},{\"rtt_us\":80000}]}'";

/// Test the invariants on random networks with faults
///
/// Each seed draws two cases. A network has two endpoints, paths, sizes, buffers, a scheduler, a
/// controller, settings and faults. A server is the engine of plait serve with a service and clients.
/// Further clients flood the server or do not read. The server crashes and starts again, and its device
/// goes down. The invariants are checked after every event. Then the faults end, and all connections must
/// end within a bounded time.
///
/// If a case fails, the report has the command that repeats it exactly, and a smaller case that still
/// fails, as one line of JSON. --case takes this line, and --replay takes a file with it. Both show the
/// place of the failure and the events before it. If a case fails, the exit code is 5.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Number of consecutive seeds
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    #[arg(value_parser = whole(1, u64::MAX), allow_negative_numbers = true)]
    seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    #[arg(value_parser = whole(0, u64::MAX), allow_negative_numbers = true)]
    from: u64,
    /// Run only this seed (as --from SEED --seeds 1)
    #[arg(long, value_name = "SEED", conflicts_with_all = ["seeds", "from"])]
    #[arg(value_parser = whole(0, u64::MAX), allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Runs at a time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = whole(1, MOST_JOBS), allow_negative_numbers = true)]
    jobs: Option<u64>,
    /// Stop at the first seed that fails
    ///
    /// Its case is not made smaller.
    #[arg(long)]
    first: bool,
    /// Also encode and parse every segment
    ///
    /// The result must be identical to the segment.
    #[arg(long)]
    wire: bool,
    /// Run only one of the two cases of each seed
    #[arg(long, value_name = "KIND", value_enum)]
    only: Option<CaseKind>,
    /// Run only this case
    ///
    /// The case may be a network or a server.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["seeds", "from", "seed", "jobs", "first", "only"])]
    case: Option<String>,
    /// Run only the case in this file (`-`: stdin)
    #[arg(long, value_name = "FILE")]
    #[arg(conflicts_with_all = ["seeds", "from", "seed", "jobs", "first", "only", "case"])]
    replay: Option<PathBuf>,
    /// Number of last events to show
    ///
    /// Only --case and --replay show them.
    #[arg(long, value_name = "N", default_value_t = plait_lab::swarm::TRAIL as u64)]
    #[arg(value_parser = whole(0, u64::MAX), allow_negative_numbers = true)]
    last: u64,
    #[command(flatten)]
    output: Output,
}

/// One of the two cases of a seed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum CaseKind {
    /// Two endpoints and the paths between them
    Network,
    /// A server, its clients and its service
    Server,
}

/// The case to run alone.
enum Single {
    Network(Box<Case>),
    Server(Box<ServerCase>),
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    args.output.check()?;
    match args.case()? {
        Some(Single::Network(case)) => run_case(args, &case),
        Some(Single::Server(case)) => run_server_case(args, &case),
        None => run_seeds(args, console),
    }
}

impl Args {
    /// Returns the case to run alone, if one is given.
    fn case(&self) -> Result<Option<Single>, Failure> {
        let parse = |from: &str, text: &str| {
            if text.trim().is_empty() {
                let allowed =
                    "a case (JSON), as a failing seed prints it, such as {\"paths\":[{}]}";
                return Err(Failure::Usage(format!("{from}: it is empty\n  allowed: {allowed}")));
            }
            let usage = |CaseError { member, problem }| {
                let error = CaseError { member, problem: plait_report::decide::plain(&problem) };
                Failure::Usage(format!("{from}: {error}"))
            };
            if ServerCase::is_meant(text) {
                let case = ServerCase::parse(text).map_err(usage)?;
                return Ok(Single::Server(Box::new(case)));
            }
            let mut case = Case::parse(text).map_err(usage)?;
            case.settings.wire |= self.wire;
            Ok(Single::Network(Box::new(case)))
        };
        if let Some(text) = &self.case {
            return parse("--case", text).map(Some);
        }
        let Some(file) = &self.replay else { return Ok(None) };
        let text = if file == Path::new("-") {
            let mut text = String::new();
            read_within(std::io::stdin(), MOST_SETTINGS_BYTES, &mut text).map(|()| text)
        } else {
            plait_app::file::settings(file)
        };
        let case = "a case (JSON), as a failing seed prints it, or - for stdin";
        let text = text.map_err(|error| Failure::unreadable("--replay", file, &error, case))?;
        parse(&file.display().to_string(), &text).map(Some)
    }
}

fn run_seeds(args: &Args, console: Console) -> Result<(), Failure> {
    let (from, seeds) = args.seed.map_or((args.from, args.seeds), |seed| (seed, 1));
    let Args { first, wire, .. } = *args;
    let jobs = args.jobs.and_then(|jobs| NonZeroUsize::new(usize::try_from(jobs).ok()?));
    let only = args.only.map(|kind| match kind {
        CaseKind::Network => Only::Network,
        CaseKind::Server => Only::Server,
    });
    let options = Options { from, seeds, jobs, first_only: first, wire, only };
    options.check()?;
    let cancelled = progress::on_interrupt()?;
    console.remark(2, &format!("plait: {seeds} seeds from {from}"));
    let tally = Tally::new(console);
    let advance = |done: usize, total: usize| tally.tell(done, total);
    // A panic inside a run is a finding like any other, and the report shows it. Running its case alone shows
    // its location.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let report = swarm(&options, &Control { progress: &advance, ..Control::unwatched(cancelled) });
    std::panic::set_hook(usual);
    let report = report?;
    tally.clear();
    let text = match (args.output.json, args.output.format) {
        (true, _) => json(&report)?,
        (_, Some(TableFormat::Csv)) => render::csv(&report),
        (_, Some(TableFormat::Markdown)) => render::markdown(&report),
        (_, None) => {
            let reader = args.output.reader(console);
            render::text(&report, reader.width, reader.colour)
        }
    };
    args.output.deliver(&text)?;
    if report.broken > 0 {
        let what = format!("{} cases of {} seeds failed", report.broken, report.seeds);
        return Err(Failure::Internal(what));
    }
    if cancelled.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

fn run_case(args: &Args, case: &Case) -> Result<(), Failure> {
    let (verdict, last) = replay(case, usize::try_from(args.last).unwrap_or(usize::MAX));
    let document = Replay {
        schema: REPLAY_SCHEMA.to_owned(),
        command: case_line(case),
        case: case.clone(),
        violation: verdict.violation.clone(),
        last,
        segments: verdict.segments,
        ended_ns: verdict.ended.as_nanos(),
        digest: format!("{:016x}", verdict.hash),
    };
    let told = || render::replayed(&document.last, &verdict, &document.command);
    let text = if args.output.json { json(&document)? } else { told() };
    deliver(args, &text, &verdict)
}

fn run_server_case(args: &Args, case: &ServerCase) -> Result<(), Failure> {
    let (verdict, last) = replay_server(case, usize::try_from(args.last).unwrap_or(usize::MAX));
    let document = ServerReplay {
        schema: REPLAY_SCHEMA.to_owned(),
        command: server_line(case),
        case: case.clone(),
        violation: verdict.violation.clone(),
        last,
        segments: verdict.segments,
        ended_ns: verdict.ended.as_nanos(),
        digest: format!("{:016x}", verdict.hash),
    };
    let told = || render::replayed(&document.last, &verdict, &document.command);
    let text = if args.output.json { json(&document)? } else { told() };
    deliver(args, &text, &verdict)
}

/// Prints the outcome of a case. If an invariant broke, it is the failure of the command.
fn deliver(args: &Args, text: &str, verdict: &Verdict) -> Result<(), Failure> {
    args.output.deliver(text)?;
    match &verdict.violation {
        Some(violation) => Err(Failure::Internal(render::sentence(violation))),
        None => Ok(()),
    }
}
