//! Which path and which server's address a packet belongs to, and back.

use crate::exit::Exit;
use crate::peers::Peers;
use crate::ways::{OwnAddress, Ways};
use plait_base::{PathId, ServerAddress};
use plait_core::Endpoint;
use std::net::IpAddr;

/// How this end's addresses and those of its peers are named in the endpoint.
#[derive(Debug)]
pub(crate) enum Names {
    /// This end listens: a path stands for a client's address.
    Server {
        /// The address that clients dial: number 0.
        dialled: IpAddr,
        /// Addresses behind the device that stand in for others, which clients know: both, in this order.
        stand_ins: Vec<(IpAddr, IpAddr)>,
        peers: Peers,
    },
    /// This end dials: a path stands for one of its own addresses and the address that it dials.
    Client(Ways),
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
        Names::server_with(dialled, Vec::new())
    }

    /// The same with stand-ins: addresses behind the device, each with the address that clients know it
    /// by.
    pub(crate) fn server_with(dialled: IpAddr, mut stand_ins: Vec<(IpAddr, IpAddr)>) -> Names {
        stand_ins.retain(|(local, known)| local != known);
        Names::Server { dialled, stand_ins, peers: Peers::default() }
    }

    /// The path and the server's number of a packet to our `port`; `None` where it is not for us.
    pub(crate) fn of_arrival(
        &mut self,
        endpoint: &Endpoint,
        src: IpAddr,
        dst: IpAddr,
        port: u16,
    ) -> Option<(PathId, ServerAddress)> {
        match self {
            Names::Server { dialled, stand_ins, peers } => {
                let stood_for = stand_ins.iter().find(|(local, _)| *local == dst);
                let server = match dst == *dialled {
                    true => FIRST,
                    false => number_of(endpoint, stood_for.map_or(dst, |(_, known)| *known))?,
                };
                if peers.is_full() {
                    peers.forget(|path| endpoint.uses_path(path));
                }
                Some((peers.number(src)?, server))
            }
            Names::Client(ways) => {
                let (path, announced) = ways.of_arrival(dst, src, port)?;
                let server = if announced { number_of(endpoint, src)? } else { FIRST };
                Some((path, server))
            }
        }
    }

    /// The paths from the own addresses to another one, for an end that dials.
    pub(crate) fn paths(&mut self, endpoint: &Endpoint, theirs: IpAddr) -> Vec<PathId> {
        match self {
            Names::Server { .. } => Vec::new(),
            Names::Client(ways) => ways.to(endpoint, theirs),
        }
    }

    /// Whether some packets do not leave by the device.
    pub(crate) fn has_exits(&self) -> bool {
        match self {
            Names::Server { .. } => false,
            Names::Client(ways) => ways.has_exits(),
        }
    }

    /// The client's address on a path.
    pub(crate) fn client(&self, path: PathId) -> Option<IpAddr> {
        match self {
            Names::Server { peers, .. } => peers.address(path),
            Names::Client(ways) => ways.way(path).map(|(own, _)| own.address),
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
            Names::Server { dialled, stand_ins, peers } => {
                let known = endpoint.address(server).unwrap_or(*dialled);
                let stand_in = stand_ins.iter().find(|(_, address)| *address == known);
                let src = stand_in.map_or(known, |(local, _)| *local);
                Some(Departure { src, dst: peers.address(path)?, exit: None })
            }
            Names::Client(ways) => {
                let (OwnAddress { address, exit }, theirs) = ways.way(path)?;
                let dst = endpoint.address(server).unwrap_or(theirs);
                Some(Departure { src: *address, dst, exit: exit.as_ref() })
            }
        }
    }

    /// A SYN leaves: answers from an address that the peer has announced are to be known.
    pub(crate) fn on_syn(
        &mut self,
        endpoint: &Endpoint,
        path: PathId,
        port: u16,
        server: ServerAddress,
    ) {
        if let Names::Client(ways) = self
            && server != FIRST
        {
            ways.on_join(endpoint, path, port, server);
        }
    }
}

/// The address that was dialled.
const FIRST: ServerAddress = ServerAddress(0);

/// The number that the endpoint has given to an address, if it has.
fn number_of(endpoint: &Endpoint, address: IpAddr) -> Option<ServerAddress> {
    let numbers = (1..=u8::MAX).map(ServerAddress);
    let known = numbers.map_while(|number| Some((number, endpoint.address(number)?)));
    let mut same = known.filter(|(_, known)| *known == address);
    same.next().map(|(number, _)| number)
}
