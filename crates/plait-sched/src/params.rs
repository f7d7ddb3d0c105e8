//! Parameters: declared once, read by help, JSON, validation and documentation.

use alloc::collections::BTreeMap;
use alloc::string::String;

/// The value of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A real number.
    Real(f64),
    /// A whole number.
    Whole(u64),
    /// `on` or `off`.
    Switch(bool),
    /// One of a closed set of words.
    Word(&'static str),
}

/// What a parameter may be.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// A real number from `min` to `max`.
    Real {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
        /// Value where nothing is said.
        default: f64,
    },
    /// A whole number from `min` to `max`.
    Whole {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
        /// Value where nothing is said.
        default: u64,
    },
    /// `on` or `off`.
    Switch {
        /// Value where nothing is said.
        default: bool,
    },
    /// One of these words.
    Word {
        /// The words.
        words: &'static [&'static str],
        /// Value where nothing is said.
        default: &'static str,
    },
}

/// Declaration of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Param {
    /// Name in `name:key=value`.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// Unit, empty where there is none.
    pub unit: &'static str,
    /// What it does, in one line.
    pub help: &'static str,
    /// The clause of the paper, RFC or draft it comes from.
    pub clause: &'static str,
}

/// Parameters as given; what is not given has its default.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Params(BTreeMap<&'static str, Value>);

/// A parameter that cannot be taken.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamError {
    /// The key as given.
    pub key: String,
    /// The value as given.
    pub value: String,
    /// The declaration, or `None` if the key is unknown.
    pub param: Option<&'static Param>,
}
