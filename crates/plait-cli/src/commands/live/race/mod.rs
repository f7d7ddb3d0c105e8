//! `plait race`: the same workload by plait, the kernel and plain TCP, over emulated links.

mod track;
mod view;

use crate::commands::live::emulated::{KEYS_HELP, check_keys, given_paths};
use crate::console::{Console, json};
use crate::failure::Failure;
use crate::flags::{names_file, whole};
use crate::output::{Output, TableFormat};
use crate::progress;
use plait_app::file;
use plait_base::Span;
use plait_lab::race::{Heat, LiveRuns, RaceDocument, RaceRun, SCHEMA};
use plait_lab::scenario::quoted;
use plait_lab::{RawScenario, scoreboard};
use plait_live::transfer::Transfer;
use plait_report::render::race;
use std::sync::atomic::{AtomicBool, Ordering};
use track::Track;

const EXAMPLES: &str = "Examples:
  plait race --path wifi-home --path lte-att --workload download:2MB --predict
  plait race --links D --schedulers slot,minrtt,kernel:cubic --predict";

/// Race plait against Multipath TCP of the kernel and plain TCP
///
/// Sends the workload over emulated links by each sender in turns: the schedulers of plait, Multipath TCP of this
/// host's kernel, and its plain TCP on each path. Each run has fresh network namespaces. The other end is the
/// kernel in each row. Beside each row is the prediction of the simulator, which models the kernel as Linux 6.18.
/// While it runs, a terminal shows the rate and the queue of each path, and the medians so far.
///
/// A run counts if the emulator was never later than --late; otherwise it is repeated, up to 8 times in all. Both
/// ends run in the real-time class of the kernel's scheduler if `chrt` is there. Needs CAP_SYS_ADMIN and
/// CAP_NET_ADMIN, except with --predict.
///
/// Exit codes: 0 if a run of each row counts; 2 for wrong arguments; 3 for a missing privilege or kernel feature;
/// 4 if no run of a row counts; 130 after Ctrl-C, with the runs that have ended.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    #[arg(long, value_name = "NAME:KEY=VALUE,...", required_unless_present = "links", help = KEYS_HELP.lines().next(), long_help = KEYS_HELP)]
    path: Vec<String>,
    /// The data: download:SIZE, upload:SIZE, bulk:TIME, stream:SIZE@INTERVAL,for=TIME and others
    ///
    /// All of `plait list workloads` with one connection, except burst.
    #[arg(long, value_name = "WORKLOAD", required_unless_present = "links")]
    workload: Option<String>,
    /// Take the paths from a file of links, or run the links and loads A to F of docs/promise.md
    ///
    /// A file is one that `plait measure` writes (TOML); its name ends in .toml or has a slash. A to F have a workload
    /// of their own.
    #[arg(long, value_name = "FILE|A-F|A,B,...", conflicts_with = "path")]
    links: Option<String>,
    /// Schedulers of plait, and the kernel's Multipath TCP as kernel:CC; plain TCP is always there
    #[arg(
        long,
        alias = "scheduler",
        value_name = "LIST",
        default_value = "slot,kernel:cubic,kernel:bbr"
    )]
    schedulers: String,
    /// Congestion controller of plait
    #[arg(long, value_name = "CC", default_value = "cubic")]
    cc: String,
    /// Receive buffer of the kernel's end (SO_RCVBUF) [default: the kernel tunes it]
    #[arg(long, hide_short_help = true, value_name = "SIZE")]
    rcvbuf: Option<String>,
    /// Runs of each row
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole(1, 1_000))]
    runs: u64,
    /// Seed of the first run
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(0, u64::MAX))]
    seed: u64,
    /// Greatest lateness of the emulator in a run that counts
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "2ms", value_parser = lateness)]
    late: Span,
    /// Make only the predictions; needs no privilege
    #[arg(long)]
    predict: bool,
    #[command(flatten)]
    output: Output,
}

fn lateness(text: &str) -> Result<Span, String> {
    let allowed = "allowed: from 100us to 1s";
    match plait_app::quantity::time(text) {
        Ok(time) if (Span::from_micros(100)..=Span::from_secs(1)).contains(&time) => Ok(time),
        Ok(_) => Err(format!("that is out of range\n  {allowed}")),
        Err(error) => Err(format!("{error}\n  {allowed}")),
    }
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let heats = args.heats()?;
    args.output.check()?;
    let track = if args.predict { None } else { Some(Track::prepare(&heats, args.late)?) };
    let cancelled = progress::on_interrupt()?;
    let (predicted, finished) = predictions(&heats, cancelled, console);
    let live = match track {
        Some(track) if finished => track.run(&heats, args.runs, cancelled, console)?,
        _ => heats.iter().map(|heat| vec![LiveRuns::default(); heat.entrants.len()]).collect(),
    };
    let reports = heats.iter().zip(&live).zip(&predicted);
    let document = RaceDocument {
        schema: SCHEMA.to_owned(),
        command: args.command_line(),
        seed: args.seed,
        runs: u32::try_from(args.runs).unwrap_or(u32::MAX),
        predicted_runs: Heat::PREDICTED_RUNS,
        heats: reports.map(|((heat, live), predicted)| heat.report(live, predicted)).collect(),
        interrupted: cancelled.load(Ordering::Relaxed),
    };
    args.output.deliver(&args.text(&document, console)?)?;
    if document.interrupted {
        return Err(Failure::Interrupted);
    }
    let empty = document.heats.iter().flat_map(|heat| &heat.rows).find(|row| row.counted == 0);
    match empty.filter(|_| !args.predict) {
        Some(row) => {
            let why = row.failures.first().map_or("no run was made", String::as_str);
            Err(Failure::Peer(format!("{}: no run counts: {why}", row.sender)))
        }
        None => Ok(()),
    }
}

/// Predicts all rows. Returns false with the finished ones if it was cancelled.
fn predictions(
    heats: &[Heat],
    cancelled: &AtomicBool,
    console: Console,
) -> (Vec<Vec<Vec<RaceRun>>>, bool) {
    let mut finished = true;
    let mut predict = |heat: &Heat| -> Vec<Vec<RaceRun>> {
        console.remark(2, &format!("plait: {}: predicting", heat.name));
        let mut one = |entrant| {
            let runs = heat.predict(entrant, cancelled);
            finished &= runs.is_some();
            runs.unwrap_or_default()
        };
        heat.entrants.iter().map(&mut one).collect()
    };
    let all = heats.iter().map(&mut predict).collect();
    (all, finished)
}

impl Args {
    /// Returns the heats of the race.
    fn heats(&self) -> Result<Vec<Heat>, Failure> {
        let heat = |name: &str, settings: &[(&str, String)]| -> Result<Heat, Failure> {
            let mut raw = RawScenario::new();
            for (name, text) in settings {
                raw.argument(name, text)?;
            }
            raw.argument("cc", &self.cc)?;
            raw.argument("runs", &self.runs.to_string())?;
            raw.argument("seed", &self.seed.to_string())?;
            let heat = Heat::build(name, &raw, &self.schedulers, &file::named)?;
            if let Some(why) = Transfer::obstacle(&heat.scenario.workload) {
                return Err(Failure::Usage(format!(
                    "--workload: `{}`: it does not run over sockets: {why}\n  \
                     allowed: a workload with one connection, such as download:2MB",
                    heat.scenario.workload
                )));
            }
            Ok(heat)
        };
        let file = self.links.as_deref().filter(|links| names_file(links));
        if let Some(links) = self.links.as_ref().filter(|_| file.is_none()) {
            for (flag, given) in [("workload", &self.workload), ("rcvbuf", &self.rcvbuf)] {
                if given.is_some() {
                    return Err(Failure::Usage(format!(
                        "--{flag}: the links {links} have their own\n  leave --{flag} out, or give --path or --links FILE"
                    )));
                }
            }
            let chosen = scoreboard::select(scoreboard::measured(), links)?;
            return chosen.iter().map(|it| heat(&it.name, &it.settings)).collect();
        }
        let mut settings = Vec::new();
        if self.workload.is_none() {
            return Err(Failure::Usage(
                "--workload: it is missing\n  give the data, such as --workload download:2MB"
                    .to_owned(),
            ));
        }
        for path in given_paths(&self.path, file)? {
            check_keys(&path)?;
            settings.push(("path", path));
        }
        settings.extend(self.workload.iter().map(|text| ("workload", text.clone())));
        settings.extend(self.rcvbuf.iter().map(|text| ("rcvbuf", text.clone())));
        Ok(vec![heat("", &settings)?])
    }

    fn text(&self, document: &RaceDocument, console: Console) -> Result<String, Failure> {
        let console = self.output.reader(console);
        match (self.output.json, self.output.format) {
            (true, _) => json(document),
            (_, Some(TableFormat::Csv)) => Ok(race::csv(document)),
            (_, Some(TableFormat::Markdown)) => Ok(race::markdown(document)),
            (_, None) => Ok(race::text(document, console.width, console.colour)),
        }
    }

    /// Returns the command line that runs it again.
    fn command_line(&self) -> String {
        let mut words = vec!["plait race".to_owned()];
        let mut flag = |name: &str, text: &str| words.push(format!("--{name} {}", quoted(text)));
        self.path.iter().for_each(|path| flag("path", path));
        for (name, text) in
            [("links", &self.links), ("workload", &self.workload), ("rcvbuf", &self.rcvbuf)]
        {
            text.iter().for_each(|text| flag(name, text));
        }
        flag("schedulers", &self.schedulers);
        flag("cc", &self.cc);
        flag("runs", &self.runs.to_string());
        flag("seed", &self.seed.to_string());
        flag("late", &self.late.to_string());
        if self.predict {
            words.push("--predict".to_owned());
        }
        words.join(" ")
    }
}
