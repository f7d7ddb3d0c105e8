//! `plait race`: the same workload by plait, the kernel and plain TCP, over emulated links or real ones.

mod kernel;
mod message;
mod near;
mod rounds;
mod serve;
mod track;
mod view;

use crate::commands::live::emulated::{KEYS_HELP, emulated_paths, no_path};
use crate::console::{Console, deliver, json};
use crate::failure::Failure;
use crate::flags::{names_file, paths_of_links, whole};
use crate::output::{Output, TableFormat};
use crate::progress;
use near::{Ends, Near};
use plait_app::{Workload, file};
use plait_base::Span;
use plait_lab::race::{Heat, RaceDocument, RaceRun, SCHEMA};
use plait_lab::scenario::quoted;
use plait_lab::{RawScenario, scoreboard};
use plait_live::transfer::Transfer;
use plait_report::render::race;
use rounds::{Race, none};
use std::sync::atomic::{AtomicBool, Ordering};
use track::Track;

const EXAMPLES: &str = "Examples:
  plait race --path wifi-home --path lte-att --workload download:2MB --predict
  plait race --to 10.0.0.1 --from eth0 --from eth1 --workload bulk:5s --dry-run";

/// Race plait against Multipath TCP of the kernel and plain TCP
///
/// Sends the workload with each sender in turn: the schedulers of plait, the kernel's Multipath TCP, and the kernel's
/// plain TCP on each path. The other end is the kernel in each row. Beside each row is the prediction of the simulator, which models
/// the kernel as Linux 6.18. While it runs, a terminal shows the rate of each path, and the medians so far.
///
/// The links are emulated, and each run has fresh network namespaces. A run counts if the emulator was never later than
/// --late; otherwise it is repeated, up to 8 times in all. Both ends run in the real-time class of the kernel's scheduler
/// if `chrt` is installed. Needs CAP_SYS_ADMIN and CAP_NET_ADMIN, except with --predict.
///
/// With --to and --from, the links are real ones, to a host that runs `plait race serve`. There are predictions if
/// --links has the measured links. Uploads by plait need CAP_NET_ADMIN and CAP_NET_RAW. For all other runs, the near side
/// needs no privilege.
///
/// Exit codes: 0 if each row has a run that counts; 2 for wrong arguments; 3 for a missing privilege or kernel feature;
/// 4 if a row has no such run, or the far side fails; 130 after Ctrl-C. The runs that have ended are written in any case.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Option<Task>,
    #[arg(long, value_name = "NAME:KEY=VALUE,...", help = KEYS_HELP.lines().next(), long_help = KEYS_HELP)]
    path: Vec<String>,
    /// The data, such as download:2MB or stream:20kB@40ms,for=10s
    ///
    /// Any of `plait list workloads` that has one connection, except burst.
    #[arg(long, value_name = "WORKLOAD")]
    workload: Option<String>,
    /// Use real links to this host, which runs `plait race serve`
    ///
    /// Its port is 7789 if none is given.
    #[arg(long, value_name = "HOST[:PORT]", requires = "from", conflicts_with_all = ["path", "late", "predict"])]
    to: Option<String>,
    /// Device or address where a path to --to starts; once per path
    ///
    /// NAME=DEVICE gives the path another name. A connection starts on the first path. The kernel needs an endpoint for
    /// each further one (`plait doctor kernel`).
    #[arg(long, value_name = "[NAME=]DEVICE|ADDR")]
    from: Vec<String>,
    /// A file of links, or the links and loads A to F of docs/promise.md
    ///
    /// A file has the paths, as `plait measure` writes them (TOML). Its name must end in .toml or have a slash. A to F
    /// have their own workloads. With --to, the predictions use the links of the file that have the names of --from.
    #[arg(long, value_name = "FILE|A-F|A,B,...", conflicts_with = "path")]
    links: Option<String>,
    /// Schedulers, and kernel:CC
    ///
    /// kernel:CC is the kernel's Multipath TCP with the congestion controller CC. Plain TCP is always included.
    #[arg(
        long,
        alias = "scheduler",
        value_name = "LIST",
        default_value = "slot,kernel:cubic,kernel:bbr"
    )]
    schedulers: String,
    /// Congestion controller of plait
    #[arg(long, hide_short_help = true, value_name = "CC", default_value = "cubic")]
    cc: String,
    /// Receive buffer of the kernel's end (SO_RCVBUF) [default: the kernel tunes it]
    #[arg(long, hide_short_help = true, value_name = "SIZE")]
    rcvbuf: Option<String>,
    /// Runs of each row
    #[arg(long, value_name = "N", default_value = "5", value_parser = whole(1, 1_000))]
    runs: u64,
    /// Seed of the first run
    #[arg(long, hide_short_help = true, value_name = "N", default_value = "1", value_parser = whole(0, u64::MAX))]
    seed: u64,
    /// Greatest lateness of the emulator in a run that counts
    #[arg(long, hide_short_help = true, value_name = "TIME", default_value = "2ms", value_parser = lateness)]
    late: Span,
    /// Make only the predictions; needs no privilege
    #[arg(long)]
    predict: bool,
    /// Print the runs over real links, and send nothing
    #[arg(long, hide_short_help = true)]
    dry_run: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(clap::Subcommand, Debug)]
enum Task {
    Serve(serve::Args),
}

fn lateness(text: &str) -> Result<Span, String> {
    let allowed = "allowed: from 100us to 1s";
    match plait_app::quantity::time(text) {
        Ok(time) if (Span::from_micros(100)..=Span::from_secs(1)).contains(&time) => Ok(time),
        Ok(_) => Err(format!("that is out of range\n  {allowed}")),
        Err(error) => Err(format!("{error}\n  {allowed}")),
    }
}

/// Where the live runs are made.
enum Ground {
    None,
    Emulated(Track),
    Real(Box<Near>),
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    if let Some(Task::Serve(args)) = &args.task {
        return serve::run(args, console);
    }
    args.check_to()?;
    let ends = args.to.as_ref().map(|to| Ends::read(to, &args.from)).transpose()?;
    let heats = match &ends {
        Some(ends) => vec![args.real_heat(ends)?],
        None => args.heats()?,
    };
    if let (Some(ends), [heat], true) = (&ends, &heats[..], args.dry_run) {
        return deliver(&ends.plan(heat, args.runs), None);
    }
    args.output.check()?;
    if let Some(remark) = left_out(&heats, &args.schedulers) {
        console.remark(1, &format!("plait: {remark}"));
    }
    let mut ground = match (ends, &heats[..]) {
        (Some(ends), [heat]) => Ground::Real(Box::new(Near::prepare(ends, heat)?)),
        _ if args.predict => Ground::None,
        _ => Ground::Emulated(Track::prepare(&heats, args.late)?),
    };
    let cancelled = progress::on_interrupt()?;
    let predict = || predictions(&heats, cancelled, console);
    let (predicted, finished) = match &mut ground {
        Ground::Real(near) => near.meanwhile(predict),
        _ => predict(),
    };
    let race = Race { heats: &heats, runs: args.runs, cancelled, console };
    let live = match &mut ground {
        Ground::Emulated(track) if finished => track.run(race)?,
        Ground::Real(near) if finished => near.run(race)?,
        _ => none(&heats),
    };
    let reports = heats.iter().zip(&live).zip(&predicted);
    let document = RaceDocument {
        schema: SCHEMA.to_owned(),
        command: args.command_line(),
        seed: args.seed,
        runs: u32::try_from(args.runs).unwrap_or(u32::MAX),
        predicted_runs: heats.iter().all(|it| it.knows_links).then_some(Heat::PREDICTED_RUNS),
        to: args.to.clone(),
        heats: reports.map(|((heat, live), predicted)| heat.report(live, predicted)).collect(),
        interrupted: cancelled.load(Ordering::Relaxed),
    };
    args.output.deliver(&args.text(&document, console)?)?;
    if document.interrupted {
        return Err(Failure::Interrupted);
    }
    if let Ground::Real(near) = &ground
        && let Some(problem) = &near.lost
    {
        return Err(Failure::Peer(problem.clone()));
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

/// Explains that the senders of a list have no rows on a single path; `None` if no heat has one.
fn left_out(heats: &[Heat], senders: &str) -> Option<String> {
    let heat = heats.iter().find(|heat| heat.scenario.paths.len() == 1)?;
    let path = &heat.scenario.paths[0].name;
    Some(format!(
        "one path: there is nothing to schedule or to join, so tcp:{path} runs alone, without {senders}; \
         give a second path to race them"
    ))
}

/// Returns a text of the other side without control characters, and not longer than a few lines.
fn plain(text: &str) -> String {
    let kept = text.chars().take(1_000);
    kept.map(|it| if it.is_control() && it != '\n' { '?' } else { it }).collect()
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
    /// Fails if a flag of real links has no far side.
    fn check_to(&self) -> Result<(), Failure> {
        let alone = [("from", !self.from.is_empty()), ("dry-run", self.dry_run)];
        match alone.iter().find(|(_, given)| *given && self.to.is_none()) {
            Some((flag, _)) => Err(Failure::Usage(format!(
                "--{flag}: it is for real links, and --to is missing\n  \
                 give --to HOST, which runs `plait race serve`, or leave --{flag} out"
            ))),
            None => Ok(()),
        }
    }

    /// Returns the heats of the race.
    fn heats(&self) -> Result<Vec<Heat>, Failure> {
        let heat = |name: &str, settings: &[(&str, String)]| -> Result<Heat, Failure> {
            let raw = self.raw(settings)?;
            let heat = Heat::build(name, &raw, &self.schedulers, &file::named)?;
            check_workload(&heat, "does not run over sockets", Transfer::obstacle)?;
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
        if self.path.is_empty() && file.is_none() {
            return Err(no_path("--links FILE, --links A-F, or --to HOST"));
        }
        if self.workload.is_none() {
            return Err(no_workload());
        }
        let mut settings = Vec::new();
        settings.extend(match (self.predict, file) {
            // The simulator has all keys, and links that paths share.
            (true, Some(file)) => paths_of_links(file)?,
            (true, None) => self.path.iter().map(|path| ("path", path.clone())).collect(),
            (false, _) => emulated_paths(&self.path, file)?,
        });
        settings.extend(self.workload.iter().map(|text| ("workload", text.clone())));
        settings.extend(self.rcvbuf.iter().map(|text| ("rcvbuf", text.clone())));
        Ok(vec![heat("", &settings)?])
    }

    /// Returns these settings with those that all links have in common.
    fn raw(&self, settings: &[(&str, String)]) -> Result<RawScenario, Failure> {
        let mut raw = RawScenario::new();
        for (name, text) in settings {
            raw.argument(name, text)?;
        }
        raw.argument("cc", &self.cc)?;
        raw.argument("runs", &self.runs.to_string())?;
        raw.argument("seed", &self.seed.to_string())?;
        Ok(raw)
    }

    /// Returns the heat over real links.
    fn real_heat(&self, ends: &Ends) -> Result<Heat, Failure> {
        let names = ends.names();
        let mut settings = Vec::new();
        if let Some(links) = &self.links {
            settings = links_named(links, &names)?;
        }
        settings.extend(self.workload.iter().map(|text| ("workload", text.clone())));
        settings.extend(self.rcvbuf.iter().map(|text| ("rcvbuf", text.clone())));
        if self.workload.is_none() {
            return Err(no_workload());
        }
        let raw = self.raw(&settings)?;
        let heat = match self.links {
            Some(_) => Heat::build("", &raw, &self.schedulers, &file::named)?,
            None => Heat::of_unknown_links(&names, &raw, &self.schedulers, &file::named)?,
        };
        check_workload(&heat, "does not run between two hosts", Transfer::obstacle_between_hosts)?;
        Ok(heat)
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
        self.to.iter().for_each(|to| flag("to", to));
        self.from.iter().for_each(|from| flag("from", from));
        for (name, text) in
            [("links", &self.links), ("workload", &self.workload), ("rcvbuf", &self.rcvbuf)]
        {
            text.iter().for_each(|text| flag(name, text));
        }
        flag("schedulers", &self.schedulers);
        flag("cc", &self.cc);
        flag("runs", &self.runs.to_string());
        flag("seed", &self.seed.to_string());
        if self.to.is_none() {
            flag("late", &self.late.to_string());
        }
        if self.predict {
            words.push("--predict".to_owned());
        }
        words.join(" ")
    }
}

fn no_workload() -> Failure {
    let text = "--workload: it is missing\n  give the data, such as --workload download:2MB";
    Failure::Usage(text.to_owned())
}

/// Fails if there is an obstacle to the workload of a heat.
fn check_workload(
    heat: &Heat,
    problem: &str,
    obstacle: fn(&Workload) -> Option<&'static str>,
) -> Result<(), Failure> {
    let workload = &heat.scenario.workload;
    match obstacle(workload) {
        Some(why) => Err(Failure::Usage(format!(
            "--workload: `{workload}`: it {problem}: {why}\n  \
             allowed: a workload with one connection, such as download:2MB"
        ))),
        None => Ok(()),
    }
}

/// Returns the links of a file that have these names, in the order of the names, and the shared links.
fn links_named(file: &str, names: &[String]) -> Result<Vec<(&'static str, String)>, Failure> {
    if !names_file(file) {
        return Err(Failure::Usage(format!(
            "--links: `{file}`: with --to it is a file\n  give one that `plait measure` writes, such as links.toml"
        )));
    }
    let all = paths_of_links(file)?;
    let name_of = |text: &str| text.split(':').next().unwrap_or_default().to_owned();
    let mut chosen = Vec::new();
    for name in names {
        let found = all.iter().find(|(key, text)| *key == "path" && name_of(text) == *name);
        let found = found.ok_or_else(|| {
            Failure::Usage(format!(
                "--links: `{file}`: it has no link `{name}`, a path of --from\n  \
                 measure it: plait measure HOST --from {name} -o {file}"
            ))
        })?;
        chosen.push(found.clone());
    }
    let via = |(_, text): &(&str, String), link: &str| {
        text.split([',', ':']).any(|field| field.strip_prefix("via=") == Some(link))
    };
    let shared = all.iter().filter(|(key, text)| {
        *key != "path" && chosen.iter().any(|path| via(path, &name_of(text)))
    });
    let shared: Vec<_> = shared.cloned().collect();
    Ok(chosen.into_iter().chain(shared).collect())
}
