//! How often the advice is right: measures drawn links live, lets `plait advise` judge with only the file of links, and
//! measures the true gain live.
//!
//! `record` measures each link of a kind with `plait measure` behind `plait shell`, and races plain TCP and the default
//! scheduler over it with `plait race`. It appends one line of JSON for each finished part to a file in a directory. A
//! second call goes on with the links that are missing. `judge` asks `plait advise` about each measured link, and
//! prints the tables of docs/results/advise.md. `--again` drops the measurements first, and keeps the races.
//!
//! ```text
//! cargo bench -p plait-cli --bench calibration -- record --dir calibration --kind random --seeds 1..201
//! cargo bench -p plait-cli --bench calibration -- judge --dir calibration --kind random --seeds 1..201
//! ```
//!
//! The kinds are `random` links, `shared` bottlenecks, and pairs `recorded` by others, from the directory of
//! `PLAIT_DATA`. `record` needs root. A link takes about two minutes, and `--workers` of them run at once.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]

mod judge;
mod links;
mod record;
mod store;

use links::Kind;
use std::path::PathBuf;
use std::process::{Command, exit};

/// Options of the command line.
#[derive(Clone, Debug)]
struct Options {
    dir: PathBuf,
    kind: Kind,
    /// The first seed, and the one after the last.
    seeds: (u64, u64),
    /// Links at a time.
    workers: usize,
    /// The binary under test.
    plait: String,
    /// Draws of an advice.
    draws: u32,
    /// Longest time of a measurement.
    time: String,
    /// Measure links again that have a measurement.
    again: bool,
}

impl Options {
    /// Returns a command of plait.
    fn plait(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.plait);
        command.args(arguments);
        command
    }
}

fn main() {
    // `cargo bench` adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let Some((task, rest)) = args.split_first() else {
        println!("calibration: nothing to do; `record` or `judge`");
        return;
    };
    let options = options(rest);
    let outcome = match task.as_str() {
        "record" => record::record(&options),
        "judge" => judge::judge(&options),
        other => Err(format!("`{other}`: give `record` or `judge`")),
    };
    if let Err(why) = outcome {
        refuse(&why)
    }
}

fn refuse(why: &str) -> ! {
    eprintln!("calibration: {why}");
    exit(2)
}

fn options(args: &[String]) -> Options {
    let mut options = Options {
        dir: PathBuf::from("calibration"),
        kind: Kind::Random,
        seeds: (1, 6),
        workers: 1,
        plait: env!("CARGO_BIN_EXE_plait").to_owned(),
        draws: 40,
        time: "15s".to_owned(),
        again: false,
    };
    let mut args = args.iter();
    while let Some(name) = args.next() {
        if name == "--again" {
            options.again = true;
            continue;
        }
        let Some(value) = args.next() else { refuse(&format!("{name} needs a value")) };
        let bad = || -> ! { refuse(&format!("{name}: `{value}` is not possible")) };
        let number = |text: &str| text.parse::<u64>().unwrap_or_else(|_| bad());
        match name.as_str() {
            "--dir" => options.dir = PathBuf::from(value),
            "--kind" => options.kind = Kind::named(value).unwrap_or_else(|| bad()),
            "--seeds" => {
                let Some((from, to)) = value.split_once("..") else { bad() };
                options.seeds = (number(from), number(to));
            }
            "--workers" => options.workers = number(value).clamp(1, 64) as usize,
            "--plait" => options.plait.clone_from(value),
            "--draws" => options.draws = number(value).min(10_000) as u32,
            "--time" => options.time.clone_from(value),
            _ => refuse(&format!(
                "`{name}`: give --dir, --kind, --seeds FROM..TO, --workers, --plait, --draws, --time or --again"
            )),
        }
    }
    options
}
