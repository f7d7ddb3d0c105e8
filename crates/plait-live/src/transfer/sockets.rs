//! Sockets of the kernel.

use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The protocol of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Protocol {
    Tcp,
    Mptcp,
}

impl Protocol {
    /// Returns the payload of a full segment. A DSS option of 20 bytes is in each one of Multipath TCP.
    pub(super) const fn segment_payload(self) -> u64 {
        match self {
            Protocol::Tcp => 1_448,
            Protocol::Mptcp => 1_428,
        }
    }
}

/// Where the packets of a socket start. By default the kernel decides.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Start {
    /// An address of this host.
    pub address: Option<IpAddr>,
    /// A device of this host.
    pub device: Option<String>,
}

impl Start {
    fn bind(&self, socket: &Socket, to: SocketAddr) -> io::Result<()> {
        if let Some(device) = &self.device {
            socket.bind_device(Some(device.as_bytes()))?;
        }
        let any = match to {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        match self.address {
            None if self.device.is_none() => Ok(()),
            address => socket.bind(&SocketAddr::new(address.unwrap_or(any), 0).into()),
        }
    }
}

/// Returns a socket for this address. It does not block, and has the congestion controller `cc`, if one is given.
fn socket(
    address: SocketAddr,
    protocol: Protocol,
    cc: Option<&str>,
    rcvbuf: Option<u64>,
) -> io::Result<Socket> {
    let number = match protocol {
        Protocol::Tcp => socket2::Protocol::TCP,
        Protocol::Mptcp => socket2::Protocol::MPTCP,
    };
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(number))?;
    socket.set_nonblocking(true)?;
    // As curl, nginx, browsers and programs for calls do.
    socket.set_tcp_nodelay(true)?;
    if let Some(cc) = cc {
        set_controller(&socket, cc)?;
    }
    if let Some(bytes) = rcvbuf {
        socket.set_recv_buffer_size(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    }
    Ok(socket)
}

fn set_controller(socket: &Socket, cc: &str) -> io::Result<()> {
    let refused =
        |problem: &str| io::Error::other(format!("congestion controller {cc}: {problem}"));
    socket.set_tcp_congestion(cc.as_bytes()).map_err(|error| refused(&error.to_string()))?;
    // The kernel returns the name with zeros behind it.
    let set = socket.tcp_congestion()?;
    if set.split(|byte| *byte == 0).next() != Some(cc.as_bytes()) {
        return Err(refused("the kernel has taken another one"));
    }
    Ok(())
}

/// Returns whether this process may give a socket a congestion controller of the kernel. It needs CAP_NET_ADMIN if
/// `net.ipv4.tcp_allowed_congestion_control` does not list the controller.
#[must_use]
pub fn allows_controller(cc: &str) -> bool {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(socket2::Protocol::TCP));
    socket.is_ok_and(|socket| set_controller(&socket, cc).is_ok())
}

/// Returns a listening socket in the namespace of the calling thread.
pub(super) fn listening(
    at: SocketAddr,
    protocol: Protocol,
    cc: Option<&str>,
    rcvbuf: Option<u64>,
) -> io::Result<Socket> {
    let socket = socket(at, protocol, cc, rcvbuf)?;
    // The connection of the run before may still be in TIME-WAIT.
    socket.set_reuse_address(true)?;
    socket.bind(&at.into())?;
    socket.listen(4)?;
    Ok(socket)
}

/// Accepts a connection.
pub(super) fn accepted(listener: &Socket) -> io::Result<Socket> {
    let (socket, _) = listener.accept()?;
    // A subflow of Multipath TCP has settings of its own, so that of the listener may not reach it.
    socket.set_tcp_nodelay(true)?;
    Ok(socket)
}

/// Returns a socket in the namespace of the calling thread that has sent its SYN from `start`.
pub(super) fn connecting(
    start: &Start,
    to: SocketAddr,
    protocol: Protocol,
    cc: Option<&str>,
    rcvbuf: Option<u64>,
) -> io::Result<Socket> {
    let socket = socket(to, protocol, cc, rcvbuf)?;
    start.bind(&socket, to)?;
    match socket.connect(&SockAddr::from(to)) {
        Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_send_short_segments_at_once() {
        for protocol in [Protocol::Tcp, Protocol::Mptcp] {
            let any = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
            let listener = listening(any, protocol, None, None).unwrap();
            let to = listener.local_addr().unwrap().as_socket().unwrap();
            let client = connecting(&Start::default(), to, protocol, None, None).unwrap();
            listener.set_nonblocking(false).unwrap();
            let server = accepted(&listener).unwrap();
            assert!(client.tcp_nodelay().unwrap() && server.tcp_nodelay().unwrap(), "{protocol:?}");
        }
    }
}
