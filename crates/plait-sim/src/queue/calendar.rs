//! Calendar queue for many sources (R. Brown, CACM 31:10, 1988). Each bucket of a ring covers a
//! span of time. One more bucket holds the entries beyond the ring.
//!
//! Each source has at most one entry. Entries are therefore elements of one array, and each bucket
//! links its entries in order. When a source is set again, its old entry leaves the bucket at once.
//! Nothing is allocated after the start.

use super::Stamp;

/// Neighbours of an entry in the circular list of its bucket.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u32,
    after: u32,
}

/// Buckets for each source. Most sources recur within one turn of the ring, and an event costs one
/// or two buckets.
const BUCKETS_PER_SOURCE: usize = 4;

/// Initial width of a bucket, as a power of two of nanoseconds: 16 us.
const FIRST_SHIFT: u32 = 14;

/// Largest width (18 minutes); wider buckets gain nothing.
const LAST_SHIFT: u32 = 40;

/// See the module. Spans are numbered from the start of the run in units of the width. The ring
/// holds the spans from `current` on.
#[derive(Debug)]
pub(crate) struct Calendar {
    /// By source; [`Stamp::NEVER`] if the source has no entry.
    stamps: Vec<Stamp>,
    /// Bucket of each source's entry; [`Calendar::nowhere`] if it has none.
    buckets: Vec<u32>,
    /// Links of the sources, then of the buckets. An element without neighbours links to itself.
    links: Vec<Links>,
    /// One bit for each bucket, set if the bucket has an entry.
    occupied: Vec<u64>,
    /// Number of buckets in the ring minus one; the number is a power of two and at least 64. The
    /// bucket beyond the ring, which is unordered, follows.
    mask: usize,
    /// Width of a bucket: 2^shift ns.
    shift: u32,
    /// Span of the last entry taken. Entries for an earlier time also go into this span.
    current: u64,
    /// No entry beyond the ring has an earlier span.
    beyond_from: u64,
    /// Entries taken since the width was last checked.
    taken: u64,
    /// Time of the last entry taken, now and when the width was last checked.
    now: u64,
    looked_at: u64,
}

impl Calendar {
    pub(crate) fn new(sources: usize) -> Calendar {
        let ring = (BUCKETS_PER_SOURCE * sources).next_power_of_two().max(64);
        let alone = |at| Links { before: at, after: at };
        Calendar {
            stamps: vec![Stamp::NEVER; sources],
            buckets: vec![ring as u32 + 1; sources],
            links: (0..(sources + ring + 1) as u32).map(alone).collect(),
            occupied: vec![0; ring / 64 + 1],
            mask: ring - 1,
            shift: FIRST_SHIFT,
            current: 0,
            beyond_from: u64::MAX,
            taken: 0,
            now: 0,
            looked_at: 0,
        }
    }

    /// Returns the bucket of the entries beyond the ring.
    const fn beyond(&self) -> usize {
        self.mask + 1
    }

    /// Returns the bucket of sources without an entry; its bit has no meaning.
    const fn nowhere(&self) -> u32 {
        self.mask as u32 + 2
    }

    /// Returns the index of a bucket among the links.
    const fn place(&self, bucket: usize) -> usize {
        self.stamps.len() + bucket
    }

    #[inline]
    pub(crate) fn stamp(&self, source: usize) -> Stamp {
        self.stamps[source]
    }

    #[inline]
    pub(crate) fn set(&mut self, source: usize, stamp: Stamp) {
        self.unlink(source);
        self.stamps[source] = stamp;
        self.link(source, stamp);
    }

    /// Takes the first entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Stamp, usize)> {
        let mut next = self.next_span();
        while next >= self.beyond_from && self.beyond_from != u64::MAX {
            self.gather();
            next = self.next_span();
        }
        if next == u64::MAX {
            return None;
        }
        self.current = next;
        let source = self.links[self.place(next as usize & self.mask)].after as usize;
        self.unlink(source);
        self.buckets[source] = self.nowhere();
        let stamp = std::mem::replace(&mut self.stamps[source], Stamp::NEVER);
        self.now = self.now.max(stamp.at.as_nanos());
        self.taken += 1;
        if self.taken >= 4 * self.stamps.len() as u64 {
            self.fit_width();
        }
        Some((stamp, source))
    }

    /// Returns the first span in the ring with an entry, or [`u64::MAX`] if the ring is empty.
    #[inline]
    fn next_span(&self) -> u64 {
        let start = self.current as usize & self.mask;
        let rest = self.occupied[start / 64] >> (start % 64);
        if rest != 0 {
            return self.current + u64::from(rest.trailing_zeros());
        }
        // The search ends with its first word again, for the lower bits.
        let words = (self.mask + 1) / 64;
        for step in 1..=words {
            let word = self.occupied[(start / 64 + step) & (words - 1)];
            if word != 0 {
                let distance = 64 * step + word.trailing_zeros() as usize - start % 64;
                return self.current + distance as u64;
            }
        }
        u64::MAX
    }

    /// Returns the span of an entry.
    #[inline]
    const fn span_of(&self, stamp: Stamp) -> u64 {
        stamp.at.as_nanos() >> self.shift
    }

    /// Adds a source's entry to its bucket, in order within the ring. Later entries usually have
    /// later times, so the search starts at the end.
    #[inline]
    fn link(&mut self, source: usize, stamp: Stamp) {
        let span = self.span_of(stamp).max(self.current);
        let (bucket, mut after);
        if span - self.current <= self.mask as u64 {
            bucket = span as usize & self.mask;
            after = self.place(bucket);
            loop {
                let before = self.links[after].before as usize;
                match self.stamps.get(before) {
                    Some(earlier) if stamp < *earlier => after = before,
                    _ => break,
                }
            }
        } else {
            self.beyond_from = self.beyond_from.min(span);
            bucket = self.beyond();
            after = self.place(bucket);
        }
        let before = std::mem::replace(&mut self.links[after].before, source as u32);
        self.links[before as usize].after = source as u32;
        self.links[source] = Links { before, after: after as u32 };
        self.buckets[source] = bucket as u32;
        self.occupied[bucket / 64] |= 1 << (bucket % 64);
    }

    /// Removes a source's entry from its bucket, if it is in one.
    #[inline]
    fn unlink(&mut self, source: usize) {
        let Links { before, after } = self.links[source];
        self.links[before as usize].after = after;
        self.links[after as usize].before = before;
        self.links[source] = Links { before: source as u32, after: source as u32 };
        // If both neighbours are equal, the neighbour is the bucket, which is now empty.
        let bucket = self.buckets[source] as usize;
        self.occupied[bucket / 64] &= !(u64::from(before == after) << (bucket % 64));
    }

    /// Advances to the first span beyond the ring and moves entries into the ring.
    #[cold]
    fn gather(&mut self) {
        let end = self.place(self.beyond());
        let mut next = self.links[end].after as usize;
        if next != end {
            self.current = self.beyond_from;
        }
        self.beyond_from = u64::MAX;
        while next != end {
            let source = next;
            next = self.links[source].after as usize;
            let span = self.span_of(self.stamps[source]);
            if span.saturating_sub(self.current) <= self.mask as u64 {
                self.unlink(source);
                self.link(source, self.stamps[source]);
            } else {
                self.beyond_from = self.beyond_from.min(span);
            }
        }
    }

    /// Adapts the width if it is far from one to two times the mean time between entries.
    #[cold]
    fn fit_width(&mut self) {
        let gap = (self.now - self.looked_at) / self.taken;
        (self.taken, self.looked_at) = (0, self.now);
        let shift = (gap.max(1).ilog2() + 1).min(LAST_SHIFT);
        // Pauses and bursts must not change the width; entries of one instant are in order anyway.
        if gap == 0 || shift.abs_diff(self.shift) < 2 {
            return;
        }
        for source in 0..self.stamps.len() {
            self.unlink(source);
        }
        self.shift = shift;
        self.current = self.now >> shift;
        self.beyond_from = u64::MAX;
        for source in 0..self.stamps.len() {
            if self.buckets[source] != self.nowhere() {
                self.link(source, self.stamps[source]);
            }
        }
    }
}
