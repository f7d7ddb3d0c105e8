//! Errors in the text of a workload.

use super::WORKLOADS;
use super::video::{Abr, FileError, PAPER, PATTERNS};
use crate::quantity::QuantityError;
use core::fmt;

/// Maximum number of messages of a stream. A workload with more is refused.
pub(super) const MAX_MESSAGES: u64 = 10_000_000;

/// The error of a workload's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkloadError {
    /// The name of the workload is unknown.
    UnknownName {
        /// The name as given, shortened.
        given: String,
        /// The closest known name.
        nearest: Option<&'static str>,
    },
    /// The text does not match the grammar of its workload.
    Form {
        /// The text as given, shortened.
        given: String,
        /// The grammar.
        grammar: &'static str,
    },
    /// A quantity is invalid.
    Quantity {
        /// Name of the field in the grammar.
        field: &'static str,
        /// The error of the quantity.
        error: QuantityError,
    },
    /// A size or a time is zero.
    Zero {
        /// Name of the field in the grammar.
        field: &'static str,
    },
    /// The name of the clip or player is unknown.
    UnknownVideo {
        /// The name as given, shortened.
        given: String,
        /// The closest known name.
        nearest: Option<&'static str>,
    },
    /// The name of the bit-rate adaptation is unknown.
    UnknownAbr {
        /// The name as given, shortened.
        given: String,
        /// The closest known name.
        nearest: Option<&'static str>,
    },
    /// One option exceeds another option that limits it.
    Exceeds {
        /// Name of the option.
        field: &'static str,
        /// Name of the option that limits it.
        limit: &'static str,
    },
    /// A file that the text names is unusable.
    File(FileError),
    /// A part of the text is invalid.
    Invalid {
        /// The part, the reason, and the values that are allowed.
        problem: String,
    },
    /// A page that the text names cannot be read or used.
    Page {
        /// Name of the page, shortened.
        file: String,
        /// The place in the file, the reason, and how to fix it.
        problem: String,
    },
    /// The workload has more messages or bytes than one connection can carry.
    TooLarge {
        /// The text as given, shortened.
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
    match nearest {
        Some(nearest) => write!(f, ", did you mean `{nearest}`?")?,
        None => f.write_str(";")?,
    }
    f.write_str(" known: ")?;
    for (position, name) in known.into_iter().enumerate() {
        write!(f, "{}{name}", if position == 0 { "" } else { ", " })?;
    }
    Ok(())
}

impl core::error::Error for WorkloadError {}
