use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A stream of random numbers for one purpose, identical on every platform and in every build.
///
/// A seed and the words of the purpose determine a stream. A path that is added to a scenario
/// therefore does not shift the numbers of other paths.
#[derive(Clone, Debug)]
pub struct RandomStream(Pcg64Mcg);

impl RandomStream {
    /// Returns the stream of `seed` for `purpose`, a list of words or numbers such as `["link",
    /// "lte", "down", "loss"]`.
    #[must_use]
    pub fn new(seed: u64, purpose: &[&str]) -> RandomStream {
        let mut state = mix(seed ^ 0x9e37_79b9_7f4a_7c15);
        for word in purpose {
            for byte in word.bytes() {
                state = mix(state ^ u64::from(byte));
            }
            // Marks the end of a word, so that ["ab"] and ["a", "b"] differ.
            state = mix(state ^ 0x1_00);
        }
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&state.to_le_bytes());
        bytes[8..].copy_from_slice(&mix(state ^ 0xd1b5_4a32_d192_ed03).to_le_bytes());
        RandomStream(Pcg64Mcg::from_seed(bytes))
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a uniformly distributed number from 0 to `bound - 1`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Widening multiplication with rejection: unbiased, and it nearly always draws once.
        if bound == 0 {
            return 0;
        }
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            // The threshold is less than the bound, so it needs no division for nearly all draws.
            let low = product as u64;
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns a number from `low` to `high`, inclusive; `low` if `high` is below it.
    pub fn within(&mut self, low: u64, high: u64) -> u64 {
        match high.checked_sub(low) {
            None => low,
            Some(u64::MAX) => self.bits(),
            Some(width) => low + self.below(width + 1),
        }
    }

    /// Returns a number in [0, 1) with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Spreads every input bit over every output bit: the finaliser of SplitMix64.
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_purpose_give_the_same_numbers() {
        let mut a = RandomStream::new(7, &["link", "lte"]);
        let mut b = RandomStream::new(7, &["link", "lte"]);
        let mut c = RandomStream::new(7, &["linkl", "te"]);
        let first = a.bits();
        assert_eq!(first, b.bits());
        assert_ne!(first, c.bits());
        // Pinned: a change here changes every published digest.
        assert_eq!(RandomStream::new(1, &["pin"]).bits(), 18_370_554_137_736_032_489);
    }

    #[test]
    fn below_stays_below_and_reaches_everything() {
        let mut stream = RandomStream::new(1, &["below"]);
        let mut seen = [0u32; 5];
        for _ in 0..5_000 {
            seen[stream.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|n| (850..1150).contains(n)), "{seen:?}");
    }
}
