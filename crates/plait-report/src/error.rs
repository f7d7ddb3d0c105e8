//! Why a report was not written.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Why a report was not written, in words.
#[derive(Debug)]
pub enum Error {
    /// A file cannot be written or read, or has other contents than it should have.
    Refused(String),
    /// A fault of this program.
    Internal(String),
}

impl Error {
    /// A file that cannot be written; `flag` named it.
    #[must_use]
    pub fn unwritable(flag: &str, file: &Path, error: &io::Error) -> Error {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let problem = match (error.kind(), parent) {
            (ErrorKind::NotFound, Some(parent)) if !parent.exists() => {
                let parent = parent.display();
                format!("there is no directory `{parent}`\n  make it first: mkdir -p '{parent}'")
            }
            (ErrorKind::NotFound, _) => {
                "no file can be made there\n  allowed: a file in a directory that can be written"
                    .to_owned()
            }
            (ErrorKind::NotADirectory, Some(parent)) => {
                format!("`{}` is no directory", parent.display())
            }
            (ErrorKind::IsADirectory, _) => "it is a directory\n  allowed: a file".to_owned(),
            (ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem, _) => {
                "it may not be written".to_owned()
            }
            _ => plait_lab::unreadable(error),
        };
        Error::Refused(format!("{flag}: `{}`: {problem}", file.display()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Refused(text) | Error::Internal(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}
