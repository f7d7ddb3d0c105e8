use crate::{QueueView, SentRange};
use alloc::vec::Vec;
use plait_base::{DataRange, DataRangeSet, Dsn, SubflowId, SubflowSet};

/// The queues of a connection as plain lists, for decisions outside a running connection (`plait
/// decide`, tests).
#[derive(Clone, PartialEq, Default, Debug)]
pub struct StaticQueue {
    /// Ranges sent and not DATA_ACKed, in ascending order, without overlap.
    pub sent: Vec<SentRange>,
    /// Data not sent and not assigned.
    pub unsent: DataRangeSet,
    /// Ranges assigned and not sent, in ascending order, without overlap.
    pub assigned: Vec<(DataRange, SubflowId)>,
}

impl StaticQueue {
    /// Creates a queue with the bytes `unsent` to send and nothing sent.
    #[must_use]
    pub fn fresh(unsent: DataRange) -> StaticQueue {
        let mut queue = StaticQueue::default();
        queue.unsent.insert(unsent);
        queue
    }

    /// Assigns `range`, unsent or already assigned, to a subflow.
    pub fn assign(&mut self, range: DataRange, subflow: SubflowId) {
        if range.is_empty() {
            return;
        }
        self.unsent.remove(range);
        self.take_assigned(range);
        let at = self.assigned.partition_point(|(held, _)| held.start < range.start);
        self.assigned.insert(at, (range, subflow));
    }

    /// Removes `range` from the assigned data. Returns true if any of it was assigned.
    fn take_assigned(&mut self, range: DataRange) -> bool {
        let first = self.assigned.partition_point(|(held, _)| held.end <= range.start);
        let last = self.assigned.partition_point(|(held, _)| held.start < range.end);
        let held = self.assigned.get(first..last).and_then(|held| held.first().zip(held.last()));
        let Some(((low, below), (high, above))) = held else { return false };
        let rests = [
            (DataRange::new(low.start, range.start), *below),
            (DataRange::new(range.end, high.end), *above),
        ];
        let rests = rests.into_iter().filter(|(rest, _)| !rest.is_empty());
        self.assigned.splice(first..last, rests);
        true
    }

    /// Records that a subflow has sent `range`. Unsent or assigned data becomes sent; segments sent
    /// before are marked as carried by this subflow too.
    pub fn record(&mut self, range: DataRange, subflow: SubflowId) {
        if range.is_empty() {
            return;
        }
        if self.unsent.remove(range) > 0 || self.take_assigned(range) {
            let at = self.sent.partition_point(|sent| sent.range.start < range.start);
            let carried = SubflowSet::one(subflow);
            self.sent.insert(at, SentRange { range, carried, first: subflow });
        } else {
            for sent in self.sent.iter_mut().filter(|sent| range.covers(sent.range)) {
                sent.carried.insert(subflow);
            }
        }
    }

    /// Drops the data below `dsn`, which has been DATA_ACKed.
    pub fn ack(&mut self, dsn: Dsn) {
        self.sent.retain(|sent| sent.range.end > dsn);
        if let Some(first) = self.sent.first_mut() {
            first.range.start = first.range.start.max(dsn);
        }
    }
}

impl QueueView for StaticQueue {
    fn sent_from(&self, dsn: Dsn) -> Option<SentRange> {
        self.sent.get(self.sent.partition_point(|sent| sent.range.end <= dsn)).copied()
    }

    fn unsent_at(&self, offset: u64, len: u64) -> Option<DataRange> {
        self.unsent.nth(offset, len)
    }

    fn assigned_from(&self, dsn: Dsn) -> Option<(DataRange, SubflowId)> {
        self.assigned.get(self.assigned.partition_point(|(range, _)| range.end <= dsn)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_moves_from_unsent_to_sent_and_goes_when_acked() {
        let (a, b) = (SubflowId(0), SubflowId(1));
        let mut queue = StaticQueue::fresh(DataRange::between(0, 30));
        queue.record(DataRange::between(10, 20), b);
        queue.record(DataRange::between(0, 10), a);
        queue.record(DataRange::between(0, 10), b);
        let first = queue.sent_from(Dsn::ZERO).unwrap();
        assert_eq!((first.range, first.first), (DataRange::between(0, 10), a));
        assert_eq!(first.carried, [a, b].into_iter().collect());
        assert_eq!(queue.sent_from(Dsn::new(10)).map(|sent| sent.first), Some(b));
        assert_eq!(queue.unsent_at(4, 100), Some(DataRange::between(24, 30)));
        queue.ack(Dsn::new(15));
        assert_eq!(
            queue.sent_from(Dsn::ZERO).map(|sent| sent.range),
            Some(DataRange::between(15, 20))
        );
    }

    #[test]
    fn what_is_assigned_is_cut_where_a_part_of_it_goes_elsewhere_or_out() {
        let (a, b) = (SubflowId(0), SubflowId(1));
        let mut queue = StaticQueue::fresh(DataRange::between(0, 30));
        queue.assign(DataRange::between(0, 20), a);
        queue.assign(DataRange::between(5, 10), b);
        queue.record(DataRange::between(10, 15), a);
        let ranges = [(0, 5, a), (5, 10, b), (15, 20, a)];
        assert_eq!(
            queue.assigned,
            ranges.map(|(start, end, id)| (DataRange::between(start, end), id))
        );
        assert_eq!(queue.assigned_from(Dsn::new(10)), Some((DataRange::between(15, 20), a)));
        assert_eq!((queue.unsent.len(), queue.sent.len()), (10, 1));
        queue.assign(DataRange::between(3, 17), b);
        let ranges = [(0, 3, a), (3, 17, b), (17, 20, a)];
        assert_eq!(
            queue.assigned,
            ranges.map(|(start, end, id)| (DataRange::between(start, end), id))
        );
    }
}
