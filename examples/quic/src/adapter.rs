//! plait's schedulers in noq: a view of the paths for the scheduler, and its decision for the gates.

use crate::gate::{Gates, Seen, span};
use noq_proto::{Connection, PathId, Transmit};
use plait_base::{DataRange, Dsn, SubflowId, SubflowSet, Time};
use plait_sched::{
    ConnectionView, Decision, Effect, Notice, Outcome, Scheduler, Spec, SpecError, StaticQueue,
    SubflowView, Unacked, View, What,
};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of a packet beside the data: header, tag, and the fields of a STREAM frame.
const OVERHEAD: u64 = 34;

/// A scheduler of plait for the data of one connection. Sizes and sequence numbers count bytes of packets, as the
/// windows of noq do.
pub struct Adapter {
    scheduler: Box<dyn Scheduler>,
    gates: Arc<Gates>,
    connection: ConnectionView,
    window: u64,
    /// End of the data, lost data included.
    end: u64,
    out: Outcome,
}

impl Adapter {
    /// Creates an adapter for the connection of these gates, whose peer lets `window` bytes be in flight.
    ///
    /// # Errors
    /// Returns an error if there is no such scheduler.
    pub fn new(scheduler: &str, gates: Arc<Gates>, window: u64) -> Result<Adapter, SpecError> {
        let scheduler = Spec::parse(scheduler)?.build();
        let connection = ConnectionView { mss: gates.mtu.into(), ..ConnectionView::default() };
        Ok(Adapter { scheduler, gates, connection, window, end: 0, out: Outcome::default() })
    }

    /// Begins to schedule. The application writes `bytes`.
    pub fn offer(&mut self, conn: &Connection, now: Instant, bytes: u64) {
        let payload = u64::from(self.connection.mss) - OVERHEAD;
        self.end += bytes + bytes.div_ceil(payload) * OVERHEAD;
        let live = self.gates.count();
        for id in live.iter() {
            self.notify(conn, now, Notice::SubflowsChanged { live, began: Some(id) });
        }
    }

    /// Returns the next packet, as [`Connection::poll_transmit`] does.
    pub fn poll_transmit(
        &mut self,
        conn: &mut Connection,
        now: Instant,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.pass_news_on(conn, now);
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
    fn choose(&mut self, conn: &Connection, now: Instant, busy: SubflowSet) -> Option<SubflowId> {
        self.out.clear();
        let decision = self.ask(conn, now, busy, |it, view, out| it.schedule(view, out));
        // noq sends data in its own order, so an offset has no meaning, and copies are impossible.
        let chosen = match decision {
            Decision::Send { subflow, what: What::New { .. }, .. } => Some(subflow),
            _ => None,
        };
        let paths = &mut self.gates.paths().seen;
        for effect in &self.out.effects {
            if let Effect::Cap { subflow, bytes } = *effect {
                paths[subflow.index()].view.cap = bytes.unwrap_or(u64::MAX);
            }
        }
        for path in paths {
            path.closed = decision != Decision::Idle && chosen != Some(path.view.id);
        }
        chosen
    }

    /// Passes acknowledgements and losses on to the scheduler. noq does not say which data was lost or acknowledged.
    fn pass_news_on(&mut self, conn: &Connection, now: Instant) {
        while let Some((subflow, bytes, rtt)) = self.gates.next_news() {
            let new = self.connection.snd_una.saturating_add(bytes);
            let old = std::mem::replace(&mut self.connection.snd_una, new);
            let first_unacked = Some(Unacked { dsn: old, pair_at: Time::ZERO });
            let fate = if rtt.is_some() {
                Notice::Acked { subflow, bytes, rtt, bandwidth: 0, first_unacked }
            } else {
                self.end += bytes;
                Notice::Lost { subflow, range: DataRange::with_len(old, bytes) }
            };
            if self.scheduler.needs().acks {
                self.notify(conn, now, fate);
            }
            if self.scheduler.needs().data_acks {
                self.notify(conn, now, Notice::DataAck { old, new, edge: None });
            }
        }
    }

    fn notify(&mut self, conn: &Connection, now: Instant, notice: Notice) {
        self.ask(conn, now, SubflowSet::EMPTY, |it, view, _| it.on_notice(view, notice));
    }

    /// Calls the scheduler with the state of all paths. The pacer holds the `busy` ones back.
    fn ask<T>(
        &mut self,
        conn: &Connection,
        now: Instant,
        busy: SubflowSet,
        call: impl FnOnce(&mut dyn Scheduler, &View<'_>, &mut Outcome) -> T,
    ) -> T {
        let paths = self.gates.paths();
        let sent = paths.seen.iter().map(|path| path.sent).sum();
        let subflows = paths.seen.iter().filter_map(|Seen { view, .. }| {
            let path = PathId::ZERO.saturating_add(view.id.0);
            let metrics = conn.congestion_state(path)?.metrics();
            let srtt = conn.rtt(path).map(span);
            Some(SubflowView {
                cwnd: metrics.congestion_window,
                ssthresh: metrics.ssthresh.filter(|it| *it < u64::MAX),
                srtt,
                min_rtt: view.min_rtt.or(srtt),
                tsq_blocked: busy.contains(view.id),
                ..*view
            })
        });
        let subflows: Vec<SubflowView> = subflows.collect();
        let connection = &mut self.connection;
        connection.snd_nxt = Dsn::new(sent);
        connection.wnd_end = connection.snd_una.saturating_add(self.window);
        connection.unsent = self.end.saturating_sub(sent);
        let queue = StaticQueue::fresh(DataRange::between(sent, self.end.max(sent)));
        let now = Time::ZERO + span(now.saturating_duration_since(self.gates.epoch));
        let (tsq, connection) = (true, *connection);
        let view = View { now, tsq, connection, subflows: &subflows, queue: &queue };
        call(&mut *self.scheduler, &view, &mut self.out)
    }
}
