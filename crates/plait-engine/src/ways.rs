//! The paths of an end that dials: each stands for one of its own addresses and an address that it
//! dials.

use crate::numbers::Numbers;
use crate::world::Exit;
use plait_base::{PathId, ServerAddress};
use plait_core::Endpoint;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Conversations with announced addresses that are remembered before those that are over are
/// forgotten. From then on they are looked at again whenever their number has doubled.
const ANNOUNCED: usize = 4_096;

/// Paths that keep their numbers, whether a subflow uses them or not. A connection opens the subflows of its
/// further paths later, and may come back to a path that has failed.
const KEPT_WAYS: usize = 65_536;

/// An own address, and where its packets leave, if not by the device.
#[derive(Clone, Copy, Debug)]
pub struct OwnAddress {
    /// The address.
    pub address: IpAddr,
    /// The exit; `None` is the device.
    pub exit: Option<Exit>,
}

/// One path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Way {
    /// Place of the own address.
    own: usize,
    /// The address that is dialled.
    theirs: IpAddr,
}

/// All paths, by number and by addresses.
#[derive(Debug)]
pub struct Ways {
    own: Vec<OwnAddress>,
    ways: Numbers<Way>,
    /// The path of a subflow to an address that the peer has announced: by both addresses and the own
    /// port, as several servers may announce the same one.
    announced: BTreeMap<(IpAddr, IpAddr, u16), PathId>,
    /// So many of them are remembered before they are looked at.
    enough: usize,
}

impl Ways {
    /// The paths of an end that has these addresses.
    #[must_use]
    pub fn new(own: Vec<OwnAddress>) -> Ways {
        Ways { own, ways: Numbers::default(), announced: BTreeMap::new(), enough: ANNOUNCED }
    }

    /// Whether some packets do not leave by the device.
    pub(crate) fn has_exits(&self) -> bool {
        self.own.iter().any(|own| own.exit.is_some())
    }

    /// The paths to an address, one from each own address of its family, in order. Fewer where there
    /// are no numbers left.
    pub(crate) fn to(&mut self, endpoint: &Endpoint, theirs: IpAddr) -> Vec<PathId> {
        let own: Vec<usize> = (0..self.own.len())
            .filter(|at| self.own[*at].address.is_ipv4() == theirs.is_ipv4())
            .collect();
        // Before the first is given out: none of them is in use yet.
        if self.ways.len() + own.len() > KEPT_WAYS {
            self.ways.make_room(own.len(), |path| endpoint.uses_path(path));
        }
        let number = |own| {
            let way = Way { own, theirs };
            self.ways.known(way).or_else(|| self.ways.give(way))
        };
        own.into_iter().filter_map(number).collect()
    }

    /// Takes numbers back that no conversation uses, some of them.
    pub(crate) fn shrink_idle(&mut self, in_use: impl Fn(PathId) -> bool) {
        if self.ways.len() > KEPT_WAYS {
            self.ways.shrink_idle(in_use);
        }
    }

    /// How many numbers were looked at so far.
    pub(crate) fn looks(&self) -> u64 {
        self.ways.looks()
    }

    /// How many paths are numbered.
    pub(crate) fn len(&self) -> usize {
        self.ways.len()
    }

    /// The path of a packet from `theirs` to `ours` at our `port`, and whether the peer has announced
    /// that address.
    pub(crate) fn of_arrival(
        &self,
        ours: IpAddr,
        theirs: IpAddr,
        port: u16,
    ) -> Option<(PathId, bool)> {
        let announced = self.announced.get(&(ours, theirs, port)).map(|path| (*path, true));
        announced.or_else(|| {
            let own = self.own.iter().position(|own| own.address == ours)?;
            Some((self.ways.known(Way { own, theirs })?, false))
        })
    }

    /// Our address on a path, the other end's, and where packets leave.
    pub(crate) fn way(&self, path: PathId) -> Option<(&OwnAddress, IpAddr)> {
        let way = self.ways.key(path)?;
        Some((self.own.get(way.own)?, way.theirs))
    }

    /// A subflow from our `port` begins at the address that is dialled. The port may have been that of an
    /// earlier subflow to the same address when a peer had announced it.
    pub(crate) fn on_dial(&mut self, path: PathId, port: u16) {
        if self.announced.is_empty() {
            return;
        }
        let Some((own, theirs)) = self.way(path) else { return };
        let key = (own.address, theirs, port);
        self.announced.remove(&key);
    }

    /// A subflow from our `port` begins at an address that the peer has announced.
    pub(crate) fn on_join(
        &mut self,
        endpoint: &Endpoint,
        path: PathId,
        port: u16,
        to: ServerAddress,
    ) {
        let (Some((own, _)), Some(theirs)) = (self.way(path), endpoint.address(to)) else { return };
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
        OwnAddress { address: IpAddr::from([10, 0, 0, last]), exit: None }
    }

    fn server(number: u32) -> IpAddr {
        IpAddr::from((0xc612_0000 + number).to_be_bytes())
    }

    /// A path that no subflow uses yet is dialled later, so it keeps its number until there are far too many.
    #[test]
    fn paths_keep_their_numbers_until_there_are_too_many() {
        let endpoint = Endpoint::new(Box::new(Counted::default()));
        let mut ways = Ways::new(vec![own(1), own(2)]);
        let first = ways.to(&endpoint, server(0));
        assert_eq!(first, [PathId(0), PathId(1)]);
        for number in 1..1_000 {
            ways.to(&endpoint, server(number));
            ways.shrink_idle(|_| false);
        }
        assert_eq!((ways.len(), ways.to(&endpoint, server(0))), (2_000, first));
        // From then on the table holds no more than those and a few, though nobody dials the old ones.
        for number in 1_000..50_000 {
            let paths = ways.to(&endpoint, server(number));
            assert_eq!(paths.len(), 2);
            assert_eq!(ways.way(paths[1]).unwrap().1, server(number));
        }
        assert!(ways.len() <= KEPT_WAYS + 2, "{}", ways.len());
        ways.shrink_idle(|_| false);
        assert!(ways.len() <= KEPT_WAYS);
    }

    /// An address of the other family is not dialled from here.
    #[test]
    fn a_path_has_two_addresses_of_one_family() {
        let endpoint = Endpoint::new(Box::new(Counted::default()));
        let v6 = OwnAddress { address: IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 1]), exit: None };
        let mut ways = Ways::new(vec![own(1), v6]);
        let paths = ways.to(&endpoint, server(0));
        assert_eq!(paths.len(), 1);
        assert_eq!(ways.way(paths[0]).unwrap().0.address, own(1).address);
        let arrival = |ways: &Ways, to| ways.of_arrival(to, server(0), 4_000);
        assert_eq!(arrival(&ways, own(1).address), Some((paths[0], false)));
        assert_eq!(arrival(&ways, own(2).address), None);
    }

    /// A port that has led to an announced address leads to the same address when it is dialled.
    #[test]
    fn a_dialled_port_is_not_that_of_an_announced_address() {
        let mut endpoint = Endpoint::new(Box::new(Counted::default()));
        let mut ways = Ways::new(vec![own(1)]);
        let dialled = ways.to(&endpoint, server(0))[0];
        let number = endpoint.number_address(server(1)).unwrap();
        ways.on_join(&endpoint, dialled, 4_000, number);
        let arrival = |ways: &Ways| ways.of_arrival(own(1).address, server(1), 4_000);
        assert_eq!(arrival(&ways), Some((dialled, true)));
        let direct = ways.to(&endpoint, server(1))[0];
        ways.on_dial(direct, 4_000);
        assert_eq!(arrival(&ways), Some((direct, false)));
    }
}
