use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Where packets of one path leave: by one device, whatever the routes for other traffic say. It is
/// a raw socket bound to that device, so no rule for the source address is needed.
#[derive(Debug)]
pub(crate) struct Exit {
    socket: Socket,
}

impl Exit {
    /// By the device with this name, for packets of the family of `address`.
    pub(crate) fn open(device: &str, address: IpAddr) -> io::Result<Exit> {
        let domain = if address.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        // The packets bring their own IP header.
        let raw = Protocol::from(RAW);
        let socket = Socket::new(domain, Type::RAW.nonblocking(), Some(raw))?;
        socket.bind_device(Some(device.as_bytes()))?;
        Ok(Exit { socket })
    }

    /// Sends a packet; where it was not taken, that is as if it were lost.
    pub(crate) fn try_send(&self, packet: &[u8], to: IpAddr) -> io::Result<()> {
        self.socket.send_to(packet, &SockAddr::from(SocketAddr::new(to, 0))).map(drop)
    }
}

/// IPPROTO_RAW.
const RAW: i32 = 255;
