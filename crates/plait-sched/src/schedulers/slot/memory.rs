//! What slot remembers: its paths, the segments on their way, and the latest burst.

use super::backlog::Backlog;
use super::burst::Burst;
use super::estimate::{Estimate, Rules, time_for};
use super::flights::{Flight, Flights};
use super::loss::LossShare;
use super::paths::{Estimates, Paths, Work};
use super::rate::{MAX_HELD_BACK, RateFilter, Step};
use super::spare::{Busy, Spare};
use super::way::Retransmission;
use crate::rules::segment_len;
use crate::{CaState, ConnectionView, Decision, SubflowView, Unacked, View, What};
use plait_base::{DataRange, Dsn, Span, SubflowId, Time};

/// Least wait in a queue by which an RTT shows that the link sets the pace.
const MIN_QUEUE: Span = Span::from_millis(2);

/// What the scheduler has learnt of one path.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Lane {
    pub(super) rate: RateFilter,
    pub(super) losses: LossShare,
    /// Latest progress: an acknowledgement, or a round trip after the first segment of an idle path.
    pub(super) progress: Time,
    /// When its next acknowledgement should come: a round trip after its two oldest segments were sent, or after a
    /// segment that followed a lone one.
    pub(super) expects: Time,
    /// Minimum RTT that an earlier connection has measured; zero if there is none.
    pub(super) min_rtt: Span,
    /// Whether it has carried the connection alone.
    pub(super) proven: bool,
    pub(super) backlog: Backlog,
    /// When it was last idle.
    pub(super) started: Time,
    /// Time for which the receiver may have held the latest acknowledgement back.
    pub(super) held: Span,
    pub(super) spare: Spare,
}

impl Lane {
    /// Notes that its subflow starts to be busy, if it was idle.
    pub(super) fn note_start(&mut self, now: Time, subflow: &SubflowView) {
        if subflow.inflight == 0 {
            self.progress = now + subflow.srtt.unwrap_or_default();
            self.started = now;
        }
    }

    /// Notes that its subflow sends more. If one segment is in flight, the receiver may delay its acknowledgement until
    /// the next segment arrives.
    fn note_next(&mut self, now: Time, subflow: &SubflowView) {
        if subflow.inflight < 2 * u64::from(subflow.mss) {
            self.expects = self.expects.max(now + subflow.srtt.unwrap_or_default());
        }
    }
}

/// All that changes from one decision to the next.
#[derive(Default, Debug)]
pub(super) struct Memory {
    pub(super) lanes: [Lane; SubflowId::MAX],
    pub(super) flights: Flights,
    pub(super) busy: Busy,
    /// The latest decision for more than one segment.
    pub(super) burst: Option<Burst>,
}

impl Memory {
    /// Returns the candidates of the view, in `list`.
    #[inline(always)]
    pub(super) fn paths<'p, 'a>(
        &self,
        rules: &'p Rules,
        view: &View<'a>,
        list: &'p mut Estimates<'a>,
    ) -> Paths<'p, 'a> {
        let ConnectionView { snd_una, snd_nxt, wnd_end, unsent, .. } = view.connection;
        let to_window_end = |from: Dsn| wnd_end.get().saturating_sub(from.get());
        let at_hand = unsent.min(to_window_end(snd_nxt));
        let full = view.connection.sndbuf_free < segment_len(view);
        let limited = unsent > at_hand || full;
        let window = to_window_end(snd_una);
        // A stack without a send buffer has a size of zero.
        let room = match view.connection.sndbuf {
            0 => window,
            size => window.min(size),
        };
        let work = Work { window, room, unsent, at_hand, limited, full };
        Paths::new(list, view, &self.lanes, rules, work)
    }

    /// Notes that a path is about to send `len` bytes. Returns when they should arrive.
    #[inline(always)]
    pub(super) fn note(&mut self, view: &View<'_>, path: &Estimate<'_>, len: u64) -> Time {
        self.end_burst(view);
        if self.flights.is_empty() {
            self.busy.on_start(view.now);
        }
        let lane = &mut self.lanes[path.view.id.index()];
        lane.backlog.on_sent(view.now, len, path.rate, path.is_empty());
        lane.note_start(view.now, path.view);
        lane.note_next(view.now, path.view);
        lane.spare.sent += len;
        view.now + path.arrives_in(len)
    }

    /// Notes the sent segments that have no prediction. A lone subflow needs none, so its segments are
    /// noted when a second one begins.
    pub(super) fn catch_up(&mut self, rules: &Rules, view: &View<'_>) {
        let mut list = Estimates::new();
        let paths = self.paths(rules, view, &mut list);
        let ConnectionView { snd_una, snd_nxt, .. } = view.connection;
        let mss = segment_len(view);
        self.busy.on_start(view.now);
        let mut from = self.flights.end().max(snd_una);
        while from < snd_nxt && !self.flights.is_full() {
            let Some(sent) = view.queue.sent_from(from) else { return };
            let start = sent.range.start.max(from);
            let range = DataRange::new(start, sent.range.end.min(start.saturating_add(mss)));
            let path = paths.iter().find(|it| it.view.id == sent.first);
            let held = range.end.get().saturating_sub(snd_una.get());
            let wait = path.map(|it| it.arrives_behind(held.min(it.view.inflight)));
            let arrives = view.now + wait.unwrap_or_default();
            let position = self.lanes[sent.first.index()].spare.sent;
            self.flights.sent(range, (sent.first, position), arrives);
            from = range.end;
        }
    }

    /// Notes a decision of the shared rules.
    pub(super) fn settled(&mut self, view: &View<'_>, decision: Decision) -> Decision {
        if let Decision::Send { subflow, what, grant, .. } = decision
            && let Some(it) = view.subflow(subflow)
        {
            let lane = &mut self.lanes[subflow.index()];
            lane.note_start(view.now, it);
            // New data of a lone subflow is not counted, because one decision may hold for many segments.
            // So copies of such data show no use.
            if what == What::Reinject {
                lane.spare.sent += grant;
            }
        }
        decision
    }

    /// Returns the time that a retransmission of `len` bytes takes on a subflow, if data behind it waits for it.
    pub(super) fn repair(
        &self,
        rules: &Rules,
        view: &View<'_>,
        subflow: SubflowId,
        len: u64,
    ) -> Option<Retransmission> {
        if !rules.copying.repair {
            return None;
        }
        let mut list = Estimates::new();
        let paths = self.paths(rules, view, &mut list);
        let path = paths.iter().find(|it| it.view.id == subflow)?;
        Some(Retransmission { arrival: path.arrives_in(len), duration: time_for(len, path.pace) })
    }

    /// Takes in a DATA_ACK up to `edge`.
    pub(super) fn on_data_acked(&mut self, view: &View<'_>, edge: Dsn) {
        let Memory { lanes, flights, busy, .. } = self;
        if busy.on_acked(view.now) {
            lanes.iter_mut().for_each(|it| it.spare.saved = it.spare.saved.over(2));
        }
        let way_back = |id| {
            let rtt = view.subflow(id).and_then(|it| it.min_rtt.or(it.srtt));
            rtt.unwrap_or_default().over(2)
        };
        flights.acked(edge, |flight, copy| {
            let Flight { subflow, position, arrives, .. } = *flight;
            if let (Some(lane), Some(path)) =
                (lanes.get_mut(subflow.index()), view.subflow(subflow))
            {
                let due = arrives + way_back(subflow);
                lane.spare.on_data_acked(path, position, copy, due);
            }
        });
        for path in view.subflows {
            if let Some(lane) = lanes.get_mut(path.id.index()) {
                let later = |copy| way_back(path.id).minus(way_back(copy));
                lane.spare.on_edge(edge, view.now, later);
            }
        }
    }

    /// Notes that a subflow counts `bytes` as lost.
    pub(super) fn on_lost(
        &mut self,
        rules: &Rules,
        view: &View<'_>,
        subflow: SubflowId,
        bytes: u64,
    ) {
        let once = view.subflow(subflow).filter(|_| rules.learning.once);
        let repair = once.and_then(|it| it.srtt).unwrap_or_default();
        self.lanes[subflow.index()].losses.on_lost(view.now, repair, bytes);
    }

    /// Notes the oldest segment of a subflow that is not acknowledged.
    pub(super) fn expect(&mut self, view: &View<'_>, subflow: SubflowId, first: Option<Unacked>) {
        let srtt = view.subflow(subflow).and_then(|it| it.srtt).unwrap_or_default();
        self.lanes[subflow.index()].expects = first.map_or(Time::ZERO, |it| it.pair_at + srtt);
    }

    /// Takes in an acknowledgement.
    pub(super) fn on_acked(
        &mut self,
        rules: &Rules,
        view: &View<'_>,
        subflow: SubflowId,
        bytes: u64,
        rtt: Option<Span>,
    ) {
        let lane = &mut self.lanes[subflow.index()];
        // Only the acknowledgement of a lone segment waits, and it follows the one before it.
        let mss = segment_len(view);
        let silence = view.now.since(lane.progress);
        let held = if bytes < 2 * mss { silence.min(MAX_HELD_BACK) } else { Span::ZERO };
        lane.held = if rules.learning.held { held } else { Span::ZERO };
        lane.progress = view.now;
        lane.losses.on_acked(bytes);
        lane.proven |= view.subflows.len() == 1;
        if let Some(path) = view.subflow(subflow)
            && let Some((copy, saved)) = lane.spare.on_acked(path, view.now, lane.expects, held)
        {
            self.lanes[copy.index()].spare.saved += saved;
        }
        let lane = &mut self.lanes[subflow.index()];
        let open = view.subflow(subflow).filter(|it| it.ca == CaState::Open);
        let Some((path, srtt, rtt)) = open.and_then(|it| Some((it, it.srtt?, rtt?))) else {
            return lane.rate.break_run();
        };
        let least = path.min_rtt.unwrap_or(srtt);
        let waited = rtt.minus(least).minus(lane.held);
        // A queue that lasts less long than the silence before it was empty in between.
        let queued = rules.learning.queued
            && path.inflight >= 2 * mss
            && waited >= silence
            && waited >= path.rttvar.times(2).max(least.over(4)).max(MIN_QUEUE);
        let sent = Time::from_nanos(view.now.as_nanos().saturating_sub(rtt.as_nanos()));
        let step = Step { at: view.now, sent, bytes, queued };
        lane.rate.on_acked(step, mss, srtt);
        if rules.learning.round {
            lane.rate.on_round(step, mss, srtt);
        }
    }
}
