//! Which subflows are backups, changed in mid-connection (MP_PRIO, RFC 8684 section 3.3.8).

use super::addresses::Addresses;
use super::{Connection, Context, Mode};
use crate::error::Error;
use plait_base::{PathId, SubflowId};
use plait_wire::Mptcp;

impl Connection {
    /// Asks the peer to send on the established subflows of `path` only where no other works, or
    /// again as on others; this end does the same. False where it cannot be asked.
    pub(crate) fn set_backup(
        &mut self,
        ctx: &mut Context<'_>,
        path: PathId,
        backup: bool,
    ) -> Result<(), Error> {
        self.uses_multipath()?;
        if self.mode != Mode::Multipath {
            return Err(Error::PlainTcp);
        }
        let (mut found, mut changed) = (false, false);
        for subflow in &mut self.subflows {
            let open = subflow.status.joined && subflow.state.synchronised();
            if !open || subflow.address.path() != path {
                continue;
            }
            found = true;
            if subflow.status.backup != backup {
                subflow.status.backup = backup;
                self.addresses.signal_priority(subflow.id, backup);
                changed = true;
            }
        }
        if changed {
            self.notify_subflows(ctx);
        }
        if found { Ok(()) } else { Err(Error::NoSubflow(path)) }
    }

    /// That the first subflow is a backup has no place in its SYN, as it has in that of a join.
    pub(super) fn tell_first_is_backup(&mut self) {
        let first = self.subflows.first().filter(|_| self.mode == Mode::Multipath);
        if let Some(first) = first.filter(|first| first.status.backup) {
            self.addresses.signal_priority(first.id, true);
        }
    }
}

impl Addresses {
    /// Queues MP_PRIO for its own subflow, in the place of one that has not gone out.
    fn signal_priority(&mut self, subflow: SubflowId, backup: bool) {
        self.forget_priority(subflow);
        self.signal_on(Mptcp::Prio { backup }, subflow);
    }
}
