use alloc::sync::Arc;
use alloc::vec::Vec;

use plait_base::Rate;

/// Capacity of one byte, in bits per second times nanoseconds.
pub(crate) const UNITS_PER_BYTE: u128 = 8_000_000_000;

/// A piecewise constant rate. The last row lasts for ever, or the rows repeat.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// End and rate of each row. Ends are nanoseconds from the start of the lap, strictly increasing.
    rows: Vec<(u64, Rate)>,
    /// True if the rows repeat after the end of the last one.
    repeats: bool,
    /// Capacity of one lap, in bits per second times nanoseconds.
    lap_units: u128,
}

impl Schedule {
    /// Returns a schedule whose last row has no end.
    pub(crate) fn endless(rows: Vec<(u64, Rate)>) -> Schedule {
        Schedule { rows, repeats: false, lap_units: 0 }
    }

    /// Returns a schedule that repeats, or `None` if a lap has no capacity: nothing would ever depart.
    pub(crate) fn repeating(rows: Vec<(u64, Rate)>) -> Option<Schedule> {
        let mut from = 0;
        let mut lap_units = 0;
        for &(end, rate) in &rows {
            lap_units += u128::from(end - from) * u128::from(rate.as_bps());
            from = end;
        }
        (lap_units > 0).then_some(Schedule { rows, repeats: true, lap_units })
    }

    pub(crate) fn rows(&self) -> &[(u64, Rate)] {
        &self.rows
    }

    /// Returns the length of a lap in nanoseconds.
    pub(crate) fn period(&self) -> u64 {
        self.rows.last().map_or(0, |row| row.0)
    }

    pub(crate) fn lap_units(&self) -> u128 {
        self.lap_units
    }
}

/// A transmitter that follows a [`Schedule`], with its exact position.
#[derive(Clone, Debug)]
pub(crate) struct ScheduleCursor {
    schedule: Arc<Schedule>,
    /// Start of the lap, in nanoseconds.
    base: u64,
    row: usize,
    /// The transmitter is free at `free + phase / rate` nanoseconds. `rate` is the rate of the row, and
    /// `phase` is less than it. No fraction is ever dropped. `u64::MAX` means never.
    free: u64,
    phase: u64,
}

impl ScheduleCursor {
    pub(crate) fn new(schedule: Arc<Schedule>) -> ScheduleCursor {
        ScheduleCursor { schedule, base: 0, row: 0, free: 0, phase: 0 }
    }

    /// Returns the first whole nanosecond at which the transmitter is free.
    #[inline]
    pub(crate) fn free_at(&self) -> u64 {
        self.free.saturating_add(u64::from(self.phase > 0))
    }

    /// Sends `size` bytes that are available from `at` on, after all earlier bytes. Returns the departure,
    /// rounded up.
    pub(crate) fn serve(&mut self, at: u64, size: u32) -> u64 {
        if at >= self.free_at() {
            self.seek(at);
        }
        let mut need = u128::from(size) * UNITS_PER_BYTE;
        while self.free != u64::MAX {
            let (end, rate) = self.schedule.rows[self.row];
            let end = self.base.saturating_add(end);
            if rate.is_infinite() {
                break;
            }
            let rate = rate.as_bps();
            let left = u128::from(end - self.free) * u128::from(rate) - u128::from(self.phase);
            if rate > 0 && need <= left {
                self.advance(need, rate);
                break;
            }
            need -= left.min(need);
            self.next_row(end, &mut need);
        }
        self.free_at()
    }

    /// Advances by `need` units inside the row. The caller ensures that they fit.
    #[inline]
    fn advance(&mut self, need: u128, rate: u64) {
        let total = u128::from(self.phase) + need;
        // A narrow division is faster and nearly always suffices.
        let (whole, rest) = match u64::try_from(total) {
            Ok(total) => (total / rate, total % rate),
            Err(_) => ((total / u128::from(rate)) as u64, (total % u128::from(rate)) as u64),
        };
        self.free += whole;
        self.phase = rest;
    }

    /// Continues at the start of the next row, at `end`, with `need` units left. Skips whole laps in one
    /// step.
    fn next_row(&mut self, end: u64, need: &mut u128) {
        self.phase = 0;
        self.free = end;
        self.row += 1;
        if self.row < self.schedule.rows.len() {
            return;
        }
        self.row = 0;
        if !self.schedule.repeats {
            self.free = u64::MAX;
            return;
        }
        let lap = self.schedule.lap_units;
        let laps = need.saturating_sub(1) / lap;
        *need -= laps * lap;
        let skipped = laps.saturating_mul(u128::from(self.schedule.period()));
        self.free = end.saturating_add(u64::try_from(skipped).unwrap_or(u64::MAX));
        self.base = self.free;
    }

    /// Moves to `at`, which is not before the position of the cursor.
    fn seek(&mut self, at: u64) {
        self.free = at;
        self.phase = 0;
        let rows = &self.schedule.rows;
        let mut within = at.saturating_sub(self.base);
        let period = self.schedule.period();
        if self.schedule.repeats && within >= period {
            self.base += within / period * period;
            within %= period;
            self.row = 0;
        }
        if rows[self.row].0 <= within {
            self.row += first_from(&rows[self.row..], |row| row.0 > within);
            self.row = self.row.min(rows.len() - 1);
        }
    }
}

/// Returns the index of the first element that passes; all elements after it must pass too. It searches
/// near the front first, so that a cursor with small steps pays little.
pub(crate) fn first_from<T>(list: &[T], passes: impl Fn(&T) -> bool) -> usize {
    let mut low = 0;
    let mut step = 1;
    while low + step <= list.len() && !passes(&list[low + step - 1]) {
        low += step;
        step *= 2;
    }
    let high = (low + step).min(list.len());
    low + list[low..high].partition_point(|item| !passes(item))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_search_finds_what_a_scan_finds(
            mut list in prop::collection::vec(0u32..50, 0..200),
            wanted in 0u32..55,
        ) {
            list.sort_unstable();
            let scan = list.iter().position(|n| *n > wanted).unwrap_or(list.len());
            prop_assert_eq!(first_from(&list, |n| *n > wanted), scan);
        }
    }
}
