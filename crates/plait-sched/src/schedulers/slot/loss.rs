//! The share of the data of a path that is lost.
//!
//! A loss delays all data until it is repaired. Losses of one round trip are repaired together, so the first of them
//! counts for all: an overrun queue loses many segments, and delays the data once.

use plait_base::{Span, Time};

/// Weight of the share that is assumed of a new path, in bytes of data.
const PRIOR_BYTES: u64 = 30_000;
/// The share that is assumed of a new path, in parts per million.
const PRIOR_PPM: u64 = 10_000;
/// Bytes after which older data counts half.
const MEMORY_BYTES: u64 = 3_000_000;

/// What became of the data of one path.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LossShare {
    pub(super) lost: u64,
    pub(super) acked: u64,
    /// A loss before this time is repaired together with one that has counted.
    pub(super) repaired: Time,
}

impl LossShare {
    /// Notes a loss that is repaired in the time `repair`, together with all other losses of that time. A loss may be
    /// reported again until it is repaired.
    pub(super) fn on_lost(&mut self, now: Time, repair: Span, bytes: u64) {
        if now >= self.repaired {
            self.repaired = now + repair;
            self.lost = self.lost.saturating_add(bytes);
        }
    }

    pub(super) fn on_acked(&mut self, bytes: u64) {
        self.acked = self.acked.saturating_add(bytes);
        if self.acked > MEMORY_BYTES {
            self.acked /= 2;
            self.lost /= 2;
        }
    }

    /// Returns true if no loss is remembered.
    pub(super) const fn is_clean(&self) -> bool {
        self.lost == 0
    }

    /// Returns the share in parts per million.
    pub(super) fn ppm(&self) -> u64 {
        let lost = self.lost.saturating_mul(1_000_000).saturating_add(PRIOR_BYTES * PRIOR_PPM);
        lost / self.lost.saturating_add(self.acked).saturating_add(PRIOR_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_path_has_the_assumed_share() {
        assert_eq!(LossShare::default().ppm(), PRIOR_PPM);
    }

    #[test]
    fn the_share_follows_the_data() {
        let mut share = LossShare::default();
        share.on_lost(Time::ZERO, Span::ZERO, 30_000);
        // 30,000 and 1 % of the prior's 30,000, of 60,000 bytes.
        assert_eq!(share.ppm(), 505_000);
        for _ in 0..300 {
            share.on_acked(10_000);
        }
        assert!(share.ppm() < 10_000, "{}", share.ppm());
    }

    #[test]
    fn losses_that_are_repaired_together_count_once() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let lost = |repair: u64| {
            let mut share = LossShare::default();
            for millis in [100, 100, 119, 120] {
                share.on_lost(at(millis), Span::from_millis(repair), 1_000);
            }
            share.lost
        };
        assert_eq!(lost(20), 2_000);
        assert_eq!(lost(0), 4_000);
    }
}
