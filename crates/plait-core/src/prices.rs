//! Prices of paths: costs, and quotas that the connections of an endpoint share.

use crate::config::PathConfig;
use crate::seldom::Seldom;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicUsize, Ordering};
use plait_base::PathId;

/// Prices of the paths of an endpoint.
#[derive(Default, Debug)]
pub(crate) struct PathPrices {
    /// Costs that replace those of [`PathConfig`].
    costs: BTreeMap<PathId, u32>,
    /// The quotas of [`PathConfig`], and the ones that replace them.
    quotas: BTreeMap<PathId, Quota>,
}

/// Prices of a connection's paths. Paths that are free are not in the list.
#[derive(Default, Debug)]
pub(crate) struct Prices(Seldom<Price>);

#[derive(Debug)]
struct Price {
    path: PathId,
    cost: u32,
    quota: Option<Quota>,
}

/// The price of a path to dial. Paths with a lower rank are dialled earlier. Each connection has one, so it is small: the
/// highest bit is set if the quota has no room for a full segment, and the others are the cost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct DialRank(u32);

impl DialRank {
    const SPENT: u32 = 1 << 31;

    const fn of(spent: bool, cost: u32) -> DialRank {
        let cost = if cost < Self::SPENT { cost } else { Self::SPENT - 1 };
        DialRank(if spent { cost | Self::SPENT } else { cost })
    }

    /// Returns true if the quota has no room for a full segment.
    pub(crate) const fn is_spent(self) -> bool {
        self.0 >= Self::SPENT
    }
}

/// Payload bytes that may be sent on some paths, TCP retransmissions excluded. Clones share the bytes that are used up.
#[derive(Clone, Debug)]
pub struct Quota {
    /// At most `usize::MAX`. Targets of 32 bits have no counter of 64 bits that connections share.
    bytes: usize,
    /// Bytes sent by all connections.
    sent: Arc<AtomicUsize>,
}

impl Quota {
    /// Returns a quota of which nothing is used up.
    #[must_use]
    pub fn new(bytes: u64) -> Quota {
        Quota { bytes: usize::try_from(bytes).unwrap_or(usize::MAX), sent: Arc::default() }
    }

    /// Returns all bytes of it.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Returns the bytes that are left.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.bytes.saturating_sub(self.sent.load(Ordering::Relaxed)) as u64
    }

    /// Returns the bytes that were sent beyond the quota, because all other paths were down or none had joined yet.
    #[must_use]
    pub fn over(&self) -> u64 {
        self.sent.load(Ordering::Relaxed).saturating_sub(self.bytes) as u64
    }

    fn spend(&self, len: u64) {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let more = |sent: usize| Some(sent.saturating_add(len));
        let _ = self.sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// Quotas are equal if they share the bytes that are used up.
impl PartialEq for Quota {
    fn eq(&self, other: &Quota) -> bool {
        self.bytes == other.bytes && Arc::ptr_eq(&self.sent, &other.sent)
    }
}

impl Eq for Quota {}

impl PathPrices {
    /// Sets cost and quota of a path for subflows that begin later.
    pub(crate) fn set(&mut self, path: PathId, cost: u32, quota: Option<Quota>) {
        match self.costs.get_mut(&path) {
            Some(known) => *known = cost,
            None if cost > 0 => drop(self.costs.insert(path, cost)),
            None => {}
        }
        match quota {
            Some(quota) => drop(self.quotas.insert(path, quota)),
            None => drop(self.quotas.remove(&path)),
        }
    }

    /// Returns the cost that was set for a path.
    pub(crate) fn cost(&self, path: PathId) -> Option<u32> {
        self.costs.get(&path).copied()
    }

    /// Returns the quota of a path.
    pub(crate) fn quota(&self, path: PathId) -> Option<Quota> {
        self.quotas.get(&path).cloned()
    }

    /// Returns the rank of a path for segments with `len` bytes of payload.
    pub(crate) fn dial_rank(&self, path: &PathConfig, len: u64) -> DialRank {
        let left = self.quotas.get(&path.path).map(Quota::left).or(path.quota);
        let cost = self.cost(path.path).unwrap_or(path.cost);
        DialRank::of(left.is_some_and(|left| left < len), cost)
    }

    /// Returns the prices of a new connection.
    pub(crate) fn of(&mut self, paths: &[PathConfig]) -> Prices {
        let mut prices = Prices::default();
        for PathConfig { path, cost, quota, .. } in paths.iter().copied() {
            if let Some(bytes) = quota {
                self.quotas.entry(path).or_insert_with(|| Quota::new(bytes));
            }
            let quota = self.quota(path);
            if cost > 0 || quota.is_some() {
                prices.0.push(Price { path, cost, quota });
            }
        }
        prices
    }
}

impl Prices {
    /// Returns true if every path is free.
    #[inline(always)]
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(&self, path: PathId) -> Option<&Price> {
        self.0.iter().find(|price| price.path == path)
    }

    /// Changes the cost of a path.
    pub(crate) fn set_cost(&mut self, path: PathId, cost: u32) {
        match self.0.iter_mut().find(|price| price.path == path) {
            Some(price) => price.cost = cost,
            None if cost > 0 => self.0.push(Price { path, cost, quota: None }),
            None => {}
        }
    }

    /// Changes the quota of a path.
    pub(crate) fn set_quota(&mut self, path: PathId, quota: Option<Quota>) {
        match self.0.iter_mut().find(|price| price.path == path) {
            Some(price) => price.quota = quota,
            None if quota.is_some() => self.0.push(Price { path, cost: 0, quota }),
            None => {}
        }
    }

    /// Returns the price of a byte on a path; 0 is free.
    #[inline(never)]
    pub(crate) fn cost(&self, path: PathId) -> u32 {
        self.of(path).map_or(0, |price| price.cost)
    }

    /// Returns the bytes that the quota of a path leaves; `None` without a quota.
    #[inline(never)]
    pub(crate) fn left(&self, path: PathId) -> Option<u64> {
        self.of(path)?.quota.as_ref().map(Quota::left)
    }

    /// Returns true if two paths have the same quota.
    pub(crate) fn share_quota(&self, a: PathId, b: PathId) -> bool {
        let of = |path| self.of(path).and_then(|price| price.quota.as_ref());
        of(a).is_some_and(|quota| of(b) == Some(quota))
    }

    /// Notes `len` bytes of payload sent on a path.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_sent(&self, path: PathId, len: u64) {
        if let Some(quota) = self.of(path).and_then(|price| price.quota.as_ref()) {
            quota.spend(len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_used_up_quota_ranks_above_every_cost() {
        let ranks = [(false, 0), (false, 1), (false, u32::MAX), (true, 0), (true, 5)];
        let ranks = ranks.map(|(spent, cost)| DialRank::of(spent, cost));
        assert!(ranks.is_sorted_by(|a, b| a < b), "{ranks:?}");
        assert_eq!(ranks.map(DialRank::is_spent), [false, false, false, true, true]);
    }

    #[test]
    fn a_quota_counts_what_is_left_and_what_is_beyond_it() {
        let quota = Quota::new(1_000);
        let clone = quota.clone();
        for (len, left, over) in [(0, 1_000, 0), (900, 100, 0), (100, 0, 0), (300, 0, 300)] {
            quota.spend(len);
            assert_eq!((clone.left(), clone.over()), (left, over));
        }
    }
}
