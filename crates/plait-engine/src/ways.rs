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
    pub(crate) fn rest(&mut self, in_use: impl Fn(PathId) -> bool) {
        if self.ways.len() > KEPT_WAYS {
            self.ways.rest(in_use);
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
