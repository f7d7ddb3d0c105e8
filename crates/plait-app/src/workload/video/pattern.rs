//! Traffic patterns of players: a prefetch, then one block in each period (IMC 2013, Table 7).

use crate::workload::exchange::Due;
use plait_base::{RandomStream, Span};
use std::sync::Arc;

/// A mean and a standard deviation, in bytes or nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Spread {
    mean: u64,
    deviation: u64,
}

impl Spread {
    const fn new(mean: u64, deviation: u64) -> Spread {
        Spread { mean, deviation }
    }

    /// Returns the mean, or a random value if there is a stream. The distribution is normal, cut at
    /// three deviations on both sides, so that the mean is kept. The result is at least 1.
    fn draw(self, stream: Option<&mut RandomStream>) -> u64 {
        let Some(stream) = stream else { return self.mean };
        // The sum of twelve uniform numbers has variance 1. This method gives the same result on
        // all platforms.
        let normal = (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0;
        let value = self.mean as f64 + normal.clamp(-3.0, 3.0) * self.deviation as f64;
        (value + 0.5).max(1.0) as u64
    }
}

/// A pattern: the sizes and times of a player's requests.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Pattern {
    /// Its name.
    pub name: &'static str,
    prefetch: Spread,
    block: Spread,
    /// Time from one block to the next, in nanoseconds.
    period: Spread,
}

const MB: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// The values of Table 7 and its text. The Netflix sizes are decimal, because 40.6 MiB is not a
/// whole number of bytes. The paper has no period for YouTube; the period here is that of a video
/// of 1 Mbit/s.
pub const PATTERNS: [Pattern; 4] = [
    Pattern {
        name: "netflix-android",
        prefetch: Spread::new(40_600_000, 900_000),
        block: Spread::new(5_200_000, 200_000),
        period: Spread::new(72 * SECOND, 10_100_000_000),
    },
    Pattern {
        name: "netflix-ipad",
        prefetch: Spread::new(15 * MB, 2_600_000),
        block: Spread::new(1_800_000, 500_000),
        period: Spread::new(10_200_000_000, 2_700_000_000),
    },
    Pattern {
        name: "youtube-64k",
        prefetch: Spread::new(12_500_000, 833_333),
        block: Spread::new(64 << 10, 0),
        period: Spread::new((64 << 10) * 8_000, 0),
    },
    Pattern {
        name: "youtube-512k",
        prefetch: Spread::new(12_500_000, 833_333),
        block: Spread::new(512 << 10, 0),
        period: Spread::new((512 << 10) * 8_000, 0),
    },
];

/// Maximum number of blocks of a schedule; a longer pattern is refused.
const MAX_PERIODS: u64 = 1_000_000;

impl Pattern {
    /// Returns the pattern called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Pattern> {
        PATTERNS.into_iter().find(|pattern| pattern.name == name)
    }

    /// Returns the number of blocks within `duration` without random spread.
    pub(super) fn blocks(&self, duration: Span) -> u64 {
        duration.as_nanos().div_ceil(self.period.mean).saturating_sub(1)
    }

    /// Returns whether a schedule of this duration is within the limit.
    pub(super) fn fits(&self, duration: Span) -> bool {
        self.blocks(duration) <= MAX_PERIODS
    }

    /// Returns the prefetch at time zero and the blocks due before `duration` ends, one in each
    /// period. With a seed, sizes and periods are random.
    #[must_use]
    pub fn schedule(&self, duration: Span, seed: Option<u64>) -> Arc<[Due]> {
        let mut stream = seed.map(|seed| RandomStream::new(seed, &["video", self.name]));
        let mut at = Span::ZERO;
        let mut schedule = vec![Due { at, bytes: self.prefetch.draw(stream.as_mut()) }];
        loop {
            at += Span::from_nanos(self.period.draw(stream.as_mut()));
            if at >= duration || schedule.len() as u64 > MAX_PERIODS {
                return schedule.into();
            }
            schedule.push(Due { at, bytes: self.block.draw(stream.as_mut()) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kib(count: u64) -> u64 {
        count << 10
    }

    #[test]
    fn without_spread_sizes_and_periods_are_those_of_the_table() {
        // Claim imc-u7.
        let table = [
            ("netflix-android", 40_600_000, 5_200_000, Span::from_secs(72)),
            ("netflix-ipad", 15_000_000, 1_800_000, Span::from_millis(10_200)),
            ("youtube-64k", 12_500_000, kib(64), Span::from_micros(524_288)),
            ("youtube-512k", 12_500_000, kib(512), Span::from_micros(4_194_304)),
        ];
        assert_eq!(table.len(), PATTERNS.len());
        for (name, prefetch, block, period) in table {
            let pattern = Pattern::named(name).unwrap();
            let schedule = pattern.schedule(period.times(100), None);
            assert_eq!(schedule.len(), 100, "{name}");
            assert_eq!(pattern.blocks(period.times(100)), 99);
            assert_eq!(schedule[0], Due { at: Span::ZERO, bytes: prefetch });
            for (number, due) in (0u64..).zip(&schedule[..]).skip(1) {
                assert_eq!(*due, Due { at: period.times(number), bytes: block }, "{name}");
            }
        }
    }

    #[test]
    fn with_spread_the_means_stay() {
        // Claim imc-u7: within 1 % over 10,000 blocks.
        for pattern in PATTERNS {
            let duration = Span::from_nanos(pattern.period.mean).times(10_300);
            let schedule = pattern.schedule(duration, Some(7));
            let blocks = &schedule[1..=10_000];
            let mean = blocks.iter().map(|due| due.bytes as f64).sum::<f64>() / 10_000.0;
            assert!((mean / pattern.block.mean as f64 - 1.0).abs() < 0.01, "{mean}");
            let period = blocks[9_999].at.as_secs_f64() / 10_000.0;
            let expected = Span::from_nanos(pattern.period.mean).as_secs_f64();
            assert!((period / expected - 1.0).abs() < 0.01, "{period} for {expected}");
            // With a seed the values vary, and another seed gives other values.
            let spreads = blocks.iter().any(|due| due.bytes != blocks[0].bytes);
            assert_eq!(spreads, pattern.block.deviation > 0);
            assert_ne!(schedule[0].bytes, pattern.schedule(duration, Some(8))[0].bytes);
            assert_eq!(schedule, pattern.schedule(duration, Some(7)));
        }
    }

    #[test]
    fn the_spread_is_the_deviation_of_the_table() {
        let pattern = Pattern::named("netflix-ipad").unwrap();
        let schedule = pattern.schedule(Span::from_secs(102_000), Some(1));
        let blocks = &schedule[1..];
        let count = blocks.len() as f64;
        let mean = blocks.iter().map(|due| due.bytes as f64).sum::<f64>() / count;
        let square = blocks.iter().map(|due| (due.bytes as f64 - mean) * (due.bytes as f64 - mean));
        let deviation = libm::sqrt(square.sum::<f64>() / count);
        assert!((deviation / 500_000.0 - 1.0).abs() < 0.05, "{deviation}");
    }
}
