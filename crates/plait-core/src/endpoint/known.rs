//! The connections, by the addresses of their subflows.

use alloc::collections::BTreeMap;
use core::ops::RangeInclusive;
use plait_base::{ConnId, SubflowId};

/// The connection that an address belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct KnownSubflow {
    pub(super) conn: ConnId,
    /// The subflow that had it when the tables were last updated.
    pub(super) subflow: SubflowId,
}

/// No address has this key: it belongs to a path without a number.
const NO_KEY: u64 = u64::MAX;
/// Shift of the path within a key.
const PATH_SHIFT: u32 = 40;

/// An address found lately.
type Recent = (u64, KnownSubflow);
const NOTHING: Recent = (NO_KEY, KnownSubflow { conn: ConnId(0), subflow: SubflowId::FIRST });

/// The connections, by the keys of their addresses (`Address::key`).
pub(super) struct KnownAddresses {
    all: BTreeMap<u64, KnownSubflow>,
    /// Copies of the entries found last: one for even paths, one for odd paths.
    recent: [Recent; 2],
}

impl KnownAddresses {
    pub(super) const fn new() -> KnownAddresses {
        KnownAddresses { all: BTreeMap::new(), recent: [NOTHING; 2] }
    }

    fn recent(&mut self, key: u64) -> &mut Recent {
        &mut self.recent[(key >> PATH_SHIFT) as usize % 2]
    }

    /// Returns the entry of an address, and keeps a copy of it.
    #[inline(always)]
    pub(super) fn find(&mut self, key: u64) -> Option<KnownSubflow> {
        let (last, known) = *self.recent(key);
        if last == key { Some(known) } else { self.look_up(key) }
    }

    #[inline(never)]
    fn look_up(&mut self, key: u64) -> Option<KnownSubflow> {
        let known = *self.all.get(&key)?;
        *self.recent(key) = (key, known);
        Some(known)
    }

    pub(super) fn contains(&self, key: u64) -> bool {
        self.all.contains_key(&key)
    }

    /// Returns true if any address has a key in the range.
    pub(super) fn has_any(&self, keys: RangeInclusive<u64>) -> bool {
        self.all.range(keys).next().is_some()
    }

    pub(super) fn insert(&mut self, key: u64, known: KnownSubflow) {
        self.forget(key);
        self.all.insert(key, known);
    }

    /// Removes an address if it belongs to `conn`.
    pub(super) fn remove(&mut self, key: u64, conn: ConnId) {
        if self.all.get(&key).is_some_and(|known| known.conn == conn) {
            self.forget(key);
            self.all.remove(&key);
        }
    }

    /// Drops the copy of an entry that changes.
    fn forget(&mut self, key: u64) {
        if self.recent(key).0 == key {
            *self.recent(key) = NOTHING;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use plait_base::RandomStream;

    #[test]
    fn an_address_leads_where_the_map_leads_after_any_changes() {
        let (mut known, mut model) = (KnownAddresses::new(), BTreeMap::new());
        let mut draws = RandomStream::new(1, &["addresses"]);
        let mut hits = 0;
        for _ in 0..20_000 {
            let key = draws.below(4) << PATH_SHIFT | draws.below(3);
            let conn = ConnId(draws.below(3) as u32);
            match draws.below(8) {
                0 => {
                    let entry = KnownSubflow { conn, subflow: SubflowId(draws.below(2) as u8) };
                    known.insert(key, entry);
                    model.insert(key, entry);
                }
                1 => {
                    known.remove(key, conn);
                    if model.get(&key).is_some_and(|entry| entry.conn == conn) {
                        model.remove(&key);
                    }
                }
                _ => {
                    hits += usize::from(known.recent.iter().any(|(last, _)| *last == key));
                    assert_eq!(known.find(key), model.get(&key).copied());
                }
            }
            assert_eq!(known.contains(key), model.contains_key(&key));
        }
        let keys: Vec<u64> = model.keys().copied().collect();
        assert!(keys.iter().all(|key| known.find(*key) == model.get(key).copied()));
        assert!(hits > 1_000, "the copies were used {hits} times");
    }
}
