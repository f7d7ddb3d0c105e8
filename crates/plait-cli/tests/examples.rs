//! The packages of `examples/` build outside the workspace and do what `examples/README.md` says.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const PLAIT: &str = env!("CARGO_BIN_EXE_plait");
const TEMPORARY: &str = env!("CARGO_TARGET_TMPDIR");
const PATHS: &str = "--path wifi:rate=20mbit,rtt=22ms --path lte:rate=10mbit,rtt=60ms";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Copies the sources of an example. `adapted` changes its manifest.
fn copy(example: &str, to: &Path, adapted: impl Fn(&str) -> String) {
    let from = root().join("examples").join(example);
    fs::create_dir_all(to.join("src")).unwrap();
    for file in fs::read_dir(from.join("src")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join("src").join(file.file_name())).unwrap();
    }
    let manifest = fs::read_to_string(from.join("Cargo.toml")).unwrap();
    fs::write(to.join("Cargo.toml"), adapted(&manifest)).unwrap();
}

/// Returns the text with other words. Each has to be there.
fn replaced(text: &str, words: &[(&str, &str)]) -> String {
    words.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from:?} is not in {text}");
        text.replace(from, to)
    })
}

/// Copies an example out of the sources, with the crates at their absolute path and the versions of the
/// workspace's lock file. Returns the directory of the copy.
fn lay_out(example: &str) -> PathBuf {
    let (root, to) = (root(), Path::new(TEMPORARY).join(example));
    let crates = format!("{}/crates/", root.to_str().unwrap());
    copy(example, &to, |manifest| replaced(manifest, &[("../../crates/", &crates)]));
    fs::copy(root.join("Cargo.lock"), to.join("Cargo.lock")).unwrap();
    to
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

/// Returns a command of cargo in a directory. It reuses crates of this build; programs are stored apart.
fn cargo(directory: &Path, programs: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(directory)
        .env("CARGO_BUILD_BUILD_DIR", Path::new(TEMPORARY).parent().unwrap())
        .env("CARGO_TARGET_DIR", programs);
    // The cargo that runs this test sets these variables.
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_")) {
        cargo.env_remove(name);
    }
    cargo.env_remove("CARGO_MANIFEST_DIR");
    cargo
}

/// Builds an example by itself and returns the path of its program. External crates of the workspace's build are reused.
fn build(example: &str, program: &str) -> PathBuf {
    let root = root();
    let target = Path::new(TEMPORARY).join("examples-target").join(example);
    let mut cargo = cargo(&lay_out(example), &target);
    cargo
        .args(["build", "--offline", "--quiet"])
        .args(["--config", "profile.dev.opt-level=1"])
        .args(["--config", "profile.dev.debug='line-tables-only'"]);
    for setting in settings_of_external_crates(&root) {
        cargo.args(["--config", &setting]);
    }
    // The examples run for seconds, but plait's own crates would take minutes to optimise.
    for package in fs::read_dir(root.join("crates")).unwrap() {
        let package = package.unwrap().file_name().into_string().unwrap();
        cargo.args(["--config", &format!("profile.dev.package.{package}.opt-level=0")]);
    }
    succeeds(&mut cargo);
    target.join("debug").join(program)
}

/// Returns plait's crates with their features that a package uses, a line each.
fn crates_and_features(cargo: &mut Command, package: &str) -> BTreeSet<String> {
    let form = ["--prefix", "none", "--format", "{p}|{f}", "--edges", "normal"];
    let tree = succeeds(cargo.args(["tree", "--offline", "--package", package]).args(form));
    let crates = tree.lines().filter(|line| line.starts_with("plait-"));
    let crates = crates.map(|line| {
        let (name, rest) = line.split_once(' ').unwrap();
        format!("{name}: {}", rest.split_once('|').unwrap().1.trim_end_matches(" (*)"))
    });
    crates.collect()
}

/// Builds an example that uses every crate, with the crates of this build: in a workspace that has the example too. Alone
/// it uses the same features of these crates. Returns the path of its program.
fn build_with_the_workspace(example: &str) -> PathBuf {
    let (root, tree) = (root(), Path::new(TEMPORARY).join("examples-tree"));
    let target = Path::new(TEMPORARY).join("examples-target").join(example);
    let _ = fs::remove_dir_all(&tree);
    fs::create_dir_all(&tree).unwrap();
    // The commit of the build is looked up in the repository.
    for name in ["crates", ".git"].iter().filter(|name| root.join(name).exists()) {
        std::os::unix::fs::symlink(root.join(name), tree.join(name)).unwrap();
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let members = "members = [\"crates/*\"";
    let more = format!("{members}, \"examples/{example}\"");
    fs::write(tree.join("Cargo.toml"), replaced(&manifest, &[(members, &more)])).unwrap();
    fs::copy(root.join("Cargo.lock"), tree.join("Cargo.lock")).unwrap();
    // The workspace has a program `plait`.
    let name = format!("name = \"{example}\"\npath");
    copy(example, &tree.join("examples").join(example), |manifest| {
        replaced(manifest, &[("\n[workspace]\n", ""), ("name = \"plait\"\npath", &name)])
    });
    // The test is there so that the external crates have the features of the tests.
    let test = ["build", "--workspace", "--offline", "--quiet", "--test", "floors"];
    succeeds(cargo(&tree, &target).args(test).args(["--bin", example]));
    let alone = crates_and_features(&mut cargo(&lay_out(example), &target), example);
    let within = crates_and_features(&mut cargo(&tree, &target), example);
    assert!(alone.len() > 10 && alone == within, "{alone:?} alone, {within:?} in the workspace");
    target.join("debug").join(example)
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
    let program = build_with_the_workspace("own-scheduler");
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
