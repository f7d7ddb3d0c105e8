//! Rules shared by the schedulers that assign data to a subflow before it can be sent.

use crate::rules::{self, Place};
use crate::{Decision, Outcome, Reason, SubflowView, View};
use plait_base::{DataRange, SubflowId, SubflowSet};

/// The task of one decision.
pub(crate) enum Task {
    /// Nothing: the shared rules have decided.
    Settled(Decision),
    /// Choose a subflow for this segment, the first one of the unsent data.
    Place(DataRange),
}

/// Applies [`rules::task`], but waits if data is assigned and not sent.
#[inline]
pub(crate) fn task(view: &View<'_>) -> Task {
    match rules::task(view) {
        rules::Task::Settled(Decision::Idle) => match owner(view) {
            Some(_) => Task::Settled(waits(view)),
            None => Task::Settled(Decision::Idle),
        },
        rules::Task::Settled(decision) => Task::Settled(decision),
        rules::Task::Place(segment) => Task::Place(segment),
    }
}

/// Gives `segment` to `subflow`. It is sent at once if it fits and no assigned data is before it;
/// otherwise it is assigned.
pub(crate) fn place(
    view: &View<'_>,
    subflow: &SubflowView,
    segment: DataRange,
    reason: Reason,
    out: &mut Outcome,
) -> Decision {
    if subflow.queued == 0 && subflow.usable(segment.len(), view.tsq) {
        return rules::new_on(view, subflow.id, segment, reason);
    }
    out.plan.push((segment, subflow.id));
    Decision::Assign { reason }
}

/// Returns the answer if `segment` ends beyond the send window. No part of it is assigned.
#[inline]
pub(crate) fn beyond_window(view: &View<'_>, segment: DataRange) -> Option<Decision> {
    (segment.end > view.connection.wnd_end).then(|| waits_for_window(view, segment))
}

fn waits_for_window(view: &View<'_>, segment: DataRange) -> Decision {
    match rules::lowest_rtt(view, segment.len(), SubflowSet::EMPTY) {
        Place::On(free) | Place::Again(free) => {
            Decision::Wait { on: Some(free.id), reason: Reason::SendWindow }
        }
        Place::Untried(_) | Place::None => waits(view),
    }
}

/// Waits for the subflow that holds the next assigned data, or for any subflow if that one is not
/// alive.
pub(crate) fn waits(view: &View<'_>) -> Decision {
    match owner(view).and_then(|id| view.subflow(id)).filter(|it| it.alive()) {
        Some(subflow) => Decision::Wait { on: Some(subflow.id), reason: Reason::AssignedBusy },
        None => rules::none_usable(view),
    }
}

/// Returns the subflow that holds the first data assigned and not sent.
fn owner(view: &View<'_>) -> Option<SubflowId> {
    if view.subflows.iter().all(|subflow| subflow.queued == 0) {
        return None;
    }
    let known = view.queue.assigned_from(view.connection.snd_una).map(|(_, owner)| owner);
    known.or_else(|| view.subflows.iter().find(|it| it.queued > 0).map(|it| it.id))
}

/// Sends `segment` on the candidate with the lowest RTT that has room.
pub(crate) fn lowest_rtt_candidate(
    view: &View<'_>,
    candidates: SubflowSet,
    segment: DataRange,
) -> Decision {
    let usable = |s: &&SubflowView| candidates.contains(s.id) && s.usable(segment.len(), view.tsq);
    match rules::fastest(view.subflows.iter().filter(usable)) {
        Some(subflow) => rules::new_on(view, subflow.id, segment, Reason::LowestRtt),
        None => waits(view),
    }
}

/// Returns the whole segments in a subflow's window, at least one.
pub(crate) fn window_segments(subflow: &SubflowView) -> u64 {
    (subflow.cwnd / mss(subflow)).max(1)
}

/// Returns the whole segments that the window allows beside the bytes in flight.
pub(crate) fn free_segments(subflow: &SubflowView) -> u64 {
    subflow.cwnd.saturating_sub(subflow.inflight) / mss(subflow)
}

/// Returns the segments assigned and not sent.
pub(crate) fn queued_segments(subflow: &SubflowView) -> u64 {
    subflow.queued.div_ceil(mss(subflow))
}

/// Returns the bytes of a subflow's segment, at least one.
pub(crate) fn mss(subflow: &SubflowView) -> u64 {
    u64::from(subflow.mss.max(1))
}
