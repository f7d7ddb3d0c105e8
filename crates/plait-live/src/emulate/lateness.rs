use plait_base::Span;
use std::fmt;

/// Latenesses of up to this many microseconds are counted one by one.
const COUNTED_US: usize = 20_000;

/// Statistics of how late the emulator delivered packets. Use the times of a run only if
/// [`Lateness::allows_timing`] returns true.
#[derive(Clone, Default, Debug)]
pub struct Lateness {
    packets: u64,
    total: Span,
    worst: Span,
    /// Greatest lateness of a packet.
    worst_packet: Span,
    /// Packets by lateness in microseconds, rounded up. Later packets are only in `packets`.
    counts: Vec<u32>,
    /// Packets more than 1 ms late.
    above_1_ms: u64,
}

impl Lateness {
    /// The times of a run are valid if the emulator was never later than this.
    pub const LIMIT: Span = Span::from_millis(5);

    pub(super) fn note(&mut self, late: Span) {
        self.packets += 1;
        self.total += late;
        self.worst = self.worst.max(late);
        self.worst_packet = self.worst_packet.max(late);
        self.above_1_ms += u64::from(late > Span::from_millis(1));
        let micros = late.as_nanos().div_ceil(1_000) as usize;
        if micros <= COUNTED_US {
            if self.counts.len() <= micros {
                self.counts.resize(micros + 1, 0);
            }
            self.counts[micros] = self.counts[micros].saturating_add(1);
        }
    }

    /// Records that the emulator ran `late` after it was due. Packets that arrived meanwhile entered their
    /// links too late.
    pub(super) fn note_pause(&mut self, late: Span) {
        self.worst = self.worst.max(late);
    }

    /// Returns whether the times of the run are valid.
    #[must_use]
    pub fn allows_timing(&self) -> bool {
        self.worst <= Lateness::LIMIT
    }

    /// Returns the number of delivered packets.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns the mean lateness of packets.
    #[must_use]
    pub const fn mean(&self) -> Span {
        self.total.over(self.packets)
    }

    /// Returns the lateness that `percent` percent of the packets do not exceed, rounded up to whole
    /// microseconds. If it is beyond 20 ms, returns the greatest lateness of a packet. Returns zero if no packet
    /// was delivered.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> Span {
        let rank = (self.packets * u64::from(percent.min(100))).div_ceil(100);
        let mut seen = 0;
        for (micros, count) in self.counts.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return Span::from_micros(micros as u64).min(self.worst_packet);
            }
        }
        self.worst_packet
    }

    /// Returns the greatest lateness of a packet or of a wake-up of the emulator.
    #[must_use]
    pub const fn worst(&self) -> Span {
        self.worst
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.packets == 0 {
            return f.write_str("0 packets");
        }
        write!(
            f,
            "{} packets, late by {} us (median), {} us (p99), {} us (worst), {} later than 1 ms",
            self.packets,
            self.percentile(50).as_micros(),
            self.percentile(99).as_micros(),
            self.worst_packet.as_micros(),
            self.above_1_ms
        )?;
        if self.worst > self.worst_packet {
            write!(f, "; the emulator paused for up to {} us", self.worst.as_micros())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_packets_and_the_worst_counts_pauses() {
        let mut late = Lateness::default();
        assert_eq!(late.percentile(50), Span::ZERO);
        late.note_pause(Span::from_millis(1));
        assert_eq!(late.to_string(), "0 packets");
        // 1 us to 100 us, and one packet beyond the counted ones.
        (1..=99).for_each(|micros| late.note(Span::from_micros(micros)));
        late.note(Span::from_millis(30));
        assert_eq!(late.percentile(50), Span::from_micros(50));
        assert_eq!(late.percentile(99), Span::from_micros(99));
        assert_eq!(late.percentile(100), Span::from_millis(30));
        late.note_pause(Span::from_millis(40));
        assert_eq!(
            (late.percentile(100), late.worst()),
            (Span::from_millis(30), Span::from_millis(40))
        );
        assert!(!late.allows_timing());
        let said = late.to_string();
        assert!(said.contains("30000 us (worst), 1 later than 1 ms"), "{said}");
        assert!(said.ends_with("; the emulator paused for up to 40000 us"), "{said}");
        // A lateness is rounded up, but not above the worst.
        let mut short = Lateness::default();
        short.note(Span::from_nanos(1_500));
        assert_eq!(short.percentile(50), Span::from_nanos(1_500));
        assert_eq!(short.packets(), 1);
    }
}
