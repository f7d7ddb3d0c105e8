//! Removal and return of addresses: REMOVE_ADDR (RFC 8684 section 3.4.2).

use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::paths::slots::Slots;
use crate::seldom::Seldom;
use crate::tcp::pending::ControlSegment;
use crate::tcp::subflow::Subflow;
use plait_base::{PathId, SubflowId, SubflowSet, Time};
use plait_wire::Mptcp;

/// Unanswered keep-alive probes before a subflow of a removed address is closed, one per timeout.
pub(crate) const KEEP_ALIVES: u8 = 3;

/// A subflow to a removed address of the peer: it is closed unless it answers.
#[derive(Clone, Copy, Debug)]
struct Check {
    id: SubflowId,
    until: Time,
    left: u8,
}

/// Removed addresses.
#[derive(Default, Debug)]
pub(crate) struct Removals {
    /// Paths on which this client has no address.
    gone: Seldom<PathId>,
    checks: Seldom<Check>,
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

    /// Notes that this client's address on `path` is gone.
    fn lose(&mut self, path: PathId) {
        self.gone.push(path);
    }

    /// Notes that this client has an address on `path` again. Returns false if it had one.
    fn regain(&mut self, path: PathId) -> bool {
        let gone = self.is_gone(path);
        self.gone.retain(|it| *it != path);
        gone
    }

    /// Probes `subflow`, whose address the peer has removed. Until it answers, it counts as failed,
    /// and others carry its data. Returns false if it is already being probed.
    fn start_check(&mut self, now: Time, subflow: &mut Subflow) -> bool {
        let id = subflow.id();
        if self.checks.iter().any(|check| check.id == id) {
            return false;
        }
        subflow.doubt();
        let until = now + subflow.sender().rtt.base_rto();
        self.checks.push(Check { id, until, left: KEEP_ALIVES - 1 });
        true
    }

    /// Continues the checks of probed subflows. Returns the ones that have not answered.
    fn check_again(&mut self, now: Time, subflows: &mut Slots) -> SubflowSet {
        let mut silent = SubflowSet::EMPTY;
        for mut check in self.checks.take() {
            let subflow = &mut subflows[check.id];
            // It has answered, or has ended.
            if !subflow.status().pf() || !subflow.state().synchronised() {
                continue;
            }
            if check.until <= now {
                if check.left == 0 {
                    silent.insert(subflow.id());
                    continue;
                }
                check.left -= 1;
                check.until = now + subflow.sender().rtt.base_rto();
                subflow.queue_control(ControlSegment::WindowProbe);
            }
            self.checks.push(check);
        }
        silent
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
    /// Notes that this client's address on `path` is gone; no further subflow is opened there.
    /// Returns false if that was already noted or has no effect.
    pub(crate) fn forget_path(&mut self, data: &DataLevel, path: PathId) -> bool {
        let matters = self.client && !data.closing().failed() && !self.addresses.is_gone(path);
        if matters {
            self.addresses.removals().lose(path);
            self.joins.drop_if(|target| target.path == path);
        }
        matters
    }

    /// Returns the subflows that end because the address on `path` is gone. If the connection still
    /// dials there (`dialling`) and has no other path, its handshake continues when the address
    /// returns.
    pub(crate) fn stranded(&self, path: PathId, dialling: bool) -> SubflowSet {
        self.subflows
            .set_of(|s| s.address().path() == path && !(dialling && s.id() == SubflowId::FIRST))
    }

    /// Queues REMOVE_ADDR for the address on `path`.
    pub(crate) fn tell_lost(&mut self, data: &DataLevel, path: PathId) {
        if data.speaks_multipath() {
            let id = self.own_id(self.addresses.first().on_path(path));
            self.addresses.signal(Mptcp::RemoveAddr([id].into()), None);
        }
    }

    /// Notes that the client has an address on `path` again, and queues its subflows. Returns true
    /// if there are any.
    pub(crate) fn regain(&mut self, data: &DataLevel, path: PathId) -> bool {
        if !self.addresses.removals().regain(path) {
            return false;
        }
        let id = self.own_id(self.addresses.first().on_path(path));
        self.addresses.forget_signal(&Mptcp::RemoveAddr([id].into()));
        if data.plain() || data.closing().failed() || self.subflows.dials_on(data, path) {
            return false;
        }
        let targets = self.all_targets();
        self.joins.add(targets.into_iter().filter(|target| target.path == path));
        self.joins.forget_rejoins();
        true
    }

    /// Removes the peer's address `id`. Returns the subflows there that end at once, and others
    /// that must answer first, because the REMOVE_ADDR can be forged.
    pub(crate) fn remove_address(&mut self, now: Time, id: u8) -> Removed {
        // A server opens no subflows: it has the client's addresses only from their subflows.
        if self.client
            && let Some(number) = self.addresses.forget(id)
        {
            self.joins.drop_if(|target| target.server == number);
        }
        let mut removed = Removed { ending: SubflowSet::EMPTY, doubtful: SubflowSet::EMPTY };
        for subflow in self.subflows.iter_mut().filter(|s| s.origin().peer_id == id) {
            if !subflow.state().synchronised() {
                removed.ending.insert(subflow.id());
            } else if self.addresses.removals().start_check(now, subflow) {
                removed.doubtful.insert(subflow.id());
            }
        }
        removed
    }

    /// Continues the checks of probed subflows. Returns the ones that have not answered.
    pub(crate) fn check_again(&mut self, now: Time) -> SubflowSet {
        self.addresses.removals().check_again(now, &mut self.subflows)
    }
}
