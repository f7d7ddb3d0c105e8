//! `plait paths`: the table, the document, and the removal of entries.
#![allow(clippy::unwrap_used, clippy::disallowed_types)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{SystemTime, UNIX_EPOCH};

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");

/// Returns a directory of its own for a test.
fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("plait-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Runs `plait paths` with a directory for state.
fn paths(state: &Path, words: &[&str]) -> Output {
    let mut plait = Command::new(PLAIT);
    plait.arg("paths").args(words).env("XDG_STATE_HOME", state).env("COLUMNS", "100");
    plait.env("NO_COLOR", "1").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the stdout of a command that succeeds without remarks.
fn told(output: &Output) -> String {
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    text(&output.stdout)
}

/// Writes a file with three paths: two of IPv4 and one of IPv6, 30 s, 10 min and 3 h old.
fn write(state: &Path) -> PathBuf {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let entry = |local: &str, destination: &str, age: u64, values: &str| {
        format!(
            "[[path]]\nlocal = \"{local}\"\ndestination = \"{destination}\"\nlearnt_s = {}\n{values}\n",
            now - age
        )
    };
    let file = state.join("plait/paths.toml");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let all = [
        "version = 1\n".to_owned(),
        entry("10.0.0.7", "192.0.2.0/24", 30, "rate_bps = 18500000\nsource = \"proxy\""),
        entry(
            "10.0.1.7",
            "198.51.100.0/24",
            600,
            "received_bps = 9000000\nmin_rtt_us = 20125\nloss_ppm = 12500\nssthresh_bytes = 90500\n\
             source = \"get\"",
        ),
        entry("fd00::7", "2001:db8:1::/48", 10_800, "min_rtt_us = 5000\nsource = \"get\""),
    ];
    fs::write(&file, all.concat()).unwrap();
    file
}

#[test]
fn a_table_has_a_line_for_each_path() {
    let state = directory("paths-table");
    let file = state.join("plait/paths.toml");
    let none = format!("no path is remembered in {}\n", file.display());
    assert_eq!(told(&paths(&state, &[])), none);
    write(&state);
    let table = told(&paths(&state, &[]));
    let lines: Vec<Vec<&str>> = table.lines().map(|it| it.split_whitespace().collect()).collect();
    let expected = [
        "local destination rate received min RTT loss ssthresh age source",
        "10.0.0.7 192.0.2.0/24 18.5 mbit - - - - 30 s proxy",
        "10.0.1.7 198.51.100.0/24 - 9.00 mbit 20.1 ms 1.25 % 90 kB 10 min get",
        "fd00::7 2001:db8:1::/48 - - 5.00 ms - - 3 h get",
    ];
    let expected: Vec<Vec<&str>> = expected.iter().map(|it| it.split(' ').collect()).collect();
    // The age may have grown by a second since the file was written.
    let shown: Vec<Vec<&str>> = lines
        .into_iter()
        .map(|line| line.into_iter().map(|word| if word == "31" { "30" } else { word }).collect())
        .collect();
    assert_eq!(shown, expected, "{table}");
    fs::remove_dir_all(state).unwrap();
}

#[test]
fn a_document_has_every_value_with_its_unit() {
    let state = directory("paths-json");
    let file = write(&state);
    let document: serde_json::Value =
        serde_json::from_str(&told(&paths(&state, &["--json"]))).unwrap();
    assert_eq!(document["schema"], "plait.paths/1");
    assert_eq!(document["file"], file.display().to_string());
    let list = document["paths"].as_array().unwrap();
    assert_eq!(list.len(), 3);
    assert_eq!(list[0]["rate_bps"], 18_500_000);
    assert_eq!(list[0].get("min_rtt_us"), None);
    for (name, value) in [
        ("received_bps", 9_000_000),
        ("min_rtt_us", 20_125),
        ("loss_ppm", 12_500),
        ("ssthresh_bytes", 90_500),
    ] {
        assert_eq!(list[1][name], value, "{name}");
    }
    assert!((600..660).contains(&list[1]["age_s"].as_u64().unwrap()));
    assert_eq!(list[2]["local"], "fd00::7");
    fs::remove_dir_all(state).unwrap();
}

#[test]
fn paths_are_forgotten_by_address_by_prefix_or_all() {
    let state = directory("paths-forget");
    for (words, gone, left) in [
        (&["192.0.2.200"][..], 1, 2),
        (&["198.51.100.0/24"], 1, 2),
        (&["0.0.0.0/0"], 2, 1),
        (&["2001:db8::/32"], 1, 2),
        (&["203.0.113.1"], 0, 3),
        (&[], 3, 0),
    ] {
        let file = write(&state);
        let before = fs::read(&file).unwrap();
        let output = paths(&state, &[&["forget"][..], words].concat());
        let paths_gone = if gone == 1 { "path" } else { "paths" };
        assert_eq!(
            told(&output),
            format!("{gone} {paths_gone} forgotten, {left} left\n"),
            "{words:?}"
        );
        assert_eq!(fs::read(&file).unwrap() == before, gone == 0, "{words:?}");
        let document = told(&paths(&state, &["--json"]));
        let document: serde_json::Value = serde_json::from_str(&document).unwrap();
        assert_eq!(document["paths"].as_array().unwrap().len(), left, "{words:?}");
    }
    fs::remove_dir_all(state).unwrap();
}

#[test]
fn a_broken_file_is_named_with_the_place() {
    let state = directory("paths-broken");
    let file = write(&state);
    // One table is wrong: the others are shown.
    let good = fs::read_to_string(&file).unwrap();
    fs::write(&file, good.replace("198.51.100.0/24", "198.51.100.0/25")).unwrap();
    let output = paths(&state, &[]);
    let remark = format!(
        "plait: {}: [[path]] number 2: destination `198.51.100.0/25` is not a /24 or a /48\n",
        file.display()
    );
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), remark));
    assert_eq!(text(&output.stdout).lines().count(), 3);
    for (content, why) in [("version = 7\n", "version 7"), ("version = 1\n[[path", "line 2: ")] {
        fs::write(&file, content).unwrap();
        for words in [&[][..], &["forget"]] {
            let output = paths(&state, words);
            let problem = text(&output.stderr);
            let place = format!("plait: --file: `{}`: {why}", file.display());
            assert_eq!(output.status.code(), Some(2), "{problem}");
            assert!(problem.starts_with(&place), "{problem}");
            assert_eq!(fs::read_to_string(&file).unwrap(), content, "it is not replaced");
        }
    }
    fs::remove_dir_all(state).unwrap();
}

#[test]
fn a_prefix_that_is_none_is_refused() {
    let state = directory("paths-prefix");
    for (prefix, why) in [
        ("10.0.0.0/33", "more bits than an address has"),
        ("10.0.0.1/8", "bits are set behind the prefix"),
        ("wlan0", "no IP address"),
    ] {
        let output = paths(&state, &["forget", prefix]);
        let problem = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{problem}");
        assert!(problem.contains(&format!("`{prefix}`: {why}")), "{problem}");
    }
    fs::remove_dir_all(state).unwrap();
}

/// A command that cannot use the given file fails before it changes the host.
#[test]
fn a_given_file_is_checked_before_anything_else() {
    let state = directory("paths-given");
    let file = state.join("notes.txt");
    fs::write(&file, "no list of paths").unwrap();
    let get = ["get", "10.99.0.1:80", "--from", "10.98.1.77", "--path-memory"];
    let output = Command::new(PLAIT).args(get).arg(&file).output().unwrap();
    let problem = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{problem}");
    let place = format!("plait: --path-memory: `{}`: line 1: ", file.display());
    assert!(problem.starts_with(&place), "{problem}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "no list of paths");
    let output = Command::new(PLAIT).args(get).arg(&state).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("it is not a regular file"), "{output:?}");
    fs::remove_dir_all(state).unwrap();
}
