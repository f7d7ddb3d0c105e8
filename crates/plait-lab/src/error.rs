//! The error for invalid input: a flag, a scenario file, an expectation.

use plait_app::name::nearest;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// Position of the refused text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// An argument of the command line, such as `--path` or `--vary`.
    Argument(String),
    /// A place in a file; line and column count from 1.
    File {
        /// The file's name as given.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The field, such as `path[0].rtt`; empty if the file itself is at fault.
        field: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Argument(name) => f.write_str(name),
            Place::File { file, line, column, field } => {
                write!(f, "{file}:{line}:{column}")?;
                if field.is_empty() { Ok(()) } else { write!(f, ": {field}") }
            }
        }
    }
}

/// The kind of mistake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// An unknown name.
    Unknown,
    /// An invalid value.
    Invalid,
    /// A required text is missing.
    Missing,
    /// Two settings exclude each other, or one was given twice.
    Conflict,
    /// A file that cannot be read.
    Unreadable,
}

/// An invalid scenario: position, given text, allowed values, and the nearest name. [`Refusal`] has the
/// fields.
///
/// It prints as one to three lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError(Box<Refusal>);

/// The parts of a [`ScenarioError`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Position of the text.
    pub place: Place,
    /// Kind of mistake.
    pub fault: Fault,
    /// The text that was refused, as given.
    pub given: String,
    /// The problem in a few words.
    pub problem: String,
    /// Allowed values; empty if the problem is enough.
    pub allowed: String,
    /// The nearest valid name.
    pub nearest: Option<String>,
}

impl ScenarioError {
    /// Returns an error with a place, the text and the problem.
    #[must_use]
    pub fn new(place: &Place, fault: Fault, given: &str, problem: &str) -> ScenarioError {
        ScenarioError(Box::new(Refusal {
            place: place.clone(),
            fault,
            given: given.to_owned(),
            problem: problem.to_owned(),
            allowed: String::new(),
            nearest: None,
        }))
    }

    /// Returns an error for a name that is not one of `names`, with the nearest of them.
    #[must_use]
    pub fn unknown<'a, I>(place: &Place, what: &str, given: &str, names: I) -> ScenarioError
    where
        I: IntoIterator<Item = &'a str>,
    {
        let names: Vec<&str> = names.into_iter().collect();
        ScenarioError(Box::new(Refusal {
            place: place.clone(),
            fault: Fault::Unknown,
            given: given.to_owned(),
            problem: format!("unknown {what}"),
            allowed: names.join(", "),
            nearest: nearest(given, names.iter().copied()).map(str::to_owned),
        }))
    }

    /// Adds the allowed values.
    #[must_use]
    pub fn allow(mut self, allowed: &str) -> ScenarioError {
        allowed.clone_into(&mut self.allowed);
        self
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        // The problem often quotes the given text.
        let quoted = format!("`{}`", excerpt(&self.given));
        if !self.given.is_empty() && !self.problem.starts_with(&quoted) {
            write!(f, "{quoted}: ")?;
        }
        f.write_str(&one_line(&self.problem))?;
        if !self.allowed.is_empty() {
            write!(f, "\n  allowed: {}", one_line(&self.allowed))?;
        }
        if let Some(nearest) = &self.nearest {
            write!(f, "\n  did you mean `{nearest}`?")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioError {}

impl Deref for ScenarioError {
    type Target = Refusal;
    fn deref(&self) -> &Refusal {
        &self.0
    }
}

impl DerefMut for ScenarioError {
    fn deref_mut(&mut self) -> &mut Refusal {
        &mut self.0
    }
}

/// Returns at most 80 characters of the given text, with visible control characters.
fn excerpt(text: &str) -> String {
    let clean = one_line(text);
    if clean.chars().count() <= 80 {
        return clean;
    }
    let mut short: String = clean.chars().take(77).collect();
    short.push_str("...");
    short
}

fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escaped = if c.is_control() { Some(c.escape_default()) } else { None };
            let plain = if c.is_control() { None } else { Some(c) };
            escaped.into_iter().flatten().chain(plain)
        })
        .collect()
}

/// Returns why a file cannot be read, in words.
#[must_use]
pub fn unreadable(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        ErrorKind::IsADirectory => "it is a directory, not a file".to_owned(),
        ErrorKind::PermissionDenied => "it may not be read".to_owned(),
        ErrorKind::InvalidData => "it is not text in UTF-8".to_owned(),
        // The message of the system, without the error number.
        _ => error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_place_given_allowed_and_nearest() {
        let place = Place::Argument("--schedulers".to_owned());
        let error = ScenarioError::unknown(&place, "scheduler", "blst", ["minrtt", "blest", "ecf"]);
        assert_eq!(
            error.to_string(),
            "--schedulers: `blst`: unknown scheduler\n  allowed: minrtt, blest, ecf\n  \
             did you mean `blest`?"
        );
    }

    #[test]
    fn a_place_in_a_file_has_line_column_and_field() {
        let place = Place::File {
            file: "home.toml".to_owned(),
            line: 4,
            column: 13,
            field: "path[0].rtt".to_owned(),
        };
        let error = ScenarioError::new(&place, Fault::Invalid, "25", "a unit is missing");
        assert_eq!(error.to_string(), "home.toml:4:13: path[0].rtt: `25`: a unit is missing");
    }

    #[test]
    fn long_text_is_cut_to_one_line() {
        let place = Place::Argument("--path".to_owned());
        let error = ScenarioError::new(&place, Fault::Invalid, &"x\n".repeat(500), "is\nno path");
        assert_eq!(error.to_string().lines().count(), 1);
        assert!(error.to_string().len() < 140);
    }
}
