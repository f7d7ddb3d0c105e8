//! The service behind a server.

use crate::proxy_header;
use plait_base::ConnId;
use plait_core::{Endpoint, SubflowPorts};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The service that connections are relayed to.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Its address.
    pub to: SocketAddr,
    /// Send the client's address to the service (PROXY protocol).
    pub proxy_header: bool,
    /// The address that clients connect to, for the header. Each connection has its own port.
    pub listen: SocketAddr,
    /// The service is on this host, so one kernel has both ends of its connections.
    pub near: bool,
}

impl Service {
    /// Returns the PROXY header of a connection, with the address of the client.
    pub(crate) fn introduction(self, endpoint: &Endpoint, conn: ConnId, from: IpAddr) -> Vec<u8> {
        let ports = endpoint.ports(conn).and_then(|it| it.first().copied());
        let SubflowPorts { local, remote, .. } = ports.unwrap_or_default();
        let to = SocketAddr::new(self.listen.ip(), local);
        proxy_header::encode(SocketAddr::new(from, remote), to)
    }

    /// Returns why the service was not reached.
    pub(crate) fn unreached(self, error: &io::Error) -> io::Error {
        io::Error::new(error.kind(), format!("the service {}: {error}", self.to))
    }
}
