//! Races plait against the stock kernel on the links A to F of docs/promise.md.
//!
//! `measure` sends each load by turns: by plait with its default scheduler, by Multipath TCP of this machine's
//! kernel (cubic and bbr), and by plain TCP over the first link. Links are emulated, and the client is a stock
//! kernel. The runs are added to docs/results/promise-live.csv. `report` runs the same links in the simulator
//! and prints a table; with `--write` it writes docs/results/promise-live.md.
//!
//! ```text
//! cargo bench -p plait-live --bench race --profile release -- measure --runs 5
//! cargo bench -p plait-live --bench race --profile release -- report --write
//! ```
//!
//! `measure` needs root, because it creates namespaces and devices.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, clippy::disallowed_types)]
#![allow(unreachable_pub, dead_code, clippy::expect_used)]

#[path = "../kernel_model/measure.rs"]
mod measure;
#[path = "../kernel_model/model.rs"]
mod model;
#[path = "../../tests/net/mod.rs"]
mod net;
#[path = "../kernel_model/pairs.rs"]
mod pairs;
#[path = "../kernel_model/table.rs"]
mod table;

use measure::Sender;
use pairs::{Group, Load, Pair};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::exit;
use table::{Measure, Measured, Seen, measures, median};

/// Runs of each pair in the simulator.
const SIMULATED_RUNS: u64 = 30;

/// Returns the senders with their names in the file and the headings of their columns.
fn senders() -> [(&'static str, &'static str, Sender); 4] {
    [
        ("plait", "plait, `slot`", Sender::Plait(plait_sched::DEFAULT.to_owned())),
        ("kernel-cubic", "kernel, cubic", Sender::Kernel("cubic".to_owned())),
        ("kernel-bbr", "kernel, bbr", Sender::Kernel("bbr".to_owned())),
        ("tcp-cubic", "plain TCP, cubic", Sender::Tcp("cubic".to_owned())),
    ]
}

struct Options {
    runs: u64,
    pairs: Vec<Pair>,
    file: PathBuf,
    write: bool,
}

fn main() {
    net::stamp::stamp();
    // `cargo bench` adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let Some((command, rest)) = args.split_first() else {
        println!("race: nothing to do; `measure` or `report`");
        return;
    };
    let options = options(rest);
    let outcome = match command.as_str() {
        "measure" => measure_all(&options),
        "report" => report(&options),
        other => refuse(&format!("`{other}`: give `measure` or `report`")),
    };
    if let Err(error) = outcome {
        refuse(&error.to_string())
    }
}

fn refuse(why: &str) -> ! {
    eprintln!("race: {why}");
    exit(2)
}

fn results(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results").join(name)
}

fn options(args: &[String]) -> Options {
    let (mut runs, mut write, mut file) = (5, false, results("promise-live.csv"));
    let mut pairs: Vec<Pair> = pairs::all();
    pairs.retain(|pair| pair.group == Group::Fixed);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "--write" {
            write = true;
            continue;
        }
        let Some(value) = args.next() else { refuse(&format!("{arg} needs a value")) };
        match arg.as_str() {
            "--runs" => runs = value.parse().unwrap_or_else(|_| refuse("--runs needs a number")),
            "--file" => file = PathBuf::from(value),
            "--pairs" => pairs.retain(|pair| value.split(',').any(|name| name == pair.name)),
            other => refuse(&format!("`{other}`: give --runs, --pairs, --file or --write")),
        }
    }
    if pairs.is_empty() {
        refuse("--pairs names none of A to F");
    }
    Options { runs, pairs, file, write }
}

/// Measures all senders of a pair one after the other, and all pairs in each round, so that changes of the machine
/// over time affect all alike.
fn measure_all(options: &Options) -> io::Result<()> {
    if let Some(why) = net::obstacle() {
        refuse(&why);
    }
    for round in 1..=options.runs {
        for pair in &options.pairs {
            for (name, _, sender) in senders() {
                match measure::run(pair, &sender) {
                    Ok(run) => {
                        table::append(&options.file, pair, name, &run)?;
                        eprintln!(
                            "{round}/{} {} {name}: {:.0} ms",
                            options.runs, pair.name, run.completion_ms
                        );
                    }
                    Err(error) => eprintln!("{name}: {error}"),
                }
            }
        }
    }
    Ok(())
}

/// Returns the median of a measure and its range, as text and as a number.
fn summary(seen: &[&Seen], value: fn(&Seen) -> f64) -> (f64, String) {
    let values: Vec<f64> = seen.iter().map(|seen| value(seen)).collect();
    let middle = median(&values);
    let (least, largest) =
        (least(&values), -least(&values.iter().map(|it| -it).collect::<Vec<_>>()));
    (middle, format!("{middle:.0} ({least:.0} to {largest:.0})"))
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Returns the row of one measure of a pair.
fn row(pair: &Pair, (name, value): Measure, measured: &[Measured], simulated: &[Seen]) -> String {
    let links = pair.lines.map(|line| {
        format!("{}/{}/{}", line.mbit, line.rtt.as_micros() / 1_000, line.queue / 1_000)
    });
    let load = match pair.load {
        Load::Download { bytes } => format!("{:.1} MB", bytes as f64 / 1e6),
        Load::Stream { bytes, .. } => format!("{} kB every 50 ms", bytes / 1_000),
    };
    let (expected, _) = summary(&simulated.iter().collect::<Vec<_>>(), value);
    let mut text =
        format!("| {} | {} | {load} | {name} | {expected:.0} |", pair.name, links.join(" and "));
    let mut medians = Vec::new();
    for (sender, ..) in senders() {
        let of = |it: &&Measured| it.pair == pair.name && it.cc == sender;
        let seen: Vec<&Seen> = measured.iter().filter(of).map(|it| &it.seen).collect();
        let (middle, shown) = summary(&seen, value);
        medians.push(middle);
        let _ = write!(text, " {shown} |");
    }
    let kernel = medians[1].min(medians[2]);
    let _ = write!(
        text,
        " {:+.1} % | {:.2} | {:.2} |",
        (medians[0] / expected - 1.0) * 100.0,
        medians[0] / kernel,
        medians[0] / medians[3]
    );
    text
}

/// Writes the page of results, or prints it.
fn report(options: &Options) -> io::Result<()> {
    let measured = table::load(&options.file)?;
    let settings = vec![("schedulers", plait_sched::DEFAULT.to_owned())];
    let runs = measured.iter().filter(|it| it.pair == "A" && it.cc == "plait").count();
    let mut text =
        PAGE.replace("{runs}", &runs.to_string()).replace("{stamp}", net::stamp::stamp());
    for pair in &options.pairs {
        let simulated = model::runs(pair, &settings, SIMULATED_RUNS).map_err(io::Error::other)?;
        for measure in measures(pair.load) {
            let _ = writeln!(text, "{}", row(pair, measure, &measured, &simulated));
        }
    }
    if !options.write {
        print!("{text}");
        return Ok(());
    }
    fs::write(results("promise-live.md"), text)
}

const PAGE: &str = "\
# The links A to F, live

After this page you know how `plait serve` with its defaults does on the links A to F of [promise.md](../promise.md), beside the
Multipath TCP of a stock kernel and plain TCP. The client is a stock kernel in each case. These commands make the page again:

```sh
cargo bench -p plait-live --bench race --profile release -- measure --runs 5
cargo bench -p plait-live --bench race --profile release -- report --write
```

The first command needs root. It sends each load by turns with all four senders, in fresh namespaces over emulated links, and adds
each run to [promise-live.csv](promise-live.csv). The emulator and both ends run in the real-time class. A run counts if no packet
was more than 2 ms late. The second command runs the same links in the simulator and writes this page.

* **Times** are medians in ms, with the least and the largest of {runs} runs. Downloads are judged by the completion time, streams by
  the delay of messages.
* **Links** are rate in Mbit/s, round-trip time in ms and queue in kB. The connection begins on the first one, and plain TCP uses
  only that one.
* `live over simulator` is the difference of the median of plait from the simulator's. The last two columns are its ratios to the
  better one of the two kernels and to plain TCP: below 1.00 plait is faster.

Written on {stamp}.

| pair | links | load | measure | simulator | plait, `slot` | kernel, cubic | kernel, bbr | plain TCP | live over simulator | over the kernel | over plain TCP |
|---|---|---|---|---:|---|---|---|---|---:|---:|---:|
";
