//! The experiments built into the program, and the experiments of a directory.

use super::{ClaimKind, Experiment, PAPERS};
use crate::error::{Fault, Place, ScenarioError, unreadable};
use crate::scenario::lists::read;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The files of `crates/plait-lab/experiments`: path, such as `ton/ton-fig8.toml`, and content.
pub const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// The changes of the set-ups since they were frozen, in Markdown.
pub const CHANGED: &str = include_str!("../../experiments/changed.md");

const PROVEN: &str = include_str!("../../experiments/proven.toml");
const UNRUN: &str = include_str!("../../experiments/unrun.toml");

/// Exact claims that tests of this repository prove.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Proven(pub BTreeMap<String, ProvenClaim>);

/// Claims of the papers that no experiment judges and no test proves.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Unrun(pub BTreeMap<String, UnrunClaim>);

/// A claim that is not judged.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnrunClaim {
    /// Weight of the claim.
    pub kind: ClaimKind,
    /// The claim in a sentence.
    pub says: String,
    /// The missing prerequisite.
    pub why: String,
}

/// A claim that a test proves.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProvenClaim {
    /// The claim in a sentence.
    pub says: String,
    /// The file of the test.
    pub file: String,
    /// The name of the test, or of the group of vectors.
    pub test: String,
    /// Further tests, if one does not prove the whole claim.
    #[serde(default)]
    pub more: Vec<Proof>,
}

/// A test that proves a part of a claim.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The file of the test.
    pub file: String,
    /// The name of the test.
    pub test: String,
}

impl ProvenClaim {
    /// Returns every test of the claim, as file and name.
    pub fn proofs(&self) -> impl Iterator<Item = (&str, &str)> {
        let first = (self.file.as_str(), self.test.as_str());
        core::iter::once(first)
            .chain(self.more.iter().map(|it| (it.file.as_str(), it.test.as_str())))
    }
}

impl Proven {
    /// Returns the proven claims of the project.
    ///
    /// # Errors
    /// If the file is malformed.
    pub fn embedded() -> Result<Proven, ScenarioError> {
        Ok(Proven(read("crates/plait-lab/experiments/proven.toml", PROVEN)?))
    }
}

impl Unrun {
    /// Returns the unjudged claims of the project.
    ///
    /// # Errors
    /// If the file is malformed.
    pub fn embedded() -> Result<Unrun, ScenarioError> {
        Ok(Unrun(read("crates/plait-lab/experiments/unrun.toml", UNRUN)?))
    }
}

/// Returns all experiments, grouped by paper and in the order of its figures. With `directory`, they are the
/// files `DIR/*/*.toml`; otherwise the embedded ones.
///
/// # Errors
/// If a file cannot be read or is invalid. In a directory also if two files have a claim of the same name, or
/// a file is not in the directory of a paper.
pub fn experiments(directory: Option<&Path>) -> Result<Vec<Experiment>, ScenarioError> {
    let mut list = Vec::new();
    match directory {
        None => {
            for (name, text) in EMBEDDED {
                list.push(Experiment::from_toml(
                    &format!("crates/plait-lab/experiments/{name}"),
                    text,
                )?);
            }
        }
        Some(directory) => {
            for file in files(directory)? {
                let text =
                    plait_app::file::settings(&file).map_err(|error| refusal(&file, &error))?;
                list.push(Experiment::from_toml(&file.display().to_string(), &text)?);
            }
            judged_once(&list)?;
        }
    }
    list.sort_by_cached_key(|experiment| {
        let paper = PAPERS.iter().position(|paper| paper.0 == experiment.paper());
        (paper.unwrap_or(PAPERS.len()), natural(&experiment.id))
    });
    Ok(list)
}

pub(super) fn refusal(path: &Path, error: &std::io::Error) -> ScenarioError {
    let place = Place::Argument("--experiments".to_owned());
    ScenarioError::new(&place, Fault::Unreadable, &path.display().to_string(), &unreadable(error))
}

/// Checks that the names of claims are unique.
///
/// # Errors
/// If two claims have the same name: an entry in the list of misses would mean both.
fn judged_once(list: &[Experiment]) -> Result<(), ScenarioError> {
    let mut known: BTreeMap<&str, &Place> = BTreeMap::new();
    for claim in list.iter().flat_map(|it| &it.claims) {
        if let Some(other) = known.insert(&claim.id, &claim.place) {
            let problem = format!("given twice, also at {other}");
            return Err(ScenarioError::new(&claim.place, Fault::Conflict, &claim.id, &problem)
                .allow("a unique name for each claim of all files in the directory"));
        }
    }
    Ok(())
}

/// The lists beside the directories of the papers.
const LISTS: &[&str] = &["kernels.toml", "misses.toml", "open.toml", "proven.toml", "unrun.toml"];

fn files(directory: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
    let entries = |path: &Path| -> Result<Vec<PathBuf>, ScenarioError> {
        let read = std::fs::read_dir(path).map_err(|error| refusal(path, &error))?;
        let mut list: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
        list.sort();
        Ok(list)
    };
    let toml = |path: &PathBuf| path.extension().is_some_and(|it| it == "toml");
    let list = |path: &PathBuf| LISTS.iter().any(|name| path.ends_with(name));
    let (papers, files): (Vec<PathBuf>, Vec<PathBuf>) =
        entries(directory)?.into_iter().partition(|path| path.is_dir());
    if let Some(astray) = files.iter().find(|path| toml(path) && !list(path)) {
        let place = Place::Argument("--experiments".to_owned());
        let (given, problem) =
            (astray.display().to_string(), "it is not in the directory of a paper");
        let name = astray.file_name().unwrap_or_default().to_string_lossy();
        let paper = name.trim_end_matches(".toml").split('-').next().unwrap_or_default();
        let allowed = match directory.ends_with(paper) {
            true => format!("the directory in which {} is", directory.display()),
            false => directory.join(paper).join(&*name).display().to_string(),
        };
        return Err(ScenarioError::new(&place, Fault::Invalid, &given, problem).allow(&allowed));
    }
    let mut found = Vec::new();
    for paper in papers {
        found.extend(entries(&paper)?.into_iter().filter(toml));
    }
    if found.is_empty() {
        let place = Place::Argument("--experiments".to_owned());
        let given = directory.display().to_string();
        return Err(ScenarioError::new(&place, Fault::Missing, &given, "it has no experiments")
            .allow("a directory with files such as ton/ton-fig8.toml"));
    }
    Ok(found)
}

/// Returns a sort key that puts `fig8` before `fig10`.
fn natural(name: &str) -> (String, u64, String) {
    let start = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let digits: String = name[start..].chars().take_while(char::is_ascii_digit).collect();
    let rest = name[start + digits.len()..].to_owned();
    (name[..start].to_owned(), digits.parse().unwrap_or(0), rest)
}

impl ClaimKind {
    /// Returns true if a failing claim of this kind makes the program fail.
    #[must_use]
    pub const fn gates(self) -> bool {
        !matches!(self, ClaimKind::Soft)
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
}
