/// A running 64-bit hash of numbers. It identifies a run, but does not protect against an
/// adversary.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunningHash(u64);

impl Default for RunningHash {
    fn default() -> RunningHash {
        RunningHash(0xcbf2_9ce4_8422_2325)
    }
}

impl RunningHash {
    /// Adds one number.
    pub const fn push(&mut self, word: u64) {
        let mixed = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25);
        self.0 = mixed ^ (mixed >> 32);
    }

    /// Returns the hash of all numbers so far.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_zeros_matter() {
        let hash = |words: &[u64]| {
            let mut hash = RunningHash::default();
            words.iter().for_each(|word| hash.push(*word));
            hash.value()
        };
        assert_ne!(hash(&[1, 2]), hash(&[2, 1]));
        assert_ne!(hash(&[0]), hash(&[0, 0]));
    }
}
