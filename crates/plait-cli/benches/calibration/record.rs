//! Live measurements and races.

use super::Options;
use super::links::Case;
use super::store::Store;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fs;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// A load that can be raced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Its name in the advice.
    pub(super) name: &'static str,
    workload: &'static str,
    pub(super) measure: &'static str,
}

const fn load(name: &'static str, workload: &'static str, measure: &'static str) -> Load {
    Load { name, workload, measure }
}

/// The loads of `plait advise`, the quick ones first.
pub(super) const LOADS: [Load; 5] = [
    load("small downloads", "download:256kB", "completion_ms"),
    load("large downloads", "download:8MB", "completion_ms"),
    load("web pages", "web:amazon", "page_load_ms"),
    load("calls", "stream:3kB@20ms,for=8s", "message_delay_median_ms"),
    load("video", "video:paper,for=60s", "bit_rate_mbps"),
];
/// Live runs of each row.
const RUNS: &str = "3";
/// A run of a race counts if the emulator was never later than this.
const LATE: &str = "5ms";
/// A measurement counts if 99 of 100 packets were not later than this, and none later than the second value, in
/// microseconds.
const LATE_US: [u64; 2] = [1_000, 10_000];
/// Most tries of a measurement.
const TRIES: usize = 3;

/// Measures and races all links that are not there yet.
pub(super) fn record(options: &Options) -> Result<(), String> {
    let cases = Case::all(options.kind, options.seeds)?;
    let measured = Store::open(&options.dir, "measured.jsonl")?;
    let raced = Store::open(&options.dir, "raced.jsonl")?;
    let total = cases.len();
    let queue: Mutex<VecDeque<Case>> = Mutex::new(cases.into());
    let (done, began) = (AtomicUsize::new(0), Instant::now());
    thread::scope(|scope| {
        for _ in 0..options.workers {
            scope.spawn(|| {
                while let Some(case) = queue.lock().ok().and_then(|mut queue| queue.pop_front()) {
                    let outcome = finish(options, &case, &measured, &raced);
                    let number = done.fetch_add(1, Ordering::Relaxed) + 1;
                    let s = began.elapsed().as_secs();
                    let name = &case.name;
                    match outcome {
                        Ok(()) => println!("{number}/{total} {name}: done after {s} s"),
                        Err(why) => println!("{number}/{total} {name}: left out: {why}"),
                    }
                }
            });
        }
    });
    Ok(())
}

/// Makes the parts of a link that are missing.
fn finish(options: &Options, case: &Case, measured: &Store, raced: &Store) -> Result<(), String> {
    let name = &case.name;
    if options.again || measured.get(name).is_none() {
        measured.add(name, measure(options, case)?)?;
    }
    if !case.raced.is_empty() {
        let known = raced.get(name);
        let mut heats = known.as_ref().and_then(|it| it["loads"].as_object().cloned());
        let heats = heats.get_or_insert_default();
        for load in &options.loads {
            if !heats.contains_key(load.name) {
                heats.insert(load.name.to_owned(), race(options, case, load)?);
                let (links, loads) = (&case.raced, &*heats);
                raced.add(name, json!({ "name": name, "links": links, "loads": loads }))?;
            }
        }
    }
    Ok(())
}

/// Measures the links of a case, until the emulator was in time.
fn measure(options: &Options, case: &Case) -> Result<Value, String> {
    let file = |kind: &str| options.dir.join(format!("{}.{kind}", case.name));
    let (links, report) = (file("toml"), file("json"));
    let text = |path: &std::path::Path| path.display().to_string();
    let paths = flags(&case.measured);
    let late = |report: &Value, of: &str| report["lateness"][of].as_u64().unwrap_or(u64::MAX);
    let mut why = String::new();
    for _ in 0..TRIES {
        let _ = fs::remove_file(&links);
        // Real hosts measure while they have nothing else to do.
        let urgent = "chrt -f 5";
        let server = format!("{urgent} {} measure serve", options.plait);
        let mut command = options.plait(&["shell"]);
        command.args(&paths).args(["--server", &server, "--report", &text(&report), "--"]);
        command.args(urgent.split(' ')).args([&options.plait, "measure", "10.99.0.1"]);
        command.args(case.from.iter().flat_map(|from| ["--from", from]));
        command.args(["--time", &options.time, "--json", "-o", &text(&links)]);
        let document = json_of(command)?;
        let shell: Value = fs::read(&report)
            .map_err(|error| error.to_string())
            .and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()))?;
        let [usual, worst] = ["p99_us", "worst_us"].map(|of| late(&shell, of));
        if usual <= LATE_US[0] && worst <= LATE_US[1] {
            let toml = fs::read_to_string(&links).map_err(|error| error.to_string())?;
            let _ = (fs::remove_file(&links), fs::remove_file(&report));
            let (name, links) = (&case.name, &case.measured);
            return Ok(json!({
                "name": name, "links": links, "time": options.time, "file": toml,
                "document": document, "late_us": worst,
            }));
        }
        why = format!("the emulator was {worst} us late, and {usual} us at the 99th percentile");
    }
    Err(why)
}

/// Races a load. Returns the rows.
fn race(options: &Options, case: &Case, load: &Load) -> Result<Value, String> {
    let mut command = options.plait(&["race"]);
    command.args(flags(&case.raced)).args(["--workload", load.workload, "--schedulers", "slot"]);
    command.args(["--runs", RUNS, "--late", LATE, "--json"]);
    let document = json_of(command)?;
    let rows = document["heats"][0]["rows"].as_array().ok_or("no rows")?;
    let row = |row: &Value| json!({ "sender": row["sender"], "measures": row["measures"] });
    Ok(rows.iter().map(row).collect())
}

fn flags(paths: &[String]) -> Vec<&str> {
    paths.iter().flat_map(|path| ["--path", path]).collect()
}

/// Runs a command that writes a document.
fn json_of(mut command: Command) -> Result<Value, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        let problem = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(problem.lines().last().unwrap_or_default().to_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}
