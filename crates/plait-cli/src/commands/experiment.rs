//! `plait experiment`: experiment files.

use super::making::{Making, judge};
use crate::console::{Console, deliver, json};
use crate::failure::Failure;
use crate::flags::check_is_file;
use crate::output::TableFormat;
use plait_lab::experiment::{Experiment, Misses, PAPERS, Plan, experiments};
use plait_report::render::{reproduction as render, wrap};
use plait_report::reproduction::ReproductionDocument;
use serde_json::Value;
use std::path::Path;

const EXAMPLES: &str = "Examples:
  plait experiment list
  plait experiment run ton-fig8
  plait experiment check ton-fig8";

/// Run experiment files: sweeps with the claims of a paper
///
/// A file is a scenario with axes, rows and claims. FILE is a path, or the name of a built-in
/// experiment. Finished runs are cached, so an interrupted experiment continues where it stopped.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(clap::Subcommand, Debug)]
enum Task {
    /// List the built-in experiments
    List {
        /// Write one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Check experiment files and count their runs, without running them
    Check {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<String>,
    },
    /// Run an experiment and judge its claims
    Run(RunArgs),
}

#[derive(clap::Args, Debug)]
struct RunArgs {
    /// The file, or the name of a built-in experiment
    #[arg(value_name = "FILE")]
    file: String,
    /// Judge only the core claims
    ///
    /// Only the points that they need are run.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    making: Making,
    /// Make the runs on the Dask cluster with this address, such as tcp://10.0.0.1:8786
    ///
    /// The Python package `plait[cluster]` distributes them. Further runs for undecided claims are made on this host.
    #[arg(long, hide_short_help = true, value_name = "ADDRESS", conflicts_with = "no_cache")]
    cluster: Option<String>,
    /// Write one JSON document (`plait schema experiment`)
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Write the tables in another format
    ///
    /// CSV has every measure of every cell.
    #[arg(long, value_enum)]
    format: Option<TableFormat>,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    match &args.task {
        Task::List { json } => list(*json, console),
        Task::Check { files } => check(files),
        Task::Run(args) => perform(args, console),
    }
}

/// Returns the experiment of this name or file.
pub(crate) fn find(name: &str) -> Result<Experiment, Failure> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|it| it == "toml") || path.exists();
    if !is_file {
        let all = experiments(None)?;
        if let Some(found) = all.iter().find(|it| it.id == name) {
            return Ok(found.clone());
        }
        check_is_file("FILE", path, "plait run")?;
        let names: Vec<&str> = all.iter().map(|it| it.id.as_str()).collect();
        let unknown = plait_report::names::unknown("experiment", name, names.into_iter());
        return Err(Failure::Usage(format!("FILE: {unknown}, or a file (TOML)")));
    }
    let text = plait_app::file::settings(path)
        .map_err(|error| Failure::unreadable("FILE", path, &error, "an experiment (TOML)"))?;
    Ok(Experiment::from_toml(name, &text)?)
}

/// Returns the document of `plait experiment list --json`.
pub(crate) fn listed(all: &[Experiment]) -> Value {
    let entry = |it: &Experiment| {
        serde_json::json!({
            "id": it.id,
            "paper": it.paper(),
            "title": it.title,
            "claims": it.claims.iter().map(|claim| claim.id.as_str()).collect::<Vec<_>>(),
        })
    };
    let list: Vec<_> = all.iter().map(entry).collect();
    serde_json::json!({ "schema": "plait.experiment-list/1", "experiments": list })
}

fn list(as_json: bool, console: Console) -> Result<(), Failure> {
    let all = experiments(None)?;
    if as_json {
        return deliver(&json(&listed(&all))?, None);
    }
    let mut text = String::new();
    for (tag, title, place) in PAPERS {
        let of: Vec<&Experiment> = all.iter().filter(|it| it.paper() == *tag).collect();
        if of.is_empty() {
            continue;
        }
        let heading = wrap(&format!("{tag}: {title} ({place})"), console.width);
        text.push_str(&format!("{}\n", heading.join("\n")));
        text.push_str(&render::list(&of, console.width));
        text.push('\n');
    }
    deliver(&text, None)
}

fn check(files: &[String]) -> Result<(), Failure> {
    for file in files {
        let experiment = find(file)?;
        let plan = Plan::of(&experiment, false, &plait_app::file::named)?;
        let quick = Plan::of(&experiment.quickened(), true, &plait_app::file::named)?;
        let claims = experiment.claims.len();
        let text = format!(
            "{}: {} cells, {} runs, {claims} claims; quick: {} runs\n",
            experiment.id,
            plan.cells.len(),
            plan.runs(),
            quick.runs()
        );
        deliver(&text, None)?;
    }
    Ok(())
}

fn perform(args: &RunArgs, console: Console) -> Result<(), Failure> {
    let experiment = find(&args.file)?;
    let misses = Misses::embedded()?.of_run(args.quick);
    if let Some(address) = &args.cluster {
        args.making.count(std::slice::from_ref(&experiment), args.quick, &misses)?;
        args.making.make_on_cluster(address, &args.file, args.quick)?;
    }
    let made =
        args.making.make(std::slice::from_ref(&experiment), args.quick, &misses, None, console)?;
    let mut command = format!("plait experiment run {}", args.file);
    if args.quick {
        command.push_str(" --quick");
    }
    command.push_str(&args.making.flags());
    let document =
        ReproductionDocument::of("plait.experiment/1", command, &made, args.quick, Vec::new());
    args.making.keep(&made, &document)?;
    let text = match (args.json, args.format) {
        (true, _) => json(&document)?,
        (_, Some(TableFormat::Csv)) => render::csv_of_cells(&made.settled.results, &document),
        (_, Some(TableFormat::Markdown)) => {
            render::experiment_markdown(&made.settled.results, &document)
        }
        (_, None) => {
            render::experiment(&made.settled.results, &document, console.width, console.colour)
        }
    };
    deliver(&text, None)?;
    judge(&made, &document)
}
