use plait_base::Span;
use std::fmt;

/// How much later than its link said packets were handed on. Read with
/// [`Lateness::allows_timing`] before any time of a run is believed.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lateness {
    packets: u64,
    total: Span,
    worst: Span,
    /// Packets that were later than a millisecond.
    above_1_ms: u64,
}

impl Lateness {
    /// Times of a run count where no packet was later than this.
    pub const LIMIT: Span = Span::from_millis(5);

    pub(super) fn note(&mut self, late: Span) {
        self.packets += 1;
        self.total += late;
        self.worst = self.worst.max(late);
        self.above_1_ms += u64::from(late > Span::from_millis(1));
    }

    /// The emulator did not run for so long when it had to: what came meanwhile was taken in later.
    pub(super) fn note_pause(&mut self, late: Span) {
        self.worst = self.worst.max(late);
    }

    /// Whether the times of the run count.
    #[must_use]
    pub fn allows_timing(&self) -> bool {
        self.worst <= Lateness::LIMIT
    }

    /// Packets handed on.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.packets
    }

    /// The mean.
    #[must_use]
    pub const fn mean(&self) -> Span {
        self.total.over(self.packets)
    }

    /// The worst: of a packet, or of the emulator, where it was held up with none to hand on.
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
