//! Events that the core reports to observers. Events are typed and small; the driver adds the time.

use plait_base::{DataRange, Dsn, PathId, ServerAddress, Span, SubflowId, SubflowSet, Time};
use plait_sched::{Effect, Number, Reason};

/// Why a connection that offered or used Multipath TCP uses plain TCP.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum FallbackCause {
    /// SYNs with MP_CAPABLE stayed unanswered, in this connection or an earlier one.
    Silence,
    /// The peer's SYN had no MP_CAPABLE.
    Syn,
    /// The peer's SYN/ACK had no MP_CAPABLE.
    SynAck,
    /// The third ACK had no MP_CAPABLE.
    ThirdAck,
    /// The first data, or the first acknowledgement of our data, had no MPTCP option.
    FirstData,
    /// Mappings or DATA_ACKs were stripped later.
    Mappings,
    /// A checksum was wrong, here or at the peer.
    Checksum,
}

impl FallbackCause {
    /// Returns its name in events, logs and metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            FallbackCause::Silence => "silence",
            FallbackCause::Syn => "syn",
            FallbackCause::SynAck => "synack",
            FallbackCause::ThirdAck => "ack",
            FallbackCause::FirstData => "first-data",
            FallbackCause::Mappings => "mappings",
            FallbackCause::Checksum => "checksum",
        }
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for FallbackCause {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Why a range of data was sent on a subflow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Carry {
    /// Sent for the first time on any subflow.
    New,
    /// Lost on this subflow and retransmitted on it.
    Retransmission,
    /// Sent on another subflow before (reinjection at the data level).
    Reinjection,
    /// A copy by a redundant scheduler.
    Redundant,
    /// Opportunistic retransmission of the range that blocks the window.
    Opportunistic,
    /// A tail loss probe (RFC 8985 section 7).
    TailProbe,
}

/// Why a connection with unsent data does not send.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum Block {
    /// The peer's receive window is full while a subflow has room.
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
    /// Returns true if measures use this block. An endpoint that records [`Detail::Measures`] omits
    /// the others.
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
    /// A subflow has ended: it was reset, timed out, or closed by a FIN in both directions.
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
        /// The reason.
        carry: Carry,
    },
    /// New payload arrived on this subflow.
    DataArrived {
        /// The subflow.
        subflow: SubflowId,
        /// Data sequence numbers.
        data: DataRange,
        /// Bytes that had already arrived on another subflow, out of the bytes that this segment
        /// put in subflow order.
        duplicate: u64,
    },
    /// Data became in order and readable; emitted for each run of bytes that arrived together.
    DataReadable {
        /// Data sequence numbers.
        data: DataRange,
        /// Time since it arrived at this host (out-of-order delay).
        waited: Span,
        /// The subflow on which it arrived.
        subflow: SubflowId,
    },
    /// An acknowledgement of a subflow's data was processed.
    Acked {
        /// The subflow.
        subflow: SubflowId,
        /// Bytes newly acknowledged, cumulatively or selectively.
        bytes: u64,
        /// RTT sample, if there was one.
        rtt: Option<Span>,
        /// Smoothed RTT after the acknowledgement.
        srtt: Span,
        /// Congestion window after the acknowledgement, in bytes.
        cwnd: u64,
        /// Bytes in flight after the acknowledgement.
        inflight: u64,
    },
    /// A DATA_ACK advanced.
    DataAcked {
        /// Old first unacknowledged DSN.
        old: Dsn,
        /// New first unacknowledged DSN.
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
        /// The reason.
        cause: WindowCause,
    },
    /// State of a subflow when the scheduler decided. The events of all live subflows directly
    /// precede their [`Event::Decision`].
    Considered {
        /// The subflow.
        subflow: SubflowId,
        /// Smoothed RTT; `None` before the first sample.
        srtt: Option<Span>,
        /// Congestion window in bytes, or the cap if it is smaller.
        cwnd: u64,
        /// Bytes in flight.
        inflight: u64,
        /// Free bytes of the window, less assigned ones.
        room: u64,
        /// Estimated arrival of the current segment at the peer
        /// ([`plait_sched::SubflowView::plain_arrival`]); [`Time::NEVER`] without an RTT sample.
        arrival: Time,
    },
    /// A number that influenced the next [`Event::Decision`].
    Weighed(Number),
    /// The next [`Event::Decision`] assigns this data before it is sent.
    Assigned {
        /// The subflow.
        subflow: SubflowId,
        /// Data sequence numbers.
        data: DataRange,
    },
    /// The scheduler decided.
    Decision {
        /// Number of this decision in the connection, from 1. Decisions that repeat the previous
        /// one are counted, but not reported.
        number: u64,
        /// The data to be sent, or the next segment if the decision is a wait or an assignment.
        /// Empty if there is none.
        data: DataRange,
        /// The subflow chosen to send, or to be assigned data first; `None` for wait and idle.
        chosen: Option<SubflowId>,
        /// The subflow that the scheduler waits for.
        waits_for: Option<SubflowId>,
        /// The candidates that it considered.
        candidates: SubflowSet,
        /// The candidates that had room.
        usable: SubflowSet,
        /// The reason.
        reason: Reason,
    },
    /// The core applied an effect of a decision.
    Effect(Effect),
    /// Sending stopped although there is data, or resumed (`None`).
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
    /// The connection uses shorter segments from now on, because the path of a subflow drops longer
    /// ones.
    SegmentSize {
        /// The subflow.
        subflow: SubflowId,
        /// Payload bytes of a full segment.
        bytes: u64,
        /// How the new size was detected.
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
    /// The events that measures use: [`Event::is_measured`].
    Measures,
    /// All.
    Everything,
}

impl Event {
    /// Returns true if measures use this event.
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

/// How a smaller packet size of a path was detected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub enum SizeCause {
    /// Long segments are lost while short ones arrive (RFC 8899 section 4.3).
    BlackHole,
    /// A router reported it (RFC 1191, RFC 8201).
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
    /// The last reduction was undone: the segments were late instead of lost.
    Undone,
    /// A scheduler's effect.
    Effect,
    /// The window was set by the application side (a measurement's warm-up).
    Set,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Millions of events are stored, so the numbers of a decision are separate events.
    #[test]
    fn an_event_fits_a_cache_line() {
        assert!(size_of::<Event>() <= 56, "{}", size_of::<Event>());
    }
}
