//! What a connection keeps of data, and what it may keep where memory is short.

use crate::conn::Connection;

impl Connection {
    /// A connection without data, its addresses and its place in the books included.
    const BASE: u64 = 4_096;

    /// Bytes of memory that it takes, about: data of both directions, and what it lies in.
    pub(crate) fn memory_bytes(&self) -> u64 {
        Connection::BASE
            + (self.data.queue.memory_usage() + self.paths.received(&self.data)).with_room()
    }
}
