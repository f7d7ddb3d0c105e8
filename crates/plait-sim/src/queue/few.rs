//! The queue for few sources: a knockout among them. What a source is set to is compared once with each
//! winner on its way up, and the first of all is known without a look.

use super::Stamp;
use plait_base::Time;

/// The entry of each source, and who is first.
#[derive(Debug)]
pub(crate) struct Few {
    /// [`Time::NEVER`] where there is none, with the greatest order.
    times: [Time; Few::MOST],
    orders: [u64; Few::MOST],
    /// The first source below each node of a binary tree whose root is node 1 and whose children of
    /// node n are nodes 2n and 2n + 1, down to the sources themselves.
    winners: [u8; Few::MOST],
    /// Leaves of the tree: a power of two.
    leaves: usize,
    /// The source whose entry was taken last and that was not set since: those above it do not know
    /// yet. [`Few::MOST`] where there is none.
    taken: usize,
}

impl Few {
    /// It has room for no more sources.
    pub(crate) const MOST: usize = 16;

    /// A queue over the sources below `sources`, at most [`Few::MOST`].
    pub(crate) fn new(sources: usize) -> Few {
        let leaves = sources.next_power_of_two().clamp(2, Few::MOST);
        let mut few = Few {
            times: [Time::NEVER; Few::MOST],
            orders: [u64::MAX; Few::MOST],
            winners: [0; Few::MOST],
            leaves,
            taken: Few::MOST,
        };
        (0..leaves).for_each(|source| few.rise(source));
        few
    }

    #[inline]
    pub(crate) fn set(&mut self, source: usize, stamp: Stamp) {
        self.times[source % Few::MOST] = stamp.at;
        self.orders[source % Few::MOST] = stamp.order;
        if source == self.taken {
            self.taken = Few::MOST;
        }
        self.rise(source);
    }

    /// Decides anew who is first below each node above a source.
    #[inline(always)]
    fn rise(&mut self, source: usize) {
        let mut first = source % Few::MOST;
        let mut at = self.times[first];
        let mut rival = first ^ 1;
        let mut node = (self.leaves + first) / 2;
        loop {
            let rival_at = self.times[rival];
            if rival_at < at || rival_at == at && self.orders[rival] < self.orders[first] {
                (first, at) = (rival, rival_at);
            }
            self.winners[node % Few::MOST] = first as u8;
            if node <= 1 {
                return;
            }
            rival = usize::from(self.winners[(node ^ 1) % Few::MOST]) % Few::MOST;
            node /= 2;
        }
    }

    #[inline]
    pub(crate) fn stamp(&self, source: usize) -> Stamp {
        Stamp { at: self.at(source), order: self.orders[source % Few::MOST] }
    }

    #[inline]
    pub(crate) fn at(&self, source: usize) -> Time {
        self.times[source % Few::MOST]
    }

    /// Takes the first entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Stamp, usize)> {
        if self.taken < Few::MOST {
            self.rise(self.taken);
        }
        let first = usize::from(self.winners[1]) % Few::MOST;
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
