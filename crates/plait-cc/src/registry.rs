//! The one list of congestion controllers: help, documentation, validation, contract tests and
//! benchmarks read it.

use crate::{Algorithm, Param, Params};
use alloc::boxed::Box;
use plait_params::{About, Listed};

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
    /// Builds the algorithm, one for each subflow.
    pub make: fn(&Params) -> Box<dyn Algorithm>,
}

impl Listed for Entry {
    const WHAT: &'static str = "congestion controller";

    fn list() -> &'static [Entry] {
        CONTROLLERS
    }

    fn about(&self) -> About {
        let Entry { name, aliases, idea, page, params, state, .. } = *self;
        About { name, aliases, idea, page, params, state }
    }
}
