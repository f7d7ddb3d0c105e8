use plait_base::{DataRange, Dsn, Span, SubflowId, SubflowSet, Time};

/// State of a subflow's loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum CaState {
    /// Nothing unusual.
    #[default]
    Open,
    /// Selective acknowledgements have arrived, no loss yet.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// Recovery from a retransmission timeout.
    Loss,
}

/// What a scheduler sees of one subflow. Byte counts are payload bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubflowView {
    /// The subflow.
    pub id: SubflowId,
    /// The TCP state lets data be sent (ESTABLISHED or CLOSE_WAIT).
    pub open: bool,
    /// Data may be sent: for the end that joined, its HMAC has been acknowledged.
    pub joined: bool,
    /// Either end asked for low priority.
    pub backup: bool,
    /// Potentially failed: a timeout since the last valid packet from the peer.
    pub pf: bool,
    /// Loss recovery.
    pub ca: CaState,
    /// Payload bytes of a full segment, options deducted.
    pub mss: u32,
    /// Congestion window.
    pub cwnd: u64,
    /// Most bytes in flight that an effect allows, whatever the window; `u64::MAX` where there is no
    /// such cap.
    pub cap: u64,
    /// Slow start threshold; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// Sent and not acknowledged, selectively acknowledged or marked lost.
    pub inflight: u64,
    /// Sent and not cumulatively acknowledged, what was lost included: this and `queued` is what the
    /// subflow's send buffer holds.
    pub outstanding: u64,
    /// Assigned to the subflow, not yet sent.
    pub queued: u64,
    /// Smoothed RTT at full precision; `None` before the first sample.
    pub srtt: Option<Span>,
    /// RTT variation of RFC 6298, unscaled.
    pub rttvar: Span,
    /// Latest RTT sample.
    pub last_rtt: Option<Span>,
    /// Least RTT sample.
    pub min_rtt: Option<Span>,
    /// When the latest RTT sample was taken.
    pub rtt_at: Time,
    /// Retransmission timeout.
    pub rto: Span,
    /// The host's own queue holds enough of this subflow's data (TSQ).
    pub tsq_blocked: bool,
    /// Window recorded just before the last idle reset, zero once exceeded (ECF, section 5.2 of
    /// its paper).
    pub rec_cwnd: u64,
    /// Pacing rate in bytes per second; zero for schedulers that do not [need](crate::Needs) it.
    pub pacing_rate: u64,
    /// Rate of delivery in bytes per second: bytes in flight when a segment was sent over its RTT;
    /// zero where none is known.
    pub delivery_rate: u64,
    /// Timeouts in a row since anything was received on it.
    pub timeouts: u32,
    /// When data was last sent.
    pub last_send: Time,
}

/// What a scheduler sees of the connection. DSNs count from 0 at the first byte of data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ConnectionView {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// When the connection started.
    pub start: Time,
    /// First DSN not DATA_ACKed.
    pub snd_una: Dsn,
    /// Highest DSN sent plus one.
    pub snd_nxt: Dsn,
    /// DATA_ACK plus the advertised window: data must end at or below it.
    pub wnd_end: Dsn,
    /// Bytes that no subflow has been given.
    pub unsent: u64,
    /// The first range waiting for reinjection.
    pub reinject: Option<SentRange>,
    /// The application has more to write than the send buffer takes.
    pub app_blocked: bool,
    /// Free bytes of the send buffer.
    pub sndbuf_free: u64,
    /// Bytes that the send buffer holds in all.
    pub sndbuf: u64,
}

/// A range of data that has been sent at least once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentRange {
    /// DSNs.
    pub range: DataRange,
    /// The subflows that have carried it.
    pub carried: SubflowSet,
    /// The subflow that carried it first.
    pub first: SubflowId,
}

/// The connection's queues, for the schedulers that look into them.
pub trait QueueView {
    /// The first range that ends above `dsn` among those sent and not DATA_ACKed.
    fn sent_from(&self, dsn: Dsn) -> Option<SentRange>;
    /// The contiguous range, at most `len` bytes, that starts `offset` bytes into the unsent data.
    fn unsent_at(&self, offset: u64, len: u64) -> Option<DataRange>;
    /// The first range that ends above `dsn` among those assigned to a subflow and not sent, with
    /// that subflow. Two neighbours may have the same one.
    fn assigned_from(&self, dsn: Dsn) -> Option<(DataRange, SubflowId)>;
    /// The send buffer of a subflow in bytes of memory; `None` if the connection counts payload.
    fn send_memory(&self, _subflow: SubflowId) -> Option<u64> {
        None
    }
}

/// Everything a scheduler may know.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Now.
    pub now: Time,
    /// Whether a subflow that TSQ holds back counts as busy.
    pub tsq: bool,
    /// The connection.
    pub connection: ConnectionView,
    /// Its live subflows in ascending order of id.
    pub subflows: &'a [SubflowView],
    /// Its queues.
    pub queue: &'a dyn QueueView,
}

impl SubflowView {
    /// No data may be sent at all: not open, not joined, or potentially failed.
    #[must_use]
    pub const fn hard_down(&self) -> bool {
        !self.open || !self.joined || self.pf
    }

    /// Live, and not in recovery from a timeout.
    #[must_use]
    pub fn alive(&self) -> bool {
        !self.hard_down() && self.ca != CaState::Loss
    }

    /// Bytes that the congestion window, and the cap, still take.
    #[must_use]
    pub const fn room(&self) -> u64 {
        let window = if self.cwnd < self.cap { self.cwnd } else { self.cap };
        window.saturating_sub(self.inflight).saturating_sub(self.queued)
    }

    /// `len` more bytes do not fit now.
    #[must_use]
    pub fn busy(&self, len: u64, tsq: bool) -> bool {
        self.ca == CaState::Loss || self.room() < len || (tsq && self.tsq_blocked)
    }

    /// `len` more bytes can be sent now.
    #[must_use]
    pub fn usable(&self, len: u64, tsq: bool) -> bool {
        !self.hard_down() && !self.busy(len, tsq)
    }

    /// The plain estimate of how long `len` more bytes take to the peer: half a smoothed RTT and,
    /// where the window does not take them, the part of a round trip in which acknowledgements
    /// free what is missing, `srtt * missing / window`. `None` before the first RTT sample.
    ///
    /// It is what decisions are compared by where a scheduler gives no estimate of its own.
    #[must_use]
    pub fn plain_arrival(&self, len: u64) -> Option<Span> {
        let srtt = self.srtt?;
        let window = self.cwnd.min(self.cap).max(1);
        let held = self.inflight.saturating_add(self.queued).saturating_add(len);
        let missing = held.saturating_sub(window);
        let wait = u128::from(srtt.as_nanos()) * u128::from(missing) / u128::from(window);
        let wait = u64::try_from(wait).unwrap_or(u64::MAX);
        Some(Span::from_nanos((srtt.as_nanos() / 2).saturating_add(wait)))
    }

    /// Smoothed RTT for comparisons: no sample counts as slowest.
    #[must_use]
    pub fn srtt_or_max(&self) -> Span {
        self.srtt.unwrap_or(Span::MAX)
    }
}

impl<'a> View<'a> {
    /// The subflows that choices range over: the non-backup ones that are alive or, where there is
    /// none, the backup ones that are alive.
    #[must_use]
    pub fn candidates(&self) -> SubflowSet {
        let (mut regular, mut backup) = (SubflowSet::EMPTY, SubflowSet::EMPTY);
        for subflow in self.subflows.iter().filter(|s| s.alive()) {
            let group = if subflow.backup { &mut backup } else { &mut regular };
            group.insert(subflow.id);
        }
        if regular.is_empty() { backup } else { regular }
    }

    /// The subflow `id`.
    #[must_use]
    pub fn subflow(&self, id: SubflowId) -> Option<&'a SubflowView> {
        self.subflows.iter().find(|s| s.id == id)
    }

    /// Length of the next new segment: a full one, or what is left.
    #[must_use]
    pub fn next_len(&self) -> u64 {
        self.connection.unsent.min(u64::from(self.connection.mss))
    }
}
