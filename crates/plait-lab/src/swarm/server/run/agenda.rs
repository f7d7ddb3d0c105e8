//! Future events, ordered by time.

use super::guests::Guest;
use plait_base::Time;
use std::collections::BTreeMap;

/// An event.
pub(super) enum Event {
    Arrive(Vec<u8>),
    Deliver(Guest, Vec<u8>),
    Come(usize, u32),
    Wake(usize),
    Program(usize),
    Blow(usize, bool),
    Sample,
}

/// Events by time. Simultaneous events happen in the order in which they were added.
#[derive(Default)]
pub(super) struct Agenda {
    events: BTreeMap<(Time, u64), Event>,
    /// Number of events added so far.
    count: u64,
}

impl Agenda {
    pub(super) fn add(&mut self, time: Time, event: Event) {
        self.count += 1;
        self.events.insert((time, self.count), event);
    }

    /// Returns the time of the first event.
    pub(super) fn next(&self) -> Option<Time> {
        self.events.first_key_value().map(|((time, _), _)| *time)
    }

    /// Removes and returns the first event if it is due.
    pub(super) fn poll(&mut self, now: Time) -> Option<Event> {
        let entry = self.events.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}
