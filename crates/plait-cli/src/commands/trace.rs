//! `plait trace`: shows and converts recorded links.

use crate::console::{Console, deliver, json};
use crate::failure::Failure;
use crate::flags::check_is_file;
use clap::Subcommand;
use plait_link::Trace;
use plait_report::trace::{describe, drawing, mahimahi};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "Examples:
  plait trace show link.csv
  plait trace convert link.csv --to mahimahi --output link.down";

/// Show and convert recorded links
///
/// Reads Mahimahi traces and CSV, and detects the format. Each line of a Mahimahi trace is a time in
/// milliseconds at which the link can deliver 1500 bytes. Rows of CSV are seconds,bytes_per_second.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand, Debug)]
enum Task {
    Show(Show),
    Convert(Convert),
}

const SHOW_EXAMPLES: &str = "Examples:
  plait trace show link.csv
  plait trace show link.down --json";

/// Show a recording: length, rates, silences, and the rate over time
#[derive(clap::Args, Debug)]
#[command(before_help = SHOW_EXAMPLES)]
struct Show {
    /// The recording
    file: PathBuf,
    /// Write one JSON document (`plait schema trace`)
    #[arg(long)]
    json: bool,
    /// Write to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const CONVERT_EXAMPLES: &str = "Examples:
  plait trace convert link.csv --to mahimahi --output link.down
  plait trace convert link.down --to csv";

/// Write a recording in another format
#[derive(clap::Args, Debug)]
#[command(before_help = CONVERT_EXAMPLES)]
struct Convert {
    /// The recording
    file: PathBuf,
    /// The format to write
    #[arg(long, value_enum)]
    to: Format,
    /// Write to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Format {
    /// A line for each time in milliseconds at which 1500 bytes can be delivered
    Mahimahi,
    /// Rows of seconds,bytes_per_second, one per second
    Csv,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    match &args.task {
        Task::Show(show) => {
            let trace = read(&show.file)?;
            let document = describe(&trace, console.width);
            let text = if show.json { json(&document)? } else { drawing(&document) };
            deliver(&text, show.output.as_deref())
        }
        Task::Convert(convert) => {
            let trace = read(&convert.file)?;
            let text = match convert.to {
                Format::Mahimahi => mahimahi(&trace)?,
                Format::Csv => trace.to_csv(),
            };
            deliver(&text, convert.output.as_deref())
        }
    }
}

fn read(path: &Path) -> Result<Trace, Failure> {
    check_is_file("FILE", path, "plait run")?;
    let recorded = "a Mahimahi or CSV file";
    let text = plait_app::file::text(path)
        .map_err(|error| Failure::unreadable("FILE", path, &error, recorded))?;
    let name = path.display().to_string();
    Trace::parse(&name, &text).map_err(|error| Failure::Usage(error.to_string()))
}
