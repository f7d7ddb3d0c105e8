//! Why a report was not written.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Contents {
    /// The packets of a run or of a host (pcapng).
    Capture,
    /// The events of a run, to be written.
    Events,
    /// Pages for a browser.
    Pages,
    /// What an end sees and decides (qlog).
    Qlog,
    /// The events of a run, to be read back.
    RecordedRun,
}

impl Contents {
    /// The argument of `plait` that names the file.
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

/// Why a report was not written.
#[derive(Debug)]
pub enum Error {
    /// A file cannot be written or read.
    File {
        /// What it holds.
        contents: Contents,
        /// Its name.
        file: PathBuf,
        /// What is wrong with it, and what is allowed.
        problem: String,
    },
    /// An input has other contents than it should have, in words.
    Refused(String),
    /// A fault of this program, in words.
    Internal(String),
}

impl Error {
    /// A file that cannot be written.
    #[must_use]
    pub fn unwritable(contents: Contents, file: &Path, error: &io::Error) -> Error {
        Error::File { contents, file: file.to_owned(), problem: unwritable(file, error) }
    }
}

/// Why a file cannot be written, and what would help.
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
            format!("`{}` is no directory", parent.display())
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
