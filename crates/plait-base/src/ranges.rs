use crate::reserve_ahead;
use crate::sequence::{DataSpace, RecvSpace, SendSpace, Sequence, Space};
use alloc::collections::VecDeque;

/// A range of data sequence numbers (RFC 8684 section 3.3).
pub type DataRange = ByteRange<DataSpace>;

/// A range of subflow sequence numbers of this end (RFC 9293 section 3.4).
pub type SendRange = ByteRange<SendSpace>;

/// A range of subflow sequence numbers of the peer.
pub type RecvRange = ByteRange<RecvSpace>;

/// The bytes from `start` up to, but not including, `end`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct ByteRange<S: Space> {
    /// First byte.
    pub start: Sequence<S>,
    /// One past the last byte.
    pub end: Sequence<S>,
}

impl<S: Space> ByteRange<S> {
    /// Returns the range from `start` up to `end`; empty if `end` is not above `start`.
    #[inline]
    #[must_use]
    pub fn new(start: Sequence<S>, end: Sequence<S>) -> ByteRange<S> {
        ByteRange { start, end: end.max(start) }
    }

    /// Returns the range between two plain numbers; empty if `end` is not above `start`.
    #[inline]
    #[must_use]
    pub fn between(start: u64, end: u64) -> ByteRange<S> {
        ByteRange::new(Sequence::new(start), Sequence::new(end))
    }

    /// Returns the range of `len` bytes from `start`.
    #[inline]
    #[must_use]
    pub fn with_len(start: Sequence<S>, len: u64) -> ByteRange<S> {
        ByteRange { start, end: start + len }
    }

    /// Returns the number of bytes.
    #[inline]
    #[must_use]
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Returns true if the range has no byte.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.end == self.start
    }

    /// Returns true if `other` lies within this range.
    #[inline]
    #[must_use]
    pub fn covers(self, other: ByteRange<S>) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Returns the bytes in both ranges. If there are none, the result is empty and its position
    /// has no meaning.
    #[inline]
    #[must_use]
    pub fn intersect(self, other: ByteRange<S>) -> ByteRange<S> {
        ByteRange::new(self.start.max(other.start), self.end.min(other.end))
    }
}

/// A set of data sequence numbers (RFC 8684 section 3.3).
pub type DataRangeSet = RangeSet<DataSpace>;

/// A set of subflow sequence numbers of this end (RFC 9293 section 3.4).
pub type SendRangeSet = RangeSet<SendSpace>;

/// A set of subflow sequence numbers of the peer.
pub type RecvRangeSet = RangeSet<RecvSpace>;

/// A set of bytes, stored as ascending ranges that neither touch nor overlap.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct RangeSet<S: Space> {
    ranges: VecDeque<ByteRange<S>>,
    len: u64,
}

impl<S: Space> RangeSet<S> {
    /// Returns the empty set.
    #[must_use]
    pub const fn new() -> RangeSet<S> {
        RangeSet { ranges: VecDeque::new(), len: 0 }
    }

    /// Returns the empty set with capacity for `ranges` ranges.
    #[must_use]
    pub fn with_capacity(ranges: usize) -> RangeSet<S> {
        RangeSet { ranges: VecDeque::with_capacity(ranges), len: 0 }
    }

    /// Reserves capacity for `ranges` ranges in total.
    pub fn reserve(&mut self, ranges: usize) {
        self.ranges.reserve(ranges.saturating_sub(self.ranges.len()));
    }

    /// Returns the number of bytes in the set.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Returns true if the set is empty.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the ranges in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = ByteRange<S>> + '_ {
        self.ranges.iter().copied()
    }

    /// Returns the number of separate ranges.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    /// Returns the lowest range.
    #[must_use]
    pub fn first(&self) -> Option<ByteRange<S>> {
        self.ranges.front().copied()
    }

    /// Returns the highest range.
    #[must_use]
    pub fn last(&self) -> Option<ByteRange<S>> {
        self.ranges.back().copied()
    }

    /// Returns the index of the first range that ends above `position`.
    #[inline]
    fn seek(&self, position: Sequence<S>) -> usize {
        let (Some(first), Some(last)) = (self.ranges.front(), self.ranges.back()) else { return 0 };
        // Most calls concern the edges: new data lies above all ranges, and data is taken from the
        // front.
        if position < first.end {
            0
        } else if position >= last.end {
            self.ranges.len()
        } else {
            self.ranges.partition_point(|range| range.end <= position)
        }
    }

    /// Returns the range of the set that contains `position`.
    #[inline]
    #[must_use]
    pub fn containing(&self, position: Sequence<S>) -> Option<ByteRange<S>> {
        if self.len == 0 {
            return None;
        }
        let range = *self.ranges.get(self.seek(position))?;
        (range.start <= position).then_some(range)
    }

    /// Returns the lowest range that ends above `position`.
    #[must_use]
    pub fn next_above(&self, position: Sequence<S>) -> Option<ByteRange<S>> {
        self.ranges.get(self.seek(position)).copied()
    }

    /// Returns true if every byte of `range` is in the set.
    #[inline]
    #[must_use]
    pub fn covers(&self, range: ByteRange<S>) -> bool {
        range.is_empty() || self.containing(range.start).is_some_and(|held| held.covers(range))
    }

    /// Adds `range`. Returns the number of new bytes.
    #[inline]
    pub fn insert(&mut self, range: ByteRange<S>) -> u64 {
        // Fast path: written data continues the highest range.
        if let Some(last) = self.ranges.back_mut()
            && last.end == range.start
        {
            last.end = range.end;
            self.len += range.len();
            return range.len();
        }
        self.insert_with(range, |_| {})
    }

    /// Adds `range` and calls `on_new` with each part that was not in the set, in ascending order.
    /// Returns the number of new bytes.
    pub fn insert_with(
        &mut self,
        range: ByteRange<S>,
        mut on_new: impl FnMut(ByteRange<S>),
    ) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let mut first = self.seek(range.start);
        // A range that ends exactly at the start of this one is merged with it.
        if first > 0 && self.ranges[first - 1].end == range.start {
            first -= 1;
        }
        let (mut merged, mut at, mut new, mut last) = (range, range.start, 0, first);
        while let Some(held) = self.ranges.get(last).copied() {
            if held.start > range.end {
                break;
            }
            if held.start > at {
                on_new(ByteRange::new(at, held.start));
                new += held.start - at;
            }
            at = at.max(held.end);
            merged = ByteRange::new(merged.start.min(held.start), merged.end.max(held.end));
            last += 1;
        }
        if at < range.end {
            on_new(ByteRange::new(at, range.end));
            new += range.end - at;
        }
        if first == last {
            reserve_ahead(&mut self.ranges, 64);
            self.ranges.insert(first, merged);
        } else {
            self.ranges[first] = merged;
            if last - first > 1 {
                self.ranges.drain(first + 1..last);
            }
        }
        self.len += new;
        new
    }

    /// Removes `range`. Returns the number of removed bytes.
    #[inline]
    pub fn remove(&mut self, range: ByteRange<S>) -> u64 {
        // Fast path: data sent in order is removed from the front of the first range.
        if let Some(first) = self.ranges.front_mut()
            && first.start == range.start
            && first.end > range.end
        {
            first.start = range.end;
            self.len -= range.len();
            return range.len();
        }
        self.remove_anywhere(range)
    }

    fn remove_anywhere(&mut self, range: ByteRange<S>) -> u64 {
        if range.is_empty() {
            return 0;
        }
        let mut at = self.seek(range.start);
        let before = self.len;
        while let Some(held) = self.ranges.get(at).copied() {
            if held.start >= range.end {
                break;
            }
            let gone = held.intersect(range);
            self.len -= gone.len();
            match (held.start < gone.start, gone.end < held.end) {
                (false, false) => {
                    self.ranges.remove(at);
                }
                (true, false) => {
                    self.ranges[at].end = gone.start;
                    at += 1;
                }
                (false, true) => {
                    self.ranges[at].start = gone.end;
                    at += 1;
                }
                (true, true) => {
                    self.ranges[at].end = gone.start;
                    reserve_ahead(&mut self.ranges, 64);
                    self.ranges.insert(at + 1, ByteRange::new(gone.end, held.end));
                    at += 2;
                }
            }
        }
        before - self.len
    }

    /// Removes and returns the start of the lowest range, at most `len` bytes.
    #[inline]
    pub fn take_first(&mut self, len: u64) -> Option<ByteRange<S>> {
        let first = self.ranges.front_mut()?;
        let taken = ByteRange::new(first.start, first.end.min(first.start.saturating_add(len)));
        self.len -= taken.len();
        first.start = taken.end;
        if first.is_empty() {
            self.ranges.pop_front();
        }
        Some(taken)
    }

    /// Removes all bytes below `position`. Returns the number of removed bytes.
    #[inline]
    pub fn remove_below(&mut self, position: Sequence<S>) -> u64 {
        if self.len == 0 {
            return 0;
        }
        self.remove_some_below(position)
    }

    fn remove_some_below(&mut self, position: Sequence<S>) -> u64 {
        let before = self.len;
        while let Some(front) = self.ranges.front_mut() {
            if front.end <= position {
                self.len -= front.len();
                self.ranges.pop_front();
            } else {
                if front.start < position {
                    self.len -= position - front.start;
                    front.start = position;
                }
                break;
            }
        }
        before - self.len
    }

    /// Returns at most `len` contiguous bytes that start `offset` bytes into the set.
    #[inline]
    #[must_use]
    pub fn nth(&self, offset: u64, len: u64) -> Option<ByteRange<S>> {
        let first = self.ranges.front()?;
        if offset < first.len() {
            let start = first.start + offset;
            return Some(ByteRange::new(start, first.end.min(start.saturating_add(len))));
        }
        self.nth_beyond(offset, len)
    }

    fn nth_beyond(&self, offset: u64, len: u64) -> Option<ByteRange<S>> {
        let mut skip = offset;
        for range in &self.ranges {
            if skip < range.len() {
                let start = range.start + skip;
                return Some(ByteRange::new(start, range.end.min(start.saturating_add(len))));
            }
            skip -= range.len();
        }
        None
    }

    /// Empties the set but keeps its memory.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dsn;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_like_a_set_of_bytes(
            steps in proptest::collection::vec((0u8..5, 0u64..60, 0u64..20), 1..60),
        ) {
            let (mut set, mut model) = (RangeSet::<DataSpace>::new(), BTreeSet::new());
            for (what, start, len) in steps {
                let (position, numbers) = (Dsn::new, |range: DataRange| range.start.get()..range.end.get());
                let range = DataRange::with_len(position(start), len);
                let bytes: Vec<u64> = numbers(range).collect();
                match what {
                    0 | 1 => {
                        let mut reported = Vec::new();
                        let new = set.insert_with(range, |part| reported.extend(numbers(part)));
                        let fresh: Vec<u64> =
                            bytes.iter().copied().filter(|b| model.insert(*b)).collect();
                        prop_assert_eq!(new, fresh.len() as u64);
                        prop_assert_eq!(reported, fresh);
                    }
                    2 => {
                        let gone = bytes.iter().filter(|b| model.remove(b)).count();
                        prop_assert_eq!(set.remove(range), gone as u64);
                    }
                    3 => {
                        let first = set.first().map(|first| {
                            ByteRange::new(first.start, first.end.min(first.start + len))
                        });
                        prop_assert_eq!(set.take_first(len), first);
                        let taken = first.unwrap_or_default();
                        numbers(taken).for_each(|byte| assert!(model.remove(&byte)));
                    }
                    _ => {
                        let kept = model.split_off(&start);
                        let gone = model.len();
                        model = kept;
                        prop_assert_eq!(set.remove_below(position(start)), gone as u64);
                    }
                }
                prop_assert_eq!(set.len(), model.len() as u64);
                let flat: Vec<u64> = set.iter().flat_map(numbers).collect();
                prop_assert_eq!(&flat, &model.iter().copied().collect::<Vec<_>>());
                let mut ends = set.iter().zip(set.iter().skip(1));
                prop_assert!(ends.all(|(low, high)| low.end < high.start));
                for probe in [0, start, start + len] {
                    prop_assert_eq!(set.containing(position(probe)).is_some(), model.contains(&probe));
                    let above = set.next_above(position(probe)).map(|range| range.start.get().max(probe));
                    prop_assert_eq!(above, model.range(probe..).next().copied());
                    let nth = model.iter().nth(probe as usize).copied();
                    prop_assert_eq!(set.nth(probe, 1).map(|r| r.start.get()), nth);
                }
            }
        }
    }
}
