//! The hook that noq lacks. noq sends on the first path, by id, that has room in its window. A gate before the
//! controller of each path hides the room of all paths but the chosen one, and counts the bytes in flight.

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use plait_base::Span;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What happened to a packet: its bytes, and the RTT. `None` if it is lost.
pub(crate) type News = (u64, Option<Span>);

/// A path, shared by its gate and the adapter. It counts whole packets, from the first one that a scheduler placed.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    /// The gate hides the room of the path.
    pub(crate) closed: bool,
    /// A scheduler has begun to place data.
    pub(crate) counted: bool,
    pub(crate) inflight: u64,
    /// All bytes sent.
    pub(crate) sent: u64,
    pub(crate) packets: u64,
    pub(crate) news: VecDeque<News>,
    pub(crate) rttvar: Span,
    pub(crate) last_rtt: Option<Span>,
    pub(crate) rtt_at: Option<Instant>,
    pub(crate) min_rtt: Option<Span>,
}

pub(crate) type SharedLane = Arc<Mutex<Lane>>;

impl Lane {
    pub(crate) fn next_news(shared: &SharedLane) -> Option<News> {
        lock(shared).news.pop_front()
    }

    fn end(&mut self, bytes: u64, rtt: Option<Span>) {
        // Packets from before the first decision do not count.
        if self.inflight >= bytes {
            self.inflight -= bytes;
            self.news.push_back((bytes, rtt));
        }
    }

    fn sample(&mut self, now: Instant, rtt: Span, srtt: Span) {
        let deviation = srtt.abs_diff(rtt).as_nanos();
        self.rttvar =
            Span::from_nanos(self.rttvar.times(3).as_nanos().saturating_add(deviation) / 4);
        (self.last_rtt, self.rtt_at) = (Some(rtt), Some(now));
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |least| least.min(rtt)));
    }
}

pub(crate) fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Makes the gates of one connection. Its paths ask for their controllers in the order of their ids.
pub struct Gates {
    pub(crate) base: Arc<dyn ControllerFactory + Send + Sync>,
    pub(crate) lanes: Mutex<Vec<SharedLane>>,
}

impl ControllerFactory for Gates {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let lane = SharedLane::default();
        lock(&self.lanes).push(Arc::clone(&lane));
        Box::new(Gate { inner: Arc::clone(&self.base).build(now, mtu), lane })
    }
}

#[derive(Debug)]
struct Gate {
    inner: Box<dyn Controller>,
    lane: SharedLane,
}

impl Controller for Gate {
    fn window(&self) -> u64 {
        let lane = lock(&self.lane);
        // noq does not allow a window of zero.
        if lane.closed { 1 } else { self.inner.window() }
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        let mut lane = lock(&self.lane);
        if lane.counted {
            lane.inflight += u64::from(bytes);
            lane.sent += u64::from(bytes);
            lane.packets += 1;
        }
        self.inner.on_packet_sent(now, bytes, number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let mut lane = lock(&self.lane);
        // noq takes a closed gate for a full window, and would let an unused window grow.
        let unused = lane.counted && lane.inflight.saturating_mul(2) < self.inner.window();
        let sample = span(now.saturating_duration_since(sent));
        lane.sample(now, sample, span(rtt.get()));
        lane.end(bytes, Some(sample));
        self.inner.on_ack(now, sent, bytes, number, app_limited || unused, rtt);
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        lock(&self.lane).end(u64::from(bytes), None);
        self.inner.on_packet_lost(bytes, number, now);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        ecn: bool,
        lost: u64,
        last: u64,
    ) {
        self.inner.on_congestion_event(now, sent, persistent, ecn, lost, last);
    }

    fn on_sent(&mut self, now: Instant, bytes: u64, last: u64) {
        self.inner.on_sent(now, bytes, last);
    }

    fn on_end_acks(&mut self, now: Instant, inflight: u64, app_limited: bool, last: Option<u64>) {
        self.inner.on_end_acks(now, inflight, app_limited, last);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.inner.on_mtu_update(mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, max_delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, max_delay);
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Gate { inner: self.inner.clone_box(), lane: Arc::clone(&self.lane) })
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
