//! The abrupt end of a whole connection (RFC 8684 section 3.5). MP_FASTCLOSE is sent on an ACK of
//! one subflow, and the others are reset. It is retransmitted until the peer answers with a RST.
//! After the last retry, and if the peer may not know our key, it is sent on RSTs.

use crate::data::level::DataLevel;
use core::num::NonZeroU8;
use plait_base::{Dsn, SubflowId};
use plait_wire::{Key, Mptcp, ResetReason};

/// The reason of a reset, carried by the RST.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// MP_TCPRST with this reason.
    Reason(ResetReason),
    /// MP_FASTCLOSE: the connection ends.
    Close,
    /// MP_FAIL: the checksum of the peer's mapping with this DSN was wrong.
    Failed(Dsn),
}

impl Default for Cause {
    fn default() -> Cause {
        Cause::Reason(ResetReason::Mptcp)
    }
}

/// Retransmissions of MP_FASTCLOSE before a RST ends the wait (RFC 8684 section 3.5: three).
const MAX_FASTCLOSE_RETRIES: u8 = 3;

/// An MP_FASTCLOSE that waits for the peer's RST.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FastClose {
    carrier: SubflowId,
    /// Transmissions so far. An `Option` of this type needs no further byte.
    sent: NonZeroU8,
}

impl FastClose {
    /// Returns the wait for the answer to an MP_FASTCLOSE on the subflow `carrier`.
    pub(crate) const fn on(carrier: SubflowId) -> FastClose {
        FastClose { carrier, sent: NonZeroU8::MIN }
    }

    pub(crate) const fn carrier(&self) -> SubflowId {
        self.carrier
    }

    /// Counts a retransmission. Returns false if there were enough.
    pub(crate) const fn retry(&mut self) -> bool {
        let again = self.sent.get() <= MAX_FASTCLOSE_RETRIES;
        if again {
            self.sent = self.sent.saturating_add(1);
        }
        again
    }
}

/// Returns the key in an MP_FASTCLOSE.
pub(crate) fn told_key(option: Option<&Mptcp>) -> Option<Key> {
    option?.all().iter().find_map(|option| match option {
        Mptcp::FastClose(key) => Some(*key),
        _ => None,
    })
}

impl DataLevel {
    /// Returns true if `option` is an MP_FASTCLOSE with our key. One with another key is ignored.
    pub(crate) fn is_fast_close(&self, option: Option<&Mptcp>) -> bool {
        !self.falls_back() && self.speaks_multipath() && told_key(option) == Some(self.keys.local)
    }

    /// Returns the option of our RST (RFC 8684 sections 3.5 to 3.7); none in plain TCP.
    pub(crate) fn reset_option(&self, cause: Cause) -> Option<Mptcp> {
        if self.falls_back() && !matches!(cause, Cause::Failed(_)) {
            return None;
        }
        let reset = |reason, transient| Mptcp::Reset { reason, transient };
        Some(match (cause, self.keys.peer) {
            (Cause::Close, Some(key)) => Mptcp::FastClose(key),
            (Cause::Failed(dsn), _) => Mptcp::Fail(self.keys.theirs.wire(dsn)),
            (Cause::Close, None) => reset(ResetReason::Unspecified, false),
            // Another attempt may succeed on a path that was only silent.
            (Cause::Reason(reason), _) => reset(reason, reason == ResetReason::Performance),
        })
    }

    /// Returns whether the peer has our key, so that it accepts an MP_FASTCLOSE. A server that has sent no
    /// DSS may not have received the key, and the client's last ACK may have to prove it.
    pub(crate) fn is_key_known(&self, client: bool) -> bool {
        !self.falls_back() && self.speaks_multipath() && (!client || self.agreed.peer_dss_seen())
    }
}
