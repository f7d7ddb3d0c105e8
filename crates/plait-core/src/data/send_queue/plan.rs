//! Data assigned to subflows before it is sent.

use crate::data::send_queue::SendQueue;
use plait_base::{DataRange, DataRangeSet, SubflowId, SubflowSet};

impl SendQueue {
    /// Assigns `range`, unsent or already assigned, to `subflow`, which sends it when it can.
    /// Returns the subflows with changed assignments.
    pub(crate) fn assign(&mut self, range: DataRange, subflow: SubflowId) -> SubflowSet {
        if self.assigned.len() <= subflow.index() {
            self.assigned
                .extend((self.assigned.len()..=subflow.index()).map(|_| DataRangeSet::new()));
        }
        let (mut touched, mut at) = (SubflowSet::EMPTY, range.start);
        while at < range.end {
            let rest = DataRange::new(at, range.end);
            let part = match self.unsent.containing(at) {
                Some(held) => {
                    let part = held.intersect(rest);
                    self.planned += self.unsent.remove(part);
                    part
                }
                None => match self.take_back(rest) {
                    Some((part, owner)) => {
                        touched.insert(owner);
                        part
                    }
                    // Already sent, or never written.
                    None => break,
                },
            };
            self.assigned[subflow.index()].insert(part);
            touched.insert(subflow);
            at = part.end;
        }
        touched
    }

    /// Assigns each range of `plan` to its subflow, as [`assign`](Self::assign) does. A plan for
    /// all assigned data in order is applied as a whole, because a scheduler may have one at every
    /// acknowledgement.
    pub(crate) fn assign_all(&mut self, plan: &[(DataRange, SubflowId)]) -> SubflowSet {
        let known = |(_, to): &(DataRange, SubflowId)| to.index() < self.assigned.len();
        if !plan.iter().all(known) || !self.is_planned_by(plan) {
            let each = plan.iter().map(|(range, to)| self.assign(*range, *to).0);
            return SubflowSet(each.fold(0, |all, some| all | some));
        }
        let mut touched = SubflowSet::EMPTY;
        for (id, set) in (0..).zip(&mut *self.assigned) {
            if !set.is_empty() {
                touched.insert(SubflowId(id));
                set.clear();
            }
        }
        for (range, to) in plan.iter().filter(|(range, _)| !range.is_empty()) {
            touched.insert(*to);
            self.assigned[to.index()].insert(*range);
        }
        touched
    }

    /// Returns true if `plan` contains each assigned byte once, in order, and no other.
    fn is_planned_by(&self, plan: &[(DataRange, SubflowId)]) -> bool {
        let bytes: u64 = plan.iter().map(|(range, _)| range.len()).sum();
        let ascends =
            plan.windows(2).all(|two| matches!(two, [(a, _), (b, _)] if a.end <= b.start));
        bytes == self.planned && ascends && self.assigned.iter().all(|set| is_within(set, plan))
    }

    /// Reclaims the assigned data at the start of `range` from its subflow.
    fn take_back(&mut self, range: DataRange) -> Option<(DataRange, SubflowId)> {
        for (id, set) in (0..).zip(&mut *self.assigned) {
            if let Some(held) = set.containing(range.start) {
                let part = held.intersect(range);
                set.remove(part);
                return Some((part, SubflowId(id)));
            }
        }
        None
    }

    /// Reclaims everything assigned and not sent.
    pub(crate) fn unassign_all(&mut self) {
        self.planned = 0;
        for set in &mut *self.assigned {
            for range in set.iter() {
                self.unsent.insert(range);
            }
            set.clear();
        }
    }

    /// Returns true if data is assigned and not sent.
    pub(crate) const fn has_plan(&self) -> bool {
        self.planned > 0
    }

    /// Returns the next range assigned to `subflow`, at most `len` bytes.
    pub(crate) fn next_assigned(&self, subflow: SubflowId, len: u64) -> Option<DataRange> {
        self.assigned.get(subflow.index())?.nth(0, len)
    }

    /// Notes that `range`, assigned to `subflow`, is sent.
    pub(crate) fn take_assigned(&mut self, range: DataRange, subflow: SubflowId) {
        if let Some(set) = self.assigned.get_mut(subflow.index()) {
            self.planned -= set.remove(range);
            self.note_sent(range, subflow);
        }
    }

    /// Takes the assigned part of `range` to be sent on `subflow`. Returns it with the subflow that
    /// it was assigned to.
    pub(crate) fn take_waiting(
        &mut self,
        range: DataRange,
        subflow: SubflowId,
    ) -> Option<(DataRange, SubflowId)> {
        if self.planned == 0 {
            return None;
        }
        let (part, owner) = self.take_back(range)?;
        self.planned -= part.len();
        self.note_sent(part, subflow);
        Some((part, owner))
    }
}

/// Returns true if the ascending ranges of `plan` cover the whole of `set`.
fn is_within(set: &DataRangeSet, plan: &[(DataRange, SubflowId)]) -> bool {
    let mut ranges = plan.iter().map(|(range, _)| *range);
    let mut now = DataRange::default();
    set.iter().all(|held| {
        let mut at = held.start;
        while at < held.end {
            if now.end <= at {
                match ranges.next() {
                    Some(next) => now = next,
                    None => return false,
                }
            } else if now.start > at {
                return false;
            } else {
                at = now.end;
            }
        }
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use plait_base::Dsn;
    use plait_sched::QueueView;
    use proptest::prelude::*;

    const FAST: SubflowId = SubflowId(0);
    const SLOW: SubflowId = SubflowId(1);

    proptest! {
        /// A plan has the same effect as a whole and range by range.
        #[test]
        fn a_plan_is_taken_over_whole_or_in_parts(
            written in 1u64..400,
            before in proptest::collection::vec((0u64..400, 1u64..60, 0u8..3), 0..12),
            sent in proptest::collection::vec((1u64..40, 0u8..3), 0..3),
            cuts in proptest::collection::vec((1u64..60, 0u8..3), 1..40),
            whole in any::<bool>(),
        ) {
            let made = || {
                let mut queue = SendQueue::default();
                queue.write_pattern(written);
                for (start, len, to) in &before {
                    queue.assign(DataRange::between(*start, start + len), SubflowId(*to));
                }
                for (len, of) in &sent {
                    let first = queue.assigned.get(usize::from(*of)).and_then(DataRangeSet::first);
                    if let Some(first) = first {
                        let end = first.end.min(first.start + *len);
                        queue.take_assigned(DataRange::new(first.start, end), SubflowId(*of));
                    }
                }
                queue
            };
            let (mut one, mut other) = (made(), made());
            // The assigned data with new cuts, or all data.
            let mut plan = Vec::new();
            let (mut at, mut cuts) = (0, cuts.iter().cycle());
            while let Some(held) = one.assigned_from(Dsn::new(at)).map(|(held, _)| held) {
                let (len, to) = cuts.next().unwrap();
                let start = if whole { at.max(held.start.get()) } else { at };
                let end = (start + len).min(held.end.get());
                plan.push((DataRange::between(start, end), SubflowId(*to)));
                at = end;
            }
            let mut touched = SubflowSet::EMPTY;
            for (range, to) in &plan {
                touched.0 |= other.assign(*range, *to).0;
            }
            prop_assert!(!whole || plan.is_empty() || one.is_planned_by(&plan));
            prop_assert_eq!(one.assign_all(&plan), touched);
            prop_assert_eq!(one.planned, other.planned);
            prop_assert_eq!(one.unsent.iter().collect::<Vec<_>>(), other.unsent.iter().collect::<Vec<_>>());
            let held = |queue: &SendQueue| -> Vec<Vec<DataRange>> {
                queue.assigned.iter().map(|set| set.iter().collect()).collect()
            };
            prop_assert_eq!(held(&one), held(&other));
        }
    }

    #[test]
    fn a_plan_is_thrown_away_without_loss() {
        let mut queue = SendQueue::default();
        queue.write_pattern(300);
        queue.assign(DataRange::between(100, 200), SLOW);
        assert_eq!((queue.unsent(), queue.assigned(SLOW)), (200, 100));
        assert_eq!(queue.next_assigned(SLOW, 60), Some(DataRange::between(100, 160)));
        queue.take_assigned(DataRange::between(100, 160), SLOW);
        queue.unassign_all();
        assert_eq!((queue.unsent(), queue.assigned(SLOW)), (240, 0));
    }

    #[test]
    fn what_waits_is_taken_by_another_once() {
        let range = DataRange::between;
        let mut queue = SendQueue::default();
        queue.write_pattern(300);
        assert_eq!(queue.take_waiting(range(0, 100), FAST), None);
        queue.take_new(0, 100, FAST);
        queue.assign(range(100, 250), SLOW);
        assert_eq!(queue.take_waiting(range(0, 100), FAST), None);
        assert_eq!(queue.take_waiting(range(150, 200), FAST), Some((range(150, 200), SLOW)));
        assert_eq!((queue.assigned(SLOW), queue.planned, queue.nxt()), (100, 100, Dsn::new(200)));
        assert_eq!(
            queue.sent_from(Dsn::new(150)).map(|sent| sent.carried),
            Some(SubflowSet::one(FAST))
        );
        assert_eq!(queue.take_waiting(range(150, 200), FAST), None);
        // Up to the end of the assigned range.
        assert_eq!(queue.take_waiting(range(200, 300), FAST), Some((range(200, 250), SLOW)));
    }

    #[test]
    fn a_plan_is_changed_in_place() {
        let range = DataRange::between;
        let mut queue = SendQueue::default();
        queue.write_pattern(400);
        assert_eq!(queue.assign(range(0, 300), FAST), SubflowSet::one(FAST));
        let both: SubflowSet = [FAST, SLOW].into_iter().collect();
        assert_eq!(queue.assign(range(100, 200), SLOW), both);
        assert_eq!((queue.assigned(FAST), queue.assigned(SLOW), queue.unsent()), (200, 100, 100));
        assert_eq!(queue.assigned_from(Dsn::new(50)), Some((range(0, 100), FAST)));
        assert_eq!(queue.assigned_from(Dsn::new(100)), Some((range(100, 200), SLOW)));
        assert_eq!(queue.assigned_from(Dsn::new(200)), Some((range(200, 300), FAST)));
        assert_eq!(queue.assigned_from(Dsn::new(300)), None);
        // Over all data, and beyond it.
        assert_eq!(queue.assign(range(0, 1_000), SLOW), both);
        assert_eq!((queue.assigned(FAST), queue.assigned(SLOW), queue.unsent()), (0, 400, 0));
        queue.take_assigned(range(0, 400), SLOW);
        assert!(!queue.has_plan());
        // Sent data is not assigned any more.
        assert_eq!(queue.assign(range(0, 100), FAST), SubflowSet::EMPTY);
    }
}
