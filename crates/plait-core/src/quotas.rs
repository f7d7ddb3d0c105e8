//! Quotas of paths. The connections of an endpoint share them.

use crate::config::PathConfig;
use crate::seldom::Seldom;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};
use plait_base::PathId;

/// Payload bytes that the connections of an endpoint have sent on its paths with a quota.
#[derive(Default, Debug)]
pub(crate) struct SentOnPaths(BTreeMap<PathId, Arc<AtomicU64>>);

/// The quotas of a connection's paths.
#[derive(Default, Debug)]
pub(crate) struct Quotas(Seldom<Quota>);

#[derive(Debug)]
struct Quota {
    path: PathId,
    bytes: u64,
    /// Bytes sent by all connections.
    sent: Arc<AtomicU64>,
}

impl SentOnPaths {
    /// Returns the quotas of a new connection.
    pub(crate) fn quotas(&mut self, paths: &[PathConfig]) -> Quotas {
        let mut quotas = Quotas::default();
        for (path, bytes) in paths.iter().filter_map(|it| Some((it.path, it.quota?))) {
            let sent = Arc::clone(self.0.entry(path).or_default());
            quotas.0.push(Quota { path, bytes, sent });
        }
        quotas
    }
}

impl Quotas {
    /// Returns true if no path has a quota.
    #[inline(always)]
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of(&self, path: PathId) -> Option<&Quota> {
        self.0.iter().find(|quota| quota.path == path)
    }

    /// Returns the bytes that the quota of a path leaves; `None` without a quota.
    pub(crate) fn left(&self, path: PathId) -> Option<u64> {
        self.of(path).map(|it| it.bytes.saturating_sub(it.sent.load(Ordering::Relaxed)))
    }

    /// Notes `len` bytes of payload sent on a path.
    pub(crate) fn on_sent(&self, path: PathId, len: u64) {
        if let Some(quota) = self.of(path) {
            quota.sent.fetch_add(len, Ordering::Relaxed);
        }
    }
}
