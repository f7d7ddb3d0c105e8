//! What can be wrong with bytes and with segments.

use thiserror::Error;

/// Why a packet holds no segment, and where in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{problem}, at byte {at} of the packet")]
pub struct ParseError {
    /// What is wrong.
    pub problem: Problem,
    /// Offset of the field in the packet.
    pub at: usize,
}

/// What is wrong with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Problem {
    /// The packet ends within a header.
    #[error("{0} is cut short")]
    Short(Field),
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0}")]
    Version(u8),
    /// A length that is smaller than its header, or larger than what is there.
    #[error("{0} says {1} bytes")]
    Length(Field, u32),
    /// A checksum that is not that of the bytes.
    #[error("wrong checksum of {0}")]
    Checksum(Field),
    /// A piece of a packet (RFC 791): they are not put together.
    #[error("fragment")]
    Fragment,
    /// Something other than TCP, by its protocol number.
    #[error("protocol {0}")]
    Protocol(u8),
    /// An IPv6 extension header on which delivery here depends: a route that is not at its end, or
    /// more headers than anybody needs.
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

/// Options that a parsed segment does not have.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Skipped {
    /// How many.
    pub count: u8,
    /// The first of them.
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
    /// Offset of its kind, within the options.
    pub at: u8,
    /// Its kind (30 for MPTCP).
    pub kind: u8,
    /// Why.
    pub why: Why,
}

/// Why an option was skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Why {
    /// No use for the kind.
    Kind,
    /// Its length runs out of the header or is less than two: what follows cannot be read either.
    Broken,
    /// A length that the option never has.
    Length(u8),
    /// An MPTCP subtype without a meaning.
    Subtype(u8),
    /// MP_CAPABLE of another version (RFC 8684 section 3.1).
    Version(u8),
    /// MP_CAPABLE with flag B set or without flag H: nothing that can be agreed upon.
    Flags(u8),
    /// An option on a segment that cannot have it: MP_CAPABLE of a SYN on an ACK, MSS after the
    /// handshake.
    Place,
    /// There was one of the kind, or one that excludes it: the first counts.
    Twice,
}

/// What no packet can carry.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum EncodeError {
    /// Addresses of two families.
    #[error("one address is IPv4, the other IPv6")]
    Families,
    /// The buffer is too small.
    #[error("the packet needs {needs} bytes, the buffer has {has}")]
    Room {
        /// Bytes of the packet.
        needs: usize,
        /// Bytes of the buffer.
        has: usize,
    },
    /// More bytes than the length field of IP can say.
    #[error("a packet of {0} bytes")]
    Length(usize),
    /// More than 40 bytes of options.
    #[error("{0} bytes of options")]
    Options(u32),
    /// An option on a segment that cannot have it.
    #[error("{0} on such a segment")]
    Place(&'static str),
    /// A number that its field cannot hold.
    #[error("{0} does not fit its field")]
    Number(&'static str),
    /// An option with fields that do not go together.
    #[error("{0} in no shape of the option")]
    Shape(&'static str),
}
