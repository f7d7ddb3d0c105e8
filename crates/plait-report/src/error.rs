//! Errors of writing a report.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The contents of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// The packets of a run or of a host (pcapng).
    Capture,
    /// The events of a run, to be written.
    Events,
    /// Pages for a browser.
    Pages,
    /// The events and decisions of one end (qlog).
    Qlog,
    /// The events of a run, to be read back.
    RecordedRun,
}

impl Contents {
    /// Returns the argument of `plait` that names the file.
    #[must_use]
    pub const fn argument(self) -> &'static str {
        match self {
            Contents::Capture => "--pcap",
            Contents::Events => "--events",
            Contents::Pages => "--html",
            Contents::Qlog => "--qlog",
            Contents::RecordedRun => "RUN",
        }
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Contents::Capture => "capture",
            Contents::Events => "events",
            Contents::Pages => "pages",
            Contents::Qlog => "qlog",
            Contents::RecordedRun => "recorded run",
        })
    }
}

/// The reason why a report was not written.
#[derive(Debug)]
pub enum Error {
    /// A file cannot be written or read.
    File {
        /// Its contents.
        contents: Contents,
        /// Its name.
        file: PathBuf,
        /// The problem, and the allowed values.
        problem: String,
    },
    /// An input has unexpected contents; the text describes them.
    Refused(String),
    /// An internal error of this program, with a description.
    Internal(String),
}

impl Error {
    /// Creates the error of a file that cannot be written.
    #[must_use]
    pub fn unwritable(contents: Contents, file: &Path, error: &io::Error) -> Error {
        Error::File { contents, file: file.to_owned(), problem: unwritable(file, error) }
    }
}

/// Returns the reason why a file cannot be written, and a remedy.
#[must_use]
pub fn unwritable(file: &Path, error: &io::Error) -> String {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
    match (error.kind(), parent) {
        (ErrorKind::NotFound, Some(parent)) if !parent.exists() => {
            let parent = parent.display();
            format!("there is no directory `{parent}`\n  make it first: mkdir -p '{parent}'")
        }
        (ErrorKind::NotFound, _) => {
            "no file can be made there\n  allowed: a file in a directory that can be written"
                .to_owned()
        }
        (ErrorKind::NotADirectory, Some(parent)) => {
            format!("`{}` is not a directory", parent.display())
        }
        (ErrorKind::IsADirectory, _) => "it is a directory\n  allowed: a file".to_owned(),
        (ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem, _) => {
            "it may not be written".to_owned()
        }
        _ => plait_lab::unreadable(error),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::File { contents, file, problem } => {
                write!(f, "{contents}: `{}`: {problem}", file.display())
            }
            Error::Refused(text) | Error::Internal(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}
