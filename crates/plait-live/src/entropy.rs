use plait_core::Entropy;

/// Random numbers of the operating system, drawn 512 bytes at a time. Keys need them, so the process
/// aborts if a later draw fails.
pub struct SystemEntropy {
    drawn: [u8; 512],
    /// Number of used bytes of `drawn`.
    used: usize,
}

impl std::fmt::Debug for SystemEntropy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SystemEntropy")
    }
}

impl SystemEntropy {
    /// Opens a source and draws the first bytes.
    ///
    /// # Errors
    /// If the operating system has no random numbers.
    pub fn open() -> std::io::Result<SystemEntropy> {
        let mut source = SystemEntropy { drawn: [0; 512], used: 0 };
        source.draw()?;
        Ok(source)
    }

    fn draw(&mut self) -> std::io::Result<()> {
        getrandom::fill(&mut self.drawn)?;
        self.used = 0;
        Ok(())
    }
}

impl Entropy for SystemEntropy {
    fn bits(&mut self) -> u64 {
        if self.used + 8 > self.drawn.len() && self.draw().is_err() {
            // Guessable keys would be worse than no connection.
            std::process::abort();
        }
        let mut word = [0; 8];
        let taken = &mut self.drawn[self.used..self.used + 8];
        word.copy_from_slice(taken);
        taken.fill(0);
        self.used += 8;
        u64::from_ne_bytes(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// R16, R71: keys, nonces and initial sequence numbers come from this source. Ten thousand words of two
    /// sources are all different, and every bit is set in about half of them.
    #[test]
    fn words_are_new_and_even() {
        let mut sources = [SystemEntropy::open().unwrap(), SystemEntropy::open().unwrap()];
        let words: Vec<u64> = (0..10_000).map(|n| sources[n % 2].bits()).collect();
        assert_eq!(words.iter().collect::<BTreeSet<_>>().len(), words.len());
        for bit in 0..64 {
            let set = words.iter().filter(|word| *word >> bit & 1 == 1).count();
            // Ten standard deviations of 50.
            assert!((4_500..5_500).contains(&set), "bit {bit}: {set}");
        }
    }
}
