//! Rules shared by the variants of STMS: the slow subflow takes data that lies a gap ahead. When
//! that data arrives, the fast subflow has delivered all data before it (STMS, ATC 2018, section
//! 3).

use crate::exact;
use crate::rules;
use crate::{Decision, Outcome, Reason, SubflowView, View, What};
use plait_base::{DataRange, SubflowSet};

/// The fast subflow and the candidates of a decision.
#[derive(Clone, Copy)]
pub(crate) struct Lanes<'a> {
    pub(crate) fast: &'a SubflowView,
    candidates: SubflowSet,
    all: &'a [SubflowView],
}

impl<'a> Lanes<'a> {
    /// Returns the candidates and the fastest of them; `None` if no subflow is alive.
    pub(crate) fn of(view: &View<'a>) -> Option<Lanes<'a>> {
        let (candidates, fast) = rules::candidates_and_fastest(view)?;
        Some(Lanes { fast, candidates, all: view.subflows })
    }

    /// Returns the candidates other than the fast one.
    pub(crate) fn slow(self) -> impl Iterator<Item = &'a SubflowView> {
        let (fast, candidates) = (self.fast.id, self.candidates);
        self.all.iter().filter(move |it| it.id != fast && candidates.contains(it.id))
    }

    /// Returns the slow candidates for which `is_asked` is true, in the order of their RTTs. It
    /// does not sort: in most cases there is at most one.
    fn slow_in_order(
        self,
        is_asked: impl Fn(&SubflowView) -> bool,
    ) -> impl Iterator<Item = &'a SubflowView> {
        let mut left: SubflowSet = self.slow().filter(|it| is_asked(it)).map(|it| it.id).collect();
        core::iter::from_fn(move || {
            let next = rules::fastest(self.all.iter().filter(|it| left.contains(it.id)))?;
            left.remove(next.id);
            Some(next)
        })
    }

    /// Returns true if `other` is faster than `slow`.
    pub(crate) fn is_faster(other: &SubflowView, slow: &SubflowView) -> bool {
        (other.srtt_or_max(), other.id) < (slow.srtt_or_max(), slow.id)
    }

    /// Calculates the gap of `slow` in bytes: the data that all faster candidates deliver within
    /// the difference of the one-way delays. A one-way delay is taken as half the RTT. Returns
    /// `None` until all RTTs are known. With two candidates this is equation 2 of the paper.
    pub(crate) fn calculated_bytes(self, slow: &SubflowView) -> Option<u128> {
        let srtt = exact::nanos(slow.srtt?);
        let living = self.all.iter().filter(|it| self.candidates.contains(it.id));
        let mut sum = 0;
        for faster in living.filter(|it| it.id != slow.id && Lanes::is_faster(it, slow)) {
            let own = exact::nanos(faster.srtt?);
            let gained = exact::bytes(faster.cwnd) * srtt.saturating_sub(own);
            sum += exact::quotient(gained, 2 * own);
        }
        Some(sum)
    }

    /// Calculates the gap in segments without rounding, for explanation.
    pub(crate) fn calculated_real(self, view: &View<'_>, slow: &SubflowView) -> f64 {
        let srtt = exact::nanos(slow.srtt_or_max());
        let living = self.all.iter().filter(|it| self.candidates.contains(it.id));
        let mut sum = 0.0;
        for faster in living.filter(|it| it.id != slow.id && Lanes::is_faster(it, slow)) {
            let own = exact::nanos(faster.srtt_or_max());
            sum += faster.cwnd as f64 * srtt.saturating_sub(own) as f64 / (2 * own) as f64;
        }
        sum / rules::segment_len(view) as f64
    }

    /// Calculates the gap in whole segments.
    pub(crate) fn calculated(self, view: &View<'_>, slow: &SubflowView) -> Option<u64> {
        let len = u128::from(rules::segment_len(view));
        let segments = exact::quotient(self.calculated_bytes(slow)?, len);
        Some(u64::try_from(segments).unwrap_or(u64::MAX))
    }
}

/// Returns the offset of the last segment of the unsent data: at most `len` before its end, and
/// after the last hole. A segment across a hole would be cut there, and the next segment again.
fn last_segment(view: &View<'_>, len: u64) -> u64 {
    let unsent = view.connection.unsent;
    let mut offset = unsent.saturating_sub(len);
    while let Some(range) = view.queue.unsent_at(offset, len).filter(|range| !range.is_empty()) {
        let end = offset.saturating_add(range.len());
        if end >= unsent {
            break;
        }
        offset = end;
    }
    offset
}

/// Applies Algorithm 1. The fast subflow takes the first of the unsent data. While it has no room,
/// the other subflows, in the order of their RTTs, take the data that lies `gap` segments ahead.
/// With `tail` they take the last segment if less than the gap is unsent.
pub(crate) fn pick(
    view: &View<'_>,
    lanes: Lanes<'_>,
    segment: DataRange,
    tail: bool,
    gap: impl Fn(&SubflowView) -> u64,
    out: &mut Outcome,
) -> Decision {
    let fast = lanes.fast;
    if fast.usable(segment.len(), view.tsq) {
        return rules::new_on(view, fast.id, segment, Reason::FastHasRoom);
    }
    let len = rules::segment_len(view);
    let mut reserved = false;
    for slow in lanes.slow_in_order(|it| it.usable(segment.len(), view.tsq)) {
        let gap = gap(slow);
        out.note("gap", Some(slow.id), gap as f64);
        reserved = true;
        let wanted = gap.saturating_mul(len);
        let offset = match view.queue.unsent_at(wanted, len) {
            None if tail => last_segment(view, len).min(wanted),
            _ => wanted,
        };
        let Some(ahead) = view.queue.unsent_at(offset, len) else { continue };
        if ahead.end <= view.connection.wnd_end && slow.usable(ahead.len(), view.tsq) {
            let (subflow, what, grant) = (slow.id, What::New { offset }, len);
            return Decision::Send { subflow, what, grant, reason: Reason::AheadByGap };
        }
    }
    if reserved {
        Decision::Wait { on: Some(fast.id), reason: Reason::GapReserved }
    } else {
        rules::none_usable(view)
    }
}
