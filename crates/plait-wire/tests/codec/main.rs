//! The byte codec: golden packets of a stock kernel, properties over generated segments, and malformed
//! bytes.

#![allow(clippy::unwrap_used, clippy::panic)]

mod generate;
mod golden;
mod icmp;
mod malformed;
mod properties;
mod router;

use plait_wire::codec::{Headers, Skipped, TcpChecksum, Verify, encode, parse_into};
use plait_wire::{Options, Payload, Segment};

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
    assert!(digits.len().is_multiple_of(2), "{text}");
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn headers() -> Headers {
    Headers::new([192, 0, 2, 1].into(), [198, 51, 100, 2].into())
}

fn bytes_of(headers: &Headers, segment: &Segment) -> Vec<u8> {
    let mut out = Vec::new();
    encode(headers, segment, TcpChecksum::Full, &mut out).unwrap();
    out
}

/// Returns the options as they are encoded in a header.
fn option_bytes(segment: &Segment) -> Vec<u8> {
    let packet = bytes_of(&headers(), segment);
    packet[40..40 + segment.options.header_len() as usize].to_vec()
}

/// Parses options on a segment with `flags`.
fn options_of(flags: plait_wire::Flags, bytes: &[u8]) -> (Options, Skipped) {
    let mut packet = bytes_of(&headers(), &Segment { flags, ..Segment::default() });
    let words = bytes.len().div_ceil(4);
    packet.extend_from_slice(bytes);
    packet.resize(40 + 4 * words, 0);
    packet[32] = ((5 + words) as u8) << 4;
    let total = (packet.len() as u16).to_be_bytes();
    packet[2..4].copy_from_slice(&total);
    packet[10..12].fill(0);
    let mut sum = plait_wire::Sum::default();
    sum.add(&packet[..20]);
    packet[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
    let mut segment = Segment::default();
    let parsed = parse_into(&packet, Verify::Trusted, &mut segment).unwrap();
    (segment.options, parsed.skipped)
}

/// Returns true if two segments are equal, except for the driver's number of the server.
fn same(one: &Segment, other: &Segment) -> bool {
    let bytes = |payload: &Payload| {
        let mut bytes = vec![0; payload.len() as usize];
        payload.copy_to(&mut bytes);
        bytes
    };
    let key = |s: &Segment| (s.src_port, s.dst_port, s.seq, s.ack, s.flags, s.window);
    key(one) == key(other)
        && one.options == other.options
        && bytes(&one.payload) == bytes(&other.payload)
}
