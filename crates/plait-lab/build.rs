//! Generates the list of the files of `experiments/`, so that the program contains them. Sets `PLAIT_SOURCES`, a
//! hash of the sources that a run depends on.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The crates whose code decides the outcome of a run.
const CRATES: [&str; 11] =
    ["app", "base", "cc", "core", "engine", "lab", "link", "params", "sched", "sim", "wire"];

fn main() -> io::Result<()> {
    println!("cargo::rustc-env=PLAIT_SOURCES={:016x}", sources()?);
    // Relative paths are the same in a copy of the sources, so that one build can use the crate of the other.
    let root = Path::new("experiments");
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files: Vec<PathBuf> = Vec::new();
    for paper in fs::read_dir(root)? {
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

/// Returns a hash (FNV-1a) of all source files. It is the same in every build of the same sources. A crate that does
/// not lie beside this one is left out.
fn sources() -> io::Result<u64> {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for name in CRATES {
        let root = Path::new("..").join(format!("plait-{name}"));
        if !root.join("src").is_dir() {
            continue;
        }
        println!("cargo::rerun-if-changed={}", root.join("src").display());
        let mut files = Vec::new();
        list(&root.join("src"), &mut files)?;
        files.sort();
        for file in files {
            add(file.as_os_str().as_encoded_bytes());
            add(&fs::read(&file)?);
        }
    }
    add(&[u8::from(env::var_os("CARGO_FEATURE_PLANTED_BUGS").is_some())]);
    Ok(hash)
}

/// Adds all files below a directory.
fn list(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
