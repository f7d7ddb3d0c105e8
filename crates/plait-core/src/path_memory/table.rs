//! The entries of a path memory: a bounded table that drops the entry used least recently.

use crate::path_memory::{PathKey, PathRecord, PathSample};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use plait_base::{Span, Time};

/// An entry with its addresses, and the time since it was last changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathEntry {
    /// The addresses.
    pub key: PathKey,
    /// The values.
    pub record: PathRecord,
    /// Time since a subflow changed it.
    pub age: Span,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    record: PathRecord,
    /// When it was changed or restored, and its age then.
    at: Time,
    before: Span,
    /// Number of its last use; the greatest one is the latest.
    used: u64,
}

impl Entry {
    fn age(&self, now: Time) -> Span {
        self.before + now.since(self.at)
    }
}

/// The entries by key and by last use.
#[derive(Debug)]
pub(super) struct Table {
    most: usize,
    lifetime: Span,
    entries: BTreeMap<PathKey, Entry>,
    by_use: BTreeMap<u64, PathKey>,
    uses: u64,
}

impl Table {
    pub(super) fn new(most: usize, lifetime: Span) -> Table {
        let (entries, by_use) = (BTreeMap::new(), BTreeMap::new());
        Table { most, lifetime, entries, by_use, uses: 0 }
    }

    /// Returns all entries that are not too old, by key.
    pub(super) fn entries(&self, now: Time) -> Vec<PathEntry> {
        let entry = |(key, it): (&PathKey, &Entry)| {
            let Entry { record, .. } = *it;
            PathEntry { key: *key, record, age: it.age(now) }
        };
        self.entries.iter().map(entry).filter(|it| it.age <= self.lifetime).collect()
    }

    /// Returns a record that is not too old, and counts that as a use.
    pub(super) fn recall(&mut self, now: Time, key: PathKey) -> Option<PathRecord> {
        let entry = self.entries.get(&key)?;
        if entry.age(now) > self.lifetime {
            self.remove(key);
            return None;
        }
        let entry = *entry;
        self.put(key, entry);
        Some(entry.record)
    }

    /// Changes a record by the values of a subflow. An entry that is too old begins anew.
    pub(super) fn learn(&mut self, now: Time, key: PathKey, seen: &PathSample) {
        let mut record = self.recall(now, key).unwrap_or_default();
        record.learn(seen);
        self.put(key, Entry { record, at: now, before: Span::ZERO, used: 0 });
    }

    /// Adds an entry, unless it is too old or a younger one is known.
    pub(super) fn restore(&mut self, now: Time, entry: &PathEntry) {
        let PathEntry { key, record, age } = *entry;
        let younger = self.entries.get(&key).is_some_and(|known| known.age(now) < age);
        if age <= self.lifetime && !younger {
            self.put(key, Entry { record, at: now, before: age, used: 0 });
        }
    }

    /// Stores an entry as the latest. Drops the one used least recently if there are too many.
    fn put(&mut self, key: PathKey, entry: Entry) {
        self.remove(key);
        self.uses += 1;
        self.entries.insert(key, Entry { used: self.uses, ..entry });
        self.by_use.insert(self.uses, key);
        while self.entries.len() > self.most {
            let Some((_, oldest)) = self.by_use.pop_first() else { return };
            self.entries.remove(&oldest);
        }
    }

    fn remove(&mut self, key: PathKey) {
        if let Some(entry) = self.entries.remove(&key) {
            self.by_use.remove(&entry.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::IpAddr;

    fn at(secs: u64) -> Time {
        Time::ZERO + Span::from_secs(secs)
    }

    fn key(network: u8) -> PathKey {
        PathKey::new(IpAddr::from([10, 0, 0, 1]), IpAddr::from([192, 0, network, 1]))
    }

    /// The rate of a filled path.
    fn seen(rate: u64) -> PathSample {
        let (cwnd, ssthresh) = (20_000, Some(10_000));
        PathSample { rate, cwnd, ssthresh, open: true, ..PathSample::default() }
    }

    fn rate(table: &mut Table, now: Time, network: u8) -> Option<u64> {
        table.recall(now, key(network))?.rate
    }

    #[test]
    fn the_entry_used_least_recently_goes_first() {
        let mut table = Table::new(3, Span::from_secs(60));
        for network in 0..3 {
            table.learn(at(0), key(network), &seen(u64::from(network) + 1));
        }
        assert_eq!(rate(&mut table, at(1), 0), Some(1));
        table.learn(at(2), key(1), &seen(2));
        table.learn(at(3), key(9), &seen(9));
        // 2 was neither read nor written since.
        let known: Vec<_> = (0..10).filter_map(|it| rate(&mut table, at(3), it)).collect();
        assert_eq!(known, [1, 2, 9]);
        assert_eq!((table.entries.len(), table.by_use.len()), (3, 3));
    }

    #[test]
    fn a_table_without_entries_remembers_nothing() {
        let mut table = Table::new(0, Span::from_secs(60));
        table.learn(at(0), key(1), &seen(1));
        assert_eq!(rate(&mut table, at(0), 1), None);
        assert_eq!((table.entries.len(), table.by_use.len()), (0, 0));
    }

    #[test]
    fn an_old_entry_is_not_used() {
        let mut table = Table::new(3, Span::from_secs(60));
        table.learn(at(100), key(1), &seen(8_000));
        assert_eq!(rate(&mut table, at(160), 1), Some(8_000));
        assert_eq!(table.entries(at(161)), []);
        assert_eq!(rate(&mut table, at(161), 1), None);
        assert!(table.entries.is_empty());
        // A further subflow begins anew; the mean would be 6,000.
        table.learn(at(100), key(1), &seen(8_000));
        table.learn(at(161), key(1), &seen(4_000));
        assert_eq!(rate(&mut table, at(161), 1), Some(4_000));
    }

    #[test]
    fn a_restored_entry_keeps_its_age() {
        let mut table = Table::new(3, Span::from_secs(60));
        let record = PathRecord { rate: Some(5), ..PathRecord::default() };
        let entry =
            |network, age| PathEntry { key: key(network), record, age: Span::from_secs(age) };
        table.restore(at(0), &entry(1, 50));
        table.restore(at(0), &entry(2, 61));
        assert_eq!(table.entries(at(4)), [entry(1, 54)]);
        assert_eq!(rate(&mut table, at(11), 1), None);
        table.learn(at(20), key(3), &seen(7));
        table.restore(at(20), &entry(3, 1));
        assert_eq!(rate(&mut table, at(20), 3), Some(7), "it is younger");
        table.restore(at(30), &entry(3, 1));
        assert_eq!(rate(&mut table, at(30), 3), Some(5));
    }

    /// Any order of calls keeps both maps alike and within the bound.
    #[test]
    fn both_maps_have_the_same_entries() {
        let mut table = Table::new(8, Span::from_secs(60));
        let mut state = 1_u64;
        for step in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let (network, now) = ((state >> 33) as u8 % 12, at(step / 10));
            match state >> 62 {
                0 => table.learn(now, key(network), &seen(step)),
                1 => drop(table.recall(now, key(network))),
                _ => {
                    let (record, age) = (PathRecord::default(), Span::from_secs(state >> 58));
                    table.restore(now, &PathEntry { key: key(network), record, age });
                }
            }
            assert!(table.entries.len() <= 8);
            let mut by_use: Vec<_> = table.by_use.values().copied().collect();
            by_use.sort_unstable();
            assert!(by_use.iter().eq(table.entries.keys()));
        }
    }
}
