//! A file with the finished cells of a random scoreboard: each line is a checksum, and a cell as JSON.

use crate::failure::Failure;
use plait_lab::scoreboard::random::Played;
use plait_lab::{AppendLog, fingerprint};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Mutex;

/// The cells of an earlier call with the same options and the same program.
pub(super) struct FinishedCells {
    known: BTreeMap<u32, Played>,
    log: AppendLog,
    /// The first error of a write.
    error: Mutex<Option<io::Error>>,
}

impl FinishedCells {
    /// Opens the file for `key`, which names the options and the program, in `directory`. Lines
    /// that are no cell, or were changed, are ignored.
    pub(super) fn open(directory: &Path, key: &str) -> io::Result<FinishedCells> {
        let name = format!("board-{}.txt", fingerprint(key.as_bytes()));
        let (log, lines) = AppendLog::open(directory, &name)?;
        let cell = |line: &String| serde_json::from_str::<Played>(line).ok();
        let known = lines.iter().filter_map(cell).map(|cell| (cell.number, cell)).collect();
        Ok(FinishedCells { known, log, error: Mutex::new(None) })
    }

    pub(super) fn find(&self, number: u32) -> Option<Played> {
        self.known.get(&number).cloned()
    }

    /// Adds a cell. An error is kept for [`FinishedCells::check`].
    pub(super) fn add(&self, cell: &Played) {
        let line = serde_json::to_string(cell).map_err(io::Error::other);
        let written = line.and_then(|line| self.log.append(&line));
        if let (Err(error), Ok(mut first)) = (written, self.error.lock()) {
            first.get_or_insert(error);
        }
    }

    /// Returns a failure if a cell could not be written.
    pub(super) fn check(self) -> Result<(), Failure> {
        match self.error.into_inner() {
            Ok(Some(error)) => Err(Failure::unwritable("--cache", self.log.path(), &error)),
            _ => Ok(()),
        }
    }
}
