//! Packets of a capture as TCP segments: the link layer, IP, and packets that the capture cut.

use crate::lookup::Digest;
use crate::source::Frame;
use plait_wire::Segment;
use plait_wire::codec::{Problem, Verify, Why, parse_into};
use std::net::SocketAddr;

/// Kind of the MPTCP option.
const MPTCP: u8 = 30;
/// Protocol number of TCP.
const TCP: u8 = 6;
/// Link type of packets that begin with their IP header (LINKTYPE_RAW).
pub(crate) const RAW_IP: i32 = 101;
/// Largest IP packet in bytes.
const MAX_IP: usize = 65_535 + 40;
/// Largest payload in bytes of a packet without a length in its IP header (`GSO_MAX_SIZE` of Linux).
const MAX_OFFLOADED: usize = 524_280;

/// A TCP segment as captured.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Index of the file.
    pub(crate) file: usize,
    /// Number of the packet in its file, from 1.
    pub(crate) number: u64,
    /// Number of the interface in its file.
    pub(crate) interface: u32,
    /// Time in nanoseconds since the epoch.
    pub(crate) at_ns: i64,
    pub(crate) src: SocketAddr,
    pub(crate) dst: SocketAddr,
    /// The segment without its payload.
    pub(crate) segment: Segment,
    /// Payload bytes on the wire, captured or not.
    pub(crate) payload: u32,
    /// True if the capture has no room for all options.
    pub(crate) cut: bool,
    /// Version of an MP_CAPABLE that is not version 1.
    pub(crate) version: Option<u8>,
    /// Equal for copies of a packet: made of the addresses, the identification and the TCP header.
    pub(crate) digest: u64,
    /// True if the IP header has an identification.
    pub(crate) has_ident: bool,
    /// Equal for packets of one interface with equal link headers and hop limits.
    pub(crate) way: u64,
}

/// Why a packet is no segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unread {
    /// It is no TCP.
    Other,
    /// The link type is not supported.
    Link(i32),
    /// It is a fragment.
    Fragment,
    /// The captured bytes end before the TCP ports and numbers.
    Cut,
    /// Its headers contradict each other.
    Malformed,
}

/// Reads packets. It has a buffer for packets whose end was not captured.
pub(crate) struct PacketReader {
    /// A packet's captured bytes, and zeros in place of the others.
    whole: Vec<u8>,
}

impl PacketReader {
    pub(crate) fn new() -> PacketReader {
        PacketReader { whole: vec![0; MAX_IP] }
    }

    /// Returns the segment of a packet of the file with index `file`.
    pub(crate) fn read(&mut self, file: usize, frame: &Frame<'_>) -> Result<Seen, Unread> {
        let skip = ip_at(frame.link, frame.bytes)?;
        let ip = frame.bytes.get(skip..).ok_or(Unread::Cut)?;
        let original = (frame.original as usize).saturating_sub(skip).max(ip.len());
        let (mut segment, (total, at)) = (Segment::default(), self.completed(ip, original)?);
        let packet = match at {
            Where::AsCaptured => parse_into(ip, Verify::Trusted, &mut segment),
            Where::Completed(len) => parse_into(&self.whole[..len], Verify::Trusted, &mut segment),
        };
        let packet = packet.map_err(|error| match error.problem {
            Problem::Fragment => Unread::Fragment,
            Problem::Protocol(_) => Unread::Other,
            _ if ip.len() < original => Unread::Cut,
            _ => Unread::Malformed,
        })?;
        // Extension headers that were cut give a wrong offset, so the whole TCP header is needed after them.
        let has_extensions = !packet.headers.src.is_ipv4() && ip.get(6) != Some(&TCP);
        let needed = match has_extensions {
            true => packet.payload_at,
            false => packet.tcp_at + Segment::TCP_HEADER as usize,
        };
        if ip.len() < needed {
            return Err(Unread::Cut);
        }
        // The length of the frame counts only if the IP header has none.
        let jumbo = total == 0 && original > MAX_IP;
        let payload = if jumbo { original - packet.payload_at } else { packet.payload.len() };
        if payload > MAX_OFFLOADED {
            return Err(Unread::Malformed);
        }
        let version = packet.skipped.first.and_then(|it| match it.why {
            Why::Version(version) if it.kind == MPTCP => Some(version),
            _ => None,
        });
        let (digest, has_ident) = digest(ip, (packet.tcp_at, packet.payload_at), payload);
        Ok(Seen {
            file,
            number: frame.number,
            interface: frame.interface,
            at_ns: frame.at_ns,
            src: SocketAddr::new(packet.headers.src, segment.src_port),
            dst: SocketAddr::new(packet.headers.dst, segment.dst_port),
            payload: payload as u32,
            cut: ip.len() < packet.payload_at,
            version,
            digest,
            has_ident,
            way: way(frame, ip),
            segment,
        })
    }

    /// Completes a packet that was cut, or whose length or checksum the network card writes later. Returns the length
    /// in its IP header too, which is zero if the card writes it.
    fn completed(&mut self, ip: &[u8], original: usize) -> Result<(usize, Where), Unread> {
        let half =
            |at: usize| ip.get(at..at + 2).map(|it| usize::from(it[0]) << 8 | usize::from(it[1]));
        let total = match ip.first().map(|first| first >> 4) {
            Some(4) => half(2).ok_or(Unread::Cut)?,
            Some(6) => match half(4).ok_or(Unread::Cut)? {
                0 => 0,
                len => len + 40,
            },
            Some(_) => return Err(Unread::Malformed),
            None => return Err(Unread::Cut),
        };
        if total > original {
            return Err(Unread::Malformed);
        }
        let version4 = ip[0] >> 4 == 4;
        let len =
            if total == 0 { original.min(if version4 { 65_535 } else { MAX_IP }) } else { total };
        let sum_is_wrong = || {
            let mut sum = plait_wire::Sum::default();
            sum.add(ip.get(..usize::from(ip[0] & 0x0f) * 4).unwrap_or_default());
            sum.checksum() != 0
        };
        if total == len && ip.len() >= len && !(version4 && sum_is_wrong()) {
            return Ok((total, Where::AsCaptured));
        }
        let copied = ip.len().min(len);
        let room = self.whole.get_mut(..len).ok_or(Unread::Malformed)?;
        room[..copied].copy_from_slice(&ip[..copied]);
        // Options that were cut must read as the end of the list, not as those of an earlier packet.
        let end = len.min(copied + 128);
        room[copied..end].fill(0);
        if version4 {
            let header = usize::from(room[0] & 0x0f) * 4;
            if header < 20 || header > copied {
                return Err(if header > copied { Unread::Cut } else { Unread::Malformed });
            }
            room[2..4].copy_from_slice(&(len as u16).to_be_bytes());
            room[10..12].fill(0);
            let mut sum = plait_wire::Sum::default();
            sum.add(&room[..header]);
            room[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
        } else if total == 0 && len >= 40 {
            room[4..6].copy_from_slice(&((len - 40).min(65_535) as u16).to_be_bytes());
        }
        Ok((total, Where::Completed(len)))
    }
}

/// Returns the digest of a packet, and whether it has an identification. `at` are the offsets of the TCP header and of
/// the payload. The hop limit, which routers change, and the checksum, which network cards write, are left out.
fn digest(ip: &[u8], at: (usize, usize), payload: usize) -> (u64, bool) {
    let mut digest = Digest::default();
    let (version4, part) = (ip[0] >> 4 == 4, |from: usize, to: usize| ip.get(from..to));
    let (addresses, ident) = match version4 {
        true => (part(12, 20), part(4, 6)),
        false => (part(8, 40), None),
    };
    digest.add_bytes(addresses);
    digest.add_bytes(ident);
    digest.add(payload as u64);
    digest.add_bytes(part(at.0, at.0 + 16));
    digest.add_bytes(part(at.0 + 18, at.1.min(ip.len())));
    (digest.value(), ident.is_some_and(|ident| ident != [0, 0]))
}

/// Returns the digest of the interface, the link header and the hop limit.
fn way(frame: &Frame<'_>, ip: &[u8]) -> u64 {
    let mut digest = Digest::default();
    let hop_limit = ip.get(if ip[0] >> 4 == 4 { 8 } else { 7 });
    let hop_limit = hop_limit.map_or(u64::MAX, |limit| u64::from(*limit));
    digest.add(u64::from(frame.interface));
    digest.add(hop_limit);
    digest.add_bytes(frame.bytes.get(..frame.bytes.len() - ip.len()));
    digest.value()
}

/// Where a complete packet is.
enum Where {
    AsCaptured,
    /// In the buffer, with this length.
    Completed(usize),
}

/// Returns the offset of the IP header in a frame.
fn ip_at(link: i32, bytes: &[u8]) -> Result<usize, Unread> {
    let half = |at: usize| match bytes.get(at..at + 2) {
        Some(two) => Ok(u16::from_be_bytes([two[0], two[1]])),
        None => Err(Unread::Cut),
    };
    match link {
        // BSD loopback: the address family in four bytes, in the order of either host.
        0 | 108 => match bytes.get(..4) {
            Some([0, 0, 0, 2 | 24 | 28 | 30] | [2 | 24 | 28 | 30, 0, 0, 0]) => Ok(4),
            Some(_) => Err(Unread::Other),
            None => Err(Unread::Cut),
        },
        1 => after_ether_type(bytes, half(12)?, 14),
        12 | 14 | RAW_IP | 228 | 229 => Ok(0),
        113 => after_ether_type(bytes, half(14)?, 16),
        276 => after_ether_type(bytes, half(0)?, 20),
        other => Err(Unread::Link(other)),
    }
}

/// Skips VLAN tags and PPPoE. `at` is the offset of the header with the type `kind`.
fn after_ether_type(bytes: &[u8], kind: u16, at: usize) -> Result<usize, Unread> {
    let (mut kind, mut at) = (kind, at);
    // No network has more tags than this.
    for _ in 0..8 {
        let half = |at: usize| match bytes.get(at..at + 2) {
            Some(two) => Ok(u16::from_be_bytes([two[0], two[1]])),
            None => Err(Unread::Cut),
        };
        match kind {
            0x0800 | 0x86dd => return Ok(at),
            0x8100 | 0x88a8 | 0x9100 => (kind, at) = (half(at + 2)?, at + 4),
            // A session of PPPoE: six bytes, and the protocol of PPP.
            0x8864 => match half(at + 6)? {
                0x0021 | 0x0057 => return Ok(at + 8),
                _ => return Err(Unread::Other),
            },
            _ => return Err(Unread::Other),
        }
    }
    Err(Unread::Malformed)
}
