//! The keys of both ends, and the data sequence numbers that follow from them.

use plait_base::Dsn;
use plait_wire::Key;

/// The keys of both ends and the data sequence numbers they give (RFC 8684 section 3.1).
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

    /// All 64 bits of `dsn` on the wire.
    pub(crate) fn wire(self, dsn: Dsn) -> u64 {
        self.0.wrapping_add(dsn.get())
    }

    /// The DSN that the wire's 64 bits mean. Those below the first byte wrap to the end of the space.
    pub(crate) fn read(self, wire: u64) -> Dsn {
        Dsn::new(wire.wrapping_sub(self.0))
    }

    /// The DSN that the wire's low 32 bits mean, if it is close to `near` (RFC 8684 section 3.3.1).
    pub(crate) fn read_low(self, wire: u32, near: Dsn) -> Dsn {
        Dsn::from_low(wire.wrapping_sub(self.0 as u32), near)
    }
}

impl Keys {
    /// `idsn` is what stands in for both IDSNs, if anything does.
    pub(crate) fn new(local: Key, idsn: Option<u64>) -> Keys {
        let own = FirstDsn::after(idsn.unwrap_or(local.idsn()));
        Keys { local, peer: None, own, theirs: FirstDsn(0) }
    }

    /// The peer's key is known; `idsn` stands in for its IDSN, if anything does.
    pub(crate) fn set_peer(&mut self, peer: Key, idsn: Option<u64>) {
        self.peer = Some(peer);
        self.theirs = FirstDsn::after(idsn.unwrap_or(peer.idsn()));
    }
}
