//! Sequence numbers of the wire as 64-bit positions, and the gaps between received ranges.

use std::collections::BTreeMap;

/// Converts 32-bit numbers to positions that count from a first number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positions {
    first: u32,
    /// The latest position, near which the next number is.
    near: i64,
}

impl Positions {
    pub(crate) const fn new(first: u32) -> Positions {
        Positions { first, near: 0 }
    }

    /// Returns true if `number` has position zero.
    pub(crate) const fn is_first(&self, number: u32) -> bool {
        self.first == number
    }

    /// Returns the position of `number` nearest to the latest one, and takes it as the latest.
    pub(crate) fn follow(&mut self, number: u32) -> i64 {
        let position = self.of(number);
        self.near = self.near.max(position);
        position
    }

    /// Returns the position of `number` nearest to the latest one.
    pub(crate) const fn of(&self, number: u32) -> i64 {
        let relative = number.wrapping_sub(self.first);
        let step = relative.wrapping_sub(self.near as u32) as i32;
        self.near + step as i64
    }
}

/// Returns the position of a data sequence number of 4 or 8 bytes. `first` has position zero, and a short
/// number is the nearest one to `near`.
pub(crate) const fn data_position(value: u64, long: bool, first: u64, near: i64) -> i64 {
    if long {
        return value.wrapping_sub(first) as i64;
    }
    let relative = (value as u32).wrapping_sub(first as u32);
    near + relative.wrapping_sub(near as u32) as i32 as i64
}

/// Largest number of gaps that are kept. Beyond it, the first gap counts as filled.
const MAX_GAPS: usize = 4_096;

/// A range below the highest position that was not seen yet.
#[derive(Clone, Copy, Debug)]
struct Gap {
    end: i64,
    /// Time at which data beyond the gap was seen, in nanoseconds.
    since: i64,
}

/// New and old bytes of a range.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct News {
    /// Bytes above the highest position.
    pub(crate) fresh: u64,
    /// Bytes that fill gaps.
    pub(crate) filled: u64,
    /// Bytes that were seen before.
    pub(crate) again: u64,
    /// The age in nanoseconds of the oldest gap that was filled.
    pub(crate) gap_age: i64,
}

/// The seen part of a sequence: everything below `next` except some gaps.
#[derive(Clone, Default, Debug)]
pub(crate) struct Coverage {
    /// End of the highest range.
    next: i64,
    started: bool,
    gaps: BTreeMap<i64, Gap>,
}

impl Coverage {
    /// Returns the end of the highest range.
    pub(crate) const fn next(&self) -> i64 {
        self.next
    }

    /// Returns the first position that was not seen.
    pub(crate) fn in_order(&self) -> i64 {
        self.gaps.first_key_value().map_or(self.next, |(start, _)| *start)
    }

    /// Returns the time since which the first gap is known, in nanoseconds.
    pub(crate) fn gap_since(&self) -> Option<i64> {
        self.gaps.first_key_value().map(|(_, gap)| gap.since)
    }

    /// Begins at `position`; earlier positions count as seen.
    pub(crate) fn begin(&mut self, position: i64) {
        if !self.started {
            (self.started, self.next) = (true, position);
        }
    }

    /// Adds the range from `start` up to `end`, seen at `now`.
    pub(crate) fn add(&mut self, start: i64, end: i64, now: i64) -> News {
        self.begin(start);
        let mut news = News::default();
        if end <= start {
            return news;
        }
        let below = end.min(self.next);
        if start < below {
            news.filled = self.fill(start, below, now, &mut news.gap_age);
            news.again = (below - start) as u64 - news.filled;
        }
        if end > self.next {
            if start > self.next {
                self.gaps.insert(self.next, Gap { end: start, since: now });
                if self.gaps.len() > MAX_GAPS {
                    self.gaps.pop_first();
                }
            }
            news.fresh = (end - start.max(self.next)) as u64;
            self.next = end;
        }
        news
    }

    /// Takes everything below `position` as seen, because the peer acknowledged it. Returns the number of bytes
    /// that were not seen before.
    pub(crate) fn acknowledge(&mut self, position: i64) -> u64 {
        self.begin(position);
        let mut unseen = (position - self.next).max(0);
        self.next += unseen;
        while let Some(entry) = self.gaps.first_entry()
            && *entry.key() < position
        {
            let (start, gap) = entry.remove_entry();
            unseen += gap.end.min(position) - start;
            if gap.end > position {
                self.gaps.insert(position, gap);
            }
        }
        unseen as u64
    }

    fn fill(&mut self, start: i64, end: i64, now: i64, age: &mut i64) -> u64 {
        let mut filled = 0;
        let before = self.gaps.range(..start).next_back();
        let mut from = before.filter(|(_, gap)| gap.end > start).map_or(start, |(at, _)| *at);
        while from < end
            && let Some((&at, &gap)) = self.gaps.range(from..end).next()
        {
            from = gap.end;
            let (left, right) = (at.max(start), gap.end.min(end));
            filled += (right - left) as u64;
            *age = (*age).max(now - gap.since);
            self.gaps.remove(&at);
            if at < left {
                self.gaps.insert(at, Gap { end: left, ..gap });
            }
            if right < gap.end {
                self.gaps.insert(right, gap);
            }
        }
        filled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_wrap_and_go_back() {
        let mut positions = Positions::new(u32::MAX - 1);
        assert_eq!(positions.follow(u32::MAX), 1);
        assert_eq!(positions.follow(5), 7);
        assert_eq!(positions.of(u32::MAX - 1), 0);
        let mut far = Positions::new(0);
        for step in 1..=6u64 {
            assert_eq!(far.follow((step * 0x4000_0000) as u32), step as i64 * 0x4000_0000);
        }
        assert_eq!(data_position(3, false, 0xffff_fffe, 0), 5);
        assert_eq!(data_position(7, true, u64::MAX, 0), 8);
        assert_eq!(data_position(2, false, 0, 0x1_0000_0000), 0x1_0000_0002);
    }

    #[test]
    fn a_gap_is_filled_in_parts() {
        let mut seen = Coverage::default();
        seen.add(0, 100, 1);
        assert_eq!(seen.add(200, 300, 2), News { fresh: 100, ..News::default() });
        assert_eq!(seen.in_order(), 100);
        let middle = seen.add(120, 130, 5);
        assert_eq!(middle, News { filled: 10, gap_age: 3, ..News::default() });
        assert_eq!(seen.add(90, 210, 9), News { filled: 90, again: 30, gap_age: 7, fresh: 0 });
        assert_eq!((seen.in_order(), seen.next()), (300, 300));
        assert_eq!(seen.add(0, 300, 9).again, 300);
    }

    #[test]
    fn acknowledged_gaps_are_not_seen() {
        let mut seen = Coverage::default();
        seen.add(0, 100, 1);
        seen.add(200, 300, 2);
        seen.add(400, 500, 3);
        assert_eq!(seen.acknowledge(150), 50);
        assert_eq!((seen.in_order(), seen.gap_since()), (150, Some(2)));
        assert_eq!(seen.acknowledge(600), 50 + 100 + 100);
        assert_eq!((seen.in_order(), seen.next()), (600, 600));
        assert_eq!(seen.acknowledge(600), 0);
    }

    proptest! {
        /// A list of booleans counts the same bytes.
        #[test]
        fn coverage_is_a_list_of_bytes(ranges in prop::collection::vec((0i64..60, 1i64..20), 1..40)) {
            let mut seen = Coverage::default();
            seen.begin(0);
            let mut bytes = [false; 100];
            for (at, (start, len)) in ranges.into_iter().enumerate() {
                let news = seen.add(start, start + len, at as i64);
                let again = (start..start + len).filter(|it| bytes[*it as usize]).count() as u64;
                prop_assert_eq!(news.again, again);
                prop_assert_eq!(news.fresh + news.filled + news.again, len as u64);
                (start..start + len).for_each(|it| bytes[it as usize] = true);
                let first = bytes.iter().position(|seen| !seen).unwrap();
                prop_assert_eq!(seen.in_order(), first as i64);
            }
        }
    }
}
