//! Compares plait's schedulers with the own choice of a multipath QUIC stack.

use quic::world::{Download, PathConfig, download};
use std::error::Error;
use std::process::ExitCode;

/// The schedulers: `None` is noq's own choice.
const CHOICES: [(&str, Option<&str>); 7] = [
    ("noq", None),
    ("minrtt", Some("minrtt")),
    ("roundrobin", Some("roundrobin")),
    ("ecf", Some("ecf")),
    ("blest", Some("blest")),
    ("slot", Some(quic::SLOT)),
    ("slot, cap=off", Some(quic::SLOT_WITHOUT_CAPS)),
];
const SIZES: [u64; 3] = [256_000, 2_000_000, 20_000_000];

const fn path(mbit: u64, rtt_ms: u64, loss_ppb: u32) -> PathConfig {
    PathConfig { bps: mbit * 1_000_000, rtt_ms, loss_ppb }
}

/// The paths, in the order in which they are opened. The loss is the same in both directions.
const NETWORKS: [(&str, [PathConfig; 2]); 4] = [
    ("25 Mbit/s, 25 ms and 4 Mbit/s, 75 ms", [path(25, 25, 0), path(4, 75, 0)]),
    ("the same paths, the slow one first", [path(4, 75, 0), path(25, 25, 0)]),
    (
        "25 Mbit/s, 25 ms and 4 Mbit/s, 75 ms, 0.1 % loss",
        [path(25, 25, 1_000_000), path(4, 75, 1_000_000)],
    ),
    ("10 Mbit/s, 40 ms twice", [path(10, 40, 0), path(10, 40, 0)]),
];

fn main() -> ExitCode {
    let runs = match std::env::args().nth(1).as_deref().map(str::parse) {
        None => 20,
        Some(Ok(runs @ 2..=1000)) => runs,
        Some(_) => {
            eprintln!("quic: the number of runs must be between 2 and 1000");
            return ExitCode::from(2);
        }
    };
    match compare(runs) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quic: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints a table for each network: seconds with 95 % intervals, and the second path's share of the bytes at 20 MB.
fn compare(runs: u64) -> Result<(), Box<dyn Error>> {
    for (name, paths) in &NETWORKS {
        println!("{name}\n");
        println!("| scheduler | 256 kB | 2 MB | 20 MB | second path |\n|---|---|---|---|---|");
        row("first path alone", None, &paths[..1], runs)?;
        for (choice, scheduler) in CHOICES {
            row(choice, scheduler, paths, runs)?;
        }
        println!();
    }
    Ok(())
}

fn row(
    name: &str,
    scheduler: Option<&str>,
    paths: &[PathConfig],
    runs: u64,
) -> Result<(), Box<dyn Error>> {
    print!("| {name} |");
    let mut second = 0.0;
    for bytes in SIZES {
        let results = (1..=runs).map(|seed| download(scheduler, paths, bytes, seed));
        let results = results.collect::<Result<Vec<Download>, _>>()?;
        let seconds: Vec<f64> = results.iter().map(|it| it.seconds).collect();
        let (mean, half) = interval(&seconds);
        print!(" {mean:.3} ± {half:.3} |");
        let sum = |path: usize| results.iter().map(|it| it.sent[path] as f64).sum::<f64>();
        second = sum(1) / (sum(0) + sum(1));
    }
    println!(" {:.1} % |", 100.0 * second);
    Ok(())
}

/// Returns the mean and half of its 95 % interval, by Student's t with two terms of Fisher's expansion.
fn interval(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|it| (it - mean) * (it - mean)).sum::<f64>() / (n - 1.0);
    let (z, free) = (1.959_964_f64, n - 1.0);
    let z3 = z * z * z;
    let t = z
        + (z3 + z) / (4.0 * free)
        + (5.0 * z3 * z * z + 16.0 * z3 + 3.0 * z) / (96.0 * free * free);
    (mean, t * libm::sqrt(variance / n))
}
