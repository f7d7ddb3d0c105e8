//! Generates the list of the files of `experiments/`, so that the program contains them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("experiments");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for paper in fs::read_dir(&root)? {
        let paper = paper?.path();
        if !paper.is_dir() {
            continue;
        }
        println!("cargo::rerun-if-changed={}", paper.display());
        for file in fs::read_dir(&paper)? {
            let file = file?.path();
            if file.extension().is_some_and(|it| it == "toml") {
                files.push(file);
            }
        }
    }
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
        let file = file.canonicalize()?;
        let names: Vec<_> = file.iter().rev().take(2).map(|name| name.to_string_lossy()).collect();
        if let [name, paper] = names.as_slice() {
            let _ =
                writeln!(list, "    ({:?}, include_str!({:?})),", format!("{paper}/{name}"), file);
        }
    }
    list.push(']');
    let out = Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("experiments.rs");
    fs::write(out, list)
}
