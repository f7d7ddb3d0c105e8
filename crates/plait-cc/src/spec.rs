//! The name of a controller with its parameters: `olia:quality=l2/r`.

use crate::{Algorithm, Entry, FixedWindow, Param, Params, SpecError, Value};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;
use plait_params::Chosen;

/// A controller and its parameters.
///
/// # Examples
/// ```
/// use plait_cc::Spec;
///
/// let spec = Spec::parse("coupled")?;
/// assert_eq!(spec.name(), "lia");
/// // One algorithm for each subflow.
/// assert!(spec.build().couples());
/// # Ok::<(), plait_cc::SpecError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec(Chosen<Entry>);

impl Spec {
    /// Parses `name` or `name:key=value[,key=value...]`; aliases are accepted.
    ///
    /// # Errors
    /// Returns a [`SpecError`] for the first name or parameter that is not accepted.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        Chosen::parse(text).map(Spec)
    }

    /// Returns a controller of the list with every parameter at its default.
    #[must_use]
    pub fn of(entry: &'static Entry) -> Spec {
        Spec(Chosen::of(entry))
    }

    /// Returns the controller's entry in the list.
    #[must_use]
    pub fn entry(&self) -> &'static Entry {
        self.0.entry()
    }

    /// Returns the controller's parameters.
    #[must_use]
    pub fn params(&self) -> &Params {
        self.0.params()
    }

    /// Returns the canonical text: the canonical name, then the parameters that differ from their default, in
    /// the order of declaration. [`Spec::parse`] accepts it.
    #[must_use]
    pub fn name(&self) -> String {
        self.to_string()
    }

    /// The parameters whose value is the window `BDP`.
    fn bdp_windows(&self) -> impl Iterator<Item = &'static Param> {
        let bdp = |param: &&Param| self.params().window(param) == Some(FixedWindow::Bdp);
        self.entry().about.params.iter().filter(bdp)
    }

    /// Returns true if a window is `BDP`, which [`Spec::with_bdp`] resolves.
    #[must_use]
    pub fn needs_bdp(&self) -> bool {
        self.bdp_windows().next().is_some()
    }

    /// Returns the spec with `BDP` resolved to `bytes`: the bandwidth of the path times its RTT.
    #[must_use]
    pub fn with_bdp(&self, bytes: u64) -> Spec {
        let mut spec = self.clone();
        for param in self.bdp_windows() {
            spec.0.params_mut().put(param, Value::Window(FixedWindow::Bytes(bytes)));
        }
        spec
    }

    /// Builds the algorithm, one for each subflow.
    #[must_use]
    pub fn build(&self) -> Box<dyn Algorithm> {
        (self.entry().make)(self.params())
    }
}

/// The first of the list: CUBIC, the default of stock kernels.
impl Default for Spec {
    fn default() -> Spec {
        Spec::of(&crate::CONTROLLERS[0])
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        Spec::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CONTROLLERS, Listed, ParamFault};
    use alloc::vec::Vec;

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
        assert!(unknown.allowed().contains(&"coupled"));
        assert_eq!(error("olia:qualty=l2/r").given(), "qualty");
        assert_eq!(error("olia:qualty=l2/r").allowed(), ["quality", "least", "count"]);
        assert_eq!(error("olia:quality=x").allowed(), ["l/r2", "l2/r"]);
        assert_eq!(error("olia:quality").given(), "");
        assert!(matches!(
            error("fixed:cwnd=1seg,cwnd=2seg"),
            SpecError::Param(error) if error.fault == ParamFault::Repeated
        ));
        assert_eq!(
            error("fixed:cwnd=0seg").to_string(),
            "fixed: parameter `cwnd` cannot be `0seg`; allowed: BDP|20|20seg|64KiB; at least one segment, or \
             one byte"
        );
        assert_eq!(error("balia:x").to_string(), "balia: no parameter `x`; it has none");
    }

    #[test]
    fn every_entry_builds_and_its_names_are_its_own() {
        let names: Vec<_> = Entry::names().collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} twice");
        }
        for entry in CONTROLLERS {
            let spec = Spec::of(entry);
            assert_eq!(spec.name(), entry.about.name);
            let fixed = spec.build().fixed_window(1460).is_some();
            assert_eq!(fixed, entry.about.name == "fixed");
            assert!(!entry.about.idea.contains('\n') && !entry.clause.is_empty());
            assert!(
                entry.about.page.contains("\nGood at: ") && entry.about.page.contains("\nBad at: ")
            );
            // Formulas stand indented, on lines of their own.
            let formulas = entry.about.page.lines().filter(|line| line.starts_with("  ")).count();
            assert_eq!(formulas > 0, !fixed && entry.about.name != "reno", "{}", entry.about.name);
            for alias in entry.about.aliases {
                assert_eq!(
                    Entry::find(alias).map(|entry| entry.about.name),
                    Some(entry.about.name)
                );
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
