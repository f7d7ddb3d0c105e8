//! ICMP errors about packets that exceed the MTU of the next hop: ICMP type 3 code 4 (RFC 792,
//! RFC 1191 section 4) and ICMPv6 type 2 (RFC 4443 section 3.2). Other messages are not read.

use super::ip::{TCP, V4_HEADER, V6_HEADER};
use crate::Sum;
use core::net::IpAddr;

const ICMP_V4: u8 = 1;
const ICMP_V6: u8 = 58;
/// Length of the ICMP header in bytes: type, code, checksum and four bytes that depend on the type.
const HEADER: usize = 8;

/// The report of a router that a packet exceeded the MTU of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooBig {
    /// Source address of that packet.
    pub src: IpAddr,
    /// Destination address of that packet.
    pub dst: IpAddr,
    /// TCP source port.
    pub src_port: u16,
    /// TCP destination port.
    pub dst_port: u16,
    /// Sequence number of the quoted segment.
    pub seq: u32,
    /// MTU of the link in bytes, or zero if an old router does not report it.
    pub mtu: u32,
}

/// Parses an ICMP "packet too big" message. Returns `None` for any other packet, if the ICMP checksum
/// is wrong, or if the quoted bytes do not start a TCP segment. Never panics, never reads beyond the
/// packet.
#[must_use]
pub fn parse_too_big(packet: &[u8]) -> Option<TooBig> {
    match packet.first()? >> 4 {
        4 => read_v4(packet),
        6 => read_v6(packet),
        _ => None,
    }
}

fn read_v4(packet: &[u8]) -> Option<TooBig> {
    let (header, body) = v4(packet, true)?;
    if header.get(9) != Some(&ICMP_V4) || body.first_chunk::<2>() != Some(&[3, 4]) {
        return None;
    }
    let mut sum = Sum::default();
    sum.add(body);
    if sum.checksum() != 0 {
        return None;
    }
    let fixed = body.first_chunk::<HEADER>()?;
    let mtu = u32::from(u16::from_be_bytes([fixed[6], fixed[7]]));
    let (quoted, tcp) = v4(body.get(HEADER..)?, false)?;
    let fixed = quoted.first_chunk::<V4_HEADER>().filter(|fixed| fixed[9] == TCP)?;
    let address =
        |at: usize| IpAddr::from([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    segment(address(12), address(16), tcp, mtu)
}

/// Splits an IPv4 packet into header and body. Returns `None` for fragments other than the first. A
/// quoted packet (`whole` is false) may be cut short.
fn v4(packet: &[u8], whole: bool) -> Option<(&[u8], &[u8])> {
    let fixed = packet.first_chunk::<V4_HEADER>()?;
    let header_len = usize::from(fixed[0] & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    let offset = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x1fff;
    let right = fixed[0] >> 4 == 4 && header_len >= V4_HEADER && offset == 0;
    let packet = packet.get(..total).or((!whole).then_some(packet))?;
    packet.split_at_checked(header_len).filter(|_| right)
}

fn read_v6(packet: &[u8]) -> Option<TooBig> {
    let fixed = packet.first_chunk::<V6_HEADER>().filter(|fixed| fixed[6] == ICMP_V6)?;
    let len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let body = packet.get(V6_HEADER..V6_HEADER + len)?;
    let start = body.first_chunk::<HEADER>().filter(|start| start[..2] == [2, 0])?;
    let mut sum = Sum::default();
    sum.add(&fixed[8..]);
    sum.add(&(len as u32).to_be_bytes());
    sum.add(&[0, ICMP_V6]);
    sum.add(body);
    if sum.checksum() != 0 {
        return None;
    }
    let mtu = u32::from_be_bytes([start[4], start[5], start[6], start[7]]);
    let quoted = body.get(HEADER..)?;
    let fixed = quoted.first_chunk::<V6_HEADER>()?;
    if fixed[0] >> 4 != 6 || fixed[6] != TCP {
        return None;
    }
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        IpAddr::from(octets)
    };
    segment(address(8), address(24), quoted.get(V6_HEADER..)?, mtu)
}

/// Reads ports and sequence number. Every message quotes at least these eight bytes of the segment.
fn segment(src: IpAddr, dst: IpAddr, tcp: &[u8], mtu: u32) -> Option<TooBig> {
    let start = tcp.first_chunk::<8>()?;
    let word = |at: usize| u16::from_be_bytes([start[at], start[at + 1]]);
    let seq = u32::from_be_bytes([start[4], start[5], start[6], start[7]]);
    Some(TooBig { src, dst, src_port: word(0), dst_port: word(2), seq, mtu })
}
