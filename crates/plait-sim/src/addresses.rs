//! Addresses of simulated hosts, from the ranges for documentation (RFC 5737, RFC 3849).

use crate::network::Direction;
use crate::setup::Setup;
use plait_app::Role;
use plait_base::{PathId, ServerAddress};
use plait_core::{PathKey, PathName};
use plait_wire::codec::Headers;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The server's first address, to which clients connect.
const DIALLED: u32 = u32::from_be_bytes([198, 51, 100, 1]);
/// Base of the addresses of the first pair's client.
const CLIENT: u32 = u32::from_be_bytes([192, 0, 2, 0]);
/// Base of the addresses of other clients. They may outnumber the addresses for documentation.
const OTHER_CLIENTS: u32 = u32::from_be_bytes([10, 0, 0, 0]);
const CLIENT_V6: u128 = 0x2001_0db8 << 96;

/// Addresses for the IP headers of a run's packets.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// By pair: the server's additional addresses, in the order of their numbers.
    servers: Vec<Vec<IpAddr>>,
}

impl Addresses {
    /// Collects the addresses of a set-up.
    #[must_use]
    pub fn new(setup: &Setup) -> Addresses {
        let servers = setup.pairs.iter().map(|pair| {
            let mut known = Vec::new();
            for address in pair.connections.iter().flat_map(|it| &it.server.addresses) {
                if !known.contains(address) {
                    known.push(*address);
                }
            }
            known
        });
        Addresses { servers: servers.collect() }
    }

    /// Returns the IP header of a segment between the hosts of a pair. The client uses the address
    /// of the path, and the server uses the address with the segment's number.
    #[must_use]
    pub fn headers(
        &self,
        pair: usize,
        path: PathId,
        way: Direction,
        server: ServerAddress,
    ) -> Headers {
        let server = self.server(pair, server);
        let client = client(pair, path, server.is_ipv6());
        match way {
            Direction::Up => Headers::new(client, server),
            Direction::Down => Headers::new(server, client),
        }
    }

    fn server(&self, pair: usize, number: ServerAddress) -> IpAddr {
        let further = usize::from(number.0).checked_sub(1);
        let known = further.and_then(|further| self.servers.get(pair)?.get(further));
        let next = || IpAddr::V4(Ipv4Addr::from(DIALLED + u32::from(number.0)));
        known.copied().unwrap_or_else(next)
    }
}

/// The address that clients dial.
pub(crate) const fn dialled() -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(DIALLED))
}

/// Returns the addresses of a path for the memory of one end. The client's addresses are in networks of
/// their own there, as those of different providers are, so each path has an entry of its own.
pub(crate) fn path_name(side: Role, path: PathId) -> PathName {
    let client = IpAddr::V4(Ipv4Addr::from_bits(OTHER_CLIENTS | (path.0 & 0xffff) << 8 | 1));
    match side {
        Role::Client => PathName { own: Some(client), theirs: dialled() },
        Role::Server => PathName { own: None, theirs: client },
    }
}

/// Returns the addresses of a path in the path memory of one end ([`crate::PairMemory`]).
#[must_use]
pub fn path_key(side: Role, path: PathId) -> PathKey {
    let PathName { own, theirs } = path_name(side, path);
    PathKey::new(own.unwrap_or_else(dialled), theirs)
}

fn client(pair: usize, path: PathId, v6: bool) -> IpAddr {
    let (pair, path) = (pair as u32, path.0 + 1);
    if v6 {
        return Ipv6Addr::from(CLIENT_V6 | u128::from(pair) << 64 | u128::from(path)).into();
    }
    let base = if pair == 0 { CLIENT } else { OTHER_CLIENTS | (pair & 0xffff) << 8 };
    Ipv4Addr::from(base + path).into()
}
