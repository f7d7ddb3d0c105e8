//! Properties of stdout and stderr: terminal or pipe, width, colour.

use crate::failure::Failure;
use anstream::{AutoStream, ColorChoice};
use plait_report::render::fold;
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

/// Width in columns if stdout is no terminal.
const PLAIN_WIDTH: usize = 80;

/// How text is formatted for stdout and stderr.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    /// Width in columns.
    pub(crate) width: usize,
    /// Bold and colour may be used on stdout.
    pub(crate) colour: bool,
    /// Progress may be drawn on stderr.
    pub(crate) animate: bool,
    /// Highest level of remarks on stderr: 0 with `-q`, otherwise 1 plus 1 for each `-v`.
    pub(crate) chatter: u8,
}

impl Console {
    /// Reads the terminal and `NO_COLOR`, `CLICOLOR`, `TERM` and `COLUMNS`.
    pub(crate) fn detect(quiet: bool, verbose: u8) -> Console {
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let terminal = || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0));
        let width = columns
            .or_else(|| if io::stdout().is_terminal() { terminal() } else { None })
            .unwrap_or(PLAIN_WIDTH);
        Console {
            width: width.clamp(40, 400),
            colour: AutoStream::choice(&io::stdout()) != ColorChoice::Never,
            animate: !quiet && io::stderr().is_terminal(),
            chatter: if quiet { 0 } else { verbose.saturating_add(1) },
        }
    }

    /// Writes a remark to stderr. Level 1 is suppressed by `-q`, level 2 needs `-v`.
    pub(crate) fn remark(self, level: u8, text: &str) {
        if self.chatter >= level {
            remark(&text);
        }
    }

    /// Returns the same console without colour, for files.
    pub(crate) fn plain(self) -> Console {
        Console { colour: false, ..self }
    }
}

/// Writes a line to stderr, or to the log if this is a server. Errors are ignored: a closed stderr must not end
/// a server.
pub(crate) fn remark(text: &dyn Display) {
    #[cfg(live)]
    if crate::log::line(text) {
        return;
    }
    let _ = writeln!(io::stderr(), "{text}");
}

/// Writes the failure that ends the command to stderr, folded to the width of the terminal.
pub(crate) fn complain(failure: &Failure) {
    let text = format!("plait: {failure}");
    let terminal = io::stderr().is_terminal().then(terminal_size::terminal_size).flatten();
    match terminal {
        Some((width, _)) => remark(&fold(&text, usize::from(width.0).max(40)).trim_end()),
        None => remark(&text),
    }
}

/// Writes `text` to the file that `flag` names.
pub(crate) fn write(flag: &str, file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text).map_err(|error| Failure::unwritable(flag, file, &error))
}

/// Fails if the file that `flag` names cannot be written. The file is not changed. A long command calls this
/// first, so that it does not fail at its end. Pipes are not opened: their reader would take the close as the
/// end of the input.
pub(crate) fn check_writable(flag: &str, file: Option<&Path>) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    let outcome = match fs::metadata(file) {
        Ok(known) if known.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(known) if known.is_file() => fs::OpenOptions::new().append(true).open(file).map(drop),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            fs::File::create_new(file).and_then(|_| fs::remove_file(file))
        }
        Err(error) => Err(error),
    };
    outcome.map_err(|error| Failure::unwritable(flag, file, &error))
}

/// Returns true if both names lead to one file. Names of files that do not exist are compared as they are.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => one == other,
    }
}

/// Fails if a file would be written and read.
pub(crate) fn check_unread<'a>(
    flag: &str,
    written: Option<&Path>,
    mut read: impl Iterator<Item = &'a Path>,
) -> Result<(), Failure> {
    match written.filter(|written| read.any(|it| is_same_file(it, written))) {
        Some(file) => Err(Failure::Usage(format!(
            "{flag}: `{}`: it is read, and would be replaced\n  give another one",
            file.display()
        ))),
        None => Ok(()),
    }
}

/// Writes a document to the file of `--output`, or to stdout. A closed pipe (`| head`) is no error.
pub(crate) fn deliver(text: &str, output: Option<&Path>) -> Result<(), Failure> {
    match output {
        Some(path) => write("--output", path, text),
        None => match io::stdout().lock().write_all(text.as_bytes()) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::stdout(&error)),
            _ => Ok(()),
        },
    }
}

/// Returns a value as one JSON document with a final newline.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| Failure::Internal(error.to_string()))
}
