//! The README shows the actual output of the program.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

/// Returns the lines of the first block after `marker`, without the fence and the command line.
fn shown(marker: &str) -> String {
    let readme = include_str!("../../../README.md");
    let block = readme.split("```").find(|block| block.contains(marker)).unwrap();
    block.lines().skip_while(|line| !line.contains(marker)).skip(1).collect::<Vec<_>>().join("\n")
}

/// Returns the arguments of `make demo`, from the Makefile.
fn demo() -> Vec<String> {
    let makefile = include_str!("../../../Makefile");
    let value = |name: &str| {
        let start = format!("{name} := ");
        makefile.lines().find_map(|line| line.strip_prefix(&start)).unwrap().to_owned()
    };
    let line = value("DEMO").replace("$(WIFI)", &value("WIFI")).replace("$(LTE)", &value("LTE"));
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_demo_in_the_readme_is_the_demo() {
    let output = Command::new(env!("CARGO_BIN_EXE_plait"))
        .arg("compare")
        .args(demo())
        .env("COLUMNS", "80")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    assert!(output.status.success());
    let printed = String::from_utf8(output.stdout).unwrap();
    let shown = shown("$ make demo");
    let printed = printed.split("\n\nRun again").next().unwrap();
    assert_eq!(printed.trim_end(), shown.trim_end(), "README.md is behind");
}
