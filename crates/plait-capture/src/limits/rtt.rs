//! The RTT of a path.

/// The RTT of a path, in nanoseconds.
#[derive(Clone, Default, Debug)]
pub(super) struct Rtt {
    pub(super) smoothed: i64,
    pub(super) least: i64,
    pub(super) latest: i64,
    /// Largest smoothed RTT.
    pub(super) peak: i64,
}

impl Rtt {
    /// Takes a sample.
    pub(super) fn add(&mut self, rtt: i64) {
        self.smoothed =
            if self.smoothed == 0 { rtt } else { self.smoothed + (rtt - self.smoothed) / 8 };
        self.least = if self.least == 0 { rtt } else { self.least.min(rtt) };
        self.peak = self.peak.max(self.smoothed);
        self.latest = rtt;
    }
}
