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

/// Up to this many sources are looked through; a heap pays only beyond.
const FEW: usize = 24;

/// A queue over sources numbered from zero.
#[derive(Debug)]
pub(crate) struct EventQueue {
    /// The live entry of each source, [`Stamp::NEVER`] where there is none.
    live: Vec<Stamp>,
    /// Entries in order, where there are many sources; void ones among them are passed over.
    heap: Option<BinaryHeap<Reverse<(Stamp, usize)>>>,
    next_order: u64,
}

impl Stamp {
    const NEVER: Stamp = Stamp { at: Time::NEVER, order: u64::MAX };

    /// Both parts in one number, in the same order.
    const fn key(self) -> u128 {
        (self.at.as_nanos() as u128) << 64 | self.order as u128
    }
}

impl EventQueue {
    pub(crate) fn new(sources: usize) -> EventQueue {
        EventQueue {
            live: vec![Stamp::NEVER; sources],
            heap: (sources > FEW).then(|| BinaryHeap::with_capacity(4 * sources)),
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
        if stamp.at == Time::NEVER {
            return;
        }
        self.live[source] = stamp;
        if let Some(heap) = &mut self.heap {
            heap.push(Reverse((stamp, source)));
        }
    }

    /// When the source's next event is.
    pub(crate) fn at(&self, source: usize) -> Time {
        self.live[source].at
    }

    /// The earliest entry of all, or one that is never. A plain loop over wide keys: this is done
    /// for every event.
    fn first_of_few(&self) -> Option<(Stamp, usize)> {
        let mut first = (u128::MAX, 0);
        for (source, stamp) in self.live.iter().enumerate() {
            let key = stamp.key();
            if key < first.0 {
                first = (key, source);
            }
        }
        self.live.get(first.1).map(|stamp| (*stamp, first.1))
    }

    /// Takes the first event.
    pub(crate) fn pop(&mut self) -> Option<(Time, usize)> {
        let (stamp, source) = match &mut self.heap {
            None => self.first_of_few()?,
            Some(heap) => loop {
                let Reverse(entry) = heap.pop()?;
                if self.live[entry.1] == entry.0 {
                    break entry;
                }
            },
        };
        self.live[source] = Stamp::NEVER;
        (stamp.at != Time::NEVER).then_some((stamp.at, source))
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

    /// The heap is the oracle of the plain look.
    #[test]
    fn few_sources_and_many_are_served_alike() {
        let mut stream = plait_base::Stream::new(1, &["queue"]);
        let (mut few, mut many) = (EventQueue::new(FEW), EventQueue::new(FEW + 1));
        assert!(few.heap.is_none() && many.heap.is_some());
        for _ in 0..20_000 {
            if stream.below(3) == 0 {
                assert_eq!(few.pop(), many.pop());
                continue;
            }
            let source = stream.below(FEW as u64) as usize;
            let (at, order) = (at(stream.below(50)), few.order());
            assert_eq!(many.order(), order);
            few.set(source, Stamp { at, order });
            many.set(source, Stamp { at, order });
        }
    }
}
