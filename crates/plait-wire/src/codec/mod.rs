//! Segments as bytes: an IPv4 or IPv6 packet with a TCP header, its options and the payload.
//!
//! * [`encode`] appends a packet to a buffer, [`encode_to`] writes it to a slice; they refuse what no
//!   packet can carry and never cut anything short.
//! * [`parse`] gives the segment of a packet with a copy of its payload, [`parse_into`] fills a
//!   segment that is there and lends the payload. Neither reads beyond the packet, neither panics.
//!
//! What is parsed is what was encoded: [`Headers`] hold the addresses and what else the IP header
//! says, the [`Segment`] holds ports, numbers, flags, window, options and payload. Two things are not
//! on the wire: [`Segment::server`] is the driver's number for the server's address (zero after a
//! parse), and whether a payload is a pattern or bytes.
//!
//! [`parse_too_big`] reads what routers say of packets that were too long.
//!
//! Checksums are a switch: a driver with checksum offload leaves the sum of the pseudo header for the
//! device ([`TcpChecksum::PseudoHeader`]; the virtio header then says
//! `csum_start` = length of the IP header, `csum_offset` = [`TCP_CHECKSUM_OFFSET`]) and trusts it the
//! other way ([`Verify::Trusted`]).
//!
//! Options that are unknown, malformed, out of place or told twice are left out of the segment and
//! counted in [`Skipped`]; as in Linux a broken option does not take the segment with it.

mod error;
mod icmp;
mod ip;
mod mptcp;
mod options;
mod tcp;

pub use error::{EncodeError, Field, ParseError, Problem, Skipped, Unread, Why};
pub use icmp::{TooBig, parse_too_big};
pub use tcp::{TCP_CHECKSUM_OFFSET, TcpChecksum, Verify};

use crate::{Payload, Segment};
use alloc::vec::Vec;
use core::net::IpAddr;

/// What the IP header says beside lengths and checksums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Headers {
    /// Sender's address.
    pub src: IpAddr,
    /// Receiver's address, of the same family.
    pub dst: IpAddr,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// Type of service, or traffic class; the lowest two bits are ECN (RFC 3168).
    pub traffic_class: u8,
    /// Identification of an IPv4 packet. Packets go out with "don't fragment" set, so it need not be
    /// unique (RFC 6864 section 4).
    pub ident: u16,
    /// Flow label of an IPv6 packet, 20 bits (RFC 6437).
    pub flow_label: u32,
}

impl Headers {
    /// A packet from `src` to `dst` with a hop limit of 64 and everything else zero.
    #[must_use]
    pub const fn new(src: IpAddr, dst: IpAddr) -> Headers {
        Headers { src, dst, hop_limit: 64, traffic_class: 0, ident: 0, flow_label: 0 }
    }

    /// Bytes of the IP header.
    #[must_use]
    pub const fn len(&self) -> usize {
        if self.src.is_ipv4() { ip::V4_HEADER } else { ip::V6_HEADER }
    }

    /// Never: there is always a header.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// A parsed packet, beside its segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// What the IP header says.
    pub headers: Headers,
    /// The payload, within the packet.
    pub payload: &'a [u8],
    /// Where in the packet the payload begins.
    pub payload_at: usize,
    /// Options that the segment does not have.
    pub skipped: Skipped,
}

/// Bytes of the packet that [`encode`] makes.
#[must_use]
pub fn encoded_len(headers: &Headers, segment: &Segment) -> usize {
    let tcp = Segment::TCP_HEADER + segment.options.header_len();
    headers.len() + tcp as usize + segment.payload.len() as usize
}

/// Appends the packet to `out` and tells how many bytes it has.
///
/// # Errors
/// What no packet can carry, see [`EncodeError`]; `out` is then as it was.
pub fn encode(
    headers: &Headers,
    segment: &Segment,
    checksum: TcpChecksum,
    out: &mut Vec<u8>,
) -> Result<usize, EncodeError> {
    let start = out.len();
    out.resize(start + encoded_len(headers, segment), 0);
    let written = match out.get_mut(start..) {
        Some(room) => encode_to(headers, segment, checksum, room),
        None => Ok(0),
    };
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Appends the headers of the packet to `out`, without its payload, for a device that is lent that.
/// Tells how many bytes they have.
///
/// # Errors
/// What no packet can carry, see [`EncodeError`]; `out` is then as it was.
pub fn encode_headers(
    headers: &Headers,
    segment: &Segment,
    checksum: TcpChecksum,
    out: &mut Vec<u8>,
) -> Result<usize, EncodeError> {
    let (start, tcp_len) = (out.len(), tcp::header_len(segment)?);
    out.resize(start + headers.len() + tcp_len, 0);
    let mut write = || {
        let (ip, tcp) = out[start..].split_at_mut(headers.len());
        let pseudo = ip::write(headers, tcp_len + segment.payload.len() as usize, ip)?;
        tcp::write_header(segment, pseudo, tcp)?;
        if checksum == TcpChecksum::Full {
            tcp::finish_checksum(segment, pseudo, tcp);
        }
        Ok(())
    };
    let written = write();
    if written.is_err() {
        out.truncate(start);
    }
    written.map(|()| headers.len() + tcp_len)
}

/// Writes the packet to the front of `out` and tells how many bytes it has.
///
/// # Errors
/// What no packet can carry, or no room for it, see [`EncodeError`]; what `out` then holds is not
/// defined.
pub fn encode_to(
    headers: &Headers,
    segment: &Segment,
    checksum: TcpChecksum,
    out: &mut [u8],
) -> Result<usize, EncodeError> {
    let len = encoded_len(headers, segment);
    let has = out.len();
    let Some(packet) = out.get_mut(..len) else {
        return Err(EncodeError::Room { needs: len, has });
    };
    let (ip, tcp) = packet.split_at_mut(headers.len());
    let pseudo = ip::write(headers, tcp.len(), ip)?;
    tcp::write(segment, pseudo, checksum, tcp)?;
    Ok(len)
}

/// The segment of a packet, with a copy of its payload.
///
/// # Errors
/// What is wrong and where, see [`ParseError`].
pub fn parse(packet: &[u8], verify: Verify) -> Result<(Headers, Segment), ParseError> {
    let mut segment = Segment::default();
    let parsed = parse_into(packet, verify, &mut segment)?;
    if !parsed.payload.is_empty() {
        segment.payload = Payload::from_bytes(parsed.payload);
    }
    Ok((parsed.headers, segment))
}

/// Fills `segment` with what a packet says, the payload excepted, which is lent. Allocates only
/// where there is an MPTCP option other than a DSS.
///
/// # Errors
/// What is wrong and where, see [`ParseError`]; what `segment` then holds is not defined.
pub fn parse_into<'a>(
    packet: &'a [u8],
    verify: Verify,
    segment: &mut Segment,
) -> Result<Packet<'a>, ParseError> {
    let ip = ip::read(packet)?;
    let (payload_at, skipped) = tcp::read(&ip, verify, segment)?;
    let payload = ip.body.get(payload_at - ip.at..).unwrap_or_default();
    Ok(Packet { headers: ip.headers, payload, payload_at, skipped })
}
