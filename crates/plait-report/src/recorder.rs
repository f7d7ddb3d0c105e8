//! Records the timeline of a run in bins that widen during the run, so that a run of any length
//! takes the same memory.

use crate::render::{Cause, PathCounters, PathSeries, Timeline};
use plait_app::{AppEvent, Role};
use plait_base::{PathId, Span, SubflowId, Time};
use plait_core::{Block, Carry, Event};
use plait_sim::{Direction, Hop, Snapshot, Watch, Who};
use plait_wire::Segment;

/// Greatest number of bins; above it, pairs of bins are merged.
const BINS: usize = 1_024;
/// Initial length of a bin.
const FINEST: Span = Span::from_millis(1);
/// Sampling interval of the queues.
pub(crate) const LOOK: Span = Span::from_millis(1);

/// The observer of the end that sends the workload's data.
pub struct Recorder {
    sender: Role,
    /// Start of the drawing; the warm-up of a burst precedes it.
    origin: Time,
    bin: Span,
    paths: Vec<PathSeries>,
    counters: Vec<PathCounters>,
    /// Path and window of each subflow.
    subflows: [Option<(PathId, u64)>; SubflowId::MAX],
    blocked: Vec<(Cause, Time, Time)>,
    held: Option<(Cause, Time)>,
    last: Time,
}

impl Recorder {
    /// Creates an observer of the paths with these names.
    pub fn new<'a>(sender: Role, names: impl Iterator<Item = &'a str>) -> Recorder {
        let paths: Vec<PathSeries> = names
            .map(|name| PathSeries { name: name.to_owned(), ..PathSeries::default() })
            .collect();
        let counters =
            paths.iter().map(|p| PathCounters { name: p.name.clone(), ..PathCounters::default() });
        Recorder {
            sender,
            origin: Time::ZERO,
            bin: FINEST,
            counters: counters.collect(),
            paths,
            subflows: [None; SubflowId::MAX],
            blocked: Vec::new(),
            held: None,
            last: Time::ZERO,
        }
    }

    /// Returns the timeline up to `ended`.
    #[must_use]
    pub fn finish(mut self, title: String, ended: Time) -> Timeline {
        self.hold(ended, None);
        let end = self.last.max(self.origin);
        let bins = self.index(end).map_or(0, |last| last + 1);
        for path in &mut self.paths {
            path.sent_bytes.resize(bins, 0);
            path.queue_bytes.resize(bins, 0);
            path.lost.resize(bins, 0);
            path.cwnd_bytes.resize(bins, 0);
            // A bin without a record keeps the previous window.
            let mut window = 0;
            for cwnd in &mut path.cwnd_bytes {
                window = if *cwnd == 0 { window } else { *cwnd };
                *cwnd = window;
            }
        }
        Timeline {
            title,
            bin: self.bin,
            paths: self.paths,
            blocked: self.blocked,
            counters: self.counters,
        }
    }

    /// Starts over, because earlier events are not measured. Windows, and the bytes that quotas count, are kept.
    fn restart(&mut self, now: Time) {
        let held = self.held.map(|(cause, _)| (cause, now));
        let names = self.paths.iter().map(|path| path.name.as_str());
        let mut fresh = Recorder::new(self.sender, names);
        for (path, before) in fresh.counters.iter_mut().zip(&self.counters) {
            path.metered_bytes = before.metered_bytes;
        }
        *self = Recorder { origin: now, subflows: self.subflows, held, last: now, ..fresh };
        for (path, _) in self.subflows.into_iter().flatten() {
            self.note_window(now, path);
        }
    }

    fn index(&self, now: Time) -> Option<usize> {
        let since = (now >= self.origin).then(|| now.since(self.origin).as_nanos())?;
        usize::try_from(since / self.bin.as_nanos().max(1)).ok()
    }

    /// Returns the bin of `now` and the series of a path, extended to that bin.
    fn at(&mut self, now: Time, path: PathId) -> Option<(usize, &mut PathSeries)> {
        while self.index(now)? >= BINS {
            self.widen();
        }
        let index = self.index(now)?;
        self.last = self.last.max(now);
        let series = self.paths.get_mut(path.index())?;
        if series.sent_bytes.len() <= index {
            series.sent_bytes.resize(index + 1, 0);
            series.cwnd_bytes.resize(index + 1, 0);
            series.queue_bytes.resize(index + 1, 0);
            series.lost.resize(index + 1, 0);
        }
        Some((index, series))
    }

    fn widen(&mut self) {
        fn merged<T: Copy>(series: &[T], merge: impl Fn(T, T) -> T) -> Vec<T> {
            let pair = |pair: &[T]| match *pair {
                [a, b] => merge(a, b),
                _ => pair[0],
            };
            series.chunks(2).map(pair).collect()
        }
        self.bin = self.bin.times(2);
        for path in &mut self.paths {
            path.sent_bytes = merged(&path.sent_bytes, |a, b| a + b);
            path.cwnd_bytes = merged(&path.cwnd_bytes, u64::max);
            path.queue_bytes = merged(&path.queue_bytes, u64::max);
            path.lost = merged(&path.lost, |a, b| a + b);
        }
    }

    /// Records the window of a path, summed over its subflows.
    fn note_window(&mut self, now: Time, path: PathId) {
        let here = self.subflows.iter().flatten().filter(|(known, _)| *known == path);
        let cwnd = here.map(|(_, cwnd)| cwnd).sum();
        if let Some((bin, series)) = self.at(now, path) {
            series.cwnd_bytes[bin] = series.cwnd_bytes[bin].max(cwnd);
        }
    }

    fn set_window(&mut self, now: Time, subflow: SubflowId, cwnd: u64) {
        if let Some(Some((path, known))) = self.subflows.get_mut(subflow.index()) {
            *known = cwnd;
            let path = *path;
            self.note_window(now, path);
        }
    }

    fn sent(&mut self, now: Time, subflow: SubflowId, len: u64, carry: Carry) {
        let Some(Some((path, _))) = self.subflows.get(subflow.index()).copied() else { return };
        if let Some((bin, series)) = self.at(now, path) {
            series.sent_bytes[bin] += len;
        }
        if let Some(counters) = self.counters.get_mut(path.index()) {
            counters.sent_bytes += len;
            counters.segments += 1;
            match carry {
                Carry::New => counters.metered_bytes += len,
                Carry::Retransmission | Carry::TailProbe => counters.retransmitted_bytes += len,
                Carry::Reinjection | Carry::Redundant | Carry::Opportunistic => {
                    counters.metered_bytes += len;
                    counters.reinjected_bytes += len;
                }
            }
        }
    }

    fn hold(&mut self, now: Time, cause: Option<Cause>) {
        if let Some((cause, from)) = self.held.take()
            && from < now
        {
            let since = |at: Time| Time::ZERO + at.since(self.origin);
            self.blocked.push((cause, since(from), since(now)));
        }
        self.held = cause.map(|cause| (cause, now));
        self.last = self.last.max(now);
    }
}

impl Watch for Recorder {
    fn on_core(&mut self, now: Time, who: Who, event: &Event) {
        // Only the first connection of a session is drawn.
        if who.host != self.sender || who.connection != 0 {
            return;
        }
        match *event {
            Event::SubflowUp { subflow, path, .. } => {
                if let Some(slot) = self.subflows.get_mut(subflow.index()) {
                    *slot = Some((path, 0));
                }
            }
            Event::SubflowDown { subflow } => {
                if let Some(slot) = self.subflows.get_mut(subflow.index()) {
                    *slot = None;
                }
            }
            Event::DataSent { subflow, data, carry } => self.sent(now, subflow, data.len(), carry),
            Event::Acked { subflow, cwnd, .. } | Event::Window { subflow, cwnd, .. } => {
                self.set_window(now, subflow, cwnd);
            }
            Event::IdleReset { subflow, after, .. } => self.set_window(now, subflow, after),
            Event::Blocked(block) => self.hold(now, block.map(cause)),
            _ => {}
        }
    }

    fn on_app(&mut self, now: Time, who: Who, event: &AppEvent) {
        if who.host == self.sender && matches!(event, AppEvent::MeasureFrom { .. }) {
            self.restart(now);
        }
    }

    fn on_segment(&mut self, now: Time, hop: Hop, path: PathId, _: Direction, _: &Segment) {
        if let Hop::Dropped(_) = hop
            && let Some((bin, series)) = self.at(now, path)
        {
            series.lost[bin] += 1;
            if let Some(counters) = self.counters.get_mut(path.index()) {
                counters.lost += 1;
            }
        }
    }

    fn interval(&self) -> Option<Span> {
        Some(LOOK)
    }

    fn on_sample(&mut self, at: Time, snapshot: &Snapshot) {
        for (path, bytes) in snapshot.queued_from(self.sender).iter().enumerate() {
            if let Some((bin, series)) = self.at(at, PathId(path as u32)) {
                series.queue_bytes[bin] = series.queue_bytes[bin].max(*bytes);
            }
        }
    }
}

fn cause(block: Block) -> Cause {
    match block {
        Block::ReceiveWindow => Cause::SendWindow,
        Block::SendBuffer => Cause::SendBuffer,
        Block::Scheduler => Cause::Scheduler,
        Block::CongestionWindow => Cause::Cwnd,
        Block::NoSubflow => Cause::NoSubflow,
    }
}
