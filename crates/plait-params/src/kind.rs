//! Kinds of parameters and their values.

use crate::FixedWindow;
use alloc::vec::Vec;
use core::fmt;

/// The word for a value that the scheduler chooses.
const AUTO: &str = "auto";

/// One, in parts per million.
const MILLION: f64 = 1e6;

/// Examples of fixed windows.
const WINDOWS: &[&str] = &["BDP", "20", "20seg", "64KiB"];

/// The value of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// A real number in millionths; it is not negative.
    Real(u64),
    /// A whole number.
    Whole(u64),
    /// `on` or `off`.
    Switch(bool),
    /// One of a closed set of words.
    Word(&'static str),
    /// A fixed window.
    Window(FixedWindow),
}

/// Allowed values of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ParamKind {
    /// A real number from `min` to `max`; `min` is not negative.
    Real {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
        /// Value if none is given.
        default: f64,
    },
    /// A whole number from `min` to `max`.
    Whole {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
        /// Value if none is given.
        default: u64,
    },
    /// A whole number from `min` to `max`, or `auto`, which is the default.
    Auto {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
    },
    /// `on` or `off`.
    Switch {
        /// Value if none is given.
        default: bool,
    },
    /// One word of a closed set.
    Word {
        /// The words.
        words: &'static [&'static str],
        /// Value if none is given.
        default: &'static str,
    },
    /// A fixed window.
    Window {
        /// Value if none is given.
        default: FixedWindow,
    },
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Real(millionths) => write!(f, "{}", *millionths as f64 / MILLION),
            Value::Whole(value) => write!(f, "{value}"),
            Value::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Value::Word(word) => f.write_str(word),
            Value::Window(window) => window.fmt(f),
        }
    }
}

/// The allowed values as a phrase: `a number from 0 to 100`, `on or off`, `code|paper`.
impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParamKind::Real { min, max, .. } => write!(f, "a number from {min} to {max}"),
            ParamKind::Whole { min, max, .. } => write!(f, "a whole number from {min} to {max}"),
            ParamKind::Auto { min, max } => {
                write!(f, "a whole number from {min} to {max}, or auto")
            }
            ParamKind::Switch { .. } => f.write_str("on or off"),
            ParamKind::Word { .. } | ParamKind::Window { .. } => {
                f.write_str(&self.words().join("|"))
            }
        }
    }
}

impl ParamKind {
    /// Returns the value of a parameter that is not given.
    #[must_use]
    pub const fn default_value(&self) -> Value {
        match *self {
            ParamKind::Real { default, .. } => Value::Real(millionths(default)),
            ParamKind::Whole { default, .. } => Value::Whole(default),
            ParamKind::Auto { .. } => Value::Word(AUTO),
            ParamKind::Switch { default } => Value::Switch(default),
            ParamKind::Word { default, .. } => Value::Word(default),
            ParamKind::Window { default } => Value::Window(default),
        }
    }

    /// Parses a value; `None` if it is not allowed. Reals are rounded to the nearest millionth, so
    /// that decisions can compare them exactly. A switch may also be `true` or `false`.
    #[must_use]
    pub fn parse(&self, text: &str) -> Option<Value> {
        match *self {
            ParamKind::Real { min, max, .. } => {
                let value: f64 = text.parse().ok().filter(|value| (min..=max).contains(value))?;
                Some(Value::Real(millionths(value)))
            }
            ParamKind::Auto { .. } if text == AUTO => Some(Value::Word(AUTO)),
            ParamKind::Whole { min, max, .. } | ParamKind::Auto { min, max } => {
                text.parse().ok().filter(|value| (min..=max).contains(value)).map(Value::Whole)
            }
            ParamKind::Switch { .. } => match text {
                "on" | "true" => Some(Value::Switch(true)),
                "off" | "false" => Some(Value::Switch(false)),
                _ => None,
            },
            ParamKind::Word { words, .. } => {
                words.iter().find(|word| **word == text).map(|word| Value::Word(word))
            }
            ParamKind::Window { .. } => FixedWindow::parse(text).map(Value::Window),
        }
    }

    /// Returns the allowed words. For a window, they are examples.
    #[must_use]
    pub fn words(&self) -> Vec<&'static str> {
        match self {
            ParamKind::Real { .. } | ParamKind::Whole { .. } => Vec::new(),
            ParamKind::Auto { .. } => [AUTO].to_vec(),
            ParamKind::Switch { .. } => ["on", "off"].to_vec(),
            ParamKind::Word { words, .. } => words.to_vec(),
            ParamKind::Window { .. } => WINDOWS.to_vec(),
        }
    }
}

/// Rounds a number that is not negative to a whole number of millionths.
const fn millionths(value: f64) -> u64 {
    // The cast saturates and turns NaN into zero.
    (value * MILLION + 0.5) as u64
}
