//! Addresses: their identifiers, what this end announces and what the peer does (ADD_ADDR, RFC 8684
//! section 3.4.1).

use crate::config::Config;
use crate::conn::Connection;
use crate::conn::context::Context;
use crate::data::fallback::Mode;
use crate::error::Error;
use crate::paths::addresses::can_be_joined;
use crate::tcp::subflow::Address;
use alloc::sync::Arc;
use core::net::IpAddr;
use plait_wire::{AddAddr, Mptcp, add_addr_hmac, add_addr_hmac_matches};

impl Connection {
    /// Tells the client of an address of this end, now or when the handshake is complete.
    ///
    /// # Errors
    /// For a client and for plain TCP, and if there is no number left.
    pub(crate) fn announce(
        &mut self,
        ctx: &mut Context<'_>,
        address: IpAddr,
        port: Option<u16>,
    ) -> Result<(), Error> {
        let number = self.paths.announceable(ctx, &self.data, address)?;
        if !self.spec.addresses.contains(&address) {
            Arc::make_mut(&mut self.spec).addresses.push(address);
        }
        let Connection { paths, data, timers, .. } = self;
        paths.announce(ctx.now, data, timers, (number, address, port));
        Ok(())
    }

    /// The handshake is complete: the client is told of this end's further addresses.
    pub(super) fn announce_all(&mut self, ctx: &mut Context<'_>) {
        let spec = Arc::clone(&self.spec);
        for address in &spec.addresses {
            // One that cannot be announced on this connection is left out.
            self.announce(ctx, *address, None).ok();
        }
    }

    /// Announcements that were not echoed go out again; subflows that were asked for a sign of life
    /// are looked after.
    pub(super) fn on_address_timer(&mut self, ctx: &mut Context<'_>) {
        self.on_check_timer(ctx);
        for at in 0..self.paths.addresses.own.len() {
            let own = &mut self.paths.addresses.own[at];
            if own.again <= ctx.now {
                own.again = ctx.now + Config::ADD_ADDR_PERIOD;
                let own = *own;
                self.paths.tell_address(&self.data, own);
            }
        }
        self.paths.set_address_timer(&mut self.timers);
    }

    /// ADD_ADDR: an echo of ours, or an address of the peer. One with a wrong HMAC says nothing.
    pub(super) fn on_add_addr(&mut self, ctx: &mut Context<'_>, index: usize, add: &AddAddr) {
        let AddAddr { address_id: id, address, port, hmac } = *add;
        let Some(hmac) = hmac else { return self.paths.on_echo(&mut self.timers, add) };
        let Some(peer) = self.data.keys.peer.filter(|_| self.data.agreed.mode == Mode::Multipath)
        else {
            return;
        };
        let expected = add_addr_hmac(peer, self.data.keys.local, id, address, port);
        // Identifier 0 is that of the first subflow, which needs no announcement.
        if id == 0 || !add_addr_hmac_matches(expected, hmac) {
            return;
        }
        let echo = Mptcp::AddAddr(AddAddr { hmac: None, ..add.clone() });
        self.paths.addresses.signal(echo, Some(self.paths.subflows[index].id));
        if !self.paths.client || !can_be_joined(address) {
            return;
        }
        let Some(number) = self.paths.learn(ctx, &self.spec.config, id, address, port) else {
            return;
        };
        let here = |address: Address| {
            address.server() == number && port.is_none_or(|port| port == address.remote_port)
        };
        let waiting = self.paths.joins.waiting.iter().any(|target| target.server == number);
        if !waiting && !self.paths.open_addresses().any(here) {
            self.paths.joins.waiting.extend(self.paths.joins_to(&self.spec, number, port));
            self.start_joins(ctx);
        }
    }
}
