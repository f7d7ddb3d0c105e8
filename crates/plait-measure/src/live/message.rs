//! Messages over TCP: one JSON object in a line.

use super::collect::Summary;
use serde::{Deserialize, Serialize};

/// Port of `plait measure serve`.
pub const DEFAULT_PORT: u16 = 7788;
/// Version of the protocol.
pub(super) const VERSION: u32 = 1;
/// Longest line in bytes.
pub(super) const MAX_LINE_BYTES: usize = 1 << 20;

/// A message of the client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// The first line.
    Hello {
        version: u32,
        /// Longest time of the measurement.
        time_ms: u64,
        /// Most bytes that the server will send.
        bytes: u64,
        paths: u8,
    },
    /// Send load on paths at once.
    Send { loads: Vec<Load> },
    /// Ask for the packets that arrived of a load of the client.
    Collect { path: u8, phase: u16 },
    /// A connection that only shows whether options of Multipath TCP arrive.
    Options,
}

/// Load on a path.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Load {
    pub(super) path: u8,
    pub(super) phase: u16,
    /// Bits of IP packets per second.
    pub(super) rate_bps: u64,
    /// Payload of a datagram.
    pub(super) size_bytes: u16,
    pub(super) time_ms: u64,
}

/// Packets sent of a load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) packets: u64,
    pub(super) time_ns: u64,
}

/// A message of the server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    /// The server agrees.
    Welcome {
        /// Token of the datagrams, in hexadecimal digits.
        token: String,
        /// The same for both ends if both have the same clock.
        host: u64,
        /// Whether its kernel has Multipath TCP.
        mptcp: bool,
    },
    /// The server does not agree, or cannot do it.
    Refused { problem: String },
    /// The load was sent.
    Sent { all: Vec<Sent> },
    /// Packets that arrived.
    Collected { summary: Summary },
}

/// Writes a token.
pub(super) fn digits(token: &[u8]) -> String {
    token.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a token.
pub(super) fn token(digits: &str) -> Option<[u8; 16]> {
    let mut token = [0; 16];
    if digits.len() != 32 || !digits.is_ascii() {
        return None;
    }
    for (at, byte) in token.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let all: Vec<u8> = (240..=255).collect();
        assert_eq!(token(&digits(&all)).map(Vec::from), Some(all));
        assert_eq!(token("f0"), None);
        assert_eq!(token(&"g".repeat(32)), None);
    }
}
