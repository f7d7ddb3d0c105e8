//! Segments as bytes: an IPv4 or IPv6 packet with a TCP header, its options and the payload.
//!
//! * [`encode`] appends a packet to a buffer, and [`encode_to`] writes it to a slice. Both return an
//!   error if no packet can carry the segment; they never truncate it.
//! * [`parse`] returns the segment of a packet with a copy of its payload. [`parse_into`] fills an
//!   existing segment and borrows the payload. Neither reads beyond the packet, neither panics.
//!
//! Parsing an encoded packet returns the encoded values. [`Headers`] hold the addresses and the other
//! fields of the IP header. The [`Segment`] holds ports, numbers, flags, window, options and payload.
//! Two properties are not on the wire. [`Segment::server`] is the driver's number of the server
//! address, and is zero after a parse. The form of a payload, pattern or bytes, is not kept either.
//!
//! [`parse_too_big`] reads the ICMP errors of routers about packets that exceed the MTU.
//!
//! Checksums are configurable for drivers with checksum offload. On transmission,
//! [`TcpChecksum::PseudoHeader`] writes the sum of the pseudo header, and the device adds the rest.
//! The virtio header then has `csum_start` = length of the IP header and
//! `csum_offset` = [`TCP_CHECKSUM_OFFSET`]. On reception, [`Verify::Trusted`] skips the verification.
//!
//! Unknown, malformed, misplaced and repeated options are left out of the segment and counted in
//! [`Skipped`]. As in Linux, a malformed option does not invalidate its segment.

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

/// The fields of an IP header except lengths and checksums.
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
    /// Identification of an IPv4 packet. It need not be unique, because packets are sent with "don't
    /// fragment" set (RFC 6864 section 4).
    pub ident: u16,
    /// Flow label of an IPv6 packet, 20 bits (RFC 6437).
    pub flow_label: u32,
}

impl Headers {
    /// Returns the header from `src` to `dst` with a hop limit of 64 and all other fields zero.
    #[must_use]
    pub const fn new(src: IpAddr, dst: IpAddr) -> Headers {
        Headers { src, dst, hop_limit: 64, traffic_class: 0, ident: 0, flow_label: 0 }
    }

    /// Returns the length of the IP header in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        if self.src.is_ipv4() { ip::V4_HEADER } else { ip::V6_HEADER }
    }

    /// Returns false: a header is never empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// A parsed packet, without its segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The IP header.
    pub headers: Headers,
    /// Offset of the TCP header in the packet, in bytes: after all IPv6 extension headers.
    pub tcp_at: usize,
    /// The payload, within the packet.
    pub payload: &'a [u8],
    /// Offset of the payload in the packet, in bytes.
    pub payload_at: usize,
    /// Options that were left out of the segment.
    pub skipped: Skipped,
}

/// Returns the length in bytes of the packet that [`encode`] writes.
#[must_use]
pub fn encoded_len(headers: &Headers, segment: &Segment) -> usize {
    let tcp = Segment::TCP_HEADER + segment.options.header_len();
    headers.len() + tcp as usize + segment.payload.len() as usize
}

/// Appends the packet to `out` and returns its length in bytes.
///
/// # Errors
/// Returns an [`EncodeError`] if no packet can carry the segment; `out` is then unchanged.
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

/// Appends the headers of the packet to `out` and returns their length in bytes. The payload is left
/// out, for devices that borrow it.
///
/// # Errors
/// Returns an [`EncodeError`] if no packet can carry the segment; `out` is then unchanged.
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

/// Writes the packet to the front of `out` and returns its length in bytes.
///
/// # Errors
/// Returns an [`EncodeError`] if no packet can carry the segment, or if `out` is too short. The
/// content of `out` is then unspecified.
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

/// Returns the headers and the segment of a packet, with a copy of its payload.
///
/// # Errors
/// Returns a [`ParseError`] that says what is wrong and at which byte.
pub fn parse(packet: &[u8], verify: Verify) -> Result<(Headers, Segment), ParseError> {
    let mut segment = Segment::default();
    let parsed = parse_into(packet, verify, &mut segment)?;
    if !parsed.payload.is_empty() {
        segment.payload = Payload::from_bytes(parsed.payload);
    }
    Ok((parsed.headers, segment))
}

/// Fills `segment` from a packet and returns the rest; the payload is borrowed from the packet.
///
/// Allocates only if the packet has an MPTCP option other than a DSS.
///
/// # Errors
/// Returns a [`ParseError`]; the content of `segment` is then unspecified.
pub fn parse_into<'a>(
    packet: &'a [u8],
    verify: Verify,
    segment: &mut Segment,
) -> Result<Packet<'a>, ParseError> {
    let ip = ip::read(packet)?;
    let (payload_at, skipped) = tcp::read(&ip, verify, segment)?;
    let payload = ip.body.get(payload_at - ip.at..).unwrap_or_default();
    Ok(Packet { headers: ip.headers, tcp_at: ip.at, payload, payload_at, skipped })
}
