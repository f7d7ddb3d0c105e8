//! plait's schedulers in noq: a view of the paths for the scheduler, and its decision for the gates.

use crate::gate::{Gates, Lane, SharedLane, lock, span};
use noq_proto::congestion::ControllerFactory;
use noq_proto::{Connection, PathId, Transmit};
use plait_base::{DataRange, Dsn, Span, SubflowId, SubflowSet, Time};
use plait_sched::{
    ConnectionView, Decision, Effect, Notice, Outcome, Scheduler, Spec, SpecError, StaticQueue,
    SubflowView, View, What,
};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Bytes of a packet beside the data: header, tag, and the fields of a STREAM frame.
const OVERHEAD: u64 = 34;

/// A scheduler of plait for the data of one connection.
pub struct Adapter {
    scheduler: Box<dyn Scheduler>,
    gates: Arc<Gates>,
    lanes: Vec<SharedLane>,
    paths: Paths,
    out: Outcome,
}

/// What a scheduler reads. A data sequence number counts the payload sent, repeated data included.
struct Paths {
    epoch: Instant,
    connection: ConnectionView,
    subflows: Vec<SubflowView>,
    caps: [u64; SubflowId::MAX],
    queue: StaticQueue,
    /// Bytes that the peer lets be in flight.
    window: u64,
    /// End of the data, lost data included.
    end: u64,
}

impl Paths {
    fn time(&self, now: Instant) -> Time {
        Time::ZERO + span(now.saturating_duration_since(self.epoch))
    }

    /// Returns the payload in `bytes` of full packets.
    fn payload(&self, bytes: u64) -> u64 {
        let mss = u64::from(self.connection.mss);
        let full = bytes / (mss + OVERHEAD) * mss;
        full + (bytes % (mss + OVERHEAD)).saturating_sub(OVERHEAD)
    }

    fn view(&self, now: Instant) -> View<'_> {
        let (now, connection, queue) = (self.time(now), self.connection, &self.queue);
        View { now, tsq: true, connection, subflows: &self.subflows, queue }
    }

    /// Reads the state of all paths. The pacer holds the `blocked` ones back.
    fn refresh(&mut self, conn: &Connection, lanes: &[SharedLane], blocked: SubflowSet) {
        self.subflows.clear();
        let mut sent = 0;
        for (at, lane) in (0..).zip(lanes) {
            let (id, path, lane) = (SubflowId(at), PathId::ZERO.saturating_add(at), lock(lane));
            let Some(metrics) = conn.congestion_state(path).map(|it| it.metrics()) else {
                continue;
            };
            sent += lane.sent.saturating_sub(lane.packets * OVERHEAD);
            let srtt = conn.rtt(path).map_or(Span::MAX, span);
            let inflight = self.payload(lane.inflight);
            let cwnd = self.payload(metrics.congestion_window);
            self.subflows.push(SubflowView {
                cap: self.caps[id.index()],
                ssthresh: metrics.ssthresh.filter(|it| *it < u64::MAX).map(|it| self.payload(it)),
                inflight,
                outstanding: inflight,
                srtt: Some(srtt),
                rttvar: lane.rttvar,
                last_rtt: lane.last_rtt,
                min_rtt: lane.min_rtt.or(Some(srtt)),
                rtt_at: lane.rtt_at.map_or(Time::ZERO, |at| self.time(at)),
                tsq_blocked: blocked.contains(id),
                ..SubflowView::new(id, self.connection.mss, cwnd)
            });
        }
        let una = self.connection.snd_una;
        self.connection.snd_nxt = Dsn::new(sent);
        self.connection.wnd_end = una.saturating_add(self.window);
        self.connection.unsent = self.end.saturating_sub(sent);
        self.queue.unsent.clear();
        self.queue.unsent.insert(DataRange::between(sent, self.end.max(sent)));
    }
}

impl Adapter {
    /// Creates an adapter for one connection, and the controllers for its configuration. `base` makes the controllers
    /// behind the gates. Packets have `mtu` bytes, and the peer grants `window` bytes.
    ///
    /// # Errors
    /// Returns an error if there is no such scheduler.
    pub fn new(
        scheduler: &str,
        base: Arc<dyn ControllerFactory + Send + Sync>,
        (mtu, window): (u16, u64),
        epoch: Instant,
    ) -> Result<(Adapter, Arc<Gates>), SpecError> {
        let mss = u32::from(mtu).saturating_sub(OVERHEAD as u32).max(1);
        let paths = Paths {
            epoch,
            connection: ConnectionView { mss, ..ConnectionView::default() },
            subflows: Vec::new(),
            caps: [u64::MAX; SubflowId::MAX],
            queue: StaticQueue::default(),
            window,
            end: 0,
        };
        let gates = Arc::new(Gates { base, lanes: Mutex::default() });
        let scheduler = Spec::parse(scheduler)?.build();
        let (lanes, out) = (Vec::new(), Outcome::default());
        Ok((Adapter { scheduler, gates: Arc::clone(&gates), lanes, paths, out }, gates))
    }

    /// Begins to schedule. The application writes `bytes`.
    pub fn offer(&mut self, conn: &Connection, now: Instant, bytes: u64) {
        self.lanes = lock(&self.gates.lanes).iter().take(SubflowId::MAX).cloned().collect();
        self.lanes.iter().for_each(|lane| lock(lane).counted = true);
        self.paths.end += bytes;
        self.paths.refresh(conn, &self.lanes, SubflowSet::EMPTY);
        let live: SubflowSet = self.paths.subflows.iter().map(|subflow| subflow.id).collect();
        for id in live.iter() {
            let notice = Notice::SubflowsChanged { live, began: Some(id) };
            self.scheduler.on_notice(&self.paths.view(now), notice);
        }
    }

    /// Returns the next packet, as [`Connection::poll_transmit`] does.
    pub fn poll_transmit(
        &mut self,
        conn: &mut Connection,
        now: Instant,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.take_news(conn, now);
        let mut blocked = SubflowSet::EMPTY;
        loop {
            let chosen = self.choose(conn, now, blocked);
            let transmit = conn.poll_transmit(now, NonZeroUsize::MIN, buf);
            // If noq sends nothing on the chosen path, its pacer holds the path back.
            match chosen {
                Some(id) if transmit.is_none() && !blocked.contains(id) => blocked.insert(id),
                _ => return transmit,
            }
        }
    }

    /// Opens the gate of the chosen path. Without data to send, all gates are open.
    fn choose(
        &mut self,
        conn: &Connection,
        now: Instant,
        blocked: SubflowSet,
    ) -> Option<SubflowId> {
        self.paths.refresh(conn, &self.lanes, blocked);
        self.out.clear();
        let decision = self.scheduler.schedule(&self.paths.view(now), &mut self.out);
        for effect in &self.out.effects {
            if let Effect::Cap { subflow, bytes } = *effect {
                self.paths.caps[subflow.index()] = bytes.unwrap_or(u64::MAX);
            }
        }
        // noq sends data in its own order, so an offset has no meaning, and copies are impossible.
        let chosen = match decision {
            Decision::Send { subflow, what: What::New { .. }, .. } => Some(subflow),
            _ => None,
        };
        for (at, lane) in (0..).zip(&self.lanes) {
            let mut lane = lock(lane);
            lane.closed = decision != Decision::Idle && chosen != Some(SubflowId(at));
        }
        chosen
    }

    /// Passes acknowledgements and losses on to the scheduler. noq does not say which data was lost.
    fn take_news(&mut self, conn: &Connection, now: Instant) {
        let needs = self.scheduler.needs();
        for (at, lane) in (0..).zip(&self.lanes) {
            while let Some((bytes, rtt)) = Lane::next_news(lane) {
                let (subflow, bytes) = (SubflowId(at), self.paths.payload(bytes));
                let old = self.paths.connection.snd_una;
                let new = old.saturating_add(bytes);
                self.paths.connection.snd_una = new;
                self.paths.end += if rtt.is_none() { bytes } else { 0 };
                self.paths.refresh(conn, &self.lanes, SubflowSet::EMPTY);
                let view = self.paths.view(now);
                let fate = match rtt {
                    Some(_) => Notice::Acked { subflow, bytes, rtt, bandwidth: 0 },
                    None => Notice::Lost { subflow, range: DataRange::with_len(old, bytes) },
                };
                let data_ack = Notice::DataAck { old, new, edge: None };
                if needs.acks {
                    self.scheduler.on_notice(&view, fate);
                }
                if needs.data_acks {
                    self.scheduler.on_notice(&view, data_ack);
                }
            }
        }
    }
}
