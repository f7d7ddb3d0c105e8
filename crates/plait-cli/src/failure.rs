//! Failures of commands and their exit codes.

use plait_lab::ScenarioError;
use plait_report::Error;
use std::fmt;
use std::io;
use std::path::Path;

/// Why a command failed. The text is printed to stderr.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A stated expectation or claim does not hold.
    Claim(String),
    /// The arguments or the input are invalid.
    Usage(String),
    /// A privilege or a feature of the kernel is missing.
    #[cfg_attr(not(live), expect(dead_code, reason = "only live commands need a privilege"))]
    Privilege(String),
    /// The peer or the protocol failed: the transfer is incomplete.
    Peer(String),
    /// The command of `plait shell` ended with this exit code. It has reported the cause itself.
    #[cfg(live)]
    Ended(u8),
    /// The user pressed Ctrl-C. Finished results have been written.
    Interrupted,
    /// A bug in this program.
    Internal(String),
}

impl Failure {
    /// Returns the exit code, on which scripts rely.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Claim(_) => 1,
            Failure::Usage(_) => 2,
            Failure::Privilege(_) => 3,
            Failure::Peer(_) => 4,
            Failure::Internal(_) => 5,
            #[cfg(live)]
            Failure::Ended(code) => *code,
            Failure::Interrupted => 130,
        }
    }

    /// Returns the failure for a file that cannot be read. `flag` (or the argument's name in `--help`) named
    /// the file; `allowed` describes valid contents.
    pub(crate) fn unreadable(flag: &str, file: &Path, error: &io::Error, allowed: &str) -> Failure {
        let (file, problem) = (file.display(), plait_lab::unreadable(error));
        Failure::Usage(format!("{flag}: `{file}`: {problem}\n  allowed: {allowed}"))
    }

    /// Returns the failure for a failed write to stdout, for example if the disk is full.
    pub(crate) fn stdout(error: &io::Error) -> Failure {
        Failure::Usage(format!("stdout: {}", plait_lab::unreadable(error)))
    }

    /// Returns the failure for a file that cannot be written; `flag` named it.
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Claim(text)
            | Failure::Usage(text)
            | Failure::Privilege(text)
            | Failure::Peer(text) => f.write_str(&printable(text)),
            #[cfg(live)]
            Failure::Ended(code) => write!(f, "the command ended with exit code {code}"),
            Failure::Interrupted => f.write_str("interrupted"),
            Failure::Internal(text) => {
                write!(f, "internal error, please report it: {}", printable(text))
            }
        }
    }
}

/// Longest line that is printed whole, in characters. A longer line, such as one that quotes long input, is cut
/// in the middle.
const LONGEST_LINE: usize = 4_000;
/// Characters kept at each end of a line that is cut.
const ENDS: usize = 500;

/// Escapes control characters for the terminal and cuts long lines.
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
