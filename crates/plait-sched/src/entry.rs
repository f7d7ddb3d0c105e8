//! The entries of the lists of schedulers and decorators.

use crate::{Param, Params, Scheduler};
use alloc::boxed::Box;

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
    /// The values of a saved state, each with its meaning. `ID` stands for the id of a subflow, `N` for a place in
    /// a list.
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
