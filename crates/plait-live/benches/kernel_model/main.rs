//! Compares plait's model of a stock Linux kernel with that kernel.
//!
//! `measure` runs Multipath TCP of this machine's kernel over emulated links, and adds the results to
//! docs/results/kernel-model.csv. `compare` runs the same links in the simulator and prints the error of
//! the model. With `--write` it writes docs/results/kernel-model.md.
//!
//! ```text
//! cargo bench -p plait-live --bench kernel_model --profile dev -- measure --runs 7
//! cargo bench -p plait-live --bench kernel_model --profile dev -- compare
//! ```
//!
//! `measure` needs root, because it creates namespaces and devices.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code, clippy::expect_used)]

mod arguments;
mod measure;
mod model;
#[path = "../../tests/net/mod.rs"]
mod net;
mod pairs;
mod report;
mod table;

use arguments::{number, refuse};
use measure::Sender;
use pairs::{Group, Pair};
use std::path::PathBuf;

/// Options of the command line.
struct Options {
    pairs: Vec<Pair>,
    runs: u64,
    cc: String,
    settings: model::Settings,
    write: bool,
    /// The file of measurements.
    file: PathBuf,
}

fn main() {
    let args = arguments::arguments();
    let Some((command, rest)) = args.split_first() else {
        println!("kernel_model: nothing to do; `measure`, `compare` or `list`");
        return;
    };
    let options = options(command, rest);
    let outcome = match command.as_str() {
        "measure" => measure_all(&options),
        "compare" => report::compare(&options),
        "list" => {
            for pair in &options.pairs {
                println!("{} {}: {:?}", pair.group.name(), pair.name, model::arguments(pair));
            }
            Ok(())
        }
        other => refuse(&format!("`{other}`: give `measure`, `compare` or `list`")),
    };
    if let Err(error) = outcome {
        refuse(&error.to_string())
    }
}

fn options(command: &str, args: &[String]) -> Options {
    let (mut runs, mut cc, mut wanted) = (7, "cubic".to_owned(), None);
    let (mut settings, mut write, mut file) = (model::Settings::new(), false, table::file());
    for (name, value) in arguments::values(args, &["--write"]) {
        match name {
            "--write" => write = true,
            "--runs" => runs = number(name, value),
            "--cc" => value.clone_into(&mut cc),
            "--file" => file = PathBuf::from(value),
            "--pairs" => wanted = Some(value),
            "--set" => {
                let Some((name, text)) = value.split_once('=') else { refuse("--set NAME=VALUE") };
                settings.push((Box::leak(name.to_owned().into_boxed_str()), text.to_owned()));
            }
            other => {
                refuse(&format!("`{other}`: give --runs, --cc, --pairs, --file, --set or --write"))
            }
        }
    }
    // The held-out pairs are measured with the others; they are compared only if they are named.
    let is_wanted = |pair: &Pair| match wanted {
        None => command != "compare" || write || pair.group != Group::HeldOut,
        Some("all") => true,
        Some(names) => names.split(',').any(|name| name == pair.name || name == pair.group.name()),
    };
    let pairs: Vec<Pair> = pairs::all().into_iter().filter(is_wanted).collect();
    if pairs.is_empty() {
        refuse("--pairs names no pair; `list` shows them all");
    }
    Options { pairs, runs, cc, settings, write, file }
}

/// Measures all pairs in each round, so that changes of the machine over time affect all pairs alike.
fn measure_all(options: &Options) -> std::io::Result<()> {
    if let Some(why) = net::obstacle() {
        refuse(&why);
    }
    for round in 0..options.runs {
        for pair in &options.pairs {
            match measure::run(pair, &Sender::Kernel(options.cc.clone())) {
                Ok(run) => {
                    table::append(&options.file, pair, &options.cc, &run)?;
                    eprintln!("{} {} {round}: {:.0} ms", options.cc, pair.name, run.completion_ms);
                }
                Err(error) => eprintln!("{error}"),
            }
        }
    }
    Ok(())
}
