//! Distributions of time spans.

use plait_base::Span;
use serde::Serialize;

/// Summary of a set of spans, in milliseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Distribution {
    /// Mean, computed from an integer sum.
    pub mean: f64,
    /// 50th percentile.
    pub median: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
    /// Number of values.
    pub n: u64,
}

impl Distribution {
    /// Returns the distribution of `spans`, and sorts them. Percentiles between two values are
    /// interpolated linearly (rank `(n - 1) p`). Returns `None` if `spans` is empty.
    #[must_use]
    pub fn exact(spans: &mut [Span]) -> Option<Distribution> {
        spans.sort_unstable();
        let max = spans.last()?.as_millis_f64();
        let sum: u128 = spans.iter().map(|span| u128::from(span.as_nanos())).sum();
        Some(Distribution {
            mean: mean_millis(sum, spans.len() as u64),
            median: interpolated(spans, 50),
            p95: interpolated(spans, 95),
            p99: interpolated(spans, 99),
            max,
            n: spans.len() as u64,
        })
    }
}

fn interpolated(sorted: &[Span], percent: u64) -> f64 {
    let hundredths = (sorted.len() as u64 - 1) * percent;
    let (low, part) = ((hundredths / 100) as usize, (hundredths % 100) as f64 / 100.0);
    let below = sorted[low].as_millis_f64();
    match sorted.get(low + 1) {
        Some(above) => below + (above.as_millis_f64() - below) * part,
        None => below,
    }
}

/// Returns `sum` nanoseconds divided by `count`, in milliseconds.
pub(crate) fn mean_millis(sum: u128, count: u64) -> f64 {
    sum as f64 / count as f64 / 1e6
}

/// Values below this have one bucket each. Above it each octave has half as many buckets.
const LINEAR: u64 = 1 << 7;
const HALF: usize = (LINEAR / 2) as usize;
/// Buckets of 128 small values, and of the 57 octaves above them.
const BUCKETS: usize = LINEAR as usize + 57 * HALF;

/// A log-linear histogram of spans with constant memory; it allocates only when it is created. The
/// mean and the extremes are exact. Percentiles are within 1/128 of the value.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Box<[u32]>,
    sum: u128,
    count: u64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        let counts = vec![0; BUCKETS].into_boxed_slice();
        Histogram { counts, sum: 0, count: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// Adds a span.
    #[inline(never)]
    pub fn record(&mut self, span: Span) {
        let nanos = span.as_nanos();
        let bucket = &mut self.counts[bucket(nanos)];
        *bucket = bucket.saturating_add(1);
        self.sum += u128::from(nanos);
        self.count += 1;
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
    }

    /// Adds all spans of `other`.
    pub fn join(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
        self.sum += other.sum;
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Removes all spans and keeps the memory.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.counts.fill(0);
        }
        (self.sum, self.count, self.min, self.max) = (0, 0, u64::MAX, 0);
    }

    /// Returns the distribution, with percentiles by nearest rank, or `None` if the histogram is
    /// empty.
    #[must_use]
    pub fn distribution(&self) -> Option<Distribution> {
        (self.count > 0).then(|| Distribution {
            mean: mean_millis(self.sum, self.count),
            median: self.percentile(50),
            p95: self.percentile(95),
            p99: self.percentile(99),
            max: Span::from_nanos(self.max).as_millis_f64(),
            n: self.count,
        })
    }

    /// Returns a percentile in milliseconds, by nearest rank, or `None` if the histogram is empty.
    #[must_use]
    pub fn percentile_ms(&self, percent: u64) -> Option<f64> {
        (self.count > 0).then(|| self.percentile(percent))
    }

    fn percentile(&self, percent: u64) -> f64 {
        let rank = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1);
        let mut below = 0;
        for (index, count) in self.counts.iter().enumerate() {
            below += u128::from(*count);
            if below >= rank {
                let nanos = middle(index).clamp(self.min, self.max);
                return Span::from_nanos(nanos).as_millis_f64();
            }
        }
        Span::from_nanos(self.max).as_millis_f64()
    }
}

/// Returns the bucket of a value: the value itself, or its octave and its seven leading bits.
const fn bucket(value: u64) -> usize {
    if value < LINEAR {
        return value as usize;
    }
    let octave = 57 - value.leading_zeros() as usize;
    octave * HALF + (value >> octave) as usize
}

/// Returns the value in the middle of a bucket.
const fn middle(bucket: usize) -> u64 {
    if bucket < LINEAR as usize {
        return bucket as u64;
    }
    let octave = (bucket - HALF) / HALF;
    let lead = (bucket - octave * HALF) as u64;
    (lead << octave) + (1 << (octave - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn millis(values: &[u64]) -> Vec<Span> {
        values.iter().map(|value| Span::from_millis(*value)).collect()
    }

    #[test]
    fn exact_percentiles_are_interpolated() {
        let d = Distribution::exact(&mut millis(&[40, 10, 30, 20])).unwrap();
        assert_eq!((d.mean, d.median, d.max, d.n), (25.0, 25.0, 40.0, 4));
        // Rank 2.85: 30 + 0.85 * 10.
        assert!((d.p95 - 38.5).abs() < 1e-9);
        // Rank 2.97.
        assert!((d.p99 - 39.7).abs() < 1e-9);
        let one = Distribution::exact(&mut millis(&[7])).unwrap();
        assert_eq!((one.mean, one.median, one.p95, one.max), (7.0, 7.0, 7.0, 7.0));
        assert_eq!(Distribution::exact(&mut []), None);
    }

    #[test]
    fn buckets_tile_the_whole_scale() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(127), 127);
        assert_eq!(bucket(128), 128);
        assert_eq!(bucket(129), 128);
        assert_eq!(bucket(255), 191);
        assert_eq!(bucket(256), 192);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        for index in 0..BUCKETS {
            assert_eq!(bucket(middle(index)), index);
        }
    }

    #[test]
    fn a_cleared_histogram_is_a_new_one() {
        let mut histogram = Histogram::default();
        histogram.record(Span::from_millis(5));
        histogram.clear();
        assert_eq!(histogram.distribution(), None);
        histogram.record(Span::ZERO);
        let d = histogram.distribution().unwrap();
        assert_eq!((d.mean, d.median, d.p95, d.max, d.n), (0.0, 0.0, 0.0, 0.0, 1));
    }

    proptest! {
        #[test]
        fn the_histogram_is_close_to_the_sorted_list(
            mut values in proptest::collection::vec((0u64..1 << 50, 0u32..50), 1..200)
        ) {
            let mut histogram = Histogram::default();
            let mut spans: Vec<u64> = values.drain(..).map(|(value, bits)| value >> bits).collect();
            spans.iter().for_each(|nanos| histogram.record(Span::from_nanos(*nanos)));
            spans.sort_unstable();
            let d = histogram.distribution().unwrap();
            let sum: u64 = spans.iter().sum();
            prop_assert!((d.mean - sum as f64 / spans.len() as f64 / 1e6).abs() <= 1e-12 * d.mean);
            prop_assert_eq!(d.max, spans[spans.len() - 1] as f64 / 1e6);
            for (percent, found) in [(50, d.median), (95, d.p95), (99, d.p99)] {
                let rank = (spans.len() * percent).div_ceil(100).max(1);
                let exact = spans[rank - 1] as f64 / 1e6;
                prop_assert!((found - exact).abs() <= exact / 128.0, "{found} {exact}");
            }
        }
    }
}
