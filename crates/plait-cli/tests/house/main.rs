//! Gates on the size of files, functions, structs, types and import cycles, and on the number of files of the
//! connection. Present exceptions are in `exceptions.toml`, a list that may only shrink. Test code is not
//! counted.
#![allow(clippy::unwrap_used, clippy::panic)]

mod exceptions;
mod folders;
mod imports;
mod measure;
mod pairs;
mod source;
mod test_files;

use exceptions::{Exception, Gate};
use imports::Graph;
use measure::Sizes;
use source::SourceFile;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// Files that may have an `impl Connection` once the connection is divided.
const CONNECTION_FILES: [&str; 6] = [
    "crates/plait-core/src/conn/egress.rs",
    "crates/plait-core/src/conn/fast_path.rs",
    "crates/plait-core/src/conn/ingress.rs",
    "crates/plait-core/src/conn/invariants.rs",
    "crates/plait-core/src/conn/mod.rs",
    "crates/plait-core/src/conn/timeouts.rs",
];

/// Directory of files that may index the subflows.
const PATHS: &str = "crates/plait-core/src/paths/";

const FILES: Gate = Gate {
    name: "files",
    unit: "lines before its tests",
    limit: 500,
    remedy: "give the data that has an owner of its own a file of its own, with the functions that work on it",
};

const FUNCTIONS: Gate = Gate {
    name: "functions",
    unit: "lines",
    limit: 70,
    remedy: "give each of its steps a function with a name",
};

const FIELDS: Gate = Gate {
    name: "fields",
    unit: "fields",
    limit: 15,
    remedy: "give the fields that change together a struct of their own",
};

const CIRCLES: Gate = Gate {
    name: "circles",
    unit: "files in a circle of imports",
    limit: 6,
    remedy: "move what both sides use into a file below them, or pass it as an argument",
};

const PAIRS: Gate = Gate {
    name: "pairs",
    unit: "imports in the direction with fewer",
    limit: 0,
    remedy: "move what both modules use into a module below them, or pass it as an argument",
};

const UNFORMATTED: Gate = Gate {
    name: "unformatted",
    unit: "uses of rustfmt::skip",
    limit: 0,
    remedy: "divide a table that is too long, and break long texts with a backslash",
};

const VAGUE_CONSTANTS: Gate = Gate {
    name: "vague_constants",
    unit: "constants without a quantity in their name",
    limit: 0,
    remedy: "name what is limited and the unit, as in MAX_FRAME_BYTES",
};

const CONNECTION: Gate = Gate {
    name: "connection",
    unit: "impl Connection",
    limit: 0,
    remedy: "write a method of the part that owns the data; it takes what it needs and returns what follows",
};

const TYPES: Gate = Gate {
    name: "types",
    unit: "lines in its impl blocks",
    limit: 1_000,
    remedy: "give the fields that change together a type of their own, with the functions that need them",
};

const CONNECTION_CIRCLE: Gate = Gate {
    name: "connection_circle",
    unit: "files that call each other's methods",
    limit: 4,
    remedy: "let the caller pass on what follows, in place of a call back into the connection",
};

const INDEXED_SUBFLOWS: Gate = Gate {
    name: "indexed_subflows",
    unit: "uses of subflows[...] outside paths/",
    limit: 0,
    remedy: "ask the owner of the subflows (paths/) for the subflow",
};

/// Input of the gates.
#[derive(Default)]
struct House {
    files: BTreeMap<String, usize>,
    sizes: BTreeMap<String, Sizes>,
    /// Imports of each crate.
    imports: Vec<Graph>,
    /// Uses of `subflows[...]` in plait-core outside `PATHS`, by file.
    indexed_subflows: BTreeMap<String, usize>,
    /// Constants whose name has no quantity, by file.
    vague_constants: BTreeMap<String, usize>,
    /// Uses of `rustfmt::skip`, by file.
    skips: BTreeMap<String, usize>,
}

static HOUSE: LazyLock<House> = LazyLock::new(|| {
    let mut house = House::default();
    for krate in source::workspace() {
        house.imports.push(imports::imports(&krate.files));
        for file in krate.files {
            house.files.insert(file.path.clone(), file.lines);
            house.sizes.insert(file.path.clone(), Sizes::of(&file));
            let vague = measure::vague_constants(file.tokens.clone());
            house.vague_constants.insert(file.path.clone(), vague);
            let skips = measure::rustfmt_skips(file.tokens.clone());
            house.skips.insert(file.path.clone(), skips);
            if krate.name == "plait-core" && !file.path.starts_with(PATHS) {
                let count = measure::indexed_subflows(file.tokens);
                house.indexed_subflows.insert(file.path, count);
            }
        }
    }
    house
});

/// Returns the sizes of one kind of item in all files, by `FILE NAME`.
fn named(pick: impl Fn(&Sizes) -> &BTreeMap<String, usize>) -> BTreeMap<String, usize> {
    HOUSE
        .sizes
        .iter()
        .flat_map(|(path, sizes)| {
            pick(sizes).iter().map(move |(name, size)| (format!("{path} {name}"), *size))
        })
        .collect()
}

#[test]
fn no_file_is_too_long() {
    assert!(HOUSE.files.len() > 300, "found only {} files", HOUSE.files.len());
    FILES.hold(&HOUSE.files);
}

#[test]
fn no_function_is_too_long() {
    FUNCTIONS.hold(&named(|it| &it.functions));
}

#[test]
fn no_struct_has_too_many_fields() {
    FIELDS.hold(&named(|it| &it.fields));
}

#[test]
fn what_is_too_large_is_seen_in_the_text() {
    let body = "    step();\n".repeat(69);
    let fields: String = (0..16).map(|at| format!("    field_{at}: u8,\n")).collect();
    let space = "\n".repeat(501 - 71 - 18);
    let tests = "#[cfg(test)]\nmod tests {\n    fn test() {}\n}\n";
    let text = format!("fn long() {{\n{body}}}\nstruct Wide {{\n{fields}}}\n{space}{tests}");
    let file = SourceFile::parse("crates/x/src/a.rs", &text);
    let sizes = Sizes::of(&file);
    let breaches = [
        FILES.judge(&BTreeMap::from([(file.path, file.lines)]), &[]),
        FUNCTIONS.judge(&sizes.functions, &[]),
        FIELDS.judge(&sizes.fields, &[]),
    ];
    let texts: Vec<String> = breaches.into_iter().flatten().map(|it| it.text).collect();
    let expected = [
        format!(
            "crates/x/src/a.rs has 501 lines before its tests, 1 more than the limit of 500: {}",
            FILES.remedy
        ),
        format!("long has 71 lines, 1 more than the limit of 70: {}", FUNCTIONS.remedy),
        format!("Wide has 16 fields, 1 more than the limit of 15: {}", FIELDS.remedy),
    ];
    assert_eq!(texts, expected);
}

/// Returns the sizes of the cycles of `graphs`, each by the name of one file: a file with an exception, or else
/// the first in alphabetical order.
fn circle_sizes(graphs: &[Graph], allowed: &[Exception]) -> BTreeMap<String, usize> {
    let mut sizes = BTreeMap::new();
    for circle in graphs.iter().flat_map(imports::circles) {
        let mut names: Vec<&str> = allowed.iter().map(|it| it.what.as_str()).collect();
        names.retain(|name| circle.contains(name));
        if names.is_empty() {
            names.extend(circle.first());
        }
        sizes.extend(names.into_iter().map(|name| (name.to_owned(), circle.len())));
    }
    sizes
}

#[test]
fn no_circle_of_files_is_too_wide() {
    let exceptions = exceptions::read();
    let allowed = exceptions.get(CIRCLES.name).map_or(&[][..], Vec::as_slice);
    for (graph, circle) in HOUSE
        .imports
        .iter()
        .flat_map(|graph| imports::circles(graph).into_iter().map(move |circle| (graph, circle)))
    {
        if circle.len() > CIRCLES.limit {
            println!("a circle of {} files, with what each imports of it:", circle.len());
            print(graph, &circle);
        }
    }
    CIRCLES.hold(&circle_sizes(&HOUSE.imports, allowed));
}

/// Prints, for each file of `circle`, its imports within the cycle.
fn print(graph: &Graph, circle: &BTreeSet<&str>) {
    for file in circle {
        let to: Vec<&str> = graph[*file].iter().map(String::as_str).collect();
        let to: Vec<&str> = to.into_iter().filter(|it| circle.contains(it)).collect();
        println!("  {file}: {}", to.join(" "));
    }
}

#[test]
fn a_circle_goes_by_the_file_of_its_exception() {
    let graph = |files: &[&str]| -> Graph {
        let next = files.iter().cycle().skip(1);
        let pairs = files.iter().zip(next);
        pairs.map(|(from, to)| ((*from).to_owned(), BTreeSet::from([(*to).to_owned()]))).collect()
    };
    let graphs = [graph(&["a", "b", "c", "d", "e", "f", "g"]), graph(&["p", "q", "r"])];
    let listed = Exception { what: "d".to_owned(), size: 7, reason: "planted".to_owned() };
    let found = circle_sizes(&graphs, &[listed]);
    assert_eq!(found, BTreeMap::from([("d".to_owned(), 7), ("p".to_owned(), 3)]));
    let texts: Vec<String> =
        CIRCLES.judge(&circle_sizes(&graphs, &[]), &[]).into_iter().map(|it| it.text).collect();
    assert_eq!(
        texts,
        [format!(
            "a has 7 files in a circle of imports, 1 more than the limit of 6: {}",
            CIRCLES.remedy
        )]
    );
}

#[test]
fn no_two_modules_import_each_other() {
    let mut sizes = BTreeMap::new();
    for (name, imports) in HOUSE.imports.iter().flat_map(pairs::pairs) {
        println!("{name}:");
        imports.iter().flatten().for_each(|import| println!("  {import}"));
        sizes.insert(name, imports.iter().map(BTreeSet::len).min().unwrap_or(0));
    }
    PAIRS.hold(&sizes);
}

#[test]
fn a_pair_of_modules_is_refused() {
    let texts = [
        ("a/mod.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B(Option<Box<crate::a::A>>);"),
    ];
    let files = texts.map(|(path, text)| SourceFile::parse(&format!("crates/x/src/{path}"), text));
    let found = pairs::pairs(&imports::imports(&files));
    let sizes =
        found.iter().map(|(name, [there, back])| (name.clone(), there.len().min(back.len())));
    let texts: Vec<String> =
        PAIRS.judge(&sizes.collect(), &[]).into_iter().map(|it| it.text).collect();
    let expected =
        "crates/x/src/a b has 1 imports in the direction with fewer, and none is allowed";
    assert_eq!(texts, [format!("{expected}: {}", PAIRS.remedy)]);
}

#[test]
fn every_file_is_formatted() {
    UNFORMATTED.hold(&HOUSE.skips);
}

#[test]
fn a_table_that_is_not_formatted_is_seen() {
    let text = "fn a() {} mod b { #[rustfmt::skip] const TABLE: &[u8] = &[1,  2]; }";
    let file = SourceFile::parse("crates/x/src/a.rs", text);
    assert_eq!(measure::rustfmt_skips(file.tokens), 1);
}

/// Returns the files of plait-core that have an `impl Connection` but should not keep it.
fn connection_files(sizes: &BTreeMap<String, Sizes>) -> BTreeMap<String, usize> {
    sizes
        .iter()
        .filter(|(path, _)| {
            path.starts_with("crates/plait-core/") && !CONNECTION_FILES.contains(&path.as_str())
        })
        .map(|(path, sizes)| (path.clone(), usize::from(sizes.has_connection())))
        .collect()
}

#[test]
fn the_connection_has_six_files() {
    CONNECTION.hold(&connection_files(&HOUSE.sizes));
}

/// Returns the lines in the `impl` blocks of each type, by the file that defines the type and its name. The
/// blocks may be in all files that import the type.
fn type_lines(sizes: &BTreeMap<String, Sizes>, imports: &[Graph]) -> BTreeMap<String, usize> {
    let mut lines = BTreeMap::new();
    for (path, file) in sizes {
        for (name, count) in &file.impl_lines {
            let mut imported = imports.iter().filter_map(|graph| graph.get(path)).flatten();
            let home = imported.find(|it| sizes[*it].defines(name) && !file.defines(name));
            *lines.entry(format!("{} {name}", home.unwrap_or(path))).or_default() += count;
        }
    }
    lines
}

#[test]
fn no_type_has_too_many_functions() {
    let lines = type_lines(&HOUSE.sizes, &HOUSE.imports);
    let connection = "crates/plait-core/src/conn/mod.rs Connection";
    assert!(lines[connection] > 1_000, "the blocks of other files are not counted");
    TYPES.hold(&lines);
}

#[test]
fn a_type_that_is_spread_over_files_is_seen() {
    let block = |name: &str, lines: usize| {
        format!("impl {name} {{\n{}}}\n", "    const A: u8 = 0;\n".repeat(lines - 2))
    };
    let texts = [
        ("paths.rs", format!("struct Paths {{ a: u8 }}\nstruct Reader;\n{}", block("Paths", 600))),
        ("acks.rs", format!("use crate::paths::Paths;\n{}", block("Paths", 401))),
        ("read.rs", format!("use crate::paths::Paths;\nstruct Reader;\n{}", block("Reader", 999))),
    ];
    let files = texts.map(|(path, text)| SourceFile::parse(&format!("crates/x/src/{path}"), &text));
    let sizes = files.iter().map(|it| (it.path.clone(), Sizes::of(it))).collect();
    let found = type_lines(&sizes, &[imports::imports(&files)]);
    let texts: Vec<String> = TYPES.judge(&found, &[]).into_iter().map(|it| it.text).collect();
    assert_eq!(
        texts,
        [format!(
            "crates/x/src/paths.rs Paths has 1001 lines in its impl blocks, 1 more than the limit of 1000: {}",
            TYPES.remedy
        )]
    );
}

/// Returns the measurements of a file with an `impl Connection` of `lines` lines, if there are any.
fn with_connection(lines: usize) -> Sizes {
    let block = (lines > 0).then(|| ("Connection".to_owned(), lines));
    Sizes { impl_lines: block.into_iter().collect(), ..Sizes::default() }
}

#[test]
fn a_seventh_file_of_the_connection_is_seen() {
    let sizes = BTreeMap::from([
        (CONNECTION_FILES[0].to_owned(), with_connection(9)),
        ("crates/plait-core/src/conn/joins.rs".to_owned(), with_connection(9)),
        ("crates/plait-core/src/conn/views.rs".to_owned(), with_connection(0)),
        ("crates/plait-app/src/http.rs".to_owned(), with_connection(9)),
    ]);
    let breaches = CONNECTION.judge(&connection_files(&sizes), &[]);
    let files: Vec<&str> = breaches.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(files, ["crates/plait-core/src/conn/joins.rs"]);
}

/// Returns, for each file with an `impl Connection`, the other such files whose methods it calls.
fn connection_calls(sizes: &BTreeMap<String, Sizes>) -> Graph {
    let own = || sizes.iter().filter(|(path, _)| path.starts_with("crates/plait-core/"));
    let homes: BTreeMap<&str, &String> = own()
        .flat_map(|(path, sizes)| sizes.methods.iter().map(move |name| (name.as_str(), path)))
        .collect();
    own()
        .filter(|(_, sizes)| sizes.has_connection())
        .map(|(path, sizes)| {
            let to = sizes.calls.iter().filter_map(|name| homes.get(name.as_str()).copied());
            (path.clone(), to.filter(|to| *to != path).cloned().collect())
        })
        .collect()
}

/// Returns the size of the largest cycle of calls.
fn connection_circle(calls: &Graph) -> BTreeMap<String, usize> {
    let size = imports::circles(calls).first().map_or(0, BTreeSet::len);
    BTreeMap::from([("plait-core Connection".to_owned(), size)])
}

#[test]
fn the_files_of_the_connection_call_each_other_little() {
    let calls = connection_calls(&HOUSE.sizes);
    if let Some(circle) = imports::circles(&calls).first() {
        println!("{} files whose methods call each other, each with those it calls:", circle.len());
        print(&calls, circle);
    }
    CONNECTION_CIRCLE.hold(&connection_circle(&calls));
}

#[test]
fn a_circle_of_calls_is_seen() {
    let file = |method: &str, call: &str| Sizes {
        methods: BTreeSet::from([method.to_owned()]),
        calls: BTreeSet::from([call.to_owned()]),
        ..with_connection(9)
    };
    let names = ["a", "b", "c", "d", "e", "f", "g", "a"];
    let sizes = names
        .windows(2)
        .map(|pair| (format!("crates/plait-core/src/conn/{}.rs", pair[0]), file(pair[0], pair[1])));
    let found = connection_circle(&connection_calls(&sizes.collect()));
    assert_eq!(found.values().copied().collect::<Vec<_>>(), [7]);
    assert_eq!(CONNECTION_CIRCLE.judge(&found, &[]).len(), 1);
}

#[test]
fn subflows_are_indexed_by_their_owner_only() {
    for (file, count) in HOUSE.indexed_subflows.iter().filter(|(_, count)| **count > 0) {
        println!("  {file}: {count}");
    }
    let sum = HOUSE.indexed_subflows.values().sum();
    INDEXED_SUBFLOWS.hold(&BTreeMap::from([("plait-core".to_owned(), sum)]));
}

#[test]
fn an_indexed_subflow_is_seen() {
    let file = SourceFile::parse("crates/x/src/a.rs", "fn f(it: &It) -> u8 { it.subflows[0] }");
    let found = BTreeMap::from([(file.path, measure::indexed_subflows(file.tokens))]);
    let breaches = INDEXED_SUBFLOWS.judge(&found, &[]);
    assert_eq!(
        breaches[0].text,
        format!(
            "crates/x/src/a.rs has 1 uses of subflows[...] outside paths/, and none is allowed: {}",
            INDEXED_SUBFLOWS.remedy
        )
    );
}

#[test]
fn a_constant_says_its_quantity() {
    let found = HOUSE.vague_constants.iter().filter(|(_, count)| **count > 0);
    VAGUE_CONSTANTS.hold(&found.map(|(file, count)| (file.clone(), *count)).collect());
}

#[test]
fn a_vague_constant_is_seen() {
    let text = "const MOST: u64 = 1; pub const MOST_BYTES: u64 = 2; struct A<const MOST: usize>;";
    let file = SourceFile::parse("crates/x/src/a.rs", text);
    let found = BTreeMap::from([(file.path, measure::vague_constants(file.tokens))]);
    assert_eq!(VAGUE_CONSTANTS.judge(&found, &[]).len(), 1);
    assert_eq!(found.into_values().collect::<Vec<_>>(), [1]);
}
