//! The entries of the lists of schedulers and decorators.

use crate::{About, Params, Scheduler};
use alloc::boxed::Box;

/// A scheduler of the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its description. In a saved state, `ID` stands for the id of a subflow, `N` for a place in a list.
    pub about: About,
    /// It assigns data to subflows that have no room yet.
    pub queues_ahead: bool,
    /// Its sender spreads a burst that no acknowledgement clocks, unless the user decides otherwise.
    pub spreads_bursts: bool,
    /// Builds it, at the start of a connection.
    pub build: fn(&Params) -> Box<dyn Scheduler>,
}

/// A decorator of the list: it wraps any scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Decorator {
    /// Its description: the name after the `+`, and the values that it adds to a saved state.
    pub about: About,
    /// Wraps a scheduler.
    pub wrap: fn(Box<dyn Scheduler>, &Params) -> Box<dyn Scheduler>,
}
