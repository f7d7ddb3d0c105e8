//! The flags of commands that report in a table: how it is written, and where to.

use crate::console::{Console, check_writable, deliver};
use crate::failure::Failure;
use std::path::{Path, PathBuf};

/// How a report is written, and where to.
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
    /// Fails where the file cannot be written: nothing long is to be run for it.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        check_writable("--output", self.output.as_deref())
    }

    /// Who will read it: in a file there is no colour.
    pub(crate) fn reader(&self, console: Console) -> Console {
        let to_file = self.output.as_deref().is_some_and(|file| file != Path::new("/dev/stdout"));
        if to_file { console.plain() } else { console }
    }

    /// Whether people read it on stdout.
    pub(crate) fn is_plain(&self) -> bool {
        !self.json && self.format.is_none() && self.output.is_none()
    }

    /// Writes the text to the file or to stdout.
    pub(crate) fn deliver(&self, text: &str) -> Result<(), Failure> {
        deliver(text, self.output.as_deref())
    }
}
