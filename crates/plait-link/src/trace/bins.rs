use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use plait_base::{Rate, Span};

use super::{
    Body, NANOS_PER_MILLI, NANOS_PER_SEC, OPPORTUNITY_BYTES, Trace, opportunity_units, rate_of,
};
use crate::schedule::{ScheduleCursor, UNITS_PER_BYTE};

/// Iterates over the capacity of consecutive bins.
struct Bins<'a> {
    body: &'a Body,
    duration: u64,
    bin: u64,
    /// Start of the next bin.
    from: u64,
    /// First opportunity or row that is not in an earlier bin.
    place: usize,
}

/// One bin, which ends at `end` and is `len` nanoseconds long.
struct Bin {
    end: u64,
    len: u64,
    units: u128,
}

impl Iterator for Bins<'_> {
    type Item = Bin;

    fn next(&mut self) -> Option<Bin> {
        if self.from >= self.duration || self.bin == 0 {
            return None;
        }
        let from = self.from;
        let end = from.saturating_add(self.bin).min(self.duration);
        self.from = end;
        let units = match self.body {
            Body::Opportunities(stamps) => {
                let rest = &stamps[self.place..];
                let count = rest.partition_point(|ms| u64::from(*ms) * NANOS_PER_MILLI <= end);
                self.place += count;
                opportunity_units(count)
            }
            Body::Rows(schedule) => {
                let mut units = 0;
                let mut start = from;
                for &(row_end, rate) in &schedule.rows()[self.place..] {
                    let stop = row_end.min(end);
                    units += u128::from(stop - start) * u128::from(rate.as_bps());
                    start = stop;
                    if row_end > end {
                        break;
                    }
                    self.place += 1;
                }
                units
            }
        };
        Some(Bin { end, len: end - from, units })
    }
}

impl Trace {
    fn bins(&self, bin: Span) -> Bins<'_> {
        let duration = self.duration().as_nanos();
        Bins { body: &self.body, duration, bin: bin.as_nanos(), from: 0, place: 0 }
    }

    /// Returns the mean rate in each bin of one lap, for charts. The last bin may be shorter. If `bin` is
    /// zero, the list is empty. An opportunity at the border of two bins counts in the earlier one,
    /// because it serves packets that waited before it. One at zero counts in the first bin.
    #[must_use]
    pub fn rate_per_bin(&self, bin: Span) -> Vec<Rate> {
        self.bins(bin).map(|bin| rate_of(bin.units, bin.len)).collect()
    }

    /// Returns the recording as CSV with one row per second. The last row is shorter if the recording ends
    /// within a second. Rates are rounded up to whole bytes per second.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = String::from("seconds,bytes_per_second\n");
        for bin in self.bins(Span::from_secs(1)) {
            let rate = bin.units.div_ceil(u128::from(bin.len) * 8);
            let (secs, part) = (bin.end / NANOS_PER_SEC, bin.end % NANOS_PER_SEC);
            // Writing to a string cannot fail.
            let _ = match part {
                0 => writeln!(text, "{secs},{rate}"),
                _ => {
                    let part = alloc::format!("{part:09}");
                    writeln!(text, "{secs}.{},{rate}", part.trim_end_matches('0'))
                }
            };
        }
        text
    }

    /// Returns the recording in the Mahimahi format; see [`Trace::write_mahimahi`].
    #[must_use]
    pub fn to_mahimahi(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write_mahimahi(&mut text);
        text
    }

    /// Writes the recording in the Mahimahi format, one line for each 1500 bytes (12 Mbit/s is 1000
    /// lines a second). An opportunity is at the time at which the 1500th byte could have left, rounded up
    /// to the millisecond. If the last one is before the end of the recording, one more at the end keeps
    /// the period.
    ///
    /// # Errors
    /// Returns the errors of `out`.
    pub fn write_mahimahi(&self, out: &mut impl Write) -> fmt::Result {
        let schedule = match &self.body {
            Body::Opportunities(stamps) => {
                return stamps.iter().try_for_each(|stamp| writeln!(out, "{stamp}"));
            }
            Body::Rows(schedule) => schedule,
        };
        let full = schedule.lap_units() / (u128::from(OPPORTUNITY_BYTES) * UNITS_PER_BYTE);
        let mut cursor = ScheduleCursor::new(Arc::clone(schedule));
        let mut last = 0;
        for _ in 0..full {
            last = cursor.serve(0, OPPORTUNITY_BYTES).div_ceil(NANOS_PER_MILLI);
            writeln!(out, "{last}")?;
        }
        let end = schedule.period().div_ceil(NANOS_PER_MILLI);
        if last < end { writeln!(out, "{end}") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn bps(list: &[u64]) -> Vec<Rate> {
        list.iter().map(|n| Rate::from_bps(*n)).collect()
    }

    #[test]
    fn bins_hold_what_ends_with_them() {
        let trace = Trace::parse("t", "0\n5\n10\n10\n15\n").unwrap();
        // 3 opportunities up to 10 ms (and the one at zero), 1 in the remaining 5 ms.
        assert_eq!(trace.rate_per_bin(Span::from_millis(10)), bps(&[4_800_000, 2_400_000]));
        assert_eq!(trace.rate_per_bin(Span::ZERO), vec![]);
        let trace = Trace::parse("t", "1,1000\n2,0\n4,500\n").unwrap();
        assert_eq!(trace.rate_per_bin(Span::from_millis(1500)), bps(&[5333, 2666, 4000]));
        assert_eq!(trace.rate_per_bin(Span::from_secs(100)), bps(&[4000]));
    }

    #[test]
    fn csv_of_a_mahimahi_trace_keeps_bytes_and_length() {
        let trace = Trace::parse("t", "400\n1000\n1001\n2500\n").unwrap();
        assert_eq!(trace.to_csv(), "seconds,bytes_per_second\n1,3000\n2,1500\n2.5,3000\n");
    }

    #[test]
    fn mahimahi_of_a_csv_trace_keeps_the_times() {
        // 1.2 Mbit/s: 1500 bytes in 10 ms; then silence; then 3000 bytes in the last 2 ms.
        let trace = Trace::parse("t", "0.03,150000\n0.1,0\n0.102,1500000\n").unwrap();
        assert_eq!(trace.to_mahimahi(), "10\n20\n30\n101\n102\n");
        let silent_end = Trace::parse("t", "0.03,150000\n0.1,0\n").unwrap();
        assert_eq!(silent_end.to_mahimahi(), "10\n20\n30\n100\n");
    }

    proptest! {
        #[test]
        fn converted_traces_parse_and_keep_length_and_bytes(
            rows in prop::collection::vec((1u64..3_000, 0u64..400_000), 1..20),
        ) {
            let mut text = String::new();
            let mut at = 0;
            for (millis, rate) in &rows {
                at += millis;
                writeln!(text, "{}.{:03},{rate}", at / 1000, at % 1000).unwrap();
            }
            let Ok(trace) = Trace::parse("t", &text) else {
                prop_assert!(rows.iter().all(|row| row.1 == 0));
                return Ok(());
            };
            let bytes = |trace: &Trace| trace.mean_rate().bytes_in(trace.duration());
            let there = Trace::parse("t", &trace.to_mahimahi()).unwrap();
            prop_assert_eq!(there.duration(), trace.duration());
            prop_assert!(bytes(&there).abs_diff(bytes(&trace)) <= 1500 + at / 1000);
            prop_assert_eq!(there.to_mahimahi(), trace.to_mahimahi());
            let back = Trace::parse("t", &there.to_csv()).unwrap();
            prop_assert_eq!(back.duration(), trace.duration());
            prop_assert!(bytes(&back).abs_diff(bytes(&there)) <= 2 + at / 1000);
        }
    }
}
