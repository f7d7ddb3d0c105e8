//! `plait swarm` as people and scripts use it.
#![allow(clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const CASE: &str = r#"{"seed":9,"paths":[{},{"rtt_us":80000}],"server":{"send_bytes":100000}}"#;
/// A window of one segment every 900 ms is too small for the transfer.
const STUCK: &str = r#"{"paths":[{"rtt_us":900000}],"server":{"send_bytes":900000},"client":{"rcvbuf_bytes":1400}}"#;

fn swarm(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_plait")).arg("swarm").args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn file(name: &str, content: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&file, content).unwrap();
    file
}

#[test]
fn seeds_are_counted_by_fault_and_run_again_by_the_last_line() {
    let output = swarm(&["--seeds", "20", "--from", "300"]);
    assert!(output.status.success() && output.stderr.is_empty(), "no progress in a pipe");
    let report = text(&output.stdout);
    for name in ["loss", "outage-of-all", "late-join", "schedulers", "controllers", "20 seeds, 0 "]
    {
        assert!(report.contains(name), "{name} is not in\n{report}");
    }
    let again = report.rsplit_once("Run again: plait swarm ").unwrap().1.trim_end();
    let words: Vec<&str> = again.split(' ').collect();
    assert_eq!(text(&swarm(&words).stdout), report);
}

#[test]
fn the_json_does_not_depend_on_jobs() {
    let report = |jobs: &str| json(&swarm(&["--seeds", "20", "--jobs", jobs, "--json"]));
    let one = report("1");
    assert_eq!(one, report("3"));
    assert_eq!(one["schema"], "plait.swarm/1");
    assert_eq!((&one["seeds"], &one["broken"]), (&20.into(), &0.into()));
    assert_eq!(one["digest"].as_str().unwrap().len(), 64);
    let csv = text(&swarm(&["--seeds", "2", "--format", "csv"]).stdout);
    assert!(csv.starts_with("fault,drawn,met,share\nloss,"), "{csv}");
    assert!(csv.ends_with("\nbroke,2,0,0\n"), "{csv}");
    let markdown = text(&swarm(&["--seeds", "2", "--format", "markdown"]).stdout);
    assert!(markdown.contains("| loss | ") && markdown.contains("\n| broke | "), "{markdown}");
}

#[test]
fn one_seed_is_the_same_by_either_name() {
    let one = swarm(&["--seed", "7"]);
    assert!(one.status.success());
    let report = text(&one.stdout);
    assert_eq!(report, text(&swarm(&["--from", "7", "--seeds", "1"]).stdout));
    // The sentence may continue over several lines.
    let words: Vec<&str> = report.split_whitespace().collect();
    assert!(
        words.join(" ").contains("Given up: connections that cannot continue by RFC 8684"),
        "{report}"
    );
    for other in ["--from", "--seeds"] {
        assert_eq!(swarm(&["--seed", "7", other, "1"]).status.code(), Some(2), "{other}");
    }
    let empty = swarm(&["--case", " "]);
    assert_eq!(empty.status.code(), Some(2));
    let told = text(&empty.stderr);
    assert!(told.contains("--case: it is empty\n  allowed: a case (JSON)"), "{told}");
}

#[test]
fn a_case_runs_alone_from_an_argument_or_a_file() {
    let output = swarm(&["--case", CASE, "--last", "3"]);
    let shown = text(&output.stdout);
    assert!(output.status.success() && shown.contains("nothing broke"), "{shown}");
    assert_eq!(shown.lines().take_while(|line| !line.is_empty()).count(), 3, "{shown}");
    let file = file("case.json", CASE);
    let from_file = swarm(&["--replay", file.to_str().unwrap(), "--last", "3"]);
    assert_eq!(text(&from_file.stdout), shown);
    let document = json(&swarm(&["--case", CASE, "--json"]));
    assert_eq!(document["schema"], "plait.swarm.replay/1");
    assert_eq!(document["case"]["paths"][1]["rtt_us"], 80_000);
    assert!(document.get("violation").is_none());
}

#[test]
fn a_server_runs_alone() {
    let only = ["--seeds", "3", "--from", "40", "--only", "server"];
    let report = text(&swarm(&only).stdout);
    assert!(report.contains("3 servers, 0 failed"), "{report}");
    assert!(
        report.trim_end().ends_with("plait swarm --from 40 --seeds 3 --only server"),
        "{report}"
    );
    let networks = json(&swarm(&["--seeds", "1", "--only", "network", "--json"]));
    assert!(networks.get("server").is_none());
    let case = r#"{"server":true,"seed":4,"guests":[{"visit":"download","count":3,"bytes":9000}]}"#;
    let document = json(&swarm(&["--case", case, "--json"]));
    assert_eq!(document["case"]["guests"][0]["visit"], "download");
    assert!(document.get("violation").is_none());
    let bad = swarm(&["--case", r#"{"server":true,"rate_kbps":1}"#]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(text(&bad.stderr).contains("rate_kbps: 1 is out of range"));
}

#[test]
fn what_breaks_is_told_with_time_and_the_events_before() {
    let output = swarm(&["--case", STUCK]);
    assert_eq!(output.status.code(), Some(5));
    let shown = text(&output.stdout);
    assert!(shown.contains("stuck at 70.0"), "{shown}");
    assert!(shown.lines().next().unwrap().contains(" s  "), "{shown}");
    assert!(text(&output.stderr).contains("stuck at 70.0"));
    let document = json(&swarm(&["--case", STUCK, "--json"]));
    assert_eq!(document["violation"]["broken"], "stuck");
    assert_eq!(document["last"].as_array().unwrap().len(), 30);
}

#[test]
fn the_last_seed_there_is_runs() {
    let document = json(&swarm(&["--from", "18446744073709551615", "--seeds", "1", "--json"]));
    assert_eq!((&document["seeds"], &document["from"]), (&1.into(), &u64::MAX.into()));
    let again = "plait swarm --from 18446744073709551615 --seeds 1";
    assert_eq!(document["command"], again);
}

#[test]
fn mistakes_are_refused() {
    let refused = |args: &[&str], words: &[&str]| {
        let output = swarm(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let errors = text(&output.stderr);
        words.iter().for_each(|word| assert!(errors.contains(word), "{word}: {errors}"));
    };
    refused(&["--case", "{"], &["--case: EOF"]);
    refused(&["--case", "{bad"], &["--case: key must be a string (column 2)"]);
    let member = r#"{"paths":[{"rtt_us":"x"}]}"#;
    refused(
        &["--case", member],
        &["paths[0].rtt_us: expected a whole number, 0 or more, found the"],
    );
    refused(&["--case", r#"{"paths":[{"rate":1}]}"#], &["paths[0].rate", "rate_kbps"]);
    refused(&["--case", CASE, "--seeds", "3"], &["--seeds"]);
    refused(&["--replay", "no-such-file"], &["no-such-file"]);
    let last = "18446744073709551615";
    refused(&["--from", last, "--seeds", "2"], &["--from", "allowed: up to 18446744073709551614"]);
    for (flag, least) in [("--seeds", 1), ("--jobs", 1), ("--from", 0), ("--last", 0)] {
        for given in ["x", "-3", "1.5", "", "+1", "0x10", "99999999999999999999"] {
            let refusal = format!("plait: {flag}: `{given}`: not a number that fits\n");
            let allowed = format!("  allowed: a whole number from {least}");
            refused(&[flag, given], &[&refusal, &allowed]);
        }
    }
    refused(&["--seeds", "0"], &["--seeds: `0`", "allowed: a whole number from 1\n"]);
    refused(&["--jobs", "0"], &["--jobs: `0`", "a whole number from 1 to 1024"]);
    let bad = file("bad.json", "{\"paths\":[]}");
    refused(&["--replay", bad.to_str().unwrap()], &["bad.json", "paths: 0 is out of range"]);
}
