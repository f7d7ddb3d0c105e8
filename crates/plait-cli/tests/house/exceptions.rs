//! The list of exceptions, and how a gate compares its findings with them.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

/// Path of the list from the root of the repository.
const LIST: &str = "crates/plait-cli/tests/house/exceptions.toml";

/// Exceptions by the name of their gate.
pub(crate) type Exceptions = BTreeMap<String, Vec<Exception>>;

/// An item that may exceed the limit of its gate until it is fixed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exception {
    pub(crate) what: String,
    /// Its present size; 1 if items are counted one by one.
    #[serde(default = "one")]
    pub(crate) size: usize,
    pub(crate) reason: String,
}

fn one() -> usize {
    1
}

/// A gate: a kind of size, its limit, and the remedy for larger sizes.
pub(crate) struct Gate {
    /// Name of its exceptions in the list.
    pub(crate) name: &'static str,
    /// Unit of its sizes.
    pub(crate) unit: &'static str,
    /// Largest size that needs no exception.
    pub(crate) limit: usize,
    pub(crate) remedy: &'static str,
}

/// A breach of a gate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Breach {
    pub(crate) what: String,
    pub(crate) text: String,
    /// If the exception allows too much: its correct size, or `None` if it must be removed.
    lower: Option<Option<usize>>,
}

impl Gate {
    /// Returns the breaches among the items of `found`, given with their sizes. An exception must state the
    /// present size. A larger one is a breach too, so that no size can grow again.
    pub(crate) fn judge(
        &self,
        found: &BTreeMap<String, usize>,
        allowed: &[Exception],
    ) -> Vec<Breach> {
        let beyond = found.iter().filter(|(what, size)| {
            **size > self.limit && allowed.iter().all(|exception| exception.what != **what)
        });
        let mut breaches: Vec<Breach> = beyond
            .map(|(what, size)| {
                let Gate { unit, limit, remedy, .. } = self;
                let text = match limit {
                    0 => format!("{what} has {size} {unit}, and none is allowed: {remedy}"),
                    _ => format!(
                        "{what} has {size} {unit}, {} more than the limit of {limit}: {remedy}",
                        size - limit
                    ),
                };
                Breach { what: what.clone(), text, lower: None }
            })
            .collect();
        breaches.extend(allowed.iter().filter_map(|exception| {
            self.judge_exception(exception, found.get(&exception.what).copied())
        }));
        breaches
    }

    fn judge_exception(&self, exception: &Exception, size: Option<usize>) -> Option<Breach> {
        let Gate { name, unit, limit, remedy } = self;
        let Exception { what, size: allowed, .. } = exception;
        let (said, lower) = match size {
            None => {
                (format!("nothing needs the exception {what}: remove it from {name}"), Some(None))
            }
            Some(size) if size <= *limit => {
                let said = format!("has {size} {unit}, which needs no exception");
                (format!("{what} {said}: remove it from {name}"), Some(None))
            }
            Some(size) if size < *allowed => {
                let said = format!("has {size} {unit}, and its exception allows {allowed}");
                (format!("{what} {said}: lower it in {name}"), Some(Some(size)))
            }
            Some(size) if size > *allowed => {
                let more = size - allowed;
                let said = format!("has {size} {unit}, {more} more than its exception allows");
                (format!("{what} {said}, which may only shrink: {remedy}"), None)
            }
            Some(_) => return None,
        };
        Some(Breach { what: what.clone(), text: said, lower })
    }

    /// Fails on any breach. With `PLAIT_BLESS=1`, exceptions that allow too much are lowered or removed
    /// instead. None is raised or added.
    pub(crate) fn hold(&self, found: &BTreeMap<String, usize>) {
        let exceptions = read();
        let allowed = exceptions.get(self.name).map_or(&[][..], Vec::as_slice);
        let mut breaches = self.judge(found, allowed);
        let loose = breaches.iter().filter(|it| it.lower.is_some()).count();
        if loose > 0 && std::env::var_os("PLAIT_BLESS").is_some() {
            lower(self.name, &breaches);
            breaches.retain(|it| it.lower.is_none());
        } else if loose > 0 {
            let text =
                "PLAIT_BLESS=1 cargo test -p plait-cli --test house lowers and removes exceptions";
            breaches.push(Breach { what: String::new(), text: text.to_owned(), lower: None });
        }
        let lines: Vec<&str> = breaches.iter().map(|it| it.text.as_str()).collect();
        assert!(lines.is_empty(), "{}:\n{}", self.name, lines.join("\n"));
    }
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/house/exceptions.toml")
}

/// Returns the current list.
pub(crate) fn read() -> Exceptions {
    let _whole = WRITING.lock().unwrap();
    let text = fs::read_to_string(path()).unwrap();
    toml::from_str(&text).unwrap_or_else(|err| panic!("{LIST}: {err}"))
}

/// Locked while the list is read or written, as gates run in parallel.
static WRITING: Mutex<()> = Mutex::new(());

fn lower(gate: &str, breaches: &[Breach]) {
    let _alone = WRITING.lock().unwrap();
    let text = fs::read_to_string(path()).unwrap();
    fs::write(path(), lowered(&text, gate, breaches)).unwrap();
}

/// Returns the list `text` with the sizes of `breaches`. Each exception has its own line.
fn lowered(text: &str, gate: &str, breaches: &[Breach]) -> String {
    let mut section = "";
    let mut lines = String::new();
    for line in text.lines() {
        if let Some(name) = line.strip_suffix(" = [") {
            section = name;
        }
        let named = |it: &&Breach| line.contains(&format!("what = \"{}\"", it.what));
        let change =
            breaches.iter().filter(|_| section == gate).find(named).and_then(|it| it.lower);
        match (change, line.split_once("size = ")) {
            (Some(None), _) => continue,
            (Some(Some(size)), Some((before, after))) => {
                let rest = after.trim_start_matches(|it: char| it.is_ascii_digit());
                lines.push_str(&format!("{before}size = {size}{rest}\n"));
            }
            _ => lines.push_str(&format!("{line}\n")),
        }
    }
    lines
}

#[test]
fn each_exception_has_a_line_a_reason_and_a_name_of_its_own() {
    let text = fs::read_to_string(path()).unwrap();
    for (gate, exceptions) in read() {
        for (at, exception) in exceptions.iter().enumerate() {
            let what = &exception.what;
            assert!(!exception.reason.is_empty(), "{gate}: {what} has no reason");
            let begin = format!("    {{ what = \"{what}\", ");
            assert!(
                text.lines().any(|line| line.starts_with(&begin) && line.ends_with(" },")),
                "{gate}: {what} needs a line of its own"
            );
            assert!(
                exceptions[..at].iter().all(|it| it.what != *what),
                "{gate}: {what} comes twice"
            );
        }
    }
}

const PLANTED: &str = r#"
files = [
    { what = "small.rs", size = 600, reason = "it was large" },
    { what = "gone.rs", size = 600, reason = "it was large" },
    { what = "kept.rs", size = 600, reason = "it is large" },
    { what = "grown.rs", size = 600, reason = "it is large" },
    { what = "shrunk.rs", size = 600, reason = "it is large" },
]
functions = [
    { what = "small.rs", size = 80, reason = "another gate" },
]
"#;

fn planted() -> Vec<Breach> {
    let gate = Gate { name: "files", unit: "lines", limit: 500, remedy: "split it" };
    let sizes = [
        ("fine.rs", 500),
        ("grown.rs", 601),
        ("kept.rs", 600),
        ("new.rs", 512),
        ("shrunk.rs", 599),
        ("small.rs", 500),
    ];
    let found = sizes.iter().map(|(what, size)| ((*what).to_owned(), *size)).collect();
    let list: Exceptions = toml::from_str(PLANTED).unwrap();
    gate.judge(&found, &list["files"])
}

#[test]
fn a_size_beyond_its_limit_or_off_its_exception_is_a_breach() {
    let texts: Vec<String> = planted().into_iter().map(|it| it.text).collect();
    assert_eq!(
        texts,
        [
            "new.rs has 512 lines, 12 more than the limit of 500: split it",
            "small.rs has 500 lines, which needs no exception: remove it from files",
            "nothing needs the exception gone.rs: remove it from files",
            "grown.rs has 601 lines, 1 more than its exception allows, which may only shrink: split it",
            "shrunk.rs has 599 lines, and its exception allows 600: lower it in files",
        ]
    );
}

#[test]
fn exceptions_are_lowered_and_never_raised() {
    let expected = r#"
files = [
    { what = "kept.rs", size = 600, reason = "it is large" },
    { what = "grown.rs", size = 600, reason = "it is large" },
    { what = "shrunk.rs", size = 599, reason = "it is large" },
]
functions = [
    { what = "small.rs", size = 80, reason = "another gate" },
]
"#;
    assert_eq!(lowered(PLANTED, "files", &planted()), expected);
}
