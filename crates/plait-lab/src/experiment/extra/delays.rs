//! Delays of data and objects.

use plait_app::AppEvent;
use plait_base::{DataRange, Dsn, Span, Time};
use std::collections::VecDeque;

/// The delay from the place of a byte in the send buffer until the byte is readable. It assumes a sender that
/// always writes: the buffer is then always full, and acknowledged bytes make room for as many new ones.
pub(super) struct Delivery {
    sndbuf: u64,
    /// End of each write and its time, for bytes that are not readable yet.
    written: VecDeque<(Dsn, Time)>,
    nanos: u128,
    bytes: u128,
}

impl Delivery {
    pub(super) fn new(sndbuf: u64) -> Delivery {
        Delivery {
            sndbuf,
            written: VecDeque::from([(Dsn::new(sndbuf), Time::ZERO)]),
            nanos: 0,
            bytes: 0,
        }
    }

    pub(super) fn on_data_acked(&mut self, now: Time, next: Dsn) {
        self.written.push_back((next + self.sndbuf, now));
    }

    pub(super) fn on_readable(&mut self, now: Time, data: DataRange) {
        let mut from = data.start;
        while let Some((end, written)) = self.written.front().copied()
            && from < data.end
        {
            let bytes = data.end.min(end).saturating_sub(from);
            self.nanos += u128::from(now.since(written).as_nanos()) * u128::from(bytes);
            self.bytes += u128::from(bytes);
            from += bytes;
            if end <= data.end {
                self.written.pop_front();
            }
        }
    }

    pub(super) fn mean_ms(&self) -> Option<f64> {
        (self.bytes > 0).then(|| self.nanos as f64 / self.bytes as f64 / 1e6)
    }
}

/// The load times of a page's objects.
#[derive(Default)]
pub(super) struct Objects {
    /// Objects that are being loaded: connection, object, time of the request.
    asked: Vec<(usize, u64, Time)>,
    times: Vec<Span>,
}

impl Objects {
    pub(super) fn on_app(&mut self, now: Time, connection: usize, event: &AppEvent) {
        match *event {
            AppEvent::ObjectAsked { id } => self.asked.push((connection, id, now)),
            AppEvent::ObjectRead { id } => {
                let same = |it: &(usize, u64, Time)| (it.0, it.1) == (connection, id);
                if let Some(place) = self.asked.iter().position(same) {
                    self.times.push(now.since(self.asked.swap_remove(place).2));
                }
            }
            _ => {}
        }
    }

    /// Returns a percentile by nearest rank.
    pub(super) fn percentile(&mut self, percent: usize) -> Option<f64> {
        self.times.sort_unstable();
        let rank = (self.times.len() * percent).div_ceil(100).max(1);
        self.times.get(rank - 1).map(|time| time.as_millis_f64())
    }
}

/// The delays of messages that are due after every path has carried data.
#[derive(Default)]
pub(super) struct Messages {
    settled: bool,
    /// Messages in transit: end, due time, and whether the message counts.
    due: VecDeque<(Dsn, Time, bool)>,
    longest: Option<Span>,
}

impl Messages {
    /// Records that every path has carried data.
    pub(super) fn settle(&mut self) {
        self.settled = true;
    }

    pub(super) fn on_app(&mut self, now: Time, event: &AppEvent) {
        match event {
            AppEvent::MessageDue { data, due, .. } => {
                self.due.push_back((data.end, *due, self.settled));
            }
            AppEvent::Read { data } => {
                while let Some((end, due, counts)) = self.due.front().copied()
                    && end <= data.end
                {
                    self.due.pop_front();
                    if counts {
                        self.longest = self.longest.max(Some(now.since(due)));
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn longest_ms(&self) -> Option<f64> {
        self.longest.map(Span::as_millis_f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_count_once_every_path_has_carried_data() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut messages = Messages::default();
        let due = |start, end, ms| AppEvent::MessageDue {
            data: DataRange::new(start, end),
            due: at(ms),
            id: 0,
        };
        let read = |start, end| AppEvent::Read { data: DataRange::new(start, end) };
        messages.on_app(at(0), &due(Dsn::ZERO, Dsn::new(10), 0));
        messages.settle();
        messages.on_app(at(100), &due(Dsn::new(10), Dsn::new(20), 95));
        messages.on_app(at(500), &read(Dsn::ZERO, Dsn::new(15)));
        assert_eq!(messages.longest_ms(), None, "the first one was due too early");
        messages.on_app(at(505), &due(Dsn::new(20), Dsn::new(30), 505));
        messages.on_app(at(510), &read(Dsn::new(15), Dsn::new(30)));
        assert_eq!(messages.longest_ms(), Some(415.0));
    }

    #[test]
    fn objects_of_several_connections_are_kept_apart() {
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        let mut objects = Objects::default();
        for (ms, connection, event) in [
            (0, 0, AppEvent::ObjectAsked { id: 1 }),
            (5, 1, AppEvent::ObjectAsked { id: 1 }),
            (10, 1, AppEvent::ObjectRead { id: 1 }),
            (40, 0, AppEvent::ObjectRead { id: 1 }),
            (41, 0, AppEvent::ObjectRead { id: 2 }),
        ] {
            objects.on_app(at(ms), connection, &event);
        }
        assert_eq!(objects.percentile(50), Some(5.0));
        assert_eq!(objects.percentile(90), Some(40.0));
        assert_eq!(Objects::default().percentile(90), None);
    }
}
