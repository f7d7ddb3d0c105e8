//! Rates of trains: deliveries that follow each other closely leave a bottleneck at its rate.

use crate::histogram::Histogram;
use std::collections::VecDeque;

/// Deliveries of a train.
const LENGTH: usize = 4;
/// Share of the trains that are slower than the estimate.
const QUANTILE: f64 = 0.9;

/// A train of packets that waited for each other takes at least this part longer to arrive than to be sent.
const SPREAD: (i64, i64) = (4, 3);
/// So many such trains show that packets waited in a queue. Without a queue, delays that vary make some of them too.
const MIN_SPREAD: u64 = 3;

/// A delivery.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    at_ns: i64,
    /// Sum of all bytes up to it.
    total: u64,
    /// When its last byte was sent, if that is known.
    sent_ns: Option<i64>,
}

/// The rates of trains of deliveries, in bits per second.
///
/// A train that spans a pause of the sender is too slow, and none is too fast at a link that delivers packets one
/// by one. So a high quantile is the rate of the link.
#[derive(Clone, Default, Debug)]
pub(crate) struct Trains {
    /// The latest deliveries.
    latest: VecDeque<Delivery>,
    total: u64,
    /// Trains that took longer to arrive than to be sent, and trains that took less.
    spread: u64,
    squeezed: u64,
    rates: Histogram,
}

impl Trains {
    /// Adds `bytes` that were delivered at `at_ns`. `sent_ns` is the time at which the last of them was sent, if it is known.
    pub(crate) fn add(&mut self, at_ns: i64, bytes: u64, sent_ns: Option<i64>) {
        if bytes == 0 {
            return;
        }
        self.total += bytes;
        match self.latest.back_mut() {
            // Deliveries of one instant are one.
            Some(last) if last.at_ns >= at_ns => {
                (last.total, last.sent_ns) = (self.total, sent_ns.or(last.sent_ns));
            }
            _ => self.latest.push_back(Delivery { at_ns, total: self.total, sent_ns }),
        }
        if self.latest.len() <= LENGTH {
            return;
        }
        if let Some(first) = self.latest.pop_front() {
            let (span, sum) = (at_ns - first.at_ns, self.total - first.total);
            self.rates.add_weighted(sum as f64 * 8e9 / span as f64, bytes);
            if let (Some(begin), Some(end)) = (first.sent_ns, sent_ns) {
                let (longer, part) = SPREAD;
                self.spread += u64::from(span * part >= (end - begin) * longer);
                self.squeezed += u64::from((end - begin) * part >= span * longer);
            }
        }
    }

    /// Returns true if packets waited for each other in a queue, so that the rate is that of a link.
    pub(crate) const fn shows_queue(&self) -> bool {
        self.spread >= MIN_SPREAD && self.spread > self.squeezed * 2
    }

    /// Returns the rate of the link in bits of payload per second, if there were enough deliveries.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.rates.quantile(QUANTILE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_do_not_lower_the_rate() {
        let mut trains = Trains::default();
        // 20 packets of 1000 bytes, one each millisecond: 8 Mbit/s. Then a pause of 80 ms.
        for round in 0..20 {
            for packet in 0..20 {
                let at = (round * 100 + packet) * 1_000_000;
                trains.add(at, 1_000, Some(round * 100_000_000));
            }
        }
        let rate = trains.rate().unwrap();
        assert!((rate / 8e6 - 1.0).abs() < 0.02, "{rate}");
        assert!(trains.shows_queue());
    }

    #[test]
    fn a_stream_below_the_rate_of_the_link_shows_no_queue() {
        let mut trains = Trains::default();
        for packet in 0..200 {
            // Each second one is a little late.
            let sent = packet * 20_000_000;
            trains.add(sent + 10_000_000 + packet % 2 * 3_000_000, 1_000, Some(sent));
        }
        assert!(!trains.shows_queue());
    }
}
