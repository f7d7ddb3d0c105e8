//! `plait paths`: shows the remembered paths, and forgets them.

use crate::console::{Console, deliver, json};
use crate::failure::Failure;
use plait_live::{PathFile, PathFileError, Prefix, StoredPath, StoredPaths, now_s};
use plait_report::render::{Align, Column, Emphasis, Table, millis, rate};
use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;
use std::path::PathBuf;

const EXAMPLES: &str = "Examples:
  plait paths --file paths.toml
  plait paths --file paths.toml --json
  plait paths --file paths.toml forget 192.0.2.0/24";

/// Show the paths that `plait get` and `plait proxy` remember
///
/// A connection begins on the remembered path on which a transfer takes less time, and the scheduler
/// `slot` begins with the remembered rates. An entry is for an address of this host and a network of
/// destinations (/24, or /48 for IPv6). Entries older than an hour are not used.
#[derive(clap::Args, Debug)]
#[command(before_help = EXAMPLES, args_conflicts_with_subcommands = false)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Option<Task>,
    /// The file [default: that of the user, as for `plait get --path-memory`]
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
    /// Write one JSON document (`plait schema paths`)
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand, Debug)]
enum Task {
    Forget(Forget),
}

const FORGET_EXAMPLES: &str = "Examples:
  plait paths forget --file paths.toml
  plait paths forget --file paths.toml 192.0.2.7";

/// Forget the paths to a destination, or all paths
#[derive(clap::Args, Debug)]
#[command(before_help = FORGET_EXAMPLES)]
struct Forget {
    /// An address, or the prefix of networks to forget [default: all]
    #[arg(value_name = "PREFIX", value_parser = destination)]
    prefix: Option<Destination>,
}

/// Destinations to forget.
#[derive(Clone, Debug)]
enum Destination {
    /// The network of an address.
    Address(IpAddr),
    /// All networks within a prefix.
    Within(Prefix),
}

fn destination(text: &str) -> Result<Destination, String> {
    let allowed = "allowed: an address, or ADDR/BITS such as 192.0.2.0/24";
    let read = match text.contains('/') {
        true => text.parse().map(Destination::Within).map_err(str::to_owned),
        false => text.parse().map(Destination::Address).map_err(|_| "no IP address".to_owned()),
    };
    read.map_err(|problem: String| format!("{problem}\n  {allowed}"))
}

impl Destination {
    fn has(&self, path: &StoredPath) -> bool {
        match self {
            Destination::Address(address) => path.leads_to(*address),
            Destination::Within(prefix) => {
                let network = path.destination.split('/').next().and_then(|it| it.parse().ok());
                network.is_some_and(|network| prefix.contains(network))
            }
        }
    }
}

/// Output of `plait paths --json`.
#[derive(Serialize, JsonSchema, Debug)]
#[schemars(title = "Document")]
pub(crate) struct PathsDocument {
    /// Always `plait.paths/1`.
    schema: &'static str,
    /// The file.
    file: String,
    /// The paths, by local address and destination.
    paths: Vec<Remembered>,
}

/// A remembered path and its age.
#[derive(Serialize, JsonSchema, Debug)]
struct Remembered {
    #[serde(flatten)]
    path: StoredPath,
    /// Seconds since its last change.
    age_s: u64,
}

pub(crate) fn run(args: &Args, console: Console) -> Result<(), Failure> {
    let file = args.file()?;
    let stored = read(&file)?;
    if let Some(Task::Forget(forget)) = &args.task {
        return forget.run(&file, stored);
    }
    for why in &stored.refused {
        console.remark(1, &format!("plait: {}: {why}", file.path().display()));
    }
    let now = now_s();
    if args.json {
        let remembered = |path: StoredPath| {
            let age_s = now.saturating_sub(path.learnt_s);
            Remembered { path, age_s }
        };
        let paths = stored.paths.into_iter().map(remembered).collect();
        let file = file.path().display().to_string();
        let document = PathsDocument { schema: "plait.paths/1", file, paths };
        return deliver(&json(&document)?, None);
    }
    deliver(&shown(&file, &stored.paths, now, console), None)
}

fn read(file: &PathFile) -> Result<StoredPaths, Failure> {
    let allowed = "a file of remembered paths";
    file.read().map_err(|error| match error {
        PathFileError::Unreadable(error) => {
            Failure::unreadable("--file", file.path(), &error, allowed)
        }
        PathFileError::Malformed(why) => {
            let remedy = "give the file of `--path-memory`, or remove this one";
            Failure::Usage(format!("--file: `{}`: {why}\n  {remedy}", file.path().display()))
        }
    })
}

/// Returns the table of the paths.
fn shown(file: &PathFile, paths: &[StoredPath], now_s: u64, console: Console) -> String {
    if paths.is_empty() {
        return format!("no path is remembered in {}\n", file.path().display());
    }
    let column = |title| Column::new(title, Align::Right);
    let mut table = Table::new(vec![
        Column::new("local", Align::Left),
        Column::new("destination", Align::Left),
        column("rate"),
        column("received"),
        column("min RTT"),
        column("loss").dispensable(1),
        column("ssthresh").dispensable(3),
        column("age"),
        Column::new("source", Align::Left).dispensable(2),
    ]);
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for path in paths {
        let cells = vec![
            path.local.to_string(),
            path.destination.clone(),
            or_none(path.rate_bps.map(rate)),
            or_none(path.received_bps.map(rate)),
            or_none(path.min_rtt_us.map(|micros| millis(micros as f64 / 1e3))),
            or_none(path.loss_ppm.map(|ppm| format!("{:.2} %", f64::from(ppm) / 1e4))),
            or_none(path.ssthresh_bytes.map(|bytes| format!("{} kB", bytes / 1_000))),
            age(now_s.saturating_sub(path.learnt_s)),
            path.source.clone(),
        ];
        table.row(Emphasis::None, cells);
    }
    table.to_text(console.width, console.colour)
}

/// Returns an age in its largest unit.
fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3_600),
    }
}

impl Args {
    fn file(&self) -> Result<PathFile, Failure> {
        let user = || PathFile::of_user(|name| std::env::var_os(name));
        let file = self.file.clone().map(PathFile::at).or_else(user);
        file.ok_or_else(|| {
            let remedy = "give a file: --file";
            Failure::Usage(format!("neither HOME nor XDG_STATE_HOME is set\n  {remedy}"))
        })
    }
}

impl Forget {
    fn run(&self, file: &PathFile, stored: StoredPaths) -> Result<(), Failure> {
        let before = stored.paths.len() + stored.refused.len();
        let goes = |path: &StoredPath| self.prefix.as_ref().is_none_or(|prefix| prefix.has(path));
        let kept: Vec<StoredPath> = stored.paths.into_iter().filter(|path| !goes(path)).collect();
        let gone = before - kept.len();
        if gone > 0 {
            let written = file.replace(&kept);
            written.map_err(|error| Failure::unwritable("--file", file.path(), &error))?;
        }
        let paths = if gone == 1 { "path" } else { "paths" };
        deliver(&format!("{gone} {paths} forgotten, {} left\n", kept.len()), None)
    }
}
