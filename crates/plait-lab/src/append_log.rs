//! A file of lines to which several processes may append at the same time. Each line begins with its checksum.

use sha2::{Digest, Sha256};
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
    /// its lines. A line that differs from what was written is left out. An incomplete last line,
    /// which a full disk or a killed process leaves, is ended, so that the next line stands by
    /// itself.
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
        let lines = text.lines().filter_map(unsealed).map(str::to_owned).collect();
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
        file.write_all(format!("{}\n", sealed(line)).as_bytes())
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Returns a line as the file has it: after its checksum.
#[must_use]
pub fn sealed(line: &str) -> String {
    format!("{} {line}", fingerprint(line.as_bytes()))
}

/// Returns the line that the file has as `sealed`. `None` if one of its bytes was changed.
#[must_use]
pub fn unsealed(sealed: &str) -> Option<&str> {
    let (checksum, line) = sealed.split_once(' ')?;
    (fingerprint(line.as_bytes()) == checksum).then_some(line)
}

/// Returns a short hash of `bytes`.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
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
        let mut bytes = fs::read(log.path()).unwrap();
        bytes.extend(b"0123456789abcdef tw\xff");
        fs::write(log.path(), bytes).unwrap();
        let (log, lines) = AppendLog::open(&directory, "runs").unwrap();
        assert_eq!(lines, ["one"]);
        log.append("three").unwrap();
        let (_, lines) = AppendLog::open(&directory, "runs").unwrap();
        assert_eq!(lines, ["one", "three"]);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_line_with_a_changed_byte_is_none() {
        let line = sealed("key completion_ms=12 ok");
        assert_eq!(unsealed(&line), Some("key completion_ms=12 ok"));
        for at in 0..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(unsealed(&changed), None, "{changed}");
        }
        assert_eq!(unsealed(&line[..line.len() - 1]), None);
        assert_eq!(unsealed(""), None);
    }
}
