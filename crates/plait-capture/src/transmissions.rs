//! First transmissions of data at the level of the connection, by position.

use std::collections::{BTreeMap, VecDeque};

/// Records of a block. A block is small, so that a record between others moves few of them.
const BLOCK: usize = 64;

/// The first transmission of a range.
#[derive(Clone, Copy, Debug)]
struct Record {
    start: i64,
    /// Bytes of it.
    len: u32,
    /// Number of the path in its connection.
    path: u8,
    /// True if another path has sent it too.
    is_shared: bool,
}

impl Record {
    const fn end(&self) -> i64 {
        self.start + self.len as i64
    }
}

/// The first transmissions of one end, in the order of their positions. Each takes 16 bytes.
#[derive(Clone, Default, Debug)]
pub(crate) struct Transmissions {
    /// Records in blocks, none of which is empty.
    blocks: VecDeque<VecDeque<Record>>,
    count: usize,
    /// The paths that sent a record, one bit each, if there are several.
    shared: BTreeMap<i64, u64>,
}

/// The place of a record: its block, and its number there.
type Place = (usize, usize);

impl Transmissions {
    /// Returns the number of records.
    pub(crate) const fn len(&self) -> usize {
        self.count
    }

    /// Returns the end of the first record.
    pub(crate) fn first_end(&self) -> Option<i64> {
        self.blocks.front()?.front().map(Record::end)
    }

    /// Removes the first record.
    pub(crate) fn pop_first(&mut self) {
        let Some(block) = self.blocks.front_mut() else { return };
        if let Some(record) = block.pop_front() {
            self.count -= 1;
            if record.is_shared {
                self.shared.remove(&record.start);
            }
        }
        if block.is_empty() {
            self.blocks.pop_front();
        }
    }

    /// Adds the range from `start` up to `end`, sent on `path`. It ends before a record that begins in it. If a record begins
    /// at `start`, that one stays as it is.
    pub(crate) fn add(&mut self, start: i64, end: i64, path: usize) {
        let mut end = end;
        let mut at = (0, 0);
        if let Some((block, nth)) = self.at_or_before(start) {
            if self.blocks[block][nth].start == start {
                return;
            }
            at = (block, nth + 1);
        }
        if let Some(next) = self.get(at).filter(|next| next.start < end) {
            end = next.start;
        }
        let len = u32::try_from(end - start).unwrap_or(u32::MAX);
        self.insert(at, Record { start, len, path: (path % 64) as u8, is_shared: false });
    }

    /// Notes that `path` has sent the range from `start` up to `end` again. Returns the bytes that other paths have sent too,
    /// and how many of them `path` sends for the first time.
    pub(crate) fn send_again(&mut self, start: i64, end: i64, path: usize) -> (u64, u64) {
        let (own, mut all, mut new) = (1u64 << (path % 64), 0, 0);
        let (mut block, mut nth) = self.at_or_before(start).unwrap_or((0, 0));
        while let Some(records) = self.blocks.get_mut(block) {
            for record in records.iter_mut().skip(nth) {
                if record.start >= end {
                    return (all, new);
                }
                let overlap = (record.end().min(end) - record.start.max(start)).max(0) as u64;
                let first = 1u64 << record.path;
                let paths = match record.is_shared {
                    true => self.shared.get(&record.start).copied().unwrap_or(first),
                    false => first,
                };
                if overlap > 0 && paths & !own > 0 {
                    all += overlap;
                    if paths & own == 0 {
                        new += overlap;
                        record.is_shared = true;
                        self.shared.insert(record.start, paths | own);
                    }
                }
            }
            (block, nth) = (block + 1, 0);
        }
        (all, new)
    }

    /// Returns the path that first sent the byte at `position`.
    pub(crate) fn holder(&self, position: i64) -> Option<usize> {
        let record = self.get(self.at_or_before(position)?)?;
        (record.end() > position).then_some(usize::from(record.path))
    }

    /// Returns unused memory.
    pub(crate) fn shrink(&mut self) {
        self.blocks.iter_mut().for_each(VecDeque::shrink_to_fit);
        self.blocks.shrink_to_fit();
    }

    fn get(&self, (block, nth): Place) -> Option<&Record> {
        let records = self.blocks.get(block)?;
        // After the last record of a block, the next one is that of the next block.
        records.get(nth).or_else(|| self.blocks.get(block + 1)?.front())
    }

    /// Returns the place of the last record that begins at `position` or before it.
    fn at_or_before(&self, position: i64) -> Option<Place> {
        let begins =
            |block: &VecDeque<Record>| block.front().is_some_and(|first| first.start <= position);
        // Most data is the latest.
        let block = match self.blocks.back() {
            Some(last) if begins(last) => self.blocks.len(),
            _ => self.blocks.partition_point(begins),
        };
        let block = block.checked_sub(1)?;
        let nth = self.blocks[block].partition_point(|it| it.start <= position);
        Some((block, nth.checked_sub(1)?))
    }

    /// Inserts a record at its place.
    fn insert(&mut self, (block, nth): Place, record: Record) {
        self.count += 1;
        let (mut block, mut nth) = (block, nth);
        let count = self.blocks.len();
        match self.blocks.get_mut(block) {
            None => return self.blocks.push_back(VecDeque::from([record])),
            Some(records) if records.len() < BLOCK => {}
            Some(_) if nth == BLOCK && block + 1 == count => {
                return self.blocks.push_back(VecDeque::from([record]));
            }
            Some(records) => {
                let half = records.split_off(BLOCK / 2);
                self.blocks.insert(block + 1, half);
                if nth > BLOCK / 2 {
                    (block, nth) = (block + 1, nth - BLOCK / 2);
                }
            }
        }
        self.blocks[block].insert(nth, record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A sorted map has the same records.
        #[test]
        fn blocks_are_a_sorted_map(
            steps in prop::collection::vec((0u8..8, 0i64..4_000, 1i64..40, 0usize..5), 1..800),
        ) {
            let mut sent = Transmissions::default();
            let mut map: BTreeMap<i64, (i64, usize, u64)> = BTreeMap::new();
            for (what, start, len, path) in steps {
                let (end, own) = (start + len, 1u64 << path);
                match what {
                    0 => {
                        sent.pop_first();
                        map.pop_first();
                    }
                    1 | 2 => {
                        let from = map.range(..=start).next_back().map_or(start, |(at, _)| *at);
                        let (mut all, mut new) = (0, 0);
                        for (at, (to, _, paths)) in map.range_mut(from..end) {
                            let overlap = ((*to).min(end) - (*at).max(start)).max(0) as u64;
                            if overlap > 0 && *paths & !own > 0 {
                                all += overlap;
                                new += if *paths & own > 0 { 0 } else { overlap };
                                *paths |= own;
                            }
                        }
                        prop_assert_eq!(sent.send_again(start, end, path), (all, new));
                    }
                    _ => {
                        let next = map.range(start..end).next().map(|(at, _)| *at);
                        let end = next.filter(|at| *at > start).unwrap_or(end);
                        map.entry(start).or_insert((end, path, own));
                        sent.add(start, end, path);
                    }
                }
                prop_assert_eq!(sent.len(), map.len());
                prop_assert_eq!(sent.first_end(), map.values().next().map(|(end, ..)| *end));
                for at in [start, end, start + len / 2] {
                    let last = map.range(..=at).next_back().map(|(_, it)| *it);
                    let holder = last.filter(|(end, ..)| *end > at).map(|(_, path, _)| path);
                    prop_assert_eq!(sent.holder(at), holder);
                }
            }
            prop_assert!(sent.blocks.iter().all(|it| (1..=BLOCK).contains(&it.len())));
        }
    }

    #[test]
    fn a_record_takes_16_bytes() {
        assert_eq!(size_of::<Record>(), 16);
        let mut sent = Transmissions::default();
        (0..1_000).for_each(|nth| sent.add(nth * 1_400, nth * 1_400 + 1_400, 0));
        let room: usize = sent.blocks.iter().map(VecDeque::capacity).sum();
        assert!(room <= 1_000 + BLOCK, "{room}");
    }
}
