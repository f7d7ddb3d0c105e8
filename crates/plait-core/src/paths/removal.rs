//! Removal and return of addresses: REMOVE_ADDR (RFC 8684 section 3.4.2).

use crate::data::agreement::Mode;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::seldom::Seldom;
use crate::tcp::pending::ControlSegment;
use plait_base::{PathId, ServerAddress, SubflowSet, Time};
use plait_wire::Mptcp;

/// Unanswered keep-alive probes before a subflow of a removed address is closed, one per timeout.
pub(crate) const KEEP_ALIVES: u8 = 3;

/// A subflow to a removed address of the peer: it is closed unless it answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    pub(crate) index: usize,
    pub(crate) until: Time,
    pub(crate) left: u8,
}

/// Removed addresses.
#[derive(Default, Debug)]
pub(crate) struct Removals {
    /// Paths on which this client has no address.
    pub(crate) gone: Seldom<PathId>,
    /// The peer has removed the address of the first subflow.
    pub(crate) first_lost: bool,
    pub(crate) checks: Seldom<Check>,
}

impl Removals {
    /// Returns the part that a restarted connection keeps.
    pub(crate) fn for_new_attempt(&mut self) -> Removals {
        Removals { gone: core::mem::take(&mut self.gone), ..Removals::default() }
    }

    /// Returns true if this client has no address on `path`.
    pub(crate) fn is_gone(&self, path: PathId) -> bool {
        self.gone.contains(&path)
    }

    /// Returns when the next subflow is checked.
    pub(crate) fn next(&self) -> Time {
        self.checks.iter().map(|check| check.until).min().unwrap_or(Time::NEVER)
    }
}

/// The subflows to a removed address.
pub(crate) struct Removed {
    /// They were not established yet.
    pub(crate) ending: SubflowSet,
    /// They are probed.
    pub(crate) doubtful: SubflowSet,
}

impl Paths {
    /// Returns true if a subflow may be opened from `path` to `server`.
    pub(crate) fn may_join(&self, path: PathId, server: ServerAddress) -> bool {
        let known = if server == self.addresses.first.server() {
            !self.addresses.removals.first_lost && !self.addresses.first_denied
        } else {
            self.addresses.knows(server)
        };
        known && !self.addresses.removals.is_gone(path)
    }

    /// Notes that this client's address on `path` is gone; no further subflow is opened there.
    /// Returns false if that was already noted or has no effect.
    pub(crate) fn forget_path(&mut self, data: &DataLevel, path: PathId) -> bool {
        let matters =
            self.client && !data.closing.failed() && !self.addresses.removals.is_gone(path);
        if matters {
            self.addresses.removals.gone.push(path);
            self.joins.waiting.retain(|target| target.path != path);
        }
        matters
    }

    /// Returns the subflows that end because the address on `path` is gone. If the connection still
    /// dials there (`dialling`) and has no other path, its handshake continues when the address
    /// returns.
    pub(crate) fn stranded(&self, path: PathId, dialling: bool) -> SubflowSet {
        self.subflows.set_of(|s| s.address.path() == path && !(dialling && s.id.index() == 0))
    }

    /// Queues REMOVE_ADDR for the address on `path`.
    pub(crate) fn tell_lost(&mut self, data: &DataLevel, path: PathId) {
        if data.agreed.mode() == Mode::Multipath {
            let id = self.own_id(self.addresses.first.on_path(path));
            self.addresses.signal(Mptcp::RemoveAddr([id].into()), None);
        }
    }

    /// Notes that the client has an address on `path` again, and queues its subflows. Returns true
    /// if there are any.
    pub(crate) fn regain(&mut self, data: &DataLevel, path: PathId) -> bool {
        if !self.addresses.removals.is_gone(path) {
            return false;
        }
        self.addresses.removals.gone.retain(|gone| *gone != path);
        let id = self.own_id(self.addresses.first.on_path(path));
        self.addresses.forget_signal(&Mptcp::RemoveAddr([id].into()));
        if data.plain() || data.closing.failed() || self.dials_on(data, path) {
            return false;
        }
        let targets = self.all_targets();
        self.joins.waiting.extend(targets.into_iter().filter(|target| target.path == path));
        self.joins.rejoins = 0;
        true
    }

    /// Removes the peer's address `id`; no further subflow is opened there.
    fn forget_address(&mut self, id: u8) {
        let number = match id {
            0 => Some(self.addresses.first.server()),
            id => self.addresses.forget_peer(id),
        };
        // A server opens no subflows: it has the client's addresses only from their subflows.
        if let Some(number) = number.filter(|_| self.client) {
            self.addresses.removals.first_lost |= number == self.addresses.first.server();
            self.joins.waiting.retain(|target| target.server != number);
        }
    }

    /// Probes the subflow at `index`. Until it answers, it counts as failed, and others carry its
    /// data. Returns false if it is already being probed.
    fn start_check(&mut self, now: Time, index: usize) -> bool {
        if self.addresses.removals.checks.iter().any(|check| check.index == index) {
            return false;
        }
        let subflow = &mut self.subflows[index];
        subflow.status.suspect();
        subflow.pending.add(ControlSegment::WindowProbe);
        let until = now + subflow.sender.rtt.base_rto();
        self.addresses.removals.checks.push(Check { index, until, left: KEEP_ALIVES - 1 });
        true
    }

    /// Continues the checks of probed subflows. Returns the ones that have not answered.
    pub(crate) fn check_again(&mut self, now: Time) -> SubflowSet {
        let mut silent = SubflowSet::EMPTY;
        for mut check in self.addresses.removals.checks.take() {
            let subflow = &mut self.subflows[check.index];
            // It has answered, or has ended.
            if !subflow.status.pf() || !subflow.state.synchronised() {
                continue;
            }
            if check.until <= now {
                if check.left == 0 {
                    silent.insert(subflow.id);
                    continue;
                }
                check.left -= 1;
                check.until = now + subflow.sender.rtt.base_rto();
                subflow.pending.add(ControlSegment::WindowProbe);
            }
            self.addresses.removals.checks.push(check);
        }
        silent
    }

    /// Removes the peer's address `id`. Returns the subflows there that end at once, and others
    /// that must answer first, because the REMOVE_ADDR can be forged.
    pub(crate) fn remove_address(&mut self, now: Time, id: u8) -> Removed {
        self.forget_address(id);
        let mut removed = Removed { ending: SubflowSet::EMPTY, doubtful: SubflowSet::EMPTY };
        for index in 0..self.subflows.len() {
            let subflow = &self.subflows[index];
            let own = subflow.id;
            if subflow.shake.peer_id != id {
            } else if !subflow.state.synchronised() {
                removed.ending.insert(own);
            } else if self.start_check(now, index) {
                removed.doubtful.insert(own);
            }
        }
        removed
    }
}
