//! State and counters of a connection, for its user and for reports.

use crate::conn::{Connection, ConnectionState, FallbackCause};
use alloc::vec::Vec;
use plait_base::{PathId, ServerAddress, Span, SubflowId, Time};

/// One subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubflowStats {
    /// The subflow.
    pub subflow: SubflowId,
    /// Its path.
    pub path: PathId,
    /// The server's address at its end.
    pub server: ServerAddress,
    /// It may carry data.
    pub up: bool,
    /// A timeout expired and nothing has come since.
    pub potentially_failed: bool,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// Bytes in flight.
    pub inflight: u64,
    /// Smoothed RTT.
    pub srtt: Option<Span>,
    /// Retransmission timeout.
    pub rto: Span,
    /// Segments sent again on it, probes included.
    pub retransmissions: u64,
    /// Those of them that the peer reported as duplicates (D-SACK).
    pub spurious: u64,
    /// Reductions of its window that were taken back, for what counted as lost was late.
    pub undone: u32,
}

/// A connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionStats {
    /// State.
    pub state: ConnectionState,
    /// Multipath TCP is spoken.
    pub multipath: bool,
    /// Why it is not, where it was offered.
    pub fallback: Option<FallbackCause>,
    /// Bytes in order that wait for the reader.
    pub readable: u64,
    /// Bytes written and not DATA_ACKed.
    pub unacked: u64,
    /// Payload bytes of a full segment.
    pub segment_payload: u64,
    /// Every subflow that the connection will have carries data.
    pub subflows_ready: bool,
    /// From when on the next send finds every congestion window back at its initial value.
    pub initial_window_at: Option<Time>,
    /// No subflow is left, and one is waited for.
    pub waits: bool,
    /// Every subflow's handshake and closing is over.
    pub over: bool,
    /// The subflows.
    pub subflows: Vec<SubflowStats>,
}

impl Connection {
    pub(crate) fn stats(&self) -> ConnectionStats {
        let subflows = self.subflow_stats();
        ConnectionStats {
            state: self.state(),
            multipath: self.speaks_multipath(),
            fallback: self.fallback_cause(),
            readable: self.readable(),
            unacked: self.unacked(),
            segment_payload: self.mss(),
            subflows_ready: self.subflows_ready(),
            initial_window_at: self.initial_window_at(),
            waits: self.waits(),
            over: self.is_over(),
            subflows,
        }
    }
}
