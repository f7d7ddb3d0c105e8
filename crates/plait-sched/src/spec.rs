//! Schedulers as text: `blest:mode=paper+rp:mode=retransmit`.

use crate::Goal;
use crate::decorators::PRICE;
use crate::register::{class_named, find_class, of_class};
use crate::{Decorator, Entry, Params, Scheduler};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use plait_params::{Chosen, Listed, SpecError};

/// A scheduler with its parameters and decorators, ready to be built once per connection.
///
/// As text: `NAME[:KEY=VALUE[,KEY=VALUE...]]`, then any number of `+DECORATOR[:KEY=VALUE...]`.
/// [`fmt::Display`] gives the canonical form: the canonical name, and only the parameters that differ from
/// their defaults. Two specs are equal if their canonical forms are.
///
/// # Examples
/// ```
/// use plait_sched::Spec;
///
/// let mut spec = Spec::parse("rr:num_segments=2+rp")?;
/// spec.set("cwnd_limited", "off")?;
/// assert_eq!(spec.to_string(), "roundrobin:num_segments=2,cwnd_limited=off+rp");
/// let scheduler = spec.build();
/// assert!(Spec::parse("nobody").is_err());
/// # Ok::<(), plait_sched::SpecError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    base: Chosen<Entry>,
    decorators: Vec<Chosen<Decorator>>,
}

impl Spec {
    /// Parses the text form.
    ///
    /// # Errors
    /// Returns an error for the first name or parameter that is not accepted.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let mut parts = text.split('+');
        let base = base_of(parts.next().unwrap_or_default())?;
        let mut spec = Spec { base, decorators: Vec::new() };
        for part in parts {
            spec.decorate(Chosen::parse(part)?)?;
        }
        Ok(spec)
    }

    /// Returns the scheduler `entry` with its defaults.
    #[must_use]
    pub fn of(entry: &'static Entry) -> Spec {
        Spec { base: Chosen::of(entry), decorators: Vec::new() }
    }

    /// Wraps the scheduler and its decorators in one more decorator.
    ///
    /// # Errors
    /// Returns an error if the scheduler already has this decorator.
    pub fn decorate(&mut self, decorator: Chosen<Decorator>) -> Result<(), SpecError> {
        let name = decorator.entry().about.name;
        if self.decorators.iter().any(|there| there.entry().about.name == name) {
            return Err(SpecError::Repeated { what: Decorator::WHAT, name });
        }
        self.decorators.push(decorator);
        Ok(())
    }

    /// Wraps the scheduler in the decorator for paths with a cost, with this goal. A scheduler that
    /// has it already stays as it is.
    #[must_use]
    pub fn with_goal(mut self, goal: Goal) -> Spec {
        let mut price = Chosen::of(&PRICE);
        if price.set("goal", goal.as_str()).is_ok() {
            // The decorator that is there has its own goal.
            let _ = self.decorate(price);
        }
        self
    }

    /// Sets one parameter of the scheduler, not of its decorators.
    ///
    /// # Errors
    /// Returns an error if the key is unknown or the value is not allowed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        self.base.set(key, value)
    }

    /// Returns the scheduler's entry in the list.
    #[must_use]
    pub fn entry(&self) -> &'static Entry {
        self.base.entry()
    }

    /// Returns the scheduler's parameters.
    #[must_use]
    pub fn params(&self) -> &Params {
        self.base.params()
    }

    /// Returns the decorators from the inside out, with their parameters.
    #[must_use]
    pub fn decorators(&self) -> &[Chosen<Decorator>] {
        &self.decorators
    }

    /// Returns the class, `module:Class`, that the scheduler is.
    #[must_use]
    pub fn class(&self) -> Option<&'static str> {
        class_named(self.entry().about.name)
    }

    /// Returns the canonical form, in which a class has the name `module:Class`. Another program can find the class by it.
    #[must_use]
    pub fn written(&self) -> String {
        let (text, name) = (self.to_string(), self.entry().about.name);
        let class = self.class().filter(|class| of_class(class).is_some_and(|it| it.0 == name));
        let rest = text.get(name.len()..).unwrap_or_default();
        class.map_or_else(|| text.clone(), |class| format!("{class}{rest}"))
    }

    /// Builds the scheduler for a new connection.
    #[must_use]
    pub fn build(&self) -> Box<dyn Scheduler> {
        let base = (self.entry().build)(self.params());
        self.decorators.iter().fold(base, |base, it| (it.entry().wrap)(base, it.params()))
    }
}

/// Parses a scheduler without its decorators.
fn base_of(text: &str) -> Result<Chosen<Entry>, SpecError> {
    if let Some((name, parameters)) = of_class(text) {
        return Chosen::parse(&format!("{name}{parameters}"));
    }
    let error = match Chosen::parse(text) {
        Err(SpecError::UnknownName { what, given, allowed }) => (what, given, allowed),
        parsed => return parsed,
    };
    let (what, given, allowed) = error;
    let Some((class, parameters)) = split_class(text) else {
        return Err(SpecError::UnknownName { what, given, allowed });
    };
    match find_class(class) {
        Some(Ok(name)) => Chosen::parse(&format!("{name}{parameters}")),
        found if names_class(class) => {
            let why = found.and_then(Result::err);
            Err(SpecError::Class { given: class.into(), why, allowed })
        }
        _ => Err(SpecError::UnknownName { what, given, allowed }),
    }
}

/// Splits `module:Class:key=value` into `module:Class` and `:key=value`.
fn split_class(text: &str) -> Option<(&str, &str)> {
    let class = text.find(':')? + 1;
    let end = text[class..].find(':').map_or(text.len(), |at| class + at);
    (end > class && !text[class..end].contains('=')).then(|| text.split_at(end))
}

/// Returns true for the usual form of a class, `module:Class` or `module:Outer.Inner`.
fn names_class(class: &str) -> bool {
    class.rsplit([':', '.']).next().is_some_and(|it| it.starts_with(char::is_uppercase))
}

impl core::str::FromStr for Spec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Spec, SpecError> {
        Spec::parse(text)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base.fmt(f)?;
        self.decorators.iter().try_for_each(|decorator| write!(f, "+{decorator}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DECORATORS, Param, ParamKind, SCHEDULERS, split_list};
    use proptest::prelude::*;

    #[test]
    fn the_canonical_form_names_what_differs() {
        for (text, canonical) in [
            ("lrf", "minrtt"),
            ("rr:num_segments=2", "roundrobin:num_segments=2"),
            ("ecf:floor=off,beta=0.25", "ecf:floor=off"),
            ("ecf:floor=off,beta=0.5", "ecf:beta=0.5,floor=off"),
            ("blest:mode=paper+rp:mode=retransmit", "blest:mode=paper+rp:mode=retransmit"),
            ("minrtt+rp:mode=both,strict=true", "minrtt+rp"),
        ] {
            assert_eq!(Spec::parse(text).unwrap().to_string(), canonical);
        }
        assert_eq!(Spec::parse("ecf:beta=0.25"), Ok(Spec::of(Entry::find("ecf").unwrap())));
    }

    #[test]
    fn refusals_carry_what_was_given_and_what_is_allowed() {
        let error = |text: &str| Spec::parse(text).unwrap_err();
        let all: Vec<&str> = Entry::names().collect();
        let known = alloc::format!("no scheduler `blesst`; known: {}", all.join(", "));
        assert_eq!(error("blesst").to_string(), known);
        assert!(known.starts_with("no scheduler `blesst`; known: minrtt, lrf, "));
        assert_eq!(error("blesst").given(), "blesst");
        assert!(error("").allowed().contains(&"lrf"));
        assert_eq!(error("minrtt+bn").allowed(), ["rp", "bm", "copy", "price"]);
        for class in ["mine:Spare", "mine:Spare:share=0.4", "mine:Spare+copy"] {
            assert_eq!(error(class).given(), "mine:Spare");
        }
        assert!(matches!(error("mine:spare"), SpecError::UnknownName { .. }));
        assert_eq!(error("minrtt+rp+rp"), SpecError::Repeated { what: "decorator", name: "rp" });
        assert_eq!(error("blest:mod=paper").allowed(), ["mode", "lambda", "step"]);
        assert_eq!(error("blest:mode=papr").allowed(), ["code", "paper"]);
        assert_eq!(error("blest:mode=papr").given(), "papr");
        assert_eq!(error("strict:x=1").to_string(), "strict: no parameter `x`; it has none");
        let allowed = "a number from 0 to 60000, with or without `ms` behind it";
        assert!(error("rtt-threshold:threshold=20kB").to_string().ends_with(allowed));
    }

    #[test]
    fn a_value_may_carry_its_unit() {
        for [with, without] in [
            ["rtt-threshold:threshold=20ms", "rtt-threshold:threshold=20"],
            ["linux:sndbuf=200000B", "linux:sndbuf=200000"],
            ["stms-a:threshold=3seg", "stms-a:threshold=3"],
        ] {
            assert_eq!(Spec::parse(with), Spec::parse(without));
        }
    }

    #[test]
    fn a_list_is_split_between_schedulers_only() {
        assert_eq!(
            split_list("minrtt, ecf:beta=0.25,floor=off+rp:mode=both,strict=off,blest"),
            ["minrtt", "ecf:beta=0.25,floor=off+rp:mode=both,strict=off", "blest"]
        );
        assert_eq!(split_list("beta=1,ecf,"), ["beta=1", "ecf", ""]);
        assert_eq!(split_list(""), [""]);
    }

    #[test]
    fn names_are_unique() {
        let all: Vec<&str> = Entry::names().collect();
        for (at, name) in all.iter().enumerate() {
            assert!(!all[..at].contains(name), "{name}");
        }
    }

    /// Any spec that the lists allow.
    fn any_spec() -> impl Strategy<Value = Spec> {
        fn with(known: &'static [Param], seeds: &[u64], mut set: impl FnMut(&str, &str)) {
            for (param, seed) in known.iter().zip(seeds).filter(|(_, seed)| *seed % 3 != 0) {
                let value = match param.kind {
                    ParamKind::Real { min, max, .. } => {
                        (min + (max - min) * (*seed % 1000) as f64 / 1000.0).to_string()
                    }
                    ParamKind::Whole { min, max, .. } => (min + seed % (max - min + 1)).to_string(),
                    ParamKind::Auto { .. } if *seed % 2 == 0 => "auto".to_string(),
                    ParamKind::Auto { min, max } => (min + seed % (max - min + 1)).to_string(),
                    ParamKind::Switch { .. } => ["on", "off"][(*seed % 2) as usize].to_string(),
                    ParamKind::Word { .. } | ParamKind::Window { .. } => {
                        let words = param.kind.words();
                        words[*seed as usize % words.len()].to_string()
                    }
                };
                set(param.name, &value);
            }
        }
        (0..SCHEDULERS.len(), any::<[u64; 8]>(), any::<bool>(), any::<[u64; 8]>()).prop_map(
            |(at, seeds, decorated, more)| {
                let mut spec = Spec::of(&SCHEDULERS[at]);
                with(SCHEDULERS[at].about.params, &seeds, |key, value| {
                    spec.set(key, value).unwrap();
                });
                for decorator in DECORATORS.iter().filter(|_| decorated) {
                    let mut decorator = Chosen::of(decorator);
                    with(decorator.entry().about.params, &more, |key, value| {
                        decorator.set(key, value).unwrap();
                    });
                    spec.decorate(decorator).unwrap();
                }
                spec
            },
        )
    }

    proptest! {
        #[test]
        fn canonical_text_reads_back(specs in proptest::collection::vec(any_spec(), 1..5)) {
            let text: Vec<String> = specs.iter().map(ToString::to_string).collect();
            let list = text.join(",");
            prop_assert_eq!(&split_list(&list), &text);
            for (spec, text) in specs.iter().zip(&text) {
                prop_assert_eq!(&Spec::parse(text).unwrap(), spec);
            }
        }

        #[test]
        fn no_text_panics(text in "([a-z]{0,6}|minrtt|ecf|blest|rp|[:=,+.]|[0-9]{1,3}|mode|\\PC){0,12}") {
            if let Err(error) = Spec::parse(&text) {
                prop_assert!(!error.to_string().is_empty());
            }
            prop_assert_eq!(split_list(&text).is_empty(), false);
        }
    }
}
