//! `plait reproduce`: repeats the papers' figures and judges their claims.

use super::making::{Making, judge};
use crate::console::{Console, deliver, json};
use crate::failure::Failure;
use crate::output::TableFormat;
use plait_lab::experiment::{Experiment, Misses, Open, PAPERS, Proven, Unrun, experiments};
use plait_lab::scenario::quoted;
use plait_report::papers;
use plait_report::render::reproduction as render;
use plait_report::reproduction::{ReproductionDocument, proven, unrun};
use std::collections::BTreeSet;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  plait reproduce ton/fig8
  plait reproduce ton/fig8 --quick --json
  plait reproduce --quick";

/// Repeat the papers' experiments and judge the papers' claims
///
/// The report has, for each claim, the paper's statement, the result with its 95 % interval over the
/// runs, and the verdict: it holds, it fails, or it is undecided, with a confidence of 95 %. An exact
/// or hard claim that is undecided gets more runs, up to --more times those of its file. Finished runs
/// are cached, so an interrupted reproduction continues where it stopped.
///
/// A miss is a claim that is known to fail, with its cause. The exit code is 1 if an exact or hard claim
/// fails and is not listed as a miss, or if a listed miss holds.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Paper or figure, such as ton/fig8
    ///
    /// The papers are ton, imc, csws, ecf and stms, or those of --experiments. Without a paper or
    /// figure, --quick, --all or --experiments is required.
    #[arg(value_name = "PAPER[/FIGURE]")]
    what: Option<String>,
    /// Repeat all papers, which takes hours
    #[arg(long, conflicts_with = "what")]
    all: bool,
    /// Judge only the core claims
    ///
    /// Only the points that they need are run.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Run every point of each experiment (default)
    #[arg(long)]
    full: bool,
    /// Also try the values that the papers leave open
    ///
    /// Each claim is judged with each value that its paper leaves open, one at a time. The report says
    /// whether it holds with all, most, few or none of these values.
    #[arg(long)]
    ablate: bool,
    /// Read the experiments from this directory
    ///
    /// They replace the built-in ones. If the directory has a list of misses, it is read too.
    #[arg(long, value_name = "DIR")]
    experiments: Option<PathBuf>,
    #[command(flatten)]
    making: Making,
    /// Draw the figures in this directory
    ///
    /// The directory gets a page for each paper (or for the one figure), every picture (SVG and PDF),
    /// every run (CSV), and an index of the pages.
    #[arg(long, value_name = "DIR")]
    html: Option<PathBuf>,
    /// Write one JSON document (`plait schema reproduce`)
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write the tables in another format
    #[arg(long, value_enum)]
    format: Option<TableFormat>,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let all = experiments(args.experiments.as_deref())?;
    let tests = Proven::embedded()?;
    let misses = Misses::beside(args.experiments.as_deref(), &all, &tests)?.of_run(args.quick);
    if args.is_unlimited() {
        return Err(unlimited(&all, args.making.count(&all, false, &misses)?));
    }
    let chosen = args.choose(all)?;
    let wanted = |id: &str| {
        let (paper, figure) = args.parts();
        figure.is_none() && paper.is_none_or(|paper| id.split('-').next() == Some(paper))
    };
    let mut others = proven(&tests, wanted);
    if !args.quick {
        let list = Unrun::embedded()?;
        others.extend(unrun(&list, wanted));
    }
    let open = args.ablate.then(Open::embedded).transpose()?;
    let made = args.making.make(&chosen, args.quick, &misses, open.as_ref(), console)?;
    let command = args.command_line();
    let document =
        ReproductionDocument::of("plait.reproduce/1", command, &made, args.quick, others);
    args.making.keep(&made, &document)?;
    if let Some(directory) = &args.html {
        papers::render(directory, &made.settled.results, args.parts().1.is_some(), &document)?;
    }
    let text = match (args.json, args.format) {
        (true, _) => json(&document)?,
        (_, Some(TableFormat::Csv)) => render::csv(&document),
        (_, Some(TableFormat::Markdown)) => render::markdown(&document),
        (_, None) => render::text(&made.settled.results, &document, console.width, console.colour),
    };
    deliver(&text, None)?;
    judge(&made, &document)
}

/// Returns the failure of a command that would repeat all papers although `--all` is not given.
fn unlimited(all: &[Experiment], runs: usize) -> Failure {
    let papers = PAPERS.iter().map(|known| known.0).collect::<Vec<_>>().join(" ");
    Failure::Usage(format!(
        "PAPER: not given; all {} experiments are at least {runs} runs, which take hours\n  \
         a paper, or one figure of it: plait reproduce PAPER[/FIGURE] (PAPER: {papers})\n  \
         the core claims of all papers: plait reproduce --quick\n  \
         all papers: plait reproduce --all",
        all.len()
    ))
}

impl Args {
    /// Returns true if the command would repeat all papers although `--all` is not given.
    fn is_unlimited(&self) -> bool {
        let limited = self.what.is_some() || self.quick || self.experiments.is_some();
        !limited && !self.all
    }

    fn parts(&self) -> (Option<&str>, Option<&str>) {
        match self.what.as_deref().map(|what| what.split_once('/').unwrap_or((what, ""))) {
            None => (None, None),
            Some((paper, "")) => (Some(paper), None),
            Some((paper, figure)) => (Some(paper), Some(figure)),
        }
    }

    fn choose(&self, all: Vec<Experiment>) -> Result<Vec<Experiment>, Failure> {
        let (paper, figure) = self.parts();
        let Some(paper) = paper else { return Ok(all) };
        if let Some(file) = self.what.as_deref().filter(|it| it.ends_with(".toml")) {
            return Err(Failure::Usage(format!(
                "PAPER: `{file}` is a file\n  write: plait experiment run {file}"
            )));
        }
        let unknown = |what: &str, given: &str, names: Vec<&str>| {
            Failure::Usage(plait_report::names::unknown(what, given, names.into_iter()))
        };
        let mut papers: Vec<&str> = PAPERS.iter().map(|known| known.0).collect();
        papers.extend(all.iter().map(Experiment::paper));
        let mut seen = BTreeSet::new();
        papers.retain(|paper| seen.insert(*paper));
        if !papers.contains(&paper) {
            // Files are named `ton-fig8`.
            let file = all.iter().find(|it| it.id == paper).and_then(|it| it.id.split_once('-'));
            return Err(match file {
                Some((of, figure)) => Failure::Usage(format!(
                    "unknown paper `{paper}`; did you mean `{of}/{figure}`?\n  allowed: {}",
                    papers.join(" ")
                )),
                None => unknown("paper", paper, papers),
            });
        }
        let of: Vec<Experiment> = all.into_iter().filter(|it| it.paper() == paper).collect();
        let Some(figure) = figure else { return Ok(of) };
        let name =
            |it: &Experiment| it.id.split_once('-').map_or(String::new(), |it| it.1.to_owned());
        match of.iter().find(|it| name(it) == figure || it.id == figure) {
            Some(found) => Ok(vec![found.clone()]),
            None => {
                let names: Vec<String> = of.iter().map(name).collect();
                Err(unknown("figure", figure, names.iter().map(String::as_str).collect()))
            }
        }
    }

    /// Returns the command line that repeats the reproduction.
    fn command_line(&self) -> String {
        let mut line = "plait reproduce".to_owned();
        if let Some(what) = &self.what {
            line += &format!(" {what}");
        }
        if self.all {
            line += " --all";
        }
        if self.quick {
            line += " --quick";
        }
        if let Some(directory) = &self.experiments {
            line += &format!(" --experiments {}", quoted(&directory.display().to_string()));
        }
        if self.ablate {
            line += " --ablate";
        }
        line + &self.making.flags()
    }
}
