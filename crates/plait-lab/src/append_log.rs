//! A file of lines to which several processes may append at the same time.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A file that is read once, when it is opened, and then only appended to. It may be deleted at any
/// time.
#[derive(Debug)]
pub struct AppendLog {
    path: PathBuf,
    file: Mutex<File>,
}

impl AppendLog {
    /// Opens the file `name` in `directory`, and creates both if necessary. Returns the file and
    /// its lines. An incomplete last line, which a full disk or a killed process leaves, is no
    /// line. It is ended, so that the next line stands by itself.
    ///
    /// # Errors
    /// If the directory or the file cannot be read or written.
    pub fn open(directory: &Path, name: &str) -> io::Result<(AppendLog, Vec<String>)> {
        fs::create_dir_all(directory)?;
        let path = directory.join(name);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let lines = lines.map(str::to_owned).collect();
        let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            file.write_all(b"\n")?;
        }
        Ok((AppendLog { path, file: Mutex::new(file) }, lines))
    }

    /// Appends a line in one call, so that other processes cannot interleave with it.
    ///
    /// # Errors
    /// If the line cannot be written.
    pub fn append(&self, line: &str) -> io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_incomplete_line_is_ended_and_not_read() {
        let directory = std::env::temp_dir().join(format!("plait-log-{}", std::process::id()));
        let (log, lines) = AppendLog::open(&directory, "runs").unwrap();
        assert_eq!(lines, Vec::<String>::new());
        log.append("one").unwrap();
        fs::write(log.path(), b"one\ntw\xff").unwrap();
        let (log, lines) = AppendLog::open(&directory, "runs").unwrap();
        assert_eq!(lines, ["one"]);
        log.append("three").unwrap();
        let (_, lines) = AppendLog::open(&directory, "runs").unwrap();
        assert_eq!(lines, ["one", "tw\u{fffd}", "three"]);
        fs::remove_dir_all(&directory).unwrap();
    }
}
