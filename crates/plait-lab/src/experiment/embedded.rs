//! The experiments that the program carries with it, or those of a directory.

use super::{Experiment, Kind, PAPERS};
use crate::error::{Fault, Place, ScenarioError, unreadable};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of `experiments/`: `ton/ton-fig8.toml` and what is in it.
pub const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

const MISSES: &str = include_str!("../../../../experiments/misses.toml");
const PROVEN: &str = include_str!("../../../../experiments/proven.toml");
const UNRUN: &str = include_str!("../../../../experiments/unrun.toml");

/// Claims that are known not to hold, and why.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Misses(pub BTreeMap<String, String>);

/// Exact claims that tests of this repository prove.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Proven(pub BTreeMap<String, ProvenClaim>);

/// Claims of the catalogue that no experiment judges and no test proves.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Unrun(pub BTreeMap<String, UnrunClaim>);

/// A claim that nothing judges.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnrunClaim {
    /// How much hangs on it.
    pub kind: Kind,
    /// What the paper says.
    pub says: String,
    /// What is missing.
    pub why: String,
}

/// A claim that a test proves.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvenClaim {
    /// What the paper says.
    pub says: String,
    /// The file of the test.
    pub file: String,
    /// The name of the test, or of the group of vectors.
    pub test: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Miss {
    why: String,
}

impl Misses {
    /// Those of the project.
    ///
    /// # Errors
    /// Where the file is not of its form.
    pub fn embedded() -> Result<Misses, ScenarioError> {
        Misses::from_toml("experiments/misses.toml", MISSES)
    }

    /// Those beside the experiments of a directory, in `DIR/misses.toml`; without a directory or such
    /// a file those of the project.
    ///
    /// # Errors
    /// Where the file cannot be read or is not of its form.
    pub fn beside(directory: Option<&Path>) -> Result<Misses, ScenarioError> {
        let own = directory.map(|it| it.join("misses.toml")).filter(|it| it.exists());
        let Some(file) = own else { return Misses::embedded() };
        let text = std::fs::read_to_string(&file).map_err(|error| refusal(&file, &error))?;
        Misses::from_toml(&file.display().to_string(), &text)
    }

    /// Reads `[CLAIM] why = "..."` tables.
    ///
    /// # Errors
    /// Where it is no TOML, or has other keys.
    pub fn from_toml(name: &str, text: &str) -> Result<Misses, ScenarioError> {
        let list: BTreeMap<String, Miss> = read(name, text)?;
        Ok(Misses(list.into_iter().map(|(id, miss)| (id, flowing(&miss.why))).collect()))
    }
}

impl Proven {
    /// Those of the project.
    ///
    /// # Errors
    /// Where the file is not of its form.
    pub fn embedded() -> Result<Proven, ScenarioError> {
        Ok(Proven(read("experiments/proven.toml", PROVEN)?))
    }
}

impl Unrun {
    /// Those of the project.
    ///
    /// # Errors
    /// Where the file is not of its form.
    pub fn embedded() -> Result<Unrun, ScenarioError> {
        Ok(Unrun(read("experiments/unrun.toml", UNRUN)?))
    }
}

/// Text of several lines as one.
fn flowing(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn read<T: for<'a> Deserialize<'a>>(name: &str, text: &str) -> Result<T, ScenarioError> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start).min(text.len());
        let before = &text.as_bytes()[..at];
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let place = Place::File {
            file: name.to_owned(),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: String::from_utf8_lossy(&before[start..]).chars().count() + 1,
            field: String::new(),
        };
        ScenarioError::new(&place, Fault::Invalid, "", error.message())
    })
}

/// Every experiment, those of a paper together and in the order of its figures: the program's own,
/// or those of the files `DIR/*/*.toml`.
///
/// # Errors
/// Where a file cannot be read or taken.
pub fn experiments(directory: Option<&Path>) -> Result<Vec<Experiment>, ScenarioError> {
    let mut list = Vec::new();
    match directory {
        None => {
            for (name, text) in EMBEDDED {
                list.push(Experiment::from_toml(&format!("experiments/{name}"), text)?);
            }
        }
        Some(directory) => {
            for file in files(directory)? {
                let text =
                    std::fs::read_to_string(&file).map_err(|error| refusal(&file, &error))?;
                list.push(Experiment::from_toml(&file.display().to_string(), &text)?);
            }
        }
    }
    list.sort_by_cached_key(|experiment| {
        let paper = PAPERS.iter().position(|paper| paper.0 == experiment.paper());
        (paper.unwrap_or(PAPERS.len()), natural(&experiment.id))
    });
    Ok(list)
}

fn refusal(path: &Path, error: &std::io::Error) -> ScenarioError {
    let place = Place::Argument("--experiments".to_owned());
    ScenarioError::new(&place, Fault::Unreadable, &path.display().to_string(), &unreadable(error))
}

fn files(directory: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
    let entries = |path: &Path| -> Result<Vec<PathBuf>, ScenarioError> {
        let read = std::fs::read_dir(path).map_err(|error| refusal(path, &error))?;
        let mut list: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
        list.sort();
        Ok(list)
    };
    let mut found = Vec::new();
    for paper in entries(directory)?.into_iter().filter(|path| path.is_dir()) {
        let toml = |path: &PathBuf| path.extension().is_some_and(|it| it == "toml");
        found.extend(entries(&paper)?.into_iter().filter(toml));
    }
    if found.is_empty() {
        let place = Place::Argument("--experiments".to_owned());
        let given = directory.display().to_string();
        return Err(ScenarioError::new(&place, Fault::Missing, &given, "no experiments are there")
            .allow("a directory with files such as ton/ton-fig8.toml"));
    }
    Ok(found)
}

/// A name so that `fig8` comes before `fig10`.
fn natural(name: &str) -> (String, u64, String) {
    let start = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let digits: String = name[start..].chars().take_while(char::is_ascii_digit).collect();
    let rest = name[start + digits.len()..].to_owned();
    (name[..start].to_owned(), digits.parse().unwrap_or(0), rest)
}

impl Kind {
    /// Whether a run fails where such a claim does.
    #[must_use]
    pub const fn gates(self) -> bool {
        !matches!(self, Kind::Soft)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_the_order_of_their_numbers() {
        let mut names = ["ton-fig10", "ton-fig8", "ton-u"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["ton-fig8", "ton-fig10", "ton-u"]);
    }

    #[test]
    fn a_wrong_miss_has_its_line() {
        let error =
            Misses::from_toml("m.toml", "[a]\nwhy = \"x\"\n[b]\nwhat = \"y\"\n").unwrap_err();
        assert!(error.to_string().starts_with("m.toml:4:1: unknown field `what`"), "{error}");
    }
}
