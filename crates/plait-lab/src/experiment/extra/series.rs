//! Measures over the time of a run.

use plait_app::AppEvent;
use plait_base::{Span, Time};

/// Largest number of seconds of a run that are recorded.
const MAX_SECONDS: u64 = 3_600;

/// Returns the second of an instant.
fn second(now: Time) -> u64 {
    now.since(Time::ZERO).as_nanos() / 1_000_000_000
}

/// The gap of a scheduler, second by second.
#[derive(Default)]
pub(super) struct Gaps {
    /// Sum, number of values, and maximum.
    seconds: Vec<(f64, u64, f64)>,
}

impl Gaps {
    pub(super) fn note(&mut self, now: Time, gap: f64) {
        let second = second(now).min(MAX_SECONDS) as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, (0.0, 0, 0.0));
        }
        let (sum, count, most) = &mut self.seconds[second];
        *sum += gap;
        *count += 1;
        *most = most.max(gap);
    }

    /// Returns second, mean and maximum. A second without a decision repeats the last gap.
    pub(super) fn by_second(&self) -> impl Iterator<Item = (u64, f64, f64)> {
        let mut last = None;
        (0..).zip(&self.seconds).filter_map(move |(second, (sum, count, most))| {
            if *count > 0 {
                last = Some((*sum / *count as f64, *most));
            }
            last.map(|(mean, most)| (second, mean, most))
        })
    }
}

/// The bytes that a player reads while it waits for a chunk.
pub(super) struct Fetches {
    /// Length of a part in seconds.
    length: u64,
    /// Bytes read and time waited, by part.
    parts: Vec<(u64, Span)>,
    /// Start of the wait that is not yet counted; `None` while the player does not wait.
    waits: Option<Time>,
}

impl Fetches {
    pub(super) fn new(length: u64) -> Fetches {
        Fetches { length, parts: Vec::new(), waits: None }
    }

    pub(super) fn on_app(&mut self, now: Time, event: &AppEvent) {
        match *event {
            AppEvent::MessageDue { .. } => {
                self.turn(now);
                self.waits = Some(now);
            }
            AppEvent::Read { data } if self.waits.is_some() => {
                self.turn(now);
                let part = self.part(now);
                part.0 += data.len();
            }
            AppEvent::Chunk { .. } => {
                self.turn(now);
                self.waits = None;
            }
            _ => {}
        }
    }

    fn part(&mut self, now: Time) -> &mut (u64, Span) {
        let part = (second(now).min(MAX_SECONDS) / self.length) as usize;
        if self.parts.len() <= part {
            self.parts.resize(part + 1, (0, Span::ZERO));
        }
        &mut self.parts[part]
    }

    /// Adds the time waited until now to the parts that it belongs to.
    fn turn(&mut self, now: Time) {
        while let Some(since) = self.waits.filter(|since| *since < now) {
            let next = (second(since) / self.length + 1) * self.length;
            let until = now.min(Time::ZERO + Span::from_secs(next));
            self.part(since).1 += until.since(since);
            self.waits = Some(until);
        }
    }

    /// Returns the start of each part in seconds, and its rate in Mbit/s.
    pub(super) fn by_part(&self) -> impl Iterator<Item = (u64, f64)> {
        let waited = (0..).zip(&self.parts).filter(|(_, part)| part.1 > Span::ZERO);
        waited.map(|(at, (bytes, time))| {
            (at * self.length, *bytes as f64 * 8.0 / 1e6 / (time.as_millis_f64() / 1e3))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::{DataRange, Dsn, Rate};

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_gap_stays_where_nothing_weighs_it() {
        let mut gaps = Gaps::default();
        for (ms, gap) in [(1_100, 10.0), (1_900, 20.0), (3_000, 5.0)] {
            gaps.note(at(ms), gap);
        }
        let told: Vec<_> = gaps.by_second().collect();
        assert_eq!(told, [(1, 15.0, 20.0), (2, 15.0, 20.0), (3, 5.0, 5.0)]);
    }

    /// Two chunks: 10 s for 5 MB across the end of a part, and 1 s for 1 MB after a pause.
    #[test]
    fn a_player_at_rest_is_not_slow() {
        let mut fetches = Fetches::new(20);
        let whole = AppEvent::Chunk { id: 0, rate: Rate::INFINITE, lasts: Span::ZERO };
        let due = AppEvent::MessageDue { id: 0, data: DataRange::between(0, 1), due: Time::ZERO };
        let read = |end| AppEvent::Read { data: DataRange::new(Dsn::ZERO, end) };
        for (ms, event) in [
            (15_000, &due),
            (19_000, &read(Dsn::new(3_000_000))),
            (25_000, &read(Dsn::new(2_000_000))),
            (25_000, &whole),
            (30_000, &due),
            (31_000, &read(Dsn::new(1_000_000))),
            (31_000, &whole),
        ] {
            fetches.on_app(at(ms), event);
        }
        let told: Vec<_> = fetches.by_part().collect();
        assert_eq!(told, [(0, 4.8), (20, 4.0)]);
    }
}
