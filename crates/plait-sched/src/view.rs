use plait_base::{DataRange, Dsn, Span, SubflowId, SubflowSet, Time};

/// State of a subflow's loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum CaState {
    /// No loss and no reordering.
    #[default]
    Open,
    /// Selective acknowledgements have arrived, but no loss is detected.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// Recovery after a retransmission timeout.
    Loss,
}

/// A scheduler's view of one subflow. Byte counts are payload bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SubflowView {
    /// The subflow.
    pub id: SubflowId,
    /// The TCP state allows sending data (ESTABLISHED or CLOSE-WAIT).
    pub open: bool,
    /// Data may be sent. If this end joined, its HMAC has been acknowledged, or both ends agree on early
    /// joins and the HMAC has been sent.
    pub joined: bool,
    /// This end or the peer requested low priority.
    pub backup: bool,
    /// Price of the subflow, and its consequences.
    pub price: PriceView,
    /// Potentially failed: no valid packet from the peer since a retransmission timeout.
    pub pf: bool,
    /// Loss recovery.
    pub ca: CaState,
    /// Payload bytes of a full segment, without options.
    pub mss: u32,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Limit that an effect sets on the bytes in flight; `u64::MAX` if there is none. Beyond it
    /// nothing is sent, even if the congestion window allows it.
    pub cap: u64,
    /// Slow start threshold in bytes; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// Bytes sent and not acknowledged, selectively acknowledged or marked lost.
    pub inflight: u64,
    /// Bytes sent and not cumulatively acknowledged, lost ones included. The subflow's send buffer
    /// holds these and `queued`.
    pub outstanding: u64,
    /// Bytes assigned to the subflow and not sent.
    pub queued: u64,
    /// Smoothed RTT at full precision; `None` before the first sample.
    pub srtt: Option<Span>,
    /// RTT variation (RTTVAR of RFC 6298), not scaled.
    pub rttvar: Span,
    /// Latest RTT sample.
    pub last_rtt: Option<Span>,
    /// Lowest RTT sample.
    pub min_rtt: Option<Span>,
    /// Time of the latest RTT sample.
    pub rtt_at: Time,
    /// Retransmission timeout.
    pub rto: Span,
    /// True if the host's own queue holds enough data of this subflow (TCP Small Queues, TSQ).
    pub tsq_blocked: bool,
    /// Window just before the last idle reset; zero once the window has exceeded it (ECF paper,
    /// section 5.2).
    pub rec_cwnd: u64,
    /// Pacing rate in bytes per second; zero if the scheduler does not [need](crate::Needs) it.
    pub pacing_rate: u64,
    /// Consecutive timeouts since the last packet was received on the subflow.
    pub timeouts: u32,
    /// The latest segments.
    pub latest: LatestView,
}

/// The price of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PriceView {
    /// Price of a byte, relative to other subflows; 0 is free.
    pub cost: u32,
    /// The price keeps all data off the subflow for now, which is therefore not open.
    pub resting: bool,
    /// Copies may be sent. The price may exclude them.
    pub copies: bool,
    /// Payload bytes that the quota of the path leaves to the subflow; `u64::MAX` without a quota.
    /// Data that is assigned and not sent is deducted. Subflows of one path share what is left.
    pub left: u64,
    /// The other subflows that use the same quota. They count as one path.
    pub sharing: SubflowSet,
}

impl PriceView {
    /// The price of a subflow that costs nothing.
    pub const FREE: PriceView = PriceView::of(0);

    /// Returns the price of a subflow without a quota that takes data and copies.
    #[must_use]
    pub const fn of(cost: u32) -> PriceView {
        let sharing = SubflowSet::EMPTY;
        PriceView { cost, resting: false, copies: true, left: u64::MAX, sharing }
    }
}

/// The latest segments of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LatestView {
    /// Delivery rate in bytes per second: the bytes in flight when a segment was sent, divided by
    /// its RTT; zero if unknown.
    pub delivery_rate: u64,
    /// Time of the last data segment sent.
    pub last_send: Time,
}

/// A scheduler's view of the connection. DSNs count from 0 at the first byte of data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ConnectionView {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Start time of the connection.
    pub start: Time,
    /// Lowest DSN that is not DATA_ACKed.
    pub snd_una: Dsn,
    /// Highest DSN sent, plus one.
    pub snd_nxt: Dsn,
    /// DATA_ACK plus the advertised window. A segment must not end beyond it.
    pub wnd_end: Dsn,
    /// Bytes not sent and not assigned to a subflow.
    pub unsent: u64,
    /// The first range of the reinjection queue.
    pub reinject: Option<SentRange>,
    /// The application has more data to write than fits in the send buffer.
    pub app_blocked: bool,
    /// Free bytes of the send buffer.
    pub sndbuf_free: u64,
    /// Size of the send buffer in bytes; zero without one.
    pub sndbuf: u64,
}

/// A range of data that has been sent at least once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentRange {
    /// The range in DSNs.
    pub range: DataRange,
    /// The subflows that have carried it.
    pub carried: SubflowSet,
    /// The subflow that carried it first.
    pub first: SubflowId,
}

/// The connection's queues, for schedulers that read them.
pub trait QueueView {
    /// Returns the first range that is sent, not DATA_ACKed and ends above `dsn`.
    fn sent_from(&self, dsn: Dsn) -> Option<SentRange>;
    /// Returns the first of these ranges that `subflow` has not carried.
    fn uncarried_from(&self, mut dsn: Dsn, subflow: SubflowId) -> Option<SentRange> {
        loop {
            let sent = self.sent_from(dsn)?;
            if !sent.carried.contains(subflow) {
                return Some(sent);
            }
            dsn = sent.range.end;
        }
    }
    /// Returns the contiguous range that starts `offset` bytes into the unsent data. It has at most
    /// `len` bytes.
    fn unsent_at(&self, offset: u64, len: u64) -> Option<DataRange>;
    /// Returns the first range that is assigned, not sent and ends above `dsn`, with its subflow.
    /// Two adjacent ranges may have the same subflow.
    fn assigned_from(&self, dsn: Dsn) -> Option<(DataRange, SubflowId)>;
    /// Returns the memory of a subflow's send buffer in bytes; `None` if the connection counts
    /// payload.
    fn send_memory(&self, _subflow: SubflowId) -> Option<u64> {
        None
    }
}

/// All inputs of a decision.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// The current time.
    pub now: Time,
    /// True if a subflow that TSQ blocks counts as busy.
    pub tsq: bool,
    /// The connection.
    pub connection: ConnectionView,
    /// The joined subflows in a synchronized TCP state, in ascending order of id. Potentially
    /// failed subflows are included.
    pub subflows: &'a [SubflowView],
    /// The queues of the connection.
    pub queue: &'a dyn QueueView,
}

impl SubflowView {
    /// Returns a subflow that may send, is free and has nothing in flight, with a window of `cwnd` bytes. A stack
    /// sets the other fields that it knows.
    ///
    /// ```
    /// use plait_base::{Span, SubflowId};
    /// use plait_sched::SubflowView;
    ///
    /// let srtt = Some(Span::from_millis(20));
    /// let subflow = SubflowView { inflight: 10_000, srtt, ..SubflowView::new(SubflowId(0), 1_400, 14_000) };
    /// assert!(subflow.usable(4_000, true) && !subflow.usable(4_001, true));
    /// ```
    #[must_use]
    pub const fn new(id: SubflowId, mss: u32, cwnd: u64) -> SubflowView {
        SubflowView {
            id,
            open: true,
            joined: true,
            backup: false,
            price: PriceView::FREE,
            pf: false,
            ca: CaState::Open,
            mss,
            cwnd,
            cap: u64::MAX,
            ssthresh: None,
            inflight: 0,
            outstanding: 0,
            queued: 0,
            srtt: None,
            rttvar: Span::ZERO,
            last_rtt: None,
            min_rtt: None,
            rtt_at: Time::ZERO,
            rto: Span::from_secs(1),
            tsq_blocked: false,
            rec_cwnd: 0,
            pacing_rate: 0,
            timeouts: 0,
            latest: LatestView { delivery_rate: 0, last_send: Time::ZERO },
        }
    }

    /// Returns true if the subflow cannot send data: it is not open, not joined, or potentially
    /// failed.
    #[must_use]
    pub const fn hard_down(&self) -> bool {
        !self.open || !self.joined || self.pf
    }

    /// Lets the subflow rest: it is not open to data, because of its price.
    pub const fn rest(&mut self) {
        self.open = false;
        self.price.resting = true;
    }

    /// Returns true if the subflow can send data and does not recover from a timeout.
    #[must_use]
    pub fn alive(&self) -> bool {
        !self.hard_down() && self.ca != CaState::Loss
    }

    /// Returns the bytes that the congestion window and the cap still allow.
    #[must_use]
    pub const fn room(&self) -> u64 {
        let window = if self.cwnd < self.cap { self.cwnd } else { self.cap };
        window.saturating_sub(self.inflight).saturating_sub(self.queued)
    }

    /// Returns true if `len` more bytes do not fit now.
    #[must_use]
    pub fn busy(&self, len: u64, tsq: bool) -> bool {
        self.ca == CaState::Loss || self.room() < len || (tsq && self.tsq_blocked)
    }

    /// Returns true if `len` more bytes can be sent now.
    #[must_use]
    pub fn usable(&self, len: u64, tsq: bool) -> bool {
        !self.hard_down() && !self.busy(len, tsq)
    }

    /// Returns the plain estimate of the time until `len` more bytes reach the peer; `None` before
    /// the first RTT sample. The estimate is half a smoothed RTT. If the bytes exceed the window,
    /// it adds the time until acknowledgements free the missing part: `srtt * missing / window`.
    ///
    /// Decisions are compared by this estimate if a scheduler gives none of its own.
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

    /// Returns the smoothed RTT for comparisons. A subflow without a sample counts as the slowest.
    #[must_use]
    pub fn srtt_or_max(&self) -> Span {
        self.srtt.unwrap_or(Span::MAX)
    }
}

impl<'a> View<'a> {
    /// Returns the subflows that a scheduler may choose from: the live regular ones, or the live
    /// backup ones if no regular subflow is live.
    #[must_use]
    pub fn candidates(&self) -> SubflowSet {
        let (mut regular, mut backup) = (SubflowSet::EMPTY, SubflowSet::EMPTY);
        for subflow in self.subflows {
            match subflow.backup {
                _ if !subflow.alive() => {}
                false => regular.insert(subflow.id),
                true => backup.insert(subflow.id),
            }
        }
        if regular.is_empty() { backup } else { regular }
    }

    /// Returns the subflow `id`.
    #[must_use]
    pub fn subflow(&self, id: SubflowId) -> Option<&'a SubflowView> {
        self.subflows.iter().find(|s| s.id == id)
    }

    /// Returns the length in bytes of the next new segment: a full one, or the rest of the data.
    #[must_use]
    pub fn next_len(&self) -> u64 {
        self.connection.unsent.min(u64::from(self.connection.mss))
    }
}
