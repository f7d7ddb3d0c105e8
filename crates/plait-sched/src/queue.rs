use crate::{QueueView, SentRange};
use alloc::vec::Vec;
use plait_base::{ByteRange, RangeSet, SubflowId, SubflowSet};

/// The queues of a connection as plain lists: for decisions outside a running connection
/// (`plait decide`, tests).
#[derive(Clone, PartialEq, Default, Debug)]
pub struct StaticQueue {
    /// Ranges sent and not DATA_ACKed, in ascending order, without overlap.
    pub sent: Vec<SentRange>,
    /// Data that no subflow has been given.
    pub unsent: RangeSet,
}

impl StaticQueue {
    /// A queue with nothing sent and the bytes `unsent` to send.
    #[must_use]
    pub fn fresh(unsent: ByteRange) -> StaticQueue {
        let mut queue = StaticQueue::default();
        queue.unsent.insert(unsent);
        queue
    }

    /// Takes the segment `range` from the unsent data, or marks the segments that lie within it as
    /// carried by one subflow more.
    pub fn record(&mut self, range: ByteRange, subflow: SubflowId) {
        if range.is_empty() {
            return;
        }
        if self.unsent.remove(range) > 0 {
            let at = self.sent.partition_point(|sent| sent.range.start < range.start);
            let carried = SubflowSet::one(subflow);
            self.sent.insert(at, SentRange { range, carried, first: subflow });
        } else {
            for sent in self.sent.iter_mut().filter(|sent| range.covers(sent.range)) {
                sent.carried.insert(subflow);
            }
        }
    }

    /// Forgets the data below `dsn`, which has been DATA_ACKed.
    pub fn ack(&mut self, dsn: u64) {
        self.sent.retain(|sent| sent.range.end > dsn);
        if let Some(first) = self.sent.first_mut() {
            first.range.start = first.range.start.max(dsn);
        }
    }
}

impl QueueView for StaticQueue {
    fn sent_from(&self, dsn: u64) -> Option<SentRange> {
        self.sent.get(self.sent.partition_point(|sent| sent.range.end <= dsn)).copied()
    }

    fn unsent_at(&self, offset: u64, len: u64) -> Option<ByteRange> {
        self.unsent.nth(offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_moves_from_unsent_to_sent_and_goes_when_acked() {
        let (a, b) = (SubflowId(0), SubflowId(1));
        let mut queue = StaticQueue::fresh(ByteRange::new(0, 30));
        queue.record(ByteRange::new(10, 20), b);
        queue.record(ByteRange::new(0, 10), a);
        queue.record(ByteRange::new(0, 10), b);
        let first = queue.sent_from(0).unwrap();
        assert_eq!((first.range, first.first), (ByteRange::new(0, 10), a));
        assert_eq!(first.carried, [a, b].into_iter().collect());
        assert_eq!(queue.sent_from(10).map(|sent| sent.first), Some(b));
        assert_eq!(queue.unsent_at(4, 100), Some(ByteRange::new(24, 30)));
        queue.ack(15);
        assert_eq!(queue.sent_from(0).map(|sent| sent.range), Some(ByteRange::new(15, 20)));
    }
}
