//! Addresses that go away and come back: REMOVE_ADDR (RFC 8684 section 3.4.2).

use crate::paths::Paths;
use crate::seldom::Seldom;
use plait_base::{PathId, ServerAddress, Time};

/// Keep-alives that a subflow of a removed address may leave unanswered, one a timeout.
pub(crate) const KEEP_ALIVES: u8 = 3;

/// A subflow whose peer's address was removed: it is closed unless it answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    pub(crate) index: usize,
    pub(crate) until: Time,
    pub(crate) left: u8,
}

/// What has gone away.
#[derive(Default, Debug)]
pub(crate) struct Removals {
    /// Paths on which this client has no address.
    pub(crate) gone: Seldom<PathId>,
    /// The peer has removed the address of the first subflow.
    pub(crate) first_lost: bool,
    pub(crate) checks: Seldom<Check>,
}

impl Removals {
    /// What a connection that begins again keeps of them.
    pub(crate) fn for_new_attempt(&mut self) -> Removals {
        Removals { gone: core::mem::take(&mut self.gone), ..Removals::default() }
    }

    pub(crate) fn is_gone(&self, path: PathId) -> bool {
        self.gone.contains(&path)
    }

    pub(crate) fn next(&self) -> Time {
        self.checks.iter().map(|check| check.until).min().unwrap_or(Time::NEVER)
    }
}

impl Paths {
    /// Whether a subflow may be opened from `path` to `server`.
    pub(crate) fn may_join(&self, path: PathId, server: ServerAddress) -> bool {
        let known = if server == self.addresses.first.server() {
            !self.addresses.removals.first_lost && !self.addresses.first_denied
        } else {
            self.addresses.knows(server)
        };
        known && !self.addresses.removals.is_gone(path)
    }
}
