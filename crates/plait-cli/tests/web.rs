//! Web pages on the command line: rankings, sessions of several connections, and invalid page files.
#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PATHS: &[&str] =
    &["--path", "wlan:rate=25mbit,rtt=15ms", "--path", "3g:rate=4mbit,rtt=70ms", "--seed", "3"];

fn plait(command: &str, args: &[&str]) -> Output {
    let all = [&[command], PATHS, args].concat();
    Command::new(env!("CARGO_BIN_EXE_plait")).args(all).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn directory(name: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn a_comparison_ranks_by_page_load_time() {
    let output = plait(
        "compare",
        &["--workload", "web:google", "--schedulers", "roundrobin,minrtt", "--runs", "1", "--json"],
    );
    let report: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(report["workload"], "web:google");
    let rows = report["rows"].as_array().unwrap();
    let load = |row: &Value| row["measures"]["page_load_ms"]["median"].as_f64().unwrap();
    assert!(rows.iter().all(|row| row["measures"]["object_time_ms"]["median"].is_number()));
    assert!(rows.iter().all(|row| load(row) > 1_028.0), "no page loads faster than it computes");
    let one = ["--workload", "web:google", "--schedulers", "minrtt", "--runs", "1"];
    let table = stdout(&plait("compare", &one));
    assert!(table.starts_with("web:google: page load in ms, lower is better"), "{table}");
}

#[test]
fn a_session_of_several_connections_is_drawn_and_told() {
    let dir = directory("web-session");
    let (events, html) = (dir.join("run.jsonl"), dir.join("run.html"));
    let output = plait(
        "run",
        &[
            "--workload",
            "web:wikipedia,http=1",
            "--events",
            events.to_str().unwrap(),
            "--html",
            html.to_str().unwrap(),
        ],
    );
    assert!(!stdout(&output).is_empty());
    assert!(fs::metadata(&html).unwrap().len() > 10_000);
    let (mut read, mut connections) = (0, Vec::new());
    for line in fs::read_to_string(&events).unwrap().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        if event["event"] == "object-read" {
            read += 1;
            connections.push(event["connection"].as_u64().unwrap());
        }
    }
    connections.sort_unstable();
    connections.dedup();
    assert_eq!(read, 19);
    assert!(connections.len() > 1, "{connections:?}");
    let refused = plait("explain", &["--workload", "web:wikipedia,http=1"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("http=2 or connections=1"));
}

#[test]
fn files_that_are_no_pages_are_usage_errors() {
    let dir = directory("web-files");
    for (name, text, expected) in [
        (
            "cycle.json",
            r#"{"objs":[{"id":"r","download":{"id":"d"},"comps":[{"id":"c","time":1}]}],
            "deps":[{"a1":"c","a2":"d","time":-1}]}"#,
            "a cycle: `d` -> `c` wait for each other; remove one",
        ),
        ("empty.har", r#"{"log":{"entries":[]}}"#, "`log.entries` is empty; record the page again"),
        (
            "broken.har",
            "{\"log\":\n{",
            "not JSON of a page: EOF while parsing an object at line 2 column 1",
        ),
        (
            "unknown.json",
            r#"{"objs":[{"id":"r","download":{"id":"d"}}],"deps":[{"a1":"x","a2":"d","time":5}]}"#,
            "dependency 0: no activity `x`; add it, or remove the dependency",
        ),
    ] {
        let file = dir.join(name);
        fs::write(&file, text).unwrap();
        let output = plait("compare", &["--workload", &format!("web:{}", file.display())]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains("--workload") && error.contains(expected), "{error}");
        assert!(error.contains(name), "{error}");
    }
}
