//! The paths of an end that dials. Each is one of its own addresses and a dialled address.

use crate::numbers::Numbers;
use crate::world::Exit;
use plait_base::{PathId, ServerAddress};
use plait_core::{Endpoint, Quota};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Conversations with announced addresses in the table before ended ones are removed. Afterwards
/// they are removed each time the table has doubled.
const ANNOUNCED: usize = 4_096;

/// Paths that keep their numbers even if no subflow uses them. A connection opens further subflows
/// later, and may return to a failed path.
const KEPT_PAIRS: usize = 65_536;

/// An own address, and the exit of its packets.
#[derive(Clone, Debug)]
pub struct OwnAddress {
    /// The address.
    pub address: IpAddr,
    /// The exit; `None` is the device.
    pub exit: Option<Exit>,
    /// Price of a byte sent from it, relative to other addresses; 0 is free.
    pub cost: u32,
    /// The quota of the bytes sent from it, on all paths.
    pub quota: Option<Quota>,
}

/// One path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct AddressPair {
    /// Index of the own address.
    own: usize,
    /// The dialled address.
    theirs: IpAddr,
}

/// All paths, by number and by addresses.
#[derive(Debug)]
pub struct PathTable {
    own: Vec<OwnAddress>,
    pairs: Numbers<AddressPair>,
    /// Paths of subflows to announced addresses. The key is both addresses and the own port,
    /// because several servers may announce the same address.
    announced: BTreeMap<(IpAddr, IpAddr, u16), PathId>,
    /// Size of `announced` at which ended conversations are removed.
    enough: usize,
}

impl PathTable {
    /// Returns the paths of an end with these addresses.
    #[must_use]
    pub fn new(own: Vec<OwnAddress>) -> PathTable {
        PathTable { own, pairs: Numbers::default(), announced: BTreeMap::new(), enough: ANNOUNCED }
    }

    /// Returns true if some packets leave by another exit than the device.
    pub(crate) fn has_exits(&self) -> bool {
        self.own.iter().any(|own| own.exit.is_some())
    }

    /// Returns the paths to an address in order, one from each own address of its family. There are
    /// fewer if no numbers are left.
    pub(crate) fn to(&mut self, endpoint: &Endpoint, theirs: IpAddr) -> Vec<PathId> {
        let own: Vec<usize> = (0..self.own.len())
            .filter(|at| self.own[*at].address.is_ipv4() == theirs.is_ipv4())
            .collect();
        // Room is made first, because new paths are not in use yet.
        if self.pairs.len() + own.len() > KEPT_PAIRS {
            self.pairs.make_room(own.len(), |path| endpoint.uses_path(path));
        }
        let number = |own| {
            let pair = AddressPair { own, theirs };
            self.pairs.known(pair).or_else(|| self.pairs.give(pair))
        };
        own.into_iter().filter_map(number).collect()
    }

    /// Reclaims some of the numbers that no conversation uses.
    pub(crate) fn shrink_idle(&mut self, in_use: impl Fn(PathId) -> bool) {
        if self.pairs.len() > KEPT_PAIRS {
            self.pairs.shrink_idle(in_use);
        }
    }

    /// Returns the number of checks so far whether a number is in use.
    pub(crate) fn looks(&self) -> u64 {
        self.pairs.looks()
    }

    /// Returns the number of numbered paths.
    pub(crate) fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Returns the path of a packet from `theirs` to `port` at `ours`, and whether the peer has
    /// announced `theirs`.
    pub(crate) fn of_arrival(
        &self,
        ours: IpAddr,
        theirs: IpAddr,
        port: u16,
    ) -> Option<(PathId, bool)> {
        let announced = self.announced.get(&(ours, theirs, port)).map(|path| (*path, true));
        announced.or_else(|| {
            let own = self.own.iter().position(|own| own.address == ours)?;
            Some((self.pairs.known(AddressPair { own, theirs })?, false))
        })
    }

    /// Returns the own address of a path with its exit, and the other end's address.
    pub(crate) fn addresses(&self, path: PathId) -> Option<(&OwnAddress, IpAddr)> {
        let pair = self.pairs.key(path)?;
        Some((self.own.get(pair.own)?, pair.theirs))
    }

    /// Notes a new subflow from our `port` to the dialled address. An earlier subflow from this
    /// port may have used the same address as an announced one.
    pub(crate) fn on_dial(&mut self, path: PathId, port: u16) {
        if self.announced.is_empty() {
            return;
        }
        let Some((own, theirs)) = self.addresses(path) else { return };
        let key = (own.address, theirs, port);
        self.announced.remove(&key);
    }

    /// Notes a new subflow from our `port` to an address that the peer has announced.
    pub(crate) fn on_join(
        &mut self,
        endpoint: &Endpoint,
        path: PathId,
        port: u16,
        to: ServerAddress,
    ) {
        let (Some((own, _)), Some(theirs)) = (self.addresses(path), endpoint.address(to)) else {
            return;
        };
        let key = (own.address, theirs, port);
        if self.announced.len() >= self.enough {
            self.announced.retain(|_, path| endpoint.uses_path(*path));
            self.enough = ANNOUNCED.max(2 * self.announced.len());
        }
        self.announced.insert(key, path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::tests::Counted;

    fn own(last: u8) -> OwnAddress {
        OwnAddress { address: IpAddr::from([10, 0, 0, last]), exit: None, cost: 0, quota: None }
    }

    fn server(number: u32) -> IpAddr {
        IpAddr::from((0xc612_0000 + number).to_be_bytes())
    }

    /// A connection may dial an unused path later, so a path keeps its number until there are far
    /// too many.
    #[test]
    fn paths_keep_their_numbers_until_there_are_too_many() {
        let endpoint = Endpoint::new(Box::new(Counted::default()));
        let mut table = PathTable::new(vec![own(1), own(2)]);
        let first = table.to(&endpoint, server(0));
        assert_eq!(first, [PathId(0), PathId(1)]);
        for number in 1..1_000 {
            table.to(&endpoint, server(number));
            table.shrink_idle(|_| false);
        }
        assert_eq!((table.len(), table.to(&endpoint, server(0))), (2_000, first));
        // From then on the table keeps at most that many paths and two more, although old ones are
        // not dialled.
        for number in 1_000..50_000 {
            let paths = table.to(&endpoint, server(number));
            assert_eq!(paths.len(), 2);
            assert_eq!(table.addresses(paths[1]).unwrap().1, server(number));
        }
        assert!(table.len() <= KEPT_PAIRS + 2, "{}", table.len());
        table.shrink_idle(|_| false);
        assert!(table.len() <= KEPT_PAIRS);
    }

    /// An address of the other family cannot be dialled.
    #[test]
    fn a_path_has_two_addresses_of_one_family() {
        let endpoint = Endpoint::new(Box::new(Counted::default()));
        let v6 = IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]);
        let v6 = OwnAddress { address: v6, exit: None, cost: 0, quota: None };
        let mut table = PathTable::new(vec![own(1), v6]);
        let paths = table.to(&endpoint, server(0));
        assert_eq!(paths.len(), 1);
        assert_eq!(table.addresses(paths[0]).unwrap().0.address, own(1).address);
        let arrival = |table: &PathTable, to| table.of_arrival(to, server(0), 4_000);
        assert_eq!(arrival(&table, own(1).address), Some((paths[0], false)));
        assert_eq!(arrival(&table, own(2).address), None);
    }

    /// A port of a subflow to an announced address can later dial the same address directly.
    #[test]
    fn a_dialled_port_is_not_that_of_an_announced_address() {
        let mut endpoint = Endpoint::new(Box::new(Counted::default()));
        let mut table = PathTable::new(vec![own(1)]);
        let dialled = table.to(&endpoint, server(0))[0];
        let number = endpoint.number_address(server(1)).unwrap();
        table.on_join(&endpoint, dialled, 4_000, number);
        let arrival = |table: &PathTable| table.of_arrival(own(1).address, server(1), 4_000);
        assert_eq!(arrival(&table), Some((dialled, true)));
        let direct = table.to(&endpoint, server(1))[0];
        table.on_dial(direct, 4_000);
        assert_eq!(arrival(&table), Some((direct, false)));
    }
}
