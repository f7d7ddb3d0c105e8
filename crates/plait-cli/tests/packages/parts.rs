//! The list of the parts of the binary (`contrib/package/sbom`), compared with what cargo knows about the packages.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Returns the list, made for a fixed time.
fn list() -> Value {
    let script = super::root().join("contrib/package/sbom");
    let output = Command::new(script).env("SOURCE_DATE_EPOCH", "86400").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn word<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// Returns all parts by their reference: the program, and its components.
fn parts(list: &Value) -> BTreeMap<&str, &Value> {
    let components = list["components"].as_array().unwrap().iter();
    let all: Vec<&Value> = components.chain([&list["metadata"]["component"]]).collect();
    let parts: BTreeMap<&str, &Value> = all.iter().map(|it| (word(it, "bom-ref"), *it)).collect();
    assert_eq!(parts.len(), all.len(), "a reference is not unique");
    parts
}

/// Returns the references that each part uses.
fn uses(list: &Value) -> BTreeMap<&str, BTreeSet<&str>> {
    let entries = list["dependencies"].as_array().unwrap().iter();
    entries
        .map(|entry| {
            let listed = entry["dependsOn"].as_array().unwrap();
            let used: BTreeSet<&str> = listed.iter().map(|it| it.as_str().unwrap()).collect();
            assert_eq!(used.len(), listed.len(), "{entry}");
            (word(entry, "ref"), used)
        })
        .collect()
}

#[test]
fn the_list_has_the_shape_of_cyclonedx() {
    let list = list();
    assert_eq!((word(&list, "bomFormat"), word(&list, "specVersion")), ("CycloneDX", "1.5"));
    assert_eq!(list["version"], 1);
    assert_eq!(list["metadata"]["timestamp"], "1970-01-02T00:00:00Z");
    assert_eq!(list["metadata"]["component"]["type"], "application");
    let allowed = ["bom-ref", "hashes", "licenses", "name", "purl", "type", "version"];
    let parts = parts(&list);
    for (name, part) in &parts {
        assert!(part.as_object().unwrap().keys().all(|key| allowed.contains(&key.as_str())));
        assert!(["application", "library"].contains(&word(part, "type")), "{name}");
        assert_eq!(word(part, "purl"), *name);
        assert!(name.ends_with(&format!("/{}@{}", word(part, "name"), word(part, "version"))));
        let license = word(&part["licenses"][0], "expression");
        let ids = license.split([' ', '(', ')']).filter(|id| !["OR", "AND", "WITH"].contains(id));
        let known =
            |id: &str| id.starts_with(|it: char| it.is_ascii_uppercase()) && !id.contains('/');
        assert!(!license.is_empty() && ids.filter(|id| !id.is_empty()).all(known), "{license}");
    }
    // Each part has an entry, and the program uses it, directly or through others.
    let uses = uses(&list);
    assert_eq!(uses.keys().collect::<Vec<_>>(), parts.keys().collect::<Vec<_>>());
    let (mut reached, mut open) =
        (BTreeSet::new(), vec![word(&list["metadata"]["component"], "bom-ref")]);
    while let Some(part) = open.pop() {
        if reached.insert(part) {
            open.extend(&uses[part]);
        }
    }
    assert_eq!(reached, parts.keys().copied().collect());
}

/// Returns cargo's description of the workspace for this system.
fn metadata() -> Value {
    let version = Command::new("rustc").arg("-vV").output().unwrap().stdout;
    let version = String::from_utf8(version).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", host]);
    let output = cargo.current_dir(super::root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn reference(package: &Value) -> String {
    format!("pkg:cargo/{}@{}", word(package, "name"), word(package, "version"))
}

/// Returns the references of libraries that a package needs whatever its features, and those that it may use.
fn needed_and_possible(
    package: &Value,
    node: &Value,
    packages: &BTreeMap<&str, &Value>,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut needed, mut possible) = (BTreeSet::new(), BTreeSet::new());
    for edge in node["deps"].as_array().unwrap() {
        let other = packages[word(edge, "pkg")];
        let kinds = edge["dep_kinds"].as_array().unwrap();
        let macros = other["targets"].as_array().unwrap().iter().any(|target| {
            target["kind"].as_array().unwrap().iter().any(|kind| kind == "proc-macro")
        });
        if macros || !kinds.iter().any(|kind| kind["kind"].is_null()) {
            continue;
        }
        possible.insert(reference(other));
        let declared = package["dependencies"].as_array().unwrap().iter();
        let required = |it: &&Value| {
            it["name"] == other["name"] && it["kind"].is_null() && it["optional"] == false
        };
        if declared.filter(required).any(|it| it["target"].is_null()) {
            needed.insert(reference(other));
        }
    }
    (needed, possible)
}

/// `tests/package` compares the list with the libraries that the linker read. Here it is compared with the manifests.
#[test]
fn the_list_has_the_packages_that_the_binary_links() {
    let (list, metadata) = (list(), metadata());
    let (parts, uses) = (parts(&list), uses(&list));
    let all = metadata["packages"].as_array().unwrap();
    let packages: BTreeMap<&str, &Value> = all.iter().map(|it| (word(it, "id"), it)).collect();
    let lock: toml::Table = super::text("Cargo.lock").parse().unwrap();
    let locked = lock["package"].as_array().unwrap();
    let mut seen = 0;
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let package = packages[word(node, "id")];
        let name = reference(package);
        let Some(part) = parts.get(name.as_str()) else { continue };
        seen += 1;
        let used = &uses[name.as_str()];
        let used: BTreeSet<String> = used.iter().map(|it| (*it).to_owned()).collect();
        let (needed, possible) = needed_and_possible(package, node, &packages);
        assert!(used.is_superset(&needed), "{name} needs {needed:?} and has {used:?}");
        let crates: BTreeSet<String> =
            used.iter().filter(|it| it.starts_with("pkg:cargo/")).cloned().collect();
        assert!(crates.is_subset(&possible), "{name} has {crates:?} of {possible:?}");
        let (kind, version) = (package["name"].as_str(), package["version"].as_str());
        let entry = locked
            .iter()
            .find(|it| it["name"].as_str() == kind && it["version"].as_str() == version);
        let sum = entry.unwrap().get("checksum").and_then(toml::Value::as_str);
        assert_eq!(part["hashes"][0]["content"].as_str(), sum, "{name}");
        assert_eq!(part["hashes"].is_null(), sum.is_none(), "{name}");
    }
    // The others are the C library and the standard library of Rust.
    assert_eq!(seen + 2, parts.len());
    assert!(seen > 50, "{seen}");
}
