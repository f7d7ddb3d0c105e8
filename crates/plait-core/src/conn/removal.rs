//! Addresses that go away and come back: REMOVE_ADDR (RFC 8684 section 3.4.2).

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::data::fallback::Mode;
use crate::error::Error;
use crate::paths::removal::{Check, KEEP_ALIVES};
use crate::tcp::pending::{Cause, ControlSegment};
use alloc::sync::Arc;
use core::net::IpAddr;
use plait_base::PathId;
use plait_wire::{Mptcp, ResetReason};

impl Connection {
    /// This client's address on `path` is gone: what it carried goes elsewhere, and the peer is
    /// told on another subflow. Nothing is sent on the path itself.
    pub(crate) fn lose_address(&mut self, ctx: &mut Context<'_>, path: PathId) {
        if !self.paths.client
            || self.data.closing.failed
            || self.paths.addresses.removals.is_gone(path)
        {
            return;
        }
        self.paths.addresses.removals.gone.push(path);
        self.paths.joins.waiting.retain(|target| target.path != path);
        let dialling = self.paths.dials_on(&self.data, path);
        if dialling && self.try_next_path(ctx) {
            return;
        }
        for index in 0..self.paths.subflows.len() {
            // With nowhere else to go the handshake goes on until the address is back.
            if self.paths.subflows[index].address.path() == path && !(dialling && index == 0) {
                self.kill_subflow(ctx, index, false);
            }
        }
        if self.data.agreed.mode == Mode::Multipath {
            let id = self.paths.own_id(&self.spec, self.paths.addresses.first.on_path(path));
            self.paths.addresses.signal(Mptcp::RemoveAddr([id].into()), None);
        }
        if self.timers.awaits_subflow() {
            self.start_joins(ctx);
        }
    }

    /// The client has an address on `path` again: its subflows are opened anew.
    pub(crate) fn regain_address(&mut self, ctx: &mut Context<'_>, path: PathId) {
        if !self.paths.addresses.removals.is_gone(path) {
            return;
        }
        self.paths.addresses.removals.gone.retain(|gone| *gone != path);
        let id = self.paths.own_id(&self.spec, self.paths.addresses.first.on_path(path));
        self.paths.addresses.forget_signal(&Mptcp::RemoveAddr([id].into()));
        if self.data.plain() || self.data.closing.failed || self.paths.dials_on(&self.data, path) {
            return;
        }
        let targets = self.paths.all_targets(&self.spec);
        self.paths.joins.waiting.extend(targets.into_iter().filter(|target| target.path == path));
        self.paths.joins.rejoins = 0;
        self.start_joins(ctx);
    }

    /// One of this server's announced addresses is gone. False where it was not announced.
    pub(crate) fn withdraw(&mut self, ctx: &mut Context<'_>, address: IpAddr) -> Result<(), Error> {
        let unknown = Error::NotAnnounced(address);
        let number = ctx.directory.number(address).filter(|_| !self.paths.client).ok_or(unknown)?;
        let id = self.paths.addresses.take_back(address).ok_or(unknown)?;
        if self.spec.addresses.contains(&address) {
            Arc::make_mut(&mut self.spec).addresses.retain(|own| *own != address);
        }
        for index in 0..self.paths.subflows.len() {
            if self.paths.subflows[index].address.server() == number {
                self.kill_subflow(ctx, index, false);
            }
        }
        self.paths.addresses.signal(Mptcp::RemoveAddr([id].into()), None);
        self.paths.set_address_timer(&mut self.timers);
        Ok(())
    }

    /// REMOVE_ADDR: nothing more is opened to these addresses, and their subflows are closed unless
    /// they answer: anybody could have sent it.
    pub(super) fn on_remove_addr(&mut self, ctx: &mut Context<'_>, ids: &[u8]) {
        if self.data.agreed.mode != Mode::Multipath {
            return;
        }
        for id in ids {
            let number = match *id {
                0 => Some(self.paths.addresses.first.server()),
                id => self.paths.addresses.forget_peer(id),
            };
            // A server opens nothing; where the client's addresses are is told by their subflows.
            if let Some(number) = number.filter(|_| self.paths.client) {
                self.paths.addresses.removals.first_lost |=
                    number == self.paths.addresses.first.server();
                self.paths.joins.waiting.retain(|target| target.server != number);
            }
            for index in 0..self.paths.subflows.len() {
                let subflow = &self.paths.subflows[index];
                if subflow.shake.peer_id != *id {
                } else if subflow.state.synchronised() {
                    self.start_check(ctx, index);
                } else {
                    self.kill_subflow(ctx, index, false);
                }
            }
        }
        self.paths.set_address_timer(&mut self.timers);
    }

    /// Asks for a sign of life; until it comes the subflow counts as failed, and others carry on.
    fn start_check(&mut self, ctx: &mut Context<'_>, index: usize) {
        if self.paths.addresses.removals.checks.iter().any(|check| check.index == index) {
            return;
        }
        let subflow = &mut self.paths.subflows[index];
        subflow.status.pf = true;
        subflow.pending.add(ControlSegment::WindowProbe);
        let until = ctx.now + subflow.rtt.base_rto();
        self.paths.addresses.removals.checks.push(Check { index, until, left: KEEP_ALIVES - 1 });
        self.reinject_outstanding(index);
        self.notify_subflows(ctx);
    }

    /// Sees to the subflows that were asked for a sign of life.
    pub(super) fn on_check_timer(&mut self, ctx: &mut Context<'_>) {
        for mut check in self.paths.addresses.removals.checks.take() {
            let subflow = &mut self.paths.subflows[check.index];
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
            self.paths.addresses.removals.checks.push(check);
        }
    }
}
