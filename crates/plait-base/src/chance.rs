use crate::RandomStream;

/// A probability in parts per billion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Chance(u32);

impl Chance {
    /// It never happens.
    pub const NEVER: Chance = Chance(0);
    /// It always happens.
    pub const ALWAYS: Chance = Chance(1_000_000_000);

    /// `ppb` parts per billion; more than a billion counts as always.
    #[must_use]
    pub const fn from_ppb(ppb: u32) -> Chance {
        if ppb > 1_000_000_000 { Chance::ALWAYS } else { Chance(ppb) }
    }

    /// Parts per billion.
    #[must_use]
    pub const fn as_ppb(self) -> u32 {
        self.0
    }

    /// Per cent, for reports.
    #[must_use]
    pub fn as_percent(self) -> f64 {
        f64::from(self.0) / 1e7
    }

    /// Whether it happens this time. A chance of zero draws nothing from the stream.
    pub fn happens(self, stream: &mut RandomStream) -> bool {
        self.0 != 0 && stream.below(1_000_000_000) < u64::from(self.0)
    }
}
