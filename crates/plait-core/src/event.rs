//! What the core tells observers. Events are typed and small; the world stamps them with the time.

use crate::data::agreement::FallbackCause;
use plait_base::{DataRange, Dsn, PathId, ServerAddress, Span, SubflowId, SubflowSet, Time};
use plait_sched::{Effect, Number, Reason};

/// Why a range of data was put on a subflow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Carry {
    /// For the first time on any subflow.
    New,
    /// Lost on this subflow and sent on it again.
    Retransmission,
    /// Sent on another subflow before (reinjection at the data level).
    Reinjection,
    /// A copy by a redundant scheduler.
    Redundant,
    /// Opportunistic retransmission of the range that blocks the window.
    Opportunistic,
    /// A probe for a lost tail (RFC 8985 section 7).
    TailProbe,
}

/// What keeps a connection with unsent data from sending.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Block {
    /// The peer's receive window is used up while a subflow has room.
    ReceiveWindow,
    /// The send buffer is full of data that is not DATA_ACKed, while a subflow has room and the
    /// application has more to write.
    SendBuffer,
    /// The scheduler waits although a subflow has room.
    Scheduler,
    /// Every live subflow's congestion window is full.
    #[cfg_attr(feature = "serde", serde(rename = "cwnd"))]
    CongestionWindow,
    /// No subflow is alive.
    NoSubflow,
}

impl Block {
    /// Whether measures are made from it. Of the others an endpoint that records
    /// [`Detail::Measures`] tells nothing.
    #[must_use]
    pub const fn is_measured(self) -> bool {
        matches!(self, Block::ReceiveWindow | Block::SendBuffer)
    }
}

/// One event of a connection.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Event {
    /// A subflow's handshake is complete and it may carry data.
    SubflowUp {
        /// The subflow.
        subflow: SubflowId,
        /// Its path.
        path: PathId,
        /// The server's address at its end.
        server: ServerAddress,
    },
    /// A subflow is gone: it was reset or given up, or both ends have taken leave on it (FIN).
    SubflowDown {
        /// The subflow.
        subflow: SubflowId,
    },
    /// Payload was sent.
    DataSent {
        /// The subflow.
        subflow: SubflowId,
        /// Data sequence numbers, counted from 0 at the first byte of data.
        data: DataRange,
        /// Why.
        carry: Carry,
    },
    /// Payload arrived that this end had not seen on this subflow.
    DataArrived {
        /// The subflow.
        subflow: SubflowId,
        /// Data sequence numbers.
        data: DataRange,
        /// Bytes that had come before on another subflow, among those that this segment put in
        /// subflow order.
        duplicate: u64,
    },
    /// Data became in order and readable; emitted for each run of bytes that arrived together.
    DataReadable {
        /// Data sequence numbers.
        data: DataRange,
        /// Since it arrived at this host (out-of-order delay).
        waited: Span,
        /// The subflow on which it arrived.
        subflow: SubflowId,
    },
    /// An acknowledgement for a subflow's data was taken in.
    Acked {
        /// The subflow.
        subflow: SubflowId,
        /// Bytes newly acknowledged, cumulatively or selectively.
        bytes: u64,
        /// RTT sample, if it gave one.
        rtt: Option<Span>,
        /// Smoothed RTT after it.
        srtt: Span,
        /// Congestion window after it, in bytes.
        cwnd: u64,
        /// Bytes in flight after it.
        inflight: u64,
    },
    /// The left edge of the data moved.
    DataAcked {
        /// Old first DSN not acknowledged.
        old: Dsn,
        /// New one.
        new: Dsn,
    },
    /// A subflow's congestion window changed for a reason other than an acknowledgement.
    Window {
        /// The subflow.
        subflow: SubflowId,
        /// The window in bytes.
        cwnd: u64,
        /// Slow start threshold; `None` is infinite.
        ssthresh: Option<u64>,
        /// Why.
        cause: WindowCause,
    },
    /// What the scheduler saw of a subflow as it decided. Those of all live subflows come right
    /// before the [`Event::Decision`] that they belong to.
    Considered {
        /// The subflow.
        subflow: SubflowId,
        /// Smoothed RTT; `None` before the first sample.
        srtt: Option<Span>,
        /// Congestion window, or the cap where one is below it, in bytes.
        cwnd: u64,
        /// Bytes in flight.
        inflight: u64,
        /// Bytes that the window still takes, assigned ones deducted.
        room: u64,
        /// When the segment at hand would arrive at the peer by the plain estimate
        /// ([`plait_sched::SubflowView::plain_arrival`]); [`Time::NEVER`] without an RTT sample.
        arrival: Time,
    },
    /// A number that weighed in the [`Event::Decision`] that comes next.
    Weighed(Number),
    /// The [`Event::Decision`] that comes next assigns data ahead of sending.
    Assigned {
        /// The subflow.
        subflow: SubflowId,
        /// Data sequence numbers.
        data: DataRange,
    },
    /// The scheduler decided.
    Decision {
        /// Which decision of the connection it is, from 1; those that say nothing new are counted
        /// and not told.
        number: u64,
        /// The data at hand: what is to be sent or, of a wait and of an assignment, the segment
        /// that comes first. Empty where there is none.
        data: DataRange,
        /// Its choice, to send or to assign first; `None` for wait and idle.
        chosen: Option<SubflowId>,
        /// The subflow that is waited for.
        waits_for: Option<SubflowId>,
        /// The candidates it weighed.
        candidates: SubflowSet,
        /// Those of them that had room.
        usable: SubflowSet,
        /// Why.
        reason: Reason,
    },
    /// The core applied an effect of a decision.
    Effect(Effect),
    /// Sending stopped although there is data, or goes on (`None`).
    Blocked(Option<Block>),
    /// A retransmission timeout.
    Timeout {
        /// The subflow.
        subflow: SubflowId,
        /// The timeout that expired.
        rto: Span,
    },
    /// The connection fell back to plain TCP.
    Fallback(FallbackCause),
    /// Segments of the connection are shorter from here on, for the path of a subflow lets no longer
    /// ones through.
    SegmentSize {
        /// The subflow.
        subflow: SubflowId,
        /// Payload bytes of a full segment.
        bytes: u64,
        /// How that is known.
        cause: SizeCause,
    },
    /// A subflow's congestion window was lowered after an idle time.
    IdleReset {
        /// The subflow.
        subflow: SubflowId,
        /// Window before, in bytes.
        before: u64,
        /// Window after.
        after: u64,
    },
}

/// Which events an endpoint records.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Detail {
    /// None.
    #[default]
    Nothing,
    /// Those that measures are made from: [`Event::is_measured`].
    Measures,
    /// All.
    Everything,
}

impl Event {
    /// Whether measures are made from it.
    #[must_use]
    pub const fn is_measured(&self) -> bool {
        matches!(
            self,
            Event::SubflowUp { .. }
                | Event::DataSent { .. }
                | Event::DataReadable { .. }
                | Event::Acked { .. }
                | Event::Blocked(_)
                | Event::IdleReset { .. }
        )
    }
}

/// How it is known that a path lets no longer packets through.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum SizeCause {
    /// Long segments vanish while short ones arrive (RFC 8899 section 4.3).
    BlackHole,
    /// A router said so (RFC 1191, RFC 8201).
    TooBig,
}

/// Why a congestion window changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum WindowCause {
    /// A loss was detected.
    Loss,
    /// A retransmission timeout expired.
    Timeout,
    /// Recovery ended.
    Recovered,
    /// The last reduction was taken back: what counted as lost was late.
    Undone,
    /// A scheduler's effect.
    Effect,
    /// The window was set by the application side (a measurement's warm-up).
    Set,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event is stored by the million: what weighed in a decision comes in events of its own.
    #[test]
    fn an_event_fits_a_cache_line() {
        assert!(size_of::<Event>() <= 56, "{}", size_of::<Event>());
    }
}
