//! SOCKS version 5 (RFC 1928). Supports the command CONNECT, without authentication.

use plait_engine::Destination;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NONE_ACCEPTABLE: u8 = 0xff;
const CONNECT: u8 = 1;
const V4: u8 = 1;
const NAME: u8 = 3;
const V6: u8 = 4;

/// The reply to a request (RFC 1928 section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The connection is established.
    Succeeded = 0,
    /// The server failed for another reason.
    Failed = 1,
    /// The rules forbid the connection.
    NotAllowed = 2,
    /// The host is unknown or unreachable.
    HostUnreachable = 4,
    /// The host refused the connection.
    Refused = 5,
    /// The command is not CONNECT.
    CommandNotSupported = 7,
    /// Addresses of this type are not supported.
    AddressNotSupported = 8,
}

impl Reply {
    /// Returns the encoded reply. The bound address is always 0.0.0.0:0, to reveal nothing.
    #[must_use]
    pub fn bytes(self) -> [u8; 10] {
        [VERSION, self as u8, 0, V4, 0, 0, 0, 0, 0, 0]
    }
}

/// Reads a request and resolves its name. Returns the destination, or the reply to send if the request cannot be met. `wanted`
/// selects the supported destinations.
///
/// # Errors
/// If the stream fails or speaks another protocol.
pub fn request(
    stream: &mut (impl Read + Write),
    wanted: impl Fn(&SocketAddr) -> bool,
) -> io::Result<Result<SocketAddr, Reply>> {
    Ok(match destination(stream)? {
        Ok(Destination::Address(to)) if wanted(&to) => Ok(to),
        Ok(Destination::Address(_)) => Err(Reply::AddressNotSupported),
        Ok(Destination::Name(name, port)) => {
            let found = (name.as_str(), port).to_socket_addrs();
            found.ok().and_then(|mut all| all.find(wanted)).ok_or(Reply::HostUnreachable)
        }
        Err(reply) => Err(reply),
    })
}

/// Reads a request. Returns the destination, or the reply to send if the request cannot be met.
///
/// # Errors
/// If the stream fails or speaks another protocol.
pub fn destination(stream: &mut (impl Read + Write)) -> io::Result<Result<Destination, Reply>> {
    let foreign = || io::Error::new(io::ErrorKind::InvalidData, "not SOCKS version 5");
    let [version, count] = take(stream)?;
    if version != VERSION {
        return Err(foreign());
    }
    let mut methods = vec![0; usize::from(count)];
    stream.read_exact(&mut methods)?;
    if !methods.contains(&NO_AUTHENTICATION) {
        stream.write_all(&[VERSION, NONE_ACCEPTABLE])?;
        return Err(foreign());
    }
    stream.write_all(&[VERSION, NO_AUTHENTICATION])?;
    let [version, command, _, kind] = take(stream)?;
    if version != VERSION {
        return Err(foreign());
    }
    let host: Result<IpAddr, String> = match kind {
        V4 => Ok(Ipv4Addr::from(take::<4>(stream)?).into()),
        V6 => Ok(Ipv6Addr::from(take::<16>(stream)?).into()),
        NAME => {
            let [len] = take(stream)?;
            let mut name = vec![0; usize::from(len)];
            stream.read_exact(&mut name)?;
            let name = String::from_utf8(name).map_err(|_| foreign())?;
            name.parse().map_err(|_| name)
        }
        _ => return Ok(Err(Reply::AddressNotSupported)),
    };
    let port = u16::from_be_bytes(take(stream)?);
    if command != CONNECT {
        return Ok(Err(Reply::CommandNotSupported));
    }
    Ok(match host {
        Ok(address) => Ok(Destination::Address(SocketAddr::new(address, port))),
        Err(name) => Ok(Destination::Name(name, port)),
    })
}

fn take<const N: usize>(stream: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).map(|()| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stream that returns the given bytes and records the written ones.
    struct Both<'a>(&'a [u8], Vec<u8>);

    impl Read for Both<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
    }

    impl Write for Both<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn asked(said: &[u8]) -> (io::Result<Result<SocketAddr, Reply>>, Vec<u8>) {
        let mut stream = Both(said, Vec::new());
        (request(&mut stream, SocketAddr::is_ipv4), stream.1)
    }

    /// The bytes of RFC 1928 sections 3 to 5.
    #[test]
    fn requests_are_those_of_the_standard() {
        let told = |said: &[u8]| asked(said).0.unwrap();
        let to = "192.0.2.7:80".parse().unwrap();
        assert_eq!(told(&[5, 2, 2, 0, 5, 1, 0, 1, 192, 0, 2, 7, 0, 80]), Ok(to));
        assert_eq!(asked(&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 7, 0, 80]).1, [5, 0]);
        let name = [&[5, 1, 0, 5, 1, 0, 3, 9][..], b"192.0.2.7", &[0, 80]].concat();
        assert_eq!(told(&name), Ok(to));
        let v6 = [&[5, 1, 0, 5, 1, 0, 4][..], &[0; 15], &[1, 0, 80]].concat();
        assert_eq!(told(&v6), Err(Reply::AddressNotSupported));
        let bind = [5, 1, 0, 5, 2, 0, 1, 192, 0, 2, 7, 0, 80];
        assert_eq!(told(&bind), Err(Reply::CommandNotSupported));
        // Clients that require authentication, and clients of version 4, are refused.
        let (refused, answer) = asked(&[5, 1, 2]);
        assert!(refused.is_err());
        assert_eq!(answer, [5, 0xff]);
        assert!(asked(&[4, 1, 0, 80, 192, 0, 2, 7, 0]).0.is_err());
        assert_eq!(Reply::Refused.bytes(), [5, 5, 0, 1, 0, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(kind in 0..6_u8, bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = asked(&bytes);
            // A test must not resolve names.
            if kind != NAME {
                let _ = asked(&[&[5, 1, 0, 5, 1, 0, kind][..], &bytes].concat());
            }
        }
    }
}
