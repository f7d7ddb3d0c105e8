//! A file with the finished cells of a random scoreboard, one JSON line each.

use crate::failure::Failure;
use plait_lab::experiment::fingerprint;
use plait_lab::scoreboard::random::Played;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The cells of an earlier call with the same options and the same program.
pub(super) struct Kept {
    known: BTreeMap<u32, Played>,
    file: Mutex<File>,
    path: PathBuf,
    /// The first error of a write.
    broken: Mutex<Option<io::Error>>,
}

impl Kept {
    /// Opens the file for `key`, which names the options and the program, in `directory`. Incomplete
    /// lines, which a full disk or a killed process leaves, are ignored.
    pub(super) fn open(directory: &Path, key: &str) -> io::Result<Kept> {
        fs::create_dir_all(directory)?;
        let path = directory.join(format!("board-{}.jsonl", fingerprint(key.as_bytes())));
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let cell = |line: &str| serde_json::from_str::<Played>(line).ok();
        let known = text.lines().filter_map(cell).map(|cell| (cell.number, cell)).collect();
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok(Kept { known, file: Mutex::new(file), path, broken: Mutex::new(None) })
    }

    pub(super) fn find(&self, number: u32) -> Option<Played> {
        self.known.get(&number).cloned()
    }

    /// Adds a cell. An error is kept for [`Kept::check`].
    pub(super) fn keep(&self, cell: &Played) {
        let line = serde_json::to_string(cell).map(|line| line + "\n").map_err(io::Error::other);
        let written = line.and_then(|line| match self.file.lock() {
            Ok(mut file) => file.write_all(line.as_bytes()),
            Err(_) => Ok(()),
        });
        if let (Err(error), Ok(mut broken)) = (written, self.broken.lock()) {
            broken.get_or_insert(error);
        }
    }

    /// Returns a failure if a cell could not be written.
    pub(super) fn check(self) -> Result<(), Failure> {
        match self.broken.into_inner() {
            Ok(Some(error)) => Err(Failure::unwritable("--cache", &self.path, &error)),
            _ => Ok(()),
        }
    }
}
