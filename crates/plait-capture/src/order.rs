//! The packets of a file in the order of time, and the directions that the file has shown so far.

use crate::joining::Number;
use crate::lookup::Lookup;
use crate::packet::Seen;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::net::SocketAddr;

/// Largest number of packets of all files that wait to be sorted.
pub(crate) const MAX_WAITING: usize = 131_072;
/// Largest number of directions of a file with known times.
const MAX_DIRECTIONS: usize = 40_000;
/// If the packets of a direction go back by more than this time in nanoseconds, the clock was set back.
const DISORDER_NS: i64 = 20_000_000;

/// The disorder of a file.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Disorder {
    /// Packets that are earlier than the packet before them.
    pub(crate) earlier: u64,
    /// The number of the one that goes back the most, and the time in nanoseconds.
    pub(crate) most: (u64, i64),
    /// Times at which the clock was set back.
    pub(crate) set_back: u64,
    /// The first packet after that, and the time in nanoseconds.
    pub(crate) first_set: (u64, i64),
    /// Packets that are too far behind to be sorted.
    pub(crate) late: u64,
}

/// What a file has shown of one direction of a subflow.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Direction {
    /// Latest time in nanoseconds.
    latest: i64,
    /// First data sequence number, of 8 bytes if there is one.
    pub(crate) dsn: Option<Number>,
    /// The same of the DATA_ACKs.
    pub(crate) ack: Option<Number>,
}

/// An item of a file that waits for its turn.
struct Waiting<T> {
    at_ns: i64,
    /// Number of items before it in the file.
    nth: u64,
    item: T,
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Waiting<T>) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Waiting<T>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Waiting<T> {
    /// The largest item is the earliest one.
    fn cmp(&self, other: &Waiting<T>) -> Ordering {
        (other.at_ns, other.nth).cmp(&(self.at_ns, self.nth))
    }
}

/// The items of a file that wait, in the order of time.
pub(crate) struct Queue<T> {
    /// Items that came in the order of time.
    ordered: VecDeque<Waiting<T>>,
    /// Items that came too late.
    others: BinaryHeap<Waiting<T>>,
    room: usize,
    items: u64,
    /// Time of the latest item that left.
    left: i64,
    pub(crate) late: u64,
}

impl<T> Queue<T> {
    /// Returns a queue for `room` items.
    pub(crate) fn new(room: usize) -> Queue<T> {
        let (ordered, others) = (VecDeque::new(), BinaryHeap::new());
        Queue { ordered, others, room, items: 0, left: i64::MIN, late: 0 }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.ordered.len() + self.others.len() < self.room
    }

    pub(crate) fn push(&mut self, at_ns: i64, item: T) {
        let waiting = Waiting { at_ns, nth: self.items, item };
        self.items += 1;
        match self.ordered.back().is_none_or(|last| last.at_ns <= at_ns) {
            true => self.ordered.push_back(waiting),
            false => self.others.push(waiting),
        }
    }

    /// Returns the earliest item and its time.
    pub(crate) fn first(&self) -> Option<(i64, &T)> {
        let first = self.ordered.front().max(self.others.peek());
        first.map(|it| (it.at_ns, &it.item))
    }

    /// Removes the earliest item.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let first = match self.ordered.front() < self.others.peek() {
            true => self.others.pop()?,
            false => self.ordered.pop_front()?,
        };
        self.late += u64::from(first.at_ns < self.left);
        self.left = self.left.max(first.at_ns);
        Some(first.item)
    }
}

/// The clock of a capture was set back: the time that is added to later stamps, and the stamp that ends this.
#[derive(Clone, Copy, Debug)]
struct Step {
    added: i64,
    until: i64,
}

/// The clock of a file, and the directions of the subflows in it.
#[derive(Default)]
pub(crate) struct Clock {
    /// Numbers of the directions, and what the file has shown of each.
    numbers: Lookup,
    directions: Vec<Direction>,
    /// Stamp of the packet before.
    previous: Option<i64>,
    /// Latest time so far.
    highest: i64,
    step: Option<Step>,
    pub(crate) disorder: Disorder,
}

impl Clock {
    /// Takes the next segment of the file, and returns its time.
    pub(crate) fn time_of(&mut self, seen: &Seen) -> i64 {
        let stamp = seen.at_ns;
        let back = self.previous.map_or(0, |previous| previous.saturating_sub(stamp));
        self.previous = Some(stamp);
        if back > 0 {
            self.disorder.earlier += 1;
            if back > self.disorder.most.1 {
                self.disorder.most = (seen.number, back);
            }
        }
        self.step = self.step.filter(|step| stamp < step.until);
        let mut at_ns = stamp.saturating_add(self.step.map_or(0, |step| step.added));
        let ends = (seen.src, seen.dst);
        let number = self.numbers.find(&ends).or_else(|| {
            (self.directions.len() < MAX_DIRECTIONS).then(|| {
                self.directions.push(Direction::default());
                self.numbers.add(ends)
            })
        });
        if let Some(direction) = number.and_then(|number| self.directions.get_mut(number)) {
            if direction.latest.saturating_sub(at_ns) > DISORDER_NS {
                if self.disorder.set_back == 0 {
                    self.disorder.first_set = (seen.number, self.highest.saturating_sub(at_ns));
                }
                self.disorder.set_back += 1;
                let added = self.highest.saturating_sub(stamp);
                let until = self.step.map_or(self.highest, |step| step.until);
                self.step = Some(Step { added, until });
                at_ns = self.highest;
            }
            direction.latest = direction.latest.max(at_ns);
            let dss = seen.segment.options.dss;
            let mapping = dss.and_then(|dss| dss.mapping).filter(|it| it.len > 0);
            let dsn = mapping.map(|it| Number { value: it.dsn.0, long: it.long });
            let ack = dss.and_then(|dss| dss.data_ack);
            let ack = ack.map(|it| Number { value: it.value.0, long: it.long });
            direction.dsn = Number::better(direction.dsn, dsn);
            direction.ack = Number::better(direction.ack, ack);
        }
        self.highest = self.highest.max(at_ns);
        at_ns
    }

    /// Returns what the file has shown of the segments from `src` to `dst`; none if there was none.
    pub(crate) fn direction(&self, src: SocketAddr, dst: SocketAddr) -> Option<Direction> {
        self.directions.get(self.numbers.known(&(src, dst))?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// With enough room, the items are sorted as by a stable sort.
        #[test]
        fn items_leave_in_the_order_of_time(times in prop::collection::vec(0i64..20, 0..40)) {
            let mut queue = Queue::new(40);
            for (nth, at_ns) in times.iter().enumerate() {
                queue.push(*at_ns, (*at_ns, nth));
            }
            let mut expected: Vec<_> = times.iter().copied().zip(0usize..).collect();
            expected.sort();
            let left: Vec<_> = std::iter::from_fn(|| queue.pop()).collect();
            prop_assert_eq!(left, expected);
            prop_assert_eq!(queue.late, 0);
        }
    }

    #[test]
    fn items_beyond_the_room_are_late() {
        let mut queue = Queue::new(2);
        queue.push(5, 'a');
        queue.push(6, 'b');
        assert!(!queue.has_room());
        assert_eq!(queue.pop(), Some('a'));
        queue.push(1, 'c');
        assert_eq!((queue.pop(), queue.late), (Some('c'), 1));
        assert_eq!((queue.pop(), queue.pop()), (Some('b'), None));
    }
}
