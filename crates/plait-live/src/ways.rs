//! The paths of an end that dials: each stands for one of its own addresses and an address that it
//! dials.

use crate::exit::Exit;
use plait_base::{PathId, ServerAddress};
use plait_core::Endpoint;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Conversations with announced addresses that are remembered before those that are over are
/// forgotten.
const ANNOUNCED: usize = 4_096;

/// An own address, and where its packets leave, if not through the TUN device.
#[derive(Debug)]
pub(crate) struct OwnAddress {
    pub(crate) address: IpAddr,
    pub(crate) exit: Option<Exit>,
}

/// One path.
#[derive(Clone, Copy, Debug)]
struct Way {
    /// Place of the own address.
    own: usize,
    /// The address that is dialled.
    theirs: IpAddr,
}

/// All paths, by number and by addresses.
#[derive(Debug)]
pub(crate) struct Ways {
    own: Vec<OwnAddress>,
    ways: Vec<Way>,
    numbers: BTreeMap<(IpAddr, IpAddr), PathId>,
    /// Numbers of paths that were forgotten.
    free: Vec<PathId>,
    /// The path of a subflow to an address that the peer has announced: by both addresses and the own
    /// port, as several servers may announce the same one.
    announced: BTreeMap<(IpAddr, IpAddr, u16), PathId>,
}

impl Ways {
    pub(crate) fn new(own: Vec<OwnAddress>) -> Ways {
        let (numbers, announced) = (BTreeMap::new(), BTreeMap::new());
        Ways { own, ways: Vec::new(), numbers, free: Vec::new(), announced }
    }

    /// Whether some packets do not leave by the TUN device.
    pub(crate) fn has_exits(&self) -> bool {
        self.own.iter().any(|own| own.exit.is_some())
    }

    /// The paths to an address, one from each own address of its family, in order. Fewer where there
    /// are no numbers left.
    pub(crate) fn to(&mut self, endpoint: &Endpoint, theirs: IpAddr) -> Vec<PathId> {
        let own: Vec<usize> = (0..self.own.len())
            .filter(|at| self.own[*at].address.is_ipv4() == theirs.is_ipv4())
            .collect();
        if self.free.is_empty() && self.ways.len() + own.len() > usize::from(u16::MAX) {
            self.forget(endpoint);
        }
        own.into_iter().filter_map(|own| self.number(Way { own, theirs })).collect()
    }

    fn number(&mut self, way: Way) -> Option<PathId> {
        let key = (self.own[way.own].address, way.theirs);
        if let Some(known) = self.numbers.get(&key) {
            return Some(*known);
        }
        let number = match self.free.pop() {
            Some(number) => {
                self.ways[number.index()] = way;
                number
            }
            None => {
                let number = PathId(u16::try_from(self.ways.len()).ok()?);
                self.ways.push(way);
                number
            }
        };
        self.numbers.insert(key, number);
        Some(number)
    }

    /// Forgets the paths that no connection uses.
    fn forget(&mut self, endpoint: &Endpoint) {
        let free = &mut self.free;
        self.numbers.retain(|_, number| {
            let keep = endpoint.uses_path(*number);
            if !keep {
                free.push(*number);
            }
            keep
        });
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
        announced.or_else(|| Some((*self.numbers.get(&(ours, theirs))?, false)))
    }

    /// Our address on a path, the other end's, and where packets leave.
    pub(crate) fn way(&self, path: PathId) -> Option<(&OwnAddress, IpAddr)> {
        let way = self.ways.get(path.index())?;
        Some((self.own.get(way.own)?, way.theirs))
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
        if self.announced.len() >= ANNOUNCED {
            self.announced.retain(|_, path| endpoint.uses_path(*path));
        }
        self.announced.insert(key, path);
    }
}
