//! Buffer sizes of sockets to a service on this host.
//!
//! The kernel stores the data that plait has not read yet. On the same host it also stores the
//! service's unsent data. Over `lo`, whose segments have 64 kB, that is about 5 MB for each client
//! that does not read. A few hundred such clients reach the kernel's limit (`net.ipv4.tcp_mem`),
//! and the kernel then shrinks the windows of all connections. Both buffers are therefore small if
//! there are many relays.

use std::ops::RangeInclusive;

/// Number of relays from which on sockets to a service of this host get small buffers.
const CROWD: usize = 16;
/// Bytes for all receive buffers of such sockets together, and the smallest and largest size of
/// one.
const CROWD_BYTES: usize = 2 << 20;
const CROWD_BUFFER_BYTES: RangeInclusive<usize> = 16 * 1024..=128 * 1024;
/// MSS towards a service of this host if there are many relays: that of a usual network.
const CROWD_MSS_BYTES: u32 = 1_400;

/// Sizes of the buffers of a stream to a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buffers {
    /// Bytes that may wait to be read.
    pub receive_bytes: usize,
    /// Largest segment in bytes. Small segments keep the program's own buffer small.
    pub mss_bytes: u32,
}

impl Buffers {
    /// Returns the sizes for a service of this host beside `relays` relays; `None` means the
    /// defaults.
    pub(crate) fn beside(relays: usize) -> Option<Buffers> {
        let crowded = relays >= CROWD;
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
