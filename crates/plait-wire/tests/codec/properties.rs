//! Properties of all segments and all bytes.

use super::{generate, same};
use plait_wire::codec::{
    EncodeError, TcpChecksum, Verify, encode, encode_headers, encoded_len, parse, parse_into,
};
use plait_wire::{Options, Payload, Segment};
use proptest::prelude::*;

/// Checks that a packet, if it parses, can be encoded and parses to the same segment again.
fn whatever_parses_encodes(packet: &[u8]) -> Result<(), TestCaseError> {
    let Ok((headers, segment)) = parse(packet, Verify::Trusted) else { return Ok(()) };
    let mut again = Vec::new();
    match encode(&headers, &segment, TcpChecksum::Full, &mut again) {
        Ok(len) => {
            prop_assert_eq!(len, again.len());
            let (same_headers, read) = parse(&again, Verify::Checksum).unwrap();
            prop_assert_eq!(headers, same_headers);
            prop_assert!(same(&read, &segment), "{:?} is not {:?}", read, segment);
        }
        // The padded options may need more room than the options of the packet did.
        Err(error) => prop_assert!(
            matches!(error, EncodeError::Options(_) | EncodeError::Length(_)),
            "{error}: {segment:?}"
        ),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// R1, R2, R64: an encoded segment parses to the same, checksum included. If it does not fit, the
    /// encoder returns an error and leaves the buffer unchanged.
    #[test]
    fn what_is_encoded_parses_to_the_same(
        headers in generate::headers(),
        segment in generate::segment(),
        front in 0usize..20,
    ) {
        let mut out = vec![0xaa; front];
        match encode(&headers, &segment, TcpChecksum::Full, &mut out) {
            Ok(len) => {
                prop_assert!(segment.options.fits());
                prop_assert_eq!(len, encoded_len(&headers, &segment));
                prop_assert_eq!(front + len, out.len());
                let mut read = Segment::default();
                let parsed = parse_into(&out[front..], Verify::Checksum, &mut read).unwrap();
                prop_assert_eq!(parsed.headers, headers);
                prop_assert_eq!(parsed.skipped.count, 0);
                prop_assert_eq!(&out[front + parsed.payload_at..], parsed.payload);
                read.payload = Payload::from_bytes(parsed.payload);
                prop_assert!(same(&read, &segment), "{:?} is not {:?}", read, segment);
            }
            Err(EncodeError::Options(_)) => {
                prop_assert!(!segment.options.fits());
                prop_assert_eq!(out.len(), front);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    /// Headers written without the payload equal the headers of the whole packet.
    #[test]
    fn headers_alone_are_those_of_the_packet(
        headers in generate::headers(),
        segment in generate::segment(),
        front in 0usize..20,
    ) {
        for checksum in [TcpChecksum::Full, TcpChecksum::PseudoHeader] {
            let (mut whole, mut alone) = (vec![0xaa; front], vec![0xaa; front]);
            let packet = encode(&headers, &segment, checksum, &mut whole);
            let len = encode_headers(&headers, &segment, checksum, &mut alone);
            prop_assert_eq!(packet.map(|len| len - segment.payload.len() as usize), len);
            prop_assert_eq!(front + len.unwrap_or(0), alone.len());
            prop_assert_eq!(&whole[..alone.len()], &alone[..]);
        }
    }

    /// R1, R79: no bytes cause a panic or a read beyond them.
    #[test]
    fn random_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        whatever_parses_encodes(&bytes)?;
    }

    /// R1, R3: the same for packets with a few changed bytes and for truncated packets.
    #[test]
    fn mutated_packets_do_no_harm(
        headers in generate::headers(),
        segment in generate::segment(),
        changes in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..6),
        keep in any::<u16>(),
    ) {
        let mut packet = Vec::new();
        if encode(&headers, &segment, TcpChecksum::Full, &mut packet).is_ok() {
            // Most changes affect the headers.
            let reach = packet.len().min(100);
            for (at, value) in changes {
                packet[usize::from(at) % reach] = value;
            }
            whatever_parses_encodes(&packet)?;
            packet.truncate(usize::from(keep) % (reach + 1));
            whatever_parses_encodes(&packet)?;
        }
    }

    /// R3: random options of any kind and length never invalidate the segment. The options that were read
    /// can be encoded again.
    #[test]
    fn random_options_do_no_harm(
        flags in any::<u8>(),
        bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(30), 0u8..12], 0..=40),
    ) {
        let flags = plait_wire::Flags(flags);
        let (options, skipped) = super::options_of(flags, &bytes);
        prop_assert!(skipped.count > 0 || skipped.first.is_none());
        let segment = Segment { flags, options, ..Segment::default() };
        let mut out = Vec::new();
        match encode(&super::headers(), &segment, TcpChecksum::Full, &mut out) {
            Ok(_) => prop_assert_eq!(parse(&out, Verify::Checksum).unwrap().1.options, segment.options),
            Err(error) => prop_assert!(matches!(error, EncodeError::Options(_)), "{error}"),
        }
    }

    /// F4: if checksums are verified, one flipped bit is always detected, except in the fields of IPv6
    /// that no checksum covers.
    #[test]
    fn a_flipped_bit_is_noticed(
        headers in generate::headers(),
        segment in generate::segment(),
        bit in any::<u32>(),
    ) {
        let mut packet = Vec::new();
        if encode(&headers, &segment, TcpChecksum::Full, &mut packet).is_ok() {
            let bit = bit as usize % (packet.len() * 8);
            packet[bit / 8] ^= 0x80 >> (bit % 8);
            let uncovered = headers.src.is_ipv6() && (4..32).contains(&bit) || bit / 8 == 7;
            prop_assert!(uncovered || parse(&packet, Verify::Checksum).is_err(), "bit {bit}");
        }
    }
}

/// Parsing a segment without options clears the options of the earlier segment.
#[test]
fn options_of_another_segment_do_not_stay() {
    let mut segment =
        Segment { options: Options { mss: Some(1), ..Options::default() }, ..Segment::default() };
    let packet = super::bytes_of(&super::headers(), &Segment::default());
    parse_into(&packet, Verify::Checksum, &mut segment).unwrap();
    assert_eq!(segment.options, Options::default());
}
