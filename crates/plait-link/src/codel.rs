use alloc::collections::VecDeque;

use plait_base::{Span, Time};

/// After this many intervals without a drop, the last drop rate is no longer used (RFC 8289).
const MEMORY: u64 = 16;

/// A queue that drops at its head when packets have waited too long for too long (RFC 8289). The fate of a
/// packet is known when it leaves the queue, not when it enters.
#[derive(Clone, Debug)]
pub(crate) struct ManagedQueue {
    /// Arrival time and bytes of each packet.
    waiting: VecDeque<(Time, u32)>,
    waiting_bytes: u64,
    /// Departure and bytes of the packet that left the queue last.
    sending: (Time, u32),
    /// Size in bytes of the largest packet so far, used as the MTU.
    largest: u32,
    codel: Codel,
}

impl ManagedQueue {
    pub(crate) fn new(target: Span, interval: Span) -> ManagedQueue {
        ManagedQueue {
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            sending: (Time::ZERO, 0),
            largest: 0,
            codel: Codel::new(target, interval),
        }
    }

    pub(crate) fn push(&mut self, at: Time, size: u32) {
        self.largest = self.largest.max(size);
        self.waiting_bytes += u64::from(size);
        self.waiting.push_back((at, size));
    }

    /// Returns the arrival time of the packet at the head.
    pub(crate) fn head(&self) -> Option<Time> {
        self.waiting.front().map(|packet| packet.0)
    }

    /// Removes the next packet to be sent at `now` and returns its arrival time and bytes. Calls
    /// `dropped` with the bytes of each packet that is dropped before it.
    pub(crate) fn pop(&mut self, now: Time, mut dropped: impl FnMut(u32)) -> Option<(Time, u32)> {
        loop {
            let Some((came, size)) = self.waiting.pop_front() else {
                self.codel.on_empty();
                return None;
            };
            self.waiting_bytes -= u64::from(size);
            let little = self.waiting_bytes <= u64::from(self.largest);
            if !self.codel.drops(now, now.since(came), little) {
                return Some((came, size));
            }
            dropped(size);
        }
    }

    /// Records that the packet removed last departs at `departs`.
    pub(crate) fn on_sending(&mut self, departs: Time, size: u32) {
        self.sending = (departs, size);
    }

    /// Returns packets and bytes at `now`, including the packet in transmission until it departs.
    pub(crate) fn load(&self, now: Time) -> (usize, u64) {
        let (departs, size) = self.sending;
        let (packets, bytes) = if departs > now { (1, u64::from(size)) } else { (0, 0) };
        (self.waiting.len() + packets, self.waiting_bytes + bytes)
    }
}

/// The controller of RFC 8289 section 5, which decides if the packet at the head is dropped. It is the
/// `deque` of section 5.5 as a state machine: after a drop it is called again for the next packet.
#[derive(Clone, Debug)]
struct Codel {
    target: Span,
    interval: Span,
    /// If packets still wait too long at this time, dropping starts.
    first_above: Option<Time>,
    /// True in the dropping state.
    dropping: bool,
    /// Fate of the packet before, at the same instant.
    before: Before,
    drop_next: Time,
    /// Number of drops since the dropping state began, and its value at that time.
    count: u64,
    first_count: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Before {
    Sent,
    /// Dropped on entry to the dropping state.
    First,
    /// Dropped in the dropping state.
    Further,
}

impl Codel {
    fn new(target: Span, interval: Span) -> Codel {
        Codel {
            target,
            interval,
            first_above: None,
            dropping: false,
            before: Before::Sent,
            drop_next: Time::ZERO,
            count: 0,
            first_count: 0,
        }
    }

    fn on_empty(&mut self) {
        self.first_above = None;
        self.dropping = false;
        self.before = Before::Sent;
    }

    /// Decides if the packet at the head at `now` is dropped, after `sojourn` in the queue. `little` is true
    /// if at most one full packet waits behind it.
    fn drops(&mut self, now: Time, sojourn: Span, little: bool) -> bool {
        let may = self.may_drop(now, sojourn, little);
        let before = core::mem::replace(&mut self.before, Before::Sent);
        if before == Before::First {
            // RFC 8289 sends this packet regardless of its sojourn time.
            return false;
        }
        if !self.dropping {
            if may {
                self.enter(now);
            }
            return may;
        }
        if !may {
            self.dropping = false;
            return false;
        }
        if before == Before::Further {
            self.drop_next = self.after(self.drop_next);
        }
        if now < self.drop_next {
            return false;
        }
        self.count += 1;
        self.before = Before::Further;
        true
    }

    /// Returns true if packets have waited for at least the target during a whole interval
    /// (`dodequeue` of section 5.4).
    fn may_drop(&mut self, now: Time, sojourn: Span, little: bool) -> bool {
        if sojourn < self.target || little {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.interval);
                false
            }
            Some(due) => now >= due,
        }
    }

    fn enter(&mut self, now: Time) {
        self.dropping = true;
        self.before = Before::First;
        // Soon after the last dropping state, its drop rate is a good start value.
        let drops = self.count - self.first_count;
        let recent = now.since(self.drop_next) < self.interval.times(MEMORY);
        self.count = if drops > 1 && recent { drops } else { 1 };
        self.drop_next = self.after(now);
        self.first_count = self.count;
    }

    /// The control law: adds the interval divided by the square root of the count, rounded down.
    fn after(&self, time: Time) -> Time {
        let interval = u128::from(self.interval.as_nanos());
        let step = (interval * interval / u128::from(self.count.max(1))).isqrt();
        time + Span::from_nanos(u64::try_from(step).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    /// Fills a queue at 0 ms and removes one packet each millisecond from `from` on. Returns the times
    /// of the drops.
    fn dropped(queue: &mut ManagedQueue, from: u64, to: u64) -> Vec<u64> {
        let mut list = vec![];
        for n in from..to {
            queue.pop(ms(n), |_| list.push(n));
        }
        list
    }

    fn filled(at: Time, packets: usize) -> ManagedQueue {
        let mut queue = ManagedQueue::new(Span::from_millis(5), Span::from_millis(100));
        (0..packets).for_each(|_| queue.push(at, 1500));
        queue
    }

    #[test]
    fn it_drops_after_an_interval_above_the_target_and_then_faster_and_faster() {
        let mut queue = filled(ms(0), 1000);
        // Above the target from 5 ms on. Steps of 100 ms over the roots of 1 to 6: 100, 70.71,
        // 57.73, 50, 44.72, 40.82, each rounded up to the next whole millisecond.
        let drops = dropped(&mut queue, 1, 500);
        assert_eq!(drops, [105, 205, 276, 334, 384, 429, 469]);
        assert_eq!(queue.codel.count, 7);
    }

    #[test]
    fn a_packet_below_the_target_ends_it_and_the_rate_is_remembered() {
        let mut queue = filled(ms(0), 450);
        assert_eq!(dropped(&mut queue, 1, 430).len(), 6);
        // Two packets wait no longer than the target, so the dropping state ends.
        let packets = 450 - 429 - 6;
        for _ in 0..packets {
            queue.pop(ms(430), |_| ());
        }
        queue.push(ms(430), 1500);
        queue.push(ms(430), 1500);
        queue.push(ms(430), 1500);
        queue.pop(ms(431), |_| ());
        assert!(!queue.codel.dropping && queue.codel.first_above.is_none());
        // Back at 500 ms: drops = 6 - 1, so the first step is 100 / sqrt(5).
        (0..900).for_each(|_| queue.push(ms(495), 1500));
        assert_eq!(dropped(&mut queue, 500, 700), [600, 645, 686]);
        // Much later, the earlier drop rate is not used.
        let mut late = filled(ms(0), 1000);
        late.codel.count = 9;
        late.codel.first_count = 2;
        late.codel.drop_next = ms(0);
        assert_eq!(dropped(&mut late, 1600, 1800), [1700]);
        assert_eq!(late.codel.count, 1);
    }

    /// RFC 8289 section 5.5: the rate is remembered for 16 intervals, here 1.6 s after the last
    /// planned drop at 0. Dropping begins 100 ms after the queue is first found too long.
    #[test]
    fn the_rate_is_remembered_for_sixteen_intervals() {
        // 9 - 2 drops before: the step is 100 / sqrt(7) = 37.8 ms, otherwise 100 ms.
        for (from, second) in [(750, 888), (1_499, 1_637), (1_500, 1_700)] {
            let mut queue = filled(ms(0), 1000);
            (queue.codel.count, queue.codel.first_count) = (9, 2);
            queue.codel.drop_next = ms(0);
            let drops = dropped(&mut queue, from, second + 1);
            assert_eq!(drops, [from + 100, second], "{from}");
        }
    }

    #[test]
    fn one_waiting_packet_is_never_too_much() {
        let mut queue = ManagedQueue::new(Span::from_millis(5), Span::from_millis(100));
        for n in 0..50 {
            queue.push(ms(100 * n), 1500);
            queue.push(ms(100 * n), 1500);
            assert!(queue.pop(ms(100 * n + 50), |_| panic!("dropped")).is_some());
            assert!(queue.pop(ms(100 * n + 90), |_| panic!("dropped")).is_some());
        }
        assert_eq!(queue.pop(ms(9_999), |_| ()), None);
    }

    #[test]
    fn at_one_instant_several_may_go() {
        // The transmitter is idle until 900 ms. The first call begins an interval; the second, at 1000 ms,
        // drops. The next drop is due at 1100. The steps of 70.7, 57.7, 50, 44.7, 40.8, 37.8, 35.4 and
        // 33.3 ms lead to drops up to 1470, and the one after them is due at 1502.
        let mut queue = filled(ms(0), 1000);
        assert_eq!(dropped(&mut queue, 900, 901), []);
        assert_eq!(dropped(&mut queue, 1000, 1001), [1000]);
        assert_eq!(dropped(&mut queue, 1500, 1501), [1500; 9]);
        assert_eq!(queue.load(ms(0)).0, 1000 - 3 - 1 - 9);
    }
}
