//! Rates of trains: deliveries that follow each other closely leave a bottleneck at its rate.

use crate::histogram::Histogram;
use std::collections::VecDeque;

/// Deliveries of a train.
const LENGTH: usize = 4;
/// Share of the trains that are slower than the estimate.
const QUANTILE: f64 = 0.9;

/// The rates of trains of deliveries, in bits per second.
///
/// A train that spans a pause of the sender is too slow, and none is too fast at a link that delivers packets one
/// by one. So a high quantile is the rate of the link.
#[derive(Clone, Default, Debug)]
pub(crate) struct Trains {
    /// Time of each of the latest deliveries in nanoseconds, and the sum of all bytes up to it.
    latest: VecDeque<(i64, u64)>,
    total: u64,
    rates: Histogram,
}

impl Trains {
    /// Adds `bytes` that were delivered at `at_ns`.
    pub(crate) fn add(&mut self, at_ns: i64, bytes: u64) {
        if bytes == 0 {
            return;
        }
        self.total += bytes;
        match self.latest.back_mut() {
            // Deliveries of one instant are one.
            Some(last) if last.0 >= at_ns => last.1 = self.total,
            _ => self.latest.push_back((at_ns, self.total)),
        }
        if self.latest.len() <= LENGTH {
            return;
        }
        if let Some((from, before)) = self.latest.pop_front() {
            let (span, sum) = ((at_ns - from) as f64, self.total - before);
            self.rates.add_weighted(sum as f64 * 8e9 / span, bytes);
        }
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
                trains.add((round * 100 + packet) * 1_000_000, 1_000);
            }
        }
        let rate = trains.rate().unwrap();
        assert!((rate / 8e6 - 1.0).abs() < 0.02, "{rate}");
    }
}
