use crate::RandomStream;

/// A probability in parts per billion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Chance(u32);

impl Chance {
    /// Never happens.
    pub const NEVER: Chance = Chance(0);
    /// Always happens.
    pub const ALWAYS: Chance = Chance(1_000_000_000);

    /// Returns a probability of `ppb` parts per billion; more than a billion counts as always.
    #[must_use]
    pub const fn from_ppb(ppb: u32) -> Chance {
        if ppb > 1_000_000_000 { Chance::ALWAYS } else { Chance(ppb) }
    }

    /// Returns parts per billion.
    #[must_use]
    pub const fn as_ppb(self) -> u32 {
        self.0
    }

    /// Returns percent, for reports.
    #[must_use]
    pub fn as_percent(self) -> f64 {
        f64::from(self.0) / 1e7
    }

    /// Draws from the stream and returns true if it happens. A chance of zero draws nothing.
    pub fn happens(self, stream: &mut RandomStream) -> bool {
        self.0 != 0 && stream.below(1_000_000_000) < u64::from(self.0)
    }
}
