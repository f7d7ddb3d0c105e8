//! `plait advise`: says whether to bond links, for which loads, and with which commands.

use crate::console::{Console, check_writable, json, write};
use crate::failure::Failure;
use crate::flags::{links, whole};
use crate::output::{Output, TableFormat};
use crate::progress::{self, Tally};
use plait_app::file;
use plait_lab::advise::{AdviceControl, Options, advise};
use plait_lab::links::Values;
use plait_lab::scenario::{MOST_JOBS, quoted};
use plait_lab::{RawScenario, ScenarioError, Simulator};
use plait_report::papers::advice_page;
use plait_report::render::advice as render;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

const EXAMPLES: &str = "Examples:
  plait advise --path wifi-home --path lte-att --draws 4
  plait advise --path dsl:rate=8mbit..12mbit,rtt=20ms --path lte-att --draws 4
  plait advise --path wifi-home --path lte-att --draws 4 --html advice.html";

/// Most draws.
const MOST_DRAWS: u64 = 10_000;

/// Say whether to bond links: by load, with the uncertainty
///
/// Draws links from what is known of them. Over each draw it runs downloads, a page, a call, a video,
/// and a call with an outage of each path. It compares the default scheduler with plain TCP on the best
/// path alone. The gain of a load is its median over the draws, with an interval that holds 80 % of them.
///
/// A value of a path may be a range that holds the true value in 80 % of the cases: rate=18mbit..25mbit,
/// rtt=20ms..30ms, queue=50ms..200ms, loss=0.01%..0.1%. A rate without a range has the range of --spread,
/// and an RTT one of 10 %. An unknown queue or loss is drawn from what is usual.
///
/// If a path has cost= or quota=, each load also runs with each goal of `--goal`. The advice then has the gain and the
/// bytes of each goal, and names the one with the fewest bytes that is not notably slower.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// A path, as in plait compare; a value may be a range
    ///
    /// Repeat the flag for each path. Connections begin on the path on which small downloads and pages are fastest; see
    /// --keep-order.
    #[arg(long, value_name = "NAME:KEY=VALUE,...", required_unless_present = "links")]
    path: Vec<String>,
    /// A shared link behind the paths that name it with via=NAME, as in plait compare
    #[arg(long, value_name = "NAME:KEY=VALUE,...")]
    link: Vec<String>,
    /// Read the paths from a file of links (TOML), as `plait measure` writes it
    ///
    /// Each value is drawn from its own range. --path replaces the paths.
    #[arg(long, value_name = "FILE")]
    links: Option<String>,
    /// Begin on the first path, even if another one is better
    #[arg(long, hide_short_help = true)]
    keep_order: bool,
    /// Range of a rate that is given without one
    ///
    /// The interval reaches from rate / (1 + spread) to rate x (1 + spread).
    #[arg(long, value_name = "PERCENT", default_value = "25%", allow_hyphen_values = true)]
    spread: String,
    /// Number of links to draw
    #[arg(long, value_name = "N", default_value_t = 40)]
    #[arg(value_parser = whole(1, MOST_DRAWS), allow_negative_numbers = true)]
    draws: u64,
    /// Congestion controller
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    cc: String,
    /// Seed of the draws
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    #[arg(value_parser = whole(0, u64::MAX), allow_negative_numbers = true)]
    seed: u64,
    /// Runs at a time [default: one per processor]
    #[arg(long, value_name = "N", value_parser = whole(1, MOST_JOBS), allow_negative_numbers = true)]
    jobs: Option<u64>,
    /// Write a page for a browser to this file
    ///
    /// It has the tables, the intervals as bars, and the commands, and needs no other file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    args.output.check()?;
    check_writable("--html", args.html.as_deref())?;
    let options = args.options()?;
    let cancelled = progress::on_interrupt()?;
    let tally = Tally::new(console);
    let advance = |done: usize, total: usize| tally.tell(done, total);
    let read = |name: &str| file::settings(name);
    let control = AdviceControl { progress: &advance, cancelled, read: &read };
    let advice = advise(&options, &Simulator, &control)?;
    tally.clear();
    let reader = args.output.reader(console);
    let text = match (args.output.json, args.output.format) {
        (true, _) => json(&advice)?,
        (_, Some(TableFormat::Csv)) => render::csv(&advice),
        (_, Some(TableFormat::Markdown)) => render::markdown(&advice),
        (_, None) => render::text(&advice, reader.width, reader.colour),
    };
    args.output.deliver(&text)?;
    if let Some(file) = args.html.as_deref() {
        write("--html", file, &advice_page(&advice))?;
    }
    if cancelled.load(Ordering::Relaxed) { Err(Failure::Interrupted) } else { Ok(()) }
}

impl Args {
    fn options(&self) -> Result<Options, Failure> {
        Ok(Options {
            raw: self.draft()?,
            draws: u32::try_from(self.draws).unwrap_or(u32::MAX),
            seed: self.seed,
            spread: self.factor()?,
            jobs: self.jobs.and_then(|jobs| NonZeroUsize::new(usize::try_from(jobs).ok()?)),
            command: self.command(),
            loads: Vec::new(),
            keep_order: self.keep_order,
        })
    }

    fn draft(&self) -> Result<RawScenario, ScenarioError> {
        let mut draft = RawScenario::new();
        for (name, texts) in [("path", &self.path), ("link", &self.link)] {
            texts.iter().try_for_each(|text| draft.argument(name, text))?;
        }
        if let Some(file) = self.links.as_ref().filter(|_| self.path.is_empty()) {
            draft.take_paths(links(file, Values::Ranges)?);
        }
        draft.argument("cc", &self.cc)?;
        Ok(draft)
    }

    /// Returns the factor from a rate to either end of its range.
    fn factor(&self) -> Result<f64, Failure> {
        let allowed = "from 0% to 100%";
        let wrong = |problem: &dyn ToString| {
            let problem = problem.to_string();
            Failure::Usage(format!("--spread: {problem}\n  allowed: {allowed}"))
        };
        let spread = plait_app::quantity::percent(&self.spread).map_err(|error| wrong(&error))?;
        Ok(1.0 + f64::from(spread.as_ppb()) / 1e9)
    }

    /// Returns the command line that gives the advice again.
    fn command(&self) -> String {
        let mut command = "plait advise".to_owned();
        let mut add = |name: &str, text: &str| command += &format!(" --{name} {}", quoted(text));
        let links = self.links.iter().filter(|_| self.path.is_empty());
        links.for_each(|file| add("links", file));
        self.path.iter().for_each(|path| add("path", path));
        self.link.iter().for_each(|link| add("link", link));
        for (name, text, default) in [("spread", &self.spread, "25%"), ("cc", &self.cc, "cubic")] {
            if text != default {
                add(name, text);
            }
        }
        if self.keep_order {
            command += " --keep-order";
        }
        command + &format!(" --draws {} --seed {}", self.draws, self.seed)
    }
}
