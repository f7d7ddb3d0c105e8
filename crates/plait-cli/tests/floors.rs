//! Layers of the workspace: each crate belongs to a floor and uses only lower floors. Floors 0 to 2 are
//! `no_std`. Every crate uses the workspace's lints.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Floor of every crate. A new crate must be added here first.
const FLOORS: &[(&str, u8)] = &[
    ("plait-base", 0),
    ("plait-params", 0),
    ("plait-wire", 1),
    ("plait-sched", 1),
    ("plait-cc", 1),
    ("plait-link", 1),
    ("plait-core", 2),
    ("plait-app", 3),
    ("plait-capture", 3),
    ("plait-engine", 3),
    ("plait-sim", 4),
    ("plait-live", 4),
    ("plait-lab", 5),
    ("plait-report", 6),
    ("plait-measure", 6),
    ("plait-cli", 7),
    ("plait-wasm", 7),
    ("plait-py", 8),
];

/// Highest floor that may not use the standard library.
const PURE_UP_TO: u8 = 2;

fn floor(name: &str) -> Option<u8> {
    FLOORS.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor)
}

/// Directory and parsed manifest of every crate under `crates/`.
fn manifests() -> BTreeMap<String, (PathBuf, toml::Table)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(crates).unwrap() {
        let dir = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(dir.join("Cargo.toml")) else { continue };
        let manifest: toml::Table = text.parse().unwrap();
        let name = manifest["package"]["name"].as_str().unwrap().to_owned();
        found.insert(name, (dir, manifest));
    }
    found
}

/// Returns the names of the workspace crates that `manifest` builds against. Development dependencies are not
/// restricted, as users never build them.
fn uses(manifest: &toml::Table) -> Vec<String> {
    fn collect(table: &toml::Table, into: &mut Vec<String>) {
        for section in ["dependencies", "build-dependencies"] {
            let Some(entries) = table.get(section).and_then(toml::Value::as_table) else {
                continue;
            };
            into.extend(entries.iter().map(|(key, value)| {
                value.get("package").and_then(toml::Value::as_str).unwrap_or(key).to_owned()
            }));
        }
    }
    let mut names = Vec::new();
    collect(manifest, &mut names);
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        targets.values().filter_map(toml::Value::as_table).for_each(|t| collect(t, &mut names));
    }
    names.retain(|name| name.starts_with("plait-"));
    names
}

/// Returns every violation of the floors among these crates, one line each.
fn breaches<'a>(crates: impl Iterator<Item = (&'a str, Vec<String>)>) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, uses) in crates {
        let Some(own) = floor(name) else {
            lines.push(format!("{name} has no floor; give it a line in FLOORS"));
            continue;
        };
        for used in uses {
            match floor(&used) {
                Some(lower) if lower < own => {}
                Some(other) => {
                    lines.push(format!("{name} (floor {own}) uses {used} (floor {other})"));
                }
                None => lines.push(format!("{name} uses {used}, which has no floor")),
            }
        }
    }
    lines
}

#[test]
fn every_crate_uses_lower_floors_only() {
    let manifests = manifests();
    assert!(manifests.len() >= 10, "found only {:?}", manifests.keys());
    let found = breaches(manifests.iter().map(|(name, (_, m))| (name.as_str(), uses(m))));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_breach_is_seen() {
    let manifest: toml::Table = r#"
        [dependencies]
        plait-base.workspace = true
        sibling = { package = "plait-wire", path = "../plait-wire" }
        [target.'cfg(unix)'.build-dependencies]
        plait-lab.workspace = true
        [dev-dependencies]
        plait-sim.workspace = true
    "#
    .parse()
    .unwrap();
    assert_eq!(
        breaches([("plait-sched", uses(&manifest)), ("plait-attic", vec![])].into_iter()),
        [
            "plait-sched (floor 1) uses plait-wire (floor 1)",
            "plait-sched (floor 1) uses plait-lab (floor 5)",
            "plait-attic has no floor; give it a line in FLOORS",
        ]
    );
}

#[test]
fn floors_0_to_2_are_no_std() {
    for (name, (dir, _)) in manifests() {
        if floor(&name).is_some_and(|floor| floor <= PURE_UP_TO) {
            let root = fs::read_to_string(dir.join("src/lib.rs")).unwrap();
            assert!(root.lines().any(|line| line == "#![no_std]"), "{name} lacks #![no_std]");
            assert!(!root.contains("extern crate std;"), "{name} brings std back");
        }
    }
}

/// plait-py and plait-wasm are workspaces of their own. The first repeats the lints for its crate, and the second for its workspace.
#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let root = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml"));
    let root: toml::Table = root.unwrap().parse().unwrap();
    for (name, (_, manifest)) in manifests() {
        if let Some(own) = manifest.get("workspace") {
            let lints = own.get("lints").or_else(|| manifest.get("lints"));
            assert_eq!(lints, root["workspace"].get("lints"), "{name}: lints");
            if own.get("lints").is_none() {
                continue;
            }
        }
        let taken = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        assert_eq!(taken.and_then(toml::Value::as_bool), Some(true), "{name}: [lints] workspace");
    }
}

/// The workspace denies unsafe code. All crates but plait-live forbid it, and plait-live allows it in one file.
#[test]
fn unsafe_code_is_in_one_file() {
    for (name, (dir, _)) in manifests() {
        let forbids = |file: &str| {
            let root = fs::read_to_string(dir.join("src").join(file)).unwrap_or_default();
            root.lines().any(|line| line == "#![forbid(unsafe_code)]")
        };
        assert_eq!(forbids("lib.rs"), name != "plait-live", "{name}");
        if name == "plait-live" {
            let files = fs::read_dir(dir.join("src")).unwrap().map(|it| it.unwrap().path());
            let allows = |file: &std::path::PathBuf| {
                file.is_file() && fs::read_to_string(file).unwrap().contains("unsafe_code")
            };
            let allowing: Vec<_> = files.filter(allows).collect();
            assert_eq!(allowing, [dir.join("src/sys.rs")]);
        }
    }
}

/// Sequence numbers of the core are `Dsn`, `SendSsn` or `RecvSsn`, never a bare number of 64 bits (RFC 8684
/// section 3.3, RFC 9293 section 3.3.1). Numbers on the wire have 32 bits. Inline tests are not checked.
#[test]
fn no_sequence_number_of_the_core_is_bare() {
    let names = ["seq", "dsn", "ssn", "una", "nxt", "ack", "data_ack", "edge", "start", "end"];
    let mut bare = Vec::new();
    let mut dirs = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../plait-core/src")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            bare.extend(
                bare_numbers(code, &names).map(|line| format!("{}: {line}", path.display())),
            );
        }
    }
    assert!(bare.is_empty(), "use Dsn, SendSsn or RecvSsn:\n{}", bare.join("\n"));
    let seen: Vec<&str> =
        bare_numbers("fn f(seq: u64)\nfn g(seq: SendSsn, seqs: u64)", &names).collect();
    assert_eq!(seen, ["fn f(seq: u64)"]);
}

/// Returns the lines of `code` that give one of these names the type `u64`.
fn bare_numbers<'a>(code: &'a str, names: &[&str]) -> impl Iterator<Item = &'a str> {
    let typed: Vec<String> = names.iter().map(|name| format!("{name}: u64")).collect();
    code.lines().map(str::trim).filter(move |line| {
        typed.iter().any(|typed| {
            line.match_indices(typed.as_str()).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                before.is_none_or(|it| !it.is_alphanumeric() && it != '_')
            })
        })
    })
}
