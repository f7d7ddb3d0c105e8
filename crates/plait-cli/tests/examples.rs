//! The packages of `examples/` build outside the workspace and do what `examples/README.md` says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
const TEMPORARY: &str = env!("CARGO_TARGET_TMPDIR");
const PATHS: &str = "--path wifi:rate=20mbit,rtt=22ms --path lte:rate=10mbit,rtt=60ms";

/// Copies an example out of the sources, with the crates at their absolute path and the versions of the
/// workspace's lock file. Returns the directory of the copy.
fn lay_out(example: &str, root: &Path) -> PathBuf {
    let (from, copy) = (root.join("examples").join(example), Path::new(TEMPORARY).join(example));
    fs::create_dir_all(copy.join("src")).unwrap();
    for file in fs::read_dir(from.join("src")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), copy.join("src").join(file.file_name())).unwrap();
    }
    let manifest = fs::read_to_string(from.join("Cargo.toml")).unwrap();
    assert!(manifest.contains("../../crates/"), "{manifest}");
    let manifest = manifest.replace("../..", root.to_str().unwrap());
    fs::write(copy.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), copy.join("Cargo.lock")).unwrap();
    copy
}

/// Returns the settings of external crates in the profile of the workspace, in the form of `--config`.
fn settings_of_external_crates(root: &Path) -> Vec<String> {
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(root.join("Cargo.toml")).unwrap()).unwrap();
    let packages = manifest["profile"]["dev"]["package"].as_table().unwrap();
    let external = packages.iter().filter(|(name, _)| !name.starts_with("plait-"));
    let settings = external.flat_map(|(name, settings)| {
        let settings = settings.as_table().unwrap().iter();
        // The name of all packages, `*`, needs quotes.
        settings.map(move |(key, value)| format!("profile.dev.package.\"{name}\".{key}={value}"))
    });
    settings.collect()
}

/// Builds an example and returns the path of its program. External crates of the workspace's build are reused.
fn build(example: &str, program: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let temporary = Path::new(TEMPORARY);
    let target = temporary.join("examples-target").join(example);
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--offline", "--quiet"])
        .args(["--config", "profile.dev.opt-level=1"])
        .args(["--config", "profile.dev.debug='line-tables-only'"])
        .current_dir(lay_out(example, &root))
        .env("CARGO_BUILD_BUILD_DIR", temporary.parent().unwrap())
        .env("CARGO_TARGET_DIR", &target);
    for setting in settings_of_external_crates(&root) {
        cargo.args(["--config", &setting]);
    }
    // The examples run for seconds, but plait's own crates would take minutes to optimise.
    for package in fs::read_dir(root.join("crates")).unwrap() {
        let package = package.unwrap().file_name().into_string().unwrap();
        cargo.args(["--config", &format!("profile.dev.package.{package}.opt-level=0")]);
    }
    // The cargo that runs this test sets these variables.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_")) {
        cargo.env_remove(name);
    }
    succeeds(cargo.env_remove("CARGO_MANIFEST_DIR"));
    target.join("debug").join(program)
}

fn succeeds(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8(stdout).unwrap(), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout
}

/// Returns the stdout of a program with the arguments of a line without quotes.
fn says(program: &Path, line: &str) -> String {
    succeeds(Command::new(program).args(line.split_whitespace()).env("COLUMNS", "100"))
}

#[test]
fn the_core_is_embedded_without_a_simulator() {
    let out = says(&build("embed", "embed"), "");
    let readme = include_str!("../../../README.md");
    assert!(readme.contains(&format!("embed/Cargo.toml\n{out}```")), "README.md is behind:\n{out}");
    assert!(out.starts_with("1000000 bytes in "), "{out}");
    let carried = |path: &str| -> u64 {
        let line = out.lines().find_map(|line| line.strip_prefix(path)).unwrap();
        line.strip_suffix(" bytes").unwrap().parse().unwrap()
    };
    let (first, second) = (carried("path 0: "), carried("path 1: "));
    assert!(first > second && second > 0 && first + second >= 1_000_000, "{out}");
}

#[test]
fn a_capture_is_read_option_by_option() {
    let program = build("pcap-options", "pcap-options");
    let capture = Path::new(TEMPORARY).join("pcap-options.pcapng");
    let file = capture.to_str().unwrap();
    says(Path::new(PLAIT), &format!("run {PATHS} --workload download:256kB --pcap {file}"));
    let out = says(&program, file);
    for option in ["S Capable", "S. Capable", "S JoinSyn", "S. JoinSynAck", ". JoinAck", ". Dss"] {
        assert!(out.contains(&format!(" {option}")), "{option}");
    }
    let (first, _) = out.split_once('\n').unwrap();
    assert!(first.starts_with("1: "), "{first}");
    let no_capture = Path::new(TEMPORARY).join("no-capture.pcapng");
    std::fs::write(&no_capture, "no packets").unwrap();
    let (absent, not_one) = ("/no/such/file", no_capture.to_str().unwrap());
    for (args, named) in [(&[][..], "usage: "), (&[absent], absent), (&[not_one], not_one)] {
        let refused = Command::new(&program).args(args).output().unwrap();
        let told = String::from_utf8(refused.stderr).unwrap();
        assert_eq!((refused.status.code(), told.contains(named)), (Some(2), true), "{told}");
        assert!(!told.contains("Error:") && told.lines().count() == 2, "{told}");
    }
}

#[test]
fn a_scheduler_from_outside_is_like_a_built_in_one() {
    let program = build("own-scheduler", "plait");
    let says = |line: &str| says(&program, line);
    let list = says("list schedulers");
    assert!(list.lines().any(|line| line.starts_with("weighted")), "{list}");
    let page = says("list schedulers wrr");
    assert!(page.contains("Good at") && page.contains("fast=3"), "{page}");
    assert!(says("compare --help").contains("weighted"));

    let common = format!("compare {PATHS} --workload download:512kB --runs 1 --json");
    let compared = |schedulers: &str| -> Vec<String> {
        let report = says(&format!("{common} --schedulers {schedulers}"));
        let report: Value = serde_json::from_str(&report).unwrap();
        let rows = report["points"][0]["rows"].as_array().unwrap();
        rows.iter().map(|row| row["scheduler"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(compared("minrtt,wrr:fast=5")[..2], ["minrtt", "weighted:fast=5"]);
    assert!(compared("all").contains(&"weighted".to_owned()));
    let wrong = format!("{common} --schedulers wieghted");
    let wrong = Command::new(&program).args(wrong.split_whitespace()).output().unwrap();
    let problem = String::from_utf8(wrong.stderr).unwrap();
    assert!(problem.contains("did you mean `weighted`?"), "{problem}");

    let run = says(&format!("run {PATHS} --workload download:512kB --scheduler weighted --json"));
    assert!(run.contains("weighted"), "{run}");
    let subflow = |id: u8, srtt: u8| json!({"id": id, "srtt_ms": srtt, "cwnd": 10, "inflight": 0});
    let asked = json!({"scheduler": "weighted", "subflows": [subflow(0, 50), subflow(1, 10)]});
    assert_eq!(decide(&program, &asked)["numbers"], json!({"left_segments.1": 3}));

    // What the swarm draws from a seed does not depend on it.
    let swarm = "swarm --from 1 --seeds 20";
    assert_eq!(says(swarm), self::says(Path::new(PLAIT), swarm));
}

/// Returns the answer of `plait decide` to a question.
fn decide(program: &Path, question: &Value) -> Value {
    let mut decide = Command::new(program);
    let mut decide =
        decide.arg("decide").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    writeln!(decide.stdin.take().unwrap(), "{question}").unwrap();
    let output = decide.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}
