//! Addresses that go away and come back: REMOVE_ADDR (RFC 8684 section 3.4.2).

use crate::data::agreement::Mode;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::seldom::Seldom;
use crate::tcp::pending::ControlSegment;
use plait_base::{PathId, ServerAddress, SubflowSet, Time};
use plait_wire::Mptcp;

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

    /// Whether this client has no address on `path`.
    pub(crate) fn is_gone(&self, path: PathId) -> bool {
        self.gone.contains(&path)
    }

    /// When a subflow is looked after next.
    pub(crate) fn next(&self) -> Time {
        self.checks.iter().map(|check| check.until).min().unwrap_or(Time::NEVER)
    }
}

/// The subflows to an address that is gone.
pub(crate) struct Removed {
    /// They were not established yet.
    pub(crate) ending: SubflowSet,
    /// They are asked for a sign of life.
    pub(crate) doubtful: SubflowSet,
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

    /// This client's address on `path` is gone: nothing more is opened there. Returns false if that was known,
    /// or does not matter.
    pub(crate) fn forget_path(&mut self, data: &DataLevel, path: PathId) -> bool {
        let matters = self.client && !data.closing.failed && !self.addresses.removals.is_gone(path);
        if matters {
            self.addresses.removals.gone.push(path);
            self.joins.waiting.retain(|target| target.path != path);
        }
        matters
    }

    /// The subflows that end because the address on `path` is gone. If the connection still dials there
    /// (`dialling`) with nowhere else to go, its handshake goes on until the address is back.
    pub(crate) fn stranded(&self, path: PathId, dialling: bool) -> SubflowSet {
        let on_path = self.subflows.iter().filter(|s| s.address.path() == path);
        on_path.map(|s| s.id).filter(|id| !(dialling && id.index() == 0)).collect()
    }

    /// Queues REMOVE_ADDR for the address on `path`.
    pub(crate) fn tell_lost(&mut self, data: &DataLevel, path: PathId) {
        if data.agreed.mode == Mode::Multipath {
            let id = self.own_id(self.addresses.first.on_path(path));
            self.addresses.signal(Mptcp::RemoveAddr([id].into()), None);
        }
    }

    /// The client has an address on `path` again: its subflows are to be opened anew. Returns whether there
    /// are any.
    pub(crate) fn regain(&mut self, data: &DataLevel, path: PathId) -> bool {
        if !self.addresses.removals.is_gone(path) {
            return false;
        }
        self.addresses.removals.gone.retain(|gone| *gone != path);
        let id = self.own_id(self.addresses.first.on_path(path));
        self.addresses.forget_signal(&Mptcp::RemoveAddr([id].into()));
        if data.plain() || data.closing.failed || self.dials_on(data, path) {
            return false;
        }
        let targets = self.all_targets();
        self.joins.waiting.extend(targets.into_iter().filter(|target| target.path == path));
        self.joins.rejoins = 0;
        true
    }

    /// The subflows to an address of this server that is gone.
    pub(crate) fn to_server(&self, number: ServerAddress) -> SubflowSet {
        let there = self.subflows.iter().filter(|s| s.address.server() == number);
        there.map(|s| s.id).collect()
    }

    /// The peer's address `id` is gone: nothing more is opened there.
    fn forget_address(&mut self, id: u8) {
        let number = match id {
            0 => Some(self.addresses.first.server()),
            id => self.addresses.forget_peer(id),
        };
        // A server opens nothing: it knows the client's addresses by their subflows.
        if let Some(number) = number.filter(|_| self.client) {
            self.addresses.removals.first_lost |= number == self.addresses.first.server();
            self.joins.waiting.retain(|target| target.server != number);
        }
    }

    /// Asks the subflow at `index` for a sign of life; until it comes the subflow counts as failed, and others
    /// carry on. Returns false if it was asked already.
    fn start_check(&mut self, now: Time, index: usize) -> bool {
        if self.addresses.removals.checks.iter().any(|check| check.index == index) {
            return false;
        }
        let subflow = &mut self.subflows[index];
        subflow.status.pf = true;
        subflow.pending.add(ControlSegment::WindowProbe);
        let until = now + subflow.sender.rtt.base_rto();
        self.addresses.removals.checks.push(Check { index, until, left: KEEP_ALIVES - 1 });
        true
    }

    /// Sees to the subflows that were asked for a sign of life. Returns those that have not answered.
    pub(crate) fn check_again(&mut self, now: Time) -> SubflowSet {
        let mut silent = SubflowSet::EMPTY;
        for mut check in self.addresses.removals.checks.take() {
            let subflow = &mut self.subflows[check.index];
            // It has answered, or is gone.
            if !subflow.status.pf || !subflow.state.synchronised() {
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

    /// The peer's address `id` is gone. Returns the subflows there that end at once, and those that must answer
    /// first: anybody could have sent the REMOVE_ADDR.
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
