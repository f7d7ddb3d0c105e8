//! Converts a question to the view of a scheduler: segments to bytes, milliseconds to nanoseconds,
//! and counts to ranges.

use super::Refusal;
use super::question::{Happening, INFINITE_SSTHRESH, Question, Subflow};
use plait_base::{DataRange, Dsn, Span, SubflowId, SubflowSet, Time};
use plait_sched::{
    CaState, ConnectionView, LatestView, LeftEdge, Notice, PriceView, SentRange, Spec, StaticQueue,
    SubflowView, View,
};

/// Greatest number of bytes that a JSON number represents exactly: 2^53.
pub(super) const GREATEST_COUNT: f64 = 9_007_199_254_740_992.0;
/// Room without a limit; small enough that sums do not overflow.
const UNLIMITED: u64 = 1 << 62;

/// The data that a view borrows.
#[derive(Debug)]
pub(super) struct Situation {
    now: Time,
    tsq: bool,
    connection: ConnectionView,
    subflows: Vec<SubflowView>,
    queue: StaticQueue,
}

impl Situation {
    /// Returns the scheduler's view.
    pub(super) fn view(&self) -> View<'_> {
        View {
            now: self.now,
            tsq: self.tsq,
            connection: self.connection,
            subflows: &self.subflows,
            queue: &self.queue,
        }
    }

    /// Converts bytes to segments.
    pub(super) fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / f64::from(self.connection.mss.max(1))
    }
}

impl Question {
    /// Returns the event that the scheduler processes before it decides.
    pub(super) fn notice(&self) -> Result<Option<Notice>, Refusal> {
        let Some(Happening { data_ack, edge, again }) = self.event else { return Ok(None) };
        if data_ack == 0 {
            return Err(Refusal::new("event.data_ack", "must be at least 1"));
        }
        if edge > 7 {
            return Err(Refusal::new("event.edge", "ids are 0 to 7"));
        }
        let mss = self.connection.mss;
        let covered = bytes_of(data_ack, mss, "event.data_ack")?;
        let new =
            dsn_of(self.connection.snd_una, mss, "connection.snd_una")?.max(Dsn::new(covered));
        let edge = Some(LeftEdge { first: SubflowId(edge), again });
        Ok(Some(Notice::DataAck { old: new - covered, new, edge }))
    }

    /// Converts the question to bytes and nanoseconds, and checks it.
    pub(super) fn situation(&self) -> Result<Situation, Refusal> {
        let mss = self.connection.mss;
        if mss == 0 {
            return Err(Refusal::new("connection.mss", "must be at least 1"));
        }
        let mut subflows = Vec::with_capacity(self.subflows.len());
        for (nth, subflow) in self.subflows.iter().enumerate() {
            let place = format!("subflows[{nth}]");
            let last = subflows.last().map(|view: &SubflowView| view.id.0);
            if subflow.id > 7 || last.is_some_and(|last| last >= subflow.id) {
                return Err(Refusal::new(&format!("{place}.id"), "ids are 0 to 7 and ascend"));
            }
            subflows.push(subflow.view(mss, &place)?);
        }
        let connection = &self.connection;
        let now = time(connection.now_ms, "connection.now_ms")?;
        for (view, given) in subflows.iter_mut().zip(&self.subflows) {
            view.rtt_at = match given.last_rtt_at_ms {
                Some(at) => time(at, &format!("subflows[{}].last_rtt_at_ms", view.id))?,
                None => now,
            };
        }
        self.price(&mut subflows)?;
        let sent = self.sent()?;
        let assigned = self.assigned(&mut subflows)?;
        let snd_una = dsn_of(connection.snd_una, mss, "connection.snd_una")?;
        let snd_nxt = sent.last().map_or(snd_una, |sent| sent.range.end);
        let mut view = ConnectionView {
            mss,
            start: time(connection.start_ms, "connection.start_ms")?,
            snd_una,
            snd_nxt,
            wnd_end: snd_una.saturating_add(connection.send_window.unwrap_or(UNLIMITED)),
            unsent: count(connection.unsent, mss, "connection.unsent")?,
            reinject: None,
            app_blocked: connection.app_blocked,
            sndbuf_free: connection.sndbuf_free.unwrap_or(UNLIMITED),
            sndbuf: connection.sndbuf.unwrap_or(UNLIMITED),
        };
        if self.reinjects(&view) {
            view.reinject = sent.first().copied();
        }
        let start = snd_nxt.saturating_add(self.assigned_after(snd_nxt, &assigned, &subflows));
        let mut queue = StaticQueue { sent, assigned, ..StaticQueue::default() };
        self.fill(&mut queue, &view, start);
        Ok(Situation { now, tsq: connection.tsq, connection: view, subflows, queue })
    }

    /// Gives the subflows their prices.
    fn price(&self, subflows: &mut [SubflowView]) -> Result<(), Refusal> {
        for (nth, given) in self.prices.iter().enumerate() {
            let Some(priced) = subflows.iter_mut().find(|it| it.id.0 == given.subflow) else {
                let problem = format!("there is no subflow {}", given.subflow);
                return Err(Refusal::new(&format!("prices[{nth}].subflow"), &problem));
            };
            let left = given.quota_left_bytes.unwrap_or(u64::MAX);
            priced.price = PriceView { left, ..PriceView::of(given.cost) };
        }
        Ok(())
    }

    /// Places the unsent data. It first fills the holes between the ranges of `connection.sent`,
    /// which exist if a segment was sent out of order. The rest begins at `start`.
    fn fill(&self, queue: &mut StaticQueue, view: &ConnectionView, start: Dsn) {
        let (mut at, mut left) = (view.snd_una, view.unsent);
        let mut taken: Vec<DataRange> = Vec::new();
        if !self.connection.sent.is_empty() {
            taken.extend(queue.sent.iter().map(|sent| sent.range));
            taken.extend(queue.assigned.iter().map(|(range, _)| *range));
            taken.sort_unstable();
        }
        for range in taken {
            let hole = DataRange::new(at, range.start.min(at.saturating_add(left)));
            left -= queue.unsent.insert(hole);
            at = at.max(range.end);
        }
        queue.unsent.insert(DataRange::new(start, start.saturating_add(left)));
    }

    /// Returns true if the first sent segment waits for reinjection. Without `connection.reinject`,
    /// this is so if a subflow has carried it and neither the window nor the send buffer blocks new
    /// data. If one of them blocks, that segment is the blocking head.
    fn reinjects(&self, view: &ConnectionView) -> bool {
        let next = view.unsent.min(u64::from(view.mss));
        let stalled = view.app_blocked && view.unsent == 0
            || next > 0 && view.snd_nxt.saturating_add(next) > view.wnd_end;
        let carried = self.subflows.iter().any(|subflow| subflow.carried);
        self.connection.reinject.unwrap_or(carried && !stalled)
    }

    /// Returns the ranges sent, either as given or as the counters imply.
    fn sent(&self) -> Result<Vec<SentRange>, Refusal> {
        let (connection, mss) = (&self.connection, self.connection.mss);
        if !connection.sent.is_empty() {
            return self.sent_as_given();
        }
        let marked = self.subflows.iter().filter(|s| s.carried).map(|s| SubflowId(s.id));
        let carried: SubflowSet = marked.clone().filter(|id| id.0 < 8).collect();
        let inflight: f64 = self.subflows.iter().map(|subflow| subflow.inflight).sum();
        let least = u64::from(!carried.is_empty() || connection.reinject == Some(true));
        let outstanding = connection.outstanding.unwrap_or(inflight.ceil() as u64).max(least);
        let start = dsn_of(connection.snd_una, mss, "connection.snd_una")?;
        let place = "connection.outstanding";
        let head = start.saturating_add(u64::from(mss));
        let end = start.saturating_add(bytes_of(outstanding, mss, place)?);
        let first = marked.min().unwrap_or_default();
        let busy = self.subflows.iter().filter(|s| s.inflight > 0.0 && s.id < 8);
        let carriers: SubflowSet = busy.map(|s| SubflowId(s.id)).collect();
        let mut sent = Vec::new();
        if outstanding > 0 {
            let marks = if carried.is_empty() { carriers } else { carried };
            sent.push(SentRange { range: DataRange { start, end: head }, carried: marks, first });
        }
        if outstanding > 1 {
            let range = DataRange { start: head, end };
            sent.push(SentRange { range, carried: carriers, first });
        }
        Ok(sent)
    }

    /// Returns the given ranges that are assigned and not sent, and adds them to their subflows'
    /// counts.
    fn assigned(
        &self,
        subflows: &mut [SubflowView],
    ) -> Result<Vec<(DataRange, SubflowId)>, Refusal> {
        let (mss, mut floor) = (self.connection.mss, Dsn::ZERO);
        let mut assigned = Vec::with_capacity(self.connection.assigned.len());
        if !self.connection.assigned.is_empty() {
            subflows.iter_mut().for_each(|subflow| subflow.queued = 0);
        }
        for (nth, given) in self.connection.assigned.iter().enumerate() {
            let place = format!("connection.assigned[{nth}]");
            let start = dsn_of(given.dsn, mss, &place)?;
            let end = start.saturating_add(bytes_of(given.len, mss, &place)?);
            if start >= end || start < floor {
                return Err(Refusal::new(&place, "ranges hold at least one segment and ascend"));
            }
            floor = end;
            let Some(owner) = subflows.iter_mut().find(|it| it.id.0 == given.subflow) else {
                let problem = format!("there is no subflow {}", given.subflow);
                return Err(Refusal::new(&format!("{place}.subflow"), &problem));
            };
            owner.queued = owner.queued.saturating_add(end - start);
            assigned.push((DataRange { start, end }, owner.id));
        }
        Ok(assigned)
    }

    /// Returns the distance in bytes from `snd_nxt` to the unsent data. Assigned data lies between
    /// them. It is given or, for a scheduler that assigns ahead, implied by the subflows' counts.
    fn assigned_after(
        &self,
        snd_nxt: Dsn,
        assigned: &[(DataRange, SubflowId)],
        subflows: &[SubflowView],
    ) -> u64 {
        if let Some((last, _)) = assigned.last() {
            return last.end.saturating_sub(snd_nxt);
        }
        let ahead = Spec::parse(self.scheduler()).is_ok_and(|spec| spec.entry().queues_ahead);
        let queued = subflows.iter().map(|subflow| subflow.queued);
        if ahead { queued.fold(0, u64::saturating_add) } else { 0 }
    }

    fn sent_as_given(&self) -> Result<Vec<SentRange>, Refusal> {
        let (connection, mss) = (&self.connection, self.connection.mss);
        let mut sent: Vec<SentRange> = Vec::with_capacity(connection.sent.len());
        for (nth, given) in connection.sent.iter().enumerate() {
            let place = format!("connection.sent[{nth}]");
            let start = dsn_of(given.dsn, mss, &place)?;
            let end = start.saturating_add(bytes_of(given.len, mss, &place)?);
            let floor = sent.last().map_or(Dsn::ZERO, |before| before.range.end);
            if start >= end || start < floor {
                return Err(Refusal::new(&place, "ranges hold at least one segment and ascend"));
            }
            if given.carried.iter().any(|id| *id > 7) {
                return Err(Refusal::new(&format!("{place}.carried"), "ids are 0 to 7"));
            }
            let ids = given.carried.iter().map(|id| SubflowId(*id));
            let first = ids.clone().next().unwrap_or_default();
            sent.push(SentRange { range: DataRange { start, end }, carried: ids.collect(), first });
        }
        Ok(sent)
    }
}

impl Subflow {
    fn view(&self, mss: u32, place: &str) -> Result<SubflowView, Refusal> {
        let field = |name: &str| format!("{place}.{name}");
        let size = |value: f64, name: &str| count(value, mss, &field(name));
        let optional =
            |value: Option<f64>, name: &str| value.map(|ms| span(ms, &field(name))).transpose();
        let srtt = optional(self.srtt_ms, "srtt_ms")?;
        let rttvar = span(self.rttvar_ms, &field("rttvar_ms"))?;
        let rto = srtt
            .map_or(Span::from_secs(1), |srtt| srtt + rttvar.times(4).max(Span::from_millis(200)));
        let ssthresh = self.ssthresh.filter(|segments| *segments < INFINITE_SSTHRESH);
        Ok(SubflowView {
            id: SubflowId(self.id),
            open: self.alive,
            joined: self.joined,
            backup: self.backup,
            price: PriceView::FREE,
            pf: self.pf,
            ca: self.ca.map_or(CaState::Open, |word| word.0),
            mss,
            cwnd: size(self.cwnd, "cwnd")?,
            cap: self.cap.map_or(Ok(u64::MAX), |cap| size(cap, "cap"))?,
            ssthresh: ssthresh.map(|segments| size(segments, "ssthresh")).transpose()?,
            inflight: size(self.inflight, "inflight")?,
            outstanding: size(self.outstanding.unwrap_or(self.inflight), "outstanding")?,
            queued: size(self.queued, "queued")?,
            srtt,
            rttvar,
            last_rtt: optional(self.last_rtt_ms, "last_rtt_ms")?.or(srtt),
            min_rtt: optional(self.min_rtt_ms, "min_rtt_ms")?.or(srtt),
            rtt_at: Time::ZERO,
            rto: optional(self.rto_ms, "rto_ms")?.unwrap_or(rto),
            tsq_blocked: self.tsq_blocked,
            rec_cwnd: size(self.rec_cwnd, "rec_cwnd")?,
            pacing_rate: self.pacing_rate_bps / 8,
            timeouts: self.timeouts,
            latest: LatestView {
                delivery_rate: self.delivery_rate_bps / 8,
                last_send: time(self.last_send_ms, &field("last_send_ms"))?,
            },
        })
    }
}

/// Converts segments, which may have a fraction, to bytes.
fn count(segments: f64, mss: u32, place: &str) -> Result<u64, Refusal> {
    let bytes = (segments * f64::from(mss)).round();
    if (0.0..=GREATEST_COUNT).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(Refusal::new(place, "must be 0 or more, and below 2^53 bytes"))
    }
}

fn bytes_of(segments: u64, mss: u32, place: &str) -> Result<u64, Refusal> {
    let bytes = segments.checked_mul(u64::from(mss)).filter(|bytes| *bytes <= UNLIMITED);
    bytes.ok_or_else(|| Refusal::new(place, "must be below 2^62 bytes"))
}

/// Returns the data sequence number of segment number `segment`.
fn dsn_of(segment: u64, mss: u32, place: &str) -> Result<Dsn, Refusal> {
    bytes_of(segment, mss, place).map(Dsn::new)
}

/// Converts milliseconds to a span, rounded to the nanosecond.
pub(super) fn span(ms: f64, place: &str) -> Result<Span, Refusal> {
    let nanos = (ms * 1e6).round();
    if (0.0..=GREATEST_COUNT).contains(&nanos) {
        Ok(Span::from_nanos(nanos as u64))
    } else {
        Err(Refusal::new(place, "must be 0 or more, and below 100 days"))
    }
}

fn time(ms: f64, place: &str) -> Result<Time, Refusal> {
    span(ms, place).map(|span| Time::ZERO + span)
}
