//! Which path and which server's address a packet belongs to, and back.

use crate::exit::Exit;
use crate::peers::Peers;
use plait_base::{PathId, ServerAddress};
use plait_core::Endpoint;
use std::net::IpAddr;

/// A way from an end that dials to the address that it dials.
#[derive(Debug)]
pub(crate) struct OwnPath {
    /// Our address.
    pub(crate) ours: IpAddr,
    /// The address that is dialled.
    pub(crate) theirs: IpAddr,
    /// Where packets leave, if not through the TUN device.
    pub(crate) exit: Option<Exit>,
}

/// How this end's addresses and those of its peers are named in the endpoint.
#[derive(Debug)]
pub(crate) enum Names {
    /// This end listens: a path stands for a client's address.
    Server {
        /// The address that clients dial: number 0.
        dialled: IpAddr,
        peers: Peers,
    },
    /// This end dials: a path stands for one of its own addresses and the address that it dials.
    Client(Vec<OwnPath>),
}

/// Source and destination of a packet, and where it leaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure<'a> {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) exit: Option<&'a Exit>,
}

impl Names {
    /// The names of an end that listens at `dialled`.
    pub(crate) fn server(dialled: IpAddr) -> Names {
        Names::Server { dialled, peers: Peers::default() }
    }

    /// The path and the server's number of a packet; `None` where it is not for us.
    pub(crate) fn of_arrival(
        &mut self,
        endpoint: &Endpoint,
        src: IpAddr,
        dst: IpAddr,
    ) -> Option<(PathId, ServerAddress)> {
        match self {
            Names::Server { dialled, peers } => {
                let server = match dst == *dialled {
                    true => ServerAddress::default(),
                    false => number_of(endpoint, dst)?,
                };
                if peers.is_full() {
                    peers.forget(|path| endpoint.uses_path(path));
                }
                Some((peers.number(src)?, server))
            }
            Names::Client(paths) => {
                let place = |of: &dyn Fn(&OwnPath) -> bool| paths.iter().position(of);
                if let Some(at) = place(&|path| (path.ours, path.theirs) == (dst, src)) {
                    return Some((PathId(at as u16), ServerAddress::default()));
                }
                let at = place(&|path| path.ours == dst)?;
                Some((PathId(at as u16), number_of(endpoint, src)?))
            }
        }
    }

    /// The client's address on a path.
    pub(crate) fn client(&self, path: PathId) -> Option<IpAddr> {
        match self {
            Names::Server { peers, .. } => peers.address(path),
            Names::Client(paths) => paths.get(path.index()).map(|path| path.ours),
        }
    }

    /// Source, destination and exit of a segment.
    pub(crate) fn of_departure(
        &self,
        endpoint: &Endpoint,
        path: PathId,
        server: ServerAddress,
    ) -> Option<Departure<'_>> {
        match self {
            Names::Server { dialled, peers } => {
                let src = endpoint.address(server).unwrap_or(*dialled);
                Some(Departure { src, dst: peers.address(path)?, exit: None })
            }
            Names::Client(paths) => {
                let path = paths.get(path.index())?;
                let dst = endpoint.address(server).unwrap_or(path.theirs);
                Some(Departure { src: path.ours, dst, exit: path.exit.as_ref() })
            }
        }
    }
}

/// The number that the endpoint has given to an address, if it has.
fn number_of(endpoint: &Endpoint, address: IpAddr) -> Option<ServerAddress> {
    let numbers = (1..=u8::MAX).map(ServerAddress);
    let known = numbers.map_while(|number| Some((number, endpoint.address(number)?)));
    let mut same = known.filter(|(_, known)| *known == address);
    same.next().map(|(number, _)| number)
}
