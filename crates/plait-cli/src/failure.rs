//! How a command ends when it does not end well, and the exit code of each way.

use plait_lab::ScenarioError;
use plait_report::Error;
use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do what it was asked. The text goes to stderr as it is.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A stated expectation or claim does not hold.
    Claim(String),
    /// The arguments or the input cannot be taken.
    Usage(String),
    /// A privilege or a feature of the kernel is missing.
    Privilege(String),
    /// The peer or the protocol failed: what was asked for did not get through.
    Peer(String),
    /// Ctrl-C; what was finished has been written.
    Interrupted,
    /// A fault of this program.
    Internal(String),
}

impl Failure {
    /// The exit code that scripts rely on.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Claim(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Privilege(_) => 3,
            Failure::Peer(_) => 4,
            Failure::Internal(_) => 5,
            Failure::Interrupted => 130,
        }
    }

    /// A file that cannot be read; `flag` (or the word of `--help`) named it, `allowed` is what it
    /// is to hold.
    pub(crate) fn unreadable(flag: &str, file: &Path, error: &io::Error, allowed: &str) -> Failure {
        let (file, problem) = (file.display(), plait_lab::unreadable(error));
        Failure::Usage(format!("{flag}: `{file}`: {problem}\n  allowed: {allowed}"))
    }

    /// Standard output that takes no more: a full disk behind it.
    pub(crate) fn stdout(error: &io::Error) -> Failure {
        Failure::Usage(format!("stdout: {}", plait_lab::unreadable(error)))
    }

    /// A file that cannot be written; `flag` named it.
    pub(crate) fn unwritable(flag: &str, file: &Path, error: &io::Error) -> Failure {
        let (file, problem) = (file.display(), plait_report::unwritable(file, error));
        Failure::Usage(format!("{flag}: `{file}`: {problem}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::File { contents, file, problem } => {
                let argument = contents.argument();
                Failure::Usage(format!("{argument}: `{}`: {problem}", file.display()))
            }
            Error::Refused(text) => Failure::Usage(text),
            Error::Internal(text) => Failure::Internal(text),
        }
    }
}

impl From<ScenarioError> for Failure {
    fn from(error: ScenarioError) -> Failure {
        Failure::Usage(error.to_string())
    }
}

impl From<&Failure> for ExitCode {
    fn from(failure: &Failure) -> ExitCode {
        ExitCode::from(failure.code())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Claim(text)
            | Failure::Usage(text)
            | Failure::Privilege(text)
            | Failure::Peer(text) => f.write_str(&printable(text)),
            Failure::Interrupted => f.write_str("interrupted"),
            Failure::Internal(text) => {
                write!(f, "internal error, please report it: {}", printable(text))
            }
        }
    }
}

/// Characters of a line that are printed. A longer line quotes input of any length, and is cut in the
/// middle.
const LONGEST_LINE: usize = 4_000;
/// Characters that are left at both ends of such a line.
const ENDS: usize = 500;

/// The text for a terminal: control characters of quoted input are escaped, and long lines are cut.
fn printable(text: &str) -> String {
    let line = |line: &str| -> String {
        let length = line.chars().count();
        let omitted = if length > LONGEST_LINE { ENDS..length - ENDS } else { 0..0 };
        let mut shown = String::new();
        for (at, c) in line.chars().enumerate() {
            if at == omitted.start && !omitted.is_empty() {
                shown.push_str(&format!(" [... {} characters ...] ", omitted.len()));
            }
            match c {
                _ if omitted.contains(&at) => {}
                _ if c.is_control() && c != '\t' => shown.extend(c.escape_default()),
                _ => shown.push(c),
            }
        }
        shown
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_input_is_cut_and_escaped() {
        let usual = "--path: `a:rtt=1`: `1` has no unit\n  allowed: ms, s";
        assert_eq!(Failure::Usage(usual.to_owned()).to_string(), usual);
        let escaped = Failure::Usage("unknown `\u{1b}[31m\u{7}ä`".to_owned()).to_string();
        assert_eq!(escaped, "unknown `\\u{1b}[31m\\u{7}ä`");
        let long =
            format!("FILE:1:1: unknown `{}`; did you mean `a`?\n  allowed: a", "x".repeat(9_000));
        let cut = Failure::Usage(long.clone()).to_string();
        assert_eq!(cut.lines().count(), 2);
        assert!(cut.contains(" [... 8039 characters ...] "), "{cut}");
        assert!(cut.starts_with("FILE:1:1: unknown `xxx") && cut.ends_with("`a`?\n  allowed: a"));
    }
}
