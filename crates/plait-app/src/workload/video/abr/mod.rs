//! Adaptation of the bit rate: the choice of the encoding of the next chunk.

mod bba;
mod bola;
mod mpc;
mod throughput;

use super::Clip;
use core::fmt;
use plait_base::{Rate, Span};

/// An algorithm that adapts the bit rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Abr {
    /// Uses the buffer: BBA-0 (Huang et al., SIGCOMM 2014).
    #[default]
    Bba,
    /// Uses the throughput of the last chunks.
    Throughput,
    /// Uses the buffer to maximize a utility: BOLA (Spiteri et al., INFOCOM 2016).
    Bola,
    /// Uses both, and plans several chunks ahead: RobustMPC (Yin et al., SIGCOMM 2015).
    Mpc,
}

impl Abr {
    /// All algorithms, in the order of help.
    pub const ALL: [Abr; 4] = [Abr::Bba, Abr::Throughput, Abr::Bola, Abr::Mpc];

    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Abr::Bba => "bba",
            Abr::Throughput => "throughput",
            Abr::Bola => "bola",
            Abr::Mpc => "mpc",
        }
    }
}

impl fmt::Display for Abr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Number of recent chunks whose throughput is kept.
const REMEMBERED: usize = 5;

/// The inputs of a decision, besides the clip.
#[derive(Clone, Debug)]
pub(super) struct PlayerState {
    /// Number of the next chunk.
    pub(super) chunk: usize,
    /// Buffered playing time.
    pub(super) level: Span,
    /// Buffer limit of the client.
    pub(super) buffer: Span,
    /// Encoding of the last chunk.
    pub(super) last: usize,
    /// Throughputs of the last chunks, oldest first.
    pub(super) rates: Vec<Rate>,
    /// Relative errors of the last throughput predictions.
    errors: Vec<f64>,
}

impl PlayerState {
    /// Returns the inputs before the first chunk.
    pub(super) fn new(buffer: Span) -> PlayerState {
        PlayerState {
            chunk: 0,
            level: Span::ZERO,
            buffer,
            last: 0,
            rates: Vec::with_capacity(REMEMBERED + 1),
            errors: Vec::with_capacity(REMEMBERED + 1),
        }
    }

    /// Records that a chunk of `bytes` took `time` to download.
    pub(super) fn learn(&mut self, bytes: u64, time: Span) {
        let nanos = u128::from(time.as_nanos().max(1));
        let bps = u128::from(bytes) * 8 * 1_000_000_000 / nanos;
        let rate = Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX).max(1));
        if let Some(predicted) = self.predicted() {
            let was = rate.as_bps() as f64;
            self.errors.push((predicted - was).abs() / was);
        }
        self.rates.push(rate);
        if self.rates.len() > REMEMBERED {
            self.rates.remove(0);
        }
        if self.errors.len() > REMEMBERED {
            self.errors.remove(0);
        }
    }

    /// Returns the harmonic mean of the last throughputs in bit/s.
    fn predicted(&self) -> Option<f64> {
        let slowness: f64 = self.rates.iter().map(|rate| 1.0 / rate.as_bps() as f64).sum();
        (!self.rates.is_empty()).then(|| self.rates.len() as f64 / slowness)
    }

    /// Returns the largest of the last prediction errors.
    fn worst_error(&self) -> f64 {
        self.errors.iter().copied().fold(0.0, f64::max)
    }
}

impl Abr {
    /// Returns the encoding of the next chunk.
    pub(super) fn choose(self, clip: &Clip, known: &PlayerState) -> usize {
        let rung = match self {
            Abr::Bba => bba::choose(clip, known),
            Abr::Throughput => throughput::choose(clip, known),
            Abr::Bola => bola::choose(clip, known),
            Abr::Mpc => mpc::choose(clip, known),
        };
        rung.min(clip.rungs().len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests;
