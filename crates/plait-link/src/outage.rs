use alloc::vec::Vec;

use plait_base::Time;

/// The times at which the link is down. Each of the two queries must be in order of time, so that each
/// can keep its position in the list.
#[derive(Clone, Debug)]
pub(crate) struct Outages {
    /// Disjoint spans in order of time.
    spans: Vec<(Time, Time)>,
    offers: usize,
    departures: usize,
}

impl Outages {
    pub(crate) fn new(spans: &[(Time, Time)]) -> Outages {
        let mut list: Vec<_> = spans.iter().copied().filter(|span| span.0 < span.1).collect();
        list.sort();
        list.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1;
            if touches {
                kept.1 = kept.1.max(next.1);
            }
            touches
        });
        Outages { spans: list, offers: 0, departures: 0 }
    }

    /// Returns true if the link is never down.
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns true if the link is down at `at`, when a packet is offered.
    #[inline]
    pub(crate) fn hit_offer(&mut self, at: Time) -> bool {
        covers(&self.spans, &mut self.offers, at)
    }

    /// Returns true if the link is down at `departs`, when a packet departs.
    #[inline]
    pub(crate) fn hit_departure(&mut self, departs: Time) -> bool {
        covers(&self.spans, &mut self.departures, departs)
    }
}

#[inline]
fn covers(spans: &[(Time, Time)], place: &mut usize, time: Time) -> bool {
    while let Some(&(from, to)) = spans.get(*place) {
        if time < to {
            return from <= time;
        }
        *place += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(n: u64) -> Time {
        Time::from_nanos(n)
    }

    #[test]
    fn spans_are_half_open_merged_and_in_any_order() {
        let mut outages = Outages::new(&[
            (at(50), Time::NEVER),
            (at(10), at(20)),
            (at(15), at(30)),
            (at(7), at(7)),
        ]);
        let down: Vec<u64> = (0..60).filter(|n| outages.hit_offer(at(*n))).collect();
        let expected: Vec<u64> = (10..30).chain(50..60).collect();
        assert_eq!(down, expected);
        // Departures have their own position.
        assert!(outages.hit_departure(at(29)));
        assert!(!outages.hit_departure(at(30)));
        assert!(outages.hit_departure(at(u64::MAX - 1)));
    }
}
