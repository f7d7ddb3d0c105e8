//! BBA-0: the bit rate is a linear function of the buffer.

use super::PlayerState;
use crate::workload::video::Clip;
use plait_base::{Rate, Span};

/// The lowest bit rate is used up to this level.
const RESERVOIR: Span = Span::from_secs(10);

/// Returns the lowest rate up to the reservoir (one sixth of a small buffer), and the highest from
/// nine tenths of the buffer on. A line connects the two, as in the paper. The choice moves up when
/// the line reaches the next rate, and down when it falls to the previous rate.
pub(super) fn choose(clip: &Clip, known: &PlayerState) -> usize {
    let rungs = clip.rungs();
    let top = rungs.len().saturating_sub(1);
    let reservoir = RESERVOIR.min(known.buffer.over(6));
    let upper = known.buffer.times(9).over(10);
    if known.level <= reservoir {
        return 0;
    }
    if known.level >= upper {
        return top;
    }
    let (least, most) = (rungs[0].rate.as_bps(), rungs[top].rate.as_bps());
    let part = u128::from(known.level.minus(reservoir).as_nanos());
    let whole = u128::from(upper.minus(reservoir).as_nanos()).max(1);
    let rise = u128::from(most.saturating_sub(least)) * part / whole;
    let line = Rate::from_bps(least.saturating_add(u64::try_from(rise).unwrap_or(u64::MAX)));

    let last = known.last.min(top);
    let next = (last + 1).min(top);
    let before = last.saturating_sub(1);
    if line >= rungs[next].rate && next != last {
        rungs.iter().rposition(|rung| rung.rate < line).unwrap_or(last).max(last)
    } else if line <= rungs[before].rate && before != last {
        rungs.iter().position(|rung| rung.rate > line).unwrap_or(last).min(last)
    } else {
        last
    }
}
