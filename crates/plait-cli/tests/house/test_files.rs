//! Files of tests that no program has. Without `autotests`, Cargo builds only the programs that a manifest lists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Returns the files among `files` (names below `tests/`, without `.rs`) that are neither a program of `manifest` nor
/// a module of one. `text` returns the content of a file.
fn without_program(manifest: &str, files: &[String], text: impl Fn(&str) -> String) -> Vec<String> {
    let manifest: toml::Table = manifest.parse().unwrap();
    if manifest["package"].get("autotests").is_none_or(|it| it.as_bool() != Some(false)) {
        return Vec::new();
    }
    let tests = manifest.get("test").and_then(toml::Value::as_array).into_iter().flatten();
    let programs: BTreeSet<&str> = tests.filter_map(|it| it["name"].as_str()).collect();
    let mut found: BTreeSet<String> = programs.iter().map(|it| (*it).to_owned()).collect();
    for program in programs.iter().filter(|it| files.iter().any(|file| file == *it)) {
        let text = text(program);
        let modules = text.lines().filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'));
        found.extend(modules.map(str::to_owned));
    }
    files.iter().filter(|file| !found.contains(*file)).cloned().collect()
}

#[test]
fn every_file_of_tests_is_in_a_program() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for krate in fs::read_dir(crates).unwrap().map(|it| it.unwrap().path()) {
        let tests = krate.join("tests");
        let names = fs::read_dir(&tests).into_iter().flatten().map(|it| it.unwrap().path());
        let rust = names.filter(|it| it.extension().is_some_and(|it| it == "rs"));
        let files: Vec<String> =
            rust.map(|it| it.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        let manifest = fs::read_to_string(krate.join("Cargo.toml")).unwrap();
        let text = |file: &str| fs::read_to_string(tests.join(format!("{file}.rs"))).unwrap();
        let missing = without_program(&manifest, &files, text);
        let krate = krate.file_name().unwrap().display();
        assert!(
            missing.is_empty(),
            "{krate}: no program runs {missing:?}: add a line `mod NAME;` to the file of a program in tests/"
        );
    }
}

#[test]
fn a_file_of_tests_without_a_program_is_seen() {
    let manifest =
        "[package]\nautotests = false\n[[test]]\nname = \"all\"\n[[test]]\nname = \"alone\"\n";
    let files = ["all", "alone", "listed", "lost"].map(str::to_owned);
    let text = |file: &str| match file {
        "all" => "//! All.\n\nmod listed;\n".to_owned(),
        _ => String::new(),
    };
    assert_eq!(without_program(manifest, &files, text), ["lost"]);
    assert!(without_program("[package]\n", &files, text).is_empty());
}
