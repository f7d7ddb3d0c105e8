//! Errors of files that a workload names.

use core::fmt;

/// An error of a file that a workload names: the place, the problem and the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileError {
    /// Name of the file, as given.
    pub file: String,
    /// Line and column from 1, if the error has one place.
    pub place: Option<(u32, u32)>,
    /// The problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

impl FileError {
    /// Creates an error at one place.
    pub(super) fn at(file: &str, row: u32, column: u32, problem: &str, remedy: &str) -> FileError {
        FileError { place: Some((row, column)), ..FileError::of(file, problem, remedy) }
    }

    /// Creates an error of the whole file.
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
