//! Acceptance tests of the program: hand calculations, refusals, and documents that follow their schemas.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::schema::violation;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
const PAIR: &str = "--path a:rate=10mbit,rtt=20ms --path b:rate=4mbit,rtt=80ms --exact";

/// Runs `plait` with the words of `line`.
fn plait(line: &str) -> Output {
    Command::new(PLAIT).args(line.split_whitespace()).output().unwrap()
}

fn json(line: &str) -> Value {
    json_with(line, 0)
}

/// Returns a document that is printed although the command exits with `code`.
fn json_with(line: &str, code: i32) -> Value {
    let output = plait(line);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}\n{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(line: &str) -> String {
    let output = plait(line);
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn row<'a>(report: &'a Value, name: &str) -> &'a Value {
    let rows = report["rows"].as_array().unwrap();
    rows.iter().find(|row| row["scheduler"] == name).unwrap_or_else(|| panic!("no row {name}"))
}

fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

/// Rows of the table of burst delays: RTT of the slow path, segments, and (delay, share of the fast path) for
/// each of `COLUMNS`. The simulator tests the whole table. This test has the cells in which the columns differ,
/// through flags and JSON.
type Burst = (u32, u32, [(f64, f64); 6]);

const BURSTS: [Burst; 8] = [
    (10, 20, [(15., 1.), (5., 0.5), (5., 0.5), (5., 0.5), (5., 0.5), (5., 0.5)]),
    (10, 50, [(25., 1.), (15., 0.6), (15., 0.6), (15., 0.6), (15., 0.6), (15., 0.6)]),
    (40, 11, [(15., 1.), (20., 0.91), (15., 1.), (20., 0.91), (15., 1.), (20., 0.91)]),
    (40, 30, [(15., 1.), (20., 0.67), (15., 1.), (20., 0.67), (15., 1.), (30., 0.87)]),
    (40, 40, [(25., 1.), (20., 0.75), (25., 1.), (20., 0.75), (25., 0.97), (40., 0.9)]),
    (100, 10, [(5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.), (5., 1.)]),
    (100, 15, [(15., 1.), (50., 0.67), (15., 1.), (50., 0.67), (15., 1.), (60., 0.93)]),
    (100, 50, [(25., 1.), (50., 0.8), (25., 1.), (50., 0.8), (25., 1.), (25., 1.)]),
];

/// The columns: the row's name and the receive buffer.
const COLUMNS: [(&str, &str); 6] = [
    ("tcp:fast", "6MiB"),
    ("minrtt", "6MiB"),
    ("blest:mode=paper", "64KiB"),
    ("blest:mode=paper", "6MiB"),
    ("ecf:rec_cwnd=off", "6MiB"),
    ("ecf:floor=off,rec_cwnd=off", "6MiB"),
];

#[test]
fn bursts_take_what_a_hand_calculation_says() {
    let mut wrong = Vec::new();
    for (slow, segments, cells) in BURSTS {
        for rcvbuf in ["64KiB", "6MiB"] {
            let report = json(&format!(
                "compare --ideal --path fast:rtt=10ms --path slow:rtt={slow}ms --workload \
                 burst:{segments}seg --schedulers minrtt,blest:mode=paper,ecf:rec_cwnd=off,\
                 ecf:floor=off,rec_cwnd=off --rcvbuf {rcvbuf} --check --json"
            ));
            let here = COLUMNS.iter().zip(cells).filter(|((_, size), _)| *size == rcvbuf);
            for ((name, _), (delay, share)) in here {
                let row = row(&report, name);
                let got = row["measures"]["message_delay_ms"]["median"].as_f64().unwrap();
                let got_share = row["path_share"]["fast"].as_f64().unwrap();
                if (got - delay).abs() > 0.05 || (got_share - share).abs() > 0.0051 {
                    wrong.push(format!(
                        "{slow} ms, {segments} segments, {name}, {rcvbuf}: {got} ({got_share:.3}) \
                         instead of {delay} ({share})"
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn downloads_take_whole_round_trips() {
    for (size, expected) in [("8KiB", 60.0), ("64KiB", 120.0), ("512KiB", 330.0)] {
        let report = json(&format!(
            "compare --ideal --ssthresh 64KiB --path wifi:rtt=30ms --workload download:{size} --json"
        ));
        let tcp = row(&report, "tcp:wifi");
        assert_eq!(tcp["measures"]["completion_ms"]["median"], expected, "{size}");
        assert_eq!(tcp["rtt_ms"]["wifi"], 30.0, "{size}");
    }
}

#[test]
fn bulk_transfers_fill_both_paths() {
    let report = json(
        "compare --path wifi:rate=25mbit,rtt=25ms --path lte:rate=4mbit,rtt=75ms --workload \
         bulk:60s --schedulers minrtt,roundrobin,ecf,blest --exact --json",
    );
    let goodput = |name| row(&report, name)["measures"]["goodput_mbps"]["median"].as_f64().unwrap();
    for name in ["minrtt", "roundrobin", "ecf", "blest"] {
        let goodput = goodput(name);
        assert!(goodput > 0.95 * 0.952 * 29.0 && goodput < 0.9521 * 29.0, "{name}: {goodput}");
    }
    assert!(goodput("tcp:wifi") > 0.95 * 0.965 * 25.0, "{}", goodput("tcp:wifi"));
    let rtt = row(&report, "minrtt")["rtt_ms"]["lte"].as_f64().unwrap();
    assert!(rtt > 78.0 && rtt < 178.1, "75 ms, a packet of 3 ms, at most 100 ms of queue: {rtt}");
}

#[test]
fn wrong_input_is_refused_with_place_and_choice() {
    let dir = directory("refusals");
    let file = |name: &str, content: &str| {
        let path = dir.join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let letter = file("letter.down", "1\n2\n3\n4\n5\n6\n7x\n8\n");
    let letter_csv = file("letter.csv", "1,9\n2,9\n3,9\n4,9\n5,9\n6,9\n7,1a0\n8,9\n");
    let scenario =
        file("bad.toml", "workload = \"bulk:1s\"\n[[path]]\nname = \"a\"\nrtt = \"25\"\n");
    let one = "--path a:rate=1mbit,rtt=20ms";
    let cases: Vec<(String, &[&str])> = vec![
        ("--path a:rate=25,rtt=20ms".into(), &["--path a:rate", "`25` has no unit", "mbit"]),
        (
            format!("{PAIR} --schedulers blets"),
            &["--scheduler", "`blest`?", "allowed: all, minrtt"],
        ),
        (
            format!("{PAIR} --schedulers stms-a:count_lost=x"),
            &["`count_lost` cannot be `x`\n  allowed: off|resting|on"],
        ),
        (
            format!("{PAIR} --schedulers stms-a:foo=1"),
            &["no parameter `foo`\n  allowed: gap0, threshold,"],
        ),
        (format!("--path a:trace={letter},rtt=9ms"), &["letter.down:7", "7x", "milliseconds"]),
        (format!("--path a:trace={letter_csv},rtt=9ms"), &["letter.csv:7", "1a0", "bytes per"]),
        (format!("{one} {one}"), &["--path", "`a`", "two paths", "allowed: a name of its own"]),
        (format!("{one},loss=120%"), &["--path a:loss", "120%", "from 0% to 100%"]),
        (format!("{one},los=1%"), &["--path a:los", "unknown key", "`loss`?"]),
        ("--path a:trace=no.down,rtt=9ms".into(), &["--path a:trace", "no.down", "allowed"]),
        (format!("{PAIR} --runs 0"), &["--runs", "`0`", "from 1"]),
        (format!("{PAIR} --runs -1"), &["--runs", "`-1`", "from 1"]),
        (format!("{PAIR} --seed x"), &["--seed", "`x`", "whole number"]),
        (format!("{PAIR} --vary c.rtt=1ms,2ms"), &["--vary", "`c`", "allowed: a, b"]),
        (format!("{PAIR} --vary a.backup=maybe"), &["--vary a.backup: `maybe`", "on, off"]),
        (
            format!("bulk:10MB {PAIR}"),
            &["unexpected argument 'bulk:10MB'", "'--workload bulk:10MB'"],
        ),
        (format!("{PAIR} wifi-home"), &["'--path wifi-home'"]),
        (format!("{PAIR} --expect ecf.completion_ms<1"), &["--expect", "workload", "goodput_mbps"]),
        (format!("{PAIR} --expect ecf.rtt_ms.c<1"), &["--expect", "unknown path", "a, b"]),
        (format!("--scenario {scenario}"), &["bad.toml:4:", "rtt", "`25`", "unit"]),
        ("--scenario no.toml".into(), &["--scenario", "no.toml"]),
        (format!("{one},rtt=3ms"), &["--path a:rtt", "given twice"]),
        (format!("{one},down=3s..1s"), &["--path a:down", "3s..1s"]),
        (format!("{one} --output no-such-directory/x"), &["no-such-directory/x"]),
    ];
    for (flags, words) in cases {
        let workload = if flags.contains("--scenario") { "" } else { "--workload bulk:1s" };
        for command in ["compare", "run"] {
            if command == "run" && (flags.contains("--vary") || flags.contains("--expect")) {
                continue;
            }
            let output = plait(&format!("{command} {flags} {workload}"));
            let errors = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(2), "{command} {flags}\n{errors}");
            assert!(output.stdout.is_empty() && !errors.contains("panicked"), "{errors}");
            for word in words {
                assert!(errors.contains(word), "{command} {flags}: no `{word}` in\n{errors}");
            }
        }
    }
}

#[test]
fn one_scheduler_may_be_asked_for_in_the_singular() {
    let several = json(&format!("compare {PAIR} --workload burst:9seg --schedulers ecf --json"));
    let single = json(&format!("compare {PAIR} --workload burst:9seg --scheduler ecf --json"));
    assert_eq!(several, single);
    let run = json(&format!("run {PAIR} --workload burst:9seg --scheduler ecf --json"));
    assert_eq!(run["scheduler"], "ecf");
}

#[test]
fn expectations_decide_about_the_exit() {
    let ask = |expectation: &str| {
        let line = format!("compare {PAIR} --workload bulk:1s --scheduler minrtt --expect");
        let words = line.split_whitespace().map(str::to_owned).chain([expectation.to_owned()]);
        Command::new(PLAIT).args(words).output().unwrap().status.code()
    };
    assert_eq!(ask("minrtt.goodput_mbps < 14"), Some(0));
    assert_eq!(ask("minrtt.goodput_mbps > 14"), Some(1));
    assert_eq!(ask("minrtt.rtt_ms.b >= 80 and minrtt.rtt_ms.a >= 20"), Some(0));
    assert_eq!(ask("minrtt.rtt_ms.b >= 80 and minrtt.rtt_ms.a < 20"), Some(1));
}

#[test]
fn a_sweep_has_a_report_a_point() {
    let sweeps: [(&str, &[&str], &str); 3] = [
        ("b.rtt=40ms..400ms:3", &["40ms", "220ms", "400ms"], "b.rtt"),
        ("a.loss=0%,1%,3%", &["0%", "1%", "3%"], "a.loss"),
        ("rcvbuf=16KiB,64KiB,1MiB", &["16KiB", "64KiB", "1MiB"], "rcvbuf"),
    ];
    for (vary, values, key) in sweeps {
        let sweep = json(&format!(
            "compare {PAIR} --workload download:300kB --scheduler minrtt --runs 3 --vary {vary} \
             --check --json"
        ));
        let points = sweep["points"].as_array().unwrap();
        let got: Vec<&str> =
            points.iter().map(|point| point["vary"][key].as_str().unwrap()).collect();
        assert_eq!(got, values);
        let median = |point: &Value| {
            row(point, "minrtt")["measures"]["completion_ms"]["median"].as_f64().unwrap()
        };
        assert_ne!(median(&points[0]), median(&points[2]), "{vary} matters");
        for point in points {
            assert!(row(point, "minrtt").get("incomplete").is_none(), "{vary}");
        }
    }
}

#[test]
fn a_rich_scenario_survives_being_saved() {
    let dir = directory("rich");
    let trace = dir.join("link.csv");
    fs::write(&trace, "1,1000000\n2,0\n3,250000\n").unwrap();
    let saved = dir.join("saved.toml");
    let line = format!(
        "compare --path a:trace={},rtt=30ms,offset=random --path \
         b:rate=10mbit@0s/4mbit@2s,owd_down=30ms,owd_up=10ms,loss=0.5%,loss_up=0.1%,jitter=2ms \
         --path c:profile=lte-att,down=1s..2s,down=5s..,backup,nic=50mbit --workload \
         stream:8KiB@35ms,for=3s --schedulers ecf:beta=0.5,minrtt+rp --cc lia,cubic --runs 2 \
         --seed 11 --join after-synack --idle-restart off --rto rfc200 --mtu 1400 --rcvbuf 256KiB \
         --sndbuf 512KiB --ssthresh 45seg --initial-window 4 --delayed-ack off --until 2min",
        trace.display()
    );
    let first = json(&format!("{line} --save-scenario {} --json", saved.display()));
    let again = json(&format!("compare --scenario {} --json", saved.display()));
    assert_eq!(first, again);
    // Its last line repeats the run.
    let command = first["command"].as_str().unwrap().strip_prefix("plait ").unwrap();
    assert_eq!(json(&format!("{} --json", command.replace('\'', ""))), first);
}

#[test]
fn formats_hold_the_numbers_of_the_document() {
    let line = format!("compare {PAIR} --workload download:100kB --scheduler minrtt");
    let report = json(&format!("{line} --json"));
    let median = row(&report, "minrtt")["measures"]["completion_ms"]["median"].as_f64().unwrap();
    let csv = text(&format!("{line} --format csv"));
    let header: Vec<&str> = csv.lines().next().unwrap().split(',').collect();
    let at = header.iter().position(|name| *name == "median").unwrap();
    let start = "minrtt,cubic,completion_ms,";
    let line_of = csv.lines().find(|line| line.starts_with(start)).unwrap();
    assert_eq!(line_of.split(',').nth(at).unwrap().parse::<f64>().unwrap(), median);
    assert!(csv.contains("\nminrtt,cubic,rtt_ms.b,") || report["rows"][0]["rtt_ms"]["b"].is_null());
    let markdown = text(&format!("{line} --format markdown"));
    assert!(markdown.contains(&format!("{median:.1}")), "{median}\n{markdown}");
    // A single run has a value, and neither a median nor a spread.
    let table = text(&line);
    assert!(table.contains("value ms") && !table.contains(".."), "{table}");
    assert!(!table.contains("\n\n\n"), "{table}");
}

#[test]
fn documents_follow_their_schemas() {
    let compare = json("schema compare");
    let run = json("schema run");
    let lossy = "--path a:rate=10mbit,rtt=20ms,loss=1% --path b:profile=wifi-home,backup";
    let documents = [
        (
            &compare,
            format!("compare {PAIR} --workload bulk:1s --json --expect minrtt.goodput_mbps>1"),
        ),
        (&compare, format!("compare {lossy} --workload stream:5kB@20ms,for=1s --runs 3 --json")),
        (&compare, format!("compare {PAIR} --workload burst:9seg --vary a.rtt=1ms,2ms --json")),
        (&compare, "compare --path a:rtt=5ms --ideal --workload download:1B --json".to_owned()),
        (
            &compare,
            "compare --path a:rtt=5ms,rate=9mbit --path b:rtt=9ms,rate=9mbit --workload \
             bulk:500ms --schedulers minrtt,ecf --until ci=20% --runs 3 --sndbuf 32KiB --vary \
             a.rtt=1ms,2ms --vary b.rtt=3ms,4ms --json"
                .to_owned(),
        ),
        (
            &compare,
            format!("compare {PAIR} --workload bulk:1s --runs 2 --compete cubic@a*2 --json"),
        ),
        (&run, format!("run {lossy} --workload upload:200kB --json")),
        (&run, format!("run {lossy} --workload bulk:1s --compete reno@a --json")),
        (&run, format!("run {PAIR} --workload burst:30seg --scheduler blest --json")),
    ];
    for (schema, line) in documents {
        let document = json(&line);
        assert_eq!(violation(schema, schema, &document, "document"), None, "{line}");
    }
    // No data was delivered. The exit code shows it, and the document is still printed.
    for (schema, command) in [(&compare, "compare"), (&run, "run")] {
        let line = format!("{command} {lossy} --workload download:9MB --until 1s --json");
        let document = json_with(&line, 4);
        assert_eq!(violation(schema, schema, &document, "document"), None, "{line}");
    }
    // The check itself can fail.
    let mut document = json(&format!("compare {PAIR} --workload bulk:1s --json"));
    document["seed"] = "one".into();
    assert!(violation(&compare, &compare, &document, "document").is_some());
}

#[test]
fn a_scenario_file_that_names_no_scheduler_runs_the_default() {
    let dir = directory("no-scheduler");
    let file = dir.join("scenario.toml").display().to_string();
    text(&format!("compare {PAIR} --workload download:64kB --save-scenario {file}"));
    let run = json(&format!("run --scenario {file} --json"));
    assert_eq!(run["scheduler"], plait_sched::DEFAULT);
}

#[test]
fn the_help_of_paths_names_every_key() {
    let help = text("compare --help");
    for key in plait_lab::scenario::PATH_KEYS {
        assert!(help.contains(key.name), "{}", key.name);
    }
}
