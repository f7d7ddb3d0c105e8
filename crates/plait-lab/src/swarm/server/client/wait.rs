//! The waiting time of a client.

use plait_base::{Span, Time};

/// The initial RTO of a SYN (RFC 6298, section 2.1). A longer wait means that the SYN was
/// retransmitted.
const SYN_TIMEOUT: Span = Span::from_secs(1);

/// The waiting time of a client.
pub(crate) struct Wait {
    /// Time at which the client gives up.
    pub(super) patience: Time,
    /// Minimum waiting time after the first established connection. If numbers are scarce, a client
    /// may be refused for long. A later connection may be refused, too. The others do not lose this
    /// time.
    pub(super) allowance: Span,
    /// Time that connections waited to be accepted, except the first established handshake.
    pub(super) kept_out: Span,
    /// Time up to which the wait of the current connection is compensated.
    pub(super) made_good: Time,
    /// It begins no further connections.
    pub(super) late: bool,
}

impl Wait {
    /// Returns the wait of a client until `patience`, and for at least `allowance`.
    pub(crate) fn new(patience: Time, allowance: Span) -> Wait {
        let (kept_out, made_good, late) = (Span::ZERO, Time::ZERO, false);
        Wait { patience, allowance, kept_out, made_good, late }
    }

    /// Adds the wait of the current connection so far to the waiting time, because a shortage of
    /// numbers may have caused it. A wait below the timeout of a SYN does not count.
    pub(super) fn make_good(&mut self, now: Time) {
        let waited = now.since(std::mem::replace(&mut self.made_good, now));
        if waited >= SYN_TIMEOUT {
            self.patience += waited;
            self.kept_out += waited;
        }
    }
}
