//! `plait completions`: completion scripts for shells.

use crate::console::deliver;
use crate::failure::Failure;
use clap::CommandFactory;
use clap_complete::Shell;

const EXAMPLES: &str = "Examples:
  plait completions bash > plait.bash
  plait completions zsh > _plait";

/// Print a completion script for a shell
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "plait", &mut script);
    let script = String::from_utf8(script).map_err(|e| Failure::Internal(e.to_string()))?;
    deliver(&script, None)
}
