//! ICMP errors about packets that exceed the MTU.

use crate::router::too_big;
use plait_wire::codec::{Headers, TooBig, parse_too_big};
use plait_wire::{Payload, Segment};
use proptest::prelude::*;
use std::net::IpAddr;

/// Returns a "packet too big" message for `segment` that quotes `quoted` bytes, and its parsed form.
fn message(v6: bool, segment: &Segment, mtu: u32, quoted: usize) -> (Vec<u8>, TooBig) {
    let address = |last: u8| match v6 {
        true => IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]),
        false => IpAddr::from([10, 0, 0, last]),
    };
    let (src, dst, router) = (address(1), address(2), address(9));
    let out = too_big(router, &Headers::new(src, dst), segment, mtu, quoted);
    let Segment { src_port, dst_port, seq, .. } = *segment;
    (out, TooBig { src, dst, src_port, dst_port, seq, mtu })
}

fn sent() -> Segment {
    let payload = Payload::from_bytes(&[7; 600]);
    Segment { src_port: 443, dst_port: 50_000, seq: 0xdead_beef, payload, ..Segment::default() }
}

/// R63: ports and sequence number are read, even if only eight bytes of TCP are quoted.
#[test]
fn a_message_of_a_router_is_read() {
    for v6 in [false, true] {
        let header = if v6 { 40 } else { 20 };
        for quoted in [header + 8, header + 20, 500, 2_000] {
            let (packet, said) = message(v6, &sent(), 1_280, quoted);
            assert_eq!(parse_too_big(&packet), Some(said), "{quoted} bytes of v6 = {v6}");
        }
        let (packet, _) = message(v6, &sent(), 1_280, header + 7);
        assert_eq!(parse_too_big(&packet), None);
        // Another type, another code, another protocol.
        for (at, value) in [(header, 4), (header + 1, 1), (if v6 { 6 } else { 9 }, 6)] {
            let (mut packet, _) = message(v6, &sent(), 1_280, 500);
            packet[at] = value;
            assert_eq!(parse_too_big(&packet), None, "{value} at {at}");
        }
    }
}

proptest! {
    /// R79: no bytes cause a panic. If a byte after the addresses changes, the checksum detects it.
    #[test]
    fn no_bytes_are_too_strange(
        v6: bool,
        cut in 0usize..700,
        changes in proptest::collection::vec((0usize..700, any::<u8>()), 0..4),
        bytes in proptest::collection::vec(any::<u8>(), 0..120),
    ) {
        let _ = parse_too_big(&bytes);
        let (mut packet, said) = message(v6, &sent(), 1_280, 600);
        packet.truncate(cut.max(1));
        let whole = packet.clone();
        let header = if v6 { 40 } else { 20 };
        for (at, value) in changes {
            if let Some(byte) = packet.get_mut(at) {
                *byte = value;
            }
        }
        let one = packet.iter().zip(&whole).filter(|(a, b)| a != b).count() == 1;
        let read = parse_too_big(&packet);
        if one && packet.get(..header) == whole.get(..header) {
            prop_assert_eq!(read, None);
        } else if packet == whole && cut >= 648 {
            prop_assert_eq!(read, Some(said));
        }
    }
}
