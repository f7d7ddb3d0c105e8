//! Folders of plait-core: `ARCHITECTURE.md` has their order of imports and names each of their files.

use crate::HOUSE;
use crate::imports::Graph;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const CORE: &str = "crates/plait-core/src/";

/// Returns the section of `ARCHITECTURE.md` about the inside of plait-core.
fn section() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, after) = text.split_once("## Inside plait-core\n").unwrap();
    after.split("\n## ").next().unwrap().to_owned()
}

/// Returns the folders in their order of imports: a folder imports only later ones.
fn order(section: &str) -> Vec<String> {
    let (_, after) = section.split_once("Imports lead").unwrap();
    let (_, list) = after.split_once(':').unwrap();
    let list = list.split('.').next().unwrap();
    list.split('`').skip(1).step_by(2).map(|it| it.trim_end_matches('/').to_owned()).collect()
}

/// Returns the imports of an earlier folder by a later one.
fn upward_imports(graph: &Graph, order: &[String]) -> Vec<String> {
    let rank = |file: &str| {
        let folder = file.strip_prefix(CORE)?.split_once('/')?.0;
        order.iter().position(|it| it == folder)
    };
    let pairs = graph.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to)));
    pairs
        .filter_map(|(from, to)| {
            let upward = rank(to)? < rank(from)?;
            upward.then(|| {
                format!(
                    "{from} imports {to}, whose folder comes earlier in the order {}: pass what it needs as an \
                     argument, or move it into its own or a later folder",
                    order.join(", ")
                )
            })
        })
        .collect()
}

/// Returns the names in the block of the section, by folder; the empty folder has the files beside the folders.
/// Text in parentheses describes and names nothing. A folder names its `mod` if that has functions.
fn names(section: &str) -> BTreeMap<String, BTreeSet<String>> {
    let block = section.split("```").nth(1).unwrap();
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut folder, mut depth) = (String::new(), 0);
    for line in block.lines() {
        if !line.starts_with(' ') {
            let first = line.split_whitespace().next().unwrap_or_default();
            folder = first.strip_suffix('/').unwrap_or_default().to_owned();
        }
        let mut plain = String::new();
        for letter in line.chars() {
            depth += i32::from(letter == '(');
            plain.push(if depth == 0 { letter } else { ' ' });
            depth -= i32::from(letter == ')');
        }
        let words = plain.split(' ').filter(|it| !["", "mod"].contains(it) && !it.ends_with('/'));
        names.entry(folder.clone()).or_default().extend(words.map(str::to_owned));
    }
    names
}

/// Returns the files that `names` omits, and the names without a file.
fn differences(names: &BTreeMap<String, BTreeSet<String>>, files: &[&str]) -> Vec<String> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.iter().filter(|file| **file != "lib.rs") {
        let (folder, rest) = file.split_once('/').unwrap_or(("", file));
        let name = rest.trim_end_matches(".rs").trim_end_matches("/mod");
        if name != "mod" {
            found.entry(folder.to_owned()).or_default().insert(name.to_owned());
        }
    }
    let none = BTreeSet::new();
    let mut texts = Vec::new();
    for folder in names.keys().chain(found.keys()).collect::<BTreeSet<_>>() {
        let (named, there) = (names.get(folder), found.get(folder));
        let (named, there) = (named.unwrap_or(&none), there.unwrap_or(&none));
        let missing =
            there.difference(named).map(|it| format!("add {it} to the line of {folder}/"));
        let stale = named.difference(there).map(|it| format!("remove {it} from {folder}/"));
        texts.extend(missing.chain(stale));
    }
    texts
}

#[test]
fn folders_of_the_core_import_one_way() {
    let order = order(&section());
    assert_eq!(order.len(), 6, "{order:?}");
    let core = HOUSE.imports.iter().find(|graph| graph.keys().any(|file| file.starts_with(CORE)));
    let breaches = upward_imports(core.unwrap(), &order);
    assert!(breaches.is_empty(), "{}", breaches.join("\n"));
}

#[test]
fn an_import_of_an_earlier_folder_is_seen() {
    let order = order("Imports lead one way: `conn/`, `tcp/`, `data/`. More.");
    let file = |name: &str| format!("{CORE}{name}.rs");
    let imports = |from: &str, to: &[&str]| (file(from), to.iter().map(|to| file(to)).collect());
    let graph = Graph::from([
        imports("conn/mod", &["tcp/state", "context"]),
        imports("data/level", &["data/keys", "tcp/state", "error"]),
        imports("context", &["conn/mod"]),
    ]);
    assert_eq!(
        upward_imports(&graph, &order),
        [format!(
            "{} imports {}, whose folder comes earlier in the order conn, tcp, data: pass what it needs as an \
             argument, or move it into its own or a later folder",
            file("data/level"),
            file("tcp/state")
        )]
    );
}

#[test]
fn the_architecture_names_every_file_of_the_core() {
    let files: Vec<&str> = HOUSE.files.keys().filter_map(|file| file.strip_prefix(CORE)).collect();
    let texts = differences(&names(&section()), &files);
    assert!(texts.is_empty(), "ARCHITECTURE.md, \"Inside plait-core\":\n{}", texts.join("\n"));
}

#[test]
fn a_file_without_a_name_and_a_name_without_a_file_are_seen() {
    let section = "```\ntcp/   (one subflow)\n       mod  send (ring; no\n       file) send/cuts\nerror\n```\n";
    let files = ["tcp/mod.rs", "tcp/send.rs", "tcp/rtt.rs", "error.rs", "lib.rs"];
    let expected = ["add rtt to the line of tcp/", "remove send/cuts from tcp/"];
    assert_eq!(differences(&names(section), &files), expected);
}
