//! `plait`: which Multipath TCP scheduler, and why. Data goes to stdout, everything else to
//! stderr; the exit code says how it went (see `failure`).

mod commands;
mod console;
mod decide;
mod failure;
mod flags;
mod progress;
mod render;

use clap::{ArgAction, Parser, Subcommand};
use console::Console;
use failure::Failure;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Version, commit and what is built in.
const VERSION: &str =
    concat!(env!("CARGO_PKG_VERSION"), "\ncommit ", env!("PLAIT_COMMIT"), "\nfeatures simulator");

const EXAMPLES: &str = "Examples:
  plait compare --path wifi-home --path lte-att --workload download:512kB
  plait list schedulers blest";

/// Multipath TCP: which packet scheduler to choose, and why
#[derive(Parser, Debug)]
#[command(name = "plait", version = VERSION, before_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Task,
    /// Say nothing on stderr but errors
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Say more on stderr; repeat for more still
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    verbose: u8,
}

#[derive(Subcommand, Debug)]
enum Task {
    Compare(commands::compare::Args),
    Decide(commands::decide::Args),
    List(commands::list::Args),
    Trace(commands::trace::Args),
    Schema(commands::schema::Args),
    Completions(commands::completions::Args),
}

fn perform(task: &Task, console: Console) -> Result<(), Failure> {
    match task {
        Task::Compare(args) => commands::compare::run(args, console),
        Task::Decide(args) => commands::decide::run(args),
        Task::List(args) => commands::list::run(args, console),
        Task::Trace(args) => commands::trace::run(args, console),
        Task::Schema(args) => commands::schema::run(args),
        Task::Completions(args) => commands::completions::run(args),
    }
}

fn main() -> ExitCode {
    let work = || {
        let cli = Cli::parse();
        perform(&cli.command, Console::detect(cli.quiet, cli.verbose))
    };
    let outcome = catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Failure::Internal("a panic; its message is above".to_owned())));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("plait: {failure}");
            ExitCode::from(&failure)
        }
    }
}
