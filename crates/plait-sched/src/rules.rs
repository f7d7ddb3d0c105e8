//! Rules that every scheduler shares: reinjections, connections with one subflow, and the send
//! window. The rules that a custom scheduler needs are public.

use crate::{Decision, Reason, SubflowView, View, What};
use plait_base::{DataRange, SubflowId, SubflowSet};

/// The task of one decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Task {
    /// Nothing: the shared rules have decided.
    Settled(Decision),
    /// Choose a subflow for this segment, the first one of the unsent data.
    Place(DataRange),
}

/// Decides the cases that are the same for every scheduler. Reinjections go first, but new data
/// with a lower DSN goes before them. Without data to send the answer is idle. One subflow leaves
/// no choice.
#[inline(always)]
#[must_use]
pub fn task(view: &View<'_>) -> Task {
    if view.connection.reinject.is_some()
        && let Some(decision) = overtaken(view).or_else(|| reinjection(view))
    {
        return Task::Settled(decision);
    }
    match next_segment(view) {
        None => Task::Settled(Decision::Idle),
        Some(segment) => match view.subflows {
            [only] => Task::Settled(new_on_only(view, only, segment)),
            _ => Task::Place(segment),
        },
    }
}

/// Places new data that lies below the first range of the reinjection queue, by the lowest RTT.
/// Returns `None` if there is none. Such data was left for a subflow that has failed since, and the
/// reader needs it before all data sent beyond it.
#[inline(never)]
fn overtaken(view: &View<'_>) -> Option<Decision> {
    let segment = next_segment(view).filter(|it| is_overtaken(view, *it))?;
    Some(match lowest_rtt(view, segment.len(), SubflowSet::EMPTY) {
        Place::On(subflow) | Place::Again(subflow) => {
            new_on(view, subflow.id, segment, Reason::LowestRtt)
        }
        Place::Untried(_) | Place::None => none_usable(view),
    })
}

/// Returns true if the new `segment` lies below the first range of the reinjection queue.
pub(crate) fn is_overtaken(view: &View<'_>, segment: DataRange) -> bool {
    view.connection.reinject.is_some_and(|waiting| segment.start < waiting.range.start)
}

/// Returns the first segment of the unsent data.
#[must_use]
pub fn next_segment(view: &View<'_>) -> Option<DataRange> {
    if view.connection.unsent == 0 {
        return None;
    }
    view.queue.unsent_at(0, view.connection.unsent.min(segment_len(view)))
}

/// Returns the bytes of a full segment, at least one.
#[must_use]
pub fn segment_len(view: &View<'_>) -> u64 {
    u64::from(view.connection.mss.max(1))
}

/// Sends the new `segment` on `subflow`, or waits if it ends beyond the send window.
#[must_use]
pub fn new_on(view: &View<'_>, subflow: SubflowId, segment: DataRange, reason: Reason) -> Decision {
    if segment.end > view.connection.wnd_end {
        return Decision::Wait { on: Some(subflow), reason: Reason::SendWindow };
    }
    let grant = segment_len(view);
    Decision::Send { subflow, what: What::New { offset: 0 }, grant, reason }
}

/// As [`new_on`], with a grant for all the room of the subflow. It is for schedulers that keep to a
/// subflow while it has room: they choose the first or the best of all subflows with room.
pub(crate) fn run_on(
    view: &View<'_>,
    subflow: &SubflowView,
    segment: DataRange,
    reason: Reason,
) -> Decision {
    match new_on(view, subflow.id, segment, reason) {
        Decision::Send { subflow: id, what, grant, reason } => {
            Decision::Send { subflow: id, what, grant: subflow.room().max(grant), reason }
        }
        other => other,
    }
}

/// Applies the rule for a connection with one subflow.
pub(crate) fn new_on_only(view: &View<'_>, only: &SubflowView, segment: DataRange) -> Decision {
    if only.usable(segment.len(), view.tsq) {
        run_on(view, only, segment, Reason::OnlySubflow)
    } else {
        none_usable(view)
    }
}

/// Waits because no subflow can take a segment: none is live, or all live ones are full.
#[must_use]
pub fn none_usable(view: &View<'_>) -> Decision {
    let dead = view.subflows.iter().all(SubflowView::hard_down);
    let reason = if dead { Reason::NoSubflow } else { Reason::AllBusy };
    Decision::Wait { on: None, reason }
}

/// Returns the subflow with the lowest smoothed RTT; among equal ones, the one with the lowest id.
#[must_use]
pub fn fastest<'a>(subflows: impl Iterator<Item = &'a SubflowView>) -> Option<&'a SubflowView> {
    subflows.min_by_key(|subflow| (subflow.srtt_or_max(), subflow.id))
}

/// Returns the candidates and the fastest of them.
#[inline]
pub(crate) fn candidates_and_fastest<'a>(view: &View<'a>) -> Option<(SubflowSet, &'a SubflowView)> {
    for backup in [false, true] {
        let (mut candidates, mut fast): (_, Option<&SubflowView>) = (SubflowSet::EMPTY, None);
        for subflow in view.subflows.iter().filter(|it| it.backup == backup && it.alive()) {
            candidates.insert(subflow.id);
            // Ids ascend, so the first of equal subflows stays.
            if fast.is_none_or(|best| subflow.srtt_or_max() < best.srtt_or_max()) {
                fast = Some(subflow);
            }
        }
        if let Some(fast) = fast {
            return Some((candidates, fast));
        }
    }
    None
}

/// Returns the fastest candidate, and the fastest candidate with room for `len` bytes. Both are
/// alive: a scheduler must not wait for a dead subflow.
#[inline]
pub(crate) fn fast_and_usable<'a>(
    view: &View<'a>,
    len: u64,
) -> Option<(&'a SubflowView, &'a SubflowView)> {
    for backup in [false, true] {
        let (mut fast, mut usable): (Option<&SubflowView>, Option<&SubflowView>) = (None, None);
        for subflow in view.subflows.iter().filter(|it| it.backup == backup && it.alive()) {
            // Ids ascend, so the first of equal subflows stays.
            let faster = |best: &SubflowView| subflow.srtt_or_max() < best.srtt_or_max();
            if fast.is_none_or(faster) {
                fast = Some(subflow);
            }
            if !subflow.busy(len, view.tsq) && usable.is_none_or(faster) {
                usable = Some(subflow);
            }
        }
        if let Some(fast) = fast {
            return Some((fast, usable?));
        }
    }
    None
}

/// The result of the lowest-RTT rule for a range.
pub(crate) enum Place<'a> {
    /// A subflow that has not carried the range.
    On(&'a SubflowView),
    /// A subflow that has carried the range: every live subflow has, and the search starts again.
    Again(&'a SubflowView),
    /// Wait for this subflow. It has not carried the range and has no room.
    Untried(SubflowId),
    /// No subflow.
    None,
}

/// Applies the lowest-RTT rule to `len` bytes that the subflows `carried` have carried. It returns
/// the fastest usable subflow that has not carried them. Backup subflows are used only if every
/// other one is down or has carried the range. The rule waits for a subflow that is full or
/// recovers from a timeout, because that state does not last.
#[inline]
pub(crate) fn lowest_rtt<'a>(view: &View<'a>, len: u64, carried: SubflowSet) -> Place<'a> {
    if let [only] = view.subflows {
        return match only.usable(len, view.tsq) {
            true if carried.contains(only.id) => Place::Again(only),
            true => Place::On(only),
            false => Place::None,
        };
    }
    let rounds = [carried, SubflowSet::EMPTY];
    for (at, carried) in rounds.into_iter().enumerate() {
        for backup in [false, true] {
            let (mut usable, mut busy): (Option<&SubflowView>, Option<&SubflowView>) = (None, None);
            for subflow in view.subflows {
                if subflow.backup != backup || subflow.hard_down() || carried.contains(subflow.id) {
                    continue;
                }
                let place = if subflow.busy(len, view.tsq) { &mut busy } else { &mut usable };
                // Ids ascend, so the first of equal subflows stays.
                if place.is_none_or(|best| subflow.srtt_or_max() < best.srtt_or_max()) {
                    *place = Some(subflow);
                }
            }
            match (usable, busy) {
                (Some(subflow), _) if at == 0 => return Place::On(subflow),
                (Some(subflow), _) => return Place::Again(subflow),
                (None, Some(_)) if carried.is_empty() => return Place::None,
                (None, Some(busy)) => return Place::Untried(busy.id),
                (None, None) => {}
            }
        }
        if carried.is_empty() {
            break;
        }
    }
    Place::None
}

/// Places the first range of the reinjection queue by the lowest RTT. Returns `None` if the queue
/// is empty. The range was sent before, so it lies within the send window.
#[must_use]
pub fn reinjection(view: &View<'_>) -> Option<Decision> {
    let waiting = view.connection.reinject?;
    let len = waiting.range.len().min(segment_len(view));
    Some(match lowest_rtt(view, len, waiting.carried) {
        Place::On(subflow) => reinject_on(view, subflow.id, Reason::Reinjection),
        Place::Again(subflow) => reinject_on(view, subflow.id, Reason::ReinjectionAgain),
        Place::Untried(busy) => Decision::Wait { on: Some(busy), reason: Reason::UntriedBusy },
        Place::None => none_usable(view),
    })
}

/// Sends the first range of the reinjection queue on `subflow`.
#[must_use]
pub fn reinject_on(view: &View<'_>, subflow: SubflowId, reason: Reason) -> Decision {
    Decision::Send { subflow, what: What::Reinject, grant: segment_len(view), reason }
}
