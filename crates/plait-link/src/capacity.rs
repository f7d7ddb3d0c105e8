use alloc::vec::Vec;

use plait_base::{Rate, Time};

use crate::config::schedule_of;
use crate::schedule::Schedule;
use crate::{OPPORTUNITY_BYTES, RateSource};

const NANOS_PER_SEC: f64 = 1e9;
const NANOS_PER_MILLI: f64 = 1e6;

/// The bytes that a transmitter can send up to a time. It is the sum that [`Service`](crate::Service)
/// reaches if it always has something to send, for bounds and for drawings.
///
/// # Examples
/// ```
/// use plait_base::{Rate, Span, Time};
/// use plait_link::{Capacity, RateSource};
///
/// let capacity = Capacity::new(&RateSource::Fixed(Rate::from_bps(8_000_000)));
/// let second = Time::ZERO + Span::from_secs(1);
/// assert_eq!(capacity.bytes_until(second), 1_000_000.0);
/// ```
#[derive(Clone, Debug)]
pub struct Capacity {
    /// Start in nanoseconds, bytes sent by then, and bytes a nanosecond from then on.
    rows: Vec<(f64, f64, f64)>,
    /// Length of a lap in nanoseconds and its bytes, if the rows repeat.
    lap: Option<(f64, f64)>,
    /// Position in the lap at which the link starts, in nanoseconds.
    shift: f64,
    /// Bytes sent before that position.
    before: f64,
}

impl Capacity {
    /// Returns the capacity of a link with the rate of `source`.
    #[must_use]
    pub fn new(source: &RateSource) -> Capacity {
        let (rows, lap, shift) = match source {
            RateSource::Fixed(rate) => (alloc::vec![(0.0, 0.0, per_nano(*rate))], None, 0.0),
            RateSource::Steps(steps) if steps.is_empty() => {
                (alloc::vec![(0.0, 0.0, f64::INFINITY)], None, 0.0)
            }
            RateSource::Steps(steps) => (rows_of(&schedule_of(steps)), None, 0.0),
            RateSource::Trace { trace, offset } => {
                let length = trace.duration().as_nanos() as f64;
                let shift = offset.as_nanos() % trace.duration().as_nanos().max(1);
                let rows = match trace.schedule() {
                    Some(schedule) => rows_of(&schedule),
                    None => opportunities(&trace.stamps()),
                };
                let bytes = rows.last().map_or(0.0, |row| row.1 + grown(row.2, length - row.0));
                (rows, Some((length, bytes)), shift as f64)
            }
        };
        let mut capacity = Capacity { rows, lap, shift, before: 0.0 };
        capacity.before = capacity.sum(shift);
        capacity
    }

    /// Returns the bytes that can be sent from [`Time::ZERO`] to `time`. It is infinite after a time
    /// without a limit of the rate.
    #[must_use]
    pub fn bytes_until(&self, time: Time) -> f64 {
        let sum = self.sum(time.as_nanos() as f64 + self.shift);
        if sum.is_infinite() { sum } else { sum - self.before }
    }

    /// Returns the bytes that can be sent from `from` to `to`; zero if `to` is earlier. An unlimited
    /// link can send everything at once.
    #[must_use]
    pub fn bytes_between(&self, from: Time, to: Time) -> f64 {
        match self.rate_is_unlimited_between(from, to) {
            true if from <= to => f64::INFINITY,
            _ if to <= from => 0.0,
            _ => self.bytes_until(to) - self.bytes_until(from),
        }
    }

    fn rate_is_unlimited_between(&self, from: Time, to: Time) -> bool {
        let (from, to) = (from.as_nanos() as f64, to.as_nanos() as f64);
        let end = |at: usize| self.rows.get(at + 1).map_or(f64::INFINITY, |row| row.0);
        self.lap.is_none()
            && (0..self.rows.len())
                .any(|at| self.rows[at].2.is_infinite() && self.rows[at].0 <= to && from < end(at))
    }

    /// Returns the bytes from the start of the recording to `nanos` after it.
    fn sum(&self, nanos: f64) -> f64 {
        let (laps, within) = match self.lap {
            Some((length, bytes)) if nanos >= length => {
                let laps = floor(nanos / length);
                (laps * bytes, nanos - laps * length)
            }
            _ => (0.0, nanos),
        };
        let at = self.rows.partition_point(|row| row.0 <= within);
        let row = self.rows.get(at.wrapping_sub(1));
        laps + row.map_or(0.0, |row| row.1 + grown(row.2, within - row.0))
    }
}

/// Returns the bytes a nanosecond.
fn per_nano(rate: Rate) -> f64 {
    if rate.is_infinite() { f64::INFINITY } else { rate.as_bps() as f64 / 8.0 / NANOS_PER_SEC }
}

/// Returns the bytes that a rate gives in a time; zero in no time even if it is unlimited.
fn grown(rate: f64, nanos: f64) -> f64 {
    if nanos > 0.0 { rate * nanos } else { 0.0 }
}

/// Rounds a number that is not negative down.
fn floor(number: f64) -> f64 {
    number as u64 as f64
}

fn rows_of(schedule: &Schedule) -> Vec<(f64, f64, f64)> {
    let (mut start, mut sum) = (0.0, 0.0);
    let mut rows = Vec::with_capacity(schedule.rows().len());
    for &(end, rate) in schedule.rows() {
        let rate = per_nano(rate);
        rows.push((start, sum, rate));
        sum += grown(rate, end as f64 - start);
        start = end as f64;
    }
    rows
}

/// Returns a row for each millisecond that has opportunities.
fn opportunities(stamps: &[u32]) -> Vec<(f64, f64, f64)> {
    let mut rows = alloc::vec![(0.0, 0.0, 0.0)];
    let mut sum = 0.0;
    for stamp in stamps {
        sum += f64::from(OPPORTUNITY_BYTES);
        let start = f64::from(*stamp) * NANOS_PER_MILLI;
        match rows.last_mut() {
            Some(last) if last.0 >= start => last.1 = sum,
            _ => rows.push((start, sum, 0.0)),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Service, Trace};
    use alloc::sync::Arc;
    use alloc::vec;
    use plait_base::Span;
    use proptest::prelude::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn mbit(n: u64) -> Rate {
        Rate::from_bps(n * 1_000_000)
    }

    #[test]
    fn steps_add_up() {
        let steps = vec![(at(0), mbit(8)), (at(100), Rate::ZERO), (at(200), mbit(16))];
        let capacity = Capacity::new(&RateSource::Steps(steps));
        assert_eq!(capacity.bytes_until(at(50)), 50_000.0);
        assert_eq!(capacity.bytes_until(at(150)), 100_000.0);
        assert_eq!(capacity.bytes_until(at(250)), 200_000.0);
        assert_eq!(capacity.bytes_between(at(50), at(250)), 150_000.0);
        assert_eq!(capacity.bytes_between(at(250), at(50)), 0.0);
    }

    #[test]
    fn a_recording_repeats_and_starts_at_its_offset() {
        // 1 MB/s for 1 s, then nothing for 1 s.
        let trace = Arc::new(Trace::parse("t", "1,1000000\n2,0\n").unwrap());
        let capacity = Capacity::new(&RateSource::Trace { trace, offset: Span::from_millis(500) });
        assert_eq!(capacity.bytes_until(at(500)), 500_000.0);
        assert_eq!(capacity.bytes_until(at(1_500)), 500_000.0);
        assert_eq!(capacity.bytes_until(at(2_000)), 1_000_000.0);
        assert_eq!(capacity.bytes_until(at(20_000)), 10_000_000.0);
    }

    #[test]
    fn an_opportunity_counts_from_its_time_on() {
        let trace = Arc::new(Trace::parse("t", "2\n2\n5\n").unwrap());
        let capacity = Capacity::new(&RateSource::Trace { trace, offset: Span::ZERO });
        assert_eq!(capacity.bytes_until(at(1)), 0.0);
        assert_eq!(capacity.bytes_until(at(2)), 3_000.0);
        assert_eq!(capacity.bytes_until(at(5)), 4_500.0);
        assert_eq!(capacity.bytes_until(at(7)), 7_500.0);
    }

    #[test]
    fn an_unlimited_rate_sends_everything_at_once() {
        let capacity = Capacity::new(&RateSource::Fixed(Rate::INFINITE));
        assert_eq!(capacity.bytes_between(at(3), at(3)), f64::INFINITY);
        assert_eq!(capacity.bytes_between(at(4), at(3)), 0.0);
        let later = RateSource::Steps(vec![(at(0), mbit(8)), (at(100), Rate::INFINITE)]);
        assert_eq!(Capacity::new(&later).bytes_between(at(0), at(50)), 50_000.0);
        assert_eq!(Capacity::new(&later).bytes_between(at(50), at(100)), f64::INFINITY);
    }

    fn source() -> impl Strategy<Value = RateSource> {
        let steps = prop::collection::vec((0u64..500, 0u64..40), 1..6).prop_map(|mut list| {
            list[0].0 = 0;
            list.push((500, 1));
            let step = |(time, rate): (u64, u64)| (at(time), mbit(rate));
            RateSource::Steps(list.into_iter().map(step).collect())
        });
        let stamps = prop::collection::vec(1u32..80, 1..40);
        let trace = (stamps, 0u64..200).prop_map(|(mut stamps, offset)| {
            stamps.sort_unstable();
            let text: alloc::string::String =
                stamps.iter().map(|it| alloc::format!("{it}\n")).collect();
            let trace = Arc::new(Trace::parse("t", &text).unwrap());
            RateSource::Trace { trace, offset: Span::from_millis(offset) }
        });
        let rows = prop::collection::vec(0u64..3_000_000, 1..10);
        let recorded = (rows, 0u64..5_000).prop_map(|(rows, offset)| {
            let row = |(at, rate): (usize, &u64)| alloc::format!("{},{rate}\n", at + 1);
            let mut text: alloc::string::String = rows.iter().enumerate().map(row).collect();
            text.push_str(&alloc::format!("{},100000\n", rows.len() + 1));
            let trace = Arc::new(Trace::parse("t", &text).unwrap());
            RateSource::Trace { trace, offset: Span::from_millis(offset) }
        });
        prop_oneof![steps, trace, recorded]
    }

    proptest! {
        /// No transmitter sends more than the capacity, and one that always has something to send is at
        /// most a packet behind it.
        #[test]
        fn a_busy_transmitter_reaches_the_capacity(source in source(), from in 0u64..3_000) {
            let (capacity, mut service) = (Capacity::new(&source), Service::new(&source));
            let (from, mut sent) = (at(from), 0.0);
            for _ in 0..300 {
                let end = service.serve(from, 1_500);
                sent += 1_500.0;
                let bound = capacity.bytes_between(from, end);
                prop_assert!(sent <= bound + 1.0, "{sent} > {bound} by {end:?}");
                prop_assert!(bound <= sent + 1.0 + 40.0 * 1_500.0, "{bound} against {sent}");
            }
        }
    }
}
