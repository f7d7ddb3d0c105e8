//! Addresses: their identifiers, what this end announces and what the peer does (ADD_ADDR, RFC 8684
//! section 3.4.1).

use super::joins::Target;
use super::removal::Removals;
use super::segments::Transmit;
use super::timeouts::Awaited;
use super::{Connection, Context, Mode};
use crate::config::Config;
use crate::error::Error;
use crate::seldom::Seldom;
use crate::tcp::state::State;
use crate::tcp::subflow::Address;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use plait_base::{ServerAddress, SubflowId, Time};
use plait_wire::{AddAddr, Mptcp, add_addr_hmac, add_addr_hmac_matches};

/// Signals that wait for their turn at most; a peer that asks for more has to ask again.
const MAX_SIGNALS: usize = 16;

/// An address that this end has announced.
#[derive(Clone, Copy, Debug)]
struct Announced {
    id: u8,
    address: IpAddr,
    port: Option<u16>,
    /// When it is told again: never, once it was echoed.
    again: Time,
}

/// An address that the peer has announced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    id: u8,
    address: IpAddr,
    pub(super) port: Option<u16>,
    pub(super) number: ServerAddress,
}

/// An option that waits for a pure ACK.
#[derive(Debug)]
struct Signal {
    option: Mptcp,
    /// The subflow that it should go out on.
    on: Option<SubflowId>,
}

impl Signal {
    /// Whether it says something of the subflow that carries it, so that no other may.
    fn is_bound(&self) -> bool {
        matches!(self.option, Mptcp::Prio { .. })
    }
}

#[derive(Default, Debug)]
pub(crate) struct Addresses {
    /// Those of the first subflow, whose identifiers are zero.
    pub(crate) first: Address,
    /// The peer takes no further subflows to that of its own.
    pub(super) first_denied: bool,
    own: Seldom<Announced>,
    peers: Seldom<Known>,
    signals: Seldom<Signal>,
    pub(super) removals: Removals,
}

impl Addresses {
    /// The connection begins at `first`; what has gone away stays gone.
    pub(super) fn begin(&mut self, first: Address) {
        let removals = self.removals.for_new_attempt();
        *self = Addresses { first, removals, ..Addresses::default() };
    }

    /// Whether this end has announced an address.
    pub(super) fn has_announced(&self) -> bool {
        !self.own.is_empty()
    }

    /// What the peer has announced.
    pub(super) fn peers(&self) -> impl Iterator<Item = &Known> {
        self.peers.iter()
    }

    /// Whether the peer has announced the address with this number.
    pub(super) fn knows(&self, number: ServerAddress) -> bool {
        self.peers.iter().any(|known| known.number == number)
    }

    /// Forgets an address of the peer.
    pub(super) fn forget_peer(&mut self, id: u8) -> Option<ServerAddress> {
        let at = self.peers.iter().position(|known| known.id == id)?;
        Some(self.peers.remove(at)?.number)
    }

    /// Ends the announcement of an address of ours; its identifier.
    pub(super) fn take_back(&mut self, address: IpAddr) -> Option<u8> {
        let at = self.own.iter().position(|own| own.address == address)?;
        let id = self.own.remove(at)?.id;
        let told = |option: &Mptcp| matches!(option, Mptcp::AddAddr(add) if add.address == address);
        self.signals.retain(|signal| !told(&signal.option));
        Some(id)
    }

    /// Takes back an option that has not gone out.
    pub(super) fn forget_signal(&mut self, option: &Mptcp) {
        self.signals.retain(|signal| signal.option != *option);
    }

    /// Whether something waits to be told.
    pub(super) fn has_signals(&self) -> bool {
        !self.signals.is_empty()
    }

    /// Queues an option, once.
    pub(super) fn signal(&mut self, option: Mptcp, on: Option<SubflowId>) {
        let known = self.signals.iter().any(|signal| signal.option == option);
        if !known && self.signals.len() < MAX_SIGNALS {
            self.signals.push(Signal { option, on });
        }
    }

    /// Queues an option that concerns the subflow it is sent on.
    pub(super) fn signal_on(&mut self, option: Mptcp, subflow: SubflowId) {
        self.signals.push(Signal { option, on: Some(subflow) });
    }

    /// Takes back an MP_PRIO for a subflow.
    pub(super) fn forget_priority(&mut self, subflow: SubflowId) {
        let stale = |it: &Signal| it.on == Some(subflow) && it.is_bound();
        self.signals.retain(|signal| !stale(signal));
    }

    /// When an announcement is to be repeated, or a subflow looked after.
    fn next(&self) -> Time {
        let again = self.own.iter().map(|own| own.again).min().unwrap_or(Time::NEVER);
        again.min(self.removals.next())
    }
}

impl Connection {
    /// The identifier of our own address of a conversation: zero for that of the first subflow, and
    /// for every other one a number of its own (RFC 8684 section 3.2).
    pub(super) fn own_id(&self, address: Address) -> u8 {
        let first = self.addresses.first;
        if !self.client {
            return self.server_id(address.server());
        }
        if address.path() == first.path() {
            return 0;
        }
        let place = self.spec.paths.iter().position(|config| config.path == address.path());
        place.map_or(u8::MAX, |place| place as u8 + 1)
    }

    fn server_id(&self, number: ServerAddress) -> u8 {
        let first = self.addresses.first.server();
        match number {
            _ if number == first => 0,
            ServerAddress(0) => first.0,
            ServerAddress(number) => number,
        }
    }

    /// The handshake is complete: the client is told of this end's further addresses.
    pub(super) fn announce_all(&mut self, ctx: &mut Context<'_>) {
        let spec = Arc::clone(&self.spec);
        for address in &spec.addresses {
            // One that cannot be announced on this connection is left out.
            self.announce(ctx, *address, None).ok();
        }
    }

    /// Tells the client of an address of this end, now or when the handshake is complete. False for
    /// a client and for plain TCP, and where there is no identifier left.
    pub(crate) fn announce(
        &mut self,
        ctx: &mut Context<'_>,
        address: IpAddr,
        port: Option<u16>,
    ) -> Result<(), Error> {
        if self.client {
            return Err(Error::NotServer);
        }
        self.uses_multipath()?;
        let number = ctx.directory.number(address).ok_or(Error::UnknownAddress(address))?;
        if !self.spec.addresses.contains(&address) {
            Arc::make_mut(&mut self.spec).addresses.push(address);
        }
        if self.mode != Mode::Multipath {
            return Ok(());
        }
        let id = self.server_id(number);
        self.addresses.own.retain(|own| own.id != id);
        let again = ctx.now + Config::ADD_ADDR_PERIOD;
        let own = Announced { id, address, port, again };
        self.addresses.own.push(own);
        self.tell_address(own);
        self.set_address_timer();
        Ok(())
    }

    /// Refuses a connection that is over, or that is plain TCP or about to be.
    pub(super) fn uses_multipath(&self) -> Result<(), Error> {
        match self.failed {
            true => Err(Error::Failed),
            false if self.falls_back() => Err(Error::PlainTcp),
            false => Ok(()),
        }
    }

    fn tell_address(&mut self, own: Announced) {
        let Some(peer) = self.keys.peer else { return };
        let Announced { id, address, port, .. } = own;
        let hmac = Some(add_addr_hmac(self.keys.local, peer, id, address, port));
        let option = Mptcp::AddAddr(AddAddr { address_id: id, address, port, hmac });
        self.addresses.signal(option, None);
    }

    pub(super) fn set_address_timer(&mut self) {
        self.timers.set(Awaited::Address, self.addresses.next());
    }

    /// Announcements that were not echoed go out again; subflows that were asked for a sign of life
    /// are looked after.
    pub(super) fn on_address_timer(&mut self, ctx: &mut Context<'_>) {
        self.on_check_timer(ctx);
        for at in 0..self.addresses.own.len() {
            let own = &mut self.addresses.own[at];
            if own.again <= ctx.now {
                own.again = ctx.now + Config::ADD_ADDR_PERIOD;
                let own = *own;
                self.tell_address(own);
            }
        }
        self.set_address_timer();
    }

    /// ADD_ADDR: an echo of ours, or an address of the peer. One with a wrong HMAC says nothing.
    pub(super) fn on_add_addr(&mut self, ctx: &mut Context<'_>, index: usize, add: &AddAddr) {
        let AddAddr { address_id: id, address, port, hmac } = *add;
        let Some(hmac) = hmac else { return self.on_echo(add) };
        let Some(peer) = self.keys.peer.filter(|_| self.mode == Mode::Multipath) else { return };
        let expected = add_addr_hmac(peer, self.keys.local, id, address, port);
        // Identifier 0 is that of the first subflow, which needs no announcement.
        if id == 0 || !add_addr_hmac_matches(expected, hmac) {
            return;
        }
        let echo = Mptcp::AddAddr(AddAddr { hmac: None, ..add.clone() });
        self.addresses.signal(echo, Some(self.subflows[index].id));
        if !self.client || !can_be_joined(address) {
            return;
        }
        let Some(number) = self.learn(ctx, id, address, port) else { return };
        let here = |address: Address| {
            address.server() == number && port.is_none_or(|port| port == address.remote_port)
        };
        let waiting = self.joins.waiting.iter().any(|target| target.server == number);
        if !waiting && !self.open_addresses().any(here) {
            self.joins.waiting.extend(self.joins_to(number, port));
            self.start_joins(ctx);
        }
    }

    /// Books an address of the peer; `None` where there are too many, or its identifier is that of
    /// another one in use.
    fn learn(
        &mut self,
        ctx: &mut Context<'_>,
        id: u8,
        address: IpAddr,
        port: Option<u16>,
    ) -> Option<ServerAddress> {
        let in_use =
            self.subflows.iter().any(|s| s.state != State::Closed && s.shake.peer_id == id);
        let known = self.addresses.peers.iter().position(|known| known.id == id);
        let same = known.is_some_and(|at| self.addresses.peers[at].address == address);
        if in_use && !same {
            return None;
        }
        let limit = usize::from(self.spec.config.peer_addresses);
        if known.is_none() && self.addresses.peers.len() >= limit {
            return None;
        }
        let number = ctx.directory.learn(address)?;
        let learnt = Known { id, address, port, number };
        match known {
            Some(at) => self.addresses.peers[at] = learnt,
            None => self.addresses.peers.push(learnt),
        }
        Some(number)
    }

    /// The numbers of the peer's addresses that the connection uses, some of them more than once.
    pub(crate) fn servers(&self) -> impl Iterator<Item = ServerAddress> {
        let announced = self.addresses.peers().map(|known| known.number);
        let waiting = self.joins.waiting.iter().map(|target| target.server);
        let subflows = self.subflows.iter().map(|subflow| subflow.address.server());
        announced.chain(waiting).chain(subflows)
    }

    /// The subflows to an address of the peer: from every path, as many as asked for.
    pub(super) fn joins_to(&self, server: ServerAddress, port: Option<u16>) -> Vec<Target> {
        let port = port.unwrap_or(self.addresses.first.remote_port);
        let each = usize::from(self.spec.config.subflows.max(1));
        let targets = self.spec.paths.iter().flat_map(|config| {
            let target = Target { path: config.path, server, port, backup: config.backup };
            core::iter::repeat_n(target, each)
        });
        targets.filter(|target| !self.addresses.removals.is_gone(target.path)).collect()
    }

    fn on_echo(&mut self, echo: &AddAddr) {
        for own in &mut *self.addresses.own {
            if (own.id, own.address, own.port) == (echo.address_id, echo.address, echo.port) {
                own.again = Time::NEVER;
            }
        }
        self.set_address_timer();
    }

    /// The next signal, on a pure ACK: beside a mapping there is no room for most.
    pub(super) fn poll_signal(&mut self, ctx: &mut Context<'_>) -> Option<Transmit> {
        let open = |index: &usize| {
            let subflow = &self.subflows[*index];
            subflow.state.synchronised() && subflow.status.joined
        };
        let place = |signal: &Signal| signal.on.map(SubflowId::index).filter(open);
        // The subflow is gone, and what was to be said of it with it.
        while self.addresses.signals.first().is_some_and(|it| it.is_bound() && place(it).is_none())
        {
            self.addresses.signals.remove(0);
        }
        let wanted = place(self.addresses.signals.first()?);
        let index = wanted.or_else(|| self.best_for_signal())?;
        // The keys or the proof of a handshake take the place for now.
        if self.mode != Mode::Multipath || self.ack_option(index, None, None).is_some() {
            return None;
        }
        let signal = self.addresses.signals.remove(0)?;
        let seq = self.subflows[index].tx.nxt();
        let mut transmit = self.pure_ack(ctx, index, seq);
        let options = &mut transmit.segment.options;
        options.mptcp = Some(Box::new(signal.option));
        // A DATA_ACK that finds no room is told on its own.
        options.give_way();
        self.subflows[index].pending.ack |= options.dss.is_none();
        self.on_touched();
        Some(transmit)
    }
}

/// Whether an address is one that a connection may be opened to.
fn can_be_joined(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_loopback() || address.is_multicast() || address.is_unspecified() || broadcast)
}
