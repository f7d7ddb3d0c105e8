//! Parameters: declared once, read by help, JSON, validation and documentation.

use crate::exact::{self, MILLION};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// The word for a value that is left to the scheduler.
const AUTO: &str = "auto";

/// The value of a parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A real number, not negative, a whole number of millionths.
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
    /// A real number from `min` to `max`; `min` is not negative.
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
    /// A whole number from `min` to `max`, or `auto`, which is the default.
    Auto {
        /// Least value.
        min: u64,
        /// Greatest value.
        max: u64,
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

/// Parameters as given; what is not given has its default. A value equal to the default counts as
/// not given, so that equal meaning is equal.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Params(BTreeMap<&'static str, Value>);

/// Why a parameter was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamFault {
    /// No such key.
    UnknownKey,
    /// The key is known, the value is not allowed.
    NotAllowed,
    /// The key was given before.
    Repeated,
}

/// A parameter that cannot be taken.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamError {
    /// The scheduler or decorator whose parameter it would be.
    pub owner: &'static str,
    /// The key as given.
    pub key: String,
    /// The value as given; empty where there was no `=`.
    pub value: String,
    /// What is wrong.
    pub fault: ParamFault,
    /// The declaration, or `None` if the key is unknown.
    pub param: Option<&'static Param>,
    /// Every parameter of the owner.
    pub known: &'static [Param],
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Real(value) => write!(f, "{value}"),
            Value::Whole(value) => write!(f, "{value}"),
            Value::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Value::Word(word) => f.write_str(word),
        }
    }
}

/// What is allowed, as a phrase: `a number from 0 to 100`, `on or off`, `code|paper`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Real { min, max, .. } => write!(f, "a number from {min} to {max}"),
            Kind::Whole { min, max, .. } => write!(f, "a whole number from {min} to {max}"),
            Kind::Auto { min, max } => write!(f, "a whole number from {min} to {max}, or auto"),
            Kind::Switch { .. } => f.write_str("on or off"),
            Kind::Word { words, .. } => separated(f, words.iter().copied(), "|"),
        }
    }
}

/// Writes `words` with `between` between them.
pub(crate) fn separated<'a>(
    f: &mut fmt::Formatter<'_>,
    words: impl Iterator<Item = &'a str>,
    between: &str,
) -> fmt::Result {
    for (at, word) in words.enumerate() {
        if at > 0 {
            f.write_str(between)?;
        }
        f.write_str(word)?;
    }
    Ok(())
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.param.is_some() { "allowed" } else { "known" };
        match (self.problem(), self.allowed()) {
            (problem, None) => f.write_str(&problem),
            (problem, Some(allowed)) => write!(f, "{problem}; {word}: {allowed}"),
        }
    }
}

impl ParamError {
    /// What is wrong, without what would do.
    #[must_use]
    pub fn problem(&self) -> String {
        let (owner, key, value) = (self.owner, &self.key, &self.value);
        match (self.fault, self.param) {
            (ParamFault::Repeated, _) => format!("{owner}: parameter `{key}` is given twice"),
            (_, Some(_)) => format!("{owner}: parameter `{key}` cannot be `{value}`"),
            (_, None) if self.known.is_empty() => {
                format!("{owner}: no parameter `{key}`; it has none")
            }
            (_, None) => format!("{owner}: no parameter `{key}`"),
        }
    }

    /// What would do, of the value or of the key; `None` where nothing would, or it was given before.
    #[must_use]
    pub fn allowed(&self) -> Option<String> {
        match (self.fault, self.param) {
            (ParamFault::Repeated, _) => None,
            (_, Some(param)) => Some(match param.suffix() {
                "" => param.kind.to_string(),
                suffix => format!("{}, with or without `{suffix}` behind it", param.kind),
            }),
            (_, None) => {
                let names: Vec<&str> = self.known.iter().map(|param| param.name).collect();
                (!names.is_empty()).then(|| names.join(", "))
            }
        }
    }
}

impl core::error::Error for ParamError {}

impl Param {
    /// Its unit as it may stand behind a value; empty where there is none.
    fn suffix(&self) -> &'static str {
        match self.unit {
            "ms" => "ms",
            "s" => "s",
            "segments" => "seg",
            "bytes" => "B",
            _ => "",
        }
    }
}

impl Kind {
    /// The value where nothing is said.
    #[must_use]
    pub const fn default_value(&self) -> Value {
        match *self {
            Kind::Real { default, .. } => Value::Real(default),
            Kind::Whole { default, .. } => Value::Whole(default),
            Kind::Auto { .. } => Value::Word(AUTO),
            Kind::Switch { default } => Value::Switch(default),
            Kind::Word { default, .. } => Value::Word(default),
        }
    }

    /// Reads a value; `None` if it is not allowed. Reals are taken to the nearest millionth, so
    /// that a decision can compare them exactly. A switch is also `true` or `false`.
    #[must_use]
    pub fn parse(&self, text: &str) -> Option<Value> {
        match *self {
            Kind::Real { min, max, .. } => {
                let value: f64 = text.parse().ok().filter(|value| (min..=max).contains(value))?;
                Some(Value::Real(exact::nearest(value * MILLION as f64) as f64 / MILLION as f64))
            }
            Kind::Whole { min, max, .. } => {
                text.parse().ok().filter(|value| (min..=max).contains(value)).map(Value::Whole)
            }
            Kind::Auto { .. } if text == AUTO => Some(Value::Word(AUTO)),
            Kind::Auto { min, max } => {
                text.parse().ok().filter(|value| (min..=max).contains(value)).map(Value::Whole)
            }
            Kind::Switch { .. } => match text {
                "on" | "true" => Some(Value::Switch(true)),
                "off" | "false" => Some(Value::Switch(false)),
                _ => None,
            },
            Kind::Word { words, .. } => {
                words.iter().find(|word| **word == text).map(|word| Value::Word(word))
            }
        }
    }
}

impl Params {
    /// Reads `key=value[,key=value...]`; empty text gives the defaults. `owner` is who declared
    /// `known`, for the error.
    ///
    /// # Errors
    /// The first key that is unknown or repeated, or whose value is not allowed.
    pub fn parse(
        owner: &'static str,
        known: &'static [Param],
        text: &str,
    ) -> Result<Params, ParamError> {
        let mut params = Params::default();
        let mut seen: BTreeMap<&str, ()> = BTreeMap::new();
        if text.is_empty() {
            return Ok(params);
        }
        for piece in text.split(',') {
            let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
            let (key, value) = (key.trim(), value.trim());
            params.set(owner, known, key, value)?;
            if seen.insert(key, ()).is_some() {
                let fault = ParamFault::Repeated;
                return Err(ParamError {
                    owner,
                    key: key.into(),
                    value: value.into(),
                    fault,
                    param: None,
                    known,
                });
            }
        }
        Ok(params)
    }

    /// Sets one parameter from text.
    ///
    /// # Errors
    /// The key is not in `known`, or the value is not allowed.
    pub fn set(
        &mut self,
        owner: &'static str,
        known: &'static [Param],
        key: &str,
        value: &str,
    ) -> Result<(), ParamError> {
        let param = known.iter().find(|param| param.name == key);
        let refuse =
            |fault| ParamError { owner, key: key.into(), value: value.into(), fault, param, known };
        let param = param.ok_or_else(|| refuse(ParamFault::UnknownKey))?;
        let bare = value.strip_suffix(param.suffix()).unwrap_or(value);
        let value = param.kind.parse(bare).ok_or_else(|| refuse(ParamFault::NotAllowed))?;
        if value == param.kind.default_value() {
            self.0.remove(param.name);
        } else {
            self.0.insert(param.name, value);
        }
        Ok(())
    }

    /// The value of `param`: as given, or its default.
    #[must_use]
    pub fn value(&self, param: &Param) -> Value {
        self.0.get(param.name).cloned().unwrap_or_else(|| param.kind.default_value())
    }

    /// A real parameter in millionths; zero if `param` is of another kind.
    #[must_use]
    pub fn millionths(&self, param: &Param) -> u64 {
        match self.value(param) {
            Value::Real(value) => exact::nearest(value * MILLION as f64),
            _ => 0,
        }
    }

    /// A whole parameter; zero if `param` is of another kind.
    #[must_use]
    pub fn whole(&self, param: &Param) -> u64 {
        match self.value(param) {
            Value::Whole(value) => value,
            _ => 0,
        }
    }

    /// A whole parameter that may be left open; `None` for `auto`, and if `param` is of another
    /// kind.
    #[must_use]
    pub fn whole_or_auto(&self, param: &Param) -> Option<u64> {
        match self.value(param) {
            Value::Whole(value) => Some(value),
            _ => None,
        }
    }

    /// Whether a switch is on; off if `param` is of another kind.
    #[must_use]
    pub fn switch(&self, param: &Param) -> bool {
        self.value(param) == Value::Switch(true)
    }

    /// A word; empty if `param` is of another kind.
    #[must_use]
    pub fn word(&self, param: &Param) -> &'static str {
        match self.value(param) {
            Value::Word(word) => word,
            _ => "",
        }
    }

    /// What differs from the defaults, in the order of declaration.
    pub fn given<'a>(
        &'a self,
        known: &'static [Param],
    ) -> impl Iterator<Item = (&'static Param, &'a Value)> {
        known.iter().filter_map(|param| self.0.get(param.name).map(|value| (param, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const RATIO: Param = Param {
        name: "ratio",
        kind: Kind::Real { min: 0.0, max: 2.0, default: 0.25 },
        unit: "",
        help: "",
        clause: "",
    };
    const COUNT: Param =
        Param { name: "count", kind: Kind::Whole { min: 1, max: 9, default: 1 }, ..RATIO };
    const EXACT: Param = Param { name: "exact", kind: Kind::Switch { default: true }, ..RATIO };
    const MODE: Param = Param {
        name: "mode",
        kind: Kind::Word { words: &["code", "paper"], default: "code" },
        ..RATIO
    };
    const GAP: Param = Param { name: "gap", kind: Kind::Auto { min: 0, max: 9 }, ..RATIO };
    static KNOWN: &[Param] = &[RATIO, COUNT, EXACT, MODE, GAP];

    fn parse(text: &str) -> Result<Params, ParamError> {
        Params::parse("x", KNOWN, text)
    }

    #[test]
    fn values_are_typed_and_default() {
        let params = parse("ratio=1.1,exact=off,mode=paper").unwrap();
        assert_eq!(params.millionths(&RATIO), 1_100_000);
        assert_eq!(params.whole(&COUNT), 1);
        assert!(!params.switch(&EXACT));
        assert_eq!(params.word(&MODE), "paper");
        assert_eq!(params.whole(&MODE), 0);
        assert_eq!(parse("ratio=0.25,exact=on,gap=auto").unwrap(), Params::default());
        assert_eq!(params.whole_or_auto(&GAP), None);
        assert_eq!(parse("gap=0").unwrap().whole_or_auto(&GAP), Some(0));
    }

    #[test]
    fn refusals_say_what_is_allowed() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(
            message("mode=fast"),
            "x: parameter `mode` cannot be `fast`; allowed: code|paper"
        );
        assert_eq!(
            message("rat=1"),
            "x: no parameter `rat`; known: ratio, count, exact, mode, gap"
        );
        assert_eq!(message("count=3,count=3"), "x: parameter `count` is given twice");
        assert_eq!(message("exact"), "x: parameter `exact` cannot be ``; allowed: on or off");
        for wrong in [
            "ratio=nan",
            "ratio=-0.5",
            "ratio=2.01",
            "ratio=inf",
            "count=0",
            "count=1.5",
            "gap=10",
            "gap=on",
        ] {
            assert_eq!(parse(wrong).unwrap_err().fault, ParamFault::NotAllowed, "{wrong}");
        }
    }
}
