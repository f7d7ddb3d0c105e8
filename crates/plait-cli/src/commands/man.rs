//! `plait man`: manual pages, generated from the text of `--help`.

use crate::console::deliver;
use crate::failure::Failure;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use plait_report::names::unknown;
use std::io;

const EXAMPLES: &str = "Examples:
  plait man > plait.1
  plait man run > plait-run.1";

/// Print the manual page of a command
///
/// Without a command it prints plait(1), which lists the others. For a subcommand, give both words,
/// such as `plait man trace show`.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// The command [default: plait itself]
    command: Vec<String>,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    // The built-in `help` gets no page.
    let mut command = crate::Cli::command().disable_help_subcommand(true);
    command.build();
    for name in &args.command {
        let found = command.find_subcommand(name).cloned();
        command = found.ok_or_else(|| {
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            Failure::Usage(match names.as_slice() {
                [] => format!("`{}` has no subcommands", command.get_name()),
                names => {
                    unknown("command", &name.escape_debug().to_string(), names.iter().copied())
                }
            })
        })?;
    }
    let page = page(command).map_err(|error| Failure::Internal(error.to_string()))?;
    deliver(&page, None)
}

/// Returns the page of a command, with its examples at the end.
fn page(command: Command) -> io::Result<String> {
    let examples = command.get_before_help().map(ToString::to_string).unwrap_or_default();
    let source = concat!("plait ", env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    Man::new(command).source(source).manual("plait").render(&mut page)?;
    let mut roff = Roff::default();
    roff.control("SH", ["EXAMPLES"]);
    for example in examples.lines().skip(1) {
        roff.control("PP", []);
        roff.text([roman(example.trim())]);
    }
    roff.to_writer(&mut page)?;
    String::from_utf8(page).map(|page| tables_kept(&page)).map_err(io::Error::other)
}

/// Keeps lines in columns as they are; `man` would fill them like prose.
fn tables_kept(page: &str) -> String {
    let (mut kept, mut within) = (String::with_capacity(page.len()), false);
    for line in page.lines() {
        let columns = !line.starts_with('.') && line.contains("  ");
        if columns != within {
            kept.push_str(if columns { ".nf\n" } else { ".fi\n" });
            within = columns;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}
