//! Parameters: their declarations, their values, and the error if one is refused.

use crate::{FixedWindow, ParamKind, Value};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Declaration of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Param {
    /// Name in `name:key=value`.
    pub name: &'static str,
    /// Its allowed values.
    pub kind: ParamKind,
    /// Unit; empty if it has none.
    pub unit: &'static str,
    /// Its effect, in one line.
    pub help: &'static str,
    /// The clause of the paper, RFC or draft that defines it.
    pub clause: &'static str,
}

/// The parameters that differ from their defaults. A value that equals its default is not stored,
/// so two sets with the same meaning are equal.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Params(BTreeMap<&'static str, Value>);

/// Why a parameter is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamFault {
    /// No such key.
    UnknownKey,
    /// The value is not allowed for this key.
    NotAllowed,
    /// The key was given before.
    Repeated,
}

/// Error of a refused parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct ParamError {
    /// Name of the entry that has the parameters.
    pub owner: &'static str,
    /// The key as given.
    pub key: String,
    /// The value as given; empty if there is no `=`.
    pub value: String,
    /// The reason.
    pub fault: ParamFault,
    /// The declaration, or `None` if the key is unknown.
    pub param: Option<&'static Param>,
    /// Every parameter of the owner.
    pub known: &'static [Param],
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
    /// Returns the problem without the allowed values.
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

    /// Returns the allowed values, or the known keys if the key is unknown. `None` if there are
    /// none, or if the key is repeated.
    #[must_use]
    pub fn allowed(&self) -> Option<String> {
        match (self.fault, self.param) {
            (ParamFault::Repeated, _) => None,
            (_, Some(param)) => Some(match (param.kind, param.suffix()) {
                (ParamKind::Window { .. }, _) => {
                    format!("{}; at least one segment, or one byte", param.kind)
                }
                (_, "") => param.kind.to_string(),
                (_, suffix) => format!("{}, with or without `{suffix}` behind it", param.kind),
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
    /// Returns the optional unit suffix of a value; empty if there is none.
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

impl Params {
    /// Parses `key=value[,key=value...]`; empty text gives the defaults. `owner` is the entry that
    /// declares `known`; errors name it.
    ///
    /// # Errors
    /// Returns an error for the first key that is unknown or repeated, or whose value is not
    /// allowed.
    pub fn parse(
        owner: &'static str,
        known: &'static [Param],
        text: &str,
    ) -> Result<Params, ParamError> {
        let mut params = Params::default();
        let mut seen: Vec<&str> = Vec::new();
        for piece in text.split(',').filter(|_| !text.is_empty()) {
            let (key, value) = piece.split_once('=').unwrap_or((piece, ""));
            let (key, value) = (key.trim(), value.trim());
            params.set(owner, known, key, value)?;
            if seen.contains(&key) {
                let (key, value, fault) = (key.into(), value.into(), ParamFault::Repeated);
                return Err(ParamError { owner, key, value, fault, param: None, known });
            }
            seen.push(key);
        }
        Ok(params)
    }

    /// Parses and sets one parameter.
    ///
    /// # Errors
    /// Returns an error if the key is not in `known` or the value is not allowed.
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
        self.put(param, value);
        Ok(())
    }

    /// Sets one parameter to a value, which must be of its kind.
    pub fn put(&mut self, param: &Param, value: Value) {
        if value == param.kind.default_value() {
            self.0.remove(param.name);
        } else {
            self.0.insert(param.name, value);
        }
    }

    /// Returns the value of `param`, or its default if none is set.
    #[must_use]
    pub fn value(&self, param: &Param) -> Value {
        self.0.get(param.name).copied().unwrap_or_else(|| param.kind.default_value())
    }

    /// Returns a real parameter in millionths; zero if `param` is of another kind.
    #[must_use]
    pub fn millionths(&self, param: &Param) -> u64 {
        match self.value(param) {
            Value::Real(millionths) => millionths,
            _ => 0,
        }
    }

    /// Returns a whole parameter; zero if `param` is of another kind.
    #[must_use]
    pub fn whole(&self, param: &Param) -> u64 {
        match self.value(param) {
            Value::Whole(value) => value,
            _ => 0,
        }
    }

    /// Returns a whole parameter; `None` if it is `auto` or if `param` is of another kind.
    #[must_use]
    pub fn whole_or_auto(&self, param: &Param) -> Option<u64> {
        match self.value(param) {
            Value::Whole(value) => Some(value),
            _ => None,
        }
    }

    /// Returns true if a switch is on; false if `param` is of another kind.
    #[must_use]
    pub fn switch(&self, param: &Param) -> bool {
        self.value(param) == Value::Switch(true)
    }

    /// Returns a word; empty if `param` is of another kind.
    #[must_use]
    pub fn word(&self, param: &Param) -> &'static str {
        match self.value(param) {
            Value::Word(word) => word,
            _ => "",
        }
    }

    /// Returns a fixed window; `None` if `param` is of another kind.
    #[must_use]
    pub fn window(&self, param: &Param) -> Option<FixedWindow> {
        match self.value(param) {
            Value::Window(window) => Some(window),
            _ => None,
        }
    }

    /// Returns the parameters that differ from their defaults, in the order of declaration.
    pub fn given<'a>(
        &'a self,
        known: &'static [Param],
    ) -> impl Iterator<Item = (&'static Param, Value)> + use<'a> {
        known.iter().filter_map(|param| self.0.get(param.name).map(|value| (param, *value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    const RATIO: Param = Param {
        name: "ratio",
        kind: ParamKind::Real { min: 0.0, max: 2.0, default: 0.25 },
        unit: "",
        help: "",
        clause: "",
    };
    const COUNT: Param =
        Param { name: "count", kind: ParamKind::Whole { min: 1, max: 9, default: 1 }, ..RATIO };
    const EXACT: Param =
        Param { name: "exact", kind: ParamKind::Switch { default: true }, ..RATIO };
    const MODE: Param = Param {
        name: "mode",
        kind: ParamKind::Word { words: &["code", "paper"], default: "code" },
        ..RATIO
    };
    const GAP: Param = Param { name: "gap", kind: ParamKind::Auto { min: 0, max: 9 }, ..RATIO };
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
