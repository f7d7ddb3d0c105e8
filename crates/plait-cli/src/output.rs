//! Flags of the commands that report in a table: its format and its file.

use crate::console::{Console, check_unread, check_writable, deliver};
use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// Format and destination of a report.
#[derive(clap::Args, Debug)]
pub(crate) struct Output {
    /// Write one JSON document (see `plait schema`)
    #[arg(long, conflicts_with = "format")]
    pub(crate) json: bool,
    /// Write the table in another format
    #[arg(long, value_enum)]
    pub(crate) format: Option<TableFormat>,
    /// Write to this file in place of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Formats of tables.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TableFormat {
    /// Comma-separated values with a header
    Csv,
    /// A Markdown table
    Markdown,
}

impl Output {
    /// Fails if the file cannot be written. Called before long runs start.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        check_writable("--output", self.output.as_deref())
    }

    /// Fails if the file cannot be written, or is read too.
    pub(crate) fn check_beside<'a>(
        &self,
        read: impl Iterator<Item = &'a Path>,
    ) -> Result<(), Failure> {
        check_unread("--output", self.output.as_deref(), read)?;
        self.check()
    }

    /// Returns the console to write for. Files get no colour.
    pub(crate) fn reader(&self, console: Console) -> Console {
        let to_file = self.output.as_deref().is_some_and(|file| file != Path::new("/dev/stdout"));
        if to_file { console.plain() } else { console }
    }

    /// Returns true if the report goes to stdout as text for people.
    pub(crate) fn is_plain(&self) -> bool {
        !self.json && self.format.is_none() && self.output.is_none()
    }

    /// Writes the text to the file or to stdout.
    pub(crate) fn deliver(&self, text: &str) -> Result<(), Failure> {
        deliver(text, self.output.as_deref())
    }
}
