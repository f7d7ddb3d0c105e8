//! Measures of a client that sends repeated requests: chunks, playback, idle windows.

use crate::AppEvent;
use plait_base::{PathId, Span, SubflowId, SubflowSet, Time};
use serde::Serialize;

/// Measures of a client that requests chunks or objects over one connection.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct PlaybackMeasures {
    /// Mean bit rate of the received chunks, weighted by playing time, in Mbit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_rate_mbps: Option<f64>,
    /// `bit_rate_mbps` divided by the ideal bit rate: the sum of the paths' mean rates, but at most
    /// the highest bit rate of the clip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bit_rate_ratio: Option<f64>,
    /// Seconds that playback stood still after it had started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rebuffer_s: Option<f64>,
    /// Time from the first SYN to the start of playback, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_ms: Option<f64>,
    /// Number of idle periods of a subflow after which its window was reduced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iw_resets: Option<u64>,
    /// Delay of the last packet of a chunk on the first path after the last packet on the second,
    /// in milliseconds. Median over the chunks that used both paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_packet_gap_ms: Option<f64>,
}

/// State of one path during a pending chunk.
#[derive(Clone, Copy, Default, Debug)]
struct PathState {
    inflight: u64,
    /// Arrival time of the last packet of the chunk.
    last: Option<Time>,
    /// Time with nothing in flight while another path had data in flight.
    idle: Span,
}

/// Sums over a run.
#[derive(Debug)]
pub(super) struct Playback {
    start: Time,
    /// Sum of bit rate times playing time, in bits times 10^9.
    bits: u128,
    played: u128,
    first_picture: Option<Time>,
    stalled_since: Option<Time>,
    stalled: Span,
    /// Subflows whose window was reduced since their last transmission.
    lowered: SubflowSet,
    iw_resets: u64,
    states: Vec<PathState>,
    inflight: [u64; SubflowId::MAX],
    /// The path of each subflow of the receiver.
    route: [Option<PathId>; SubflowId::MAX],
    /// Time of the request for the pending chunk.
    asked: Option<Time>,
    /// Idle time is counted up to here.
    counted: Time,
    waited: Span,
    gaps: Vec<i64>,
}

impl Playback {
    pub(super) fn new(paths: usize, start: Time, chunks: u64) -> Playback {
        Playback {
            start,
            bits: 0,
            played: 0,
            first_picture: None,
            stalled_since: None,
            stalled: Span::ZERO,
            lowered: SubflowSet::default(),
            iw_resets: 0,
            states: vec![PathState::default(); paths],
            inflight: [0; SubflowId::MAX],
            route: [None; SubflowId::MAX],
            asked: None,
            counted: start,
            waited: Span::ZERO,
            gaps: Vec::with_capacity(chunks.min(1 << 20) as usize),
        }
    }

    /// Sets the bytes that the sender has in flight on a subflow.
    pub(super) fn on_flight(&mut self, now: Time, subflow: SubflowId, path: PathId, bytes: u64) {
        let Some(before) = self.inflight.get_mut(subflow.index()) else { return };
        let old = core::mem::replace(before, bytes);
        let Some(way) = self.states.get(path.index()) else { return };
        let new = way.inflight - old.min(way.inflight) + bytes;
        // The set of idle paths changes only when a count becomes zero or stops being zero.
        if (way.inflight == 0) != (new == 0) {
            self.count(now);
        }
        self.states[path.index()].inflight = new;
    }

    /// Adds bytes that the sender sent on a subflow.
    pub(super) fn on_sent(&mut self, now: Time, subflow: SubflowId, path: PathId, bytes: u64) {
        let before = self.inflight.get(subflow.index()).copied().unwrap_or(0);
        self.on_flight(now, subflow, path, before + bytes);
        if subflow.index() < SubflowId::MAX {
            self.lowered.remove(subflow);
        }
    }

    /// Counts a reduction of the sender's window after idle time. One idle period may cause several
    /// reductions, which count once.
    pub(super) fn on_idle_reset(&mut self, subflow: SubflowId) {
        if subflow.index() < SubflowId::MAX && !self.lowered.contains(subflow) {
            self.lowered.insert(subflow);
            self.iw_resets += 1;
        }
    }

    /// Notes a new subflow of the receiver.
    pub(super) fn on_subflow(&mut self, subflow: SubflowId, path: PathId) {
        if let Some(route) = self.route.get_mut(subflow.index()) {
            *route = Some(path);
        }
    }

    /// Notes that data became readable that had arrived at `at` on a subflow of the receiver.
    pub(super) fn on_arrival(&mut self, at: Time, subflow: SubflowId) {
        let Some(Some(path)) = self.route.get(subflow.index()) else { return };
        if let Some(way) = self.states.get_mut(path.index()) {
            way.last = Some(way.last.map_or(at, |last| last.max(at)));
        }
    }

    /// Takes an event of the client's app.
    pub(super) fn on_app(&mut self, now: Time, event: &AppEvent) {
        match *event {
            AppEvent::MessageDue { .. } => {
                self.count(now);
                self.asked = Some(now);
                self.states.iter_mut().for_each(|way| way.last = None);
            }
            AppEvent::Chunk { rate, lasts, .. } => {
                self.bits += u128::from(rate.as_bps()) * u128::from(lasts.as_nanos());
                self.played += u128::from(lasts.as_nanos());
                self.count(now);
                self.asked = None;
                if let [first, second, ..] = self.states[..]
                    && let (Some(first), Some(second)) = (first.last, second.last)
                {
                    self.gaps.push(first.as_nanos() as i64 - second.as_nanos() as i64);
                }
            }
            AppEvent::Playing => {
                self.first_picture.get_or_insert(now);
                self.settle(now);
            }
            AppEvent::Stalled => self.stalled_since = Some(now),
            _ => {}
        }
    }

    /// Counts the idle time of the paths up to `now`.
    fn count(&mut self, now: Time) {
        let span = now.since(self.counted);
        self.counted = now;
        if self.asked.is_none() || span == Span::ZERO {
            return;
        }
        self.waited += span;
        if self.states.iter().any(|way| way.inflight > 0) {
            self.states.iter_mut().filter(|way| way.inflight == 0).for_each(|way| way.idle += span);
        }
    }

    /// Ends a stall, if there is one.
    fn settle(&mut self, now: Time) {
        if let Some(since) = self.stalled_since.take() {
            self.stalled += now.since(since);
        }
    }

    /// Returns the measures, and the idle share of each path.
    pub(super) fn finish(mut self, now: Time) -> (PlaybackMeasures, Vec<Option<f64>>) {
        self.settle(now);
        self.count(now);
        let shown = self.first_picture.is_some();
        let measures = PlaybackMeasures {
            // Bits times 10^9, divided by nanoseconds, are bit/s.
            bit_rate_mbps: (self.played > 0).then(|| self.bits as f64 / self.played as f64 / 1e6),
            bit_rate_ratio: None,
            rebuffer_s: shown.then(|| self.stalled.as_secs_f64()),
            startup_ms: self.first_picture.map(|at| at.since(self.start).as_millis_f64()),
            iw_resets: Some(self.iw_resets),
            last_packet_gap_ms: median(&mut self.gaps).map(|nanos| nanos / 1e6),
        };
        let waited = self.waited.as_nanos() as f64;
        let share =
            |way: &PathState| (waited > 0.0 && shown).then(|| way.idle.as_nanos() as f64 / waited);
        let idle = self.states.iter().map(share).collect();
        (measures, idle)
    }
}

fn median(values: &mut [i64]) -> Option<f64> {
    values.sort_unstable();
    let upper = *values.get(values.len() / 2)? as f64;
    match values.len() % 2 {
        0 => Some((values[values.len() / 2 - 1] as f64 + upper) / 2.0),
        _ => Some(upper),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::{DataRange, Rate};

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn due(id: u64) -> AppEvent {
        AppEvent::MessageDue { id, data: DataRange::between(0, 1), due: Time::ZERO }
    }

    fn chunk(id: u64, kbps: u64, secs: u64) -> AppEvent {
        let (rate, lasts) = (Rate::from_bps(kbps * 1000), Span::from_secs(secs));
        AppEvent::Chunk { id, rate, lasts }
    }

    #[test]
    fn bit_rates_weigh_by_how_long_they_play_and_stalls_add_up() {
        let mut play = Playback::new(1, ms(100), 3);
        for (at, event) in [
            (200, due(0)),
            (400, chunk(0, 1_000, 6)),
            (500, AppEvent::Playing),
            (900, AppEvent::Stalled),
            (1_400, chunk(1, 4_000, 2)),
            (1_400, AppEvent::Playing),
            (2_000, AppEvent::Stalled),
        ] {
            play.on_app(ms(at), &event);
        }
        let (measures, _) = play.finish(ms(2_250));
        assert_eq!(measures.bit_rate_mbps, Some(1.75));
        assert_eq!(measures.startup_ms, Some(400.0));
        assert_eq!(measures.rebuffer_s, Some(0.75));
        assert_eq!(measures.last_packet_gap_ms, None);
    }

    #[test]
    fn an_idle_time_counts_once_however_often_it_is_looked_at() {
        let mut play = Playback::new(2, ms(0), 1);
        let (path, one, two) = (PathId(0), SubflowId(0), SubflowId(1));
        play.on_idle_reset(one);
        play.on_idle_reset(one);
        play.on_idle_reset(two);
        play.on_sent(ms(1), one, path, 10);
        play.on_idle_reset(one);
        play.on_idle_reset(two);
        assert_eq!(play.finish(ms(2)).0.iw_resets, Some(3));
    }

    #[test]
    fn a_path_is_idle_while_another_still_sends_the_chunk() {
        let mut play = Playback::new(2, ms(0), 2);
        let (wifi, lte) = ((SubflowId(0), PathId(0)), (SubflowId(1), PathId(1)));
        play.on_subflow(wifi.0, wifi.1);
        play.on_subflow(lte.0, lte.1);
        play.on_app(ms(0), &due(0));
        play.on_app(ms(0), &AppEvent::Playing);
        // Both paths start at 100 ms; LTE ends at 300, WiFi at 900; the chunk is complete at 1000.
        play.on_sent(ms(100), wifi.0, wifi.1, 10);
        play.on_sent(ms(100), lte.0, lte.1, 90);
        play.on_flight(ms(200), lte.0, lte.1, 40);
        play.on_flight(ms(300), lte.0, lte.1, 0);
        play.on_flight(ms(900), wifi.0, wifi.1, 0);
        play.on_arrival(ms(290), lte.0);
        play.on_arrival(ms(280), lte.0);
        play.on_arrival(ms(890), wifi.0);
        play.on_app(ms(1_000), &chunk(0, 1, 1));
        // Time between chunks does not count.
        play.on_sent(ms(1_500), wifi.0, wifi.1, 10);
        play.on_flight(ms(1_600), wifi.0, wifi.1, 0);
        let (measures, idle) = play.finish(ms(3_000));
        assert_eq!(measures.last_packet_gap_ms, Some(600.0));
        assert_eq!(idle, [Some(0.0), Some(0.6)]);
    }
}
