use crate::{Options, Payload};
use core::fmt;
use plait_base::ServerAddress;

/// The flags of a TCP header that plait uses (RFC 9293 section 3.1).
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
    /// The acknowledgement field counts.
    pub const ACK: Flags = Flags(0x10);

    /// Whether all flags of `other` are set.
    #[must_use]
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
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

/// A TCP segment. The client's address is that of the path it travels.
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Sender's port.
    pub src_port: u16,
    /// Receiver's port.
    pub dst_port: u16,
    /// Sequence number of the first byte (or of SYN or FIN).
    pub seq: u32,
    /// Next sequence number expected; counts where [`Flags::ACK`] is set.
    pub ack: u32,
    /// Header flags.
    pub flags: Flags,
    /// The server's address, which it comes from or goes to.
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
    pub const IPV4_HEADER: u32 = 20;
    /// Bytes of a TCP header without options.
    pub const TCP_HEADER: u32 = 20;

    /// How much of the sequence space the segment takes: its data, SYN and FIN.
    #[must_use]
    pub const fn seq_len(&self) -> u32 {
        let syn = self.flags.has(Flags::SYN) as u32;
        let fin = self.flags.has(Flags::FIN) as u32;
        self.payload.len() + syn + fin
    }

    /// Bytes of the whole IPv4 packet.
    #[must_use]
    #[inline]
    pub fn ip_len(&self) -> u32 {
        Segment::IPV4_HEADER + Segment::TCP_HEADER + self.options.header_len() + self.payload.len()
    }
}
