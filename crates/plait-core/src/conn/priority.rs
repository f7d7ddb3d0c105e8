//! Which subflows are backups, changed in mid-connection (MP_PRIO, RFC 8684 section 3.3.8).

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::data::fallback::Mode;
use crate::error::Error;
use plait_base::PathId;

impl Connection {
    /// Asks the peer to send on the established subflows of `path` only where no other works, or
    /// again as on others; this end does the same. False where it cannot be asked.
    pub(crate) fn set_backup(
        &mut self,
        ctx: &mut Context<'_>,
        path: PathId,
        backup: bool,
    ) -> Result<(), Error> {
        self.data.uses_multipath()?;
        if self.data.agreed.mode != Mode::Multipath {
            return Err(Error::PlainTcp);
        }
        let (mut found, mut changed) = (false, false);
        for subflow in &mut self.paths.subflows {
            let open = subflow.status.joined && subflow.state.synchronised();
            if !open || subflow.address.path() != path {
                continue;
            }
            found = true;
            if subflow.status.backup != backup {
                subflow.status.backup = backup;
                self.paths.addresses.signal_priority(subflow.id, backup);
                changed = true;
            }
        }
        if changed {
            self.notify_subflows(ctx);
        }
        if found { Ok(()) } else { Err(Error::NoSubflow(path)) }
    }
}
