//! A random connection, which gives a scheduler its view and applies its decisions.

use plait_base::{DataRange, DataRangeSet, Dsn, RandomStream, Span, SubflowId, Time};
use plait_sched::{CaState, ConnectionView, Decision, Notice, StaticQueue, SubflowView, View};
use std::collections::VecDeque;
use std::fmt;

/// Payload bytes of a full segment.
pub(super) const MSS: u64 = 1460;
/// Largest congestion window in bytes.
const MOST_CWND: u64 = 1 << 20;
/// A send window that limits nothing.
const WIDE: u64 = 1 << 40;

/// A connection whose subflows deliver the data that they get.
pub(super) struct Connection {
    random: RandomStream,
    now: Time,
    subflows: Vec<SubflowView>,
    connection: ConnectionView,
    queue: StaticQueue,
    /// Segments in flight on each subflow, by their order.
    flight: Vec<VecDeque<DataRange>>,
    received: DataRangeSet,
    written: u64,
}

/// Creates an idle subflow; an RTT of zero means no sample.
fn subflow(id: u8, rtt_ms: u64, cwnd: u64) -> SubflowView {
    let srtt = Span::from_millis(rtt_ms);
    SubflowView {
        srtt: Some(srtt).filter(|_| rtt_ms > 0),
        rttvar: Span::from_millis(rtt_ms / 7),
        pacing_rate: cwnd.saturating_mul(1_000) / rtt_ms.max(1),
        ..SubflowView::new(SubflowId(id), MSS as u32, cwnd)
    }
}

impl Connection {
    /// Draws a connection with two to four idle subflows.
    pub(super) fn drawn(seed: u64, number: u32) -> Connection {
        let mut random = RandomStream::new(seed, &["check", &number.to_string()]);
        let count = random.within(2, 4) as u8;
        let subflows: Vec<_> =
            (0..count).map(|id| subflow(id, random.below(300), 10 * MSS)).collect();
        let connection = ConnectionView {
            mss: MSS as u32,
            wnd_end: Dsn::new(WIDE),
            sndbuf_free: 1 << 20,
            sndbuf: 4 << 20,
            ..ConnectionView::default()
        };
        let mut drawn = Connection {
            now: Time::ZERO,
            flight: vec![VecDeque::new(); subflows.len()],
            subflows,
            connection,
            queue: StaticQueue::default(),
            received: DataRangeSet::new(),
            written: 0,
            random,
        };
        let first = drawn.random.within(20_000, 200_000);
        drawn.write(first);
        drawn
    }

    pub(super) fn view(&self) -> View<'_> {
        View {
            now: self.now,
            tsq: true,
            connection: self.connection,
            subflows: &self.subflows,
            queue: &self.queue,
        }
    }

    fn write(&mut self, len: u64) {
        let end = self.written + len;
        self.queue.unsent.insert(DataRange::between(self.written, end));
        self.written = end;
        self.connection.unsent = self.queue.unsent.len();
    }

    /// Applies a random event. Returns the notice about it, if there is one.
    pub(super) fn step(&mut self) -> Option<Notice> {
        let at = self.random.below(self.subflows.len() as u64) as usize;
        match self.random.below(20) {
            0..2 => {
                let len = self.random.within(1, 40_000);
                self.write(len);
            }
            2..10 => return self.acknowledge(at),
            10 => {
                let rtt = Span::from_millis(self.random.below(400));
                let now = self.now;
                let it = self.subflows.get_mut(at)?;
                (it.srtt, it.last_rtt, it.rtt_at) = (Some(rtt), Some(rtt + rtt.over(3)), now);
                it.min_rtt = Some(it.min_rtt.map_or(rtt, |least| least.min(rtt)));
                it.latest.delivery_rate = it.inflight * 1_000 / (rtt.as_nanos() / 1_000_000 + 1);
            }
            11 => self.subflows.get_mut(at)?.cwnd = self.random.below(60_000),
            12 => {
                let threshold = self.random.below(60_000);
                self.subflows.get_mut(at)?.ssthresh = Some(threshold).filter(|it| it % 5 > 0);
            }
            13..15 => {
                let health = self.random.below(8);
                self.fall_ill(at, health);
                return Some(self.changed());
            }
            15 => {
                let it = self.subflows.get_mut(at)?;
                it.backup = !it.backup;
                return Some(self.changed());
            }
            16 => {
                let it = self.subflows.get_mut(at)?;
                it.tsq_blocked = !it.tsq_blocked;
            }
            17 => {
                let len = if self.random.below(2) == 0 { self.random.below(60_000) } else { WIDE };
                let ConnectionView { snd_una, snd_nxt, .. } = self.connection;
                // A window never moves back below data that is sent.
                self.connection.wnd_end = snd_nxt.max(snd_una + len);
            }
            _ => self.now += Span::from_millis(self.random.below(300)),
        }
        None
    }

    /// Sets the health of a subflow: closed, not joined, potentially failed, with losses, or well.
    fn fall_ill(&mut self, at: usize, health: u64) {
        let Some(it) = self.subflows.get_mut(at) else { return };
        (it.open, it.joined, it.pf) = (health != 0, health != 1, health == 2);
        it.timeouts = if it.pf { 100 } else { 0 };
        it.ca = match health {
            3 => CaState::Loss,
            4 => CaState::Disorder,
            _ => CaState::Open,
        };
    }

    fn changed(&self) -> Notice {
        let live = self.subflows.iter().filter(|it| it.alive()).map(|it| it.id).collect();
        Notice::SubflowsChanged { live, began: None }
    }

    /// Makes all subflows well and opens all windows.
    pub(super) fn repair(&mut self) -> Notice {
        for at in 0..self.subflows.len() {
            self.fall_ill(at, 7);
        }
        for it in &mut self.subflows {
            (it.tsq_blocked, it.cwnd) = (false, it.cwnd.max(10 * MSS));
        }
        self.connection.wnd_end = Dsn::new(WIDE);
        self.changed()
    }

    pub(super) fn in_flight(&self) -> bool {
        self.flight.iter().any(|flight| !flight.is_empty())
    }

    /// Delivers and acknowledges the oldest segment in flight on the first subflow that has one.
    pub(super) fn acknowledge_oldest(&mut self) -> Option<Notice> {
        let at = self.flight.iter().position(|flight| !flight.is_empty())?;
        self.acknowledge(at)
    }

    fn acknowledge(&mut self, at: usize) -> Option<Notice> {
        let range = self.flight.get_mut(at)?.pop_front()?;
        let it = self.subflows.get_mut(at)?;
        it.inflight -= range.len();
        it.outstanding -= range.len();
        it.cwnd = (it.cwnd + MSS).min(MOST_CWND);
        self.received.insert(range);
        let first = self.received.first().filter(|first| first.start == Dsn::ZERO)?;
        let (old, new) = (self.connection.snd_una, first.end);
        if new <= old {
            return None;
        }
        self.connection.snd_una = new;
        self.connection.wnd_end = self.connection.wnd_end.max(self.connection.snd_nxt);
        self.queue.ack(new);
        Some(Notice::DataAck { old, new, edge: None })
    }

    /// Applies a decision as the core would. Returns true if it sent a segment.
    pub(super) fn apply(&mut self, decision: Decision) -> bool {
        let Decision::Send { subflow, .. } = decision else { return false };
        let Some(range) = self.queue.unsent.nth(0, MSS) else { return false };
        let Some(it) = self.subflows.iter_mut().find(|it| it.id == subflow) else { return false };
        it.inflight += range.len();
        it.outstanding += range.len();
        self.queue.record(range, subflow);
        self.connection.unsent = self.queue.unsent.len();
        self.connection.snd_nxt = self.connection.snd_nxt.max(range.end);
        if let Some(flight) = self.flight.get_mut(subflow.index()) {
            flight.push_back(range);
        }
        true
    }

    /// Returns true if the core would send another full segment by this decision, with `left` bytes of its grant.
    pub(super) fn grants(&self, decision: Decision, left: u64) -> bool {
        let Decision::Send { subflow, .. } = decision else { return false };
        let ConnectionView { unsent, snd_nxt, wnd_end, .. } = self.connection;
        let takes = |it: &SubflowView| it.id == subflow && it.usable(MSS, true);
        left >= MSS && unsent >= MSS && snd_nxt + MSS <= wnd_end && self.subflows.iter().any(takes)
    }

    /// Returns the bytes that are not sent, if there are any.
    pub(super) fn left(&self) -> Option<u64> {
        Some(self.connection.unsent).filter(|left| *left > 0)
    }
}

/// Draws a small, an ordinary or an extreme number.
fn any_number(random: &mut RandomStream) -> u64 {
    match random.below(4) {
        0 => random.below(3),
        1 => random.within(1_000, 100_000),
        2 => random.bits(),
        _ => 1 << 60,
    }
}

/// Draws a connection with extreme numbers. Its state is only good for one decision.
pub(super) fn any_view(random: &mut RandomStream) -> Connection {
    let mut drawn = Connection::drawn(random.bits(), 0);
    for it in &mut drawn.subflows {
        (it.cwnd, it.inflight) = (any_number(random), any_number(random));
        it.srtt = Some(Span::from_nanos(any_number(random))).filter(|_| random.below(3) > 0);
        it.min_rtt = it.srtt;
        it.ssthresh = Some(any_number(random)).filter(|_| random.below(2) > 0);
        it.rttvar = Span::from_nanos(any_number(random));
        it.latest.delivery_rate = any_number(random);
        it.backup = random.below(4) == 0;
    }
    drawn.now = Time::from_nanos(any_number(random));
    drawn
}

/// Shows the view: the connection in a line, and a line for each subflow.
impl fmt::Display for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConnectionView { unsent, snd_nxt, wnd_end, .. } = self.connection;
        let window = wnd_end.get().saturating_sub(snd_nxt.get());
        let now = self.now.since(Time::ZERO).as_millis_f64();
        write!(f, "  view: now_ms={now}, unsent_bytes={unsent}, window_left_bytes={window}")?;
        let view = self.view();
        let candidates = view.candidates();
        for it in &self.subflows {
            let (id, cwnd, inflight) = (it.id, it.cwnd, it.inflight);
            write!(f, "\n    subflow {id}: ")?;
            match it.srtt {
                Some(srtt) => write!(f, "srtt_ms={}", srtt.as_millis_f64())?,
                None => f.write_str("srtt_ms=inf")?,
            }
            write!(f, ", cwnd_bytes={cwnd}, inflight_bytes={inflight}")?;
            let usable = candidates.contains(it.id) && it.usable(MSS.min(unsent), true);
            f.write_str(match (it.alive(), usable) {
                (false, _) => ", dead",
                (true, true) => ", usable",
                (true, false) => "",
            })?;
            f.write_str(if it.backup { ", backup" } else { "" })?;
        }
        Ok(())
    }
}
