use plait_base::Span;
use std::fmt;

/// Statistics of how late the emulator delivered packets. Use the times of a run only if
/// [`Lateness::allows_timing`] returns true.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lateness {
    packets: u64,
    total: Span,
    worst: Span,
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
        self.above_1_ms += u64::from(late > Span::from_millis(1));
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

    /// Returns the greatest lateness of a packet or of a wake-up of the emulator.
    #[must_use]
    pub const fn worst(&self) -> Span {
        self.worst
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} packets, mean {} us late, worst {} us, {} later than 1 ms",
            self.packets,
            self.mean().as_micros(),
            self.worst.as_micros(),
            self.above_1_ms
        )
    }
}
