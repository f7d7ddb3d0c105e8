//! Buffers of the sockets to a service on this host.
//!
//! The kernel keeps what plait has not read yet, and on the same host also what the service has written
//! beyond that: over `lo`, whose segments have 64 kB, some 5 MB for each client that does not read. A
//! few hundred of them bring the kernel to its limit (`net.ipv4.tcp_mem`), and then it shrinks the
//! windows of all connections. So in a crowd both buffers are small.

use crate::planted::{Planted, planted};
use std::ops::RangeInclusive;

/// From so many relays on, a socket to a service of this host gets small buffers.
const CROWD: usize = 16;
/// Bytes that the receive buffers of such a crowd may take together, and one of them at least and at most.
const CROWD_BYTES: usize = 2 << 20;
const CROWD_BUFFER_BYTES: RangeInclusive<usize> = 16 * 1024..=128 * 1024;
/// The MSS towards a service of this host in a crowd: that of a usual network.
const CROWD_MSS_BYTES: u32 = 1_400;

/// Sizes of the buffers of a stream to a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    /// Bytes that may wait to be read.
    pub receive_bytes: usize,
    /// Bytes of a segment at most, which keeps the program's own buffer small.
    pub mss_bytes: u32,
}

impl Buffers {
    /// The sizes for a service of this host beside so many relays; `None` is for the usual ones.
    pub(crate) fn beside(relays: usize) -> Option<Buffers> {
        let crowded = relays >= CROWD && !planted(Planted::UnreadShares);
        crowded.then(|| {
            let bytes = CROWD_BYTES / relays;
            let (least, most) = (*CROWD_BUFFER_BYTES.start(), *CROWD_BUFFER_BYTES.end());
            Buffers { receive_bytes: bytes.clamp(least, most), mss_bytes: CROWD_MSS_BYTES }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_gets_small_buffers() {
        let bytes = |relays| Buffers::beside(relays).map(|it| it.receive_bytes >> 10);
        assert_eq!([15, 16, 32, 2_000].map(bytes), [None, Some(128), Some(64), Some(16)]);
    }
}
