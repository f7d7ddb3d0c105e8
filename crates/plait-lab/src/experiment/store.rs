//! A store of outcomes, addressed by everything that a run depends on. No experiment repeats a run that is
//! stored. There is one file for each version of the program, with one line a run. The file may be deleted at
//! any time.

use super::plan::Planned;
use super::results::RunRecord;
use crate::append_log::{AppendLog, fingerprint};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Mutex;

/// The stored runs.
#[derive(Debug)]
pub struct Store {
    version: String,
    known: Mutex<BTreeMap<String, RunRecord>>,
    log: Option<AppendLog>,
}

impl Store {
    /// Returns a store without a file, for runs of the program `version`.
    #[must_use]
    pub fn in_memory(version: &str) -> Store {
        Store { version: version.to_owned(), known: Mutex::default(), log: None }
    }

    /// Opens a store in a directory, and creates the directory if necessary. Lines that are no run,
    /// or were changed, are ignored.
    ///
    /// # Errors
    /// If the directory or its file cannot be read or written.
    pub fn in_directory(directory: &Path, version: &str) -> io::Result<Store> {
        let (log, lines) = AppendLog::open(directory, &file_name(version))?;
        let runs = lines.iter().filter_map(|line| {
            let (key, rest) = line.split_once(' ')?;
            Some((key.to_owned(), RunRecord::from_line(rest)?))
        });
        let known = Mutex::new(runs.collect());
        Ok(Store { version: version.to_owned(), known, log: Some(log) })
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.log.as_ref().map(AppendLog::path)
    }

    /// Returns the key of a run, from its cell, its seed and the program.
    pub(super) fn key(&self, cell: &Planned, seed: u64) -> String {
        cell.address.of_run(seed, &self.version)
    }

    pub(super) fn find(&self, key: &str) -> Option<RunRecord> {
        self.known.lock().ok()?.get(key).cloned()
    }

    /// Stores a run; returns an error if it cannot be written. The file gets no runs of classes, for a key does not tell
    /// what a class does.
    pub(super) fn keep(&self, cell: &Planned, key: &str, record: &RunRecord) -> io::Result<()> {
        if let Ok(mut known) = self.known.lock() {
            known.insert(key.to_owned(), record.clone());
        }
        let Some(log) = self.log.as_ref().filter(|_| cell.cell.class().is_none()) else {
            return Ok(());
        };
        log.append(&format!("{key} {}", record.to_line()))
    }
}

/// Hash of the sources that a run depends on. All builds of the same sources have the same.
pub const SOURCES: &str = env!("PLAIT_SOURCES");

/// Returns the name of the file of the runs of the program `version`.
#[must_use]
pub fn file_name(version: &str) -> String {
    format!("runs-{}.txt", fingerprint(version.as_bytes()))
}
