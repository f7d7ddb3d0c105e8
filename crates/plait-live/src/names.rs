//! Which path and which server's address a packet belongs to, and back.

use crate::peers::Peers;
use plait_base::{PathId, ServerAddress};
use plait_core::Endpoint;
use std::net::IpAddr;

/// How the addresses of an end that listens are named in its endpoint: a path stands for a client's
/// address.
#[derive(Debug)]
pub(crate) struct Names {
    /// The address that clients dial: number 0.
    dialled: IpAddr,
    peers: Peers,
}

impl Names {
    /// The names of an end that listens at `dialled`.
    pub(crate) fn server(dialled: IpAddr) -> Names {
        Names { dialled, peers: Peers::default() }
    }

    /// The path and the server's number of a packet; `None` where it is not for us.
    pub(crate) fn of_arrival(
        &mut self,
        endpoint: &Endpoint,
        src: IpAddr,
        dst: IpAddr,
    ) -> Option<(PathId, ServerAddress)> {
        let server = match dst == self.dialled {
            true => ServerAddress::default(),
            false => number_of(endpoint, dst)?,
        };
        let path = match self.peers.number(src) {
            Some(path) => path,
            None => {
                self.peers.forget(|path| endpoint.uses_path(path));
                self.peers.number(src)?
            }
        };
        Some((path, server))
    }

    /// The client's address.
    pub(crate) fn peer(&self, path: PathId) -> Option<IpAddr> {
        self.peers.address(path)
    }

    /// Source and destination of a segment.
    pub(crate) fn of_departure(
        &self,
        endpoint: &Endpoint,
        path: PathId,
        server: ServerAddress,
    ) -> Option<(IpAddr, IpAddr)> {
        let src = endpoint.address(server).unwrap_or(self.dialled);
        Some((src, self.peers.address(path)?))
    }
}

/// The number that the endpoint has given to an address, if it has.
fn number_of(endpoint: &Endpoint, address: IpAddr) -> Option<ServerAddress> {
    let numbers = (1..=u8::MAX).map(ServerAddress);
    let known = numbers.map_while(|number| Some((number, endpoint.address(number)?)));
    let mut same = known.filter(|(_, known)| *known == address);
    same.next().map(|(number, _)| number)
}
