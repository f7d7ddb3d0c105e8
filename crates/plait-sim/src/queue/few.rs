//! Tournament tree for few sources. A changed entry is compared once with the winner of each level,
//! and the first entry is always known.

use super::Stamp;
use plait_base::Time;

/// The entry of each source, and the tree of winners.
#[derive(Debug)]
pub(crate) struct Few {
    /// [`Time::NEVER`] with the greatest order if the source has no entry.
    times: [Time; Few::MAX_SOURCES],
    orders: [u64; Few::MAX_SOURCES],
    /// First source below each node of a binary tree. Node 1 is the root, and the children of node
    /// n are nodes 2n and 2n + 1. The sources are the leaves.
    winners: [u8; Few::MAX_SOURCES],
    /// Number of leaves, a power of two.
    leaves: usize,
    /// Source of the last entry taken, if it was not set since; the nodes above it are stale.
    /// [`Few::MAX_SOURCES`] if there is none.
    taken: usize,
}

impl Few {
    /// Largest number of sources.
    pub(crate) const MAX_SOURCES: usize = 16;

    /// Creates a queue for the sources below `sources`, at most [`Few::MAX_SOURCES`].
    pub(crate) fn new(sources: usize) -> Few {
        let leaves = sources.next_power_of_two().clamp(2, Few::MAX_SOURCES);
        let mut few = Few {
            times: [Time::NEVER; Few::MAX_SOURCES],
            orders: [u64::MAX; Few::MAX_SOURCES],
            winners: [0; Few::MAX_SOURCES],
            leaves,
            taken: Few::MAX_SOURCES,
        };
        (0..leaves).for_each(|source| few.rise(source));
        few
    }

    #[inline]
    pub(crate) fn set(&mut self, source: usize, stamp: Stamp) {
        self.times[source % Few::MAX_SOURCES] = stamp.at;
        self.orders[source % Few::MAX_SOURCES] = stamp.order;
        if source == self.taken {
            self.taken = Few::MAX_SOURCES;
        }
        self.rise(source);
    }

    /// Recomputes the winner of each node above a source.
    #[inline(always)]
    fn rise(&mut self, source: usize) {
        let mut first = source % Few::MAX_SOURCES;
        let mut at = self.times[first];
        let mut rival = first ^ 1;
        let mut node = (self.leaves + first) / 2;
        loop {
            let rival_at = self.times[rival];
            if rival_at < at || rival_at == at && self.orders[rival] < self.orders[first] {
                (first, at) = (rival, rival_at);
            }
            self.winners[node % Few::MAX_SOURCES] = first as u8;
            if node <= 1 {
                return;
            }
            rival = usize::from(self.winners[(node ^ 1) % Few::MAX_SOURCES]) % Few::MAX_SOURCES;
            node /= 2;
        }
    }

    #[inline]
    pub(crate) fn stamp(&self, source: usize) -> Stamp {
        Stamp { at: self.at(source), order: self.orders[source % Few::MAX_SOURCES] }
    }

    #[inline]
    pub(crate) fn at(&self, source: usize) -> Time {
        self.times[source % Few::MAX_SOURCES]
    }

    /// Takes the first entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Stamp, usize)> {
        if self.taken < Few::MAX_SOURCES {
            self.rise(self.taken);
        }
        let first = usize::from(self.winners[1]) % Few::MAX_SOURCES;
        let stamp = self.stamp(first);
        if stamp.at == Time::NEVER {
            return None;
        }
        self.times[first] = Time::NEVER;
        self.orders[first] = u64::MAX;
        self.taken = first;
        Some((stamp, first))
    }
}
