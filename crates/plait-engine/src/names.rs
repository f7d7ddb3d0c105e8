//! Maps addresses of packets to paths and server addresses, and back.

use crate::choice::Prefix;
use crate::numbers::Numbers;
use crate::path_table::{OwnAddress, PathTable};
use crate::world::Exit;
use plait_base::{PathId, ServerAddress};
use plait_core::{Endpoint, PathName, Quota};
use std::net::IpAddr;

/// The numbers of this end's addresses and of its peers' addresses in the endpoint.
#[derive(Debug)]
pub struct Names(Role);

#[derive(Debug)]
enum Role {
    /// This end listens. A path is a client's address.
    Server {
        /// The address that clients dial: number 0.
        dialled: IpAddr,
        /// Addresses behind the device that replace addresses known to clients: (local, known).
        stand_ins: Vec<(IpAddr, IpAddr)>,
        peers: Numbers<IpAddr>,
        /// Packets of clients whose address got no number.
        unnumbered: u64,
        prices: Prices,
    },
    /// This end dials. A path is one of its own addresses and the dialled address.
    Client(PathTable),
}

/// Prices of the paths to clients.
#[derive(Default, Debug)]
struct Prices {
    /// Price of a byte to the addresses of each prefix. The first prefix that contains an address
    /// applies; others are free.
    costs: Vec<(Prefix, u32)>,
    /// The quota of each prefix, for all its addresses. The first prefix that contains an address applies.
    quotas: Vec<(Prefix, Quota)>,
    /// The latest path that got a number.
    latest: Option<PathPrice>,
}

/// The price of a path.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct PathPrice {
    pub(crate) path: PathId,
    /// Price of a byte; 0 is free.
    pub(crate) cost: u32,
    pub(crate) quota: Option<Quota>,
}

/// Returns the price of an address: that of the first prefix that contains it.
fn price_of<T: Clone>(list: &[(Prefix, T)], address: IpAddr) -> Option<T> {
    let known = list.iter().find(|(prefix, _)| prefix.contains(address));
    known.map(|(_, price)| price.clone())
}

impl Prices {
    fn on_new(&mut self, path: PathId, client: IpAddr) {
        if !self.costs.is_empty() || !self.quotas.is_empty() {
            let cost = price_of(&self.costs, client).unwrap_or(0);
            self.latest = Some(PathPrice { path, cost, quota: price_of(&self.quotas, client) });
        }
    }
}

/// Source and destination of a packet, and its exit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) src: IpAddr,
    pub(crate) dst: IpAddr,
    pub(crate) exit: Option<Exit>,
}

impl Names {
    /// Returns the names of an end that listens at `dialled`.
    #[must_use]
    pub fn server(dialled: IpAddr) -> Names {
        Names::server_with(dialled, Vec::new())
    }

    /// As [`Names::server`], with stand-ins: addresses behind the device, each with the address
    /// that clients use for it.
    #[must_use]
    pub fn server_with(dialled: IpAddr, mut stand_ins: Vec<(IpAddr, IpAddr)>) -> Names {
        stand_ins.retain(|(local, known)| local != known);
        let (peers, prices) = (Numbers::default(), Prices::default());
        Names(Role::Server { dialled, stand_ins, peers, unnumbered: 0, prices })
    }

    /// Sets the price of a byte to clients with these prefixes, and their quotas. The first
    /// prefix that contains an address applies; others are free. It has no effect on an end that dials.
    #[must_use]
    pub fn priced(mut self, costs: Vec<(Prefix, u32)>, quotas: Vec<(Prefix, Quota)>) -> Names {
        if let Role::Server { prices, .. } = &mut self.0 {
            (prices.costs, prices.quotas) = (costs, quotas);
        }
        self
    }

    /// Returns the names of an end that dials.
    #[must_use]
    pub fn client(paths: PathTable) -> Names {
        Names(Role::Client(paths))
    }

    /// Returns the path and the server's number of a packet to our `port`; `None` if it is not for
    /// this end.
    pub(crate) fn of_arrival(
        &mut self,
        endpoint: &Endpoint,
        src: IpAddr,
        dst: IpAddr,
        port: u16,
    ) -> Option<(PathId, ServerAddress)> {
        match &mut self.0 {
            Role::Server { dialled, stand_ins, peers, unnumbered, prices } => {
                let stood_for = stand_ins.iter().find(|(local, _)| *local == dst);
                let server = match dst == *dialled {
                    true => FIRST,
                    false => endpoint.number_of(stood_for.map_or(dst, |(_, known)| *known))?,
                };
                let path = peers.known(src).or_else(|| {
                    peers.make_room(1, |path| endpoint.uses_path(path));
                    let path = peers.give(src)?;
                    prices.on_new(path, src);
                    Some(path)
                });
                *unnumbered += u64::from(path.is_none());
                Some((path?, server))
            }
            Role::Client(paths) => {
                let (path, announced) = paths.of_arrival(dst, src, port)?;
                let server = if announced { endpoint.number_of(src)? } else { FIRST };
                Some((path, server))
            }
        }
    }

    /// Returns the price of the path that has got its number since the last call. It returns `None` if
    /// all clients are free.
    pub(crate) fn take_price(&mut self) -> Option<PathPrice> {
        match &mut self.0 {
            Role::Server { prices, .. } => prices.latest.take(),
            Role::Client(_) => None,
        }
    }

    /// Returns the price of a path of an end that dials.
    pub(crate) fn price(&self, path: PathId) -> PathPrice {
        let own = match &self.0 {
            Role::Server { .. } => None,
            Role::Client(paths) => paths.addresses(path).map(|(own, _)| own),
        };
        let quota = own.and_then(|own| own.quota.clone());
        PathPrice { path, cost: own.map_or(0, |own| own.cost), quota }
    }

    /// Returns the paths from the own addresses to `theirs`; empty for an end that listens.
    pub(crate) fn paths(&mut self, endpoint: &Endpoint, theirs: IpAddr) -> Vec<PathId> {
        match &mut self.0 {
            Role::Server { .. } => Vec::new(),
            Role::Client(paths) => paths.to(endpoint, theirs),
        }
    }

    /// Reclaims some of the numbers that no conversation uses. It is called every few seconds.
    pub(crate) fn shrink_idle(&mut self, endpoint: &Endpoint) {
        let in_use = |path| endpoint.uses_path(path);
        match &mut self.0 {
            Role::Server { peers, .. } => peers.shrink_idle(in_use),
            Role::Client(paths) => paths.shrink_idle(in_use),
        }
    }

    /// Returns the number of numbered paths: client addresses, or pairs of addresses for an end
    /// that dials.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Role::Server { peers, .. } => peers.len(),
            Role::Client(paths) => paths.len(),
        }
    }

    /// Limits the number of client addresses that have a number. It is for simulations; the default
    /// is 24 bits of numbers.
    pub fn limit(&mut self, most: usize) {
        if let Role::Server { peers, .. } = &mut self.0 {
            peers.limit(most);
        }
    }

    /// Returns the number of checks so far whether a number is in use.
    pub(crate) fn looks(&self) -> u64 {
        match &self.0 {
            Role::Server { peers, .. } => peers.looks(),
            Role::Client(paths) => paths.looks(),
        }
    }

    /// Returns the number of packets of new clients refused because all numbers were in use.
    pub(crate) fn unnumbered(&self) -> u64 {
        match &self.0 {
            Role::Server { unnumbered, .. } => *unnumbered,
            Role::Client(_) => 0,
        }
    }

    /// Returns true if some packets leave by another exit than the device.
    pub(crate) fn has_exits(&self) -> bool {
        match &self.0 {
            Role::Server { .. } => false,
            Role::Client(paths) => paths.has_exits(),
        }
    }

    /// Returns the client's address on a path.
    pub(crate) fn client_of(&self, path: PathId) -> Option<IpAddr> {
        match &self.0 {
            Role::Server { peers, .. } => peers.key(path),
            Role::Client(paths) => paths.addresses(path).map(|(own, _)| own.address),
        }
    }

    /// Returns both addresses of a path of an end that dials.
    pub(crate) fn of_path(&self, path: PathId) -> Option<PathName> {
        match &self.0 {
            Role::Server { .. } => None,
            Role::Client(paths) => {
                let (own, theirs) = paths.addresses(path)?;
                Some(PathName { own: Some(own.address), theirs })
            }
        }
    }

    /// Returns source, destination and exit of a segment.
    pub(crate) fn of_departure(
        &self,
        endpoint: &Endpoint,
        path: PathId,
        server: ServerAddress,
    ) -> Option<Departure> {
        match &self.0 {
            Role::Server { dialled, stand_ins, peers, .. } => {
                let known = endpoint.address(server).unwrap_or(*dialled);
                let stand_in = stand_ins.iter().find(|(_, address)| *address == known);
                let src = stand_in.map_or(known, |(local, _)| *local);
                Some(Departure { src, dst: peers.key(path)?, exit: None })
            }
            Role::Client(paths) => {
                let (OwnAddress { address, exit, .. }, theirs) = paths.addresses(path)?;
                let dst = endpoint.address(server).unwrap_or(theirs);
                Some(Departure { src: *address, dst, exit: *exit })
            }
        }
    }

    /// Processes an outgoing SYN. From then on, answers are attributed to an address that the peer
    /// announced, or to the dialled one.
    pub(crate) fn on_syn(
        &mut self,
        endpoint: &Endpoint,
        path: PathId,
        port: u16,
        server: ServerAddress,
    ) {
        match &mut self.0 {
            Role::Client(paths) if server == FIRST => paths.on_dial(path, port),
            Role::Client(paths) => paths.on_join(endpoint, path, port, server),
            Role::Server { .. } => {}
        }
    }
}

/// The dialled address.
const FIRST: ServerAddress = ServerAddress(0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::tests::Counted;
    use plait_base::Time;
    use plait_wire::{Flags, Segment};

    /// One packet each from more addresses than 16 bits can number. All are answered, the table
    /// stays small, and a client with a conversation keeps its number.
    #[test]
    fn strangers_pass_and_a_client_keeps_its_number() {
        let mut endpoint = Endpoint::new(Box::new(Counted::default()));
        let served = IpAddr::from([192, 0, 2, 1]);
        let mut names = Names::server(served);
        let stray = |flags| Segment { src_port: 4_000, dst_port: 80, flags, ..Segment::default() };
        let mut arrive = |names: &mut Names, from: u32, answered: bool| {
            let from = IpAddr::from(from.to_be_bytes());
            let (path, _) = names.of_arrival(&endpoint, from, served, 80).unwrap();
            endpoint.handle(Time::ZERO, path, &stray(Flags::ACK));
            while answered && let Some(answer) = endpoint.poll_transmit(Time::ZERO) {
                let departure = names.of_departure(&endpoint, answer.path, ServerAddress(0));
                assert_eq!(departure.unwrap().dst, from);
            }
            path
        };
        for from in 0..70_000 {
            arrive(&mut names, 0x0a00_0000 + from, true);
        }
        assert!(names.len() <= 8, "{}", names.len());
        // The answer to this client is still unsent, so its number is in use.
        let client = arrive(&mut names, 1, false);
        for from in 0..100 {
            arrive(&mut names, 0x0b00_0000 + from, false);
        }
        assert_eq!(arrive(&mut names, 1, false), client);
        assert_eq!(names.unnumbered(), 0);
    }

    #[test]
    fn a_new_path_to_a_client_has_the_price_of_its_prefix() {
        let endpoint = Endpoint::new(Box::new(Counted::default()));
        let served = IpAddr::from([192, 0, 2, 1]);
        let price = |names: &mut Names, client: [u8; 4]| {
            let path = names.of_arrival(&endpoint, client.into(), served, 80)?.0;
            let price = names.take_price();
            Some((path, price.map(|it| (it.path == path, it.cost, it.quota.map(|it| it.left())))))
        };
        let costs = [("100.64.1.0/24", 0), ("100.64.0.0/10", 3)];
        let costs = costs.map(|(prefix, cost)| (prefix.parse().unwrap(), cost));
        let quotas = vec![("100.64.2.0/23".parse().unwrap(), Quota::new(5_000))];
        let mut names = Names::server(served).priced(costs.to_vec(), quotas);
        for (client, cost, left) in [
            ([100, 64, 2, 1], 3, Some(5_000)),
            ([100, 64, 1, 1], 0, None),
            ([10, 0, 0, 1], 0, None),
        ] {
            let told = price(&mut names, client).unwrap().1;
            assert_eq!(told, Some((true, cost, left)), "{client:?}");
            // It has its number now.
            assert_eq!(price(&mut names, client).unwrap().1, None, "{client:?}");
        }
        assert_eq!(price(&mut Names::server(served), [100, 64, 2, 1]).unwrap().1, None);
    }
}
