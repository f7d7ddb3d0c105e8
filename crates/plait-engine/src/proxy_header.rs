//! The header of the PROXY protocol, version 2. It carries the client's address to a service.
//!
//! <https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt>, section 2.2.

use std::net::{IpAddr, SocketAddr};

pub(crate) const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, a connection on behalf of another end.
const PROXY: u8 = 0x21;
/// A stream over IPv4 and over IPv6.
pub(crate) const STREAM_V4: u8 = 0x11;
pub(crate) const STREAM_V6: u8 = 0x21;

/// Returns the header for a connection from `from` to `to`, which must be of one family.
pub(crate) fn encode(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    let mut addresses = Vec::with_capacity(36);
    for address in [from.ip(), to.ip()] {
        match address {
            IpAddr::V4(address) => addresses.extend(address.octets()),
            IpAddr::V6(address) => addresses.extend(address.octets()),
        }
    }
    for port in [from.port(), to.port()] {
        addresses.extend(port.to_be_bytes());
    }
    let family = if from.is_ipv4() { STREAM_V4 } else { STREAM_V6 };
    let mut header = SIGNATURE.to_vec();
    header.extend([PROXY, family]);
    header.extend((addresses.len() as u16).to_be_bytes());
    header.extend(addresses);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of the specification.
    #[test]
    fn both_families_have_their_length() {
        let header = encode("192.0.2.7:50000".parse().unwrap(), "198.51.100.1:80".parse().unwrap());
        let expected = [
            0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d, 0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a, 0x21, 0x11, 0,
            12, 192, 0, 2, 7, 198, 51, 100, 1, 0xc3, 0x50, 0, 80,
        ];
        assert_eq!(header, expected);
        let header = encode("[2001:db8::7]:1".parse().unwrap(), "[2001:db8::1]:2".parse().unwrap());
        assert_eq!(header[13..16], [0x21, 0, 36]);
        assert_eq!(header.len(), 16 + 36);
        assert_eq!(header[48..], [0, 1, 0, 2]);
    }
}
