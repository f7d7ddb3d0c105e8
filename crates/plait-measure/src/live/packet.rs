//! The datagrams of a measurement.

/// The secret of a measurement, which every datagram begins with.
pub(super) type Token = [u8; 16];

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 56;
/// Largest datagram in bytes, so that it fits a path with an MTU of 1500 bytes.
pub(super) const MAX_DATAGRAM_BYTES: usize = 1_400;

/// The purpose of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// The client asks for an echo, and shows its address on a path.
    Probe,
    /// The server answers a probe.
    Echo,
    /// Load.
    Data,
}

/// The header of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Packet {
    pub(super) token: Token,
    pub(super) kind: Kind,
    /// Number of the path.
    pub(super) path: u8,
    /// Number of the load, or of the probing.
    pub(super) phase: u16,
    /// Number within the phase.
    pub(super) number: u32,
    /// When it was sent, by the clock of its sender.
    pub(super) sent_ns: u64,
    /// Of an echo: when the probe was sent, by the clock of the client.
    pub(super) probe_ns: u64,
    /// Of an echo: when the probe arrived, by the clock of the server.
    pub(super) arrived_ns: u64,
    /// Of an echo: a number that only the receiver of the echo knows. Its next probes have it.
    pub(super) proof: u64,
}

impl Packet {
    /// Writes the header to the beginning of a datagram.
    pub(super) fn write(&self, into: &mut [u8; MAX_DATAGRAM_BYTES]) {
        into[..16].copy_from_slice(&self.token);
        into[16] = match self.kind {
            Kind::Probe => 1,
            Kind::Echo => 2,
            Kind::Data => 3,
        };
        into[17] = self.path;
        into[18..20].copy_from_slice(&self.phase.to_be_bytes());
        into[20..24].copy_from_slice(&self.number.to_be_bytes());
        into[24..32].copy_from_slice(&self.sent_ns.to_be_bytes());
        into[32..40].copy_from_slice(&self.probe_ns.to_be_bytes());
        into[40..48].copy_from_slice(&self.arrived_ns.to_be_bytes());
        into[48..56].copy_from_slice(&self.proof.to_be_bytes());
    }

    /// Reads a header; `None` if the datagram is no part of a measurement.
    pub(super) fn read(bytes: &[u8]) -> Option<Packet> {
        let field = |at: usize| -> Option<u64> {
            Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
        };
        Some(Packet {
            token: bytes.get(..16)?.try_into().ok()?,
            kind: match bytes.get(16)? {
                1 => Kind::Probe,
                2 => Kind::Echo,
                3 => Kind::Data,
                _ => return None,
            },
            path: *bytes.get(17)?,
            phase: u16::from_be_bytes(bytes.get(18..20)?.try_into().ok()?),
            number: u32::from_be_bytes(bytes.get(20..24)?.try_into().ok()?),
            sent_ns: field(24)?,
            probe_ns: field(32)?,
            arrived_ns: field(40)?,
            proof: field(48)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let packet = Packet {
            token: [7; 16],
            kind: Kind::Echo,
            path: 3,
            phase: 515,
            number: 70_000,
            sent_ns: 1 << 60,
            probe_ns: 2,
            arrived_ns: u64::MAX,
            proof: 9,
        };
        let mut bytes = [0; MAX_DATAGRAM_BYTES];
        packet.write(&mut bytes);
        assert_eq!(Packet::read(&bytes), Some(packet));
        assert_eq!(Packet::read(&bytes[..HEADER_BYTES - 1]), None);
        bytes[16] = 9;
        assert_eq!(Packet::read(&bytes), None);
    }
}
