//! Addresses that clients lose and get again.

use crate::network::PathSetup;
use plait_base::{PathId, Time};
use plait_core::Endpoint;

/// What happens to a client's addresses, in the order of time.
#[derive(Default, Debug)]
pub(crate) struct AddressChanges {
    /// Yet to come, the next one last: when, on which path, whether it goes.
    coming: Vec<(Time, PathId, bool)>,
    /// Paths without an address now.
    gone: Vec<PathId>,
}

impl AddressChanges {
    pub(crate) fn of(paths: &[PathSetup]) -> AddressChanges {
        let mut coming = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let id = PathId(index as u16);
            for (from, to) in &path.removed {
                coming.extend([(*from, id, true), (*to, id, false)]);
            }
        }
        coming.sort_by(|a, b| b.cmp(a));
        AddressChanges { coming, gone: Vec::new() }
    }

    /// When the next change comes.
    pub(crate) fn next(&self) -> Time {
        self.coming.last().map_or(Time::NEVER, |(at, ..)| *at)
    }

    /// Tells `endpoint` what has changed by now.
    pub(crate) fn apply(&mut self, now: Time, endpoint: &mut Endpoint) {
        while let Some((_, path, goes)) = self.coming.pop_if(|(at, ..)| *at <= now) {
            if goes {
                self.gone.push(path);
                endpoint.lose_address(now, path);
            } else {
                self.gone.retain(|gone| *gone != path);
                endpoint.regain_address(now, path);
            }
        }
    }

    /// Tells `endpoint` what has been gone since before a connection was dialled.
    pub(crate) fn repeat(&self, now: Time, endpoint: &mut Endpoint) {
        self.gone.iter().for_each(|path| endpoint.lose_address(now, *path));
    }
}
