//! Records of the connections of a client.

use plait_base::{ConnId, Time};
use std::fmt;

/// The result of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// All bytes were sent and received.
    Complete,
    /// The connection failed.
    Failed,
    /// The client aborted it as planned.
    Left,
    /// The client waited for too long.
    GaveUp,
}

/// The record of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visited {
    pub(crate) outcome: Outcome,
    pub(crate) began: Time,
    pub(super) ended: Time,
    /// It was established.
    pub(crate) established: bool,
    /// The server accepted it.
    pub(crate) accepted: bool,
    /// It may fail without an error of the server: see `Client::lose`, `Client::drain` and
    /// `Client::lose_address`.
    pub(crate) excused: bool,
    /// The server no longer knows it, and the client may not have noticed: see `Client::lose` and
    /// `Client::miss_reset`.
    pub(super) forgotten: bool,
    /// It was complete, except that the client's FIN was not acknowledged: see
    /// `Client::lose_address`.
    pub(crate) end_lost: bool,
}

impl Visited {
    /// Returns true if it was established and then waited in vain. A refused connection ends at
    /// once. A connection that the server has lost ends at once, too, unless its address has no
    /// number any more.
    pub(crate) fn waits_established(&self) -> bool {
        self.established && !self.forgotten && self.outcome == Outcome::GaveUp
    }
}

impl fmt::Display for Visited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Visited { outcome, began, ended, established, accepted, .. } = self;
        write!(f, "{outcome:?}, began {began:?}, ended {ended:?}, established {established}, ")?;
        write!(f, "accepted {accepted}")
    }
}

/// The current connection, as the server and the client see it.
#[derive(Default)]
pub(super) struct Attempt {
    pub(super) began: Time,
    pub(super) established: bool,
    /// Local ports of its subflows, and the ports from which the server has accepted a connection.
    /// After a redial on another path the ports differ.
    pub(super) ports: Vec<u16>,
    pub(super) accepted: Vec<u16>,
    pub(super) excused: bool,
    pub(super) forgotten: bool,
}

impl Attempt {
    /// Returns true if the server has accepted it.
    pub(super) fn is_accepted(&self) -> bool {
        self.ports.iter().any(|port| self.accepted.contains(port))
    }
}

/// The earlier connections.
#[derive(Default)]
pub(super) struct Past {
    pub(super) visited: Vec<Visited>,
    /// Complete connections of plain TCP whose FIN may be unacknowledged, each with its index in
    /// `visited`.
    pub(super) ends: Vec<(ConnId, usize)>,
}
