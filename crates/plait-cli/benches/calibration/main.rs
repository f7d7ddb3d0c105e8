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
//! `PLAIT_DATA`. `record` needs root. A link takes about two minutes, and `--workers` of them run at once. `--loads` takes
//! names of the advice, such as `calls,video`. A race of `calls` takes 80 s, and one of `video` ten minutes.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]

#[path = "../../../plait-live/benches/kernel_model/arguments.rs"]
mod arguments;
mod judge;
mod links;
mod record;
mod store;

use arguments::{number, range, refuse};
use links::Kind;
use record::{LOADS, Load};
use std::path::PathBuf;
use std::process::Command;

/// Options of the command line.
#[derive(Clone, Debug)]
struct Options {
    dir: PathBuf,
    kind: Kind,
    /// The loads that are raced and judged.
    loads: Vec<Load>,
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
    let args = arguments::arguments();
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

fn options(args: &[String]) -> Options {
    let mut options = Options {
        dir: PathBuf::from("calibration"),
        kind: Kind::Random,
        // Calls and videos take minutes.
        loads: LOADS[..3].to_vec(),
        seeds: (1, 6),
        workers: 1,
        plait: env!("CARGO_BIN_EXE_plait").to_owned(),
        draws: 40,
        time: "15s".to_owned(),
        again: false,
    };
    for (name, value) in arguments::values(args, &["--again"]) {
        match name {
            "--again" => options.again = true,
            "--dir" => options.dir = PathBuf::from(value),
            "--kind" => {
                options.kind = Kind::named(value)
                    .unwrap_or_else(|| refuse(&format!("{name}: `{value}` is not possible")));
            }
            "--loads" => {
                let load = |name: &str| LOADS.into_iter().find(|it| it.name == name);
                let all = value.split(',').map(load).collect::<Option<Vec<Load>>>();
                options.loads =
                    all.unwrap_or_else(|| refuse(&format!("{name}: `{value}` is not possible")));
            }
            "--seeds" => options.seeds = range(name, value),
            "--workers" => options.workers = number::<usize>(name, value).clamp(1, 64),
            "--plait" => value.clone_into(&mut options.plait),
            "--draws" => options.draws = number::<u32>(name, value).min(10_000),
            "--time" => value.clone_into(&mut options.time),
            _ => refuse(&format!(
                "`{name}`: give --dir, --kind, --loads, --seeds FROM..TO, --workers, --plait, --draws, --time or --again"
            )),
        }
    }
    options
}
