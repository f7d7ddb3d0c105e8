//! How long a client waits.

use plait_base::{Span, Time};

/// The first timeout of a SYN (RFC 6298, section 2.1): an answer that takes longer came to a repetition.
const SYN_TIMEOUT: Span = Span::from_secs(1);

/// How long a client waits.
pub(crate) struct Wait {
    /// It waits for nothing longer than until then.
    pub(super) patience: Time,
    /// The least time that it waits from the first connection on. A shortage of numbers may keep a client out for
    /// long. It may keep out a later connection as well; that time is not taken from the others.
    pub(super) allowance: Span,
    /// How long connections waited to be accepted, but for the handshake of the first that was established.
    pub(super) kept_out: Span,
    /// The wait of the present connection is made good up to then.
    pub(super) made_good: Time,
    /// It begins no more connections.
    pub(super) late: bool,
}

impl Wait {
    /// Returns the wait of a client until `patience`, and for `allowance` at least.
    pub(crate) fn new(patience: Time, allowance: Span) -> Wait {
        let (kept_out, made_good, late) = (Span::ZERO, Time::ZERO, false);
        Wait { patience, allowance, kept_out, made_good, late }
    }

    /// Makes the wait of the present connection up to now good, because a shortage may have kept it out.
    pub(super) fn make_good(&mut self, now: Time) {
        let waited = now.since(std::mem::replace(&mut self.made_good, now));
        if waited >= SYN_TIMEOUT {
            self.patience += waited;
            self.kept_out += waited;
        }
    }
}
