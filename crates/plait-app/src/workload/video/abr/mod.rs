//! Which encoding of the next chunk to ask for.

mod bba;
mod bola;
mod mpc;
mod throughput;

use super::Clip;
use core::fmt;
use plait_base::{Rate, Span};

/// A way to adapt the bit rate.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Abr {
    /// By the buffer: BBA-0 (Huang et al., SIGCOMM 2014).
    #[default]
    Bba,
    /// By the throughput of the last chunks.
    Throughput,
    /// By the buffer, as a maximisation of utility: BOLA (Spiteri et al., INFOCOM 2016).
    Bola,
    /// By both, with a look ahead: RobustMPC (Yin et al., SIGCOMM 2015).
    Mpc,
}

impl Abr {
    /// All, in the order of help.
    pub const ALL: [Abr; 4] = [Abr::Bba, Abr::Throughput, Abr::Bola, Abr::Mpc];

    /// Its name.
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

/// How many chunks' throughputs are remembered.
const REMEMBERED: usize = 5;

/// What a decision is made from besides the clip.
#[derive(Clone, Debug)]
pub(super) struct Known {
    /// The next chunk.
    pub(super) chunk: usize,
    /// What is buffered.
    pub(super) level: Span,
    /// The most that is buffered before the client stops asking.
    pub(super) buffer: Span,
    /// The encoding of the last chunk.
    pub(super) last: usize,
    /// Throughputs of the last chunks, oldest first.
    pub(super) rates: Vec<Rate>,
    /// How far the last predictions of the throughput were off, as parts of what it was.
    errors: Vec<f64>,
}

impl Known {
    /// Nothing yet.
    pub(super) fn new(buffer: Span) -> Known {
        Known {
            chunk: 0,
            level: Span::ZERO,
            buffer,
            last: 0,
            rates: Vec::with_capacity(REMEMBERED + 1),
            errors: Vec::with_capacity(REMEMBERED + 1),
        }
    }

    /// A chunk of `bytes` took `time`.
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

    /// The harmonic mean of the last throughputs in bit/s.
    fn predicted(&self) -> Option<f64> {
        let slowness: f64 = self.rates.iter().map(|rate| 1.0 / rate.as_bps() as f64).sum();
        (!self.rates.is_empty()).then(|| self.rates.len() as f64 / slowness)
    }

    /// How far the worst of the last predictions was off.
    fn worst_error(&self) -> f64 {
        self.errors.iter().copied().fold(0.0, f64::max)
    }
}

impl Abr {
    /// The encoding of the next chunk.
    pub(super) fn choose(self, clip: &Clip, known: &Known) -> usize {
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
