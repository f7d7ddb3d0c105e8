//! Connections of a network's hosts to anywhere, which rules of nftables redirect to this host.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Connections that the kernel holds until they are accepted.
const BACKLOG: i32 = 1_024;

/// Ports that are tried.
const MAX_TRIES: usize = 16;

/// A socket for each family, at one port.
#[derive(Debug)]
pub struct LanListener {
    sockets: Vec<Socket>,
    port: u16,
}

/// A redirected connection.
#[derive(Debug)]
pub struct LanConnection {
    /// The connection to the host that opened it. If it is closed before its end, that host gets a RST.
    pub socket: Socket,
    /// That host and its port.
    pub by: SocketAddr,
    /// Where it wanted to go.
    pub to: SocketAddr,
}

impl LanListener {
    /// Listens at a free port of every address of this host. Only redirected connections are accepted there.
    ///
    /// # Errors
    /// If no port is free.
    pub fn open() -> io::Result<LanListener> {
        let mut last = io::Error::from(io::ErrorKind::AddrInUse);
        for _ in 0..MAX_TRIES {
            match LanListener::at_free_port() {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
                other => return other,
            }
        }
        Err(last)
    }

    /// Listens at a port that is free for IPv4. IPv6 may have another program there.
    fn at_free_port() -> io::Result<LanListener> {
        let v4 = listen(Ipv4Addr::UNSPECIFIED.into(), 0)?;
        let port = v4.local_addr()?.as_socket().map_or(0, |it| it.port());
        let mut sockets = vec![v4];
        match listen(Ipv6Addr::UNSPECIFIED.into(), port) {
            Ok(v6) => sockets.push(v6),
            // This host has no IPv6, so no packets of it arrive.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(error) if error.raw_os_error() == Some(libc::EAFNOSUPPORT) => {}
            Err(error) => return Err(error),
        }
        Ok(LanListener { sockets, port })
    }

    /// Returns the port to which rules redirect connections.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the sockets, one for each family.
    #[must_use]
    pub fn into_sockets(self) -> Vec<Socket> {
        self.sockets
    }

    /// Waits for the next redirected connection. Others are reset.
    ///
    /// # Errors
    /// If this process has no file descriptor left, or no connection can be accepted.
    pub fn accept(listener: &Socket) -> io::Result<LanConnection> {
        loop {
            let (socket, by) = listener.accept()?;
            socket.set_linger(Some(Duration::ZERO))?;
            let own = socket.local_addr()?.as_socket();
            let by = by.as_socket();
            let wanted = match own {
                Some(SocketAddr::V4(_)) => socket.original_dst_v4(),
                _ => socket.original_dst_v6(),
            };
            // A connection that no rule has redirected has no other destination.
            let to = wanted.ok().and_then(|to| to.as_socket()).filter(|to| Some(*to) != own);
            if let (Some(by), Some(to)) = (by, to) {
                socket.set_tcp_nodelay(true)?;
                return Ok(LanConnection { socket, by, to });
            }
        }
    }
}

fn listen(address: IpAddr, port: u16) -> io::Result<Socket> {
    let address = SocketAddr::new(address, port);
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpStream;
    use std::thread;

    #[test]
    fn a_connection_that_was_not_redirected_is_reset() {
        let listener = LanListener::open().unwrap();
        let port = listener.port();
        let socket = listener.into_sockets().remove(0);
        thread::spawn(move || LanListener::accept(&socket));
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let error = stream.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
