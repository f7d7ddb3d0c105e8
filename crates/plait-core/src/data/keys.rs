//! The keys of both ends, and the data sequence numbers derived from them.

use plait_base::Dsn;
use plait_wire::{Key, WireDsn};

/// The keys of both ends and the data sequence numbers derived from them (RFC 8684 section 3.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    pub(crate) local: Key,
    pub(crate) peer: Option<Key>,
    /// DSN of our first byte on the wire.
    pub(crate) own: FirstDsn,
    /// DSN of the peer's first byte on the wire.
    pub(crate) theirs: FirstDsn,
}

/// The data sequence number of the first byte of one direction as on the wire: IDSN + 1 (RFC 8684 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FirstDsn(WireDsn);

impl FirstDsn {
    fn after(idsn: WireDsn) -> FirstDsn {
        FirstDsn(idsn.plus(1))
    }

    /// Returns `dsn` as on the wire.
    pub(crate) fn wire(self, dsn: Dsn) -> WireDsn {
        self.0.plus(dsn.get())
    }

    /// Returns the DSN of a number on the wire. Numbers below the first byte wrap to the end of the
    /// space.
    pub(crate) fn read(self, wire: WireDsn) -> Dsn {
        Dsn::new(wire.since(self.0))
    }

    /// Returns the DSN of a field of a DSS. A field that is not `long` has the low 32 bits of the
    /// DSN that is closest to `near` (RFC 8684 section 3.3.1).
    pub(crate) fn read_field(self, wire: WireDsn, long: bool, near: Dsn) -> Dsn {
        if long { self.read(wire) } else { self.read_low(wire, near) }
    }

    /// Returns the DSN of the low 32 bits on the wire that is closest to `near`.
    pub(crate) fn read_low(self, wire: WireDsn, near: Dsn) -> Dsn {
        Dsn::from_low(wire.low().wrapping_sub(self.0.low()), near)
    }
}

impl Keys {
    /// Returns the token of the peer's key.
    pub(crate) fn peer_token(&self) -> Option<u32> {
        self.peer.map(Key::token)
    }

    /// Returns the keys of a new connection. `idsn` replaces both IDSNs, if set.
    pub(super) fn new(local: Key, idsn: Option<WireDsn>) -> Keys {
        let own = FirstDsn::after(idsn.unwrap_or(local.idsn()));
        Keys { local, peer: None, own, theirs: FirstDsn(WireDsn(0)) }
    }

    /// Sets the peer's key; `idsn` replaces its IDSN, if set.
    pub(super) fn set_peer(&mut self, peer: Key, idsn: Option<WireDsn>) {
        self.peer = Some(peer);
        self.theirs = FirstDsn::after(idsn.unwrap_or(peer.idsn()));
    }
}
