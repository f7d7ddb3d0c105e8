//! Quotas: the views that keep the base scheduler within them.

use super::Goal;
use crate::{SubflowView, View, rules};
use alloc::vec::Vec;
use plait_base::{DataRange, SubflowId, SubflowSet};

/// Data beyond the quota of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OverQuota {
    /// If all other paths cannot send.
    Down,
    /// None.
    Never,
}

impl OverQuota {
    pub(super) const WORDS: &'static [&'static str] = &["auto", "down", "never"];

    /// Returns the meaning of a word for a goal.
    pub(super) fn named(word: &str, goal: Goal) -> OverQuota {
        match (word, goal) {
            ("never", _) | ("auto", Goal::Thrifty) => OverQuota::Never,
            _ => OverQuota::Down,
        }
    }
}

/// Returns true if the path of the subflow has a quota.
pub(super) const fn has_quota(subflow: &SubflowView) -> bool {
    subflow.price.left != u64::MAX
}

/// The views of subflows with room for their quotas alone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limited {
    subflows: [SubflowView; SubflowId::MAX],
    count: usize,
    /// The subflows that rest, because their quotas are used up.
    spent: SubflowSet,
    /// The subflows that carry data beyond their quotas.
    exceeding: SubflowSet,
}

impl Limited {
    /// Limits the subflows of a view; `None` if there are none.
    pub(super) fn of(view: &View<'_>, over_quota: OverQuota) -> Option<Limited> {
        let mut subflows = [*view.subflows.first()?; SubflowId::MAX];
        let count = view.subflows.len().min(subflows.len());
        subflows[..count].copy_from_slice(&view.subflows[..count]);
        let (mut spent, mut exceeding) = (SubflowSet::EMPTY, SubflowSet::EMPTY);
        let mut limited = Limited { subflows, count, spent, exceeding };
        let segment = rules::segment_len(view);
        let is_spent = |it: &SubflowView| it.price.left.saturating_add(it.queued) < segment;
        // A subflow that has only used up its own quota is not down.
        let others_down = |of: &SubflowView| {
            let is_same = |it: &SubflowView| it.id == of.id || of.price.sharing.contains(it.id);
            view.subflows.iter().all(|it| is_same(it) || it.hard_down())
        };
        for subflow in limited.subflows_mut().iter_mut().filter(|it| has_quota(it)) {
            if !is_spent(subflow) {
                // The next segment fits, unless assigned data has taken its place.
                if subflow.queued > 0 {
                    let held = subflow.inflight.saturating_add(subflow.queued);
                    subflow.cap = subflow.cap.min(held.saturating_add(subflow.price.left));
                }
            } else if over_quota == OverQuota::Down && others_down(subflow) {
                subflow.price.copies = false;
                subflow.price.left = u64::MAX;
                exceeding.insert(subflow.id);
            } else {
                subflow.rest();
                spent.insert(subflow.id);
            }
        }
        (limited.spent, limited.exceeding) = (spent, exceeding);
        Some(limited)
    }

    /// Returns the subflows that rest, because their quotas are used up.
    pub(super) const fn spent(&self) -> SubflowSet {
        self.spent
    }

    /// Returns true if the subflow carries data beyond its quota.
    pub(super) const fn exceeds(&self, id: SubflowId) -> bool {
        self.exceeding.contains(id)
    }

    pub(super) fn subflows_mut(&mut self) -> &mut [SubflowView] {
        &mut self.subflows[..self.count]
    }

    /// Returns the view with these subflows.
    pub(super) fn view<'a>(&'a self, view: &View<'a>) -> View<'a> {
        View { subflows: &self.subflows[..self.count], ..*view }
    }

    /// Ends a plan before the data that would exceed a quota. Returns false if no change is left of the
    /// plan by that.
    pub(super) fn trim(&self, view: &View<'_>, plan: &mut Vec<(DataRange, SubflowId)>) -> bool {
        let subflows = &self.subflows[..self.count];
        let mut left = self.subflows.map(|it| it.price.left);
        let mut changes = !subflows.iter().any(has_quota);
        for at in 0..plan.len() {
            let (range, id) = plan[at];
            let place = subflows.iter().position(|it| it.id == id);
            let Some(left) = place.and_then(|place| left.get_mut(place)) else { continue };
            let more = range.len().saturating_sub(held(view, range, id));
            if more <= *left {
                *left = if *left == u64::MAX { *left } else { *left - more };
                changes |= more > 0;
                continue;
            }
            // Whole segments of it.
            let segment = rules::segment_len(view);
            let part = DataRange::with_len(range.start, *left / segment * segment);
            plan[at].0 = part;
            plan.truncate(at + usize::from(!part.is_empty()));
            return changes || held(view, part, id) < part.len();
        }
        true
    }
}

/// Returns the bytes of `range` that are assigned to the subflow `id`.
fn held(view: &View<'_>, range: DataRange, id: SubflowId) -> u64 {
    let (mut at, mut bytes) = (range.start, 0);
    while let Some((assigned, owner)) = view.queue.assigned_from(at)
        && assigned.start < range.end
        && at < assigned.end
    {
        bytes += if owner == id { assigned.intersect(range).len() } else { 0 };
        at = assigned.end;
    }
    bytes
}
