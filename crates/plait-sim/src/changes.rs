//! Changes of a client's paths during a connection: lost and regained addresses, and backup
//! periods.

use crate::network::PathSetup;
use plait_base::{ConnId, PathId, Time};
use plait_core::Endpoint;

/// One change. At the same instant, the end of a span precedes the start of another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Change {
    Regained,
    Lost,
    Regular,
    Backup,
}

/// Changes of a client's paths, in time order.
#[derive(Default, Debug)]
pub(crate) struct PathChanges {
    /// Pending changes, the next one last.
    coming: Vec<(Time, PathId, Change)>,
    /// Paths that have no address now.
    gone: Vec<PathId>,
}

impl PathChanges {
    pub(crate) fn of(paths: &[PathSetup]) -> PathChanges {
        let mut coming = Vec::new();
        for (index, path) in paths.iter().enumerate() {
            let id = PathId(index as u32);
            for (from, to) in &path.removed {
                coming.extend([(*from, id, Change::Lost), (*to, id, Change::Regained)]);
            }
            for (from, to) in &path.resting {
                coming.extend([(*from, id, Change::Backup), (*to, id, Change::Regular)]);
            }
        }
        coming.sort_by(|a, b| b.cmp(a));
        PathChanges { coming, gone: Vec::new() }
    }

    /// Returns the time of the next change.
    pub(crate) fn next(&self) -> Time {
        self.coming.last().map_or(Time::NEVER, |(at, ..)| *at)
    }

    /// Applies the changes that are due to `endpoint` and to its connections.
    pub(crate) fn apply(
        &mut self,
        now: Time,
        endpoint: &mut Endpoint,
        connections: &(impl Iterator<Item = ConnId> + Clone),
    ) {
        while let Some((_, path, change)) = self.coming.pop_if(|(at, ..)| *at <= now) {
            match change {
                Change::Lost => {
                    self.gone.push(path);
                    endpoint.lose_address(now, path);
                }
                Change::Regained => {
                    self.gone.retain(|gone| *gone != path);
                    endpoint.regain_address(now, path);
                }
                Change::Backup | Change::Regular => {
                    for conn in connections.clone() {
                        // Fails harmlessly if the connection has no subflow on the path.
                        endpoint.set_backup(now, conn, path, change == Change::Backup).ok();
                    }
                }
            }
        }
    }

    /// Reports to `endpoint` the addresses that were lost before a new connection was opened.
    pub(crate) fn repeat(&self, now: Time, endpoint: &mut Endpoint) {
        self.gone.iter().for_each(|path| endpoint.lose_address(now, *path));
    }
}
