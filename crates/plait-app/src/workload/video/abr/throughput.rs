//! Adaptation that uses only the throughput.

use super::PlayerState;
use crate::workload::video::Clip;

/// Fraction of the predicted throughput that is used.
const SAFETY: f64 = 0.9;

/// Returns the highest rate up to nine tenths of the harmonic mean of the last five throughputs.
pub(super) fn choose(clip: &Clip, known: &PlayerState) -> usize {
    let Some(predicted) = known.predicted() else { return 0 };
    let within = |rate: f64| rate <= SAFETY * predicted;
    clip.rungs().iter().rposition(|rung| within(rung.rate.as_bps() as f64)).unwrap_or(0)
}
