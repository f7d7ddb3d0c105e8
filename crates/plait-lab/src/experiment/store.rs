//! A store of outcomes, addressed by everything that a run depends on. No experiment repeats a run that is
//! stored. There is one file for each version of the program, with one line a run. The file may be deleted at
//! any time.

use super::plan::Planned;
use super::results::RunRecord;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The stored runs.
#[derive(Debug)]
pub struct Store {
    version: String,
    known: Mutex<BTreeMap<String, RunRecord>>,
    file: Option<(PathBuf, Mutex<File>)>,
}

impl Store {
    /// Returns a store without a file, for runs of the program `version`.
    #[must_use]
    pub fn in_memory(version: &str) -> Store {
        Store { version: version.to_owned(), known: Mutex::default(), file: None }
    }

    /// Opens a store in a directory, and creates the directory if necessary. Incomplete lines, which a full
    /// disk or a killed process leaves, are ignored.
    ///
    /// # Errors
    /// If the directory or its file cannot be read or written.
    pub fn in_directory(directory: &Path, version: &str) -> io::Result<Store> {
        fs::create_dir_all(directory)?;
        let name = hex(&Sha256::digest(version), 8);
        let path = directory.join(format!("runs-{name}.txt"));
        let mut known = BTreeMap::new();
        let mut whole = true;
        match fs::read(&path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                whole = text.is_empty() || text.ends_with('\n');
                known.extend(text.split_inclusive('\n').filter_map(|line| {
                    let (key, rest) = line.strip_suffix('\n')?.split_once(' ')?;
                    Some((key.to_owned(), RunRecord::from_line(rest)?))
                }));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        if !whole {
            file.write_all(b"\n")?;
        }
        Ok(Store {
            version: version.to_owned(),
            known: Mutex::new(known),
            file: Some((path, Mutex::new(file))),
        })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
    }

    /// Returns the key of a run, from its cell, its seed and the program.
    pub(super) fn key(&self, cell: &Planned, seed: u64) -> String {
        cell.address.of_run(seed, &self.version)
    }

    pub(super) fn find(&self, key: &str) -> Option<RunRecord> {
        self.known.lock().ok()?.get(key).cloned()
    }

    /// Stores a run; returns an error if it cannot be written.
    pub(super) fn keep(&self, key: &str, record: &RunRecord) -> io::Result<()> {
        if let Ok(mut known) = self.known.lock() {
            known.insert(key.to_owned(), record.clone());
        }
        let Some((_, file)) = &self.file else { return Ok(()) };
        let line = format!("{key} {}\n", record.to_line());
        // A line is written in one call, so that other processes cannot interleave with it.
        file.lock().map_or(Ok(()), |mut file| file.write_all(line.as_bytes()))
    }
}

fn hex(bytes: &[u8], count: usize) -> String {
    bytes.iter().take(count).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns a short hash of `bytes`. For the program's file, it separates the runs of different builds.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes), 8)
}
