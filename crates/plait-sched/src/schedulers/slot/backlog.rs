//! The queue of data that a subflow has sent since its path was last empty.

use plait_base::{Span, Time};

/// A period in which a path always had data to send.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Backlog {
    pub(super) began: Time,
    /// Bytes sent since then.
    pub(super) bytes: u64,
}

impl Backlog {
    /// Notes `len` bytes sent now at a rate of bytes a second. A new period begins if the path is `empty`.
    ///
    /// If it is not, although all the data of the period has left, other data stands in its queue. Then the data
    /// in flight shows the queue, until the path is empty.
    pub(super) fn on_sent(&mut self, now: Time, len: u64, rate: u64, empty: bool) {
        if empty {
            *self = Backlog { began: now, bytes: len };
        } else if !self.has_left(now, rate) {
            self.bytes = self.bytes.saturating_add(len);
        }
    }

    /// Notes that `len` bytes of the period were not sent after all.
    pub(super) fn not_sent(&mut self, len: u64) {
        self.bytes = self.bytes.saturating_sub(len);
    }

    /// Returns true if all the data of the period has left at this rate.
    fn has_left(&self, now: Time, rate: u64) -> bool {
        let left = rate.saturating_mul(now.since(self.began).as_nanos());
        left >= self.bytes.saturating_mul(1_000_000_000)
    }

    /// Returns the time since the period began, if that is less than `min_rtt` and data of the period is left.
    ///
    /// Later, the data in flight shows the queue: what is more than the path holds without one.
    pub(super) fn age(&self, now: Time, rate: u64, min_rtt: Span) -> Option<Span> {
        let age = now.since(self.began);
        (age < min_rtt && rate > 0 && !self.has_left(now, rate)).then_some(age)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1_000_000;
    const RTT: Span = Span::from_millis(40);

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_bunch_is_one_period_and_a_pause_ends_it() {
        let mut backlog = Backlog::default();
        backlog.on_sent(at(100), 1_000, RATE, true);
        for _ in 1..10 {
            backlog.on_sent(at(100), 1_000, RATE, false);
        }
        assert_eq!((backlog.began, backlog.bytes), (at(100), 10_000));
        // Ten segments take 10 ms.
        assert_eq!(backlog.age(at(109), RATE, RTT), Some(Span::from_millis(9)));
        assert_eq!(backlog.age(at(110), RATE, RTT), None);
        backlog.on_sent(at(105), 1_000, RATE, false);
        assert_eq!((backlog.began, backlog.bytes), (at(100), 11_000));
        // Other data may stand in the queue then.
        backlog.on_sent(at(111), 1_000, RATE, false);
        assert_eq!(backlog.age(at(111), RATE, RTT), None);
        backlog.on_sent(at(112), 1_000, RATE, true);
        assert_eq!((backlog.began, backlog.bytes), (at(112), 1_000));
    }

    #[test]
    fn data_that_was_not_sent_is_no_backlog() {
        let mut backlog = Backlog::default();
        backlog.on_sent(at(100), 10_000, RATE, true);
        backlog.not_sent(4_000);
        assert_eq!(backlog.age(at(105), RATE, RTT), Some(Span::from_millis(5)));
        assert_eq!(backlog.age(at(106), RATE, RTT), None);
    }

    #[test]
    fn after_a_round_trip_the_data_in_flight_shows_the_queue() {
        let mut backlog = Backlog::default();
        backlog.on_sent(at(100), 1_000_000, RATE, true);
        assert!(backlog.age(at(139), RATE, RTT).is_some());
        assert!(backlog.age(at(140), RATE, RTT).is_none());
        backlog.on_sent(at(150), 1_000, RATE, true);
        assert_eq!((backlog.began, backlog.bytes), (at(150), 1_000));
    }

    #[test]
    fn without_a_rate_there_is_no_period() {
        let mut backlog = Backlog::default();
        backlog.on_sent(at(100), 1_000, 0, true);
        assert!(backlog.age(at(100), 0, RTT).is_none());
    }
}
