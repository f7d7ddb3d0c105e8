use crate::{Options, Payload, header};
use core::fmt;
use plait_base::ServerAddress;

/// The flags of a TCP header (RFC 9293 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field is valid.
    pub const ACK: Flags = Flags(0x10);

    /// Returns true if all flags of `other` are set.
    #[must_use]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(Flags::SYN, 'S'), (Flags::FIN, 'F'), (Flags::RST, 'R'), (Flags::PSH, 'P')];
        for (flag, name) in names {
            if self.has(flag) {
                write!(f, "{name}")?;
            }
        }
        if self.has(Flags::ACK) { f.write_str(".") } else { Ok(()) }
    }
}

/// A TCP segment. The client's address is not stored: the path of the segment determines it.
///
/// # Examples
/// ```
/// use plait_wire::codec::{Headers, TcpChecksum, Verify, encode, parse};
/// use plait_wire::{Flags, Segment};
///
/// let syn = Segment { src_port: 49_152, dst_port: 80, seq: 7, flags: Flags::SYN, ..Segment::default() };
/// assert_eq!((syn.seq_len(), syn.ip_len()), (1, 40));
/// let headers = Headers::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
/// let mut packet = Vec::new();
/// encode(&headers, &syn, TcpChecksum::Full, &mut packet)?;
/// let (_, parsed) = parse(&packet, Verify::Checksum)?;
/// assert_eq!((parsed.seq, parsed.flags), (7, Flags::SYN));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Sender's port.
    pub src_port: u16,
    /// Receiver's port.
    pub dst_port: u16,
    /// Sequence number of the first byte (or of SYN or FIN).
    pub seq: u32,
    /// Next sequence number expected. Valid if [`Flags::ACK`] is set.
    pub ack: u32,
    /// Header flags.
    pub flags: Flags,
    /// The server's address: the source or the destination of the segment.
    pub server: ServerAddress,
    /// Window field as on the wire, not yet scaled (RFC 7323 section 2.2).
    pub window: u16,
    /// Options.
    pub options: Options,
    /// Data.
    pub payload: Payload,
}

impl Segment {
    /// Bytes of an IPv4 header without options.
    pub const IPV4_HEADER: u32 = header::IPV4_HEADER;
    /// Bytes of a TCP header without options.
    pub const TCP_HEADER: u32 = header::TCP_HEADER;

    /// Returns the length in sequence space: the payload in bytes, plus one each for SYN and FIN.
    #[must_use]
    pub const fn seq_len(&self) -> u32 {
        let syn = self.flags.has(Flags::SYN) as u32;
        let fin = self.flags.has(Flags::FIN) as u32;
        self.payload.len() + syn + fin
    }

    /// Returns the length of the IPv4 packet in bytes.
    #[must_use]
    #[inline]
    pub fn ip_len(&self) -> u32 {
        Segment::IPV4_HEADER + Segment::TCP_HEADER + self.options.header_len() + self.payload.len()
    }
}
