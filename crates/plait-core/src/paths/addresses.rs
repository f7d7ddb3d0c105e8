//! Addresses and their identifiers, and the announcements of both ends (ADD_ADDR, RFC 8684 section
//! 3.4.1).

use crate::config::{Config, PathConfig};
use crate::context::Context;
use crate::data::keys::Keys;
use crate::data::level::DataLevel;
use crate::error::Error;
use crate::parts::Parts;
use crate::paths::Paths;
use crate::paths::removal::Removals;
use crate::seldom::Seldom;
use crate::tcp::address::Address;
use crate::tcp::state::State;
use crate::timers::{ConnectionTimer, ConnectionTimers};
use alloc::sync::Arc;
use core::net::IpAddr;
use plait_base::{PathId, ServerAddress, SubflowId, SubflowSet, Time};
use plait_wire::{AddAddr, Mptcp, add_addr_hmac, add_addr_hmac_matches};

/// Largest number of queued signals. Further requests of a peer are dropped, and the peer must
/// repeat them.
pub(crate) const MAX_SIGNALS: usize = 16;

/// An address that this end has announced.
#[derive(Clone, Copy, Debug)]
struct Announced {
    id: u8,
    address: IpAddr,
    port: Option<u16>,
    /// When it is announced again: never after the echo.
    again: Time,
}

/// An address that the peer has announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress {
    pub(crate) id: u8,
    pub(crate) address: IpAddr,
    pub(crate) port: Option<u16>,
    pub(crate) number: ServerAddress,
}

/// An option that waits for a pure ACK.
#[derive(Debug)]
struct Signal {
    option: Mptcp,
    /// The subflow that should carry it.
    on: Option<SubflowId>,
}

impl Signal {
    /// Returns true if only this subflow can carry the option, because it concerns that subflow.
    fn is_bound(&self) -> bool {
        matches!(self.option, Mptcp::Prio { .. })
    }
}

#[derive(Default, Debug)]
pub(crate) struct Addresses {
    /// The addresses of the first subflow, whose identifiers are zero.
    first: Address,
    /// The peer denies further subflows to its first address.
    first_denied: bool,
    /// The peer has removed its first address.
    first_lost: bool,
    own: Seldom<Announced>,
    peers: Seldom<PeerAddress>,
    signals: Seldom<Signal>,
    removals: Removals,
}

impl Addresses {
    /// Starts the connection at `first`. Removed addresses stay removed.
    pub(crate) fn begin(&mut self, first: Address) {
        let removals = self.removals.for_new_attempt();
        *self = Addresses { first, removals, ..Addresses::default() };
    }

    /// Returns the addresses that the peer has announced.
    pub(crate) fn peers(&self) -> impl Iterator<Item = &PeerAddress> {
        self.peers.iter()
    }

    /// Ends the announcement of our address and returns its identifier.
    pub(crate) fn take_back(&mut self, address: IpAddr) -> Option<u8> {
        let at = self.own.iter().position(|own| own.address == address)?;
        let id = self.own.remove(at)?.id;
        let told = |option: &Mptcp| matches!(option, Mptcp::AddAddr(add) if add.address == address);
        self.signals.retain(|signal| !told(&signal.option));
        Some(id)
    }

    /// Removes an option that has not been sent.
    pub(crate) fn forget_signal(&mut self, option: &Mptcp) {
        self.signals.retain(|signal| signal.option != *option);
    }

    /// Returns the addresses of the first subflow.
    pub(super) const fn first(&self) -> Address {
        self.first
    }

    pub(super) const fn first_is_denied(&self) -> bool {
        self.first_denied
    }

    /// Notes that the peer's first address denies further subflows.
    pub(super) const fn deny_first(&mut self) {
        self.first_denied = true;
    }

    /// Returns the removed addresses.
    pub(super) const fn removals(&mut self) -> &mut Removals {
        &mut self.removals
    }

    /// Returns true if this client has no address on `path`.
    pub(super) fn is_gone(&self, path: PathId) -> bool {
        self.removals.is_gone(path)
    }

    /// Returns true if a subflow may be opened from `path` to `server`.
    pub(super) fn may_join(&self, path: PathId, server: ServerAddress) -> bool {
        let known = if server == self.first.server() {
            !self.first_lost && !self.first_denied
        } else {
            self.peers.iter().any(|known| known.number == server)
        };
        known && !self.is_gone(path)
    }

    /// Removes the peer's address `id`. Returns its number.
    pub(super) fn forget(&mut self, id: u8) -> Option<ServerAddress> {
        let number = if id == 0 {
            self.first.server()
        } else {
            let at = self.peers.iter().position(|known| known.id == id)?;
            self.peers.remove(at)?.number
        };
        self.first_lost |= number == self.first.server();
        Some(number)
    }

    /// Returns the identifier of a server's address (RFC 8684 section 3.2).
    pub(super) fn server_id(&self, number: ServerAddress) -> u8 {
        let first = self.first.server();
        match number {
            _ if number == first => 0,
            ServerAddress(0) => first.0,
            ServerAddress(number) => number,
        }
    }

    /// Returns the identifier of our own address: zero for the first subflow's address, and a
    /// unique number for every other one (RFC 8684 section 3.2). `paths` are the configured ones.
    pub(super) fn own_id(&self, client: bool, paths: &[PathConfig], address: Address) -> u8 {
        if !client {
            return self.server_id(address.server());
        }
        if address.path() == self.first.path() {
            return 0;
        }
        let place = paths.iter().position(|config| config.path == address.path());
        place.map_or(u8::MAX, |place| place as u8 + 1)
    }

    /// Adds an address of the peer, of at most `limit`. Returns `None` if there are too many, or if
    /// another address has its identifier, which a subflow uses if `in_use`.
    fn learn(
        &mut self,
        ctx: &mut Context<'_>,
        add: &AddAddr,
        limit: usize,
        in_use: bool,
    ) -> Option<ServerAddress> {
        let AddAddr { address_id: id, address, port, .. } = *add;
        let known = self.peers.iter().position(|known| known.id == id);
        let same = known.is_some_and(|at| self.peers[at].address == address);
        if in_use && !same || known.is_none() && self.peers.len() >= limit {
            return None;
        }
        let number = ctx.directory().learn(address)?;
        let learnt = PeerAddress { id, address, port, number };
        match known {
            Some(at) => self.peers[at] = learnt,
            None => self.peers.push(learnt),
        }
        Some(number)
    }

    /// Announces an address of this end, and replaces an earlier announcement with its identifier.
    fn announce(&mut self, keys: &Keys, own: Announced) {
        self.own.retain(|it| it.id != own.id);
        self.own.push(own);
        self.tell(keys, own);
    }

    /// Queues ADD_ADDR for an address of this end.
    fn tell(&mut self, keys: &Keys, own: Announced) {
        let Some(peer) = keys.peer else { return };
        let Announced { id, address, port, .. } = own;
        let hmac = Some(add_addr_hmac(keys.local, peer, id, address, port));
        let option = Mptcp::AddAddr(AddAddr { address_id: id, address, port, hmac });
        self.signal(option, None);
    }

    /// Handles the peer's echo of our ADD_ADDR.
    fn on_echo(&mut self, echo: &AddAddr) {
        for own in &mut *self.own {
            if (own.id, own.address, own.port) == (echo.address_id, echo.address, echo.port) {
                own.again = Time::NEVER;
            }
        }
    }

    /// Repeats announcements without an echo.
    fn repeat(&mut self, now: Time, keys: &Keys) {
        for at in 0..self.own.len() {
            let own = &mut self.own[at];
            if own.again <= now {
                own.again = now + Config::ADD_ADDR_PERIOD;
                let own = *own;
                self.tell(keys, own);
            }
        }
    }

    /// Returns the subflow that should carry the next signal; `Some(None)` if any can. Drops signals
    /// about a subflow that is not `open`.
    pub(super) fn next_carrier(
        &mut self,
        open: impl Fn(SubflowId) -> bool,
    ) -> Option<Option<SubflowId>> {
        loop {
            let signal = self.signals.first()?;
            let on = signal.on.filter(|id| open(*id));
            if on.is_some() || !signal.is_bound() {
                return Some(on);
            }
            self.signals.remove(0);
        }
    }

    /// Takes the option of the next signal.
    pub(super) fn take_signal(&mut self) -> Option<Mptcp> {
        Some(self.signals.remove(0)?.option)
    }

    /// Returns true if a signal is queued.
    pub(crate) fn has_signals(&self) -> bool {
        !self.signals.is_empty()
    }

    /// Queues an option unless it is queued already.
    pub(crate) fn signal(&mut self, option: Mptcp, on: Option<SubflowId>) {
        let known = self.signals.iter().any(|signal| signal.option == option);
        if !known && self.signals.len() < MAX_SIGNALS {
            self.signals.push(Signal { option, on });
        }
    }

    /// Queues MP_PRIO for its own subflow. It replaces one that has not been sent.
    pub(super) fn signal_priority(&mut self, subflow: SubflowId, backup: bool) {
        let stale = |it: &Signal| it.on == Some(subflow) && it.is_bound();
        self.signals.retain(|signal| !stale(signal));
        self.signals.push(Signal { option: Mptcp::Prio { backup }, on: Some(subflow) });
    }

    /// Returns when an announcement is repeated, or a subflow is checked.
    pub(crate) fn next(&self) -> Time {
        let again = self.own.iter().map(|own| own.again).min().unwrap_or(Time::NEVER);
        again.min(self.removals.next())
    }
}

/// Returns true if a connection can be opened to an address.
pub(crate) fn can_be_joined(address: IpAddr) -> bool {
    let broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !(address.is_loopback() || address.is_multicast() || address.is_unspecified() || broadcast)
}

impl Paths {
    /// Returns the identifier of our own address ([`Addresses::own_id`]).
    pub(super) fn own_id(&self, address: Address) -> u8 {
        self.addresses.own_id(self.client, &self.spec.paths, address)
    }

    /// Returns true if no further subflow can be opened, because the only address denies it.
    pub(super) fn has_no_address_to_join(&self) -> bool {
        if self.client {
            self.addresses.first_denied && self.addresses.peers.is_empty()
        } else {
            self.spec.config.joins.deny && self.addresses.own.is_empty()
        }
    }

    /// Repeats announcements without an echo.
    pub(crate) fn repeat_announcements(&mut self, now: Time, data: &DataLevel) {
        self.addresses.repeat(now, data.keys());
    }

    /// Returns the numbers of the peer's addresses that the connection uses, possibly with
    /// repetitions.
    pub(crate) fn servers(&self) -> impl Iterator<Item = ServerAddress> {
        let announced = self.addresses.peers().map(|known| known.number);
        let waiting = self.joins.servers();
        let subflows = self.subflows.iter().map(|subflow| subflow.address().server());
        announced.chain(waiting).chain(subflows)
    }

    /// Sets the timer for the next repeated announcement or subflow check.
    pub(crate) fn set_address_timer(&mut self, timers: &mut ConnectionTimers) {
        timers.set(ConnectionTimer::Address, self.addresses.next());
    }

    /// Handles ADD_ADDR: an echo of ours, or an address of the peer. One with a wrong HMAC is
    /// ignored. Returns true if subflows must be opened to it.
    pub(crate) fn on_add_addr(
        &mut self,
        parts: &mut Parts<'_>,
        on: SubflowId,
        add: &AddAddr,
    ) -> bool {
        let AddAddr { address_id: id, address, port, hmac } = *add;
        let Some(hmac) = hmac else {
            self.addresses.on_echo(add);
            self.set_address_timer(parts.timers);
            return false;
        };
        let multipath = parts.data.speaks_multipath();
        let Some(peer) = parts.data.keys().peer.filter(|_| multipath) else { return false };
        let expected = add_addr_hmac(peer, parts.data.keys().local, id, address, port);
        // Identifier 0 belongs to the first subflow, which needs no announcement.
        if id == 0 || !add_addr_hmac_matches(expected, hmac) {
            return false;
        }
        let echo = Mptcp::AddAddr(AddAddr { hmac: None, ..add.clone() });
        self.addresses.signal(echo, Some(on));
        if !self.client || !can_be_joined(address) {
            return false;
        }
        let in_use =
            self.subflows.iter().any(|s| s.state() != State::Closed && s.origin().peer_id == id);
        let limit = usize::from(self.spec.config.joins.peer_addresses);
        let learnt = self.addresses.learn(&mut parts.ctx, add, limit, in_use);
        let Some(number) = learnt else { return false };
        let here = |address: Address| {
            address.server() == number && port.is_none_or(|port| port == address.remote_port)
        };
        let waiting = self.joins.servers().any(|server| server == number);
        let new = !waiting && !self.subflows.open_addresses().any(here);
        if new {
            self.joins.add(self.joins_to(number, port));
        }
        new
    }

    /// Announces an address of this end to the client, now or when the handshake is complete.
    ///
    /// # Errors
    /// For a client and for plain TCP, and if there is no number left.
    pub(crate) fn announce(
        &mut self,
        parts: &mut Parts<'_>,
        address: IpAddr,
        port: Option<u16>,
    ) -> Result<(), Error> {
        if self.client {
            return Err(Error::NotServer);
        }
        parts.data.uses_multipath()?;
        let number = parts.ctx.directory().number(address).ok_or(Error::UnknownAddress(address))?;
        if !self.spec.addresses.contains(&address) {
            Arc::make_mut(&mut self.spec).addresses.push(address);
        }
        if !parts.data.speaks_multipath() {
            return Ok(());
        }
        let id = self.addresses.server_id(number);
        let again = parts.ctx.now + Config::ADD_ADDR_PERIOD;
        self.addresses.announce(parts.data.keys(), Announced { id, address, port, again });
        self.set_address_timer(parts.timers);
        Ok(())
    }

    /// Announces this end's further addresses when the handshake is complete.
    pub(crate) fn announce_all(&mut self, parts: &mut Parts<'_>) {
        let spec = Arc::clone(&self.spec);
        for address in &spec.addresses {
            // An address that this connection cannot announce is skipped.
            self.announce(parts, *address, None).ok();
        }
    }

    /// Withdraws an announced address of this server. Returns the subflows that used it.
    ///
    /// # Errors
    /// If it was not announced.
    pub(crate) fn withdraw(
        &mut self,
        ctx: &mut Context<'_>,
        address: IpAddr,
    ) -> Result<SubflowSet, Error> {
        let unknown = Error::NotAnnounced(address);
        let number = ctx.directory().number(address).filter(|_| !self.client).ok_or(unknown)?;
        let id = self.addresses.take_back(address).ok_or(unknown)?;
        if self.spec.addresses.contains(&address) {
            Arc::make_mut(&mut self.spec).addresses.retain(|own| *own != address);
        }
        self.addresses.signal(Mptcp::RemoveAddr([id].into()), None);
        Ok(self.subflows.set_of(|s| s.address().server() == number))
    }
}
