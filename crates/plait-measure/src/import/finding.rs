//! The values of a link in a file.

use crate::date::day_of;
use crate::estimate::Origin;
use plait_lab::links::Known;
use std::fmt;

/// Direction of the data that a file is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

/// A file to import.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Its name.
    pub file: &'a str,
    /// Its content.
    pub text: &'a str,
    /// The time of its last change in seconds since 1970. It counts if the content has no date.
    pub changed_s: u64,
    /// Direction of the data, if the file does not tell.
    pub direction: Direction,
}

/// How much a value is worth beside another one of the same key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Worth {
    /// It is unknown.
    Nothing,
    /// It was measured beside something else, such as an RTT during a download.
    Indirect,
    /// The tool measures it directly.
    Direct,
}

/// The values of a link in a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Finding {
    /// The form of the file.
    pub form: &'static str,
    pub(super) values: Vec<(&'static str, Known, Worth)>,
    /// A remark for the reader, such as an unknown rate.
    pub remark: Option<String>,
}

/// Why a file was not imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImportError {
    file: String,
    problem: String,
    remedy: String,
}

impl ImportError {
    pub(super) fn new(input: &Input<'_>, problem: &str, remedy: &str) -> ImportError {
        let (file, problem) = (input.file.to_owned(), problem.to_owned());
        ImportError { file, problem, remedy: remedy.to_owned() }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}\n  {}", self.file, self.problem, self.remedy)
    }
}

impl std::error::Error for ImportError {}

impl Finding {
    pub(super) fn new(form: &'static str) -> Finding {
        Finding { form, values: Vec::new(), remark: None }
    }

    /// Adds a value. One that no link has is unknown, and has a remark.
    pub(super) fn add(&mut self, key: &'static str, known: Known, worth: Worth) {
        let mut worth = worth;
        if known.is_unknown() && worth > Worth::Nothing {
            self.remark(&format!("unknown {key}: {}", known.source));
            worth = Worth::Nothing;
        }
        self.values.push((key, known, worth));
    }

    /// Adds a remark.
    pub(super) fn remark(&mut self, text: &str) {
        self.remark = Some(match self.remark.take() {
            Some(earlier) => format!("{earlier}; {text}"),
            None => text.to_owned(),
        });
    }

    pub(super) fn lacks(&mut self, key: &'static str, why: &str, origin: &Origin) {
        self.add(key, Known::unknown(why, &origin.date), Worth::Nothing);
    }
}

/// Returns the origin of values: the tool, and the day that the file names or of its last change.
pub(super) fn origin(input: &Input<'_>, tool: &str, day: Option<String>) -> Origin {
    let source = format!("{tool}: {}", input.file);
    Origin { source, date: day.unwrap_or_else(|| day_of(input.changed_s)) }
}
