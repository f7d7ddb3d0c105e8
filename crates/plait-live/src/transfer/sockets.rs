//! Sockets of the kernel.

use socket2::{Domain, SockAddr, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

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

/// Returns a socket that does not block, with the congestion controller `cc`.
fn socket(protocol: Protocol, cc: &str, rcvbuf: Option<u64>) -> io::Result<Socket> {
    let number = match protocol {
        Protocol::Tcp => socket2::Protocol::TCP,
        Protocol::Mptcp => socket2::Protocol::MPTCP,
    };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(number))?;
    socket.set_nonblocking(true)?;
    let refused =
        |problem: &str| io::Error::other(format!("congestion controller {cc}: {problem}"));
    socket.set_tcp_congestion(cc.as_bytes()).map_err(|error| refused(&error.to_string()))?;
    // The kernel returns the name with zeros behind it.
    let set = socket.tcp_congestion()?;
    if set.split(|byte| *byte == 0).next() != Some(cc.as_bytes()) {
        return Err(refused("the kernel has taken another one"));
    }
    if let Some(bytes) = rcvbuf {
        socket.set_recv_buffer_size(usize::try_from(bytes).unwrap_or(usize::MAX))?;
    }
    Ok(socket)
}

/// Returns a listening socket in the namespace of the calling thread.
pub(super) fn listening(
    at: SocketAddr,
    protocol: Protocol,
    cc: &str,
    rcvbuf: Option<u64>,
) -> io::Result<Socket> {
    let socket = socket(protocol, cc, rcvbuf)?;
    socket.bind(&at.into())?;
    socket.listen(4)?;
    Ok(socket)
}

/// Returns a socket in the namespace of the calling thread that has sent its SYN. It is bound to the address
/// `from`, if that is given.
pub(super) fn connecting(
    from: Option<Ipv4Addr>,
    to: SocketAddr,
    protocol: Protocol,
    cc: &str,
    rcvbuf: Option<u64>,
) -> io::Result<Socket> {
    let socket = socket(protocol, cc, rcvbuf)?;
    if let Some(from) = from {
        socket.bind(&SocketAddr::new(from.into(), 0).into())?;
    }
    match socket.connect(&SockAddr::from(to)) {
        Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();
