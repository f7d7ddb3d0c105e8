//! Plants causes of slow transfers between stock kernels, and counts how often `plait explain` names them first.
//!
//! `record` draws transfers from a seed, runs each over emulated links, and keeps the captures of both hosts in a
//! directory. It drops captures during which the emulator was late. `judge` explains the captures that are there
//! and prints the table of docs/results/explain-capture.md.
//!
//! ```text
//! cargo bench -p plait-live --bench explain --profile dev -- record --seed 2 --dir captures
//! cargo bench -p plait-live --bench explain --profile dev -- judge --seed 2 --dir captures
//! ```
//!
//! `record` needs root, because it creates namespaces and devices, and tcpdump and nft.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code, clippy::expect_used)]

#[path = "../kernel_model/arguments.rs"]
mod arguments;
mod judge;
#[path = "../../tests/net/mod.rs"]
mod net;
#[path = "../kernel_model/pairs.rs"]
mod pairs;
mod planted;
mod record;

use arguments::{number, range, refuse};
use plait_base::Span;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Transfers of a seed.
const TRANSFERS: u64 = 100;
/// Most tries of a transfer.
const TRIES: usize = 3;
/// A capture counts if no packet was later than this. The delay is one of the link, and the planted cause costs a
/// hundred times as much.
const MOST_LATE: Span = Span::from_millis(20);

/// Options of the command line.
pub struct Options {
    /// Draws the transfers.
    pub seed: u64,
    /// The directory of the captures.
    pub dir: PathBuf,
    /// The first number, and the one after the last.
    pub numbers: (u64, u64),
    /// Print all causes of each capture that is judged wrong.
    pub verbose: bool,
    /// Loss in whole percent of the transfers with planted loss, in place of the drawn one.
    pub loss: Option<u32>,
}

impl Options {
    /// Returns the file with the number of each transfer and the greatest lateness of the emulator, in microseconds.
    pub fn lateness(&self) -> PathBuf {
        self.dir.join(format!("{}-lateness.txt", self.seed))
    }

    /// Returns the file of a capture.
    pub fn file(&self, number: u64, host: &str) -> PathBuf {
        self.dir.join(format!("{}-{number:03}-{host}.pcap", self.seed))
    }
}

fn main() {
    let args = arguments::arguments();
    let Some((command, rest)) = args.split_first() else {
        println!("explain: nothing to do; `record` or `judge`");
        return;
    };
    let options = options(rest);
    let outcome = match command.as_str() {
        "record" => record_all(&options),
        "judge" => judge::judge(&options),
        other => refuse(&format!("`{other}`: give `record` or `judge`")),
    };
    if let Err(error) = outcome {
        refuse(&error.to_string())
    }
}

fn options(args: &[String]) -> Options {
    let mut options = Options {
        seed: 1,
        dir: PathBuf::from("captures"),
        numbers: (0, TRANSFERS),
        verbose: false,
        loss: None,
    };
    for (name, value) in arguments::values(args, &["--verbose"]) {
        match name {
            "--verbose" => options.verbose = true,
            "--seed" => options.seed = number(name, value),
            "--dir" => options.dir = PathBuf::from(value),
            "--loss" => options.loss = Some(number(name, value)),
            "--numbers" => options.numbers = range(name, value),
            other => refuse(&format!(
                "`{other}`: give --seed, --dir, --numbers FROM..TO, --loss or --verbose"
            )),
        }
    }
    options
}

/// Records the transfers whose captures are not there.
fn record_all(options: &Options) -> io::Result<()> {
    if let Some(why) = net::obstacle() {
        refuse(&why);
    }
    fs::create_dir_all(&options.dir)?;
    let _urgent = net::urgent::Urgent::start();
    for number in options.numbers.0..options.numbers.1 {
        let files = ["server", "client"].map(|host| options.file(number, host));
        let [server, client] = files.each_ref().map(PathBuf::as_path);
        if !(server.exists() && client.exists()) {
            record_one(options, number, [server, client])?;
        }
    }
    Ok(())
}

fn record_one(options: &Options, number: u64, files: [&Path; 2]) -> io::Result<()> {
    let mut planted = planted::draw(options.seed, number);
    if let Some(percent) = options.loss {
        planted.lines.iter_mut().filter(|line| line.loss > 0).for_each(|line| line.loss = percent);
    }
    for _ in 0..TRIES {
        let parts = files.map(|file| file.with_extension("part"));
        let worst = record::record(&planted, parts.each_ref().map(PathBuf::as_path))?;
        let verdict = if worst > MOST_LATE { "dropped" } else { "kept" };
        let us = worst.as_micros();
        println!("{number}: {}: {verdict}, {us} us late", planted.kind.words());
        let mut lateness = File::options().create(true).append(true).open(options.lateness())?;
        writeln!(lateness, "{number} {us}")?;
        if worst <= MOST_LATE {
            return parts.iter().zip(files).try_for_each(|(part, file)| fs::rename(part, file));
        }
        parts.iter().try_for_each(fs::remove_file)?;
    }
    Ok(())
}
