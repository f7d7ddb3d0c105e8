//! The packages: what can be checked without building them. `make package` builds them, and tests/package runs them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod dashboard;
mod debian;
mod parts;
mod recipe;

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the text of a file of the repository.
fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}
