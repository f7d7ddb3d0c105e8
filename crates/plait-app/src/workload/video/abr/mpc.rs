//! RobustMPC: the best sequence for the next chunks if the throughput does not change.

use super::PlayerState;
use crate::workload::video::Clip;

/// Maximum number of chunks to plan ahead.
const HORIZON: u32 = 5;
/// Maximum number of sequences for one decision. If there are many rungs, the plan is shorter.
const MAX_PLANS: usize = 40_000;

/// Returns the first rung of the best sequence. The score of a sequence is the sum of its bit
/// rates. Each change costs its size, and each second of stalling costs the top bit rate. The
/// predicted throughput is the harmonic mean of the last five, divided by one plus the largest
/// error of the last five predictions.
pub(super) fn choose(clip: &Clip, known: &PlayerState) -> usize {
    let Some(predicted) = known.predicted() else { return 0 };
    let rungs = clip.rungs();
    let left = clip.chunks().saturating_sub(known.chunk);
    let fits =
        |ahead: &u32| rungs.len().checked_pow(*ahead).is_some_and(|count| count <= MAX_PLANS);
    let horizon = (1..=HORIZON).rev().find(fits).unwrap_or(1) as usize;
    let ahead = Ahead {
        clip,
        bps: predicted / (1.0 + known.worst_error()),
        end: known.chunk + horizon.min(left),
        buffer: known.buffer.as_secs_f64(),
    };
    let (_, rung) = ahead.best(known.chunk, known.level.as_secs_f64(), known.last);
    rung
}

/// The inputs of a plan.
struct Ahead<'a> {
    clip: &'a Clip,
    bps: f64,
    end: usize,
    buffer: f64,
}

impl Ahead<'_> {
    /// Returns the best score from `chunk` on with `level` seconds buffered, and its first rung. If
    /// scores are equal, the lower rung is returned.
    fn best(&self, chunk: usize, level: f64, last: usize) -> (f64, usize) {
        if chunk >= self.end {
            return (0.0, last);
        }
        let rungs = self.clip.rungs();
        let mbps = |rung: usize| rungs[rung].rate.as_bps() as f64 / 1e6;
        let lasts = self.clip.lasts(chunk).as_secs_f64();
        let mut best = (f64::NEG_INFINITY, 0);
        for (rung, encoding) in rungs.iter().enumerate() {
            let took = encoding.size(chunk) as f64 * 8.0 / self.bps;
            let stall = (took - level).max(0.0);
            let next = ((level - took).max(0.0) + lasts).min(self.buffer);
            let own = mbps(rung) - (mbps(rung) - mbps(last)).abs() - mbps(rungs.len() - 1) * stall;
            let score = own + self.best(chunk + 1, next, rung).0;
            if score > best.0 {
                best = (score, rung);
            }
        }
        best
    }
}
