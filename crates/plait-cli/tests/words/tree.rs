//! The texts of the repository.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A file with its text.
pub(crate) struct File {
    /// Path from the root of the repository, with `/` between names.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Directories at the root that have sources, pages or scripts.
const DIRECTORIES: [&str; 8] =
    [".ci", "contrib", "crates", "docs", "examples", "fuzz", "tests", "web"];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the paths of all files and directories, except what a build makes.
pub(crate) fn paths() -> BTreeSet<String> {
    let root = root();
    let mut paths = BTreeSet::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(root.join(&directory)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            if entry.path().is_dir() {
                let known = directory.is_empty() && DIRECTORIES.contains(&path.as_str());
                let inner = !directory.is_empty() && !path.ends_with("/target");
                if !known && !inner {
                    continue;
                }
                directories.push(path.clone());
            }
            paths.insert(path);
        }
    }
    paths
}

/// Returns the files with the extension `extension` (`rs`, `md`), in the order of their paths.
pub(crate) fn files(extension: &str) -> Vec<File> {
    let ending = format!(".{extension}");
    let found = paths().into_iter().filter(|path| path.ends_with(&ending));
    found.map(|path| File { text: fs::read_to_string(root().join(&path)).unwrap(), path }).collect()
}
