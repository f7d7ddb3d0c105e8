//! Addresses that go away and come back: REMOVE_ADDR (RFC 8684 section 3.4.2).

use super::joins::Target;
use super::{Connection, Context, Mode};
use crate::error::Error;
use crate::seldom::Seldom;
use crate::tcp::pending::{Cause, ControlSegment};
use crate::tcp::state::State;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use plait_base::{Dsn, PathId, ServerAddress, Time};
use plait_wire::{Mptcp, ResetReason};

/// Keep-alives that a subflow of a removed address may leave unanswered, one a timeout.
const KEEP_ALIVES: u8 = 3;

/// A subflow whose peer's address was removed: it is closed unless it answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    index: usize,
    until: Time,
    left: u8,
}

/// What has gone away.
#[derive(Default, Debug)]
pub(super) struct Removals {
    /// Paths on which this client has no address.
    gone: Seldom<PathId>,
    /// The peer has removed the address of the first subflow.
    pub(super) first_lost: bool,
    checks: Seldom<Check>,
}

impl Removals {
    /// What a connection that begins again keeps of them.
    pub(super) fn for_new_attempt(&mut self) -> Removals {
        Removals { gone: core::mem::take(&mut self.gone), ..Removals::default() }
    }

    pub(super) fn is_gone(&self, path: PathId) -> bool {
        self.gone.contains(&path)
    }

    pub(super) fn next(&self) -> Time {
        self.checks.iter().map(|check| check.until).min().unwrap_or(Time::NEVER)
    }
}

impl Connection {
    /// This client's address on `path` is gone: what it carried goes elsewhere, and the peer is
    /// told on another subflow. Nothing is sent on the path itself.
    pub(crate) fn lose_address(&mut self, ctx: &mut Context<'_>, path: PathId) {
        if !self.client || self.failed || self.addresses.removals.is_gone(path) {
            return;
        }
        self.addresses.removals.gone.push(path);
        self.joins.waiting.retain(|target| target.path != path);
        let dialling = self.dials_on(path);
        if dialling && self.try_next_path(ctx) {
            return;
        }
        for index in 0..self.subflows.len() {
            // With nowhere else to go the handshake goes on until the address is back.
            if self.subflows[index].address.path() == path && !(dialling && index == 0) {
                self.kill_subflow(ctx, index, false);
            }
        }
        if self.mode == Mode::Multipath {
            let id = self.own_id(self.addresses.first.on_path(path));
            self.addresses.signal(Mptcp::RemoveAddr([id].into()), None);
        }
        if self.awaits_subflow() {
            self.start_joins(ctx);
        }
    }

    /// The client has an address on `path` again: its subflows are opened anew.
    pub(crate) fn regain_address(&mut self, ctx: &mut Context<'_>, path: PathId) {
        if !self.addresses.removals.is_gone(path) {
            return;
        }
        self.addresses.removals.gone.retain(|gone| *gone != path);
        let id = self.own_id(self.addresses.first.on_path(path));
        self.addresses.forget_signal(&Mptcp::RemoveAddr([id].into()));
        if self.plain() || self.failed || self.dials_on(path) {
            return;
        }
        let targets = self.all_targets();
        self.joins.waiting.extend(targets.into_iter().filter(|target| target.path == path));
        self.joins.rejoins = 0;
        self.start_joins(ctx);
    }

    /// Whether the first subflow is on `path` and the peer may not have our key yet. A connection of plain
    /// TCP can only begin anew before its SYN is answered.
    fn dials_on(&self, path: PathId) -> bool {
        let first = &self.subflows[0];
        let unknown = !self.joins.peer_dss_seen && self.queue.una() == Dsn::ZERO;
        let early = !self.plain() || first.state == State::SynSent;
        unknown && early && !first.shake.join && first.address.path() == path
    }

    /// One of this server's announced addresses is gone. False where it was not announced.
    pub(crate) fn withdraw(&mut self, ctx: &mut Context<'_>, address: IpAddr) -> Result<(), Error> {
        let unknown = Error::NotAnnounced(address);
        let number = ctx.directory.number(address).filter(|_| !self.client).ok_or(unknown)?;
        let id = self.addresses.take_back(address).ok_or(unknown)?;
        if self.spec.addresses.contains(&address) {
            Arc::make_mut(&mut self.spec).addresses.retain(|own| *own != address);
        }
        for index in 0..self.subflows.len() {
            if self.subflows[index].address.server() == number {
                self.kill_subflow(ctx, index, false);
            }
        }
        self.addresses.signal(Mptcp::RemoveAddr([id].into()), None);
        self.set_address_timer();
        Ok(())
    }

    /// REMOVE_ADDR: nothing more is opened to these addresses, and their subflows are closed unless
    /// they answer: anybody could have sent it.
    pub(super) fn on_remove_addr(&mut self, ctx: &mut Context<'_>, ids: &[u8]) {
        if self.mode != Mode::Multipath {
            return;
        }
        for id in ids {
            let number = match *id {
                0 => Some(self.addresses.first.server()),
                id => self.addresses.forget_peer(id),
            };
            // A server opens nothing; where the client's addresses are is told by their subflows.
            if let Some(number) = number.filter(|_| self.client) {
                self.addresses.removals.first_lost |= number == self.addresses.first.server();
                self.joins.waiting.retain(|target| target.server != number);
            }
            for index in 0..self.subflows.len() {
                let subflow = &self.subflows[index];
                if subflow.shake.peer_id != *id {
                } else if subflow.state.synchronised() {
                    self.start_check(ctx, index);
                } else {
                    self.kill_subflow(ctx, index, false);
                }
            }
        }
        self.set_address_timer();
    }

    /// Asks for a sign of life; until it comes the subflow counts as failed, and others carry on.
    fn start_check(&mut self, ctx: &mut Context<'_>, index: usize) {
        if self.addresses.removals.checks.iter().any(|check| check.index == index) {
            return;
        }
        let subflow = &mut self.subflows[index];
        subflow.status.pf = true;
        subflow.pending.add(ControlSegment::WindowProbe);
        let until = ctx.now + subflow.rtt.base_rto();
        self.addresses.removals.checks.push(Check { index, until, left: KEEP_ALIVES - 1 });
        self.reinject_outstanding(index);
        self.notify_subflows(ctx);
    }

    /// Sees to the subflows that were asked for a sign of life.
    pub(super) fn on_check_timer(&mut self, ctx: &mut Context<'_>) {
        for mut check in self.addresses.removals.checks.take() {
            let subflow = &mut self.subflows[check.index];
            // It has answered, or is gone.
            if !subflow.status.pf || !subflow.state.synchronised() {
                continue;
            }
            if check.until <= ctx.now {
                if check.left == 0 {
                    let cause = Cause::Reason(ResetReason::Unspecified);
                    self.reset_subflow(ctx, check.index, cause);
                    continue;
                }
                check.left -= 1;
                check.until = ctx.now + subflow.rtt.base_rto();
                subflow.pending.add(ControlSegment::WindowProbe);
            }
            self.addresses.removals.checks.push(check);
        }
    }

    /// Whether a subflow may be opened from `path` to `server`.
    pub(super) fn may_join(&self, path: PathId, server: ServerAddress) -> bool {
        let known = if server == self.addresses.first.server() {
            !self.addresses.removals.first_lost && !self.addresses.first_denied
        } else {
            self.addresses.knows(server)
        };
        known && !self.addresses.removals.is_gone(path)
    }

    /// Every subflow that may be opened now, those that are open included.
    pub(super) fn all_targets(&self) -> Vec<Target> {
        let mut targets = self.joins_to(self.addresses.first.server(), None);
        for known in self.addresses.peers() {
            targets.extend(self.joins_to(known.number, known.port));
        }
        targets.retain(|target| self.may_join(target.path, target.server));
        targets
    }

    /// Those of them that are neither open nor waiting to be.
    pub(super) fn missing_targets(&self) -> Vec<Target> {
        let mut missing = self.all_targets();
        let mut strike = |path, server, port| {
            let known = |it: &Target| (it.path, it.server, it.port) == (path, server, port);
            if let Some(at) = missing.iter().position(known) {
                missing.remove(at);
            }
        };
        self.open_addresses().for_each(|it| strike(it.path(), it.server(), it.remote_port));
        self.joins.waiting.iter().for_each(|it| strike(it.path, it.server, it.port));
        missing.retain(|target| !self.joins.is_barred(target.path));
        missing
    }
}
