//! What clients do about their paths in mid-connection: addresses that they lose and get again,
//! paths that they want to be backups for a time.

use crate::network::PathSetup;
use plait_base::{ConnId, PathId, Time};
use plait_core::Endpoint;

/// One change. At one instant what ends comes before what begins.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Change {
    Regained,
    Lost,
    Regular,
    Backup,
}

/// What happens to a client's paths, in the order of time.
#[derive(Default, Debug)]
pub(crate) struct PathChanges {
    /// Yet to come, the next one last.
    coming: Vec<(Time, PathId, Change)>,
    /// Paths without an address now.
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

    /// When the next change comes.
    pub(crate) fn next(&self) -> Time {
        self.coming.last().map_or(Time::NEVER, |(at, ..)| *at)
    }

    /// Tells `endpoint` what has changed by now, for its connections where it is theirs.
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
                        // It matters to connections alone that have a subflow there.
                        endpoint.set_backup(now, conn, path, change == Change::Backup).ok();
                    }
                }
            }
        }
    }

    /// Tells `endpoint` what has been gone since before a connection was dialled.
    pub(crate) fn repeat(&self, now: Time, endpoint: &mut Endpoint) {
        self.gone.iter().for_each(|path| endpoint.lose_address(now, *path));
    }
}
