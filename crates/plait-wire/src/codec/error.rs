//! Errors of the parser and of the encoder.

use thiserror::Error;

/// An error of the parser: the problem and its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{problem}, at byte {at} of the packet")]
pub struct ParseError {
    /// The problem.
    pub problem: Problem,
    /// Offset of the field in the packet.
    pub at: usize,
}

/// A problem of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Problem {
    /// The packet ends within a header.
    #[error("{0} is cut short")]
    Short(Field),
    /// The IP version is neither 4 nor 6.
    #[error("IP version {0}")]
    Version(u8),
    /// A length that is smaller than its header, or larger than the available bytes.
    #[error("{0} says {1} bytes")]
    Length(Field, u32),
    /// The checksum does not match the bytes.
    #[error("wrong checksum of {0}")]
    Checksum(Field),
    /// A fragment (RFC 791). Fragments are not reassembled.
    #[error("fragment")]
    Fragment,
    /// The packet carries a protocol other than TCP; the value is its protocol number.
    #[error("protocol {0}")]
    Protocol(u8),
    /// An IPv6 extension header prevents delivery: a routing header with segments left, or one header
    /// more than the eight that are supported.
    #[error("IPv6 extension header {0}")]
    Extension(u8),
}

/// A part of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Field {
    /// The IPv4 header.
    #[error("the IPv4 header")]
    Ipv4Header,
    /// Total length of IPv4.
    #[error("the total length")]
    TotalLength,
    /// The IPv6 header.
    #[error("the IPv6 header")]
    Ipv6Header,
    /// Payload length of IPv6.
    #[error("the payload length")]
    PayloadLength,
    /// An IPv6 extension header.
    #[error("the IPv6 extension header")]
    Extension,
    /// The TCP header.
    #[error("the TCP header")]
    TcpHeader,
    /// Data offset of TCP.
    #[error("the data offset")]
    DataOffset,
    /// The TCP segment.
    #[error("the TCP segment")]
    Segment,
}

/// Options that the parser left out of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Skipped {
    /// Number of options, at most 255.
    pub count: u8,
    /// The first skipped option.
    pub first: Option<Unread>,
}

impl Skipped {
    pub(super) fn push(&mut self, unread: Unread) {
        self.count = self.count.saturating_add(1);
        self.first = self.first.or(Some(unread));
    }
}

/// An option that was skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unread {
    /// Offset of the option within the options, in bytes.
    pub at: u8,
    /// The option's kind (30 for MPTCP).
    pub kind: u8,
    /// The reason.
    pub why: Why,
}

/// The reason why an option was skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// The kind is not supported.
    Kind,
    /// The length exceeds the header or is less than two. The options after it are lost as well.
    Broken,
    /// The option never has this length.
    Length(u8),
    /// The MPTCP subtype is not defined.
    Subtype(u8),
    /// MP_CAPABLE of another version (RFC 8684 section 3.1).
    Version(u8),
    /// MP_CAPABLE with flag B set or without flag H: no algorithm that both ends support.
    Flags(u8),
    /// The option does not belong on such a segment. Examples: the MP_CAPABLE of a SYN on an ACK, an
    /// MSS after the handshake.
    Place,
    /// An earlier option has the same kind or excludes this one. The first one is used.
    Twice,
}

/// The reason why no packet can carry a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum EncodeError {
    /// The addresses are of two families.
    #[error("one address is IPv4, the other IPv6")]
    Families,
    /// The buffer is too small.
    #[error("the packet needs {needs} bytes, the buffer has {has}")]
    Room {
        /// Length of the packet in bytes.
        needs: usize,
        /// Length of the buffer in bytes.
        has: usize,
    },
    /// The packet exceeds the 16-bit length field of its IP header.
    #[error("a packet of {0} bytes")]
    Length(usize),
    /// The options exceed 40 bytes.
    #[error("{0} bytes of options")]
    Options(u32),
    /// The option does not belong on such a segment.
    #[error("{0} on such a segment")]
    Place(&'static str),
    /// The number exceeds its field.
    #[error("{0} does not fit its field")]
    Number(&'static str),
    /// The fields of the option are not a valid combination.
    #[error("{0} in no shape of the option")]
    Shape(&'static str),
}
