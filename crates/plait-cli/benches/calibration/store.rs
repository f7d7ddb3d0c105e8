//! Files with one line of JSON for each finished part of a link.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A file of results by the name of the link.
pub(super) struct Store {
    path: PathBuf,
    known: Mutex<BTreeMap<String, Value>>,
}

impl Store {
    /// Reads the results that are there. Of several lines with one name, the last one counts.
    pub(super) fn open(dir: &Path, name: &str) -> Result<Store, String> {
        fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let path = dir.join(name);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let read = |line: &str| {
            let value: Value = serde_json::from_str(line).ok()?;
            Some((value["name"].as_str()?.to_owned(), value))
        };
        let known = Mutex::new(text.lines().filter_map(read).collect());
        Ok(Store { path, known })
    }

    /// Returns the result of a link.
    pub(super) fn get(&self, name: &str) -> Option<Value> {
        self.known.lock().ok()?.get(name).cloned()
    }

    /// Adds the result of a link.
    pub(super) fn add(&self, name: &str, value: Value) -> Result<(), String> {
        let mut known = self.known.lock().map_err(|error| error.to_string())?;
        let bad = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let mut file = File::options().create(true).append(true).open(&self.path).map_err(bad)?;
        // One write, so that an end of the process leaves whole lines.
        file.write_all(format!("{value}\n").as_bytes()).map_err(bad)?;
        known.insert(name.to_owned(), value);
        Ok(())
    }
}
