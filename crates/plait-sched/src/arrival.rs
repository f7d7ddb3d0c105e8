//! Predicts when a segment would arrive behind the data already assigned. If data waits for a
//! window of a few segments, it moves to a subflow on which it arrives sooner.

use crate::{
    CaState, Decision, Outcome, Param, ParamKind, Reason, SubflowView, View, ahead, exact,
};
use core::cmp::Ordering;
use plait_base::{DataRange, SubflowId};

/// The parameter of every scheduler that takes assigned data back.
pub(crate) const BACK: Param = Param {
    name: "back",
    kind: ParamKind::Switch { default: true },
    unit: "",
    help: "on: data that waits for a small or overdue window moves to a subflow on which it arrives sooner; off: it stays",
    clause: "ours",
};

/// A predicted arrival: `halves / of` half RTTs, with the RTT in ns. An RTT of zero means that
/// there is no sample; the data then never arrives.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    srtt: u64,
    halves: u64,
    of: u64,
}

impl Arrival {
    /// Predicts the arrival of the next segment on `subflow`, which waits for whole RTTs.
    pub(crate) fn next_on(subflow: &SubflowView) -> Arrival {
        // If nothing is assigned, the counts are not needed: the segment fits, or is the first to
        // wait.
        if subflow.queued == 0 {
            let fits = subflow.cwnd.saturating_sub(subflow.inflight) >= ahead::mss(subflow);
            let srtt = subflow.srtt.map_or(0, exact::whole_nanos);
            return Arrival { srtt, halves: if fits { 1 } else { 3 }, of: 1 };
        }
        Arrival::behind(subflow, |behind, cwnd| (2 * (behind + 1).div_ceil(cwnd) + 1, 1))
    }

    /// Predicts the arrival of data that `subflow` sends before its assigned data, once its full
    /// window opens.
    fn first_on(subflow: &SubflowView) -> Arrival {
        let srtt = subflow.srtt.map_or(0, exact::whole_nanos);
        Arrival { srtt, halves: 3, of: 1 }
    }

    /// As [`Arrival::next_on`], but counts fractions of RTTs too.
    pub(crate) fn in_parts(subflow: &SubflowView) -> Arrival {
        Arrival::behind(subflow, |behind, cwnd| (2 * behind + cwnd, cwnd))
    }

    /// Calls `waits` with the number of segments ahead and the window, and uses the half RTTs and
    /// the divisor that it returns.
    fn behind(subflow: &SubflowView, waits: impl Fn(u64, u64) -> (u64, u64)) -> Arrival {
        let counts = [ahead::free_segments, ahead::queued_segments, ahead::window_segments];
        // Counts stay far below the limit of `u64`, so that twice one of them plus another fits.
        let [can, queued, cwnd] = counts.map(|count| count(subflow).min(1 << 60));
        let (halves, of) = match queued.checked_sub(can) {
            None => (1, 1),
            Some(behind) => waits(behind, cwnd),
        };
        Arrival { srtt: subflow.srtt.map_or(0, exact::whole_nanos), halves, of }
    }

    /// Returns half RTTs in ns, times `of`.
    fn scaled(&self) -> u128 {
        u128::from(self.srtt) * u128::from(self.halves)
    }

    pub(crate) fn order(&self, other: &Arrival) -> Ordering {
        if self.srtt == 0 || other.srtt == 0 {
            return (self.srtt == 0).cmp(&(other.srtt == 0));
        }
        // Both count in the same parts: no cross-multiplication is needed.
        if self.of == other.of {
            return self.scaled().cmp(&other.scaled());
        }
        exact::compare(self.scaled(), other.of.into(), other.scaled(), self.of.into())
    }

    pub(crate) fn millis(&self) -> Option<f64> {
        let halves = self.srtt as f64 * self.halves as f64 / self.of as f64;
        (self.srtt > 0).then_some(halves / 2e6)
    }
}

/// Takes back the first range assigned to a subflow whose window is full, if another subflow would
/// deliver it sooner. That subflow must have room and nothing assigned.
///
/// If the owner recovers from a timeout and its window is small, other subflows qualify too. Their
/// assigned data must lie beyond the range, and they send the range first. `from` selects the
/// owners.
pub(crate) fn take_back(
    view: &View<'_>,
    from: impl Fn(&SubflowView) -> bool,
    arrival: impl Fn(&SubflowView) -> Arrival,
    out: &mut Outcome,
) -> Option<Decision> {
    for owner in view.subflows.iter().filter(|it| is_stuck(it) && from(it)) {
        let Some(first) = first_assigned(view, owner.id) else { continue };
        let (there, silenced) = (arrival(owner), owner.ca == CaState::Loss && is_small(owner));
        let candidates = view.candidates();
        let here = |it: &SubflowView| {
            let beyond = || first_assigned(view, it.id).is_some_and(|own| first.end <= own.start);
            match it.queued {
                0 if it.usable(ahead::mss(it), view.tsq) => Some(arrival(it)),
                1.. if silenced && !(is_stuck(it) && is_small(it)) && beyond() => {
                    Some(Arrival::first_on(it))
                }
                _ => None,
            }
        };
        let takers = view.subflows.iter().filter(|it| candidates.contains(it.id));
        let takers = takers.filter_map(|it| Some((it, here(it)?)));
        let sooner = takers.filter(|(_, at)| at.order(&there) == Ordering::Less);
        let Some((taker, _)) = sooner.min_by(|a, b| a.1.order(&b.1)) else { continue };
        let mss = ahead::mss(taker);
        let room = if taker.queued > 0 { taker.cwnd } else { taker.room() } / mss * mss;
        let taken = DataRange::with_len(first.start, room.min(first.len()));
        out.plan.push((taken, taker.id));
        return Some(Decision::Assign { reason: Reason::EarliestArrival });
    }
    None
}

/// Returns the lowest range that is assigned to `holder` and not sent.
fn first_assigned(view: &View<'_>, holder: SubflowId) -> Option<DataRange> {
    let mut at = view.connection.snd_una;
    loop {
        let (range, id) = view.queue.assigned_from(at)?;
        if id == holder {
            return Some(range);
        }
        at = range.end;
    }
}

/// Largest window, in segments, that is small. Opportunistic retransmission in the kernel has the
/// same limit.
const SMALL: u64 = 4;

/// Returns true if assigned data waits for a full window. A subflow with room sends its own data:
/// if that were taken back too, two subflows could pass it to and fro for ever.
fn is_stuck(subflow: &SubflowView) -> bool {
    let window = subflow.cwnd.min(subflow.cap);
    subflow.queued > 0 && window < subflow.inflight.saturating_add(ahead::mss(subflow))
}

/// Returns true if the window is at most [`SMALL`] segments.
pub(crate) fn is_small(subflow: &SubflowView) -> bool {
    subflow.cwnd.min(subflow.cap) <= SMALL * ahead::mss(subflow)
}

/// Returns true if the data assigned to `owner` drains much later than that of the others. Its
/// drain time then exceeds twice the sum of the longest other drain time and the slowest RTT. No
/// plan is so uneven as long as windows do not change.
pub(crate) fn is_overdue(view: &View<'_>, owner: &SubflowView) -> bool {
    let slowest = view.subflows.iter().filter_map(|it| it.srtt).max().unwrap_or_default();
    let others = view.subflows.iter().filter(|it| it.id != owner.id).map(drain);
    let even = others.max().unwrap_or_default().saturating_add(slowest.as_nanos());
    drain(owner) > even.saturating_mul(2)
}

/// Returns the time in ns that a subflow needs to send its assigned data, at one window per RTT.
fn drain(subflow: &SubflowView) -> u64 {
    if subflow.queued == 0 {
        return 0;
    }
    let window = exact::bytes(subflow.cwnd.min(subflow.cap)).max(1);
    let nanos = exact::bytes(subflow.queued) * exact::nanos(subflow.srtt_or_max()) / window;
    u64::try_from(nanos).unwrap_or(u64::MAX)
}
