//! How often the advice is right: draws links, measures them live, lets `plait advise` judge with only the file of links,
//! and measures the true gain live. It needs root, takes one to two minutes for a link, and is no part of `make test`.
//!
//! `cargo bench -p plait-cli --profile dev --bench calibration -- LINKS [FIRST_SEED]`
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

use plait_base::RandomStream;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
/// The loads whose gain is measured live: name in the advice, and workload.
const LOADS: [(&str, &str); 2] =
    [("small downloads", "download:256kB"), ("large downloads", "download:8MB")];
/// Live runs of each row.
const RUNS: &str = "3";
/// Gain or loss beyond which the sign of the advice counts.
const NOTABLE: f64 = 1.05;

/// The gain of a load on drawn links.
struct Outcome {
    load: &'static str,
    truth: f64,
    low: f64,
    median: f64,
    high: f64,
    verdict: String,
}

impl Outcome {
    fn counts(&self) -> bool {
        self.truth >= NOTABLE || self.truth <= 1.0 / NOTABLE
    }

    fn has_right_sign(&self) -> bool {
        (self.truth > 1.0) == (self.median > 1.0)
    }

    fn is_covered(&self) -> bool {
        (self.low..=self.high).contains(&self.truth)
    }
}

fn main() {
    // Cargo adds --bench.
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|it| it.parse().ok()).collect();
    let (count, first) =
        (numbers.first().copied().unwrap_or(5), numbers.get(1).copied().unwrap_or(1));
    let mut all = Vec::new();
    for seed in first..first + count {
        let links = [link(seed, "a"), link(seed, "b")];
        match judged(seed, &links) {
            Ok(outcomes) => all.extend(outcomes),
            Err(why) => println!("{seed}: left out: {why}"),
        }
    }
    summary(&all);
}

/// Draws a link.
fn link(seed: u64, name: &str) -> String {
    let mut dice = RandomStream::new(seed, &["calibration", name]);
    let mut log = |low: f64, high: f64| low * (high / low).powf(dice.unit());
    let (rate, rtt, queue) = (log(3.0, 40.0), log(10.0, 150.0), log(40.0, 300.0));
    let loss = log(0.01, 0.3);
    let lossy = if dice.below(2) == 0 { String::new() } else { format!(",loss={loss:.3}%") };
    format!("{name}:rate={rate:.2}mbit,rtt={rtt:.1}ms,queue={queue:.0}ms{lossy}")
}

/// Measures, asks for advice, and races.
fn judged(seed: u64, links: &[String; 2]) -> Result<Vec<Outcome>, String> {
    let file = directory().join(format!("{seed}.toml"));
    let _ = fs::remove_file(&file);
    let paths: Vec<&str> = links.iter().flat_map(|it| ["--path", it.as_str()]).collect();
    let server = format!("{PLAIT} measure serve");
    let name = file.display().to_string();
    let measure =
        [PLAIT, "measure", "10.99.0.1", "--from", "a", "--from", "b", "--time", "20s", "-o", &name];
    plait(&[&["shell"], &paths[..], &["--server", &server, "--"], &measure].concat())?;
    let advice = json(&["advise", "--links", &name, "--draws", "40", "--json"])?;
    let mut outcomes = Vec::new();
    for (load, workload) in LOADS {
        let race = [
            "--workload",
            workload,
            "--schedulers",
            "slot",
            "--runs",
            RUNS,
            "--late",
            "5ms",
            "--json",
        ];
        let race = json(&[&["race"], &paths[..], &race].concat())?;
        let rows = race["heats"][0]["rows"].as_array().ok_or("no rows")?;
        let ms = |row: &Value| row["measures"][0]["live"]["median"].as_f64();
        let of = |alone: bool| {
            let rows = rows
                .iter()
                .filter(|row| row["sender"].as_str().unwrap_or("").starts_with("tcp:") == alone);
            rows.filter_map(ms).reduce(f64::min)
        };
        let (bonded, alone) = (of(false).ok_or("no bonded run")?, of(true).ok_or("no run alone")?);
        let lines = advice["lines"].as_array().ok_or("no lines")?;
        let line = lines.iter().find(|it| it["name"] == load).ok_or("no such load")?;
        let gain = |name: &str| line["gain"][name].as_f64().unwrap_or(f64::NAN);
        let outcome = Outcome {
            load,
            truth: alone / bonded,
            low: gain("low"),
            median: gain("median"),
            high: gain("high"),
            verdict: line["verdict"].as_str().unwrap_or_default().to_owned(),
        };
        println!(
            "{seed} {} {}: {load}: true {:.3}, advice {:.3} ({:.3} to {:.3}, {}){}",
            links[0],
            links[1],
            outcome.truth,
            outcome.median,
            outcome.low,
            outcome.high,
            outcome.verdict,
            if outcome.is_covered() { "" } else { " outside" }
        );
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn summary(all: &[Outcome]) {
    for load in LOADS.map(|it| it.0).into_iter().chain(["all"]) {
        let of: Vec<&Outcome> = all.iter().filter(|it| load == "all" || it.load == load).collect();
        let notable: Vec<&&Outcome> = of.iter().filter(|it| it.counts()).collect();
        let right = notable.iter().filter(|it| it.has_right_sign()).count();
        let covered = of.iter().filter(|it| it.is_covered()).count();
        println!(
            "{load}: the sign is right in {right} of {} beyond 5 %; the 80 % interval covers {covered} of {}",
            notable.len(),
            of.len()
        );
    }
}

fn directory() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("calibration");
    fs::create_dir_all(&directory).unwrap();
    directory
}

fn plait(arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = Command::new(PLAIT).args(arguments).output().map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => {
            let problem = String::from_utf8_lossy(&output.stderr).into_owned();
            Err(problem.lines().last().unwrap_or_default().to_owned())
        }
    }
}

fn json(arguments: &[&str]) -> Result<Value, String> {
    serde_json::from_slice(&plait(arguments)?).map_err(|error| error.to_string())
}
