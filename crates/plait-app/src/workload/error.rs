//! Why the text of a workload is refused.

use super::WORKLOADS;
use super::video::{Abr, FileError, PAPER, PATTERNS};
use crate::quantity::QuantityError;
use core::fmt;

/// The most messages that a stream may have.
pub(super) const MAX_MESSAGES: u64 = 10_000_000;

/// The error of a workload's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkloadError {
    /// There is no such workload.
    UnknownName {
        /// As given, shortened.
        given: String,
        /// The one that was probably meant.
        nearest: Option<&'static str>,
    },
    /// It does not have the form of its workload.
    Form {
        /// As given, shortened.
        given: String,
        /// The form it should have.
        grammar: &'static str,
    },
    /// One of its quantities was refused.
    Quantity {
        /// Which, as the grammar calls it.
        field: &'static str,
        /// Why.
        error: QuantityError,
    },
    /// A size or a time is zero.
    Zero {
        /// Which, as the grammar calls it.
        field: &'static str,
    },
    /// There is no such clip or player.
    UnknownVideo {
        /// As given, shortened.
        given: String,
        /// The one that was probably meant.
        nearest: Option<&'static str>,
    },
    /// There is no such adaptation.
    UnknownAbr {
        /// As given, shortened.
        given: String,
        /// The one that was probably meant.
        nearest: Option<&'static str>,
    },
    /// One option is above another that limits it.
    Exceeds {
        /// Which.
        field: &'static str,
        /// What limits it.
        limit: &'static str,
    },
    /// A file that it names is of no use.
    File(FileError),
    /// A part of it cannot be taken.
    Invalid {
        /// Which, why, and what may stand there.
        problem: String,
    },
    /// A page that it names cannot be read or taken.
    Page {
        /// Its name, shortened.
        file: String,
        /// Where in it, why, and what to do about it.
        problem: String,
    },
    /// It amounts to more messages or bytes than one connection carries.
    TooLarge {
        /// As given, shortened.
        given: String,
    },
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WorkloadError::UnknownName { given, nearest } => {
                unknown(f, "workload", given, *nearest, WORKLOADS.iter().map(|entry| entry.name))
            }
            WorkloadError::Form { given, grammar } => {
                write!(f, "workload `{given}` does not have the form `{grammar}`")
            }
            WorkloadError::Quantity { field, error } => write!(f, "{field}: {error}"),
            WorkloadError::Invalid { problem } => f.write_str(problem),
            WorkloadError::Page { file, problem } => write!(f, "{file}: {problem}"),
            WorkloadError::Zero { field } => write!(f, "{field} must be above zero"),
            WorkloadError::UnknownVideo { given, nearest } => {
                let patterns = PATTERNS.iter().map(|pattern| pattern.name);
                unknown(f, "video", given, *nearest, [PAPER].into_iter().chain(patterns))?;
                f.write_str(", or the file of a DASH manifest or size list")
            }
            WorkloadError::UnknownAbr { given, nearest } => {
                unknown(f, "abr", given, *nearest, Abr::ALL.map(Abr::name))
            }
            WorkloadError::Exceeds { field, limit } => write!(f, "{field} is above {limit}"),
            WorkloadError::File(error) => error.fmt(f),
            WorkloadError::TooLarge { given } => write!(
                f,
                "workload `{given}` is too large: at most {MAX_MESSAGES} messages and 2^62 bytes"
            ),
        }
    }
}

fn unknown(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    given: &str,
    nearest: Option<&str>,
    known: impl IntoIterator<Item = &'static str>,
) -> fmt::Result {
    write!(f, "unknown {what} `{given}`")?;
    if let Some(nearest) = nearest {
        write!(f, ", did you mean `{nearest}`?")?;
    }
    f.write_str(" known: ")?;
    for (position, name) in known.into_iter().enumerate() {
        write!(f, "{}{name}", if position == 0 { "" } else { ", " })?;
    }
    Ok(())
}

impl core::error::Error for WorkloadError {}
