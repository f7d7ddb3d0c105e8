//! Dialled connections that are given up if they are not established in time.

use plait_base::{ConnId, Span, Time};
use std::collections::VecDeque;

/// The connections that have been dialled, and how long each may take.
#[derive(Default)]
pub(crate) struct Dials {
    /// How long each may take; none is given up without it.
    pub(crate) patience: Option<Span>,
    /// The deadline of each, in order.
    pending: VecDeque<(Time, ConnId)>,
}

impl Dials {
    /// Adds a connection dialled at `now`.
    pub(crate) fn add(&mut self, now: Time, conn: ConnId) {
        if let Some(patience) = self.patience {
            self.pending.push_back((now + patience, conn));
        }
    }

    /// Returns the first deadline.
    pub(crate) fn next(&self) -> Time {
        self.pending.front().map_or(Time::NEVER, |(at, _)| *at)
    }

    /// Removes and returns a connection whose deadline has passed.
    pub(crate) fn poll_expired(&mut self, now: Time) -> Option<ConnId> {
        let (_, conn) = *self.pending.front().filter(|(at, _)| *at <= now)?;
        self.pending.pop_front();
        Some(conn)
    }
}
