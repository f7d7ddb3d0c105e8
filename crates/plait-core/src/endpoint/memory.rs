//! What connections take of memory, and how it is kept within bounds.

use crate::data::memory_limit::MemoryLimit;
use crate::endpoint::Endpoint;
use crate::stats::Overflows;

/// The connections of an endpoint, and what they keep.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MemoryReport {
    /// Bytes of memory, about: data that was written and not DATA_ACKed, data that has arrived and was
    /// not read, what either lies in, and 4 kB for each connection.
    pub bytes: u64,
    /// Connections that hold more than [`MemoryReport::THRESHOLD_BYTES`] bytes.
    pub above_threshold: usize,
    /// Connections that a peer has begun whose handshake is not done.
    pub half_open: usize,
    /// Connections that were released and are not over: what they sent is not acknowledged, or the
    /// peer has not ended its direction.
    pub closing: usize,
    /// Subflows of released connections that wait for segments that are late (TIME-WAIT, RFC 9293
    /// section 3.6.1).
    pub time_wait: usize,
}

impl MemoryReport {
    /// What a connection without data holds far less than.
    pub const THRESHOLD_BYTES: u64 = 64 * 1024;
}

impl Endpoint {
    /// What connections take of memory. It looks at every connection.
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

    /// From now on memory is short, or no longer (`None`): each connection takes no more to send than
    /// makes its share with what is not acknowledged, or what its peer takes in two round trips
    /// ([`MemoryLimit::max_unsent`]), tells no window that goes further than its share beyond what was read (what
    /// was told stays, RFC 9293 section 3.8.6), and discards what arrives beyond it all the same, or would
    /// wait where twice as much is here already, as if it were lost. What connections have, they keep.
    pub fn limit_buffers(&mut self, memory_limit: Option<MemoryLimit>) {
        self.shared.memory_limit = memory_limit;
    }

    /// From now on SYNs of further connections are answered with a reset, or no longer. Joins are
    /// taken.
    pub fn turn_away(&mut self, on: bool) {
        self.full = on;
    }

    /// Returns what was refused or answered without state so far.
    #[must_use]
    pub const fn overflows(&self) -> Overflows {
        self.shared.overflows
    }

    /// How many SYNs [`Endpoint::turn_away`] has had answered with a reset.
    #[must_use]
    pub const fn turned_away(&self) -> u64 {
        self.turned_away
    }
}
