//! The connections of a client: what it has seen of each.

use plait_base::{ConnId, Time};
use std::fmt;

/// What came of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// All bytes went and came.
    Complete,
    /// The connection failed, which the client knows.
    Failed,
    /// The client ended it on purpose.
    Left,
    /// The client has waited for too long.
    GaveUp,
}

/// What a client has seen of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Visited {
    pub(crate) outcome: Outcome,
    pub(crate) began: Time,
    pub(super) ended: Time,
    /// It was there.
    pub(crate) established: bool,
    /// The server has accepted it.
    pub(crate) accepted: bool,
    /// It may have failed: see `Client::lose`, `Client::drain` and `Client::lose_address`.
    pub(crate) excused: bool,
    /// The server has forgotten it, and the client may not know: see `Client::lose` and `Client::miss_reset`.
    pub(super) forgotten: bool,
    /// It was complete, but for the acknowledgement of the client's FIN: see `Client::lose_address`.
    pub(crate) end_lost: bool,
}

impl Visited {
    /// It was established, and the client waited for more in vain. A refused connection ends at once, and so does
    /// one that the server has forgotten, unless the server has no number for its address since.
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

/// What the server knows of the present connection, and what the client does.
#[derive(Default)]
pub(super) struct Attempt {
    pub(super) began: Time,
    pub(super) established: bool,
    /// Ports of its subflows, and those that the server has accepted a connection from. A client that begins
    /// anew on another path has other ports.
    pub(super) ports: Vec<u16>,
    pub(super) accepted: Vec<u16>,
    pub(super) excused: bool,
    pub(super) forgotten: bool,
}

impl Attempt {
    /// Whether the server has accepted it.
    pub(super) fn is_accepted(&self) -> bool {
        self.ports.iter().any(|port| self.accepted.contains(port))
    }
}

/// The connections that are over.
#[derive(Default)]
pub(super) struct Past {
    pub(super) visited: Vec<Visited>,
    /// Complete connections of plain TCP whose FIN may still be unacknowledged, each with its place in `visited`.
    pub(super) ends: Vec<(ConnId, usize)>,
}
