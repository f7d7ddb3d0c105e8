//! The lists of schedulers and decorators, which help, validation, documentation and the contract
//! tests read.

use crate::{Param, Params, Scheduler};
use alloc::boxed::Box;
use plait_params::{About, Listed};

pub use crate::decorators::DECORATORS;
pub use crate::schedulers::SCHEDULERS;

/// The default scheduler of the live commands: the first one of `docs/promise.md`, whose worst cell
/// against the best path alone is the best of all. A test compares the two.
pub const LIVE_DEFAULT: &str = "ecf+copy";

/// A scheduler of the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The canonical name.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// The idea in one line.
    pub idea: &'static str,
    /// The page: idea, rule as a formula, paper, what it is good and bad at.
    pub page: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// The values of a saved state, each with what it means; `ID` stands for a subflow's id.
    pub state: &'static [(&'static str, &'static str)],
    /// It assigns data to subflows that have no room yet.
    pub queues_ahead: bool,
    /// Builds it, at the start of a connection.
    pub build: fn(&Params) -> Box<dyn Scheduler>,
}

/// A decorator of the list: it wraps any scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Decorator {
    /// The name after the `+`.
    pub name: &'static str,
    /// The idea in one line.
    pub idea: &'static str,
    /// The page.
    pub page: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// The values that it adds to a saved state.
    pub state: &'static [(&'static str, &'static str)],
    /// Wraps a scheduler.
    pub wrap: fn(Box<dyn Scheduler>, &Params) -> Box<dyn Scheduler>,
}

impl Listed for Entry {
    const WHAT: &'static str = "scheduler";

    fn list() -> &'static [Entry] {
        crate::schedulers()
    }

    fn about(&self) -> About {
        let Entry { name, aliases, idea, page, params, state, .. } = *self;
        About { name, aliases, idea, page, params, state }
    }
}

impl Listed for Decorator {
    const WHAT: &'static str = "decorator";

    fn list() -> &'static [Decorator] {
        DECORATORS
    }

    fn about(&self) -> About {
        let Decorator { name, idea, page, params, state, .. } = *self;
        About { name, aliases: &[], idea, page, params, state }
    }
}
