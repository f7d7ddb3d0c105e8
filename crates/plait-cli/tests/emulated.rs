//! What `plait shell`, `race` and `measure` say of links and flags before they need a privilege.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SHARED: &str = "schema = 'plait.links/1'\nlink = ['street:rate=20mbit']\n\
    [[path]]\nname = 'wan1'\nrtt = '20ms'\nrate = '20mbit'\nvia = 'street'\n\
    [[path]]\nname = 'wan2'\nrtt = '30ms'\nrate = '20mbit'\nvia = 'street'\n";

fn directory() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("emulated");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("links.toml"), SHARED).unwrap();
    directory
}

/// Returns exit code, stdout and stderr of a command. Its words are divided by spaces.
fn plait(line: &str) -> (i32, String, String) {
    words(&line.split(' ').collect::<Vec<_>>())
}

fn words(words: &[&str]) -> (i32, String, String) {
    let mut plait = Command::new(env!("CARGO_BIN_EXE_plait"));
    let output =
        plait.args(words).current_dir(directory()).env("COLUMNS", "1000").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// The emulator has no links that paths share, but the simulator has them.
#[test]
fn a_shared_link_of_a_file_is_refused_by_its_line_or_predicted() {
    for line in
        ["shell --links links.toml --dry-run", "race --links links.toml --workload download:100kB"]
    {
        let (code, _, told) = plait(line);
        assert_eq!(code, 2, "{told}");
        assert!(told.contains("links.toml:7:"), "{told}");
        assert!(told.contains("via: it is not emulated: emulated paths share no link"), "{told}");
        assert!(told.contains("`plait race --predict`") && !told.contains("--path"), "{told}");
    }
    let line = "race --links links.toml --workload download:2MB --schedulers slot --predict --json";
    let (code, out, told) = plait(line);
    assert_eq!(code, 0, "{told}");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    // Both paths together carry no more than the street.
    let median = |row: usize| {
        document["heats"][0]["rows"][row]["measures"][0]["predicted"]["median"].as_f64().unwrap()
    };
    assert!(median(0) > 800.0 && median(1) > 800.0, "{out}");
}

#[test]
fn a_race_over_one_path_says_that_it_leaves_senders_out() {
    let line = "race --path wifi:rate=20mbit,rtt=22ms --workload download:10kB --schedulers slot,kernel:cubic --predict";
    let (code, out, told) = plait(line);
    assert_eq!(code, 0, "{told}");
    assert!(told.contains("tcp:wifi runs alone, without slot,kernel:cubic"), "{told}");
    assert!(!out.lines().any(|line| line.starts_with("slot")), "{out}");
    let two = plait(&format!("{line} --path lte:rate=8mbit,rtt=60ms")).2;
    assert!(!two.contains("alone"), "{two}");
}

#[test]
fn flags_of_real_links_need_a_far_side() {
    let race = "race --path wifi:rate=20mbit,rtt=22ms --workload download:10kB --runs 1";
    for (flag, given) in [("--from", "--from lo"), ("--dry-run", "--dry-run")] {
        let (code, _, told) = plait(&format!("{race} {given}"));
        assert_eq!(code, 2, "{told}");
        assert!(told.contains(&format!("{flag}: it is for real links")), "{told}");
        assert!(told.contains("give --to HOST"), "{told}");
    }
}

#[test]
fn a_command_without_links_names_both_flags_that_give_them() {
    for line in ["shell -- echo hi", "race --predict --workload download:1MB", "race --predict"] {
        let (code, _, told) = plait(line);
        assert_eq!(code, 2, "{told}");
        assert!(told.contains("--path: it is missing") && told.contains("--links FILE"), "{told}");
    }
}

#[test]
fn a_name_of_from_that_no_path_can_have_is_refused_before_the_far_side_is_asked() {
    let far = ["192.0.2.1", "--from", "my wifi=lo"];
    let measure = [&["measure"][..], &far].concat();
    let race = [&["race", "--workload", "download:1MB", "--to"][..], &far].concat();
    for line in [measure, race] {
        let (code, _, told) = words(&line);
        assert_eq!(code, 2, "{told}");
        assert!(told.contains("--from: `my wifi`: not a path's name"), "{told}");
        assert!(told.contains("such as wifi=lo") && !told.contains("--path"), "{told}");
    }
}

#[test]
fn the_plan_of_a_shell_has_its_settings() {
    let (code, out, told) = plait("shell --path wifi:rate=20mbit,rtt=22ms --dry-run");
    assert_eq!(code, 0, "{told}");
    for setting in ["net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0"] {
        assert_eq!(out.matches(&format!("  sysctl -w {setting}\n")).count(), 2, "{out}");
    }
}

/// A kernel repeats its SYN after 1, 2, 3 and 4 s, so the one of 4 s is the first that arrives.
#[test]
fn the_prediction_of_a_kernel_has_its_syns() {
    let path = "--path wifi:rate=20mbit,rtt=22ms,down=0s..3900ms";
    let line = format!("{path} --workload download:10kB");
    let (code, out, told) = plait(&format!("race {line} --predict --json"));
    assert_eq!(code, 0, "{told}");
    let document: serde_json::Value = serde_json::from_str(&out).unwrap();
    let tcp = &document["heats"][0]["rows"][0]["measures"][0]["predicted"]["median"];
    let tcp = tcp.as_f64().unwrap();
    assert!((4_000.0..4_300.0).contains(&tcp), "{tcp}");
}
