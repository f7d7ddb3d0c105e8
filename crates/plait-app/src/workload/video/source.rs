//! Where a clip comes from.

use core::fmt;

/// What is wrong with a file that a workload names: where, what, and what would help.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileError {
    /// The file, as named.
    pub file: String,
    /// Line and column from 1, where there is one place.
    pub place: Option<(u32, u32)>,
    /// What is wrong there.
    pub problem: String,
    /// What to do about it.
    pub remedy: String,
}

impl FileError {
    /// An error at one place.
    pub(super) fn at(file: &str, row: u32, column: u32, problem: &str, remedy: &str) -> FileError {
        FileError { place: Some((row, column)), ..FileError::of(file, problem, remedy) }
    }

    /// An error of the file as a whole.
    pub(super) fn of(file: &str, problem: &str, remedy: &str) -> FileError {
        let (problem, remedy) = (problem.to_owned(), remedy.to_owned());
        FileError { file: file.to_owned(), place: None, problem, remedy }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some((row, column)) = self.place {
            write!(f, ":{row}:{column}")?;
        }
        write!(f, ": {}; {}", self.problem, self.remedy)
    }
}

impl core::error::Error for FileError {}
