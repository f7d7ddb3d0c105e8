//! State and counters of a connection, for its user and for reports.

use crate::conn::spec::ConnectionState;
use crate::data::agreement::FallbackCause;
use crate::tcp::subflow::Subflow;
use alloc::vec::Vec;
use plait_base::{Dsn, PathId, ServerAddress, Span, Ssn, SubflowId, Time};

/// What subflows have carried; as `u64`s, so that they only grow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Carried {
    /// Bytes of payload sent, each once.
    pub sent: u64,
    /// Bytes of payload taken in, in the subflow's order.
    pub received: u64,
    /// Segments sent again, probes included.
    pub retransmissions: u64,
}

impl Carried {
    fn add(&mut self, other: &Carried) {
        self.sent += other.sent;
        self.received += other.received;
        self.retransmissions += other.retransmissions;
    }
}

/// What subflows have carried, those with which connections began and those that joined.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// First subflows, plain TCP included.
    pub first: Carried,
    /// Joined ones.
    pub joined: Carried,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Totals) {
        self.first.add(&other.first);
        self.joined.add(&other.joined);
    }

    /// Adds what a subflow has carried.
    pub(crate) fn add_subflow(&mut self, subflow: &Subflow) {
        let kind = if subflow.shake.join { &mut self.joined } else { &mut self.first };
        kind.add(&subflow.carried());
    }
}

impl Subflow {
    /// What it has carried; SYN and FIN, which have sequence numbers, are none of it.
    pub(crate) fn carried(&self) -> Carried {
        Carried {
            sent: self
                .sender
                .tx
                .nxt()
                .saturating_sub(Ssn::new(1 + u64::from(self.status.fin_sent))),
            received: self.rx.taken_in(),
            retransmissions: self.sender.spurious_recovery.counters.retransmissions,
        }
    }
}

/// What an endpoint has learnt of how long its packets may be; the counters only grow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sizes {
    /// Messages of routers ([`Endpoint::on_too_big`](crate::Endpoint::on_too_big)) about what is in
    /// flight, whether they said anything new or not.
    pub too_big_believed: u64,
    /// Those that were ignored: about what is not in flight, or with an MTU that no link has.
    pub too_big_refused: u64,
    /// How often segments of a connection became shorter, as a router said so.
    pub lowered_as_told: u64,
    /// The same, as long ones vanished between short ones (RFC 8899 section 4.3).
    pub lowered_by_hole: u64,
}

/// How far the data of a connection has come, in DSNs from its first byte on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The first of ours that the peer has not acknowledged: never beyond what has arrived there or,
    /// where we count [in step](Progress::in_step), is held there.
    pub acked: Dsn,
    /// We have fallen back: what the peer acknowledges on the subflow counts (RFC 8684 section 3.7).
    pub in_step: bool,
    /// The first of the peer's that has not arrived in order.
    pub arrived: Dsn,
    /// The same, but what waits for the rest of a mapping, or for the peer after a wrong checksum, is
    /// counted too.
    pub held: Dsn,
}

impl Progress {
    /// Whether it counts as acknowledged what the other end does not have.
    #[must_use]
    pub fn is_ahead_of(&self, other: &Progress) -> bool {
        self.acked > if self.in_step { other.held } else { other.arrived }
    }
}

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
    /// It has joined; the connection did not begin on it.
    pub joined: bool,
    /// What it has carried.
    pub carried: Carried,
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

/// What an endpoint has refused or answered without state, because a table was full or a segment was
/// malformed. All are counts since the start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Overflows {
    /// SYNs that were answered with a cookie, because the table of half-open connections was full.
    pub cookies_sent: u64,
    /// Connections that a valid cookie has opened.
    pub cookies_accepted: u64,
    /// ACKs without a valid cookie while cookies were in use; each was answered with a reset.
    pub cookies_refused: u64,
    /// Half-open joins that gave way to a newer join of their connection.
    pub joins_replaced: u64,
    /// Released connections that were reset, because too many had not ended.
    pub closing_aborted: u64,
    /// Subflows in TIME-WAIT or FIN-WAIT-2 that were forgotten early, because there were too many.
    pub time_waits_recycled: u64,
    /// SYNs with FIN, which were dropped.
    pub syns_with_fin: u64,
}

impl Overflows {
    /// Returns all counts with their names.
    #[must_use]
    pub const fn counts(&self) -> [(&'static str, u64); 7] {
        [
            ("cookies_sent", self.cookies_sent),
            ("cookies_accepted", self.cookies_accepted),
            ("cookies_refused", self.cookies_refused),
            ("joins_replaced", self.joins_replaced),
            ("closing_aborted", self.closing_aborted),
            ("time_waits_recycled", self.time_waits_recycled),
            ("syns_with_fin", self.syns_with_fin),
        ]
    }

    /// Returns the difference to earlier counts.
    #[must_use]
    pub const fn since(&self, before: &Overflows) -> Overflows {
        Overflows {
            cookies_sent: self.cookies_sent - before.cookies_sent,
            cookies_accepted: self.cookies_accepted - before.cookies_accepted,
            cookies_refused: self.cookies_refused - before.cookies_refused,
            joins_replaced: self.joins_replaced - before.joins_replaced,
            closing_aborted: self.closing_aborted - before.closing_aborted,
            time_waits_recycled: self.time_waits_recycled - before.time_waits_recycled,
            syns_with_fin: self.syns_with_fin - before.syns_with_fin,
        }
    }
}

/// Why a connection was aborted by its own end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TimedOut {
    /// The peer took nothing for [`Timeouts::user`](crate::Timeouts::user).
    User,
    /// It answered no probe of [`Timeouts::keep_alive`](crate::Timeouts::keep_alive).
    KeepAlive,
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
    /// It was aborted, for nothing came of its peer.
    pub timed_out: Option<TimedOut>,
    /// Every subflow's handshake and closing is over.
    pub over: bool,
    /// The subflows.
    pub subflows: Vec<SubflowStats>,
}
