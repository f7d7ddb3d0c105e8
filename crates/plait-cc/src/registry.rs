//! The one list of congestion controllers: help, documentation, validation, contract tests and
//! benchmarks read it.

use crate::{Algorithm, Param, Spec};
use alloc::boxed::Box;

pub use crate::algorithms::CONTROLLERS;

/// A congestion controller, as the list describes it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Canonical name.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// The idea, in one line.
    pub idea: &'static str,
    /// The whole page: formula, units, what it is good for.
    pub page: &'static str,
    /// The clause of the RFC or draft it follows.
    pub clause: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Names and meanings of what [`Algorithm::save_state`] writes.
    pub state: &'static [(&'static str, &'static str)],
    /// Builds the algorithm that a spec of this entry describes.
    pub make: fn(&Spec) -> Box<dyn Algorithm>,
}

impl Entry {
    /// The entry of this name or alias.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Entry> {
        CONTROLLERS.iter().find(|entry| entry.name == name || entry.aliases.contains(&name))
    }

    /// Every name and alias, in the order of the list.
    pub fn names() -> impl Iterator<Item = &'static str> {
        CONTROLLERS
            .iter()
            .flat_map(|entry| core::iter::once(entry.name).chain(entry.aliases.iter().copied()))
    }

    /// The declaration of a parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }
}
