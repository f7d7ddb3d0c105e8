//! The name of a controller with its parameters: `olia:quality=l2/r`.

use crate::{Algorithm, Entry, FixedWindow, Kind, Param, Value};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

/// A controller and its parameters.
#[derive(Clone, Debug)]
pub struct Spec {
    entry: &'static Entry,
    /// One value for each declared parameter, in the order of declaration.
    values: Vec<Value>,
}

/// A name or parameter that cannot be taken. Each carries what was given; [`SpecError::allowed`]
/// tells what could have been.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SpecError {
    /// No such controller.
    UnknownName {
        /// The name as given.
        given: String,
    },
    /// No such parameter, or something that is not `key=value`.
    UnknownParam {
        /// Canonical name of the controller.
        controller: &'static str,
        /// The key, or the whole item where it has no `=`.
        given: String,
    },
    /// A parameter was given twice.
    Repeated {
        /// Canonical name of the controller.
        controller: &'static str,
        /// The parameter.
        param: &'static Param,
    },
    /// A value outside what the parameter may be.
    BadValue {
        /// Canonical name of the controller.
        controller: &'static str,
        /// The parameter.
        param: &'static Param,
        /// The value as given.
        given: String,
    },
}

impl Spec {
    /// Reads `name` or `name:key=value[,key=value...]`; aliases are accepted.
    ///
    /// # Errors
    /// [`SpecError`], at the first item that cannot be taken.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let (name, params) = match text.split_once(':') {
            Some((name, params)) => (name, Some(params)),
            None => (text, None),
        };
        let entry =
            Entry::find(name).ok_or_else(|| SpecError::UnknownName { given: name.to_string() })?;
        let mut spec = Spec::of(entry);
        let mut taken: Vec<&str> = Vec::new();
        for item in params.into_iter().flat_map(|params| params.split(',')) {
            let (key, value) = item.split_once('=').unwrap_or((item, ""));
            let controller = entry.name;
            let unknown = || SpecError::UnknownParam { controller, given: key.to_string() };
            let index =
                entry.params.iter().position(|param| param.name == key).ok_or_else(unknown)?;
            let param = &entry.params[index];
            if taken.contains(&key) {
                return Err(SpecError::Repeated { controller, param });
            }
            taken.push(key);
            let given = || SpecError::BadValue { controller, param, given: value.to_string() };
            spec.values[index] = param.kind.parse(value).ok_or_else(given)?;
        }
        Ok(spec)
    }

    /// A controller of the list with every parameter at its default.
    #[must_use]
    pub fn of(entry: &'static Entry) -> Spec {
        Spec {
            entry,
            values: entry.params.iter().map(|param| param.kind.default_value()).collect(),
        }
    }

    /// The controller's entry in the list.
    #[must_use]
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// The value of a parameter, given or default; `None` if the controller has none of this name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value> {
        let index = self.entry.params.iter().position(|param| param.name == name)?;
        self.values.get(index).copied()
    }

    /// The parameters that differ from their default.
    pub fn changed(&self) -> impl Iterator<Item = (&'static Param, Value)> + '_ {
        self.entry
            .params
            .iter()
            .zip(self.values.iter().copied())
            .filter(|(param, value)| param.kind.default_value() != *value)
    }

    /// The canonical string: canonical name, then the parameters that differ from their default in
    /// the order of declaration. [`Spec::parse`] reads it back.
    #[must_use]
    pub fn name(&self) -> String {
        self.to_string()
    }

    /// Whether a window of `BDP` is still to be resolved by [`Spec::with_bdp`].
    #[must_use]
    pub fn needs_bdp(&self) -> bool {
        self.values.contains(&Value::Window(FixedWindow::Bdp))
    }

    /// The same spec with `BDP` resolved to `bytes`, bandwidth times RTT of the path at hand.
    #[must_use]
    pub fn with_bdp(&self, bytes: u64) -> Spec {
        let mut spec = self.clone();
        for value in &mut spec.values {
            if *value == Value::Window(FixedWindow::Bdp) {
                *value = Value::Window(FixedWindow::Bytes(bytes));
            }
        }
        spec
    }

    /// Builds the algorithm, one for each subflow.
    #[must_use]
    pub fn build(&self) -> Box<dyn Algorithm> {
        (self.entry.make)(self)
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Spec) -> bool {
        self.entry.name == other.entry.name && self.values == other.values
    }
}

impl Eq for Spec {}

/// The first of the list: CUBIC, what stock kernels run.
impl Default for Spec {
    fn default() -> Spec {
        Spec::of(&crate::CONTROLLERS[0])
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)?;
        for (position, (param, value)) in self.changed().enumerate() {
            let mark = if position == 0 { ':' } else { ',' };
            write!(f, "{mark}{}={value}", param.name)?;
        }
        Ok(())
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        Spec::parse(text)
    }
}

impl SpecError {
    /// What was given.
    #[must_use]
    pub fn given(&self) -> &str {
        match self {
            SpecError::UnknownName { given }
            | SpecError::UnknownParam { given, .. }
            | SpecError::BadValue { given, .. } => given,
            SpecError::Repeated { param, .. } => param.name,
        }
    }

    /// What is allowed in its place: names with aliases, parameters, words or examples of values;
    /// empty for a repetition.
    #[must_use]
    pub fn allowed(&self) -> Vec<String> {
        match self {
            SpecError::UnknownName { .. } => Entry::names().map(ToString::to_string).collect(),
            SpecError::UnknownParam { controller, .. } => Entry::find(controller)
                .into_iter()
                .flat_map(|entry| entry.params)
                .map(|param| param.name.to_string())
                .collect(),
            SpecError::Repeated { .. } => Vec::new(),
            SpecError::BadValue { param, .. } => param.kind.allowed(),
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let allowed = self.allowed().join(", ");
        match self {
            SpecError::UnknownName { given } => {
                write!(f, "no congestion controller is called `{given}`; there are {allowed}")
            }
            SpecError::UnknownParam { controller, given } if allowed.is_empty() => {
                write!(f, "`{controller}` takes no parameters, but `{given}` was given")
            }
            SpecError::UnknownParam { controller, given } => {
                write!(f, "`{controller}` has no parameter `{given}`; it has {allowed}")
            }
            SpecError::Repeated { controller, param } => {
                write!(f, "`{controller}` was given `{}` twice", param.name)
            }
            SpecError::BadValue { controller, param, given } => {
                let name = param.name;
                write!(f, "`{controller}:{name}` cannot be `{given}`; it takes {allowed}")?;
                match param.kind {
                    Kind::Window { .. } => f.write_str("; at least one segment, or one byte"),
                    Kind::Word { .. } => Ok(()),
                }
            }
        }
    }
}

impl core::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CONTROLLERS;

    #[test]
    fn canonical_names_read_back() {
        let cases = [
            ("reno", "reno"),
            ("coupled", "lia"),
            ("cubic", "cubic"),
            ("olia:quality=l/r2", "olia"),
            ("reno:count=acks", "reno:count=acks"),
            ("lia:count=bytes", "lia"),
            ("olia:quality=l2/r", "olia:quality=l2/r"),
            ("fixed", "fixed"),
            ("fixed:cwnd=bdp", "fixed"),
            ("fixed:cwnd=20seg", "fixed:cwnd=20seg"),
            ("fixed:cwnd=20", "fixed:cwnd=20seg"),
            ("fixed:cwnd=64KiB", "fixed:cwnd=65536B"),
        ];
        for (given, canonical) in cases {
            let spec = Spec::parse(given).unwrap();
            assert_eq!(spec.name(), canonical);
            assert_eq!(Spec::parse(canonical).unwrap(), spec);
        }
    }

    #[test]
    fn errors_carry_what_was_given_and_what_is_allowed() {
        let error = |text: &str| Spec::parse(text).unwrap_err();
        let unknown = error("oila");
        assert_eq!(unknown.given(), "oila");
        assert!(unknown.allowed().contains(&"coupled".to_string()));
        assert_eq!(error("olia:qualty=l2/r").given(), "qualty");
        assert_eq!(error("olia:qualty=l2/r").allowed(), ["quality", "least", "count"]);
        assert_eq!(error("olia:quality=x").allowed(), ["l/r2", "l2/r"]);
        assert_eq!(error("olia:quality").given(), "");
        assert!(matches!(error("fixed:cwnd=1seg,cwnd=2seg"), SpecError::Repeated { .. }));
        assert_eq!(
            error("fixed:cwnd=0seg").to_string(),
            "`fixed:cwnd` cannot be `0seg`; it takes BDP, 20, 20seg, 64KiB; at least one segment, or one \
             byte"
        );
        assert_eq!(error("balia:").to_string(), "`balia` takes no parameters, but `` was given",);
    }

    #[test]
    fn every_entry_builds_and_its_names_are_its_own() {
        let names: Vec<_> = Entry::names().collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} twice");
        }
        for entry in CONTROLLERS {
            let spec = Spec::of(entry);
            assert_eq!(spec.name(), entry.name);
            let fixed = spec.build().fixed_window(1460).is_some();
            assert_eq!(fixed, entry.name == "fixed");
            assert!(!entry.idea.contains('\n') && !entry.clause.is_empty());
            assert!(entry.page.contains("\nGood at: ") && entry.page.contains("\nBad at: "));
            // Formulas stand indented, on lines of their own.
            let formulas = entry.page.lines().filter(|line| line.starts_with("  ")).count();
            assert_eq!(formulas > 0, !fixed && entry.name != "reno", "{}", entry.name);
            for alias in entry.aliases {
                assert_eq!(Entry::find(alias).map(|entry| entry.name), Some(entry.name));
            }
        }
        assert_eq!(Spec::default().name(), "cubic");
    }

    #[test]
    fn a_bdp_is_resolved_by_the_caller() {
        let spec = Spec::parse("fixed:cwnd=BDP").unwrap();
        assert!(spec.needs_bdp());
        let resolved = spec.with_bdp(30_000);
        assert!(!resolved.needs_bdp());
        assert_eq!(resolved.build().fixed_window(1460), Some(30_000));
        assert_eq!(
            Spec::parse("fixed:cwnd=20seg").unwrap().build().fixed_window(1448),
            Some(28_960)
        );
    }
}
