//! `plait scoreboard`: ranks schedulers by their worst cell, or on random links.

mod finished_cells;
mod random;

use crate::console::{Console, json};
use crate::failure::Failure;
use crate::flags::{names_file, paths_of_links, whole};
use crate::output::{Output, TableFormat};
use crate::progress::{self, Tally};
use plait_app::file;
use plait_lab::scenario::{MOST_JOBS, quoted};
use plait_lab::scoreboard::{
    Board, Ground, Options, VARIANTS, measured, own, recorded, scoreboard, select,
};
use plait_lab::{Control, Simulator};
use plait_report::render::scoreboard as render;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

const EXAMPLES: &str = "Examples:
  plait scoreboard --links A,E
  plait scoreboard --path wifi-home --path lte-att --schedulers ecf --runs 5
  plait scoreboard --random 200 --seed 7 --format markdown";

/// Remedy if there are no recorded pairs.
const HOW_TO_GET_PAIRS: &str = "plait has no recordings built in: set PLAIT_DATA to a directory that has \
    traces/pair_NAME_wifi.csv and traces/pair_NAME_cellular.csv\n  (rows of seconds,bytes_per_second), \
    such as those of Aydin, Fund and Panwar (INFOCOM CNERT 2023)";

/// Default directory of recordings if `PLAIT_DATA` is not set.
const BESIDE: &str = "../shared/data";

/// Rank schedulers by their worst cell against the best path alone
///
/// A cell is a load over a pair of links. The loads are a download, a bulk transfer and a stream. The
/// links A to F are those on which a stock Linux was measured. The others are recorded pairs of WiFi
/// and cellular links, each from its start and from a random offset. The number of a scheduler in a
/// cell is the ratio of its median to that of plain TCP on the best path alone; above 1 is better. The
/// p50 and the p99 of a stream's message delay are two cells. The scheduler with the best worst cell
/// comes first.
///
/// `--path` replaces these links with your own. They carry the same three loads, or those of
/// `--workload`.
///
/// `--random` draws links and loads instead: two or three paths of 0.3 to 100 Mbit/s and 5 to 400 ms, with
/// losses, jitter, outages, rates that change, shared bottlenecks and small buffers. The report has the share
/// of the comparisons in which a scheduler is slower than plain TCP. Finished cells are cached, so an
/// interrupted scoreboard continues where it stopped.
///
/// The recorded pairs are read from $PLAIT_DATA or ../shared/data. If they are absent, the report
/// says so.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Links such as A,E,7_1 or A-F, the words `recorded` or `all`, or a file of links
    ///
    /// A file has the paths, as `plait measure` writes them (TOML). Its name must end in .toml or have a slash.
    #[arg(long, value_name = "LIST|FILE", default_value = "all")]
    links: String,
    /// A path of your own, as in `plait compare`
    ///
    /// Your own paths replace --links. At least two are required. A path has neither cost= nor quota=, because
    /// a scoreboard ranks by speed alone.
    #[arg(long, value_name = "NAME:KEY=VALUE,...", conflicts_with = "links")]
    path: Vec<String>,
    /// A load for --path; may be repeated
    ///
    /// The form is that of `plait compare`. The default loads are download:4MB, bulk:10s and
    /// stream:30kB@50ms,for=20s.
    #[arg(long, value_name = "WORKLOAD")]
    workload: Vec<String>,
    /// Number of random cells
    #[arg(long, value_name = "CELLS", conflicts_with_all = ["links", "path"])]
    #[arg(value_parser = whole(1, MOST_CELLS), allow_negative_numbers = true)]
    random: Option<u64>,
    #[command(flatten)]
    board: BoardFlags,
    /// The schedulers [default: all, and variants]
    ///
    /// The variants have decorators or parameters.
    #[arg(long, value_name = "LIST")]
    schedulers: Option<String>,
    /// Congestion controller
    ///
    /// With --random it may be a list, such as cubic,bbr. Each cell then has one of them, drawn at random.
    #[arg(long, value_name = "CC", default_value = "cubic")]
    cc: String,
    /// Runs of each row if its links are random [default: 30, or 1 with --random]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = whole(1, u32::MAX.into()), allow_negative_numbers = true)]
    runs: Option<u64>,
    /// Seed of the first run
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    #[arg(value_parser = whole(0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
    /// Runs at a time [default: one per processor]
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = whole(1, MOST_JOBS), allow_negative_numbers = true)]
    jobs: Option<u64>,
    #[command(flatten)]
    output: Output,
}

/// Flags of random scoreboards.
#[derive(clap::Args, Debug)]
struct BoardFlags {
    /// The path that a random cell dials first
    #[arg(
        long,
        hide_short_help = true,
        value_name = "ORDER",
        default_value = "startable",
        requires = "random"
    )]
    path_order: Order,
    /// Start of further subflows, as in `plait compare`
    #[arg(long, hide_short_help = true, value_name = "TIMING", requires = "random")]
    join: Option<String>,
    /// Let every row remember the paths of an earlier connection, as in `plait compare`
    #[arg(long, hide_short_help = true, value_name = "off|on|ssthresh", requires = "random")]
    path_memory: Option<String>,
    /// Cache the finished random cells in this directory [default: the user's cache]
    #[arg(long, hide_short_help = true, value_name = "DIR", requires = "random")]
    cache: Option<PathBuf>,
    /// Run every random cell, and cache none
    #[arg(long, hide_short_help = true, conflicts_with = "cache", requires = "random")]
    no_cache: bool,
    /// Write the map of the first scheduler to this file, as a drawing
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "random")]
    svg: Option<PathBuf>,
    /// Write a page for a browser to this file, with the tables and the map
    #[arg(long, hide_short_help = true, value_name = "FILE", requires = "random")]
    html: Option<PathBuf>,
}

/// The path that a random cell dials first.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    /// A path drawn at random
    Startable,
    /// The path on which plain TCP is fastest
    Known,
}

/// Largest number of random cells.
const MOST_CELLS: u64 = 1_000_000;

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    if let Some(count) = args.random {
        return random::run(args, count, console);
    }
    let options = args.options()?;
    args.output.check()?;
    for what in &options.missing {
        console.remark(1, &format!("plait: {what}"));
    }
    let cancelled = progress::on_interrupt()?;
    let tally = Tally::new(console);
    let advance = |done: usize, total: usize| tally.tell(done, total);
    let control = Control { progress: &advance, ..Control::unwatched(cancelled) };
    let board = scoreboard(&options, &Simulator, &control, &file::named)?;
    tally.clear();
    args.output.deliver(&args.text(&board, console)?)?;
    if cancelled.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

impl Args {
    /// Returns the runs of each row. A random scoreboard has many cells, which average over chance.
    fn runs(&self) -> u64 {
        self.runs.unwrap_or(if self.random.is_some() { 1 } else { 30 })
    }

    fn options(&self) -> Result<Options, Failure> {
        let (grounds, missing) = self.grounds()?;
        let schedulers = self.schedulers.clone().unwrap_or_else(|| format!("all,{VARIANTS}"));
        let mut settings = vec![
            ("schedulers", schedulers),
            ("cc", self.cc.clone()),
            ("runs", self.runs().to_string()),
            ("seed", self.seed.to_string()),
        ];
        settings.extend(self.jobs.map(|jobs| ("jobs", jobs.to_string())));
        let options = Options { grounds, missing, settings, command: self.command_line() };
        options.check()?;
        Ok(options)
    }

    /// Returns the requested links and loads, and the recorded pairs that are missing.
    fn grounds(&self) -> Result<(Vec<Ground>, Vec<String>), Failure> {
        let (paths, shared): (Vec<_>, Vec<_>) = match names_file(&self.links) {
            true => paths_of_links(&self.links)?.into_iter().partition(|it| it.0 == "path"),
            false => (self.path.iter().map(|path| ("path", path.clone())).collect(), Vec::new()),
        };
        if !paths.is_empty() {
            let paths: Vec<String> = paths.into_iter().map(|it| it.1).collect();
            let mut grounds = own(&paths, &self.workload)?;
            grounds.iter_mut().for_each(|ground| ground.settings.extend(shared.iter().cloned()));
            return Ok((grounds, Vec::new()));
        }
        if !self.workload.is_empty() {
            return Err(Failure::Usage(
                "--workload: these links have their own loads\n  give --path or --links FILE as well".to_owned(),
            ));
        }
        let (grounds, missing) = built_in();
        let grounds =
            select(grounds, &self.links).map_err(|error| self.refused(error, &missing))?;
        let wants_recorded = self.links.split(',').any(|name| name == "all" || name == "recorded");
        Ok((grounds, missing.into_iter().filter(|_| wants_recorded).collect()))
    }

    fn refused(&self, error: plait_lab::ScenarioError, missing: &[String]) -> Failure {
        let why: String = missing.iter().map(|what| format!("\n  {what}")).collect();
        if missing.is_empty() {
            return Failure::from(error);
        }
        let text = match self.links.split(',').any(|name| name == "recorded") {
            true => "--links: `recorded`: there are no recorded pairs here".to_owned(),
            false => error.to_string(),
        };
        Failure::Usage(format!("{text}{why}\n  {HOW_TO_GET_PAIRS}"))
    }

    /// Returns the command line that repeats the run. `--jobs` is left out: it does not change the result.
    fn command_line(&self) -> String {
        let mut line = "plait scoreboard".to_owned();
        if self.links != "all" {
            line += &format!(" --links {}", self.links);
        }
        for path in &self.path {
            line += &format!(" --path {}", quoted(path));
        }
        for workload in &self.workload {
            line += &format!(" --workload {}", quoted(workload));
        }
        if let Some(schedulers) = &self.schedulers {
            line += &format!(" --schedulers {schedulers}");
        }
        if self.cc != "cubic" {
            line += &format!(" --cc {}", self.cc);
        }
        line + &format!(" --runs {} --seed {}", self.runs(), self.seed)
    }

    fn text(&self, board: &Board, console: Console) -> Result<String, Failure> {
        let console = self.output.reader(console);
        match (self.output.json, self.output.format) {
            (true, _) => json(board),
            (_, Some(TableFormat::Csv)) => Ok(render::csv(board)),
            (_, Some(TableFormat::Markdown)) => Ok(render::markdown(board)),
            (_, None) => Ok(render::text(board, console.width, console.colour)),
        }
    }
}

/// Returns the measured links and the recorded pairs, and the reason if there are no pairs.
fn built_in() -> (Vec<Ground>, Vec<String>) {
    let data = std::env::var_os("PLAIT_DATA").map_or_else(|| PathBuf::from(BESIDE), PathBuf::from);
    let mut grounds = measured();
    match recorded(&data) {
        Ok(pairs) => {
            grounds.extend(pairs);
            (grounds, Vec::new())
        }
        Err(why) => (grounds, vec![why]),
    }
}
