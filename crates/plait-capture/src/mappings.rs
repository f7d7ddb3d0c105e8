//! Mappings of subflow positions to data sequence numbers.

use std::collections::VecDeque;

/// Number of mappings that are kept.
const MAX_MAPPINGS: usize = 64;

/// A mapping of subflow positions to data sequence numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Map {
    pub(crate) start: i64,
    pub(crate) len: i64,
    pub(crate) dsn: u64,
    pub(crate) long: bool,
}

/// The data sequence number of a segment's first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MappedTo {
    pub(crate) dsn: u64,
    pub(crate) long: bool,
}

/// The latest mappings of a direction.
#[derive(Clone, Default, Debug)]
pub(crate) struct Mappings {
    maps: VecDeque<Map>,
    /// So many of the latest ones are in the order of their positions, without overlap.
    ordered: usize,
}

impl Mappings {
    /// Adds a mapping. One that repeats the latest one replaces it, and the oldest one is dropped if there are too many.
    pub(crate) fn push(&mut self, map: Map) {
        if self.maps.back().is_some_and(|last| last.start == map.start && last.dsn == map.dsn) {
            self.maps.pop_back();
            self.ordered = self.ordered.saturating_sub(1);
        } else if self.maps.len() >= MAX_MAPPINGS {
            self.maps.pop_front();
        }
        let follows = self.maps.back().is_none_or(|last| last.start + last.len <= map.start);
        self.ordered = if follows { (self.ordered + 1).min(MAX_MAPPINGS) } else { 1 };
        self.maps.push_back(map);
    }

    /// Returns the data sequence number of a position, by the latest mapping that covers it.
    pub(crate) fn find(&self, position: i64) -> Option<MappedTo> {
        let covers = |map: &&Map| position >= map.start && position < map.start + map.len;
        let (first, count) = (self.maps.len().saturating_sub(self.ordered), self.maps.len());
        // The first one of these that begins beyond the position.
        let (mut low, mut high) = (first, count);
        while low < high {
            let middle = low.midpoint(high);
            match self.maps[middle].start <= position {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let latest = low.checked_sub(1).filter(|at| *at >= first).map(|at| &self.maps[at]);
        let earlier = || self.maps.range(..first).rev().find(covers);
        let map = latest.filter(covers).or_else(earlier)?;
        let dsn = map.dsn.wrapping_add((position - map.start) as u64);
        Some(MappedTo { dsn, long: map.long })
    }

    /// Returns true if there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.maps.is_empty()
    }

    /// Returns unused memory.
    pub(crate) fn shrink(&mut self) {
        self.maps.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn repeated_mappings_of_the_first_data_need_no_memory() {
        let mut mappings = Mappings::default();
        let first = |dsn| Map { start: 1, len: 10, dsn, long: true };
        (0..100_000).for_each(|_| mappings.push(first(1_000)));
        assert_eq!(mappings.maps.len(), 1);
        (0..100_000).for_each(|dsn| mappings.push(first(dsn)));
        assert_eq!(mappings.maps.len(), MAX_MAPPINGS);
        assert!(mappings.maps.capacity() <= MAX_MAPPINGS, "{}", mappings.maps.capacity());
        assert_eq!(mappings.find(3), Some(MappedTo { dsn: 100_001, long: true }));
    }

    proptest! {
        /// A search from the latest mapping to the oldest one finds the same.
        #[test]
        fn the_latest_mapping_counts(
            steps in prop::collection::vec((0u8..6, 0i64..400, 1i64..12), 1..200),
        ) {
            let (mut mappings, mut all, mut next) = (Mappings::default(), Vec::<Map>::new(), 0);
            for (nth, (what, at, len)) in steps.into_iter().enumerate() {
                let repeats = what == 1;
                let map = match (what, all.last()) {
                    (0, _) => Map { start: at, len, dsn: nth as u64, long: false },
                    (1, Some(last)) => *last,
                    _ => Map { start: next + i64::from(what == 2), len, dsn: nth as u64, long: true },
                };
                next = next.max(map.start + map.len);
                mappings.push(map);
                if !repeats || all.is_empty() {
                    all.push(map);
                }
                let kept = &all[all.len().saturating_sub(MAX_MAPPINGS)..];
                for position in 0..next + 2 {
                    let covers = |map: &&Map| (map.start..map.start + map.len).contains(&position);
                    let expected = kept.iter().rev().find(covers).map(|map| {
                        MappedTo { dsn: map.dsn + (position - map.start) as u64, long: map.long }
                    });
                    prop_assert_eq!(mappings.find(position), expected);
                }
            }
        }
    }
}
