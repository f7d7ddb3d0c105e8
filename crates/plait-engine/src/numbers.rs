//! Numbers of paths, each for a client's address or for the two addresses of a dialled path.

use plait_base::PathId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Numbers checked for each one that is assigned. With four checks, the table has at most four
/// thirds as many entries as paths in use.
const LOOKS_PER_NEWCOMER: usize = 4;
/// Divisor of the table for the part that is checked by each [`Numbers::shrink_idle`], and the most
/// numbers that one call checks.
const PART_PER_REST: usize = 4;
const MOST_PER_REST: usize = 65_536;
/// A table of up to this many numbers keeps its memory.
const MIN_CAPACITY: usize = 64;

/// Numbers and their keys. A lookup takes logarithmic time. Unused numbers are found by a hand that
/// goes round the table, a few steps for each new key.
#[derive(Debug)]
pub(crate) struct Numbers<K> {
    by_key: BTreeMap<K, PathId>,
    by_number: Vec<Option<K>>,
    /// Unassigned numbers. Some may lie beyond the table, because it has shrunk.
    free: BinaryHeap<Reverse<u32>>,
    /// The number that was checked last.
    hand: usize,
    /// Most numbers at a time.
    most: usize,
    /// Checks so far whether a number is in use.
    looks: u64,
}

impl<K> Default for Numbers<K> {
    fn default() -> Numbers<K> {
        Numbers {
            by_key: BTreeMap::new(),
            by_number: Vec::new(),
            free: BinaryHeap::new(),
            hand: 0,
            most: PathId::MAX.index() + 1,
            looks: 0,
        }
    }
}

impl<K: Copy + Ord> Numbers<K> {
    /// Returns the number of `key`, if it has one.
    pub(crate) fn known(&self, key: K) -> Option<PathId> {
        self.by_key.get(&key).copied()
    }

    /// Returns the key of a number.
    pub(crate) fn key(&self, number: PathId) -> Option<K> {
        self.by_number.get(number.index()).copied().flatten()
    }

    /// Returns how many numbers are assigned.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Limits how many numbers there are.
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = most.clamp(1, PathId::MAX.index() + 1);
    }

    /// Returns the number of checks so far whether a number is in use.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// Assigns the lowest free number to `key`, which must not have one. Returns `None` if all
    /// numbers are in use.
    pub(crate) fn give(&mut self, key: K) -> Option<PathId> {
        let number = match self.lowest_free() {
            Some(number) => number,
            None if self.by_number.len() < self.most => {
                let number = PathId::at(self.by_number.len())?;
                self.by_number.push(None);
                number
            }
            None => return None,
        };
        self.by_number[number.index()] = Some(key);
        self.by_key.insert(key, number);
        Some(number)
    }

    fn lowest_free(&mut self) -> Option<PathId> {
        let Reverse(number) = self.free.pop()?;
        if (number as usize) < self.by_number.len() {
            return Some(PathId(number));
        }
        // All others are higher.
        self.free.clear();
        None
    }

    /// Makes room for `newcomers`: checks a few numbers and reclaims the unused ones. It may also
    /// reclaim numbers that are assigned but not used yet.
    pub(crate) fn make_room(&mut self, newcomers: usize, in_use: impl Fn(PathId) -> bool) {
        self.look_at(newcomers.saturating_mul(LOOKS_PER_NEWCOMER), in_use);
    }

    /// Checks a part of the table, reclaims unused numbers, and frees memory. It is called every
    /// few seconds.
    pub(crate) fn shrink_idle(&mut self, in_use: impl Fn(PathId) -> bool) {
        let part = self.by_number.len().div_ceil(PART_PER_REST).max(MIN_CAPACITY);
        self.look_at(part.min(MOST_PER_REST), in_use);
        while self.by_number.last().is_some_and(Option::is_none) {
            self.by_number.pop();
        }
        let len = self.by_number.len();
        if self.by_number.capacity() > MIN_CAPACITY.max(4 * len) {
            self.by_number.shrink_to(2 * len);
            self.free.retain(|Reverse(number)| (*number as usize) < len);
            self.free.shrink_to(2 * len);
        }
    }

    fn look_at(&mut self, count: usize, in_use: impl Fn(PathId) -> bool) {
        for _ in 0..count.min(self.by_number.len()) {
            self.hand = if self.hand + 1 < self.by_number.len() { self.hand + 1 } else { 0 };
            self.look(self.hand, &in_use);
        }
    }

    fn look(&mut self, index: usize, in_use: impl Fn(PathId) -> bool) {
        self.looks += 1;
        let (Some(key), Some(number)) = (self.by_number[index], PathId::at(index)) else { return };
        if !in_use(number) {
            self.by_number[index] = None;
            self.by_key.remove(&key);
            self.free.push(Reverse(number.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(most: usize) -> Numbers<u32> {
        Numbers { most, ..Numbers::default() }
    }

    #[test]
    fn numbers_end_and_come_back() {
        let mut numbers = of(100);
        for key in 0..100 {
            assert_eq!(numbers.give(key), Some(PathId(key)));
        }
        assert_eq!(numbers.give(100), None);
        assert_eq!(numbers.known(7), Some(PathId(7)));
        // One number is not in use. The hand finds it within one round, four steps at a time.
        let free = |number: PathId| number != PathId(7);
        let given = (0..25).find_map(|_| {
            numbers.make_room(1, free);
            numbers.give(100)
        });
        assert_eq!(given, Some(PathId(7)));
        assert_eq!((numbers.key(PathId(7)), numbers.known(7)), (Some(100), None));
        assert!(numbers.looks() <= 100);
    }

    /// 199,000 clients come and go beside 1,000 that stay. The table stays in proportion to the
    /// numbers in use.
    #[test]
    fn a_stream_of_newcomers_leaves_a_small_table() {
        let mut numbers = of(1 << 24);
        let stays = |number: PathId| number.0 < 1_000;
        for key in 0..1_000 {
            numbers.give(key).unwrap();
        }
        for key in 1_000..200_000 {
            numbers.make_room(1, stays);
            numbers.give(key).unwrap();
        }
        assert!(numbers.by_number.len() <= 1_000 * 4 / 3 + 2, "{}", numbers.by_number.len());
        // Each new key costs four checks, however large the table is.
        assert!(numbers.looks() <= 4 * 199_000, "{}", numbers.looks());
        assert_eq!(numbers.known(999), Some(PathId(999)));
    }

    #[test]
    fn a_table_of_the_past_gives_its_memory_back() {
        let mut numbers = of(1 << 24);
        for key in 0..70_000 {
            numbers.give(key).unwrap();
        }
        let stays = |number: PathId| number.0 == 5;
        for _ in 0..8 {
            numbers.shrink_idle(stays);
        }
        assert_eq!((numbers.len(), numbers.by_number.len()), (1, 6));
        assert!(
            numbers.by_number.capacity() <= MIN_CAPACITY && numbers.free.capacity() <= MIN_CAPACITY
        );
        // Old free numbers beyond the table are not assigned.
        let given: Vec<_> = (0..8).map(|key| numbers.give(100_000 + key).unwrap().0).collect();
        assert_eq!(given, [0, 1, 2, 3, 4, 6, 7, 8]);
    }
}
