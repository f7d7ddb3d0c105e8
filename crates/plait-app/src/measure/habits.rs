//! How a scheduler spent its time, to explain why it is slow or fast. Attached only for `plait
//! compare --explain`, because it needs every event.

use crate::{AppEvent, Role, Workload};
use plait_base::{Dsn, PathId, Span, SubflowId, Time};
use plait_core::{Block, Carry, Event};
use serde::Serialize;
use std::collections::VecDeque;

/// Observations of one run, from the first measured data to the last readable byte. Times in JSON
/// are in nanoseconds.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Habits {
    /// Length of that interval.
    #[serde(rename = "length_ns")]
    pub length: Span,
    /// Number of times that the scheduler stopped sending although a subflow had room and the
    /// receive window allowed more.
    pub waits: u64,
    /// Total time of these waits.
    #[serde(rename = "scheduler_ns")]
    pub scheduler: Span,
    /// Time blocked by the receive window, by the path of the segment at the left edge.
    #[serde(rename = "receive_window_ns")]
    pub receive_window: Vec<Span>,
    /// Time blocked by a full send buffer, by the path of the segment at the left edge.
    #[serde(rename = "send_buffer_ns")]
    pub send_buffer: Vec<Span>,
    /// Time that each path had nothing in flight.
    #[serde(rename = "idle_ns")]
    pub idle: Vec<Span>,
    /// Time that received data could not be read, by the path that delivered the missing data.
    #[serde(rename = "unreadable_ns")]
    pub unreadable: Vec<Span>,
    /// First-transmission payload bytes of each path.
    pub sent: Vec<u64>,
}

/// A subflow of the sender.
#[derive(Clone, Copy, Default, Debug)]
struct Flow {
    path: Option<PathId>,
    inflight: u64,
}

/// Takes every timestamped event of both hosts of one connection, and returns [`Habits`].
#[derive(Debug)]
pub struct HabitObserver {
    workload: Workload,
    found: Habits,
    flows: [Flow; SubflowId::MAX],
    /// The paths of the receiver's subflows.
    brings: [Option<PathId>; SubflowId::MAX],
    /// Start of the time with nothing in flight, for each path; `None` while data are in flight.
    quiet: Vec<Option<Time>>,
    /// New segments not yet DATA_ACKed: the end of each, and the subflow that carried it.
    outstanding: VecDeque<(Dsn, SubflowId)>,
    /// Subflow of the segment at the left edge before the last advance of the edge.
    edge: Option<SubflowId>,
    block: Option<(Block, Time)>,
    /// Time at which out-of-order data became readable, and the longest wait. The arrival event
    /// that caused it follows.
    released: Option<(Time, Span)>,
    /// The waiting time for missing data is counted up to here.
    settled: Time,
    begun: Option<Time>,
    last: Time,
    offset: Dsn,
}

impl HabitObserver {
    /// Creates an observer of one connection that runs `workload` over at most `paths` paths.
    #[must_use]
    pub fn new(workload: &Workload, paths: usize) -> HabitObserver {
        HabitObserver {
            workload: workload.clone(),
            found: HabitObserver::nothing(paths),
            flows: [Flow::default(); SubflowId::MAX],
            brings: [None; SubflowId::MAX],
            quiet: vec![Some(Time::ZERO); paths],
            outstanding: VecDeque::new(),
            edge: None,
            block: None,
            released: None,
            settled: Time::ZERO,
            begun: None,
            last: Time::ZERO,
            offset: Dsn::ZERO,
        }
    }

    fn nothing(paths: usize) -> Habits {
        let none = vec![Span::ZERO; paths];
        Habits {
            receive_window: none.clone(),
            send_buffer: none.clone(),
            idle: none.clone(),
            unreadable: none,
            sent: vec![0; paths],
            ..Habits::default()
        }
    }

    /// Takes an event of the core of `host`.
    pub fn on_core(&mut self, now: Time, host: Role, event: &Event) {
        if host == self.workload.sender() {
            self.on_sender(now, event);
        } else {
            self.on_receiver(now, event);
        }
    }

    /// Takes an event of the app of `host`.
    pub fn on_app(&mut self, now: Time, host: Role, event: &AppEvent) {
        if let AppEvent::MeasureFrom { offset } = *event
            && host == self.workload.sender()
        {
            self.found = HabitObserver::nothing(self.quiet.len());
            self.offset = offset;
            self.begun = None;
            self.settled = now;
        }
    }

    fn on_sender(&mut self, now: Time, event: &Event) {
        match *event {
            Event::SubflowUp { subflow, path, .. } => {
                if let Some(flow) = self.flows.get_mut(subflow.index()) {
                    *flow = Flow { path: Some(path), inflight: 0 };
                }
            }
            Event::SubflowDown { subflow } | Event::Timeout { subflow, .. } => {
                // All data in flight count as lost.
                self.set_inflight(now, subflow, |_| 0);
            }
            Event::DataSent { subflow, data, carry } => {
                if carry == Carry::New {
                    self.outstanding.push_back((data.end, subflow));
                    if data.end > self.offset {
                        self.begin(now);
                        let sent = self.path(subflow).and_then(|at| self.found.sent.get_mut(at));
                        sent.into_iter().for_each(|sent| *sent += data.len());
                    }
                }
                self.set_inflight(now, subflow, |inflight| inflight + data.len());
            }
            Event::Acked { subflow, inflight, .. } => {
                self.set_inflight(now, subflow, |_| inflight);
            }
            Event::DataAcked { new, .. } => {
                let first = self.outstanding.front().filter(|(end, _)| *end <= new);
                self.edge = first.map(|(_, subflow)| *subflow).or(self.edge);
                while self.outstanding.front().is_some_and(|(end, _)| *end <= new) {
                    self.outstanding.pop_front();
                }
            }
            Event::Blocked(block) => {
                self.found.waits += u64::from(block == Some(Block::Scheduler));
                self.turn(now, block);
            }
            _ => {}
        }
    }

    /// Notes that the first measured data leave.
    fn begin(&mut self, now: Time) {
        if self.begun.is_none() {
            self.begun = Some(now);
            self.settled = self.settled.max(now);
        }
    }

    /// Adds the time of the current cause, if any, and starts `next`.
    fn turn(&mut self, now: Time, next: Option<Block>) {
        if let Some((cause, since)) = self.block.take()
            && let Some(begun) = self.begun
        {
            let span = now.since(since.max(begun));
            let path = self.edge.and_then(|subflow| self.path(subflow));
            let behind = match cause {
                Block::ReceiveWindow => Some(&mut self.found.receive_window),
                Block::SendBuffer => Some(&mut self.found.send_buffer),
                Block::Scheduler => {
                    self.found.scheduler += span;
                    None
                }
                Block::CongestionWindow | Block::NoSubflow => None,
            };
            let behind = behind.zip(path).and_then(|(list, path)| list.get_mut(path));
            behind.into_iter().for_each(|sum| *sum += span);
        }
        self.block = next.map(|cause| (cause, now));
    }

    fn set_inflight(&mut self, now: Time, subflow: SubflowId, to: impl Fn(u64) -> u64) {
        let Some(flow) = self.flows.get_mut(subflow.index()) else { return };
        flow.inflight = to(flow.inflight);
        let Some(path) = flow.path else { return };
        let busy = self.flows.iter().any(|flow| flow.path == Some(path) && flow.inflight > 0);
        let Some(quiet) = self.quiet.get_mut(path.index()) else { return };
        match (busy, *quiet) {
            (true, Some(since)) => {
                *quiet = None;
                if let (Some(begun), Some(sum)) =
                    (self.begun, self.found.idle.get_mut(path.index()))
                {
                    *sum += now.since(since.max(begun));
                }
            }
            (false, None) => *quiet = Some(now),
            _ => {}
        }
    }

    fn on_receiver(&mut self, now: Time, event: &Event) {
        match *event {
            Event::SubflowUp { subflow, path, .. } => {
                if let Some(slot) = self.brings.get_mut(subflow.index()) {
                    *slot = Some(path);
                }
            }
            Event::DataReadable { data, waited, .. } if data.end > self.offset => {
                self.last = now;
                let longest =
                    self.released.filter(|(at, _)| *at == now).map(|(_, longest)| longest);
                let longest = longest.unwrap_or(Span::ZERO).max(waited);
                self.released = (longest > Span::ZERO).then_some((now, longest));
            }
            Event::DataArrived { subflow, .. } => {
                // The core emits `DataReadable` before the `DataArrived` that caused it.
                let Some((at, longest)) = self.released.take() else { return };
                let since = Time::from_nanos(at.as_nanos().saturating_sub(longest.as_nanos()));
                let span = at.since(since.max(self.settled));
                self.settled = self.settled.max(at);
                let path = self.brings.get(subflow.index()).copied().flatten();
                let sum = path.and_then(|path| self.found.unreadable.get_mut(path.index()));
                sum.into_iter().for_each(|sum| *sum += span);
            }
            _ => {}
        }
    }

    fn path(&self, subflow: SubflowId) -> Option<usize> {
        self.flows.get(subflow.index())?.path.map(PathId::index)
    }

    /// Returns the observations. Time after the last readable byte does not count.
    #[must_use]
    pub fn finish(mut self) -> Habits {
        let (Some(begun), last) = (self.begun, self.last) else { return self.found };
        self.turn(last, None);
        for (quiet, sum) in self.quiet.iter().zip(&mut self.found.idle) {
            if let Some(since) = quiet {
                *sum += last.since((*since).max(begun));
            }
        }
        self.found.length = last.since(begun);
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::DataRange;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// One second on two paths. The fast path carries two segments; the slow path carries one that
    /// blocks all others.
    #[test]
    fn time_is_told_by_cause_and_path() {
        let size = crate::Size::Bytes(3_000);
        let mut observer = HabitObserver::new(&Workload::Download { size }, 2);
        let (fast, slow) = (SubflowId(0), SubflowId(1));
        let data = |nth: u64| DataRange::with_len(Dsn::new(1_000 * nth), 1_000);
        let new = |subflow, nth| Event::DataSent { subflow, data: data(nth), carry: Carry::New };
        let acked = |subflow| Event::Acked {
            subflow,
            bytes: 1_000,
            rtt: None,
            srtt: Span::ZERO,
            cwnd: 10_000,
            inflight: 0,
        };
        for (subflow, path) in [(fast, PathId(0)), (slow, PathId(1))] {
            let up = Event::SubflowUp { subflow, path, server: Default::default() };
            observer.on_core(ms(0), Role::Server, &up);
            observer.on_core(ms(0), Role::Client, &up);
        }
        observer.on_core(ms(100), Role::Server, &new(fast, 0));
        observer.on_core(ms(100), Role::Server, &new(slow, 1));
        observer.on_core(ms(200), Role::Server, &new(fast, 2));
        observer.on_core(ms(200), Role::Server, &Event::Blocked(Some(Block::Scheduler)));
        observer.on_core(ms(230), Role::Server, &Event::Blocked(Some(Block::ReceiveWindow)));
        observer.on_core(ms(300), Role::Server, &acked(fast));
        let readable = |nth, waited| Event::DataReadable {
            data: data(nth),
            waited: Span::from_millis(waited),
            subflow: fast,
        };
        let arrived = |subflow, nth| Event::DataArrived { subflow, data: data(nth), duplicate: 0 };
        observer.on_core(ms(150), Role::Client, &readable(0, 0));
        observer.on_core(ms(150), Role::Client, &arrived(fast, 0));
        observer.on_core(ms(250), Role::Client, &arrived(fast, 2));
        observer.on_core(ms(1_100), Role::Client, &readable(1, 0));
        observer.on_core(ms(1_100), Role::Client, &readable(2, 850));
        observer.on_core(ms(1_100), Role::Client, &arrived(slow, 1));
        let edge = |old, new| Event::DataAcked { old, new };
        observer.on_core(ms(1_000), Role::Server, &edge(Dsn::ZERO, Dsn::new(1_000)));
        observer.on_core(ms(1_000), Role::Server, &edge(Dsn::new(1_000), Dsn::new(3_000)));
        observer.on_core(ms(1_100), Role::Server, &Event::Blocked(None));
        let found = observer.finish();
        let span = Span::from_millis;
        assert_eq!((found.length, found.waits, found.scheduler), (span(1_000), 1, span(30)));
        assert_eq!(found.receive_window, [span(0), span(870)]);
        assert_eq!(found.unreadable, [span(0), span(850)]);
        assert_eq!(found.idle, [span(800), span(0)]);
        assert_eq!(found.sent, [2_000, 1_000]);
    }
}
