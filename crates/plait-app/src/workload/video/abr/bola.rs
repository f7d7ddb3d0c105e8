//! BOLA: Lyapunov optimization that uses only the buffer.

use super::PlayerState;
use crate::workload::video::Clip;

/// Weight of continuous playback against quality: gamma times the chunk length in the paper.
const GAMMA_P: f64 = 5.0;

/// Returns the rung m with the largest `(V (v_m + gamma p) - Q) / S_m`. Here `v_m = ln(S_m / S_1)`,
/// Q is the buffer in chunks, and `V = (Qmax - 1) / (v_M + gamma p)`.
pub(super) fn choose(clip: &Clip, known: &PlayerState) -> usize {
    let chunk = clip.lasts(known.chunk).as_secs_f64();
    let rungs = clip.rungs();
    let rate = |rung: usize| rungs[rung].rate.as_bps() as f64;
    let utility = |rung: usize| libm::log(rate(rung) / rate(0));
    let level = known.level.as_secs_f64() / chunk;
    let most = (known.buffer.as_secs_f64() / chunk).max(1.0 + f64::EPSILON);
    let weight = (most - 1.0) / (utility(rungs.len() - 1) + GAMMA_P);
    let score = |rung: usize| (weight * (utility(rung) + GAMMA_P) - level) / rate(rung);
    (0..rungs.len()).max_by(|a, b| score(*a).total_cmp(&score(*b))).unwrap_or(0)
}
