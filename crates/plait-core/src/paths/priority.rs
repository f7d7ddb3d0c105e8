//! Changes of backup subflows during a connection (MP_PRIO, RFC 8684 section 3.3.8).

use crate::data::level::DataLevel;
use crate::error::Error;
use crate::paths::Paths;
use plait_base::{PathId, SubflowId};

impl Paths {
    /// Signals that the first subflow is a backup. Its SYN has no field for it, unlike the SYN of a
    /// join.
    pub(crate) fn tell_first_is_backup(&mut self, data: &DataLevel) {
        let first = self.subflows.first().filter(|_| data.speaks_multipath());
        if let Some(first) = first.filter(|first| first.status().backup()) {
            self.addresses.signal_priority(first.id(), true);
        }
    }

    /// Requests that the peer uses the established subflows of `path` as backups, or as regular
    /// ones; this end does the same. Returns true if anything changes.
    ///
    /// # Errors If the request cannot be sent.
    pub(crate) fn set_backup(
        &mut self,
        data: &DataLevel,
        path: PathId,
        backup: bool,
    ) -> Result<bool, Error> {
        data.uses_multipath()?;
        if !data.speaks_multipath() {
            return Err(Error::PlainTcp);
        }
        let (mut found, mut changed) = (false, false);
        for subflow in self.subflows.iter_mut() {
            let open = subflow.status().joined() && subflow.state().synchronised();
            if !open || subflow.address().path() != path {
                continue;
            }
            found = true;
            if subflow.status().backup() != backup {
                subflow.set_backup(backup);
                self.addresses.signal_priority(subflow.id(), backup);
                changed = true;
            }
        }
        if found { Ok(changed) } else { Err(Error::NoSubflow(path)) }
    }

    /// Applies an MP_PRIO of the peer to the subflow `id`. Returns true if anything changes.
    pub(crate) fn take_priority(&mut self, id: SubflowId, backup: bool) -> bool {
        self.subflows[id].on_peer_priority(backup)
    }
}
