//! slot: each segment goes where it arrives first, and a slower path takes the data that arrives with
//! it in order.

mod backlog;
mod burst;
mod copies;
mod estimate;
mod flights;
mod loss;
mod params;
mod paths;
mod rate;
mod saved;
mod way;

use crate::rules::{self, Task};
use crate::state;
use crate::{
    About, CaState, ConnectionView, Decision, Entry, Needs, Notice, Outcome, Params, Reason,
    Scheduler, View, What, WhenFull,
};
use alloc::boxed::Box;
use backlog::Backlog;
use burst::Burst;
use estimate::{Estimate, Rules, time_for};
use flights::{Flight, Flights};
use loss::LossShare;
use params::{
    BACKLOG, BURST, CAP, COPIES, DOUBT, EAGER, GROWTH, HEDGE, LATE, LOST, MAIN_CAP, PASSED,
    PATIENT, PROBE, QUEUED, REPAIR, RISK, ROUND, SIDE_CAP,
};
use paths::{Paths, Work};
use plait_base::{DataRange, Dsn, Span, SubflowId, Time};
use rate::{RateFilter, Step};
use way::Retransmission;

/// The scheduler's entry in the registry.
pub(crate) const ENTRY: Entry = Entry {
    about: About {
    name: "slot",
    aliases: &[],
    idea: "send each segment where it arrives first, and give slower paths the data that arrives with it in order",
    page: "\
For each path, slot predicts when a segment sent now would arrive:

    arrival = min_rtt / 2 + queue
    queue   = max(0, (inflight + queued + segment) / rate - min_rtt)

A path that was idle has no queue. In the first round trip after that, the queue is the data sent since then, less
the data that has left at the rate (`backlog`). If this data fills the window, the next segment leaves with the
first acknowledgement. The queue is at least the wait that the latest RTT sample shows, if the path was not
idle after that sample. Before the first rate sample the queue is srtt - min_rtt.

The rate is the largest of the last two intervals of max(5 * srtt, 300 ms). A sample is taken from a run of up
to 16 steps if the link set its pace: the segments left at least twice as fast as they were acknowledged, or
all of them waited in a queue. A step is an acknowledgement, or all those of min(srtt / 16, 0.5 ms), because
hosts and links pass acknowledgements on in bursts. A sample of more than twice the rate counts only if a
later run gives such a sample too. The 40 ms by which a receiver delays the acknowledgement of a lone segment
are no pace of the link. If all segments of a round trip waited in a queue, a rate of more than 1.25 times
their own falls to theirs (`round`). If the controller has found the bandwidth (bbr), that is the rate. If an
acknowledgement is overdue, the delay counts too, except for those 40 ms.

Its sender spreads bursts that no acknowledgement clocks (`--pacing bursts`). After a stall of the window,
a whole window at once would overrun the queue of a path.

The main path is the one with the largest rate. A path without a rate is tried if it has carried the
connection alone, or has delivered ten segments. An untried path is the main one only if all are untried.
slot takes the paths in the order of arrival. For a path that is not the first, it computes how much the
paths before it deliver until the segment arrives, and sends the data behind that. A path takes no more than
its window, and no more than its rate needs.
On the main path that is `main_cap` percent of rate * (min_rtt + 2 * v) and a few segments, and on each
other path `side_cap` percent of rate * (min_rtt + v) and a few segments, with v = min(rttvar, min_rtt / 2).

New data goes to another path than the main one only if that is worth its risk. A loss there delays all data
until it is repaired, less the time for which the window and the unsent data keep the main path busy.
The time that a segment saves must be at least `risk` percent of this delay, times the share of lost data.
It saves the difference of the arrivals, or the time of its transmission on the main path. If data waits
for the window or the send buffer, a loss stops all of it, so only the time of the transmission counts.
An untried path carries only copies (`probe`). If paths are remembered, slot begins with the rate of an earlier
connection. Its first own sample replaces that rate.

A receiver passes the data of a subflow on in the order of the subflow. So data behind a loss arrives with the
repair, and a copy on another path may be sooner (`repair`). Data that its subflow has acknowledged, with all
data before it, needs no copy (`passed`).
A segment is late if its acknowledgement is `late` ms overdue, or if its subflow counts it as lost. slot
copies a late segment to the path where it arrives first. It waits with the copy (`patient`) if the
segment's own path still makes progress, and the unsent data within the window keeps the paths busy
until that path has repaired the loss. It also waits if the retransmission arrives sooner.
If slot can place nothing new, a copy takes no other data's place. It then copies segments that another path
would deliver sooner. If all the data at hand is sent, it also copies those whose acknowledgement is overdue by
the RTT variation (`eager`), and each path with room copies the first data that it has not carried (`hedge`).

On a fast path one decision holds for all the segments that leave within 0.1 ms (`burst`), so that a host can send
them at once. It ends with the next acknowledgement.

Numbers  arrival_ms and rate_mbit of each path, ahead_segments (the data left to the paths before it).
Paper    none; the rule is plait's own.
Good at  paths with very different rates or RTTs, streams, and small windows.
Bad at   jitter of half the RTT or more, and windows below the bandwidth-delay product of the main path.
         Copies cost about a fifth of the data, and as much again as a stream that fits one path.
",
    params: &[
        CAP, MAIN_CAP, SIDE_CAP, COPIES, LATE, LOST, PATIENT, EAGER, HEDGE, QUEUED, GROWTH, DOUBT, RISK, PROBE,
        BURST, BACKLOG, ROUND, PASSED, REPAIR,
    ],
    state: saved::NAMES,
    },
    queues_ahead: false,
    spreads_bursts: true,
    build: |params| Box::new(Slot::new(params)),
};

/// Least wait in a queue by which an RTT shows that the link sets the pace.
const MIN_QUEUE: Span = Span::from_millis(2);

/// What the scheduler has learnt of one path.
#[derive(Clone, Copy, Default, Debug)]
struct Lane {
    rate: RateFilter,
    losses: LossShare,
    /// Latest progress: an acknowledgement, or a round trip after the first segment of an idle path.
    progress: Time,
    /// Minimum RTT that an earlier connection has measured; zero if there is none.
    min_rtt: Span,
    /// Whether it has carried the connection alone.
    proven: bool,
    backlog: Backlog,
    /// When it was last idle.
    started: Time,
}

/// The scheduler.
#[derive(Debug)]
struct Slot {
    rules: Rules,
    copies: bool,
    lost: bool,
    hedge: bool,
    queued: bool,
    passed: bool,
    repair: bool,
    lanes: [Lane; SubflowId::MAX],
    flights: Flights,
    /// The latest decision for more than one segment.
    burst: Option<Burst>,
}

impl Slot {
    fn new(params: &Params) -> Slot {
        let rules = Rules {
            cap: params.switch(&CAP),
            main_percent: params.whole(&MAIN_CAP),
            side_percent: params.whole(&SIDE_CAP),
            late: Span::from_millis(params.whole(&LATE)),
            growth: params.switch(&GROWTH),
            doubt: params.switch(&DOUBT),
            risk_percent: params.whole(&RISK),
            probe: params.switch(&PROBE),
            patient: params.switch(&PATIENT),
            eager: params.switch(&EAGER),
            burst: Span::from_micros(params.whole(&BURST)),
            backlog: params.switch(&BACKLOG),
            round: params.switch(&ROUND),
        };
        Slot {
            rules,
            copies: params.switch(&COPIES),
            lost: params.switch(&LOST),
            hedge: params.switch(&HEDGE),
            queued: params.switch(&QUEUED),
            passed: params.switch(&PASSED),
            repair: params.switch(&REPAIR),
            lanes: [Lane::default(); SubflowId::MAX],
            flights: Flights::default(),
            burst: None,
        }
    }

    /// Estimates the candidates, in the places of `list`.
    fn paths<'p, 'a>(
        &self,
        view: &View<'a>,
        list: &'p mut [Option<Estimate<'a>>],
    ) -> Paths<'p, 'a> {
        let ConnectionView { snd_una, snd_nxt, wnd_end, unsent, .. } = view.connection;
        let to_window_end = |from: Dsn| wnd_end.get().saturating_sub(from.get());
        let at_hand = unsent.min(to_window_end(snd_nxt));
        let limited = unsent > at_hand || view.connection.sndbuf_free < rules::segment_len(view);
        let work = Work { window: to_window_end(snd_una), unsent, at_hand, limited };
        Paths::new(list, view, &self.lanes, self.rules, work)
    }

    /// Notes on its path a segment that is about to be sent. Returns what is known of it.
    fn note(&mut self, view: &View<'_>, path: &Estimate<'_>, range: DataRange) -> Flight {
        self.end_burst(view);
        let (subflow, arrives) = (path.view.id, view.now + path.arrives_in(range.len()));
        let backlog = &mut self.lanes[subflow.index()].backlog;
        backlog.on_sent(view.now, range.len(), path.rate, path.is_empty());
        self.note_start(view, subflow);
        Flight::new(range, subflow, arrives)
    }

    /// Notes the sent segments that have no prediction. A lone subflow needs none, so its segments are
    /// noted when a second one begins.
    fn catch_up(&mut self, view: &View<'_>) {
        let mut list = [None; SubflowId::MAX];
        let paths = self.paths(view, &mut list);
        let ConnectionView { snd_una, snd_nxt, .. } = view.connection;
        let mss = rules::segment_len(view);
        let mut from = self.flights.end().max(snd_una);
        while from < snd_nxt && !self.flights.is_full() {
            let Some(sent) = view.queue.sent_from(from) else { return };
            let start = sent.range.start.max(from);
            let range = DataRange::new(start, sent.range.end.min(start.saturating_add(mss)));
            let path = paths.iter().find(|it| it.view.id == sent.first);
            let held = range.end.get().saturating_sub(snd_una.get());
            let wait = path.map(|it| it.arrives_behind(held.min(it.view.inflight)));
            let arrives = view.now + wait.unwrap_or_default();
            self.flights.sent(Flight::new(range, sent.first, arrives));
            from = range.end;
        }
    }

    /// Notes that a subflow starts to be busy, if it was idle.
    fn note_start(&mut self, view: &View<'_>, subflow: SubflowId) {
        if let Some(idle) = view.subflow(subflow).filter(|it| it.inflight == 0) {
            let lane = &mut self.lanes[subflow.index()];
            lane.progress = view.now + idle.srtt.unwrap_or_default();
            lane.started = view.now;
        }
    }

    /// Notes a decision of the shared rules.
    fn settled(&mut self, view: &View<'_>, decision: Decision) -> Decision {
        if let Decision::Send { subflow, .. } = decision {
            self.note_start(view, subflow);
        }
        decision
    }

    /// Chooses the path for the task, or a copy.
    fn choose(
        &mut self,
        view: &View<'_>,
        paths: &Paths<'_, '_>,
        task: Task,
        out: &mut Outcome,
    ) -> Decision {
        if out.explain {
            paths.explain(out);
        }
        if self.copies
            && view.connection.reinject.is_none()
            && let Some(decision) = self.late(view, paths)
        {
            return decision;
        }
        let segment = match task {
            Task::Settled(Decision::Idle) if self.hedge => {
                return self.hedge(view, paths).unwrap_or(Decision::Idle);
            }
            Task::Settled(decision) => return self.settled(view, decision),
            Task::Place(segment) => segment,
        };
        if let Some(decision) = self.place(view, paths, segment, out) {
            return decision;
        }
        let copy = if self.copies { self.stalled(view, paths) } else { None };
        let copy = copy.or_else(|| self.probe(view, paths));
        copy.unwrap_or_else(|| match segment.end > view.connection.wnd_end && !is_full(view) {
            true => Decision::Wait { on: None, reason: Reason::SendWindow },
            false => rules::none_usable(view),
        })
    }

    /// Sends the first new data that a path can take in order. Returns `None` if there is none.
    fn place(
        &mut self,
        view: &View<'_>,
        paths: &Paths<'_, '_>,
        segment: DataRange,
        out: &mut Outcome,
    ) -> Option<Decision> {
        let (mss, unsent) = (rules::segment_len(view), view.connection.unsent);
        let placed = (0..paths.len()).find_map(|at| {
            let (path, ahead) = paths.taking(at, view, segment.len())?;
            let offset = if ahead < mss { 0 } else { ahead / mss * mss };
            let range = match offset {
                0 => Some(segment),
                _ if offset >= unsent => None,
                _ => view.queue.unsent_at(offset, mss.min(unsent - offset)),
            };
            let range = range.filter(|it| it.end <= view.connection.wnd_end)?;
            Some((path, offset, range))
        });
        let (path, offset, range) = placed?;
        let flight = self.note(view, path, range);
        self.flights.sent(flight);
        if out.explain {
            out.note("ahead_segments", Some(path.view.id), (offset / mss) as f64);
        }
        if offset == 0
            && range.len() == mss
            && let Some(len) = paths.burst(path)
            && let Some(decision) = self.begin_burst(view, path, len)
        {
            return Some(decision);
        }
        let reason = if offset == 0 { Reason::EarliestArrival } else { Reason::AheadByGap };
        let (what, grant) = (What::New { offset }, range.len());
        Some(Decision::Send { subflow: path.view.id, what, grant, reason })
    }

    /// Returns the time that a retransmission of `len` bytes takes on a subflow, if data behind it waits for it.
    fn repair(&self, view: &View<'_>, subflow: SubflowId, len: u64) -> Option<Retransmission> {
        if !self.repair {
            return None;
        }
        let mut list = [None; SubflowId::MAX];
        let paths = self.paths(view, &mut list);
        let path = paths.iter().find(|it| it.view.id == subflow)?;
        Some(Retransmission { arrival: path.arrives_in(len), duration: time_for(len, path.pace) })
    }

    /// Takes in an acknowledgement.
    fn on_acked(&mut self, view: &View<'_>, subflow: SubflowId, bytes: u64, rtt: Option<Span>) {
        let lane = &mut self.lanes[subflow.index()];
        lane.progress = view.now;
        lane.losses.on_acked(bytes);
        lane.proven |= view.subflows.len() == 1;
        let open = view.subflow(subflow).filter(|it| it.ca == CaState::Open);
        let Some((path, srtt, rtt)) = open.and_then(|it| Some((it, it.srtt?, rtt?))) else {
            return lane.rate.break_run();
        };
        let mss = rules::segment_len(view);
        let least = path.min_rtt.unwrap_or(srtt);
        let waited = rtt.minus(least);
        let queued = self.queued
            && path.inflight >= 2 * mss
            && waited >= path.rttvar.times(2).max(least.over(4)).max(MIN_QUEUE);
        let sent = Time::from_nanos(view.now.as_nanos().saturating_sub(rtt.as_nanos()));
        let step = Step { at: view.now, sent, bytes, queued };
        lane.rate.on_acked(step, mss, srtt);
        if self.rules.round {
            lane.rate.on_round(step, mss, srtt);
        }
    }
}

/// Returns true if no subflow can take the next segment. None can take a copy then.
fn is_full(view: &View<'_>) -> bool {
    !view.subflows.iter().any(|it| it.usable(view.next_len(), view.tsq))
}

impl Scheduler for Slot {
    fn needs(&self) -> Needs {
        Needs { data_acks: true, acks: true, when_full: WhenFull::Never, pacing_rate: false }
    }

    fn schedule(&mut self, view: &View<'_>, out: &mut Outcome) -> Decision {
        let task = rules::task(view);
        if let Some(decision) = self.burst.and_then(|it| it.next(view, task)) {
            if out.explain {
                self.paths(view, &mut [None; SubflowId::MAX]).explain(out);
            }
            return decision;
        }
        if view.subflows.len() < 2
            && let Task::Settled(decision) = task
        {
            return self.settled(view, decision);
        }
        // Most connections have two paths. Eight places would cost a third of the decision.
        match view.subflows.len() {
            0..=2 => self.choose(view, &self.paths(view, &mut [None; 2]), task, out),
            _ => self.choose(view, &self.paths(view, &mut [None; SubflowId::MAX]), task, out),
        }
    }

    fn on_notice(&mut self, view: &View<'_>, notice: Notice) {
        state::forget(notice, &mut self.lanes);
        state::forget(notice, &mut self.flights.ways);
        self.end_burst(view);
        match notice {
            Notice::DataAck { new, .. } => self.flights.acked(new),
            Notice::Lost { subflow, range } => {
                self.lanes[subflow.index()].losses.on_lost(range.len());
                if self.lost {
                    let repair = self.repair(view, subflow, range.len());
                    self.flights.lost(view.now, range, subflow, repair);
                }
            }
            Notice::Acked { subflow, bytes, rtt, bandwidth, first_unacked } => {
                if self.passed {
                    self.flights.passed_on(subflow, first_unacked);
                }
                self.on_acked(view, subflow, bytes, rtt);
                if bandwidth > 0 {
                    self.lanes[subflow.index()].rate.follow(view.now, bandwidth);
                }
            }
            Notice::Remembered { subflow, rate, min_rtt } => {
                let lane = &mut self.lanes[subflow.index()];
                lane.rate.recall(view.now, rate);
                lane.min_rtt = min_rtt;
            }
            Notice::SubflowsChanged { began: Some(_), .. } if view.subflows.len() > 1 => {
                self.catch_up(view);
            }
            _ => {}
        }
    }

    fn save_state(&self, write: &mut dyn FnMut(&str, f64)) {
        saved::save(&self.lanes, &self.flights, write);
        Burst::save(self.burst.as_ref(), write);
    }

    fn load_state(&mut self, name: &str, value: f64) -> bool {
        Burst::load(&mut self.burst, name, value)
            || saved::load(&mut self.lanes, &mut self.flights, name, value).is_some()
    }
}
