//! Collects the data of a run for the page.

use super::marks::{MarkKind, Marks};
use super::series::{BINS, Grid, Sum, Track};
use crate::recorder::LOOK;
use crate::words::drop_word;
use plait_app::{AppEvent, Role};
use plait_base::{DataRange, DataRangeSet, Dsn, PathId, Span, SubflowId, Time};
use plait_core::{Block, Carry, Event};
use plait_sched::Reason;
use plait_sim::{Direction, Hop, Snapshot, Watch, Who};
use plait_wire::{Payload, Segment};
use std::collections::BTreeMap;

/// Greatest number of incidents kept; further ones are only counted.
const INCIDENTS: usize = 1_500;

/// The causes that block a sender, in the order of the drawing.
pub(super) const BLOCKS: [Block; 5] = [
    Block::ReceiveWindow,
    Block::SendBuffer,
    Block::Scheduler,
    Block::CongestionWindow,
    Block::NoSubflow,
];

/// One path over time, seen from the sender.
#[derive(Clone, Default, Debug)]
pub(super) struct PathTracks {
    pub(super) sent: Sum,
    pub(super) cwnd: Track,
    pub(super) inflight: Track,
    pub(super) srtt_us: Track,
    pub(super) queue: Track,
    pub(super) lost: Sum,
    pub(super) lost_acks: Sum,
    /// When the path was down.
    pub(super) outages: Vec<(Time, Time)>,
    /// Packets dropped by cause, both ways.
    pub(super) drops: BTreeMap<&'static str, u64>,
    pub(super) timeouts: u64,
    pub(super) idle_resets: u64,
}

/// The life of a subflow, seen from the sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) subflow: SubflowId,
    pub(super) path: PathId,
    pub(super) up: Time,
    pub(super) down: Option<Time>,
    /// Payload bytes: new, retransmitted, reinjected from another subflow.
    pub(super) new: u64,
    pub(super) again: u64,
    pub(super) copied: u64,
    pub(super) timeouts: u64,
    pub(super) cwnd: Option<u64>,
    pub(super) srtt: Option<Span>,
}

impl Life {
    fn new(subflow: SubflowId, path: PathId, up: Time) -> Life {
        Life {
            subflow,
            path,
            up,
            down: None,
            new: 0,
            again: 0,
            copied: 0,
            timeouts: 0,
            cwnd: None,
            srtt: None,
        }
    }
}

/// A subflow at one end.
#[derive(Clone, Copy, Debug)]
struct Flow {
    path: PathId,
    /// Index into the lives.
    life: usize,
    /// `None` until the first event that has the window.
    cwnd: Option<u64>,
    inflight: u64,
}

/// A rare event on a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incident {
    pub(super) at: Time,
    pub(super) path: PathId,
    pub(super) what: &'static str,
}

/// The first incidents of a run.
#[derive(Default, Debug)]
pub(super) struct Incidents {
    pub(super) list: Vec<Incident>,
    /// Number of further ones.
    pub(super) left_out: u64,
}

/// The data held by the receiver.
#[derive(Clone, Default, Debug)]
struct Receiver {
    /// First byte that is not readable.
    frontier: Dsn,
    /// Data received beyond it.
    held: DataRangeSet,
    /// When `held` last changed.
    changed: Time,
}

/// The present state of both ends.
#[derive(Default, Debug)]
struct Present {
    /// The subflows at the sender.
    sending: [Option<Flow>; SubflowId::MAX],
    /// The path of each subflow at the receiver.
    receiving: [Option<PathId>; SubflowId::MAX],
    receiver: Receiver,
    /// What blocks the sender, as an index into [`BLOCKS`], and since when.
    stalled: Option<(usize, Time)>,
}

/// The observer.
pub struct Collector {
    sender: Role,
    pub(super) grid: Grid,
    /// True if the workload began with a warm-up, which is not drawn.
    warmed: bool,
    /// First drawn byte of data.
    pub(super) base: Dsn,
    pub(super) paths: Vec<PathTracks>,
    pub(super) marks: Marks,
    pub(super) readable: Track,
    pub(super) held: Track,
    pub(super) blocked: [Sum; BLOCKS.len()],
    pub(super) incidents: Incidents,
    /// All subflows, in the order of their start.
    pub(super) lives: Vec<Life>,
    /// How often the scheduler gave each reason for each path.
    pub(super) decisions: BTreeMap<(Option<PathId>, Reason), u64>,
    present: Present,
    pub(super) last: Time,
}

impl Collector {
    /// Creates an observer of a run over paths with these outages.
    #[must_use]
    pub fn new(sender: Role, outages: Vec<Vec<(Time, Time)>>) -> Collector {
        let path = |outages| PathTracks { outages, ..PathTracks::default() };
        Collector {
            sender,
            grid: Grid::new(Time::ZERO),
            warmed: false,
            base: Dsn::ZERO,
            paths: outages.into_iter().map(path).collect(),
            marks: Marks::default(),
            readable: Track::starting(Some(0)),
            held: Track::starting(Some(0)),
            blocked: Default::default(),
            incidents: Incidents::default(),
            lives: Vec::new(),
            decisions: BTreeMap::new(),
            present: Present::default(),
            last: Time::ZERO,
        }
    }

    /// Ends open intervals at the end of the run.
    pub(super) fn close(&mut self) {
        self.settle(Time::NEVER);
        self.stall(self.last, None);
    }

    /// Starts over, because earlier events are not measured. Subflows and their windows stay.
    fn restart(&mut self, now: Time, base: Dsn) {
        let outages = self.paths.iter_mut().map(|path| std::mem::take(&mut path.outages));
        let fresh = Collector::new(self.sender, outages.collect());
        let anew = |life: &Life| Life { new: 0, again: 0, copied: 0, timeouts: 0, ..*life };
        let present = Present {
            receiver: Receiver { frontier: base, ..Receiver::default() },
            stalled: self.present.stalled.map(|(cause, _)| (cause, now)),
            ..self.present
        };
        *self = Collector {
            grid: Grid::new(now),
            base,
            lives: self.lives.iter().map(anew).collect(),
            present,
            last: now,
            ..fresh
        };
        for path in 0..self.paths.len() {
            let (cwnd, inflight) = self.flows(PathId(path as u32));
            self.paths[path].cwnd = Track::starting(cwnd);
            self.paths[path].inflight = Track::starting(Some(inflight));
        }
    }

    /// Returns the bin of `now`. The bins are widened if it lies beyond the last.
    fn bin(&mut self, now: Time) -> Option<usize> {
        while self.grid.index(now)? >= BINS {
            self.grid.bin = self.grid.bin.times(2);
            for path in &mut self.paths {
                for sum in [&mut path.sent, &mut path.lost, &mut path.lost_acks] {
                    sum.widen();
                }
                let tracks =
                    [&mut path.cwnd, &mut path.inflight, &mut path.srtt_us, &mut path.queue];
                tracks.into_iter().for_each(Track::widen);
            }
            self.blocked.iter_mut().for_each(Sum::widen);
            [&mut self.readable, &mut self.held].into_iter().for_each(Track::widen);
        }
        self.grid.index(now)
    }

    /// Returns the bin and the tracks of a path.
    fn at(&mut self, now: Time, path: PathId) -> Option<(usize, &mut PathTracks)> {
        let bin = self.bin(now)?;
        self.last = self.last.max(now);
        Some((bin, self.paths.get_mut(path.index())?))
    }

    fn micros(&self, now: Time) -> u64 {
        now.since(self.grid.origin).as_micros()
    }

    /// Returns the window and the bytes in flight of a path, summed over its subflows.
    fn flows(&self, path: PathId) -> (Option<u64>, u64) {
        let flows = self.present.sending.iter().flatten().filter(|flow| flow.path == path);
        flows.fold((None, 0), |(cwnd, inflight), flow| {
            (cwnd.map_or(flow.cwnd, |sum| Some(sum + flow.cwnd?)), inflight + flow.inflight)
        })
    }

    /// Records the current window and bytes in flight of a path.
    fn note_flows(&mut self, now: Time, path: PathId) {
        let (cwnd, inflight) = self.flows(path);
        if let Some((bin, tracks)) = self.at(now, path) {
            if let Some(cwnd) = cwnd {
                tracks.cwnd.note(bin, cwnd);
            }
            tracks.inflight.note(bin, inflight);
        }
    }

    /// Returns the life of a live subflow.
    fn life(&mut self, subflow: SubflowId) -> Option<&mut Life> {
        let flow = self.present.sending.get(subflow.index()).copied().flatten()?;
        self.lives.get_mut(flow.life)
    }

    /// Changes a subflow and records the new state of its path.
    fn change(&mut self, now: Time, subflow: SubflowId, change: impl FnOnce(&mut Flow)) {
        if let Some(Some(flow)) = self.present.sending.get_mut(subflow.index()) {
            change(flow);
            let path = flow.path;
            self.note_flows(now, path);
        }
    }

    fn path_of(&self, subflow: SubflowId) -> Option<PathId> {
        Some((*self.present.sending.get(subflow.index())?)?.path)
    }

    fn incident(&mut self, at: Time, path: Option<PathId>, what: &'static str) {
        match path {
            Some(path) if self.incidents.list.len() < INCIDENTS => {
                self.incidents.list.push(Incident { at, path, what });
            }
            Some(_) => self.incidents.left_out += 1,
            None => {}
        }
    }

    /// Distributes the time since the sender was blocked over the bins.
    fn stall(&mut self, now: Time, block: Option<Block>) {
        let _ = self.bin(now);
        if let Some((cause, since)) = self.present.stalled.take() {
            let mut from = since.max(self.grid.origin);
            while from < now {
                let Some(bin) = self.grid.index(from) else { break };
                let end = self.grid.origin + self.grid.bin.times(bin as u64 + 1);
                self.blocked[cause].add(bin, end.min(now).since(from).as_nanos());
                from = end;
            }
            self.last = self.last.max(now);
        }
        let cause = block.and_then(|block| BLOCKS.iter().position(|known| *known == block));
        self.present.stalled = cause.map(|cause| (cause, now));
    }

    /// Records the bytes held by the receiver at the end of an instant. A segment that arrives in
    /// order is not held, although it arrives before it is readable.
    fn settle(&mut self, now: Time) {
        if now > self.present.receiver.changed {
            let (changed, len) = (self.present.receiver.changed, self.present.receiver.held.len());
            if let Some(bin) = self.bin(changed) {
                self.held.note(bin, len);
            }
        }
    }

    fn sent(&mut self, now: Time, subflow: SubflowId, data: DataRange, carry: Carry) {
        let Some(path) = self.path_of(subflow) else { return };
        let kind = match carry {
            Carry::New => MarkKind::Sent,
            Carry::Retransmission | Carry::TailProbe => MarkKind::Again,
            Carry::Reinjection | Carry::Redundant | Carry::Opportunistic => MarkKind::Copied,
        };
        if let Some(life) = self.life(subflow) {
            *match kind {
                MarkKind::Sent => &mut life.new,
                MarkKind::Again => &mut life.again,
                _ => &mut life.copied,
            } += data.len();
        }
        let at = self.micros(now);
        let (start, end) = self.drawn(data);
        self.marks.push(kind, path.0, at, start, end);
        if let Some((bin, tracks)) = self.at(now, path) {
            tracks.sent.add(bin, data.len());
        }
        self.change(now, subflow, |flow| flow.inflight += data.len());
    }

    /// Notes that a subflow may carry data.
    fn began(&mut self, now: Time, subflow: SubflowId, path: PathId) {
        if let Some(slot) = self.present.sending.get_mut(subflow.index()) {
            let life = self.lives.len();
            *slot = Some(Flow { path, life, cwnd: None, inflight: 0 });
            self.lives.push(Life::new(subflow, path, now));
            self.incident(now, Some(path), "up");
        }
    }

    fn on_sender(&mut self, now: Time, event: &Event) {
        match *event {
            Event::SubflowUp { subflow, path, .. } => self.began(now, subflow, path),
            Event::SubflowDown { subflow } => {
                let path = self.path_of(subflow);
                if let Some(life) = self.life(subflow) {
                    life.down = Some(now);
                }
                self.incident(now, path, "down");
                if let (Some(slot), Some(path)) =
                    (self.present.sending.get_mut(subflow.index()), path)
                {
                    *slot = None;
                    self.note_flows(now, path);
                    if let (None, Some((bin, tracks))) = (self.flows(path).0, self.at(now, path)) {
                        tracks.cwnd.note(bin, 0);
                    }
                }
            }
            Event::DataSent { subflow, data, carry } => self.sent(now, subflow, data, carry),
            Event::Acked { subflow, srtt, cwnd, inflight, .. } => {
                self.change(now, subflow, |flow| {
                    (flow.cwnd, flow.inflight) = (Some(cwnd), inflight);
                });
                if let Some(life) = self.life(subflow) {
                    (life.cwnd, life.srtt) = (Some(cwnd), Some(srtt));
                }
                let Some(path) = self.path_of(subflow) else { return };
                if let Some((bin, tracks)) = self.at(now, path) {
                    tracks.srtt_us.note(bin, srtt.as_micros());
                }
            }
            Event::Window { subflow, cwnd, .. } => {
                self.change(now, subflow, |flow| flow.cwnd = Some(cwnd));
                self.life(subflow).into_iter().for_each(|life| life.cwnd = Some(cwnd));
            }
            Event::Timeout { subflow, .. } => {
                let Some(path) = self.path_of(subflow) else { return };
                self.incident(now, Some(path), "timeout");
                if let Some(life) = self.life(subflow) {
                    life.timeouts += 1;
                }
                if let Some((_, tracks)) = self.at(now, path) {
                    tracks.timeouts += 1;
                }
                // All outstanding data counts as lost (RFC 6298 section 5.4).
                self.change(now, subflow, |flow| flow.inflight = 0);
            }
            Event::IdleReset { subflow, after, .. } => {
                self.change(now, subflow, |flow| flow.cwnd = Some(after));
                self.life(subflow).into_iter().for_each(|life| life.cwnd = Some(after));
                let Some(path) = self.path_of(subflow) else { return };
                if let Some((_, tracks)) = self.at(now, path) {
                    tracks.idle_resets += 1;
                }
            }
            Event::Decision { chosen, waits_for, reason, .. } => {
                let path = chosen.or(waits_for).and_then(|subflow| self.path_of(subflow));
                *self.decisions.entry((path, reason)).or_insert(0) += 1;
            }
            Event::Blocked(block) => self.stall(now, block),
            _ => {}
        }
    }

    /// Returns a range relative to the first drawn byte.
    fn drawn(&self, data: DataRange) -> (u64, u64) {
        (data.start.saturating_sub(self.base), data.end.saturating_sub(self.base))
    }

    fn on_receiver(&mut self, now: Time, event: &Event) {
        match *event {
            Event::SubflowUp { subflow, path, .. } => {
                if let Some(slot) = self.present.receiving.get_mut(subflow.index()) {
                    *slot = Some(path);
                }
            }
            Event::DataArrived { subflow, data, .. } => {
                if let Some(path) = self.present.receiving.get(subflow.index()).copied().flatten() {
                    let at = self.micros(now);
                    let (start, end) = self.drawn(data);
                    self.marks.push(MarkKind::Arrived, path.0, at, start, end);
                }
                self.settle(now);
                self.present.receiver.held.insert(data);
                self.present.receiver.held.remove_below(self.present.receiver.frontier);
                self.present.receiver.changed = now;
            }
            Event::DataReadable { data, .. } => {
                self.settle(now);
                self.present.receiver.frontier = self.present.receiver.frontier.max(data.end);
                self.present.receiver.held.remove_below(self.present.receiver.frontier);
                self.present.receiver.changed = now;
                let readable = self.present.receiver.frontier.saturating_sub(self.base);
                if let Some(bin) = self.bin(now) {
                    self.readable.note(bin, readable);
                    self.last = self.last.max(now);
                }
            }
            _ => {}
        }
    }
}

impl Watch for Collector {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        if who.pair != 0 || who.connection != 0 {
        } else if who.host == self.sender {
            self.on_sender(now, event);
        } else {
            self.on_receiver(now, event);
        }
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        if (who.pair, who.connection, who.host) != (0, 0, self.sender) {
            return;
        }
        match *event {
            AppEvent::WarmUp { .. } => self.warmed = true,
            AppEvent::MeasureFrom { offset } if self.warmed => self.restart(now, offset),
            _ => {}
        }
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, way: Direction, segment: &Segment) {
        let Hop::Dropped(cause) = hop else { return };
        let with_data = (way == Direction::Down) == (self.sender == Role::Server);
        if let Some((bin, tracks)) = self.at(now, path) {
            let lost = if with_data { &mut tracks.lost } else { &mut tracks.lost_acks };
            lost.add(bin, 1);
            *tracks.drops.entry(drop_word(cause)).or_insert(0) += 1;
            // A simulated payload carries the range of data that it stands for.
            if let (true, Payload::Pattern { offset, len }) = (with_data, &segment.payload) {
                let data = DataRange::with_len(Dsn::new(*offset), u64::from(*len));
                let (at, (start, end)) = (self.micros(now), self.drawn(data));
                self.marks.push(MarkKind::Lost, path.0, at, start, end);
            }
        }
    }

    fn interval(&self) -> Option<Span> {
        // The same interval as the timeline's, so that a page does not change the timeline's
        // samples.
        Some(LOOK)
    }

    fn on_sample(&mut self, at: Time, snapshot: &Snapshot) {
        for (path, bytes) in snapshot.queued_from(self.sender).iter().enumerate() {
            let Some(bin) = self.bin(at) else { return };
            if let Some(tracks) = self.paths.get_mut(path) {
                tracks.queue.note(bin, *bytes);
            }
        }
    }
}
