//! The queue of events, in the order of (time, cause). Each source has at most one live entry, so
//! the queue holds a handful of them however many packets are under way.

use plait_base::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// When something happens: the time, and for the same time the order in which it was caused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Stamp {
    pub(crate) at: Time,
    pub(crate) order: u64,
}

/// A queue over sources numbered from zero.
#[derive(Debug)]
pub(crate) struct EventQueue {
    heap: BinaryHeap<Reverse<(Stamp, usize)>>,
    /// The live entry of each source; others of it in the heap are passed over.
    live: Vec<Option<Stamp>>,
    next_order: u64,
}

impl EventQueue {
    pub(crate) fn new(sources: usize) -> EventQueue {
        EventQueue {
            heap: BinaryHeap::with_capacity(4 * sources),
            live: vec![None; sources],
            next_order: 0,
        }
    }

    /// A number for something that is caused now.
    pub(crate) fn order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }

    /// The source's next event is at `stamp`; an earlier answer of the same source is void.
    pub(crate) fn set(&mut self, source: usize, stamp: Stamp) {
        if stamp.at != Time::NEVER {
            self.live[source] = Some(stamp);
            self.heap.push(Reverse((stamp, source)));
        }
    }

    /// When the source's next event is.
    pub(crate) fn at(&self, source: usize) -> Time {
        self.live[source].map_or(Time::NEVER, |stamp| stamp.at)
    }

    /// Takes the first event.
    pub(crate) fn pop(&mut self) -> Option<(Time, usize)> {
        while let Some(Reverse((stamp, source))) = self.heap.pop() {
            if self.live[source] == Some(stamp) {
                self.live[source] = None;
                return Some((stamp.at, source));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plait_base::Span;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn ties_go_by_cause_and_a_source_has_one_entry() {
        let mut queue = EventQueue::new(3);
        queue.set(0, Stamp { at: at(5), order: 7 });
        queue.set(1, Stamp { at: at(5), order: 3 });
        queue.set(2, Stamp { at: at(9), order: 1 });
        queue.set(2, Stamp { at: at(1), order: 9 });
        assert_eq!(queue.pop(), Some((at(1), 2)));
        assert_eq!(queue.pop(), Some((at(5), 1)));
        assert_eq!(queue.pop(), Some((at(5), 0)));
        assert_eq!(queue.pop(), None);
    }
}
