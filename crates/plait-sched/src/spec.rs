//! Schedulers as text: `blest:mode=paper+rp:mode=retransmit`.

use crate::params::separated;
use crate::{DECORATORS, Decorator, Entry, Param, ParamError, Params, SCHEDULERS, Scheduler};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A scheduler with its parameters and decorators, ready to be built once per connection.
///
/// As text: `NAME[:KEY=VALUE[,KEY=VALUE...]]`, then any number of `+DECORATOR[:KEY=VALUE...]`.
/// [`fmt::Display`] gives the canonical form: the canonical name, and only what differs from the
/// defaults. Two specs are equal if their canonical forms are.
#[derive(Clone, Debug)]
pub struct Spec {
    entry: &'static Entry,
    params: Params,
    decorators: Vec<(&'static Decorator, Params)>,
}

/// The error of a scheduler's name or parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum SpecError {
    /// No such scheduler.
    UnknownName(String),
    /// No such decorator.
    UnknownDecorator(String),
    /// The decorator was given before.
    RepeatedDecorator(&'static str),
    /// A parameter was refused.
    Param(ParamError),
}

impl Spec {
    /// Reads the text form.
    ///
    /// # Errors
    /// The first name or parameter that cannot be taken.
    pub fn parse(text: &str) -> Result<Spec, SpecError> {
        let mut parts = text.split('+');
        let (name, params) = split_name(parts.next().unwrap_or_default());
        let entry = Entry::find(name).ok_or_else(|| SpecError::UnknownName(name.into()))?;
        let params = Params::parse(entry.name, entry.params, params).map_err(SpecError::Param)?;
        let mut spec = Spec { entry, params, decorators: Vec::new() };
        for part in parts {
            let (name, params) = split_name(part);
            let decorator = Decorator::find(name);
            let decorator = decorator.ok_or_else(|| SpecError::UnknownDecorator(name.into()))?;
            let params = Params::parse(decorator.name, decorator.params, params);
            spec.decorate(decorator, params.map_err(SpecError::Param)?)?;
        }
        Ok(spec)
    }

    /// The scheduler `entry` with its defaults.
    #[must_use]
    pub fn of(entry: &'static Entry) -> Spec {
        Spec { entry, params: Params::default(), decorators: Vec::new() }
    }

    /// Puts a decorator around what there is.
    ///
    /// # Errors
    /// It is there already.
    pub fn decorate(
        &mut self,
        decorator: &'static Decorator,
        params: Params,
    ) -> Result<(), SpecError> {
        if self.decorators.iter().any(|(there, _)| there.name == decorator.name) {
            return Err(SpecError::RepeatedDecorator(decorator.name));
        }
        self.decorators.push((decorator, params));
        Ok(())
    }

    /// Sets one parameter of the scheduler, not of its decorators.
    ///
    /// # Errors
    /// The key is unknown, or the value is not allowed.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SpecError> {
        self.params.set(self.entry.name, self.entry.params, key, value).map_err(SpecError::Param)
    }

    /// The scheduler's entry in the list.
    #[must_use]
    pub fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// The scheduler's parameters.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The decorators from the inside out, with their parameters.
    #[must_use]
    pub fn decorators(&self) -> &[(&'static Decorator, Params)] {
        &self.decorators
    }

    /// Builds it, at the start of a connection.
    #[must_use]
    pub fn build(&self) -> Box<dyn Scheduler> {
        let base = (self.entry.build)(&self.params);
        self.decorators
            .iter()
            .fold(base, |base, (decorator, params)| (decorator.wrap)(base, params))
    }
}

impl PartialEq for Spec {
    fn eq(&self, other: &Spec) -> bool {
        let outer = |spec: &Spec| -> Vec<(&'static str, Params)> {
            spec.decorators.iter().map(|(it, params)| (it.name, params.clone())).collect()
        };
        self.entry.name == other.entry.name
            && self.params == other.params
            && outer(self) == outer(other)
    }
}

impl core::str::FromStr for Spec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Spec, SpecError> {
        Spec::parse(text)
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name)?;
        write_params(f, self.entry.params, &self.params)?;
        for (decorator, params) in &self.decorators {
            write!(f, "+{}", decorator.name)?;
            write_params(f, decorator.params, params)?;
        }
        Ok(())
    }
}

fn write_params(
    f: &mut fmt::Formatter<'_>,
    known: &'static [Param],
    params: &Params,
) -> fmt::Result {
    for (at, (param, value)) in params.given(known).enumerate() {
        write!(f, "{}{}={value}", if at == 0 { ":" } else { "," }, param.name)?;
    }
    Ok(())
}

fn split_name(part: &str) -> (&str, &str) {
    let (name, params) = part.split_once(':').unwrap_or((part, ""));
    (name.trim(), params.trim())
}

/// Splits a list such as `minrtt,ecf:beta=0.25,floor=off,blest` at the commas that separate
/// schedulers: a piece that starts with `key=` continues the one before it.
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

/// Whether a piece between commas is a parameter and not a name: `=` comes before any `:` or `+`.
fn is_parameter(piece: &str) -> bool {
    piece.find(['=', ':', '+']).is_some_and(|first| piece[first..].starts_with('='))
}

impl SpecError {
    /// The word that was refused: a name, a key, or a value.
    #[must_use]
    pub fn given(&self) -> &str {
        match self {
            SpecError::UnknownName(name) | SpecError::UnknownDecorator(name) => name,
            SpecError::RepeatedDecorator(name) => name,
            SpecError::Param(error) if error.fault == crate::ParamFault::NotAllowed => &error.value,
            SpecError::Param(error) => &error.key,
        }
    }

    /// The words that would have been taken in its place, where there is a list of them.
    #[must_use]
    pub fn allowed(&self) -> Vec<&'static str> {
        match self {
            SpecError::UnknownName(_) => names().collect(),
            SpecError::UnknownDecorator(_) => DECORATORS.iter().map(|it| it.name).collect(),
            SpecError::RepeatedDecorator(_) => Vec::new(),
            SpecError::Param(error) => match (error.fault, error.param.map(|param| param.kind)) {
                (crate::ParamFault::UnknownKey, _) => {
                    error.known.iter().map(|param| param.name).collect()
                }
                (crate::ParamFault::NotAllowed, Some(crate::Kind::Word { words, .. })) => {
                    words.to_vec()
                }
                (crate::ParamFault::NotAllowed, Some(crate::Kind::Auto { .. })) => {
                    ["auto"].to_vec()
                }
                (crate::ParamFault::NotAllowed, Some(crate::Kind::Switch { .. })) => {
                    ["on", "off"].to_vec()
                }
                _ => Vec::new(),
            },
        }
    }
}

/// Canonical names and aliases.
fn names() -> impl Iterator<Item = &'static str> {
    let all =
        |entry: &'static Entry| core::iter::once(entry.name).chain(entry.aliases.iter().copied());
    SCHEDULERS.iter().flat_map(all)
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpecError::UnknownName(name) => {
                write!(f, "no scheduler `{name}`; known: ")?;
                separated(f, SCHEDULERS.iter().map(|entry| entry.name), ", ")
            }
            SpecError::UnknownDecorator(name) => {
                write!(f, "no decorator `{name}`; known: ")?;
                separated(f, DECORATORS.iter().map(|decorator| decorator.name), ", ")
            }
            SpecError::RepeatedDecorator(name) => write!(f, "decorator `{name}` is given twice"),
            SpecError::Param(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for SpecError {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
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
        let all: Vec<&str> = SCHEDULERS.iter().map(|entry| entry.name).collect();
        let known = alloc::format!("no scheduler `blesst`; known: {}", all.join(", "));
        assert_eq!(error("blesst").to_string(), known);
        assert!(known.starts_with("no scheduler `blesst`; known: minrtt, roundrobin, redundant,"));
        assert_eq!(error("blesst").given(), "blesst");
        assert!(error("").allowed().contains(&"lrf"));
        assert_eq!(error("minrtt+bn").allowed(), ["rp", "bm", "copy"]);
        assert_eq!(error("minrtt+rp+rp"), SpecError::RepeatedDecorator("rp"));
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
        let all: Vec<&str> = names().collect();
        for (at, name) in all.iter().enumerate() {
            assert!(!all[..at].contains(name), "{name}");
        }
    }

    /// Any spec that the lists allow.
    fn any_spec() -> impl Strategy<Value = Spec> {
        fn with(known: &'static [Param], seeds: &[u64], mut set: impl FnMut(&str, &str)) {
            for (param, seed) in known.iter().zip(seeds).filter(|(_, seed)| *seed % 3 != 0) {
                let value = match param.kind {
                    crate::Kind::Real { min, max, .. } => {
                        (min + (max - min) * (*seed % 1000) as f64 / 1000.0).to_string()
                    }
                    crate::Kind::Whole { min, max, .. } => {
                        (min + seed % (max - min + 1)).to_string()
                    }
                    crate::Kind::Auto { .. } if *seed % 2 == 0 => "auto".to_string(),
                    crate::Kind::Auto { min, max } => (min + seed % (max - min + 1)).to_string(),
                    crate::Kind::Switch { .. } => ["on", "off"][(*seed % 2) as usize].to_string(),
                    crate::Kind::Word { words, .. } => {
                        words[*seed as usize % words.len()].to_string()
                    }
                };
                set(param.name, &value);
            }
        }
        (0..SCHEDULERS.len(), any::<[u64; 8]>(), any::<bool>(), any::<[u64; 8]>()).prop_map(
            |(at, seeds, decorated, more)| {
                let mut spec = Spec::of(&SCHEDULERS[at]);
                with(SCHEDULERS[at].params, &seeds, |key, value| spec.set(key, value).unwrap());
                for decorator in DECORATORS.iter().filter(|_| decorated) {
                    let mut params = Params::default();
                    with(decorator.params, &more, |key, value| {
                        params.set(decorator.name, decorator.params, key, value).unwrap();
                    });
                    spec.decorate(decorator, params).unwrap();
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
