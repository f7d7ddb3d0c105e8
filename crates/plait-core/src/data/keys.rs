//! The keys of both ends, and the data sequence numbers derived from them.

use plait_base::Dsn;
use plait_wire::Key;

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
pub(crate) struct FirstDsn(u64);

impl FirstDsn {
    fn after(idsn: u64) -> FirstDsn {
        FirstDsn(idsn.wrapping_add(1))
    }

    /// Returns all 64 bits of `dsn` on the wire.
    pub(crate) fn wire(self, dsn: Dsn) -> u64 {
        self.0.wrapping_add(dsn.get())
    }

    /// Returns the DSN of 64 bits on the wire. Numbers below the first byte wrap to the end of the
    /// space.
    pub(crate) fn read(self, wire: u64) -> Dsn {
        Dsn::new(wire.wrapping_sub(self.0))
    }

    /// Returns the DSN of the low 32 bits on the wire that is closest to `near` (RFC 8684 section
    /// 3.3.1).
    pub(crate) fn read_low(self, wire: u32, near: Dsn) -> Dsn {
        Dsn::from_low(wire.wrapping_sub(self.0 as u32), near)
    }
}

impl Keys {
    /// Returns the keys of a new connection. `idsn` replaces both IDSNs, if set.
    pub(crate) fn new(local: Key, idsn: Option<u64>) -> Keys {
        let own = FirstDsn::after(idsn.unwrap_or(local.idsn()));
        Keys { local, peer: None, own, theirs: FirstDsn(0) }
    }

    /// Sets the peer's key; `idsn` replaces its IDSN, if set.
    pub(crate) fn set_peer(&mut self, peer: Key, idsn: Option<u64>) {
        self.peer = Some(peer);
        self.theirs = FirstDsn::after(idsn.unwrap_or(peer.idsn()));
    }
}
