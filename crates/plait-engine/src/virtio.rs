//! The virtio header that a TUN device puts before packets (virtio 1.3, section 5.1.6), in the
//! host's byte order. It describes offloaded work: checksums and segmentation.

use plait_wire::codec::{TCP_CHECKSUM_OFFSET, Verify};

/// The checksum field holds the sum of the pseudo header. The rest must be added.
const NEEDS_CHECKSUM: u8 = 1;
/// The checksum was verified.
const DATA_VALID: u8 = 2;
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;

/// The fields of a header.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Virtio {
    flags: u8,
    kind: u8,
    /// Bytes of the IP and TCP headers.
    header_len: u16,
    /// Payload bytes of the segments that the packet is split into.
    cut: u16,
    checksum_start: u16,
    checksum_offset: u16,
}

impl Virtio {
    /// Bytes of a header.
    pub const LEN: usize = 10;

    /// Returns the header of a TCP packet whose checksum the device completes. The device splits
    /// the packet into segments with `cut` bytes of payload if `cut` is not zero.
    #[must_use]
    pub fn of_tcp(ip_len: usize, header_len: usize, cut: u16) -> Virtio {
        // The IPv4 header is always 20 bytes, because plait writes no IP options.
        let family = if ip_len == 20 { TCP_V4 } else { TCP_V6 };
        Virtio {
            flags: NEEDS_CHECKSUM,
            kind: if cut > 0 { family } else { 0 },
            header_len: header_len as u16,
            cut,
            checksum_start: ip_len as u16,
            checksum_offset: TCP_CHECKSUM_OFFSET,
        }
    }

    /// Returns whether the checksum of the packet must be verified.
    #[must_use]
    pub fn verify(self) -> Verify {
        if self.flags & (NEEDS_CHECKSUM | DATA_VALID) == 0 {
            Verify::Checksum
        } else {
            Verify::Trusted
        }
    }

    /// Completes an offloaded checksum, for captures. The packet is then as a device without
    /// segmentation would send it.
    pub(crate) fn finish_checksum(self, packet: &mut [u8]) {
        if self.flags & NEEDS_CHECKSUM == 0 {
            return;
        }
        let start = usize::from(self.checksum_start);
        let Some(covered) = packet.get(start..) else { return };
        let words = covered
            .chunks(2)
            .map(|two| u64::from(two[0]) << 8 | u64::from(two.get(1).copied().unwrap_or_default()));
        let mut sum: u64 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        let at = start + usize::from(self.checksum_offset);
        if let Some(field) = packet.get_mut(at..at + 2) {
            field.copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
    }

    /// Parses a header.
    #[must_use]
    pub fn from_bytes(bytes: [u8; Virtio::LEN]) -> Virtio {
        let half = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Virtio {
            flags: bytes[0],
            kind: bytes[1],
            header_len: half(2),
            cut: half(4),
            checksum_start: half(6),
            checksum_offset: half(8),
        }
    }

    /// Returns the bytes of the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Virtio::LEN] {
        let mut bytes = [0; Virtio::LEN];
        (bytes[0], bytes[1]) = (self.flags, self.kind);
        let halves = [self.header_len, self.cut, self.checksum_start, self.checksum_offset];
        for (at, half) in (2..).step_by(2).zip(halves) {
            bytes[at..at + 2].copy_from_slice(&half.to_ne_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The completed checksum equals the one that the codec writes.
    #[test]
    fn a_checksum_is_finished() {
        use plait_wire::codec::{self, Headers, TcpChecksum};
        use plait_wire::{Payload, Segment};
        for len in [0_usize, 1, 1_000, 30_001] {
            let payload =
                if len == 0 { Payload::default() } else { Payload::from_bytes(&vec![7; len]) };
            let segment = Segment { src_port: 80, dst_port: 1_000, payload, ..Segment::default() };
            for (ip_len, ends) in [(20, ["10.0.0.1", "10.0.0.2"]), (40, ["fd00::1", "fd00::2"])] {
                let [src, dst] = ends.map(|it| it.parse().unwrap());
                let headers = Headers::new(src, dst);
                let encoded = |sum| {
                    let mut bytes = Vec::new();
                    codec::encode(&headers, &segment, sum, &mut bytes).unwrap();
                    bytes
                };
                let mut bytes = encoded(TcpChecksum::PseudoHeader);
                Virtio::of_tcp(ip_len, ip_len + 20, 0).finish_checksum(&mut bytes);
                assert!(bytes == encoded(TcpChecksum::Full), "{len}");
            }
        }
        Virtio::of_tcp(40, 60, 0).finish_checksum(&mut [0; 3]);
    }

    #[test]
    fn a_header_is_what_it_was() {
        let superpacket = Virtio::of_tcp(40, 92, 1_408);
        assert_eq!(Virtio::from_bytes(superpacket.to_bytes()), superpacket);
        assert_eq!(superpacket.to_bytes()[..2], [NEEDS_CHECKSUM, TCP_V6]);
        assert_eq!(superpacket.to_bytes()[4..6], 1_408_u16.to_ne_bytes());
        assert_eq!(Virtio::of_tcp(20, 72, 0).to_bytes()[..2], [NEEDS_CHECKSUM, 0]);
        // Without a flag, the checksum is verified.
        assert_eq!(Virtio::default().verify(), Verify::Checksum);
        assert_eq!(superpacket.verify(), Verify::Trusted);
        assert_eq!(Virtio::from_bytes([2, 0, 0, 0, 0, 0, 0, 0, 0, 0]).verify(), Verify::Trusted);
    }
}
