//! The hook that noq lacks. noq sends on the first path, by id, that has room in its window. A gate before the
//! controller of each path hides the room of all paths but the chosen one, and counts the bytes in flight.

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use plait_base::{Span, SubflowId, SubflowSet, Time};
use plait_sched::SubflowView;
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What happened to a packet: its path, its bytes, and the RTT. `None` if it is lost.
pub(crate) type News = (SubflowId, u64, Option<Span>);

/// A path as its gate sees it, from the first packet that a scheduler placed.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The gate hides the room of the path.
    pub(crate) closed: bool,
    /// Bytes of all packets sent.
    pub(crate) sent: u64,
    /// The limit of the scheduler, and what noq does not publish: the bytes in flight and the samples of the RTT.
    pub(crate) view: SubflowView,
}

impl Seen {
    fn sample(&mut self, now: Time, rtt: Span, srtt: Span) {
        let view = &mut self.view;
        let deviation = srtt.abs_diff(rtt).as_nanos();
        let variation = view.rttvar.times(3).as_nanos().saturating_add(deviation) / 4;
        view.rttvar = Span::from_nanos(variation);
        (view.last_rtt, view.rtt_at) = (Some(rtt), now);
        view.min_rtt = Some(view.min_rtt.map_or(rtt, |least| least.min(rtt)));
    }
}

/// The paths of one connection, in the order of their ids.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    pub(crate) seen: Vec<Seen>,
    news: VecDeque<News>,
    /// A scheduler has begun to place data.
    counted: bool,
}

pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// Makes the gates of one connection. Its paths ask for their controllers in the order of their ids.
pub struct Gates {
    base: Arc<dyn ControllerFactory + Send + Sync>,
    /// Bytes of a full packet.
    pub(crate) mtu: u16,
    /// The time zero of the scheduler.
    pub(crate) epoch: Instant,
    paths: Arc<Mutex<Paths>>,
}

impl Gates {
    /// Creates the gates of a connection whose controllers `base` makes. Packets have `mtu` bytes.
    pub fn new(base: Arc<dyn ControllerFactory + Send + Sync>, mtu: u16, epoch: Instant) -> Gates {
        Gates { base, mtu, epoch, paths: Arc::default() }
    }

    pub(crate) fn paths(&self) -> MutexGuard<'_, Paths> {
        lock(&self.paths)
    }

    pub(crate) fn next_news(&self) -> Option<News> {
        self.paths().news.pop_front()
    }

    /// Counts packets from now on. Returns the paths.
    pub(crate) fn count(&self) -> SubflowSet {
        let mut paths = self.paths();
        paths.counted = true;
        paths.seen.iter().map(|path| path.view.id).collect()
    }
}

fn lock(paths: &Mutex<Paths>) -> MutexGuard<'_, Paths> {
    paths.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ControllerFactory for Gates {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.base).build(now, mtu);
        let seen = &mut self.paths().seen;
        // A scheduler knows so many paths. Further ones have no gate.
        let at = seen.len();
        if at == SubflowId::MAX {
            return inner;
        }
        let view = SubflowView::new(SubflowId(at as u8), u32::from(self.mtu), 0);
        seen.push(Seen { closed: false, sent: 0, view });
        Box::new(Gate { inner, at, paths: Arc::clone(&self.paths), epoch: self.epoch })
    }
}

#[derive(Debug)]
struct Gate {
    inner: Box<dyn Controller>,
    /// The index of the path.
    at: usize,
    paths: Arc<Mutex<Paths>>,
    epoch: Instant,
}

impl Gate {
    /// Records the end of a packet. Packets from before the first decision do not count.
    fn end(&self, bytes: u64, rtt: Option<Span>) {
        let paths = &mut *lock(&self.paths);
        let view = &mut paths.seen[self.at].view;
        if view.inflight >= bytes {
            view.inflight -= bytes;
            view.outstanding = view.inflight;
            paths.news.push_back((view.id, bytes, rtt));
        }
    }
}

impl Controller for Gate {
    fn window(&self) -> u64 {
        // noq does not allow a window of zero.
        if lock(&self.paths).seen[self.at].closed { 1 } else { self.inner.window() }
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        let mut paths = lock(&self.paths);
        if paths.counted {
            let path = &mut paths.seen[self.at];
            path.sent += u64::from(bytes);
            path.view.inflight += u64::from(bytes);
            path.view.outstanding = path.view.inflight;
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
        let mut paths = lock(&self.paths);
        let counted = paths.counted;
        let path = &mut paths.seen[self.at];
        // noq takes a closed gate for a full window, and would let an unused window grow.
        let unused = counted && path.view.inflight.saturating_mul(2) < self.inner.window();
        let sample = span(now.saturating_duration_since(sent));
        let at = Time::ZERO + span(now.saturating_duration_since(self.epoch));
        path.sample(at, sample, span(rtt.get()));
        drop(paths);
        self.end(bytes, Some(sample));
        self.inner.on_ack(now, sent, bytes, number, app_limited || unused, rtt);
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        self.end(u64::from(bytes), None);
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
        Box::new(Gate {
            inner: self.inner.clone_box(),
            at: self.at,
            paths: Arc::clone(&self.paths),
            epoch: self.epoch,
        })
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
