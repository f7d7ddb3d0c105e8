//! Reasons why the endpoint refuses a call.

use core::fmt;
use core::net::IpAddr;
use plait_base::{ConnId, PathId};

/// An error of [`Endpoint`](crate::Endpoint). Nothing has changed if a call returns one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// No connection has this identifier: it never existed, or it was released and is over.
    UnknownConnection(ConnId),
    /// The specification of the connection has no path to dial on.
    NoPath,
    /// The connection was reset or aborted (RFC 9293 section 3.10, RFC 8684 section 3.5).
    Failed,
    /// This end has finished: it sends no further data.
    Finished,
    /// The connection is plain TCP: it fell back, or is about to (RFC 8684 section 3.7).
    PlainTcp,
    /// Only a server announces addresses, and this end is the client.
    NotServer,
    /// The address has no number here ([`Endpoint::number_address`](crate::Endpoint::number_address)).
    UnknownAddress(IpAddr),
    /// The address was not announced on this connection.
    NotAnnounced(IpAddr),
    /// The connection has no established subflow on this path.
    NoSubflow(PathId),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownConnection(id) => write!(f, "there is no connection {}", id.0),
            Error::NoPath => f.write_str("the connection has no path: give it at least one"),
            Error::Failed => f.write_str("the connection was reset or given up"),
            Error::Finished => f.write_str("this end has finished and sends no further data"),
            Error::PlainTcp => f.write_str("the connection is plain TCP"),
            Error::NotServer => f.write_str("only a server announces addresses"),
            Error::UnknownAddress(address) => write!(f, "{address} has no number: number it first"),
            Error::NotAnnounced(address) => write!(f, "{address} was not announced"),
            Error::NoSubflow(path) => write!(f, "no established subflow is on path {}", path.0),
        }
    }
}

impl core::error::Error for Error {}
