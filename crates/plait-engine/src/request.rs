//! The request that a client of a relaying server sends before the data of a connection: the destination of that
//! connection.
//!
//! A request is a header of the PROXY protocol, version 2. Its source is the program that asks. Its destination is an
//! address, or a name in the TLV PP2_TYPE_AUTHORITY. Two TLVs of the range for applications follow: the time, and an
//! HMAC-SHA256 of all bytes before it. The HMAC needs the key that both ends have.

use crate::proxy_header;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// Bytes of a header before its addresses.
const FIXED_BYTES: usize = 16;
/// Largest request: addresses of IPv6, a name of 255 bytes, the time and the HMAC.
const MAX_REQUEST_BYTES: usize = 512;
/// PP2_TYPE_AUTHORITY, and two types of the range for applications (0xE0 to 0xEF).
const TLV_NAME: u8 = 0x02;
const TLV_TIME: u8 = 0xe0;
const TLV_CODE: u8 = 0xe1;
/// Bytes of an HMAC-SHA256, and of its TLV.
const CODE_BYTES: usize = 32;
const CODE_TLV_BYTES: usize = 3 + CODE_BYTES;
/// Largest difference between the clocks of both ends in seconds.
const CLOCKS_S: u64 = 120;
/// Longest name in bytes, as in the DNS.
const MAX_NAME_BYTES: usize = 255;

/// The key that both ends have. Clones share it.
#[derive(Clone)]
pub struct RequestKey(Arc<[u8]>);

impl RequestKey {
    /// Least length in bytes.
    pub const MIN_BYTES: usize = 32;

    /// Returns a key of these bytes; `None` if they are too few.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<RequestKey> {
        (bytes.len() >= RequestKey::MIN_BYTES).then(|| RequestKey(bytes.into()))
    }

    fn code(&self, message: &[u8]) -> Option<Hmac<Sha256>> {
        // HMAC accepts keys of any length.
        let mut code = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        code.update(message);
        Some(code)
    }
}

impl fmt::Debug for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RequestKey")
    }
}

/// The other end of a requested connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// An address.
    Address(SocketAddr),
    /// A name, which the server resolves, and a port.
    Name(String, u16),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Destination::Address(address) => address.fmt(f),
            Destination::Name(name, port) => write!(f, "{}:{port}", name.escape_debug()),
        }
    }
}

/// A request for a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The program that asks.
    pub by: SocketAddr,
    /// Where it wants to go.
    pub to: Destination,
}

impl Request {
    /// Encodes the request. `unix_s` is the time in seconds since 1970. A name must have at most 255 bytes.
    #[must_use]
    pub fn encode(&self, key: &RequestKey, unix_s: u64) -> Vec<u8> {
        let (to, name) = match &self.to {
            Destination::Address(to) => (*to, None),
            Destination::Name(name, port) => {
                let any: IpAddr = match self.by {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                };
                (SocketAddr::new(any, *port), Some(name.as_bytes()))
            }
        };
        // Both addresses are of one family. A program of the other one is not named.
        let by = match self.by.is_ipv4() == to.is_ipv4() {
            true => self.by,
            false if to.is_ipv4() => (Ipv4Addr::UNSPECIFIED, self.by.port()).into(),
            false => (Ipv6Addr::UNSPECIFIED, self.by.port()).into(),
        };
        let mut bytes = proxy_header::encode(by, to);
        if let Some(name) = name {
            push(&mut bytes, TLV_NAME, name);
        }
        push(&mut bytes, TLV_TIME, &unix_s.to_be_bytes());
        let len = (bytes.len() + CODE_TLV_BYTES - FIXED_BYTES) as u16;
        bytes[FIXED_BYTES - 2..FIXED_BYTES].copy_from_slice(&len.to_be_bytes());
        let code = key.code(&bytes).map(|code| code.finalize().into_bytes());
        push(&mut bytes, TLV_CODE, &code.unwrap_or_default());
        bytes
    }

    /// Returns the number of bytes that a request has, if these are its first ones. It may grow with further bytes.
    ///
    /// # Errors
    /// If no request begins with these bytes.
    pub(crate) fn len(bytes: &[u8]) -> Result<usize, &'static str> {
        let known = bytes.len().min(proxy_header::SIGNATURE.len());
        if bytes[..known] != proxy_header::SIGNATURE[..known] {
            return Err(FOREIGN);
        }
        let Some(len) = bytes.get(FIXED_BYTES - 2..FIXED_BYTES) else { return Ok(FIXED_BYTES) };
        let len = FIXED_BYTES + usize::from(len[0]) * 256 + usize::from(len[1]);
        if len > MAX_REQUEST_BYTES { Err(FOREIGN) } else { Ok(len) }
    }

    /// Decodes a whole request.
    ///
    /// # Errors
    /// If it is malformed, if its key differs, or if the clocks differ too much.
    pub fn decode(bytes: &[u8], key: &RequestKey, unix_s: u64) -> Result<Request, &'static str> {
        let end = bytes.len().checked_sub(CODE_TLV_BYTES).ok_or(FOREIGN)?;
        let (signed, code) = bytes.split_at(end);
        if Request::len(signed)? != bytes.len() || code[..3] != [TLV_CODE, 0, CODE_BYTES as u8] {
            return Err(FOREIGN);
        }
        let expected = key.code(signed).ok_or(FOREIGN)?;
        expected.verify_slice(&code[3..]).map_err(|_| "its key differs from that of --key")?;
        let (by, to, mut rest) = addresses(signed).ok_or(FOREIGN)?;
        let (mut name, mut time) = (None, None);
        while let Some((kind, value, after)) = tlv(rest) {
            match kind {
                TLV_NAME if value.len() <= MAX_NAME_BYTES => name = Some(value),
                TLV_TIME => time = value.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)),
                _ => {}
            }
            rest = after;
        }
        if time.ok_or(FOREIGN)?.abs_diff(unix_s) > CLOCKS_S {
            return Err("it is old, or the clocks of both ends differ by more than 120 s");
        }
        let to = match name.map(|name| std::str::from_utf8(name)) {
            None => Destination::Address(to),
            Some(Ok(name)) if !name.is_empty() => Destination::Name(name.to_owned(), to.port()),
            Some(_) => return Err("the name of its destination is not a text"),
        };
        Ok(Request { by, to })
    }
}

const FOREIGN: &str = "it is not a request of `plait proxy --through`";

fn push(bytes: &mut Vec<u8>, kind: u8, value: &[u8]) {
    bytes.push(kind);
    bytes.extend((value.len() as u16).to_be_bytes());
    bytes.extend(value);
}

/// Returns the kind and the value of the first TLV, and the bytes after it.
fn tlv(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([kind, high, low], rest) = bytes.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(usize::from(*high) * 256 + usize::from(*low))?;
    Some((*kind, value, rest))
}

/// Returns both addresses of a header, and the bytes after them.
fn addresses(header: &[u8]) -> Option<(SocketAddr, SocketAddr, &[u8])> {
    let family = *header.get(FIXED_BYTES - 3)?;
    let rest = header.get(FIXED_BYTES..)?;
    let port = |bytes: &[u8]| u16::from_be_bytes([bytes[0], bytes[1]]);
    match family {
        proxy_header::STREAM_V4 => {
            let (all, rest) = rest.split_first_chunk::<12>()?;
            let at = |at: usize| Ipv4Addr::from([0, 1, 2, 3].map(|byte| all[at + byte]));
            Some(((at(0), port(&all[8..])).into(), (at(4), port(&all[10..])).into(), rest))
        }
        proxy_header::STREAM_V6 => {
            let (all, rest) = rest.split_first_chunk::<36>()?;
            let at = |at: usize| {
                let mut octets = [0; 16];
                octets.copy_from_slice(&all[at..at + 16]);
                Ipv6Addr::from(octets)
            };
            Some(((at(0), port(&all[32..])).into(), (at(16), port(&all[34..])).into(), rest))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn key(byte: u8) -> RequestKey {
        RequestKey::new(&[byte; 32]).unwrap()
    }

    fn requests() -> Vec<Request> {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let name = Destination::Name("origin.example".to_owned(), 443);
        vec![
            Request { by: at("192.168.1.5:40000"), to: Destination::Address(at("192.0.2.7:80")) },
            Request { by: at("[fd00::5]:1"), to: Destination::Address(at("[2001:db8::1]:2")) },
            Request { by: at("192.168.1.5:40000"), to: name.clone() },
            Request { by: at("[fd00::5]:1"), to: name },
        ]
    }

    #[test]
    fn a_request_is_read_back() {
        for request in requests() {
            let bytes = request.encode(&key(7), NOW);
            assert_eq!(Request::decode(&bytes, &key(7), NOW + 120), Ok(request.clone()));
            assert_eq!(Request::decode(&bytes, &key(7), NOW - 120), Ok(request));
            // However few bytes are there, they ask for no byte beyond the request.
            for len in 0..bytes.len() {
                assert!(Request::len(&bytes[..len]).unwrap() <= bytes.len());
            }
            assert_eq!(Request::len(&bytes), Ok(bytes.len()));
        }
        assert!(RequestKey::new(&[1; 31]).is_none());
    }

    /// A program of another family than its destination has no address in the header.
    #[test]
    fn a_destination_of_the_other_family_is_kept() {
        let to = Destination::Address("192.0.2.7:80".parse().unwrap());
        let request = Request { by: "[fd00::5]:9".parse().unwrap(), to: to.clone() };
        let read = Request::decode(&request.encode(&key(7), NOW), &key(7), NOW).unwrap();
        assert_eq!((read.to, read.by), (to, "0.0.0.0:9".parse().unwrap()));
    }

    /// No changed bit, no other key and no other time is accepted.
    #[test]
    fn a_changed_request_is_refused() {
        for request in requests() {
            let bytes = request.encode(&key(7), NOW);
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                assert!(Request::decode(&changed, &key(7), NOW).is_err(), "{at}");
                assert!(Request::decode(&bytes[..at], &key(7), NOW).is_err(), "{at}");
            }
            let problem = |key: &RequestKey, now| Request::decode(&bytes, key, now).unwrap_err();
            assert!(problem(&key(8), NOW).contains("its key differs"));
            assert!(problem(&key(7), NOW + 121).contains("the clocks"));
            assert!(problem(&key(7), NOW - 121).contains("the clocks"));
        }
    }

    #[test]
    fn other_protocols_are_known_by_their_first_byte() {
        assert_eq!(Request::len(b"GET / HTTP/1.1\r\n"), Err(FOREIGN));
        assert_eq!(Request::len(b"\x16"), Err(FOREIGN));
        let long = [&proxy_header::SIGNATURE[..], &[0x21, 0x11, 0xff, 0xff]].concat();
        assert_eq!(Request::len(&long), Err(FOREIGN));
        assert_eq!(Request::len(&[]), Ok(FIXED_BYTES));
    }
}
