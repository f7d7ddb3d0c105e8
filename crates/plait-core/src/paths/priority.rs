//! Which subflows are backups, changed in mid-connection (MP_PRIO, RFC 8684 section 3.3.8).

use crate::data::fallback::Mode;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::paths::addresses::Addresses;
use plait_base::SubflowId;
use plait_wire::Mptcp;

impl Addresses {
    /// Queues MP_PRIO for its own subflow, in the place of one that has not gone out.
    pub(crate) fn signal_priority(&mut self, subflow: SubflowId, backup: bool) {
        self.forget_priority(subflow);
        self.signal_on(Mptcp::Prio { backup }, subflow);
    }
}

impl Paths {
    /// That the first subflow is a backup has no place in its SYN, as it has in that of a join.
    pub(crate) fn tell_first_is_backup(&mut self, data: &DataLevel) {
        let first = self.subflows.first().filter(|_| data.agreed.mode == Mode::Multipath);
        if let Some(first) = first.filter(|first| first.status.backup) {
            self.addresses.signal_priority(first.id, true);
        }
    }
}
