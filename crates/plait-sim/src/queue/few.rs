//! Entries of few sources in one list. All are compared when the first one is taken. No branch depends on
//! their times, which a processor cannot predict.

use super::Stamp;
use plait_base::Time;

/// The entry of each source.
#[derive(Debug)]
pub(crate) struct Few {
    entries: [Entry; Few::MAX_SOURCES],
    /// There are more than [`Few::HALF`] sources.
    many: bool,
}

/// The time of an entry, then its order, then its source, from the highest bit to the lowest. Orders have at most
/// 60 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Entry(u128);

impl Entry {
    const SOURCE_BITS: u32 = Few::MAX_SOURCES.ilog2();

    #[inline(always)]
    const fn new(source: usize, stamp: Stamp) -> Entry {
        let order = stamp.order << Entry::SOURCE_BITS | source as u64;
        Entry((stamp.at.as_nanos() as u128) << 64 | order as u128)
    }

    #[inline(always)]
    const fn at(self) -> Time {
        Time::from_nanos((self.0 >> 64) as u64)
    }

    #[inline(always)]
    const fn source(self) -> usize {
        self.0 as usize % Few::MAX_SOURCES
    }

    #[inline(always)]
    const fn stamp(self) -> Stamp {
        Stamp { at: self.at(), order: self.0 as u64 >> Entry::SOURCE_BITS }
    }

    /// Returns the first of the two.
    #[inline(always)]
    fn min(self, other: Entry) -> Entry {
        Entry(if other.0 < self.0 { other.0 } else { self.0 })
    }
}

impl Few {
    /// Largest number of sources. With more, a calendar is faster (`benches/queue.rs`).
    pub(crate) const MAX_SOURCES: usize = 16;
    const HALF: usize = Few::MAX_SOURCES / 2;

    /// Creates a queue for the sources below `sources`, at most [`Few::MAX_SOURCES`].
    pub(crate) fn new(sources: usize) -> Few {
        let entries = std::array::from_fn(|source| Entry::new(source, Stamp::NEVER));
        Few { entries, many: sources > Few::HALF }
    }

    #[inline]
    pub(crate) fn set(&mut self, source: usize, stamp: Stamp) {
        self.entries[source % Few::MAX_SOURCES] = Entry::new(source, stamp);
    }

    #[inline]
    pub(crate) fn at(&self, source: usize) -> Time {
        self.entries[source % Few::MAX_SOURCES].at()
    }

    /// Takes the first entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Stamp, usize)> {
        let mut first = self.first_of_half(0);
        if self.many {
            first = first.min(self.first_of_half(Few::HALF));
        }
        if first.at() == Time::NEVER {
            return None;
        }
        let source = first.source();
        self.entries[source] = Entry::new(source, Stamp::NEVER);
        Some((first.stamp(), source))
    }

    /// Returns the first of eight entries. The comparisons of one row do not wait for each other.
    #[inline(always)]
    fn first_of_half(&self, from: usize) -> Entry {
        let of = |at: usize| self.entries[(from + at) % Few::MAX_SOURCES];
        let (a, b) = (of(0).min(of(1)), of(2).min(of(3)));
        let (c, d) = (of(4).min(of(5)), of(6).min(of(7)));
        a.min(b).min(c.min(d))
    }
}
