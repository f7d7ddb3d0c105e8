//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use super::Headers;
use super::error::{EncodeError, Field, ParseError, Problem};
use crate::Sum;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const V4_HEADER: usize = 20;
pub(super) const V6_HEADER: usize = 40;
pub(super) const TCP: u8 = 6;
/// "Don't fragment".
const DF: u16 = 0x4000;
/// "More fragments" and the fragment offset.
const FRAGMENT: u16 = 0x3fff;
/// Maximum number of IPv6 extension headers. A packet with more of them is refused.
const MOST_EXTENSIONS: usize = 8;

/// The IP layer of a packet.
pub(super) struct Ip<'a> {
    pub(super) headers: Headers,
    /// The payload of IP: the TCP segment.
    pub(super) body: &'a [u8],
    /// Offset of the TCP segment in the packet, in bytes.
    pub(super) at: usize,
}

impl Ip<'_> {
    pub(super) fn pseudo_header(&self) -> Sum {
        pseudo_header(&self.headers, self.body.len())
    }
}

/// Returns the sum of addresses, protocol and length (RFC 9293 section 3.1, RFC 8200 section 8.1).
fn pseudo_header(headers: &Headers, len: usize) -> Sum {
    let mut sum = Sum::default();
    for address in [headers.src, headers.dst] {
        match address {
            IpAddr::V4(address) => sum.add(&address.octets()),
            IpAddr::V6(address) => sum.add(&address.octets()),
        }
    }
    sum.add(&(len as u32).to_be_bytes());
    sum.add(&[0, TCP]);
    sum
}

/// Writes the header of a packet that carries `len` bytes of TCP and returns the sum of its pseudo
/// header. `out` has the length of the header.
pub(super) fn write(headers: &Headers, len: usize, out: &mut [u8]) -> Result<Sum, EncodeError> {
    match (headers.src, headers.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => write_v4(headers, src, dst, len, out)?,
        (IpAddr::V6(src), IpAddr::V6(dst)) => write_v6(headers, src, dst, len, out)?,
        _ => return Err(EncodeError::Families),
    }
    Ok(pseudo_header(headers, len))
}

fn write_v4(
    headers: &Headers,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    len: usize,
    out: &mut [u8],
) -> Result<(), EncodeError> {
    let total = V4_HEADER + len;
    let total_len = u16::try_from(total).map_err(|_| EncodeError::Length(total))?;
    if headers.flow_label != 0 {
        return Err(EncodeError::Number("flow label"));
    }
    let mut bytes = [0; V4_HEADER];
    bytes[0] = 0x45;
    bytes[1] = headers.traffic_class;
    bytes[2..4].copy_from_slice(&total_len.to_be_bytes());
    bytes[4..6].copy_from_slice(&headers.ident.to_be_bytes());
    bytes[6..8].copy_from_slice(&DF.to_be_bytes());
    bytes[8] = headers.hop_limit;
    bytes[9] = TCP;
    bytes[12..16].copy_from_slice(&src.octets());
    bytes[16..20].copy_from_slice(&dst.octets());
    let mut sum = Sum::default();
    sum.add(&bytes);
    bytes[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
    out.copy_from_slice(&bytes);
    Ok(())
}

fn write_v6(
    headers: &Headers,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    len: usize,
    out: &mut [u8],
) -> Result<(), EncodeError> {
    let payload_len = u16::try_from(len).map_err(|_| EncodeError::Length(V6_HEADER + len))?;
    if headers.flow_label >> 20 != 0 {
        return Err(EncodeError::Number("flow label"));
    }
    if headers.ident != 0 {
        return Err(EncodeError::Number("identification"));
    }
    let first = 6 << 28 | u32::from(headers.traffic_class) << 20 | headers.flow_label;
    let mut bytes = [0; V6_HEADER];
    bytes[..4].copy_from_slice(&first.to_be_bytes());
    bytes[4..6].copy_from_slice(&payload_len.to_be_bytes());
    bytes[6] = TCP;
    bytes[7] = headers.hop_limit;
    bytes[8..24].copy_from_slice(&src.octets());
    bytes[24..40].copy_from_slice(&dst.octets());
    out.copy_from_slice(&bytes);
    Ok(())
}

/// Reads the IP header of a packet, IPv4 or IPv6 by its version field.
pub(super) fn read(packet: &[u8]) -> Result<Ip<'_>, ParseError> {
    let error = |problem| Err(ParseError { problem, at: 0 });
    match packet.first().map(|first| first >> 4) {
        None => error(Problem::Short(Field::Ipv4Header)),
        Some(4) => read_v4(packet),
        Some(6) => read_v6(packet),
        Some(version) => error(Problem::Version(version)),
    }
}

fn read_v4(packet: &[u8]) -> Result<Ip<'_>, ParseError> {
    let error = |problem, at| Err(ParseError { problem, at });
    let Some(fixed) = packet.first_chunk::<V4_HEADER>() else {
        return error(Problem::Short(Field::Ipv4Header), packet.len());
    };
    let header_len = usize::from(fixed[0] & 0x0f) * 4;
    if header_len < V4_HEADER {
        return error(Problem::Length(Field::Ipv4Header, header_len as u32), 0);
    }
    let total = usize::from(u16::from_be_bytes([fixed[2], fixed[3]]));
    if total < header_len {
        return error(Problem::Length(Field::TotalLength, total as u32), 2);
    }
    let Some(whole) = packet.get(..total) else {
        return error(Problem::Length(Field::TotalLength, total as u32), 2);
    };
    let (header, body) = whole.split_at(header_len);
    let mut sum = Sum::default();
    sum.add(header);
    if sum.checksum() != 0 {
        return error(Problem::Checksum(Field::Ipv4Header), 10);
    }
    if u16::from_be_bytes([fixed[6], fixed[7]]) & FRAGMENT != 0 {
        return error(Problem::Fragment, 6);
    }
    if fixed[9] != TCP {
        return error(Problem::Protocol(fixed[9]), 9);
    }
    let address =
        |at: usize| IpAddr::from([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    let headers = Headers {
        src: address(12),
        dst: address(16),
        hop_limit: fixed[8],
        traffic_class: fixed[1],
        ident: u16::from_be_bytes([fixed[4], fixed[5]]),
        flow_label: 0,
    };
    Ok(Ip { headers, body, at: header_len })
}

fn read_v6(packet: &[u8]) -> Result<Ip<'_>, ParseError> {
    let error = |problem, at| Err(ParseError { problem, at });
    let Some(fixed) = packet.first_chunk::<V6_HEADER>() else {
        return error(Problem::Short(Field::Ipv6Header), packet.len());
    };
    let len = usize::from(u16::from_be_bytes([fixed[4], fixed[5]]));
    let Some(whole) = packet.get(..V6_HEADER + len) else {
        return error(Problem::Length(Field::PayloadLength, len as u32), 4);
    };
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        IpAddr::from(octets)
    };
    let first = u32::from_be_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]);
    let headers = Headers {
        src: address(8),
        dst: address(24),
        hop_limit: fixed[7],
        traffic_class: (first >> 20) as u8,
        ident: 0,
        flow_label: first & 0x000f_ffff,
    };
    let at = skip_extensions(whole, fixed[6])?;
    let body = whole.get(at..).unwrap_or_default();
    Ok(Ip { headers, body, at })
}

/// Returns the offset of the TCP header. Skips hop-by-hop options, destination options and routing
/// headers without segments left (RFC 8200 section 4).
fn skip_extensions(packet: &[u8], first: u8) -> Result<usize, ParseError> {
    const HOP_BY_HOP: u8 = 0;
    const ROUTING: u8 = 43;
    const FRAGMENT_HEADER: u8 = 44;
    const DESTINATION: u8 = 60;
    let error = |problem, at| Err(ParseError { problem, at });
    let (mut kind, mut said_at, mut at) = (first, 6, V6_HEADER);
    for _ in 0..=MOST_EXTENSIONS {
        match kind {
            TCP => return Ok(at),
            HOP_BY_HOP | ROUTING | DESTINATION => {}
            FRAGMENT_HEADER => return error(Problem::Fragment, said_at),
            other => return error(Problem::Protocol(other), said_at),
        }
        let Some(header) = packet.get(at..).and_then(|rest| rest.first_chunk::<8>()) else {
            return error(Problem::Short(Field::Extension), at);
        };
        // The fourth byte of a routing header is "segments left".
        if kind == ROUTING && header[3] != 0 {
            return error(Problem::Extension(kind), at + 3);
        }
        let len = (usize::from(header[1]) + 1) * 8;
        if at + len > packet.len() {
            return error(Problem::Length(Field::Extension, len as u32), at + 1);
        }
        (kind, said_at, at) = (header[0], at, at + len);
    }
    error(Problem::Extension(kind), said_at)
}
