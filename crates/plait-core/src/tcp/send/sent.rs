//! A sent segment, and the outcome of an acknowledgement.

use crate::tcp::send::Resent;
use plait_base::{DataRange, Dsn, SendSsn, Time};

/// Assumed state of a sent segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SentState {
    InFlight,
    Sacked,
    Lost,
}

/// A sent segment. Sequence numbers count from 0 at the SYN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) seq: SendSsn,
    /// First data sequence number of the payload.
    pub(crate) dsn: Dsn,
    pub(crate) sent_at: Time,
    /// Sequence space used: payload, or 1 for a FIN.
    pub(crate) len: u32,
    pub(crate) state: SentState,
    pub(crate) retransmitted: bool,
    pub(crate) fin: bool,
}

impl Sent {
    pub(crate) fn end(&self) -> SendSsn {
        self.seq + u64::from(self.len)
    }

    pub(crate) fn departure(&self) -> Departure {
        Departure { at: self.sent_at, end: self.end() }
    }

    /// Returns its last transmission, for the list of retransmissions.
    pub(super) fn last_sending(&self) -> Resent {
        Resent { at: self.sent_at, seq: self.seq }
    }

    /// Returns true if it was retransmitted and is in flight.
    pub(super) fn is_resent(&self) -> bool {
        self.retransmitted && self.state == SentState::InFlight
    }

    pub(crate) fn data(&self) -> DataRange {
        DataRange::with_len(self.dsn, if self.fin { 0 } else { u64::from(self.len) })
    }
}

/// When a segment was last sent, and its right edge, which orders segments sent at the same time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Departure {
    pub(crate) at: Time,
    pub(crate) end: SendSsn,
}

impl Departure {
    /// A value before all others, for no segment.
    pub(crate) const NONE: Departure = Departure { at: Time::ZERO, end: SendSsn::ZERO };
}

/// The outcome of an acknowledgement.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct AckOutcome {
    /// Bytes newly covered by the cumulative acknowledgement.
    pub(crate) advanced: u64,
    /// Bytes newly delivered, cumulatively or selectively.
    pub(crate) delivered: u64,
    /// The most recently sent of the segments newly delivered.
    pub(crate) newest: Option<Sent>,
    /// Send time of the newest delivered segment that was sent only once (Karn's rule).
    pub(crate) sample: Option<Time>,
    /// A segment sent once was delivered below one that was delivered before.
    pub(crate) reordering: bool,
    /// Length of the longest newly delivered segment that was sent from `since` on.
    pub(crate) longest: u32,
    pub(crate) since: Time,
}
