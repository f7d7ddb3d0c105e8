use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// A raw socket that sends the packets of one path by a fixed device, independent of other routes. It is
/// bound to the device, so no rule for the source address is needed.
#[derive(Debug)]
pub(crate) struct Exit {
    socket: Socket,
}

impl Exit {
    /// Opens a socket on the device `device` for packets of the family of `address`.
    pub(crate) fn open(device: &str, address: IpAddr) -> io::Result<Exit> {
        let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        // With IPPROTO_RAW, the packets include their IP header.
        let raw = Protocol::from(RAW);
        let socket = Socket::new(domain, Type::RAW.nonblocking(), Some(raw))?;
        socket.bind_device(Some(device.as_bytes()))?;
        Ok(Exit { socket })
    }

    /// Sends a packet. If the kernel refuses the packet, it is lost.
    pub(crate) fn try_send(&self, packet: &[u8], to: IpAddr) -> io::Result<()> {
        self.socket.send_to(packet, &SockAddr::from(SocketAddr::new(to, 0))).map(drop)
    }
}

/// IPPROTO_RAW.
const RAW: i32 = 255;
