//! Paranoid wire mode: every segment is encoded and parsed again, and must be unchanged.

use crate::addresses::Addresses;
use crate::network::Direction;
use crate::setup::Setup;
use plait_base::PathId;
use plait_wire::codec::{TcpChecksum, Verify, encode_to, encoded_len, parse_into};
use plait_wire::{Flags, Segment};

/// An encoder and a parser with their buffers.
pub(crate) struct Wire {
    addresses: Addresses,
    packet: Vec<u8>,
    read: Segment,
}

impl Wire {
    /// Returns `None` if the set-up does not enable the wire mode.
    pub(crate) fn new(setup: &Setup) -> Option<Box<Wire>> {
        setup.wire.then(|| {
            let addresses = Addresses::new(setup);
            Box::new(Wire { addresses, packet: Vec::new(), read: Segment::default() })
        })
    }

    /// Encodes and parses a segment. Returns an error that describes the first difference.
    pub(crate) fn cross(
        &mut self,
        pair: usize,
        path: PathId,
        way: Direction,
        segment: &Segment,
    ) -> Result<(), String> {
        let headers = self.addresses.headers(pair, path, way, segment.server);
        // The buffer never shrinks, so only its growth is cleared.
        let needs = encoded_len(&headers, segment);
        if self.packet.len() < needs {
            self.packet.resize(needs, 0);
        }
        let told = |what: &dyn std::fmt::Display| format!("wire: {what}: {segment:?}");
        let len = encode_to(&headers, segment, TcpChecksum::Full, &mut self.packet)
            .map_err(|error| told(&error))?;
        if headers.src.is_ipv4() && len != segment.ip_len() as usize {
            return Err(told(&format_args!("a packet of {len} bytes, not {}", segment.ip_len())));
        }
        let read = &mut self.read;
        let parsed = parse_into(&self.packet[..len], Verify::Checksum, read)
            .map_err(|error| told(&error))?;
        let fields = |s: &Segment| (s.src_port, s.dst_port, s.seq, s.ack, s.flags, s.window);
        let differs = [
            ("the addresses", parsed.headers != headers),
            ("an option", parsed.skipped.count > 0),
            ("a field of the header", fields(read) != fields(segment)),
            ("the options", read.options != segment.options),
            ("the payload", !segment.payload.is(parsed.payload)),
            ("data on a SYN", segment.flags.has(Flags::SYN) && !segment.payload.is_empty()),
        ];
        match differs.iter().find(|(_, differs)| *differs) {
            None => Ok(()),
            Some((what, _)) => Err(told(&format_args!("{what} came out as {read:?}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::{ServerAddress, Span, Time};
    use plait_wire::{DataAck, Dss, Mptcp, Options, Payload, WireDsn};

    fn wire() -> Box<Wire> {
        let setup = Setup {
            seed: 1,
            paths: Vec::new(),
            shared: Vec::new(),
            pairs: Vec::new(),
            until: Time::ZERO,
            check: false,
            wire: true,
            linger: false,
            send_cost: Span::ZERO,
        };
        Wire::new(&setup).unwrap()
    }

    fn cross(segment: &Segment) -> Result<(), String> {
        wire().cross(0, PathId(1), Direction::Down, segment)
    }

    /// R2, R28, R64, R72: a segment that cannot be encoded is rejected. All other segments are
    /// parsed unchanged, whatever the kind of payload.
    #[test]
    fn what_a_wire_cannot_carry() {
        let ack = |options| Segment { flags: Flags::ACK, options, ..Segment::default() };
        let wide = DataAck { value: WireDsn(1 << 32), long: false };
        let dss = Some(Dss { data_ack: Some(wide), ..Dss::default() });
        let ids = Mptcp::RemoveAddr(vec![1; 38].into());
        let hello = Payload::from_bytes(b"hello");
        let table = [
            (ack(Options { dss, ..Options::default() }), "DATA_ACK does not fit"),
            (ack(Options { mss: Some(1), ..Options::default() }), "MSS on such a segment"),
            (
                ack(Options { mptcp: Some(Box::new(ids)), ..Options::default() }),
                "44 bytes of options",
            ),
            (
                Segment { flags: Flags::SYN, payload: hello.clone(), ..Segment::default() },
                "data on a SYN",
            ),
        ];
        for (segment, what) in table {
            let told = cross(&segment).unwrap_err();
            assert!(told.starts_with("wire: ") && told.contains(what), "{told}");
        }
        let pattern = Payload::Pattern { offset: 3, len: 1000 };
        let server = ServerAddress(1);
        for payload in [hello, pattern.edited(0), pattern.edited(999), pattern, Payload::Empty] {
            assert_eq!(cross(&Segment { payload, server, ..Segment::default() }), Ok(()));
        }
    }
}
