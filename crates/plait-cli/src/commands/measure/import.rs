//! `plait measure import`: results of other tools as a file of links.

use crate::console::{Console, check_writable, deliver};
use crate::failure::Failure;
use plait_app::file;
use plait_lab::links::{LinkFile, Values, check_name};
use plait_measure::import::{Direction, Input, join, read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

const EXAMPLES: &str = "Examples:
  plait measure import link.down --name lte -q
  plait measure import link.down --name lte --direction up -q";

/// Largest file that is imported, in bytes.
const MAX_IMPORT_BYTES: u64 = 64 << 20;

/// Import results of other tools as a file of links
///
/// Reads iperf3 JSON (iperf3 -J), ping output, speed tests (Ookla and LibreSpeed JSON), ss -ti output, cake-autorate
/// logs and Mahimahi traces. The format follows from the content. All files are about one link, named by --name.
/// A value that no file shows is written as unknown: a ping alone gives an unknown rate.
///
/// Exit codes: 0, or 2 for a file in another format.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES)]
pub(crate) struct Args {
    /// Files with results about one link
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Name of the link
    #[arg(long, value_name = "NAME", default_value = "link")]
    name: String,
    /// Direction of the data in ss output and traces, which do not state it
    #[arg(long, value_enum, value_name = "DIRECTION", default_value = "down")]
    direction: Way,
    /// Write to this file in place of stdout
    ///
    /// If the file exists, its other links stay, and a link with the same name gets the new values.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Direction of data.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    /// From the server to the client
    Down,
    /// From the client to the server
    Up,
}

pub(super) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    check_writable("--output", args.output.as_deref())?;
    check_name("--name", &args.name)?;
    let direction = match args.direction {
        Way::Down => Direction::Down,
        Way::Up => Direction::Up,
    };
    let mut findings = Vec::new();
    for path in &args.files {
        let name = path.display().to_string();
        let text = file::text_within(path, MAX_IMPORT_BYTES).map_err(|error| {
            let (problem, allowed) = (plait_lab::unreadable(&error), plait_measure::import::FORMS);
            Failure::Usage(format!("{name}: {problem}\n  allowed: {allowed}"))
        })?;
        let changed_s = changed_s(path);
        let input = Input { file: &name, text: &text, changed_s, direction };
        let found = read(&input).map_err(|error| Failure::Usage(error.to_string()))?;
        let remark = found.remark.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
        console.remark(1, &format!("{name}: {}{remark}", found.form));
        findings.push(found);
    }
    let mut all = existing(args.output.as_deref())?;
    let joined = join(&args.name, &findings);
    joined.remarks.iter().for_each(|it| console.remark(1, it));
    all.merge(joined.link);
    let text = all.to_toml();
    LinkFile::from_toml("--output", &text)?.scenario(Values::Ranges)?;
    deliver(&text, args.output.as_deref())
}

/// Returns the links of a file, if there is one.
pub(super) fn existing(output: Option<&Path>) -> Result<LinkFile, Failure> {
    match output.filter(|path| path.is_file()) {
        Some(path) => {
            let name = path.display().to_string();
            Ok(LinkFile::from_file(&name, &|name| file::settings(name))?)
        }
        None => Ok(LinkFile::default()),
    }
}

/// Returns the time of the last change of a file in seconds since 1970, or zero.
fn changed_s(path: &Path) -> u64 {
    let changed = path.metadata().and_then(|it| it.modified()).ok();
    changed.and_then(|it| it.duration_since(UNIX_EPOCH).ok()).map_or(0, |it| it.as_secs())
}
