//! The one list of congestion controllers: help, documentation, validation, contract tests and
//! benchmarks read it.

use crate::{Algorithm, Params};
use alloc::boxed::Box;
use plait_params::{About, Listed};

pub use crate::algorithms::CONTROLLERS;

/// A congestion controller, as the list describes it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its description. The state is what [`Algorithm::save_state`] writes.
    pub about: About,
    /// The clause of the RFC or draft it follows.
    pub clause: &'static str,
    /// Builds the algorithm, one for each subflow.
    pub make: fn(&Params) -> Box<dyn Algorithm>,
}

impl Listed for Entry {
    const WHAT: &'static str = "congestion controller";

    fn list() -> &'static [Entry] {
        CONTROLLERS
    }

    fn about(&self) -> About {
        self.about
    }
}
