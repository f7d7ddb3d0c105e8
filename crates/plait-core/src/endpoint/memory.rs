//! Memory of connections, and its limits.

use crate::config::MemoryLimit;
use crate::endpoint::Endpoint;
use crate::stats::Overflows;

/// Connections of an endpoint, and their memory.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MemoryReport {
    /// Approximate bytes of memory: data that is not DATA_ACKed, data that is not read, the buffers
    /// that hold both, and 4 kB for each connection.
    pub bytes: u64,
    /// Connections that hold more than [`MemoryReport::THRESHOLD_BYTES`] bytes.
    pub above_threshold: usize,
    /// Connections opened by a peer whose handshake is not complete.
    pub half_open: usize,
    /// Released connections that have not ended: some data is not acknowledged, or the peer has not
    /// ended its direction.
    pub closing: usize,
    /// Subflows of released connections in TIME-WAIT (RFC 9293 section 3.6.1).
    pub time_wait: usize,
}

impl MemoryReport {
    /// A connection without data holds far less than this.
    pub const THRESHOLD_BYTES: u64 = 64 * 1024;
}

impl Endpoint {
    /// Returns the memory of all connections. It visits every connection.
    #[must_use]
    pub fn memory_report(&self) -> MemoryReport {
        let half_closed = self.remnants.half_closed();
        let mut all = MemoryReport {
            bytes: self.remnants.bytes(),
            half_open: self.connections.untold(),
            closing: half_closed,
            time_wait: self.remnants.len() - half_closed,
            ..MemoryReport::default()
        };
        for (_, conn) in self.connections.iter() {
            let holds = conn.paths().memory_bytes(conn.data());
            all.bytes += holds;
            all.above_threshold += usize::from(holds > MemoryReport::THRESHOLD_BYTES);
            if conn.data().is_released() {
                let counted = if conn.is_over() { &mut all.time_wait } else { &mut all.closing };
                *counted += 1;
            }
        }
        all
    }

    /// Limits the buffers of each connection to its share while memory is short; `None` removes the
    /// limit.
    ///
    /// A connection accepts data to send until its unacknowledged data fills its share, or two
    /// round trips of data ([`MemoryLimit::max_unsent`]). Its window never exceeds the read
    /// position by more than its share; an already advertised window stays (RFC 9293 section
    /// 3.8.6). Data beyond the share is discarded, as if lost. Out-of-order data is too when twice
    /// the share is already held. Connections keep data that they already hold.
    pub fn limit_buffers(&mut self, memory_limit: Option<MemoryLimit>) {
        self.shared.memory_limit = memory_limit;
    }

    /// Sets whether SYNs of further connections are answered with a reset. Joins are still
    /// accepted.
    pub fn turn_away(&mut self, on: bool) {
        self.full = on;
    }

    /// Returns the counts of segments refused or answered without state.
    #[must_use]
    pub const fn overflows(&self) -> Overflows {
        self.shared.counters.overflows()
    }

    /// Returns how many SYNs were answered with a reset because of [`Endpoint::turn_away`].
    #[must_use]
    pub const fn turned_away(&self) -> u64 {
        self.shared.counters.turned_away()
    }
}
