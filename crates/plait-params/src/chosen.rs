//! An entry of a registry as text: `blest:mode=paper`.

use crate::{Listed, ParamError, ParamFault, ParamKind, Params};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// A registry entry with its parameters.
///
/// [`fmt::Display`] writes the canonical form: the canonical name, and the parameters that differ
/// from their defaults. Two values are equal if their canonical forms are.
#[derive(Clone, Debug)]
pub struct Chosen<E: 'static> {
    entry: &'static E,
    params: Params,
}

/// Error of an unknown name or of a refused parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum SpecError {
    /// The list has no entry of this name.
    UnknownName {
        /// The word for an entry in an error: `scheduler`.
        what: &'static str,
        /// The name as given.
        given: String,
        /// The names and aliases of the list.
        allowed: Vec<&'static str>,
    },
    /// A class in Python, `module:Class`, which is known only after the Python package has registered it.
    Class {
        /// The class as given.
        given: String,
        /// Why the Python package has not found it: the problem, and on a second line what is allowed. `None` in other programs.
        why: Option<String>,
        /// The names and aliases of the list.
        allowed: Vec<&'static str>,
    },
    /// An entry that may be given once is given twice.
    Repeated {
        /// The word for an entry in an error: `decorator`.
        what: &'static str,
        /// Name of the entry.
        name: &'static str,
    },
    /// A parameter was refused.
    Param(ParamError),
}

impl<E: Listed> Chosen<E> {
    /// Parses `name` or `name:key=value[,key=value...]`; aliases are accepted.
    ///
    /// # Errors
    /// Returns an error for the first name or parameter that is not accepted.
    pub fn parse(text: &str) -> Result<Chosen<E>, SpecError> {
        let (name, params) = text.split_once(':').unwrap_or((text, ""));
        let name = name.trim();
        let entry = E::find(name).ok_or_else(|| SpecError::UnknownName {
            what: E::WHAT,
            given: name.to_string(),
            allowed: E::names().collect(),
        })?;
        let about = entry.about();
        let params = Params::parse(about.name, about.params, params.trim());
        Ok(Chosen { entry, params: params.map_err(SpecError::Param)? })
    }

    /// Returns an entry with its defaults.
    #[must_use]
    pub fn of(entry: &'static E) -> Chosen<E> {
        Chosen { entry, params: Params::default() }
    }

    /// Parses and sets one parameter.
    ///
    /// # Errors
    /// Returns an error if the key is unknown or the value is not allowed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        let about = self.entry.about();
        self.params.set(about.name, about.params, key, value).map_err(SpecError::Param)
    }

    /// Returns the entry of the list.
    #[must_use]
    pub fn entry(&self) -> &'static E {
        self.entry
    }

    /// Returns the parameters.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the parameters for changes.
    pub fn params_mut(&mut self) -> &mut Params {
        &mut self.params
    }
}

impl<E: Listed> PartialEq for Chosen<E> {
    fn eq(&self, other: &Chosen<E>) -> bool {
        self.entry.about().name == other.entry.about().name && self.params == other.params
    }
}

impl<E: Listed> Eq for Chosen<E> {}

impl<E: Listed> fmt::Display for Chosen<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = self.entry.about();
        f.write_str(about.name)?;
        for (at, (param, value)) in self.params.given(about.params).enumerate() {
            write!(f, "{}{}={value}", if at == 0 { ":" } else { "," }, param.name)?;
        }
        Ok(())
    }
}

impl SpecError {
    /// Returns the refused word: a name, a key, or a value.
    #[must_use]
    pub fn given(&self) -> &str {
        match self {
            SpecError::UnknownName { given, .. } | SpecError::Class { given, .. } => given,
            SpecError::Repeated { name, .. } => name,
            SpecError::Param(error) if error.fault == ParamFault::NotAllowed => &error.value,
            SpecError::Param(error) => &error.key,
        }
    }

    /// Returns the words that are allowed in its place; empty if there is no list of them.
    #[must_use]
    pub fn allowed(&self) -> Vec<&'static str> {
        match self {
            SpecError::UnknownName { allowed, .. } | SpecError::Class { allowed, .. } => {
                allowed.clone()
            }
            SpecError::Repeated { .. } => Vec::new(),
            SpecError::Param(error) => match (error.fault, error.param.map(|param| param.kind)) {
                (ParamFault::UnknownKey, _) => error.known.iter().map(|param| param.name).collect(),
                (ParamFault::NotAllowed, Some(kind)) => ParamKind::words(&kind),
                _ => Vec::new(),
            },
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::UnknownName { what, given, allowed } => {
                write!(f, "no {what} `{given}`; known: {}", allowed.join(", "))
            }
            SpecError::Class { given, why, .. } => {
                let why =
                    why.as_deref().unwrap_or("a class needs the `plait` of the Python package");
                write!(f, "`{given}`: {why}")
            }
            SpecError::Repeated { what, name } => write!(f, "{what} `{name}` is given twice"),
            SpecError::Param(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SpecError {}

/// Splits a list such as `minrtt,ecf:beta=0.25,floor=off,blest` at the commas between schedulers. A
/// piece that starts with `key=` belongs to the scheduler before it.
#[must_use]
pub fn split_list(text: &str) -> Vec<&str> {
    let mut specs = Vec::new();
    let (mut start, mut at) = (0, 0);
    for piece in text.split(',') {
        if at > 0 && !is_parameter(piece) {
            specs.push(text[start..at - 1].trim());
            start = at;
        }
        at += piece.len() + 1;
    }
    specs.push(text[start..].trim());
    specs
}

/// Returns true if a piece between commas is a parameter of the name before it: `=` precedes any
/// `:` or `+`.
#[must_use]
pub fn is_parameter(piece: &str) -> bool {
    piece.find(['=', ':', '+']).is_some_and(|first| piece[first..].starts_with('='))
}
