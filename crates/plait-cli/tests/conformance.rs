//! The requirement ledger. `docs/requirements.toml` lists the requirements on a Multipath TCP stack and their
//! state here. Tests cite requirements in their comments or names. This test compares both, and generates
//! `docs/conformance.md`.
#![allow(clippy::unwrap_used, clippy::panic)]

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// Highest requirement number; numbers start at 1.
const LAST: u8 = 80;
/// Set to write `docs/conformance.md` instead of comparing it.
const BLESS: &str = "PLAIT_BLESS";

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, Debug)]
enum Status {
    #[serde(rename = "done")]
    Done,
    #[serde(rename = "part")]
    Part,
    #[serde(rename = "to do")]
    ToDo,
    #[serde(rename = "exception")]
    Exception,
}

impl Status {
    const ALL: [Status; 4] = [Status::Done, Status::Part, Status::ToDo, Status::Exception];

    fn words(self) -> &'static str {
        match self {
            Status::Done => "done",
            Status::Part => "part",
            Status::ToDo => "to do",
            Status::Exception => "exception",
        }
    }
}

#[derive(Clone, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Requirement {
    id: String,
    title: String,
    clause: String,
    status: Status,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ledger {
    requirement: Vec<Requirement>,
}

/// Tests that cite each requirement, as `crate/file::test`.
type Citations = BTreeMap<u8, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

// Reading the tests.

/// Returns the numbers n of every word `R<n>` in a comment, except for words in backticks, which are code. In
/// the name of a test the word is `r<n>` between underscores.
fn cited(text: &str) -> Vec<u8> {
    let prose: String = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    numbers(&prose, 'R', |c| !c.is_alphanumeric() && c != '_')
}

fn numbers(text: &str, letter: char, between: impl Fn(char) -> bool) -> Vec<u8> {
    let digits = |word: &str| word.strip_prefix(letter).and_then(|rest| rest.parse().ok());
    text.split(between).filter_map(digits).collect()
}

/// A function of a test file, with the text before and inside it.
#[derive(Default, Debug)]
struct Function {
    name: String,
    is_test: bool,
    ignored: bool,
    cites: Vec<u8>,
}

/// Requirements cited by the file itself (`//!`), and its functions.
#[derive(Default, Debug)]
struct Scan {
    file: Vec<u8>,
    functions: Vec<Function>,
}

/// Returns the comment of a line without its opening slashes. Comments after code count too.
fn comment(line: &str) -> Option<&str> {
    let start = line.find("//")?;
    // Slashes inside a string do not count.
    line[..start].matches('"').count().is_multiple_of(2).then(|| &line[start + 2..])
}

fn function_name(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
    let rest = line.strip_prefix("const ").unwrap_or(line).strip_prefix("fn ")?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// Reads a test file line by line. Comments and attributes before a function, and comments inside it, belong to
/// the function.
fn scan(text: &str) -> Scan {
    let mut found = Scan::default();
    let (mut next, mut loose) = (Function::default(), Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(words) = line.strip_prefix("//!") {
            found.file.extend(cited(words));
        } else if let Some(words) = line.strip_prefix("///") {
            next.cites.extend(cited(words));
        } else if let Some(words) = line.strip_prefix("//") {
            // The comment belongs to the next function or to the one above. The next line of code decides.
            loose.extend(cited(words));
        } else if line.starts_with("#[") {
            next.is_test |= line == "#[test]";
            next.ignored |= line.starts_with("#[ignore");
        } else if let Some(name) = function_name(line) {
            let mut function = core::mem::take(&mut next);
            name.clone_into(&mut function.name);
            function.cites.append(&mut loose);
            function.cites.extend(numbers(name, 'r', |c| c == '_'));
            found.functions.push(function);
        } else if !line.is_empty() {
            // The documented item is no function.
            next = Function::default();
            let inside = core::mem::take(&mut loose);
            if let Some(last) = found.functions.last_mut() {
                last.cites.extend(inside);
                last.cites.extend(comment(line).map(cited).unwrap_or_default());
            }
        }
    }
    found
}

/// Returns the test part of a file: all of it, or everything from its test module on.
fn tests_of<'a>(path: &Path, text: &'a str) -> &'a str {
    let of_tests = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs";
    if path.iter().any(of_tests) {
        return text;
    }
    text.find("#[cfg(test)]\nmod tests {").map_or("", |start| &text[start..])
}

/// Records the citations in the tests of the file `name`. If a file has its own harness, every function may be
/// a case. Otherwise only `#[test]` functions that are not ignored count.
fn collect(name: &str, text: &str, into: &mut Citations) {
    let found = scan(text);
    // `cases` returns the cases of one file to the `main` of another.
    let is_harness = |function: &Function| ["main", "cases"].contains(&function.name.as_str());
    let own_harness = found.functions.iter().any(is_harness);
    let counts = |function: &&Function| (function.is_test || own_harness) && !function.ignored;
    for function in found.functions.iter().filter(counts) {
        let of_file = found.file.iter().filter(|_| function.is_test);
        for number in function.cites.iter().chain(of_file) {
            into.entry(*number).or_default().insert(format!("{name}::{}", function.name));
        }
    }
    if own_harness {
        for number in &found.file {
            into.entry(*number).or_default().insert(name.to_owned());
        }
    }
}

/// Returns the Rust files under `dir`, in order.
fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

fn citations() -> Citations {
    let crates = root().join("crates");
    let mut files = Vec::new();
    for entry in fs::read_dir(&crates).unwrap() {
        let dir = entry.unwrap().path();
        rust_files(&dir.join("src"), &mut files);
        rust_files(&dir.join("tests"), &mut files);
    }
    let mut all = Citations::new();
    for path in files.iter().filter(|path| !path.ends_with("tests/conformance.rs")) {
        let text = fs::read_to_string(path).unwrap();
        let inside = path.strip_prefix(&crates).unwrap();
        let name = inside.to_string_lossy().replace('\\', "/");
        collect(&name, tests_of(inside, &text), &mut all);
    }
    all
}

// The ledger against the tests.

fn number(id: &str) -> Option<u8> {
    id.strip_prefix('R').and_then(|digits| digits.parse().ok())
}

/// Returns all contradictions between ledger and tests, one line each.
fn disagreements(ledger: &[Requirement], citations: &Citations) -> Vec<String> {
    let mut wrong = Vec::new();
    let ids: Vec<&str> = ledger.iter().map(|entry| entry.id.as_str()).collect();
    let expected: Vec<String> = (1..=LAST).map(|number| format!("R{number}")).collect();
    for id in expected.iter().filter(|id| !ids.contains(&id.as_str())) {
        wrong.push(format!("{id} has no entry"));
    }
    for id in ids.iter().filter(|id| !expected.iter().any(|known| known == *id)) {
        wrong.push(format!("{id} is no requirement"));
    }
    let place = |id: &&str| number(id).unwrap_or(0);
    if !ids.is_sorted_by(|a, b| place(a) < place(b)) {
        wrong.push("entries are out of order or doubled".to_owned());
    }
    for (number, tests) in citations.iter().filter(|(number, _)| !(1..=LAST).contains(*number)) {
        wrong.push(format!("R{number} is no requirement; cited by {tests:?}"));
    }
    for entry in ledger {
        let (id, status) = (&entry.id, entry.status);
        let cited = number(id).and_then(|number| citations.get(&number));
        if entry.title.trim().is_empty() || entry.clause.trim().is_empty() {
            wrong.push(format!("{id} needs a title and a clause"));
        }
        match (status, cited) {
            (Status::Done, None) => wrong.push(format!("{id} is done, but no test cites it")),
            (Status::ToDo | Status::Exception, Some(tests)) => wrong.push(format!(
                "{id} is \"{}\", but cited by {tests:?}: is it part or done?",
                status.words()
            )),
            _ => {}
        }
        if (status == Status::Done) != entry.note.is_empty() {
            wrong.push(format!("{id}: all but \"done\" have a note"));
        }
    }
    wrong
}

// The page.

fn summary(ledger: &[Requirement]) -> String {
    let count = |status| ledger.iter().filter(|entry| entry.status == status).count();
    let parts: Vec<String> =
        Status::ALL.map(|status| format!("{} {}", count(status), status.words())).into();
    format!("{} requirements: {}.", ledger.len(), parts.join(", "))
}

fn page(ledger: &[Requirement], citations: &Citations) -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut page = String::from(
        "# Conformance\n\n<!-- Written by crates/plait-cli/tests/conformance.rs; do not edit. -->\n\n",
    );
    write!(
        page,
        "After this page you know which requirements of the RFCs plait fulfils, and which test proves each \
         of them. A line has the requirement, its clause, its status and its tests. A requirement is done if \
         a test proves it. The last column names the test by its file and function, or says what is \
         missing.\n\nThe entries are in `docs/requirements.toml`. After a change of them or of a test, \
         `{BLESS}=1 cargo test -p plait-cli --test conformance` writes this page.\n\n{}\n\n",
        summary(ledger)
    )
    .unwrap();
    page.push_str("| id | requirement | clause | status | tests, and what is missing |\n");
    page.push_str("|---|---|---|---|---|\n");
    for Requirement { id, title, clause, status, note } in ledger {
        let tests = number(id).and_then(|number| citations.get(&number));
        let tests = tests.into_iter().flatten().map(|test| format!("`{test}`"));
        let missing = (!note.is_empty()).then(|| cell(note));
        let last: Vec<String> = missing.into_iter().chain(tests).collect();
        let (title, clause, status) = (cell(title), cell(clause), status.words());
        writeln!(page, "| {id} | {title} | {clause} | {status} | {} |", last.join("<br>")).unwrap();
    }
    page
}

fn ledger() -> Vec<Requirement> {
    let text = fs::read_to_string(root().join("docs/requirements.toml")).unwrap();
    match toml::from_str::<Ledger>(&text) {
        Ok(ledger) => ledger.requirement,
        Err(error) => panic!("docs/requirements.toml: {error}"),
    }
}

#[test]
fn the_ledger_agrees_with_the_tests() {
    let wrong = disagreements(&ledger(), &citations());
    assert!(wrong.is_empty(), "docs/requirements.toml:\n{}", wrong.join("\n"));
}

#[test]
fn the_page_is_up_to_date() {
    let path = root().join("docs/conformance.md");
    let fresh = page(&ledger(), &citations());
    if std::env::var_os(BLESS).is_some() {
        fs::write(&path, &fresh).unwrap();
        return;
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    let stale = fresh.lines().find(|line| !stored.lines().any(|known| known == *line));
    assert!(
        stored == fresh,
        "docs/conformance.md is out of date: run `{BLESS}=1 cargo test -p plait-cli --test \
         conformance` and commit it. First line that differs: {}",
        stale.unwrap_or("one too many in the file")
    );
}

// The checks are checked.

fn entry(number: u8, status: Status, note: &str) -> Requirement {
    let text = |text: &str| text.to_owned();
    let (id, title, clause) = (format!("R{number}"), text("title"), text("RFC 8684"));
    Requirement { id, title, clause, status, note: text(note) }
}

#[test]
fn citations_are_words_of_comments() {
    assert_eq!(cited(" R1, R20 (RFC 7323): R3: R70."), [1, 20, 3, 70]);
    assert_eq!(cited(" join `R1/R2`, XR4, R, R5x, RFC 9, r6, R-7, F8, R_9"), []);
    assert_eq!(numbers("r29_wraps_and_r8", 'r', |c| c == '_'), [29, 8]);
}

#[test]
fn tests_are_credited_with_what_they_cite() {
    let text = "
        //! R80
        /// R1, R2: what it proves.
        #[test]
        fn first() {
            // R3: a step.
            step(); // R4
            let url = \"http://R5\";
            // R6, at its end.
        }

        /// R11
        struct Peer;

        /// R7: help for others.
        fn not_a_test() {}

        /// R8
        #[test]
        #[ignore = \"slow\"]
        fn ignored() {}

        proptest! {
            /// R9
            #[test]
            fn r10_property(
                input: u8,
            ) {}
        }";
    let mut found = Citations::new();
    collect("x.rs", text, &mut found);
    let of = |number: u8| found.get(&number).map(|tests| tests.iter().collect::<Vec<_>>());
    for number in [1, 2, 3, 4, 6] {
        assert_eq!(of(number).unwrap(), ["x.rs::first"], "R{number}");
    }
    for number in [9, 10] {
        assert_eq!(of(number).unwrap(), ["x.rs::r10_property"], "R{number}");
    }
    assert_eq!(of(80).unwrap(), ["x.rs::first", "x.rs::r10_property"]);
    assert!([5, 7, 8, 11].iter().all(|number| of(*number).is_none()));

    let mut found = Citations::new();
    collect("own.rs", "//! R1\n/// R2\nfn case() {}\nfn main() {}", &mut found);
    let all: Vec<&String> = found.values().flatten().collect();
    assert_eq!(all, ["own.rs", "own.rs::case"]);
}

#[test]
fn only_the_tests_of_a_source_file_count() {
    let text =
        "/// R1\nfn code() {}\n#[cfg(test)]\nmod tests {\n/// R2\n#[test]\nfn check() {}\n}\n";
    let mut found = Citations::new();
    collect("x.rs", tests_of(Path::new("plait-core/src/x.rs"), text), &mut found);
    assert_eq!(found.keys().collect::<Vec<_>>(), [&2]);
    assert_eq!(tests_of(Path::new("plait-core/src/x/tests.rs"), text), text);
    assert_eq!(tests_of(Path::new("plait-core/tests/x.rs"), text), text);
}

#[test]
fn disagreements_are_seen() {
    let mut ledger: Vec<Requirement> =
        (1..=LAST).map(|number| entry(number, Status::ToDo, "the live part")).collect();
    assert!(disagreements(&ledger, &Citations::new()).is_empty());
    ledger[0] = entry(1, Status::Done, "");
    ledger[1] = entry(2, Status::Done, "");
    ledger[2] = entry(3, Status::Part, "");
    ledger[79] = entry(81, Status::ToDo, "the live part");
    let by = |test: &str| BTreeSet::from([test.to_owned()]);
    let citations = Citations::from([(1, by("a")), (4, by("b")), (90, by("c"))]);
    assert_eq!(
        disagreements(&ledger, &citations),
        [
            "R80 has no entry",
            "R81 is no requirement",
            "R90 is no requirement; cited by {\"c\"}",
            "R2 is done, but no test cites it",
            "R3: all but \"done\" have a note",
            "R4 is \"to do\", but cited by {\"b\"}: is it part or done?",
        ]
    );
    ledger.swap(4, 5);
    let wrong = disagreements(&ledger, &citations);
    assert!(wrong.contains(&"entries are out of order or doubled".to_owned()), "{wrong:?}");
}

#[test]
fn the_page_has_counts_and_a_row_each() {
    let ledger =
        [entry(1, Status::Done, ""), entry(2, Status::Part, "a | b"), entry(3, Status::ToDo, "c")];
    let citations = Citations::from([
        (1, BTreeSet::from(["x.rs::two".to_owned(), "x.rs::one".to_owned()])),
        (2, BTreeSet::from(["y.rs::three".to_owned()])),
    ]);
    let page = page(&ledger, &citations);
    assert!(page.contains("3 requirements: 1 done, 1 part, 1 to do, 0 exception."));
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| R")).collect();
    assert_eq!(
        rows,
        [
            "| R1 | title | RFC 8684 | done | `x.rs::one`<br>`x.rs::two` |",
            "| R2 | title | RFC 8684 | part | a \\| b<br>`y.rs::three` |",
            "| R3 | title | RFC 8684 | to do | c |",
        ]
    );
}
