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
    /// Payload bytes that the connections have sent on paths with a quota.
    sent: BTreeMap<PathId, Arc<AtomicUsize>>,
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

#[derive(Debug)]
struct Quota {
    /// At most `usize::MAX`. Targets of 32 bits have no counter of 64 bits that connections share.
    bytes: usize,
    /// Bytes sent by all connections.
    sent: Arc<AtomicUsize>,
}

impl PathPrices {
    /// Sets the cost of a path for subflows that begin later.
    pub(crate) fn set_cost(&mut self, path: PathId, cost: u32) {
        match self.costs.get_mut(&path) {
            Some(known) => *known = cost,
            None if cost > 0 => drop(self.costs.insert(path, cost)),
            None => {}
        }
    }

    /// Returns the cost that was set for a path.
    pub(crate) fn cost(&self, path: PathId) -> Option<u32> {
        self.costs.get(&path).copied()
    }

    /// Returns true if the quota of a path has room for `len` bytes.
    pub(crate) fn has_room(&self, path: &PathConfig, len: u64) -> bool {
        let sent = || self.sent.get(&path.path).map_or(0, |sent| sent.load(Ordering::Relaxed));
        path.quota.is_none_or(|quota| quota.saturating_sub(sent() as u64) >= len)
    }

    /// Returns the prices of a new connection.
    pub(crate) fn of(&mut self, paths: &[PathConfig]) -> Prices {
        let mut prices = Prices::default();
        for PathConfig { path, cost, quota, .. } in paths.iter().copied() {
            let sent = |bytes| {
                let sent = Arc::clone(self.sent.entry(path).or_default());
                Quota { bytes: usize::try_from(bytes).unwrap_or(usize::MAX), sent }
            };
            if cost > 0 || quota.is_some() {
                prices.0.push(Price { path, cost, quota: quota.map(sent) });
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

    /// Returns the price of a byte on a path; 0 is free.
    #[inline(never)]
    pub(crate) fn cost(&self, path: PathId) -> u32 {
        self.of(path).map_or(0, |price| price.cost)
    }

    /// Returns the bytes that the quota of a path leaves; `None` without a quota.
    #[inline(never)]
    pub(crate) fn left(&self, path: PathId) -> Option<u64> {
        let Quota { bytes, sent } = self.of(path)?.quota.as_ref()?;
        Some(bytes.saturating_sub(sent.load(Ordering::Relaxed)) as u64)
    }

    /// Notes `len` bytes of payload sent on a path.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_sent(&self, path: PathId, len: u64) {
        if let Some(Quota { sent, .. }) = self.of(path).and_then(|price| price.quota.as_ref()) {
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let more = |sent: usize| Some(sent.saturating_add(len));
            let _ = sent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        }
    }
}
