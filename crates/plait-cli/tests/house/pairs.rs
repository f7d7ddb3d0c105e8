//! Pairs of modules in one crate that import each other. Such a pair cannot be read, tested or moved one module at
//! a time.

use crate::imports::Graph;
use std::collections::{BTreeMap, BTreeSet};

/// The imports between two modules: of the first from the second, and back.
type Pair = [BTreeSet<String>; 2];

/// Returns the module that a file belongs to: `.../src/sched` for `.../src/sched.rs` and for every file below
/// `.../src/sched/`. Returns `None` for the root of the crate, which joins its modules.
fn module(file: &str) -> Option<&str> {
    let start = file.find("/src/")? + "/src/".len();
    let name = file[start..].split(['/', '.']).next()?;
    (!matches!(name, "lib" | "main")).then(|| &file[..start + name.len()])
}

/// Returns the pairs of modules that import each other, by the names of both, with the imports of files.
pub(crate) fn pairs(graph: &Graph) -> BTreeMap<String, Pair> {
    let mut imports: BTreeMap<(&str, &str), BTreeSet<String>> = BTreeMap::new();
    for (from, to) in graph.iter().flat_map(|(from, to)| to.iter().map(move |to| (from, to))) {
        if let (Some(one), Some(other)) = (module(from), module(to))
            && one != other
        {
            imports.entry((one, other)).or_default().insert(format!("{from} imports {to}"));
        }
    }
    let pair = |((one, other), there): (&(&str, &str), &BTreeSet<String>)| {
        let back = imports.get(&(*other, *one)).filter(|_| one < other)?;
        let other = other.rsplit('/').next()?;
        Some((format!("{one} {other}"), [there.clone(), back.clone()]))
    };
    imports.iter().filter_map(pair).collect()
}

#[test]
fn two_modules_that_import_each_other_are_a_pair() {
    let edges = [
        ("a/deep/one.rs", "b.rs"),
        ("b.rs", "c.rs"),
        ("b.rs", "a/mod.rs"),
        // A module and the root of its crate, and two files of a module, are none.
        ("lib.rs", "a/mod.rs"),
        ("a/mod.rs", "lib.rs"),
        ("a/mod.rs", "a/deep/one.rs"),
        ("a/deep/one.rs", "a/mod.rs"),
    ];
    let mut graph = Graph::new();
    for (from, to) in
        edges.map(|(from, to)| (format!("crates/x/src/{from}"), format!("crates/x/src/{to}")))
    {
        graph.entry(from).or_default().insert(to);
    }
    let found = pairs(&graph);
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["crates/x/src/a b"]);
    let [there, back] = &found["crates/x/src/a b"];
    assert!(there.contains("crates/x/src/a/deep/one.rs imports crates/x/src/b.rs"), "{there:?}");
    assert!(back.contains("crates/x/src/b.rs imports crates/x/src/a/mod.rs"), "{back:?}");
}
