//! Delivery rate of a subflow: the bytes in flight when a segment was sent, divided by that
//! segment's RTT. It is sampled once per round trip.

use plait_base::Span;

/// The estimate of one subflow.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct DeliveryRate {
    /// Bytes per second; zero before the first sample.
    rate: u64,
    /// Bytes in flight when the last segment of this round was sent.
    flight: u64,
    /// The window (or a cap) limited the sender then.
    limited: bool,
}

impl DeliveryRate {
    /// Returns bytes per second; zero before the first sample.
    pub(crate) const fn bytes_per_second(self) -> u64 {
        self.rate
    }

    /// Ends a round with an acknowledgement that took `rtt`; the next starts with `flight` bytes.
    /// If the sender had no more data, the sample is only a lower bound of the rate.
    pub(crate) fn on_round(&mut self, rtt: Span, flight: u64, limited: bool) {
        if self.flight > 0 {
            let sample =
                u128::from(self.flight) * 1_000_000_000 / u128::from(rtt.as_nanos().max(1));
            let sample = u64::try_from(sample).unwrap_or(u64::MAX);
            if self.limited || sample > self.rate {
                self.rate = sample;
            }
        }
        (self.flight, self.limited) = (flight, limited);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_was_limited_tells_the_rate_and_another_only_a_lower_bound() {
        let ms = Span::from_millis;
        let mut rate = DeliveryRate::default();
        rate.on_round(ms(20), 20_000, true);
        assert_eq!(rate.bytes_per_second(), 0);
        rate.on_round(ms(20), 30_000, false);
        assert_eq!(rate.bytes_per_second(), 1_000_000);
        rate.on_round(ms(60), 90_000, false);
        assert_eq!(rate.bytes_per_second(), 1_000_000);
        rate.on_round(ms(60), 10_000, true);
        assert_eq!(rate.bytes_per_second(), 1_500_000);
        rate.on_round(ms(100), 0, false);
        assert_eq!(rate.bytes_per_second(), 100_000);
    }
}
