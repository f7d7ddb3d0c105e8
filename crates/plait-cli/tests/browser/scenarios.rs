//! Scenarios for the test of pages: the scenarios of the README and the demo, unchanged, and some
//! with further features.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Further commands of the documents: profiles, recordings, and a run.
const DOCUMENTED: &[&str] = &[
    "plait compare --path wifi-home --path lte-att --workload download:512kB --cc cubic,olia",
    "plait compare --path wifi:trace=wifi.csv,rtt=20ms,offset=random \
     --path lte:trace=lte.csv,rtt=50ms,offset=random --workload stream:30kB@50ms,for=20s",
    "plait run --path wifi:rate=25mbit,rtt=25ms --path lte:rate=4mbit,rtt=75ms --workload download:4MB",
];

/// Runs that the documents do not show. Each has a feature that is difficult for a page.
const FURTHER: &[(&str, &str)] = &[
    (
        "outage",
        "--path a:rtt=20ms,rate=8mbit,loss=1%,down=300ms..900ms --path b:rtt=90ms,rate=4mbit,queue=20pkt \
         --workload download:600kB --schedulers ecf+rp --rcvbuf 96KiB",
    ),
    (
        "three-paths",
        "--link up:rate=9mbit,queue=50ms --path a:rtt=12ms,rate=20mbit,via=up,jitter=3ms \
         --path b:rtt=30ms,rate=10mbit,via=up,reorder=2%:9ms,duplicate=1%,corrupt=1% \
         --path c:rtt=80ms,rate=3mbit,backup --workload download:1MB --schedulers blest --cc lia",
    ),
    (
        "stream",
        "--path wifi-home --path lte:profile=lte-att,loss=ge:p=1%,r=30%,bad=50% \
         --workload stream:30kB@50ms,for=4s --schedulers redundant",
    ),
    ("burst", "--path a:rtt=10ms --path b:rtt=100ms --workload burst:15seg --ideal"),
    ("upload", "--path wifi-cafe --path 3g-sprint --workload upload:300kB --schedulers roundrobin"),
    ("plain-tcp", "--path wifi:profile=wifi-home,aqm=codel --workload bulk:2s"),
    (
        "competing",
        "--path wifi-home --path lte-att --workload upload:500kB --compete reno@wifi-home*2",
    ),
    ("one-segment", "--path wifi-home --path lte-att --workload download:1B"),
];

/// Returns the words of a shell line. A word in single quotes may contain spaces.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            c if c.is_whitespace() && !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the arguments of `plait run` for a line of `plait compare` or `plait run`. Flags for files and for
/// many runs are dropped, and each controller becomes a separate run.
fn runs(line: &str) -> Vec<Vec<String>> {
    let dropped = [
        "--vary",
        "--expect",
        "--format",
        "--output",
        "--save-scenario",
        "--html",
        "--events",
        "--runs",
        "--jobs",
    ];
    let mut args = Vec::new();
    let mut given = words(line).into_iter().skip(2);
    while let Some(word) = given.next() {
        if dropped.contains(&word.as_str()) {
            given.next();
        } else if word == "--schedulers" {
            // A run has one scheduler: the first of the list.
            let list = given.next().unwrap_or_default();
            let first = list.split(',').next().unwrap_or_default().to_owned();
            args.extend([word, first]);
        } else if word != "--json" {
            args.push(word);
        }
    }
    let Some(at) = args.iter().position(|word| word == "--cc") else { return vec![args] };
    let controllers: Vec<String> = args[at + 1].split(',').map(str::to_owned).collect();
    let with = |cc: String| {
        let mut args = args.clone();
        args[at + 1] = cc;
        args
    };
    controllers.into_iter().map(with).collect()
}

/// Returns the lines of the README that run a scenario.
fn readme() -> Vec<String> {
    let text = include_str!("../../../../README.md").replace("\\\n", " ");
    let fenced = text.split("```").skip(1).step_by(2).flat_map(str::lines);
    fenced
        .map(|line| line.trim_start_matches("$ "))
        .filter(|line| line.starts_with("plait compare") || line.starts_with("plait run"))
        .map(str::to_owned)
        .collect()
}

/// Returns the command of `make demo`, from the Makefile.
fn demo() -> String {
    let makefile = include_str!("../../../../Makefile");
    let value = |name: &str| {
        let start = format!("{name} := ");
        makefile.lines().find_map(|line| line.strip_prefix(&start)).unwrap()
    };
    let line = value("DEMO").replace("$(WIFI)", value("WIFI")).replace("$(LTE)", value("LTE"));
    format!("plait run {line} --schedulers ecf")
}

/// Writes recordings with the names that the commands use.
fn write_traces(dir: &Path) {
    for (name, mean) in [("wifi.csv", 2_500_000), ("lte.csv", 800_000)] {
        let mut rows = String::new();
        for second in 1..=40_u64 {
            let rate = mean / 4 + second * 7_919 % 13 * mean / 8;
            let _ = writeln!(rows, "{second},{}", if second % 17 == 0 { 0 } else { rate });
        }
        fs::write(dir.join(name), rows).unwrap();
    }
}

/// Returns a name and the arguments of `plait run`, in `dir`, for every page.
pub(crate) fn all(dir: &Path) -> Vec<(String, Vec<String>)> {
    write_traces(dir);
    let mut lines = readme();
    assert!(!lines.is_empty(), "the scenarios of the README");
    lines.extend(DOCUMENTED.iter().map(|line| (*line).to_owned()));
    let mut all = Vec::new();
    for line in lines.iter().chain([&demo()]) {
        for args in runs(line) {
            all.push((format!("readme-{}", all.len()), args));
        }
    }
    for (name, line) in FURTHER {
        all.push(((*name).to_owned(), words(line)));
    }
    all
}
