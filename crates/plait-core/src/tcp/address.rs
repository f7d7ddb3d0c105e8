//! The addresses and ports of a subflow.

use core::cmp::Ordering;
use plait_base::{ConnId, PathId, ServerAddress};
use plait_wire::Segment;

/// The addresses and ports of a subflow.
///
/// The client's address is given by its path, the server's by its assigned number.
#[derive(Clone, Copy, Default, Debug)]
// The order of the fields makes `key` one load.
#[repr(C, align(8))]
pub(crate) struct Address {
    pub(crate) remote_port: u16,
    pub(crate) local_port: u16,
    /// 24 bits of the path and 8 of the server's address, because connections are many.
    place: u32,
}

impl PartialEq for Address {
    #[inline]
    fn eq(&self, other: &Address) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Address {}

impl PartialOrd for Address {
    fn partial_cmp(&self, other: &Address) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Address {
    fn cmp(&self, other: &Address) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Address {
    pub(crate) const fn new(
        path: PathId,
        server: ServerAddress,
        local_port: u16,
        remote_port: u16,
    ) -> Address {
        let place = path.0 << 8 | server.0 as u32;
        Address { place, local_port, remote_port }
    }

    /// Returns the address of a segment that arrives on `path`.
    pub(crate) const fn of_arrival(path: PathId, segment: &Segment) -> Address {
        Address::new(path, segment.server, segment.dst_port, segment.src_port)
    }

    /// Returns the same address on another path.
    pub(crate) const fn on_path(self, path: PathId) -> Address {
        Address::new(path, self.server(), self.local_port, self.remote_port)
    }

    /// Returns the same address with another local port.
    pub(crate) const fn at_port(self, local_port: u16) -> Address {
        Address { local_port, ..self }
    }

    pub(crate) const fn path(self) -> PathId {
        PathId(self.place >> 8)
    }

    pub(crate) const fn server(self) -> ServerAddress {
        ServerAddress(self.place as u8)
    }

    /// The part of [`Address::key`] that identifies a subflow on its path.
    pub(crate) const WITHIN_PATH: u64 = (1 << 40) - 1;

    /// Returns the whole address as one number, for lookups: 24 bits of the path ([`PathId::MAX`]),
    /// 8 of the server's address, and both ports.
    pub(crate) const fn key(self) -> u64 {
        (self.place as u64) << 32 | (self.local_port as u64) << 16 | self.remote_port as u64
    }

    /// Returns a key that reserves the number of `path` for `conn`, which has no open subflow
    /// there. No segment has this key, because [`ServerAddress::NONE`] is no address.
    pub(crate) const fn kept_key(path: PathId, conn: ConnId) -> u64 {
        let place = path.0 << 8 | ServerAddress::NONE.0 as u32;
        (place as u64) << 32 | conn.0 as u64
    }
}
