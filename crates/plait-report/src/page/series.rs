//! Values over time in bins that widen during the run. A run of any length takes the same memory,
//! and the page has the same size.

use plait_base::{Span, Time};
use serde::Serialize;

/// Greatest number of bins; above it, pairs of bins are merged.
pub(super) const BINS: usize = 1_200;
/// Initial length of a bin.
const FINEST: Span = Span::from_micros(100);

/// Maps instants to bins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// Start of the drawing.
    pub(super) origin: Time,
    /// Length of a bin.
    pub(super) bin: Span,
}

impl Grid {
    /// Creates a grid of the finest bins that begins at `origin`.
    pub(super) fn new(origin: Time) -> Grid {
        Grid { origin, bin: FINEST }
    }

    /// Creates a grid for a known length: as many bins as a drawing has, but none finer than the finest.
    pub(super) fn spanning(origin: Time, length: Span) -> Grid {
        let bin = Span::from_nanos(length.as_nanos() / BINS as u64 + 1);
        Grid { origin, bin: bin.max(FINEST) }
    }

    /// Returns the bin of `at`; `None` before the origin.
    pub(super) fn index(&self, at: Time) -> Option<usize> {
        let since = (at >= self.origin).then(|| at.since(self.origin).as_nanos())?;
        usize::try_from(since / self.bin.as_nanos().max(1)).ok()
    }
}

/// Minimum, maximum and last value in a bin.
#[derive(Clone, Copy, Debug)]
struct Seen {
    least: u64,
    greatest: u64,
    last: u64,
}

/// A value that holds until it changes.
#[derive(Clone, Default, Debug)]
pub(super) struct Track {
    /// The value at the start of the drawing, unless the first bin has one.
    before: Option<u64>,
    bins: Vec<Option<Seen>>,
}

impl Track {
    /// Creates a track with a starting value.
    pub(super) fn starting(value: Option<u64>) -> Track {
        Track { before: value, bins: Vec::new() }
    }

    /// Records that the value is `value` from this bin on.
    pub(super) fn note(&mut self, index: usize, value: u64) {
        if self.bins.len() <= index {
            self.bins.resize(index + 1, None);
        }
        let slot = &mut self.bins[index];
        let known = slot.unwrap_or(Seen { least: value, greatest: value, last: value });
        *slot = Some(Seen {
            least: known.least.min(value),
            greatest: known.greatest.max(value),
            last: value,
        });
    }

    /// Merges pairs of bins.
    pub(super) fn widen(&mut self) {
        let merged = self.bins.chunks(2).map(|pair| match *pair {
            [Some(a), Some(b)] => Some(Seen {
                least: a.least.min(b.least),
                greatest: a.greatest.max(b.greatest),
                last: b.last,
            }),
            [a, b] => b.or(a),
            [a] => a,
            _ => None,
        });
        self.bins = merged.collect();
    }

    /// Returns the bins with a record, each with its least and its greatest value.
    pub(super) fn records(&self) -> Vec<(usize, u64, u64)> {
        let filled = self.bins.iter().enumerate();
        filled.filter_map(|(bin, seen)| seen.map(|it| (bin, it.least, it.greatest))).collect()
    }

    /// Returns the band over `bins` bins. A bin without a record keeps the previous value.
    pub(super) fn finish(&self, bins: usize) -> Band {
        let mut band = Band::default();
        let mut held: Option<u64> = None;
        for index in 0..bins {
            let seen = self.bins.get(index).copied().flatten();
            // The value at the start of the bin belongs to it too.
            let (least, greatest, last) = match (seen, held) {
                (Some(seen), Some(held)) => {
                    (Some(seen.least.min(held)), Some(seen.greatest.max(held)), Some(seen.last))
                }
                (Some(seen), None) => (Some(seen.least), Some(seen.greatest), Some(seen.last)),
                (None, held) => {
                    let held = held.or(self.before);
                    (held, held, held)
                }
            };
            band.least.push(least);
            band.greatest.push(greatest);
            band.last.push(last);
            held = last;
        }
        band
    }
}

/// A value over time: one entry per bin, absent before the first value.
#[derive(Serialize, Default, Debug)]
pub(super) struct Band {
    least: Vec<Option<u64>>,
    greatest: Vec<Option<u64>>,
    last: Vec<Option<u64>>,
}

/// Amounts that add up.
#[derive(Clone, Default, Debug)]
pub(super) struct Sum(pub(super) Vec<u64>);

impl Sum {
    /// Adds `amount` to this bin.
    pub(super) fn add(&mut self, index: usize, amount: u64) {
        if self.0.len() <= index {
            self.0.resize(index + 1, 0);
        }
        self.0[index] += amount;
    }

    /// Merges pairs of bins.
    pub(super) fn widen(&mut self) {
        self.0 = self.0.chunks(2).map(|pair| pair.iter().sum()).collect();
    }

    /// Returns the bins that are not zero, with their amounts.
    pub(super) fn sparse(&self) -> Vec<(usize, u64)> {
        let filled = self.0.iter().copied().enumerate();
        filled.filter(|(_, amount)| *amount > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_holds_until_it_changes_and_a_bin_has_its_extremes() {
        let mut track = Track::default();
        track.note(1, 5);
        track.note(3, 9);
        track.note(3, 2);
        track.note(3, 4);
        let band = track.finish(6);
        assert_eq!(band.last, [None, Some(5), Some(5), Some(4), Some(4), Some(4)]);
        assert_eq!(band.least, [None, Some(5), Some(5), Some(2), Some(4), Some(4)]);
        assert_eq!(band.greatest, [None, Some(5), Some(5), Some(9), Some(4), Some(4)]);
        assert_eq!(track.records(), [(1, 5, 5), (3, 2, 9)]);
        track.widen();
        let band = track.finish(3);
        assert_eq!(band.last, [Some(5), Some(4), Some(4)]);
        assert_eq!(band.least, [Some(5), Some(2), Some(4)]);
        assert_eq!(band.greatest, [Some(5), Some(9), Some(4)]);
    }

    #[test]
    fn what_held_before_counts_until_the_first_change() {
        let mut track = Track::starting(Some(7));
        assert_eq!(track.finish(2).last, [Some(7), Some(7)]);
        track.note(1, 9);
        assert_eq!(track.finish(2).last, [Some(7), Some(9)]);
        track.note(0, 3);
        assert_eq!(track.finish(2).least, [Some(3), Some(3)]);
        assert_eq!(track.finish(2).greatest, [Some(3), Some(9)]);
    }

    #[test]
    fn widening_keeps_the_sum() {
        let mut sum = Sum::default();
        for index in 0..7 {
            sum.add(index, 1 + index as u64);
        }
        sum.widen();
        assert_eq!(sum.0, [3, 7, 11, 7]);
        assert_eq!(Sum(vec![0, 4, 0]).sparse(), [(1, 4)]);
    }

    #[test]
    fn a_known_length_fits() {
        for nanos in [1, 1_199, 1_200, 1_201, 120_000_000, 119_999_999, 3_600_000_000_000] {
            let grid = Grid::spanning(Time::ZERO, Span::from_nanos(nanos));
            let last = grid.index(Time::from_nanos(nanos)).unwrap();
            assert!(last < BINS && (nanos < 120_000_000 || last > BINS - 3), "{nanos}: {last}");
        }
    }

    #[test]
    fn nothing_happens_before_the_origin() {
        let grid = Grid::new(Time::from_nanos(1_000_000));
        assert_eq!(grid.index(Time::from_nanos(999_999)), None);
        assert_eq!(grid.index(Time::from_nanos(1_000_000)), Some(0));
        assert_eq!(grid.index(Time::from_nanos(1_100_000)), Some(1));
    }
}
