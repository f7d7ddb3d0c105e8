//! The sockets of both sides.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

/// Receive buffer of a UDP socket in bytes, if the kernel allows it.
const BUFFER_BYTES: usize = 4 << 20;
/// Longest wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the packets of a path start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct From {
    /// Name of the path.
    pub name: String,
    /// An address of this host; otherwise the device decides.
    pub address: Option<IpAddr>,
    /// A device of this host.
    pub device: Option<String>,
}

impl From {
    /// Reads `ADDRESS`, `DEVICE` or `NAME=ADDRESS-OR-DEVICE`.
    #[must_use]
    pub fn parse(text: &str) -> From {
        let (name, start) = text.split_once('=').unwrap_or((text, text));
        let address = start.parse().ok();
        // The name of a path has no dots and colons.
        let name = name.replace(['.', ':'], "-");
        From { name, address, device: address.is_none().then(|| start.to_owned()) }
    }

    fn bind(&self, socket: &Socket, to: SocketAddr) -> io::Result<()> {
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        let any: IpAddr = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        socket.bind(&SocketAddr::new(self.address.unwrap_or(any), 0).into())
    }

    /// Returns a UDP socket for datagrams to `to` on this path. It is not connected, because a server with several
    /// addresses may answer from another one.
    pub(super) fn datagrams(&self, to: SocketAddr) -> io::Result<UdpSocket> {
        let socket = Socket::new(Domain::for_address(to), Type::DGRAM, Some(Protocol::UDP))?;
        self.bind(&socket, to)?;
        // The kernel takes less if it allows less.
        let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
        Ok(socket.into())
    }

    /// Returns the address of this host from which packets to `to` leave on this path. It sends nothing.
    ///
    /// # Errors
    /// If this host has no such address or device, or no route to `to`.
    pub fn local_address(&self, to: SocketAddr) -> io::Result<IpAddr> {
        let socket = self.datagrams(to)?;
        socket.connect(to)?;
        Ok(socket.local_addr()?.ip())
    }

    /// Returns a TCP connection to `to` on this path.
    ///
    /// # Errors
    /// If this host has no such address or device, or if the server refuses or does not answer in ten seconds.
    pub fn connect_tcp(&self, to: SocketAddr) -> io::Result<TcpStream> {
        self.connect(to, Protocol::TCP)
    }

    /// Returns a connection to `to` on this path.
    pub(super) fn connect(&self, to: SocketAddr, protocol: Protocol) -> io::Result<TcpStream> {
        self.connect_within(to, protocol, CONNECT_TIMEOUT)
    }

    /// Returns a connection to `to` on this path, if it opens in this time.
    pub(super) fn connect_within(
        &self,
        to: SocketAddr,
        protocol: Protocol,
        timeout: Duration,
    ) -> io::Result<TcpStream> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(protocol))?;
        self.bind(&socket, to)?;
        socket.connect_timeout(&SockAddr::from(to), timeout)?;
        Ok(socket.into())
    }
}

/// Returns the listening socket of a server, with Multipath TCP if the kernel has it. Stock clients of plain TCP
/// connect all the same.
pub(super) fn listener(at: SocketAddr) -> io::Result<(TcpListener, bool)> {
    let open = |protocol| -> io::Result<TcpListener> {
        let socket = Socket::new(Domain::for_address(at), Type::STREAM, Some(protocol))?;
        socket.set_reuse_address(true)?;
        socket.bind(&at.into())?;
        socket.listen(16)?;
        Ok(socket.into())
    };
    match open(Protocol::MPTCP) {
        Ok(listener) => Ok((listener, true)),
        Err(_) => Ok((open(Protocol::TCP)?, false)),
    }
}

/// Returns the UDP socket of a server.
pub(super) fn datagrams(at: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind(&at.into())?;
    let _ = socket.set_recv_buffer_size(BUFFER_BYTES);
    Ok(socket.into())
}

/// Returns the bytes of the IP and UDP headers.
pub(super) fn header_bytes(to: SocketAddr) -> u64 {
    if to.is_ipv4() { 28 } else { 48 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_an_address_or_a_device() {
        let wifi = From::parse("wifi=wlan0");
        assert_eq!((wifi.name.as_str(), wifi.device.as_deref()), ("wifi", Some("wlan0")));
        let address = From::parse("10.98.1.1");
        assert_eq!((address.name.as_str(), address.device), ("10-98-1-1", None));
        assert_eq!(address.address, Some("10.98.1.1".parse().unwrap()));
    }
}
