//! The recorded events, for observers.

use crate::endpoint::Endpoint;
use crate::event::Event;
use alloc::vec::Vec;
use plait_base::ConnId;

impl Endpoint {
    /// Returns true if events were recorded since the last [`Endpoint::swap_events`].
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.shared.log.events.is_empty()
    }

    /// Swaps the events recorded since the last call, in order and each with its connection, for an
    /// empty list. The memory of that list is reused.
    pub fn swap_events(&mut self, events: &mut Vec<(ConnId, Event)>) {
        events.clear();
        core::mem::swap(&mut self.shared.log.events, events);
    }

    /// Returns the events recorded since the last [`Endpoint::clear_events`] or
    /// [`Endpoint::swap_events`], in order and each with its connection.
    #[must_use]
    pub fn events(&self) -> &[(ConnId, Event)] {
        &self.shared.log.events
    }

    /// Forgets the events recorded so far.
    pub fn clear_events(&mut self) {
        self.shared.log.events.clear();
    }
}
