//! The TCP header (RFC 9293 section 3.1).

use super::error::{EncodeError, Field, ParseError, Problem, Skipped};
use super::ip::Ip;
use super::options;
use crate::{Flags, MAX_OPTION_BYTES, Payload, Segment, Sum};
use plait_base::ServerAddress;

const HEADER: usize = Segment::TCP_HEADER as usize;

/// Offset of the checksum in the TCP header: `csum_offset` of a virtio header.
pub const TCP_CHECKSUM_OFFSET: u16 = 16;

/// The content of the checksum field.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum TcpChecksum {
    /// The complete checksum.
    #[default]
    Full,
    /// The sum of the pseudo header, not inverted. A device adds the rest.
    PseudoHeader,
}

/// Whether the TCP checksum of a packet is verified. The checksum of an IPv4 header always is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Verify {
    /// The parser verifies it.
    #[default]
    Checksum,
    /// The parser does not verify it. A device has done so, or the bytes never left this host.
    Trusted,
}

/// Returns the length of the header with its options, in bytes.
pub(super) fn header_len(segment: &Segment) -> Result<usize, EncodeError> {
    let option_bytes = segment.options.header_len();
    if option_bytes > MAX_OPTION_BYTES {
        return Err(EncodeError::Options(option_bytes));
    }
    Ok(HEADER + option_bytes as usize)
}

/// Writes header, options and payload. `out` has their length.
pub(super) fn write(
    segment: &Segment,
    pseudo: Sum,
    checksum: TcpChecksum,
    out: &mut [u8],
) -> Result<(), EncodeError> {
    let (header, payload) = out.split_at_mut(header_len(segment)?);
    write_header(segment, pseudo, header)?;
    segment.payload.copy_to(payload);
    if checksum == TcpChecksum::Full {
        let mut sum = pseudo;
        out[16..18].fill(0);
        sum.add(out);
        out[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
    }
    Ok(())
}

/// Writes the checksum into a complete header whose payload is stored elsewhere.
pub(super) fn finish_checksum(segment: &Segment, pseudo: Sum, header: &mut [u8]) {
    let mut sum = pseudo;
    header[16..18].fill(0);
    sum.add(header);
    sum.add_payload(&segment.payload);
    header[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
}

/// Writes header and options. The checksum field gets the sum of the pseudo header. `header` has the
/// length of both.
pub(super) fn write_header(
    segment: &Segment,
    pseudo: Sum,
    header: &mut [u8],
) -> Result<(), EncodeError> {
    header[0..2].copy_from_slice(&segment.src_port.to_be_bytes());
    header[2..4].copy_from_slice(&segment.dst_port.to_be_bytes());
    header[4..8].copy_from_slice(&segment.seq.to_be_bytes());
    header[8..12].copy_from_slice(&segment.ack.to_be_bytes());
    header[12] = (header.len() as u8 / 4) << 4;
    header[13] = segment.flags.0;
    header[14..16].copy_from_slice(&segment.window.to_be_bytes());
    header[16..18].copy_from_slice(&(!pseudo.checksum()).to_be_bytes());
    header[18..20].fill(0);
    options::write(segment, &mut header[HEADER..])
}

/// Reads header and options into `segment`. Returns the offset of the payload in the packet.
pub(super) fn read(
    ip: &Ip<'_>,
    verify: Verify,
    segment: &mut Segment,
) -> Result<(usize, Skipped), ParseError> {
    let error = |problem, at| Err(ParseError { problem, at: ip.at + at });
    let Some(fixed) = ip.body.first_chunk::<HEADER>() else {
        return error(Problem::Short(Field::TcpHeader), ip.body.len());
    };
    let header_len = usize::from(fixed[12] >> 4) * 4;
    let Some(option_bytes) = ip.body.get(HEADER..header_len) else {
        return error(Problem::Length(Field::DataOffset, header_len as u32), 12);
    };
    if verify == Verify::Checksum {
        let mut sum = ip.pseudo_header();
        sum.add(ip.body);
        if sum.checksum() != 0 {
            return error(Problem::Checksum(Field::Segment), 16);
        }
    }
    let half = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
    let word =
        |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
    segment.src_port = half(0);
    segment.dst_port = half(2);
    segment.seq = word(4);
    segment.ack = word(8);
    segment.flags = Flags(fixed[13]);
    segment.server = ServerAddress::default();
    segment.window = half(14);
    segment.payload = Payload::Empty;
    segment.options.clear();
    let skipped = options::read(option_bytes, segment.flags, &mut segment.options);
    Ok((ip.at + header_len, skipped))
}
