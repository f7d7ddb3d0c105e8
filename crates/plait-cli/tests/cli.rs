//! The command line as people and scripts use it: help, examples, exit codes, streams, files.
#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
const PATHS: &[&str] = &["--path", "wifi-home", "--path", "lte-att"];

fn plait(args: &[&str]) -> Output {
    Command::new(PLAIT).args(args).env_remove("COLUMNS").output().unwrap()
}

fn compare(args: &[&str]) -> Output {
    plait(&[&["compare"], PATHS, &["--workload", "download:64KiB", "--runs", "3"], args].concat())
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Returns the stderr of a command that must exit with `code` and an empty stdout.
fn refusal(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// If stderr cannot be written, only that line is lost.
#[test]
fn an_unwritable_stderr_ends_nothing() {
    for (args, code) in [(&["doctor", "--no-such-flag"][..], 2), (&["list", "paths", "-v"], 0)] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let status = Command::new(PLAIT).args(args).stdout(Stdio::null()).stderr(full).status();
        assert_eq!(status.unwrap().code(), Some(code), "{args:?}");
    }
}

/// Returns a new directory of this test, with small recordings in it.
fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let stamps: String = (1..=3_000).filter(|ms| ms % 3 != 0).map(|ms| format!("{ms}\n")).collect();
    fs::write(dir.join("link.down"), stamps).unwrap();
    fs::write(dir.join("link.csv"), "1,1000000\n2,0\n3,250000\n").unwrap();
    dir
}

/// Returns every command with its parents, such as `trace show`.
const COMMANDS: &[&str] = &[
    "",
    "compare",
    "run",
    "explain",
    "regress",
    "decide",
    "list",
    "trace",
    "trace show",
    "trace convert",
    "scoreboard",
    "advise",
    "measure",
    "measure import",
    "measure serve",
    "swarm",
    "serve",
    "get",
    "proxy",
    "paths",
    "paths forget",
    "shell",
    "race",
    "race serve",
    "doctor",
    "schema",
    "completions",
    "man",
];

/// Returns the examples of a command's help on a terminal of 100 columns. No example needs more than 80, so
/// none is wrapped.
fn examples_fit(words: &[&str]) {
    let output = Command::new(PLAIT).args(words).env("COLUMNS", "100").output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for line in help.lines().skip(1).take_while(|line| !line.is_empty()) {
        assert!(line.starts_with("  ") && line.chars().count() <= 80, "{words:?}: `{line}`");
    }
}

/// Returns true for the line that a command writes each minute. On a busy host, an example takes longer than that.
fn is_progress(line: &str) -> bool {
    let number = |it: &str| it.parse::<u64>().is_ok();
    let counts = line.strip_prefix("plait: ").and_then(|it| it.split_once(" runs"));
    counts.is_some_and(|(counts, left)| {
        counts.split_once(" of ").is_some_and(|(done, all)| number(done) && number(all))
            && (left.is_empty() || (left.starts_with(", about ") && left.ends_with(" left")))
    })
}

#[test]
fn progress_is_no_error() {
    assert!(is_progress("plait: 171 of 200 runs, about 10 seconds left"));
    assert!(is_progress("plait: 3 of 200 runs"));
    assert!(!is_progress("plait: 3 of 200 runs failed"));
    assert!(!is_progress("plait: --runs: `x`: this is no number"));
}

#[test]
fn every_help_opens_with_examples_that_run() {
    let dir = directory("examples");
    let events = dir.join("run.jsonl").display().to_string();
    let run = "run --path wifi-home --path lte-att --workload download:2MB --events";
    let capture = dir.join("client.pcapng").display().to_string();
    let files = [events.as_str(), "--pcap", capture.as_str()];
    stdout(&plait(&run.split(' ').chain(files).collect::<Vec<_>>()));
    let bin = Path::new(PLAIT).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for command in COMMANDS {
        for flag in ["--help", "-h"] {
            let words: Vec<&str> = command.split_whitespace().chain([flag]).collect();
            examples_fit(&words);
            let help = stdout(&plait(&words));
            let mut lines = help.lines();
            assert_eq!(lines.next(), Some("Examples:"), "{command}");
            let examples: Vec<&str> = lines.take_while(|line| line.starts_with("  ")).collect();
            assert!((2..=3).contains(&examples.len()), "{command}: {examples:?}");
            if flag == "-h" {
                continue;
            }
            for example in examples {
                assert!(example.contains("plait"), "{example}");
                let output = Command::new("sh")
                    .args(["-c", example])
                    .current_dir(&dir)
                    .env("PATH", &path)
                    .env("XDG_CACHE_HOME", &dir)
                    .output();
                let output = output.unwrap();
                let errors = String::from_utf8_lossy(&output.stderr);
                // The result of the doctor depends on the host.
                let found = *command == "doctor" && output.status.code() == Some(3);
                let well = output.status.success() && errors.lines().all(is_progress);
                assert!(well || found, "{example}\n{errors}");
            }
        }
    }
}

#[test]
fn help_lists_what_works_and_nothing_else() {
    let help = stdout(&plait(&["--help"]));
    let listed = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    // A name is indented by two blanks. Its description may continue on the next lines.
    let named = listed.lines().filter(|line| !line.starts_with("   "));
    let names: Vec<&str> = named.filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(
        names,
        [
            "compare",
            "run",
            "explain",
            "regress",
            "decide",
            "list",
            "trace",
            "scoreboard",
            "advise",
            "measure",
            "swarm",
            "experiment",
            "reproduce",
            "serve",
            "get",
            "proxy",
            "paths",
            "shell",
            "race",
            "doctor",
            "schema",
            "completions",
            "man",
            "help"
        ]
    );
}

#[test]
fn the_version_names_commit_and_features() {
    let version = stdout(&plait(&["--version"]));
    assert!(version.starts_with(&format!("plait {}\ncommit ", env!("CARGO_PKG_VERSION"))));
    assert!(version.lines().nth(2).unwrap().starts_with("features "), "{version}");
}

#[test]
fn mistakes_name_place_given_allowed_and_nearest() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["--schedulers", "blset"], &["--schedulers", "`blset`", "did you mean `blest`?", "ecf"]),
        (&["--schedulers", "ecf:bta=1"], &["bta", "beta"]),
        (&["--schedulers", "all,blset"], &["`blset`", "did you mean `blest`?", "allowed: all, "]),
        (&["--schedulers", "all,ecf,all"], &["`all`: given twice"]),
        (&["--schedulers", "ecf,all,ecf"], &["`ecf`: given twice"]),
        (&["--schedulers", "all+rp"], &["`all+rp`", "no decorators", "allowed: all, beside"]),
        (&["--cc", "cubik"], &["--cc", "cubik", "cubic"]),
        (&["--path", "x:rtt=10ms,rate=25"], &["--path x:rate", "`25`", "unit"]),
        (&["--path", "x:rtt=10ms,jiter=2ms"], &["jiter", "did you mean `jitter`?"]),
        (&["--path", "wifi-home"], &["wifi-home", "two paths"]),
        (&["--path", "x:rtt=10ms,trace=nothing-here.down"], &["nothing-here.down"]),
        (&["--expect", "ecf.completion_ms.p59 < 1"], &["--expect", "p59", "p95"]),
        (&["--compete", "cubic@wifi-hom"], &["--compete", "did you mean `wifi-home`?"]),
        (&["--compete", "cubik@wifi-home"], &["--compete", "did you mean `cubic`?"]),
        (&["--compete", "cubic@wifi-home*0"], &["a whole number from 1 to 64"]),
        (&["--compete", "cubic"], &["CC@PATH_OR_LINK*N"]),
        (&["--compete", "cubic@wifi-home", "--ideal"], &["no rate to compete for"]),
        (&["--compete", "fixed:cwnd=BDP@wifi-home"], &["fixed:cwnd=20seg@PATH"]),
        (&["--mtu", "12"], &["--mtu", "12", "576"]),
        (&["--cc", "fixed:cwnd=BDP", "--ideal"], &["fixed:cwnd=BDP", "rate"]),
    ];
    for (args, words) in cases {
        let text = refusal(&compare(args), 2);
        for word in *words {
            assert!(text.contains(word), "{args:?}: `{word}` is not in\n{text}");
        }
    }
    assert!(refusal(&compare(&["--run", "3"]), 2).contains("--runs"));
    assert!(refusal(&compare(&["--seed", "1", "--seed", "2"]), 2).contains("twice"));
    assert!(refusal(&plait(&["list", "schedulers", "ecff"]), 2).contains("did you mean `ecf`?"));
}

#[test]
fn a_mistake_in_a_file_has_line_and_column() {
    let dir = directory("mistakes");
    let file = dir.join("scenario.toml");
    fs::write(&file, "workload = \"download:64KiB\"\nseeed = 3\n").unwrap();
    let text = refusal(&plait(&["compare", "--scenario", file.to_str().unwrap()]), 2);
    assert!(text.contains("scenario.toml:2:1") && text.contains("did you mean `seed`?"), "{text}");
    let link = dir.join("bad.down");
    fs::write(&link, "1\n5\n4\n").unwrap();
    let text = refusal(&plait(&["trace", "show", link.to_str().unwrap()]), 2);
    assert!(text.contains("bad.down:3:"), "{text}");
    let text = refusal(&plait(&["trace", "show", "no-such-file"]), 2);
    assert!(text.contains("no-such-file"), "{text}");
}

#[test]
fn an_expectation_decides_the_exit_code() {
    let held = compare(&["--expect", "tcp:wifi-home.completion_ms.median > 1"]);
    assert_eq!(held.status.code(), Some(0), "{}", String::from_utf8_lossy(&held.stderr));
    let broken = compare(&["--expect", "ecf.completion_ms.p95 < 1"]);
    assert_eq!(broken.status.code(), Some(1));
    assert!(!broken.stdout.is_empty(), "the table comes all the same");
    let text = String::from_utf8(broken.stderr).unwrap();
    assert!(text.contains("ecf.completion_ms.p95 is"), "{text}");
}

#[test]
fn json_has_the_promised_shape() {
    let report: Value = serde_json::from_str(&stdout(&compare(&["--json"]))).unwrap();
    assert_eq!(report["schema"], "plait.compare/1");
    assert_eq!((&report["seed"], &report["runs"]), (&Value::from(1), &Value::from(3)));
    assert_eq!(report["paths"][0]["rate_down_bps"], 20_000_000);
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["scheduler"].as_str().unwrap()).collect();
    assert_eq!(names[names.len() - 2..], ["tcp:wifi-home", "tcp:lte-att"]);
    for row in rows {
        let measure = &row["measures"]["completion_ms"];
        for key in ["mean", "median", "p95", "min", "max", "ci95", "n"] {
            assert!(!measure[key].is_null(), "{key} of {row}");
        }
        assert!(row["measures"].get("message_delay_ms").is_none(), "absent, never zero: {row}");
        assert!(row["path_share"]["wifi-home"].is_number(), "{row}");
    }
    assert_eq!(report["digest"].as_str().unwrap().len(), 64);
    let run = plait(
        &[&["run"], PATHS, &["--workload", "bulk:3s", "--schedulers", "ecf", "--json"]].concat(),
    );
    let run: Value = serde_json::from_str(&stdout(&run)).unwrap();
    assert_eq!((&run["schema"], &run["scheduler"]), (&"plait.run/1".into(), &"ecf".into()));
    let bins = run["timeline"][0]["sent_bytes"].as_array().unwrap();
    let sent: u64 = bins.iter().map(|bytes| bytes.as_u64().unwrap()).sum();
    assert_eq!(run["per_path"][0]["sent_bytes"], sent, "the timeline and the totals agree");
}

#[test]
fn every_schema_is_printed() {
    for command in [
        "compare",
        "run",
        "decide",
        "decide-question",
        "decide-cc",
        "decide-cc-question",
        "list",
        "swarm",
        "swarm-replay",
        "trace",
        "paths",
        "shell",
        "race",
        "doctor",
    ] {
        let schema: Value = serde_json::from_str(&stdout(&plait(&["schema", command]))).unwrap();
        assert!(schema["$schema"].as_str().unwrap().contains("2020-12"), "{command}");
    }
}

#[test]
fn the_bytes_depend_on_the_question_alone() {
    let digest = |args: &[&str]| -> String {
        let report: Value =
            serde_json::from_str(&stdout(&compare(&[&["--json"], args].concat()))).unwrap();
        report["digest"].as_str().unwrap().to_owned()
    };
    let base = digest(&[]);
    assert_eq!(base, digest(&["--jobs", "1"]));
    assert_eq!(base, digest(&["--jobs", "3"]));
    assert_eq!(base, digest(&["--check"]));
    assert_ne!(base, digest(&["--seed", "2"]));
    assert_ne!(base, digest(&["--schedulers", "minrtt"]));
    assert_eq!(stdout(&compare(&[])), stdout(&compare(&[])));
}

#[test]
fn the_last_line_runs_it_again() {
    let first = stdout(&compare(&["--schedulers", "ecf:beta=0.5,blest+rp", "--rcvbuf", "64KiB"]));
    let words = again(&first);
    assert_eq!(first, stdout(&plait(&words.iter().map(String::as_str).collect::<Vec<_>>())));
}

/// Returns the words of the command at the end of a report, as a shell splits them. A backslash continues the
/// line.
fn again(report: &str) -> Vec<String> {
    let command = report.rsplit_once("Run again:").unwrap().1.replace('\\', " ");
    command.split_whitespace().skip(1).map(str::to_owned).collect()
}

/// Without a terminal a report has 80 columns, unless a single word is longer.
#[test]
fn no_report_is_wider_than_80_columns() {
    let run = ["--path", "wifi:rtt=25ms,rate=25mbit,loss=0.1%", "--path", "lte-att", "--workload"];
    let one = |command, workload| [&[command], &run[..], &[workload]].concat();
    for args in [
        one("run", "download:1MB"),
        one("run", "stream:30kB@50ms,for=1s"),
        one("explain", "download:256kB"),
        vec!["swarm", "--seeds", "2"],
        vec!["list"],
        vec!["list", "measures"],
        vec!["list", "schedulers"],
        vec!["list", "paths"],
        vec!["experiment", "list"],
        vec!["list", "schedulers", "ecf"],
        vec!["list", "schedulers", "stms-a"],
        vec!["list", "cc", "wvegas"],
        vec!["list", "workloads", "video"],
        vec!["list", "measures", "goodput_mbps"],
        vec!["scoreboard", "--links", "A", "--schedulers", "minrtt,ecf,ecf+copy"],
        vec!["reproduce", "ton/fig8", "--quick"],
        [&one("compare", "bulk:1s")[..], &["--runs", "2", "--compete", "reno@wifi*2"]].concat(),
        [
            &one("compare", "download:64kB")[..],
            &[
                "--runs",
                "1",
                "--schedulers",
                "minrtt,ecf,blest",
                "--vary",
                "wifi.rtt=10ms..90ms:9",
                "--vary",
                "wifi.rate=1mbit..12mbit:12",
            ],
        ]
        .concat(),
        vec!["explain", "-h"],
        vec!["compare", "-h"],
        vec!["run", "-h"],
        vec!["list", "-h"],
        vec!["reproduce", "-h"],
        vec!["compare", "--help"],
    ] {
        let report = stdout(&plait(&args));
        for line in report.lines().filter(|line| line.trim().contains(' ')) {
            assert!(line.chars().count() <= 80, "{args:?}: {line}");
        }
    }
}

/// The answer comes first. An unknown rate is no advice, and a bad range is refused with its place.
#[test]
fn advice_answers_or_says_what_is_missing() {
    let wifi = ["--path", "wifi:rate=8mbit..10mbit,rtt=20ms,queue=100ms,loss=0%"];
    let lte = ["--path", "lte:rate=8mbit..10mbit,rtt=20ms,queue=100ms,loss=0%"];
    let given = [&["advise"][..], &wifi, &lte, &["--draws", "3"]].concat();
    let text = stdout(&plait(&given));
    assert!(text.starts_with("Bond the links"), "{text}");
    assert!(text.contains("large downloads") && text.contains("calls while lte is down"), "{text}");
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&plait(&[&given[..], &["--json"]].concat()))).unwrap();
    assert_eq!((&json["schema"], &json["draws"]), (&"plait.advice/1".into(), &3.into()));
    let goals = json["lines"][1]["path_bytes"].as_array().map(Vec::len);
    assert_eq!((goals, &json["take"]["goal"]), (Some(2), &"aggregate".into()), "{json}");
    let unknown = stdout(&plait(&[&["advise"][..], &wifi, &["--path", "b:rtt=9ms"]].concat()));
    assert!(unknown.starts_with("Cannot tell: the rate of b is unknown"), "{unknown}");
    let bad = [&["advise"][..], &wifi, &["--path", "b:rtt=9ms,rate=9..10mbit"]].concat();
    assert!(refusal(&plait(&bad), 2).contains("--path b:rate"));
}

/// The page is written beside the report, and a directory is refused before any draw.
#[test]
fn advice_is_a_page_to_send_on() {
    let dir = directory("advice");
    let html = dir.join("advice.html");
    let paths = ["--path", "wifi:rate=9mbit,rtt=20ms", "--path", "lte:rate=8mbit,rtt=50ms,cost=1"];
    let given = [&["advise", "--draws", "2"][..], &paths].concat();
    let report = stdout(&plait(&[&given[..], &["--html", html.to_str().unwrap()]].concat()));
    let page = std::fs::read_to_string(&html).unwrap();
    let answer = page.split_once("<p class=\"verdict\">").unwrap().1.split('<').next().unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&report).contains(&words(&answer.replace("&#39;", "'"))), "{answer}: {report}");
    assert!(report.contains("thrifty") && page.contains("<h2>By goal</h2>"), "{report}");
    assert!(report.contains("--cost lte=1") && page.contains("--cost lte=1"), "{report}");
    let error = refusal(&plait(&[&given[..], &["--html", dir.to_str().unwrap()]].concat()), 2);
    assert!(error.contains("--html"), "{error}");
    // The commands run if addresses are in place of the names.
    if cfg!(all(target_os = "linux", feature = "live")) {
        let lines: Vec<&str> =
            report.lines().filter(|it| it.starts_with("  plait ")).take(3).collect();
        assert_eq!(lines.len(), 3, "{report}");
        for line in lines {
            let names = [
                ("NETWORK_OF_LTE", "100.64.0.0/10"),
                ("ADDRESS", "10.77.0.1"),
                ("wifi", "10.78.1.77"),
                ("lte", "10.78.2.77"),
            ];
            let line = names.iter().fold(line.to_owned(), |line, it| line.replace(it.0, it.1));
            let words: Vec<&str> = line.split_whitespace().skip(1).chain(["--dry-run"]).collect();
            assert!(stdout(&plait(&words)).contains("ip route add"), "{line}");
        }
    }
}

/// A random scoreboard writes its page and its map beside the report. A directory is refused before any cell runs.
#[test]
fn a_random_scoreboard_is_drawn() {
    let dir = directory("random-scoreboard");
    let [svg, html] = ["map.svg", "board.html"].map(|name| dir.join(name));
    let [svg, html] = [&svg, &html].map(|path| path.to_str().unwrap());
    let board = ["scoreboard", "--random", "6", "--schedulers", "minrtt", "--no-cache"];
    let report = stdout(&plait(&[&board[..], &["--svg", svg, "--html", html]].concat()));
    let first = report.lines().next().unwrap();
    let page = fs::read_to_string(html).unwrap();
    assert!(page.contains(first) && page.contains("<td>minrtt</td>"), "{first}");
    assert!(fs::read_to_string(svg).unwrap().starts_with("<svg "));
    for flag in ["--svg", "--html"] {
        let refused = refusal(&plait(&[&board[..], &[flag, dir.to_str().unwrap()]].concat()), 2);
        assert!(refused.contains(flag), "{refused}");
    }
    assert!(refusal(&plait(&["scoreboard", "--svg", svg]), 2).contains("--random"));
}

/// Every command fits its `-h` on one screen.
#[test]
fn every_short_help_fits_a_screen() {
    for command in COMMANDS {
        let words: Vec<&str> = command.split_whitespace().chain(["-h"]).collect();
        let short = stdout(&plait(&words));
        let lines = short.lines().count();
        assert!(lines <= 42, "{command}: {lines} lines\n{short}");
    }
}

/// `-h` shows the most important flags on one screen. `--help` shows all under headings.
#[test]
fn the_short_help_fits_a_screen() {
    for command in ["compare", "run", "explain"] {
        let short = stdout(&plait(&[command, "-h"]));
        let (lines, long) = (short.lines().count(), stdout(&plait(&[command, "--help"])));
        assert!((24..=40).contains(&lines), "{command}: {lines} lines\n{short}");
        for flag in ["--path", "--workload", "--scheduler", "--cc", "--seed", "--json"] {
            assert!(short.contains(flag), "{command}: {flag}");
        }
        assert!(!short.contains("--idle-restart") && long.contains("--idle-restart"), "{command}");
        for heading in ["Scenario:", "Runs:", "Multipath TCP:", "TCP:", "Hosts and model:"] {
            assert!(long.contains(&format!("\n{heading}\n")), "{command}: {heading}");
        }
    }
}

/// `--scheduler` is the scheduler of the run in each command. Its old spelling works too.
#[test]
fn one_flag_names_the_scheduler_of_a_run() {
    let paths = [PATHS, &["--workload", "download:64KiB"]].concat();
    for command in ["run", "explain"] {
        let with = |more: &[&str]| plait(&[&[command], &paths[..], more].concat());
        let (new, old) = (with(&["--scheduler", "ecf"]), with(&["--schedulers", "ecf"]));
        let text = stdout(&new);
        assert_eq!(text, stdout(&old));
        let heading = text.lines().any(|line| line.starts_with("ecf, cubic"));
        assert!(heading && text.contains("--scheduler ecf"), "{text}");
        let refused = refusal(&with(&["--schedulers", "ecf,blest"]), 2);
        assert!(refused.starts_with("plait: --scheduler: `plait "), "{refused}");
    }
    let list = plait(&[&["explain"], &paths[..], &["--schedulers", "ecf,blest"]].concat());
    let proposal = "--scheduler ecf --compare-with blest";
    assert!(refusal(&list, 2).contains(proposal));
    let words = [&["explain"], &paths[..], &proposal.split(' ').collect::<Vec<_>>()].concat();
    assert!(stdout(&plait(&words)).contains("--compare-with blest"));
}

#[test]
fn a_list_of_nothing_lists_what_there_is_to_list() {
    let text = stdout(&plait(&["list"]));
    for kind in ["schedulers", "cc", "workloads", "paths", "measures"] {
        assert!(text.lines().any(|line| line.starts_with(kind)), "{kind}: {text}");
    }
    let json: Value = serde_json::from_str(&stdout(&plait(&["list", "--json"]))).unwrap();
    assert_eq!(json["entries"].as_array().unwrap().len(), 5);
}

#[test]
fn a_saved_scenario_runs_again() {
    let dir = directory("saved");
    let file = dir.join("scenario.toml");
    let file = file.to_str().unwrap();
    let first = stdout(&compare(&["--save-scenario", file, "--cc", "lia", "--json"]));
    assert_eq!(first, stdout(&plait(&["compare", "--scenario", file, "--json"])));
    let one = &["--workload", "download:64KiB", "--cc", "lia", "--json", "--save-scenario", file];
    let first = stdout(&plait(&[&["run"], PATHS, one].concat()));
    assert_eq!(first, stdout(&plait(&["run", "--scenario", file, "--json"])));
}

#[test]
fn files_that_cannot_be_had_are_named_with_their_flag_and_a_remedy() {
    let dir = directory("files");
    fs::write(dir.join("binary"), [0xff, 0xfe, 0]).unwrap();
    let name = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    let (missing, here, binary) = (name("no/where"), name(""), name("binary"));
    let below = name("link.csv/x");
    for flag in ["--output", "--save-scenario"] {
        let text = refusal(&compare(&[flag, &missing]), 2);
        assert!(text.starts_with(&format!("plait: {flag}: `{missing}`: there is no")), "{text}");
        assert!(text.contains("mkdir -p") && !dir.join("no").exists(), "{text}");
        let text = refusal(&compare(&[flag, &here]), 2);
        assert!(text.contains("it is a directory"), "{text}");
        let text = refusal(&compare(&[flag, &below]), 2);
        assert!(text.contains("link.csv` is not a directory"), "{text}");
    }
    for flag in ["--output", "--save-scenario", "--html", "--events"] {
        let args = ["--workload", "download:64KiB", flag, &missing];
        let text = refusal(&plait(&[&["run"], PATHS, &args].concat()), 2);
        assert!(text.contains(flag) && text.contains("there is no directory"), "{text}");
    }
    for (file, words) in
        [(&missing, "no such file"), (&here, "a directory"), (&binary, "not text in UTF-8")]
    {
        let text = refusal(&plait(&["compare", "--scenario", file]), 2);
        assert!(text.contains(words) && text.contains("--scenario"), "{text}");
        let path = format!("x:rtt=9ms,trace={file}");
        let text = refusal(&compare(&["--path", &path]), 2);
        assert!(text.contains(words) && text.contains("--path x:trace"), "{text}");
        let text = refusal(&plait(&["trace", "show", file]), 2);
        assert!(text.contains(words.split(" in").next().unwrap()), "{text}");
        assert!(!text.contains("os error"), "{text}");
    }
}

#[test]
fn a_value_in_the_place_of_a_file_comes_with_its_flag() {
    for (words, task) in [
        (vec!["explain"], "plait explain"),
        (vec!["explain", "--seed", "2"], "plait explain"),
        (vec!["trace", "show"], "plait run"),
        (vec!["trace", "convert", "--to", "csv"], "plait run"),
        (vec!["experiment", "run"], "plait run"),
    ] {
        for (value, flag) in
            [("bulk:10s", "workload"), ("wifi-home", "path"), ("ecf:beta=1", "scheduler")]
        {
            let text = refusal(&plait(&[&words[..], &[value]].concat()), 2);
            assert!(text.contains(&format!("`{value}`: there is no such file")), "{text}");
            let remedy = format!("write the flag before it: {task} --{flag} {value}\n");
            assert!(text.contains(&remedy), "{text}");
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_that_cannot_be_written_is_refused_before_anybody_is_dialled() {
    let get = ["get", "http://10.77.0.1/", "--from", "10.77.0.3", "--dry-run", "--output"];
    for (file, words) in [("/nosuch/x", "there is no directory `/nosuch`"), (".", "a directory")] {
        let told = refusal(&plait(&[&get[..], &[file]].concat()), 2);
        assert!(told.starts_with(&format!("plait: --output: `{file}`: ")), "{told}");
        assert!(told.contains(words), "{told}");
    }
    let directory = directory("get_output");
    let file = directory.join("file").display().to_string();
    fs::write(&file, "as it was").unwrap();
    assert!(stdout(&plait(&[&get[..], &[&file]].concat())).contains("TUN device"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "as it was");
}

#[test]
fn an_address_without_a_port_is_refused_with_the_flag_and_the_remedy() {
    let serve = ["serve", "--listen", "10.77.0.1:80", "--to", "127.0.0.1:8080", "--dry-run"];
    let with = |flag: &str, value: &str| {
        let mut args = serve.to_vec();
        match args.iter().position(|it| *it == flag) {
            Some(at) => args[at + 1] = value,
            None => args.extend([flag, value]),
        }
        refusal(&plait(&args), 2)
    };
    for (flag, shape, example) in [
        ("--listen", "ADDR:PORT", "10.0.0.1:80"),
        ("--public", "ADDR:PORT", "10.0.0.1:80"),
        ("--metrics", "ADDR:PORT", "10.0.0.1:80"),
        ("--to", "HOST:PORT", "10.0.0.1:80"),
    ] {
        let told = "the port is missing\n  allowed";
        let told = format!("plait: {flag}: `10.0.0.1`: {told}: {shape}, such as {example}\n");
        assert_eq!(with(flag, "10.0.0.1"), told);
    }
    let told = with("--advertise", "10.77.0.2:80");
    assert!(told.contains("--advertise: `10.77.0.2:80`") && told.contains("as 10.77.0.2\n"));
    let told = refusal(&plait(&["proxy", "--socks", "::1", "--via", "10.77.0.3"]), 2);
    assert!(told.contains("--socks: `::1`") && told.contains("as [::1]:80\n"), "{told}");
    let told = refusal(&plait(&["get", "10.0.0.1", "--from", "10.77.0.3"]), 2);
    assert!(told.contains("`10.0.0.1`: the port is missing"), "{told}");
}

#[test]
#[cfg(target_os = "linux")]
fn addresses_of_the_host_are_refused_with_the_remedy() {
    let serve = ["serve", "--listen", "127.0.0.1:80", "--to", "127.0.0.1:8080", "--dry-run"];
    let said = refusal(&plait(&serve), 2);
    assert!(said.contains("--listen: `127.0.0.1`: the kernel of this host"), "{said}");
    assert!(said.contains("use --public for this one"), "{said}");
    let get = ["get", "10.77.0.1:80", "--from", "::1", "--dry-run"];
    let said = refusal(&plait(&get), 2);
    assert!(said.contains("--from: `::1`") && said.contains("--from eth0"), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_server_that_cannot_be_is_refused_before_anything_is_set() {
    let with = |listen: &str, to: &str, more: &[&str]| {
        let serve = ["serve", "--listen", listen, "--to", to, "--dry-run"];
        refusal(&plait(&[&serve[..], more].concat()), 2)
    };
    let (listen, to) = ("10.77.0.1:80", "127.0.0.1:8080");
    let far = "203.0.113.7";
    for (told, words) in [
        (with(listen, listen, &[]), ["--to: `10.77.0.1:80`", "as --listen does"]),
        (with(listen, "10.77.0.2:9", &["--advertise", "10.77.0.2"]), ["--to: ", "as --advertise"]),
        (
            with(listen, to, &["--public", "127.0.0.1:80"]),
            ["--public: `127.0.0.1`", "only this host"],
        ),
        (with(listen, to, &["--public", "224.0.0.1:80"]), ["--public: ", "multicast"]),
        (with("224.0.0.1:80", to, &[]), ["--listen: `224.0.0.1`", "multicast"]),
        (with("[::ffff:10.0.0.1]:80", to, &[]), ["--listen: ", "give 10.0.0.1"]),
        (
            with(listen, to, &["--advertise", "10.77.0.1"]),
            ["--advertise: ", "the address of --listen"],
        ),
        (with(listen, to, &["--pcap", "x", "--qlog", "./x"]), ["--qlog: `./x`", "file of --pcap"]),
        (with(listen, to, &["--device", "1234567890123456"]), ["--device: ", "allowed: 1 to 15"]),
        (with(listen, to, &["--device", "a/b"]), ["--device: `a/b`", "allowed: 1 to 15"]),
        (with(listen, to, &["--cc", "bbx"]), ["--cc: unknown", "\n  allowed: "]),
        (with("fd77::1:80", to, &[]), ["--listen: `fd77::1:80`", "as [fd77::1]:80"]),
        (
            with(listen, "http://web:81", &[]),
            ["--to: `http://web:81`", "HOST:PORT, such as web:81"],
        ),
    ] {
        assert!(words.iter().all(|it| told.contains(it)), "{words:?}: {told}");
    }
    // If sockets may bind to any address, a foreign address cannot be recognised.
    let any = fs::read_to_string("/proc/sys/net/ipv4/ip_nonlocal_bind");
    if any.is_ok_and(|text| text.trim() == "0") {
        let told = with(listen, to, &["--public", &format!("{far}:80")]);
        assert!(told.contains("no device of this host has it\n  give an address"), "{told}");
    }
}

#[test]
fn limits_that_cannot_be_kept_are_refused_with_the_remedy() {
    let with = |flags: &[&str]| {
        let serve = ["serve", "--listen", "10.77.0.1:80", "--to", "127.0.0.1:8080", "--dry-run"];
        plait(&[&serve[..], flags].concat())
    };
    for (flags, words) in [
        (&["--max-connections", "0"][..], "--max-connections"),
        (&["--max-connections", "65", "--memory", "16MiB"], "suffices for 64, 256 KiB each"),
        (&["--memory", "100kB"], "allowed: 1MiB or more"),
        (&["--memory", "many"], "--memory"),
        (&["--memory", "5"], "has no unit: a number of bytes needs one of B, kB"),
        (&["--memory", "5"], "\n  allowed: 1MiB or more"),
        (&["--user-timeout", "5"], "\n  allowed: off, or from 1s to 1440min"),
        (&["--user-timeout", "10ms"], "\n  allowed: off, or from 1s to 1440min"),
        (&["--user-timeout", "2000min"], "\n  allowed: off, or from 1s to 1440min"),
        (&["--keep-alive", "7200"], "\n  allowed: off, or from 1s to 1440min"),
        (&["--keep-alive", "1ms"], "\n  allowed: off, or from 1s to 1440min"),
        (&["--scheduler", "stms-a:count_lost=x"], "cannot be `x`\n  allowed: off|resting|on"),
    ] {
        let told = refusal(&with(flags), 2);
        assert!(told.contains(words), "{told}");
    }
    stdout(&with(&["--max-connections", "64", "--memory", "16MiB"]));
}

#[test]
fn a_target_that_cannot_be_dialled_is_refused_before_anything_is_set() {
    let with = |target: &str, from: &[&str]| {
        let from = from.iter().flat_map(|from| ["--from", from]);
        let args: Vec<&str> = ["get", target, "--dry-run"].into_iter().chain(from).collect();
        refusal(&plait(&args), 2)
    };
    for (target, words) in [
        ("http://127.0.0.1/", "this host itself"),
        ("0.0.0.0:80", "all addresses"),
        ("224.0.0.1:80", "multicast"),
        ("http://[fd77::1]/", "it has no IPv4 address, and --from has only IPv4 addresses"),
        ("http:/10.0.0.1/x", "it is neither a URL nor HOST:PORT"),
    ] {
        let told = with(target, &["10.77.0.3"]);
        assert!(told.contains(words), "{told}");
    }
    let told = with("10.0.0.1:80", &["10.77.0.3", "10.77.0.3"]);
    assert!(told.starts_with("plait: --from: `10.77.0.3`: the address is given twice"), "{told}");
    let told = with("10.0.0.1:80", &["10.77.0.3@nosuch0"]);
    assert!(told.contains("`10.77.0.3@nosuch0`: this host has no device `nosuch0`"), "{told}");
    let proxy = ["proxy", "--socks", "127.0.0.1:1080", "--via", "10.77.0.3@nosuch0", "--dry-run"];
    let told = refusal(&plait(&proxy), 2);
    assert!(
        told.starts_with("plait: --via: `10.77.0.3@nosuch0`: this host has no device"),
        "{told}"
    );
}

#[test]
fn a_rule_that_cannot_be_is_refused_with_its_place() {
    let file = directory("rules").join("rules.txt");
    let path = file.to_str().unwrap();
    let serve = ["serve", "--listen", "10.77.0.1:80", "--to", "127.0.0.1:8080", "--dry-run"];
    let with = |text: &str, more: &[&str]| {
        fs::write(&file, text).unwrap();
        plait(&[&serve[..], &["--rules", path], more].concat())
    };
    let text = "# home\nredundant from=10.0.0.0/8\necf  port=443\n";
    let told = format!("plait: {path}:3:6: `port=443`: the server does not listen on this port\n");
    let said = refusal(&with(text, &[]), 2);
    assert!(said.starts_with(&told) && said.contains("--port 443=SCHEDULER"), "{said}");
    assert!(stdout(&with(text, &["--port", "443=minrtt"])).contains("TUN device"));
    let said = refusal(&with("\n  ecff port=80\n", &[]), 2);
    assert!(said.starts_with(&format!("plait: {path}:2:3: ")), "{said}");
    assert!(said.contains("did you mean `ecf`?"), "{said}");
    fs::remove_file(&file).unwrap();
    let said = refusal(&plait(&[&serve[..], &["--rules", path]].concat()), 2);
    assert!(said.contains(path) && !said.contains("os error"), "{said}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_reader_that_goes_away_is_no_error_and_a_full_disk_is_one() {
    let shell = |line: &str| {
        let line = line.replace("plait run", &format!("{PLAIT} run {}", PATHS.join(" ")));
        let output = Command::new("bash").args(["-c", &line]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let run = "set -o pipefail; plait run --workload download:640kB";
    for tail in ["--events /dev/stdout | head -1", "--json | head -1", "| head -1"] {
        assert_eq!(shell(&format!("{run} {tail}")), (Some(0), String::new()), "{tail}");
    }
    for (tail, place) in [
        ("> /dev/full", "stdout: "),
        ("--output /dev/full", "--output: `/dev/full`"),
        ("--html /dev/full", "--html: `/dev/full`"),
        ("--events /dev/full", "--events: `/dev/full`"),
    ] {
        let (code, said) = shell(&format!("{run} {tail}"));
        assert_eq!(code, Some(2), "{tail}: {said}");
        assert!(said.contains(place) && said.contains("No space left on device\n"), "{said}");
    }
    let (code, said) = shell(&format!("{run} --html x --events x"));
    assert!(code == Some(2) && said.contains("--html names the same file"), "{said}");
}

/// If output cannot be written, the command fails, for help as for results.
#[test]
#[cfg(target_os = "linux")]
fn no_command_hides_that_stdout_takes_no_more() {
    let helps = COMMANDS.iter().map(|command| format!("{command} --help"));
    let others = ["--version", "schema run", "man", "completions bash", "list paths"];
    for line in helps.chain(others.map(str::to_owned)) {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output =
            Command::new(PLAIT).args(line.split_whitespace()).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert_eq!(said, "plait: stdout: No space left on device\n", "{line}");
    }
}

#[test]
fn the_help_of_help_is_that_of_the_program() {
    let help = stdout(&plait(&["help"]));
    for flag in ["--help", "-h"] {
        assert_eq!(stdout(&plait(&["help", flag])), help, "{flag}");
    }
}

#[test]
fn the_help_of_run_speaks_of_one_run() {
    let help = stdout(&plait(&["run", "--help"]));
    let default = format!("The scheduler [default: {}]", plait_sched::DEFAULT);
    assert!(help.contains(&default), "{help}");
    for word in ["default: all", "default: 30", "--vary", "--expect", "--jobs"] {
        assert!(!help.contains(word), "{word}");
    }
}

#[test]
fn controllers_share_the_baseline_of_the_best_path() {
    let text = stdout(&compare(&["--cc", "cubic,fixed:cwnd=4seg", "--schedulers", "minrtt"]));
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("tcp:wifi-home (cubic), the best path alone"), "{text}");
    let one = stdout(&compare(&["--schedulers", "minrtt"]));
    assert!(!one.contains("(cubic)"), "{one}");
    let json = stdout(&compare(&["--cc", "cubic,fixed:cwnd=4seg", "--json"]));
    let report: Value = serde_json::from_str(&json).unwrap();
    let rows = report["rows"].as_array().unwrap();
    let median = |row: &Value| row["measures"]["completion_ms"]["median"].as_f64().unwrap();
    let alone = rows.iter().filter(|row| row["scheduler"].as_str().unwrap().starts_with("tcp:"));
    let best = alone.map(median).fold(f64::INFINITY, f64::min);
    for row in rows {
        let speedup = row["speedup_vs_best_path"].as_f64().unwrap();
        assert!((speedup - best / median(row)).abs() < 1e-9, "{row}");
    }
}

#[test]
fn data_goes_to_stdout_or_the_file_and_nothing_else_does() {
    let dir = directory("output");
    let file = dir.join("report.md");
    let output = compare(&["--format", "markdown", "--output", file.to_str().unwrap()]);
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    assert!(fs::read_to_string(file).unwrap().contains("| --- |"));
    let table = compare(&[]);
    assert!(table.stderr.is_empty(), "no animation where stderr is no terminal");
    assert!(!stdout(&table).contains('\u{1b}'), "no colour in a pipe");
    let rows = plait_sched::SCHEDULERS.len() + 2;
    let said = format!("{rows} rows, 3 runs each");
    assert!(String::from_utf8(compare(&["-v"]).stderr).unwrap().contains(&said));
    let csv = stdout(&compare(&["--format", "csv"]));
    assert!(csv.starts_with("scheduler,cc,measure,mean,"));
    let csv = stdout(&compare(&["--format", "csv", "--per-run", "--schedulers", "ecf"]));
    let (header, rows) = csv.split_once('\n').unwrap();
    assert!(header.starts_with("scheduler,cc,run,seed,completed,failure,completion_ms,"), "{csv}");
    assert!(header.contains(",sent_bytes.wifi-home,"), "{header}");
    let runs: Vec<&str> = rows.lines().collect();
    assert_eq!(runs.len(), 9, "three rows with three runs: {csv}");
    assert!(runs.iter().all(|run| run.split(',').count() == header.split(',').count()));
    assert!(runs[0].starts_with("ecf,cubic,0,1,true,,"), "{csv}");
    let text = refusal(&compare(&["--format", "markdown", "--per-run"]), 2);
    assert!(text.contains("--format csv --per-run"), "{text}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_long_run_shows_on_a_terminal_how_far_it_is() {
    // `script` runs a command on its own terminal and records the output.
    let terminal = |args: &str| {
        let line = format!("{PLAIT} run {} {args} > /dev/null", PATHS.join(" "));
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").stdin(Stdio::null());
        script.output().ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Some(bulk) = terminal("--workload bulk:20s") else {
        writeln!(std::io::stdout(), "\nskipped: progress on a terminal: no `script`").unwrap();
        return;
    };
    assert!(bulk.contains(" of 20.0 s of virtual time"), "{bulk:?}");
    let download = terminal("--workload download:20MB").unwrap();
    assert!(download.contains(" s of virtual time"), "{download:?}");
    assert_eq!(terminal("--workload download:20MB -q").unwrap(), "");
    let piped = plait(&[&["run"], PATHS, &["--workload", "bulk:20s"]].concat());
    assert!(piped.status.success() && piped.stderr.is_empty(), "none where it is no terminal");
}

#[test]
fn colour_is_for_terminals_and_those_who_force_it() {
    let coloured = |no_color: Option<&str>| {
        let mut command = Command::new(PLAIT);
        command.args(["list", "cc"]).env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        stdout(&command.output().unwrap()).contains('\u{1b}')
    };
    assert!(coloured(None));
    assert!(!coloured(Some("1")));
}

#[test]
fn all_stands_in_a_list_for_those_that_it_does_not_name() {
    let rows = |list: &str| -> Vec<String> {
        let report: Value =
            serde_json::from_str(&stdout(&compare(&["--json", "--schedulers", list]))).unwrap();
        let rows = report["rows"].as_array().unwrap().iter();
        let names = rows.map(|row| row["scheduler"].as_str().unwrap().to_owned());
        names.filter(|name| !name.starts_with("tcp:")).collect()
    };
    let sorted = |list: &str| {
        let mut names = rows(list);
        names.sort();
        names
    };
    let every = rows("all");
    assert_eq!(sorted("all,ecf"), sorted("all"), "each name once");
    assert_eq!(rows("ecf,all")[0], "ecf");
    let more = rows("all,ecf:beta=0.5,minrtt+rp");
    assert_eq!(more[..every.len()], every);
    assert_eq!(more[every.len()..], ["ecf:beta=0.5", "minrtt+rp"]);
}

#[test]
fn without_randomness_hosts_jitter_or_there_is_one_exact_run() {
    let paths = ["--path", "a:rtt=20ms,rate=10mbit", "--path", "b:rtt=60ms,rate=5mbit"];
    let args = [&["compare"], &paths[..], &["--workload", "burst:15seg", "--json"]].concat();
    let runs = |more: &[&str]| {
        let text = stdout(&plait(&[&args[..], more].concat()));
        let report: Value = serde_json::from_str(&text).unwrap();
        let delay = &report["rows"][0]["measures"]["message_delay_ms"];
        let spread = delay["max"].as_f64().unwrap() - delay["min"].as_f64().unwrap();
        (delay["n"].as_u64().unwrap(), spread > 0.0)
    };
    assert_eq!(runs(&["--exact"]), (1, false));
    assert_eq!(runs(&["--runs", "5"]), (5, true));
    assert_eq!(runs(&["--runs", "5"]), runs(&["--runs", "5", "--jobs", "1"]));
}

#[test]
fn a_trace_converts_there_and_back() {
    let dir = directory("convert");
    let file = dir.join("link.csv");
    let down = dir.join("out.down");
    let (file, down) = (file.to_str().unwrap(), down.to_str().unwrap());
    stdout(&plait(&["trace", "convert", file, "--to", "mahimahi", "--output", down]));
    let csv = stdout(&plait(&["trace", "convert", down, "--to", "csv"]));
    assert!(csv.lines().any(|line| line == "2,0"), "the silence stays: {csv}");
    let shown: Value =
        serde_json::from_str(&stdout(&plait(&["trace", "show", file, "--json"]))).unwrap();
    assert_eq!(shown["outages"][0]["from_ms"], 1000.0);
    assert_eq!((&shown["max_bps"], &shown["mean_bps"]), (&8_000_000.into(), &3_333_333.into()));
}

/// Returns the error for an input that exceeds a limit. `timeout` ends the command after 30 s. That is long for
/// a busy machine, but far less than quadratic work would take.
fn limited(args: &[&str], stdin: Stdio, limit: &str) {
    let output = Command::new("timeout").args(["30", PLAIT]).args(args).stdin(stdin).output();
    let text = refusal(&output.unwrap(), 2);
    assert!(text.contains(limit), "{args:?}: {text}");
}

#[test]
fn inputs_beyond_a_limit_are_refused_at_once_and_the_limit_is_named() {
    let dir = directory("limits");
    let endless = || Stdio::from(fs::File::open("/dev/zero").unwrap());
    let path = ["--path", "a:rtt=9ms,rate=1mbit"];
    let data = "larger than 64 MiB, the limit";
    let settings = "larger than 1 MiB, the limit";
    for (args, limit) in [
        (vec!["compare", "--scenario", "/dev/zero"], settings),
        (vec!["experiment", "run", "/dev/zero"], settings),
        (vec!["swarm", "--replay", "/dev/zero"], settings),
        (vec!["swarm", "--replay", "-"], settings),
        (vec!["decide"], settings),
        (vec!["decide", "--cc"], settings),
        (vec!["trace", "show", "/dev/zero"], data),
        (vec!["explain", "/dev/zero"], "it is a pipe or a device, and a file is read twice"),
        ([&["run", "--workload", "video:/dev/zero"], &path[..]].concat(), data),
        ([&["run", "--workload", "web:/dev/zero"], &path[..]].concat(), data),
        (vec!["run", "--workload", "bulk:1s", "--path", "a:rtt=9ms,trace=/dev/zero"], data),
    ] {
        limited(&args, endless(), limit);
    }
    let write = |name: &str, text: String| {
        let file = dir.join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let many = |text: &str, count: usize| text.repeat(count);
    let mpd = |inside: String| {
        format!("<MPD><Period><AdaptationSet>{inside}</AdaptationSet></Period></MPD>")
    };
    let encodings = |count| mpd(many("<Representation bandwidth=\"1\"/>", count));
    let attributes: String = (0..300_000).map(|at| format!(" a{at}=\"\"")).collect();
    let entry = r#"{"startedDateTime":"2024-01-01T00:00:00Z","time":1,"request":{"url":"h"},"response":{}},"#;
    for (name, text, limit) in [
        ("8000.mpd", encodings(8_000), "more than 64 representations, the limit"),
        ("200000.mpd", encodings(200_000), "more than 64 representations, the limit"),
        (
            "wide.mpd",
            mpd(format!("<a{attributes}/>")),
            "more than 64 attributes of an element, the",
        ),
        ("large.mpd", mpd(many(" ", 17 << 20)), "larger than 16 MiB, the limit"),
        (
            "long.json",
            format!(
                r#"{{"segment_duration_ms":1,"bitrates_kbps":[1],"segment_sizes_bits":[{}[1]]}}"#,
                many("[1],", 200_000)
            ),
            "a list of more than 100000 items",
        ),
    ] {
        let workload = format!("video:{}", write(name, text));
        limited(&[&["run", "--workload", &workload], &path[..]].concat(), Stdio::null(), limit);
    }
    let archive =
        format!(r#"{{"log":{{"entries":[{}]}}}}"#, many(entry, 200_001).trim_end_matches(','));
    let workload = format!("web:{}", write("many.har", archive));
    let limit = "a list of more than 200000 items";
    limited(&[&["run", "--workload", &workload], &path[..]].concat(), Stdio::null(), limit);
    let table = "[[path]]\nname = \"a\"\nrtt = \"9ms\"\nrate = \"1mbit\"\n";
    let names: String = (1..40_000).map(|at| format!("ecf:beta=0.{at:05},")).collect();
    let distinct = format!("workload = \"bulk:1s\"\nschedulers = \"{names}ecf\"\n{table}");
    for (name, text, limit) in [
        ("paths.toml", many(table, 8_000), "at most 8 paths"),
        ("one-line.toml", format!("path = [{}]", many("\"a\",", 200_000)), "at most 8 paths"),
        ("expect.toml", format!("expect = [{}]", many("\"a\",", 200_000)), "at most 1000 values"),
        ("names.toml", distinct, "more than 200 names in a list"),
    ] {
        let file = write(name, text);
        limited(&["compare", "--scenario", &file], Stdio::null(), limit);
    }
    let stamps = write("stamps.down", many("1\n", 10_000_001));
    limited(&["trace", "show", &stamps], Stdio::null(), "at most 10000000 lines");
    let fast = write("fast.csv", "600000,1000000000000\n".to_owned());
    let convert = ["trace", "convert", &fast, "--to", "mahimahi"];
    limited(&convert, Stdio::null(), "at most 10000000 lines");
}

#[test]
fn recorded_links_are_shown() {
    let data = std::env::var_os("PLAIT_DATA").map(PathBuf::from);
    let data =
        data.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"));
    let Ok(files) = fs::read_dir(data.join("traces")) else {
        // Not with a macro: its output is hidden when a test passes.
        let why = format!("tests over recorded links: {} is absent", data.join("traces").display());
        writeln!(std::io::stdout(), "\nskipped: {why}").unwrap();
        return;
    };
    for file in files {
        let file = file.unwrap().path();
        let text = stdout(&plait(&["trace", "show", file.to_str().unwrap()]));
        assert!(text.contains("rate      mean") && text.contains('█'), "{text}");
    }
}

/// Starts a long command and interrupts it once it has printed `begun`. If `written` is given, it also waits
/// until that file has content.
#[cfg(unix)]
#[allow(clippy::disallowed_methods, reason = "another process is waited for")]
fn interrupted(args: &[&str], begun: &str, written: Option<&Path>) -> Value {
    let mut child = Command::new(PLAIT)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The remark appears after the handler is installed.
    let mut remark = String::new();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    stderr.read_line(&mut remark).unwrap();
    assert!(remark.contains(begun), "{remark}");
    if let Some(file) = written {
        let is_begun = || fs::metadata(file).map_or(0, |it| it.len()) >= 100_000;
        let mut looks = (0..20_000).map(|_| std::thread::sleep(Duration::from_millis(5)));
        assert!(looks.any(|()| is_begun()), "nothing is written");
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let drain = std::thread::spawn(move || stderr.lines().count());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(drain.join().unwrap() >= 1);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
#[cfg(unix)]
fn an_interrupt_flushes_what_there_is() {
    let workload = ["--workload", "download:64KiB", "--runs", "50000"];
    let compare = [&["compare", "-v", "--json"], PATHS, &workload].concat();
    assert_eq!(interrupted(&compare, "50000 runs each", None)["interrupted"], true);
    let swarm = ["swarm", "-v", "--json", "--seeds", "1000000"];
    assert_eq!(interrupted(&swarm, "1000000 seeds", None)["interrupted"], true);
    let directory = directory("interrupted");
    let (page, events) = (directory.join("run.html"), directory.join("events.jsonl"));
    let files = ["--html", page.to_str().unwrap(), "--events", events.to_str().unwrap()];
    let workload = ["--workload", "bulk:60min"];
    let run = [&["run", "-v", "--json"], PATHS, &workload, &files].concat();
    let _ = fs::remove_file(&events);
    let report = interrupted(&run, &format!("{}, seed 1", plait_sched::DEFAULT), Some(&events));
    assert_eq!(report["complete"], false);
    assert!(report["interrupted_ms"].as_f64().unwrap() < 36e6, "{}", report["interrupted_ms"]);
    assert!(fs::read_to_string(page).unwrap().ends_with("</html>\n"));
    let events = fs::read_to_string(events).unwrap();
    assert!(events.ends_with('\n') && events.lines().count() > 1, "the events end in a line");
}
