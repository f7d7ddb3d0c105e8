//! The share of the data of a path that is lost.

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
}

impl LossShare {
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
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
        share.on_lost(30_000);
        // 30,000 and 1 % of the prior's 30,000, of 60,000 bytes.
        assert_eq!(share.ppm(), 505_000);
        for _ in 0..300 {
            share.on_acked(10_000);
        }
        assert!(share.ppm() < 10_000, "{}", share.ppm());
    }
}
