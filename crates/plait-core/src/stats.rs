//! State and counters of a connection, for its user and for reports.

use crate::event::{FallbackCause, SizeCause};
use crate::spec::ConnectionState;
use alloc::vec::Vec;
use plait_base::{Dsn, PathId, ServerAddress, Span, SubflowId, Time};

/// Counters of subflows. They only grow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SubflowCounters {
    /// Segments retransmitted on the subflow, probes included.
    pub retransmissions: u64,
    /// Retransmissions that the peer reported as duplicates (D-SACK).
    pub spurious: u64,
    /// Reductions of its window that were undone, because the segments were late instead of lost.
    pub undone: u32,
}

impl SubflowCounters {
    fn add(&mut self, other: &SubflowCounters) {
        let SubflowCounters { retransmissions, spurious, undone } = other;
        self.retransmissions += retransmissions;
        self.spurious += spurious;
        self.undone = self.undone.saturating_add(*undone);
    }
}

/// Traffic of subflows. The counters only grow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Carried {
    /// Bytes of payload sent, each counted once.
    pub sent: u64,
    /// Bytes of payload received in subflow order.
    pub received: u64,
    /// Other counters.
    pub counters: SubflowCounters,
}

impl Carried {
    fn add(&mut self, other: &Carried) {
        self.sent += other.sent;
        self.received += other.received;
        self.counters.add(&other.counters);
    }
}

/// Traffic of first subflows and of joined ones.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// First subflows, plain TCP included.
    pub first: Carried,
    /// Joined subflows.
    pub joined: Carried,
}

impl Totals {
    pub(crate) fn add(&mut self, other: &Totals) {
        self.first.add(&other.first);
        self.joined.add(&other.joined);
    }

    /// Adds the traffic of a joined subflow, or of a first one.
    pub(crate) fn add_subflow(&mut self, joined: bool, traffic: &Carried) {
        let kind = if joined { &mut self.joined } else { &mut self.first };
        kind.add(traffic);
    }
}

/// Counters of path MTU detection. They only grow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sizes {
    /// Router messages ([`Endpoint::on_too_big`](crate::Endpoint::on_too_big)) about a segment in
    /// flight, whether they changed the size or not.
    pub too_big_believed: u64,
    /// Ignored router messages: about a segment that is not in flight, or with an MTU that no link
    /// has.
    pub too_big_refused: u64,
    /// How often a router message shortened the segments of a connection.
    pub lowered_as_told: u64,
    /// How often lost long segments between delivered short ones did so (RFC 8899 section 4.3).
    pub lowered_by_hole: u64,
}

/// Progress of a connection's data, in DSNs from its first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// First DSN of this end that the peer has not acknowledged. It never exceeds the peer's
    /// `arrived`, or its `held` if [`in_step`](Progress::in_step) is true.
    pub acked: Dsn,
    /// This end has fallen back, so subflow acknowledgements acknowledge data (RFC 8684 section
    /// 3.7).
    pub in_step: bool,
    /// First DSN of the peer that has not arrived in order.
    pub arrived: Dsn,
    /// As `arrived`, plus data that waits for the rest of a mapping, or for the peer after a wrong
    /// checksum.
    pub held: Dsn,
}

impl Progress {
    /// Returns true if this end counts data as acknowledged that the other end does not have.
    #[must_use]
    pub fn is_ahead_of(&self, other: &Progress) -> bool {
        self.acked > if self.in_step { other.held } else { other.arrived }
    }
}

/// State and counters of one subflow.
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
    /// True for a joined subflow, false for the first one.
    pub joined: bool,
    /// Its traffic and its other counters.
    pub carried: Carried,
    /// A timeout expired and nothing has arrived since.
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
}

/// Segments refused or answered without state, because a table was full or a segment was malformed.
/// All are counts since the start.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Overflows {
    /// SYNs that were answered with a cookie, because the table of half-open connections was full.
    pub cookies_sent: u64,
    /// Connections opened by a valid cookie.
    pub cookies_accepted: u64,
    /// ACKs without a valid cookie while cookies were in use; each was answered with a reset.
    pub cookies_refused: u64,
    /// Half-open joins replaced by a newer join of their connection.
    pub joins_replaced: u64,
    /// Third ACKs of joins with a wrong HMAC; each subflow was reset.
    pub joins_forged: u64,
    /// Segments with data of a join whose HMAC had not arrived; they were ignored.
    pub unproven_data: u64,
    /// Released connections that were reset, because too many were still closing.
    pub closing_aborted: u64,
    /// Subflows in TIME-WAIT or FIN-WAIT-2 that were removed early, because there were too many.
    pub time_waits_recycled: u64,
    /// SYNs with FIN, which were dropped.
    pub syns_with_fin: u64,
}

impl Overflows {
    /// Returns all counts with their names.
    #[must_use]
    pub const fn counts(&self) -> [(&'static str, u64); 9] {
        [
            ("cookies_sent", self.cookies_sent),
            ("cookies_accepted", self.cookies_accepted),
            ("cookies_refused", self.cookies_refused),
            ("joins_replaced", self.joins_replaced),
            ("joins_forged", self.joins_forged),
            ("unproven_data", self.unproven_data),
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
            joins_forged: self.joins_forged - before.joins_forged,
            unproven_data: self.unproven_data - before.unproven_data,
            closing_aborted: self.closing_aborted - before.closing_aborted,
            time_waits_recycled: self.time_waits_recycled - before.time_waits_recycled,
            syns_with_fin: self.syns_with_fin - before.syns_with_fin,
        }
    }
}

/// The counters of an endpoint. Each method counts one event.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    overflows: Overflows,
    sizes: Sizes,
    /// SYNs answered with a reset, because further connections are refused.
    turned_away: u64,
}

impl Counters {
    pub(crate) const fn overflows(&self) -> Overflows {
        self.overflows
    }

    pub(crate) const fn sizes(&self) -> Sizes {
        self.sizes
    }

    pub(crate) const fn turned_away(&self) -> u64 {
        self.turned_away
    }

    /// Counts a SYN that was answered with a cookie.
    pub(crate) const fn on_cookie_sent(&mut self) {
        self.overflows.cookies_sent += 1;
    }

    /// Counts a connection opened by a cookie.
    pub(crate) const fn on_cookie_accepted(&mut self) {
        self.overflows.cookies_accepted += 1;
    }

    /// Counts an ACK without a valid cookie.
    pub(crate) const fn on_cookie_refused(&mut self) {
        self.overflows.cookies_refused += 1;
    }

    /// Counts a half-open join that was replaced by another one.
    pub(crate) const fn on_join_replaced(&mut self) {
        self.overflows.joins_replaced += 1;
    }

    /// Counts a third ACK of a join with a wrong HMAC.
    pub(crate) const fn on_join_forged(&mut self) {
        self.overflows.joins_forged += 1;
    }

    /// Counts data of a join without an HMAC.
    pub(crate) const fn on_unproven_data(&mut self) {
        self.overflows.unproven_data += 1;
    }

    /// Counts a released connection that was reset.
    pub(crate) const fn on_closing_aborted(&mut self) {
        self.overflows.closing_aborted += 1;
    }

    /// Counts a remnant that was removed early.
    pub(crate) const fn on_time_wait_recycled(&mut self) {
        self.overflows.time_waits_recycled += 1;
    }

    /// Counts a SYN with FIN.
    pub(crate) const fn on_syn_with_fin(&mut self) {
        self.overflows.syns_with_fin += 1;
    }

    /// Counts a connection that was refused.
    pub(crate) const fn on_turned_away(&mut self) {
        self.turned_away += 1;
    }

    /// Counts a reduction of a connection's segment size.
    pub(crate) const fn on_size_lowered(&mut self, cause: SizeCause) {
        match cause {
            SizeCause::TooBig => self.sizes.lowered_as_told += 1,
            SizeCause::BlackHole => self.sizes.lowered_by_hole += 1,
        }
    }

    /// Counts a router's message.
    pub(crate) const fn on_too_big(&mut self, believed: bool) {
        match believed {
            true => self.sizes.too_big_believed += 1,
            false => self.sizes.too_big_refused += 1,
        }
    }
}

/// Why this end aborted a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TimedOut {
    /// The peer accepted nothing for [`Timeouts::user`](crate::Timeouts::user).
    User,
    /// It answered no probe of [`Timeouts::keep_alive`](crate::Timeouts::keep_alive).
    KeepAlive,
    /// The quotas of all paths are used up, and data is left.
    Quota,
}

/// Bytes of a connection's data. Each byte counts once, also if several subflows have carried it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct UniqueBytes {
    /// Bytes that this end has sent at least once.
    pub sent: u64,
    /// Bytes that have arrived in order.
    pub arrived: u64,
}

/// State and counters of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionStats {
    /// State of the connection.
    pub state: ConnectionState,
    /// Whether the connection uses Multipath TCP.
    pub multipath: bool,
    /// Why the connection does not use Multipath TCP, if it was offered.
    pub fallback: Option<FallbackCause>,
    /// Bytes in order that the application has not read.
    pub readable: u64,
    /// Bytes written and not DATA_ACKed.
    pub unacked: u64,
    /// Its data, each byte counted once.
    pub unique: UniqueBytes,
    /// Payload bytes of a full segment.
    pub segment_payload: u64,
    /// Every subflow that the connection will have carries data.
    pub subflows_ready: bool,
    /// Time from which the next send resets every congestion window to its initial value.
    pub initial_window_at: Option<Time>,
    /// It has no subflow and waits for one.
    pub waits: bool,
    /// Why it was aborted, if this end has given it up.
    pub timed_out: Option<TimedOut>,
    /// Every subflow has finished its handshake and has closed.
    pub over: bool,
    /// The subflows.
    pub subflows: Vec<SubflowStats>,
}
