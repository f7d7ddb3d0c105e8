//! `plait schema`: the JSON Schema of what a command writes.

use crate::console::{deliver, json};
use crate::failure::Failure;

const EXAMPLES: &str = "Examples:
  plait schema compare
  plait schema decide
  plait schema trace";

/// Print the JSON Schema of a command's JSON
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// The command
    #[arg(value_enum)]
    command: Reporting,
}

/// The commands that write JSON.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Reporting {
    /// `plait compare --json`
    Compare,
    /// An answer of `plait decide`
    Decide,
    /// A question for `plait decide`
    DecideQuestion,
    /// `plait run --json`
    Run,
    /// A line of `plait run --trace-events`
    Events,
    /// `plait list --json`
    List,
    /// `plait trace show --json`
    Trace,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let schema = match args.command {
        Reporting::Compare => return deliver(&json(&plait_lab::schema("compare"))?, None),
        Reporting::Decide => schemars::schema_for!(crate::decide::Answer),
        Reporting::DecideQuestion => schemars::schema_for!(crate::decide::Question),
        Reporting::Run => schemars::schema_for!(crate::commands::run::Document),
        Reporting::Events => schemars::schema_for!(crate::export::events::Line<'static>),
        Reporting::List => schemars::schema_for!(crate::commands::list::Document),
        Reporting::Trace => schemars::schema_for!(crate::commands::trace::Document),
    };
    deliver(&json(&schema)?, None)
}
