//! Delivery rate of a subflow: the bytes in flight when a segment was sent, divided by that
//! segment's RTT. It is sampled once per round trip.

use plait_base::{Span, Time};

/// Divisor of the part that the largest rate loses in a round with a lower one.
const DECAY: u64 = 8;
/// Least bytes of a round that counts for the largest rate.
const MIN_ROUND_BYTES: u64 = 8_000;
/// Unit of the largest rate in bytes per second, so that it fits 32 bits.
const UNIT_BYTES: u64 = 64;

/// The estimate of one subflow.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct DeliveryRate {
    /// Bytes per second; zero before the first sample.
    rate: u64,
    /// Largest rate of the latest rounds, in units. Rounds with losses do not count.
    largest: u32,
    /// Bytes in flight when the last segment of this round was sent.
    flight: u32,
    /// Start of this round in microseconds, which wraps.
    began: u32,
    /// The window (or a cap) limited the sender then.
    limited: bool,
    /// Nothing was lost at the start of this round.
    clean: bool,
    /// The RTT showed a queue at the start of this round.
    queued: bool,
    /// The path was full: there was a queue for a round, and the rate did not grow by a quarter.
    filled: bool,
}

/// The end of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) now: Time,
    /// RTT of the acknowledgement; the smoothed one if it has none.
    pub(crate) rtt: Span,
    /// Minimum RTT.
    pub(crate) min_rtt: Span,
    /// Bytes in flight at the start of the next round.
    pub(crate) flight: u64,
    /// The window (or a cap) limits the sender then.
    pub(crate) limited: bool,
    /// No segment is lost or selectively acknowledged, and the RTT is not that of a retransmission.
    pub(crate) clean: bool,
    /// The RTT shows a queue.
    pub(crate) queue: bool,
}

impl DeliveryRate {
    /// Returns bytes per second; zero before the first sample.
    pub(crate) const fn bytes_per_second(self) -> u64 {
        self.rate
    }

    /// Returns the largest rate of the latest rounds, and whether the path was full.
    pub(crate) const fn largest(self) -> (u64, bool) {
        (self.largest as u64 * UNIT_BYTES, self.filled)
    }

    /// Ends a round. If the sender had no more data, the sample is only a lower bound of the rate.
    pub(crate) fn on_round(&mut self, round: &Round) {
        let now_us = (round.now.as_nanos() / 1_000) as u32;
        if self.flight > 0 {
            let sample =
                u128::from(self.flight) * 1_000_000_000 / u128::from(round.rtt.as_nanos().max(1));
            let sample = u64::try_from(sample).unwrap_or(u64::MAX);
            if self.limited || sample > self.rate {
                self.rate = sample;
            }
            if self.clean && round.clean {
                self.note_largest(now_us, round);
            }
        }
        self.began = now_us;
        self.flight = u32::try_from(round.flight).unwrap_or(u32::MAX);
        (self.limited, self.clean, self.queued) = (round.limited, round.clean, round.queue);
    }

    /// Compares a round without losses with the largest one. Its bytes count over its whole time, not
    /// over an RTT: the acknowledgement that ends it may be that of a later segment. A round that is
    /// short, in bytes or in time, shows the bursts of the sender.
    fn note_largest(&mut self, now_us: u32, round: &Round) {
        let micros = u64::from(now_us.wrapping_sub(self.began).max(1));
        let flight = u64::from(self.flight);
        if flight < MIN_ROUND_BYTES || micros < round.min_rtt.times(3).over(4).as_micros() {
            return;
        }
        let sample = flight * 1_000_000 / UNIT_BYTES / micros;
        let largest = u64::from(self.largest);
        self.filled |= self.queued && round.queue && sample / 5 <= largest / 4;
        let kept = largest - if self.limited { largest / DECAY } else { 0 };
        self.largest = u32::try_from(sample.max(kept)).unwrap_or(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_was_limited_tells_the_rate_and_another_only_a_lower_bound() {
        let mut rate = DeliveryRate::default();
        round(&mut rate, 20, 20_000, true);
        assert_eq!(rate.bytes_per_second(), 0);
        round(&mut rate, 20, 30_000, false);
        assert_eq!(rate.bytes_per_second(), 1_000_000);
        round(&mut rate, 60, 90_000, false);
        assert_eq!(rate.bytes_per_second(), 1_000_000);
        round(&mut rate, 60, 10_000, true);
        assert_eq!(rate.bytes_per_second(), 1_500_000);
        round(&mut rate, 100, 0, false);
        assert_eq!(rate.bytes_per_second(), 100_000);
    }

    /// Ends a round of `rtt` ms and begins one with `flight` bytes.
    fn round(rate: &mut DeliveryRate, rtt: u64, flight: u64, limited: bool) {
        let rtt = Span::from_millis(rtt);
        let (now, min_rtt) = (Time::ZERO, rtt);
        rate.on_round(&Round { now, rtt, min_rtt, flight, limited, clean: true, queue: false });
    }

    /// The end of the `number`th round of 20 ms, with 64 kB in flight after it.
    fn ended(number: u64) -> Round {
        let rtt = Span::from_millis(20);
        let now = Time::ZERO + Span::from_secs(4_294) + rtt.times(number);
        let min_rtt = rtt;
        Round { now, rtt, min_rtt, flight: 64_000, limited: true, clean: true, queue: false }
    }

    #[test]
    fn the_largest_rate_decays_slowly_and_only_by_limited_rounds() {
        let mut rate = DeliveryRate::default();
        // The clock of 32 bits wraps meanwhile, after 4,294.97 s.
        for (number, flight, limited, largest) in [
            (46, 64_000, true, 0),
            (47, 8_000, true, 3_200_000),
            (48, 8_000, false, 2_800_000),
            (49, 80_000, true, 2_800_000),
            (50, 0, false, 4_000_000),
        ] {
            rate.on_round(&Round { flight, limited, ..ended(number) });
            assert_eq!(rate.largest(), (largest, false), "{number}");
        }
    }

    #[test]
    fn bytes_count_over_the_whole_round() {
        let mut rate = DeliveryRate::default();
        rate.on_round(&ended(0));
        // The sender paused, and the RTT is that of a segment after the pause.
        rate.on_round(&ended(2));
        assert_eq!((rate.bytes_per_second(), rate.largest().0), (3_200_000, 1_600_000));
    }

    #[test]
    fn a_short_round_does_not_count() {
        let mut rate = DeliveryRate::default();
        rate.on_round(&Round { flight: 7_999, ..ended(0) });
        rate.on_round(&ended(1));
        assert_eq!(rate.largest().0, 0);
        // Three quarters of the minimum RTT are 15 ms.
        let at = |micros| ended(1).now + Span::from_micros(micros);
        rate.on_round(&Round { now: at(14_999), ..ended(0) });
        assert_eq!(rate.largest().0, 0);
        rate.on_round(&Round { now: at(29_999), ..ended(0) });
        assert_eq!(rate.largest().0, 64_000 * 1_000 / 15 / 64 * 64);
    }

    #[test]
    fn a_round_with_losses_does_not_count_for_the_largest_rate() {
        let mut rate = DeliveryRate::default();
        for (number, clean) in [(0, true), (1, false), (2, true)] {
            rate.on_round(&Round { clean, ..ended(number) });
            assert_eq!(rate.largest().0, 0, "it begins or ends with losses");
        }
        assert_eq!(rate.bytes_per_second(), 3_200_000);
        rate.on_round(&ended(3));
        assert_eq!(rate.largest().0, 3_200_000);
    }

    #[test]
    fn a_path_is_full_if_a_queue_grows_and_the_rate_does_not() {
        let mut rate = DeliveryRate::default();
        for (number, flight, queue, filled) in [
            (0, 16_000, true, false),
            (1, 32_000, true, false),
            // It doubles in slow start.
            (2, 32_000, true, false),
            // There is no queue at the end, and then none at the start.
            (3, 32_000, false, false),
            (4, 32_000, true, false),
            (5, 32_000, true, true),
        ] {
            rate.on_round(&Round { flight, queue, ..ended(number) });
            assert_eq!(rate.largest().1, filled, "{number}");
        }
    }
}
