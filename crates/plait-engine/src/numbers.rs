//! Numbers of paths for what they stand for: a client's address, or two addresses of a dialled path.

use plait_base::PathId;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// How many numbers are looked at for each one that is given out. With four of them the table holds at
/// most four thirds of the paths that were in use at a time.
const LOOKS_PER_NEWCOMER: usize = 4;
/// The part of the table that is looked at with each rest, and the most numbers that one rest looks at.
const PART_PER_REST: usize = 4;
const MOST_PER_REST: usize = 65_536;
/// A table of so many numbers keeps its memory.
const MIN_CAPACITY: usize = 64;

/// Numbers and their meanings. Finding one takes the logarithm of their count. A number that no
/// conversation uses is found by a hand that goes round the table, a few steps for each newcomer.
#[derive(Debug)]
pub(crate) struct Numbers<K> {
    by_key: BTreeMap<K, PathId>,
    by_number: Vec<Option<K>>,
    /// Numbers that are not given out. Some may lie beyond the table, which has shrunk since.
    free: BinaryHeap<Reverse<u32>>,
    /// The number that is looked at next.
    hand: usize,
    /// There are so many numbers.
    most: usize,
    /// Numbers that were looked at.
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
    /// The number of `key`, if it has one.
    pub(crate) fn known(&self, key: K) -> Option<PathId> {
        self.by_key.get(&key).copied()
    }

    /// The meaning of a number.
    pub(crate) fn key(&self, number: PathId) -> Option<K> {
        self.by_number.get(number.index()).copied().flatten()
    }

    /// How many numbers are given out.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// From now on there are so many numbers at most.
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = most.clamp(1, PathId::MAX.index() + 1);
    }

    /// How many numbers were looked at so far, to see whether they are in use.
    pub(crate) fn looks(&self) -> u64 {
        self.looks
    }

    /// Gives `key`, which has none, a number: the lowest. `None` if all numbers are in use.
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
        // The others are higher.
        self.free.clear();
        None
    }

    /// Looks at every number of a full table. A planted bug does this for each packet.
    pub(crate) fn walk_full(&mut self, in_use: impl Fn(PathId) -> bool) {
        if self.by_key.len() >= self.most {
            self.look_at(self.by_number.len(), in_use);
        }
    }

    /// Makes room for `newcomers`: looks at a few numbers, and takes back the unused ones.
    /// Numbers that were asked for and are not in use yet may be among them.
    pub(crate) fn make_room(&mut self, newcomers: usize, in_use: impl Fn(PathId) -> bool) {
        self.look_at(newcomers.saturating_mul(LOOKS_PER_NEWCOMER), in_use);
    }

    /// Takes numbers back that are not in use, of a part of the table, and gives memory back. It is
    /// called every few seconds.
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
        // One of them is not in use: the hand finds it within a round, four steps at a time.
        let free = |number: PathId| number != PathId(7);
        let given = (0..25).find_map(|_| {
            numbers.make_room(1, free);
            numbers.give(100)
        });
        assert_eq!(given, Some(PathId(7)));
        assert_eq!((numbers.key(PathId(7)), numbers.known(7)), (Some(100), None));
        assert!(numbers.looks() <= 100);
    }

    /// A client address of a moment each, beside some that stay: the table follows those in use.
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
        // Each newcomer cost four looks, however many there are.
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
        // Numbers beyond the table are not given out from the past.
        let given: Vec<_> = (0..8).map(|key| numbers.give(100_000 + key).unwrap().0).collect();
        assert_eq!(given, [0, 1, 2, 3, 4, 6, 7, 8]);
    }
}
