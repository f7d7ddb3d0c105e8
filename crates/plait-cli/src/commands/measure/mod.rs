//! `plait measure`: the values of links, as a file of links.

mod import;

use crate::console::Console;
use crate::failure::Failure;

const EXAMPLES: &str = "Examples:
  plait measure import link.down --name lte -q
  plait measure import link.down --name lte --direction up -q";

/// Import measurements as a file of links
///
/// The file has the range, the source and the date of each value. Every command with --path takes it as --links FILE.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(clap::Subcommand, Debug)]
enum Task {
    Import(import::Args),
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    match &args.task {
        Task::Import(args) => import::run(args, console),
    }
}
