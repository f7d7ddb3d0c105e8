//! The values of one entry of the path memory, and the rules by which a subflow changes them.

use plait_base::Span;

/// Segments of a subflow that change the remembered share of losses by half the difference.
const LOSS_WEIGHT_SEGMENTS: u64 = 300;
/// Segments that a subflow must have sent before its losses count as a share of the path.
const MIN_LOSS_SEGMENTS: u64 = 100;
/// Arrivals from which on a lower mean rate halves the difference to the remembered one.
const LONG_BYTES: u64 = 1 << 20;
/// Initial window in bytes (RFC 6928).
const FIRST_WINDOW_BYTES: u64 = 14_600;
/// Least time above the minimum RTT that shows a queue.
const MIN_QUEUE: Span = Span::from_millis(2);

/// Values of a path, from the subflows that have used it. Rates are bytes of payload per second.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PathRecord {
    /// Delivery rate towards the other end; `None` if no subflow has filled the path.
    pub rate: Option<u64>,
    /// Mean rate at which the other end's data arrived. It is a lower bound of the path's rate in
    /// that direction. Only an end that dials measures it.
    pub received: Option<u64>,
    /// Minimum RTT.
    pub min_rtt: Option<Span>,
    /// Smoothed RTT at the end of the last subflows.
    pub srtt: Option<Span>,
    /// Its variation (RTTVAR of RFC 6298).
    pub rttvar: Span,
    /// Retransmitted segments per million sent ones; spurious retransmissions do not count.
    pub loss_ppm: Option<u32>,
    /// Slow start threshold in bytes.
    pub ssthresh: Option<u64>,
}

/// The values of one subflow.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct PathSample {
    /// Largest delivery rate of the latest rounds in bytes per second; 0 if unknown.
    pub(crate) rate: u64,
    /// A queue has shown that the path was full.
    pub(crate) filled: bool,
    /// Arrivals, if enough data has arrived.
    pub(crate) received: Option<Received>,
    pub(crate) min_rtt: Option<Span>,
    pub(crate) srtt: Option<Span>,
    pub(crate) rttvar: Span,
    /// The retransmission timeout has expired, and nothing has arrived since.
    pub(crate) silent: bool,
    /// Segments sent for the first time.
    pub(crate) segments: u64,
    /// Segments that were lost.
    pub(crate) lost: u64,
    pub(crate) cwnd: u64,
    pub(crate) ssthresh: Option<u64>,
    /// It is not in loss recovery.
    pub(crate) open: bool,
}

/// Data that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Received {
    /// Mean rate in bytes per second.
    pub(crate) rate: u64,
    pub(crate) bytes: u64,
}

impl PathSample {
    /// Returns true if the subflow has filled the path, or has used all that losses allow: its
    /// window has reached the threshold. Before, the rate is that of its window.
    fn fills_path(&self) -> bool {
        self.filled || self.ssthresh.is_some_and(|threshold| self.cwnd >= threshold)
    }
}

/// Returns true if an RTT is so far above the minimum that a queue must be the cause.
pub(crate) fn shows_queue(rtt: Span, min_rtt: Span) -> bool {
    rtt.minus(min_rtt) >= min_rtt.over(4).max(MIN_QUEUE)
}

impl PathRecord {
    /// Updates the values from those of a subflow.
    pub(crate) fn learn(&mut self, seen: &PathSample) {
        self.learn_rtt(seen);
        self.learn_rates(seen);
        self.learn_losses(seen);
        self.learn_threshold(seen);
    }

    /// Updates RTT and variation as `tcp_update_metrics` of Linux does: a longer RTT at once, a
    /// shorter one by an eighth. A subflow without an answer clears both.
    fn learn_rtt(&mut self, seen: &PathSample) {
        if let Some(min) = seen.min_rtt {
            let known = self.min_rtt.unwrap_or(min);
            self.min_rtt = Some(min.min(known + min.minus(known).over(4)));
        }
        let Some(srtt) = seen.srtt.filter(|_| !seen.silent) else {
            (self.srtt, self.rttvar) = (None, Span::ZERO);
            return;
        };
        let Some(known) = self.srtt else {
            (self.srtt, self.rttvar) = (Some(srtt), seen.rttvar);
            return;
        };
        self.srtt = Some(srtt.max(known.minus(known.minus(srtt).over(8))));
        let deviation = known.abs_diff(srtt).max(seen.rttvar);
        let decayed = self.rttvar.minus(self.rttvar.minus(deviation).over(4));
        self.rttvar = deviation.max(decayed);
    }

    /// Updates the rates. A subflow that has not filled the path only shows a lower bound.
    fn learn_rates(&mut self, seen: &PathSample) {
        self.rate = match (self.rate, seen.fills_path()) {
            (known, _) if seen.rate == 0 => known,
            (None, true) => Some(seen.rate),
            (Some(known), true) => Some(known.midpoint(seen.rate)),
            (known, false) => known.map(|known| known.max(seen.rate)),
        };
        if let Some(Received { rate, bytes }) = seen.received {
            let known = self.received.unwrap_or(rate);
            // The start of a short transfer makes its mean low.
            let part = if bytes >= LONG_BYTES { 2 } else { 8 };
            self.received = Some(rate.max(known - known.saturating_sub(rate) / part));
        }
    }

    /// Updates the share of losses. The more segments a subflow has sent, the more it counts.
    fn learn_losses(&mut self, seen: &PathSample) {
        if seen.segments == 0 || self.loss_ppm.is_none() && seen.segments < MIN_LOSS_SEGMENTS {
            return;
        }
        let share = |lost: u64| (lost.saturating_mul(1_000_000) / seen.segments).min(1_000_000);
        let (share, sent) = (share(seen.lost), seen.segments.min(1 << 32));
        let known = u64::from(self.loss_ppm.unwrap_or(share as u32));
        let sum = known * LOSS_WEIGHT_SEGMENTS + share * sent;
        self.loss_ppm = Some((sum / (LOSS_WEIGHT_SEGMENTS + sent)) as u32);
    }

    /// Updates the threshold as `tcp_update_metrics` of Linux does. In congestion avoidance it is
    /// the subflow's, or half its window if that is more. Otherwise a known one can only rise.
    fn learn_threshold(&mut self, seen: &PathSample) {
        let half = seen.cwnd / 2;
        self.ssthresh = match seen.ssthresh {
            Some(threshold) if seen.cwnd >= threshold && seen.open => Some(threshold.max(half)),
            Some(threshold) => self.ssthresh.map(|known| known.max(threshold)),
            None => self.ssthresh.map(|known| known.max(half)),
        };
    }

    /// Returns the larger of both rates: a path is chosen before it is known which end sends more.
    pub(crate) fn best_rate(&self) -> Option<u64> {
        self.rate.max(self.received)
    }

    /// Returns the record with its rates times `times` over `over`.
    pub(crate) fn scaled(self, times: Span, over: Span) -> PathRecord {
        let (times, over) = (times.as_micros(), over.as_micros().max(1));
        let scaled = |rate: Option<u64>| rate.map(|rate| rate.saturating_mul(times) / over);
        PathRecord { rate: scaled(self.rate), received: scaled(self.received), ..self }
    }

    /// Returns the time for a transfer of `bytes` over a connection that begins on the path: a round
    /// trip for the handshake, those of slow start, and the time at the remembered rate.
    pub(crate) fn transfer_time(&self, bytes: u64) -> Option<Span> {
        let (rate, rtt) = (self.best_rate()?.max(1), self.min_rtt?);
        let window = bytes.min(rate.saturating_mul(rtt.as_micros()) / 1_000_000);
        // After n round trips, 2^n - 1 initial windows are sent.
        let round_trips = 64 - (window / FIRST_WINDOW_BYTES).leading_zeros();
        let sending = Span::from_nanos(bytes.saturating_mul(1_000_000_000) / rate);
        Some(rtt.times(1 + u64::from(round_trips)) + sending)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Span {
        Span::from_millis(millis)
    }

    fn sample(srtt: u64, rttvar: u64) -> PathSample {
        let (srtt, rttvar) = (Some(ms(srtt)), ms(rttvar));
        PathSample { srtt, min_rtt: srtt, rttvar, open: true, ..PathSample::default() }
    }

    fn after(samples: &[PathSample]) -> PathRecord {
        let mut record = PathRecord::default();
        samples.iter().for_each(|sample| record.learn(sample));
        record
    }

    #[test]
    fn a_longer_rtt_counts_at_once_and_a_shorter_one_by_an_eighth() {
        let record = after(&[sample(40, 5)]);
        assert_eq!(
            (record.srtt, record.rttvar, record.min_rtt),
            (Some(ms(40)), ms(5), Some(ms(40)))
        );
        let record = after(&[sample(40, 5), sample(80, 4)]);
        // The deviation is that from the known RTT, and the minimum rises by a quarter.
        assert_eq!(
            (record.srtt, record.rttvar, record.min_rtt),
            (Some(ms(80)), ms(40), Some(ms(50)))
        );
        let record = after(&[sample(40, 24), sample(24, 4)]);
        // 40 - 16 / 8; 24 - (24 - 16) / 4.
        assert_eq!(
            (record.srtt, record.rttvar, record.min_rtt),
            (Some(ms(38)), ms(22), Some(ms(24)))
        );
        let silent = PathSample { silent: true, ..sample(40, 5) };
        assert_eq!(after(&[sample(40, 5), silent]).srtt, None);
    }

    #[test]
    fn only_a_filled_path_has_a_rate() {
        let of = |rate, cwnd, ssthresh| PathSample { rate, cwnd, ssthresh, ..sample(20, 1) };
        let (slow_start, avoidance) = (of(1_000, 30_000, None), of(9_000, 30_000, Some(20_000)));
        assert_eq!(after(&[slow_start]).rate, None);
        assert_eq!(after(&[avoidance]).rate, Some(9_000));
        let later = of(5_000, 30_000, Some(20_000));
        assert_eq!(after(&[avoidance, later]).rate, Some(7_000));
        // The window limited these.
        assert_eq!(after(&[avoidance, of(5_000, 30_000, None)]).rate, Some(9_000));
        assert_eq!(after(&[avoidance, of(12_000, 30_000, Some(40_000))]).rate, Some(12_000));
        // A queue shows that the link is full.
        assert_eq!(after(&[PathSample { filled: true, ..slow_start }]).rate, Some(1_000));
    }

    #[test]
    fn a_queue_delays_by_a_quarter_of_the_rtt_and_two_ms() {
        for (rtt, min, queue) in [(20, 16, true), (20, 17, false), (3, 1, true), (2, 1, false)] {
            assert_eq!(shows_queue(ms(rtt), ms(min)), queue, "{rtt} {min}");
        }
    }

    #[test]
    fn a_lower_rate_of_arrivals_counts_little() {
        let of =
            |rate, bytes| PathSample { received: Some(Received { rate, bytes }), ..sample(20, 1) };
        let (short, long) = (LONG_BYTES - 1, LONG_BYTES);
        assert_eq!(after(&[of(8_000, short)]).received, Some(8_000));
        assert_eq!(after(&[of(8_000, long), of(16_000, short)]).received, Some(16_000));
        assert_eq!(
            after(&[of(16_000, long), of(8_000, short), sample(20, 1)]).received,
            Some(15_000)
        );
        assert_eq!(after(&[of(16_000, long), of(8_000, long)]).received, Some(12_000));
    }

    #[test]
    fn losses_count_by_the_number_of_segments() {
        let of = |segments, lost| PathSample { segments, lost, ..sample(20, 1) };
        assert_eq!(after(&[of(99, 99)]).loss_ppm, None);
        assert_eq!(after(&[of(1_000, 10)]).loss_ppm, Some(10_000));
        // 300 segments count as much as the past.
        assert_eq!(after(&[of(1_000, 10), of(300, 0)]).loss_ppm, Some(5_000));
        assert_eq!(after(&[of(1_000, 10), of(100, 300)]).loss_ppm, Some(257_500));
        assert_eq!(after(&[of(1_000, 10), of(0, 0)]).loss_ppm, Some(10_000));
    }

    #[test]
    fn a_threshold_is_kept_as_linux_does() {
        let of = |cwnd, ssthresh| PathSample { cwnd, ssthresh, ..sample(20, 1) };
        let known = of(30_000, Some(20_000));
        assert_eq!(after(&[known]).ssthresh, Some(20_000));
        assert_eq!(after(&[of(50_000, Some(20_000))]).ssthresh, Some(25_000));
        for slow_start in [of(10_000, Some(20_000)), of(60_000, None)] {
            assert_eq!(after(&[slow_start]).ssthresh, None);
        }
        assert_eq!(after(&[known, of(10_000, Some(40_000))]).ssthresh, Some(40_000));
        assert_eq!(after(&[known, of(60_000, None)]).ssthresh, Some(30_000));
        assert_eq!(after(&[known, of(10_000, None)]).ssthresh, Some(20_000));
        let recovery = PathSample { open: false, ..of(12_000, Some(12_000)) };
        assert_eq!(after(&[known, recovery]).ssthresh, Some(20_000));
    }

    #[test]
    fn a_transfer_takes_its_round_trips_and_its_time_at_the_rate() {
        let record = PathRecord { min_rtt: Some(ms(30)), ..PathRecord::default() };
        assert_eq!(record.transfer_time(1_000_000), None);
        // The window that the rate needs is 15,000 bytes: the second one of slow start suffices.
        let rated = PathRecord { received: Some(500_000), rate: Some(50_000), ..record };
        assert_eq!(rated.transfer_time(1_000_000), Some(ms(60 + 2_000)));
        assert_eq!(rated.transfer_time(10_000), Some(ms(30 + 20)));
        // 3.4 initial windows take two round trips, 34 take six, and 300,000 bytes are the most in flight.
        let fast = PathRecord { rate: Some(10_000_000), ..record };
        assert_eq!(fast.transfer_time(50_000), Some(ms(30 + 60 + 5)));
        assert_eq!(fast.transfer_time(1_000_000), Some(ms(30 + 150 + 100)));
        assert_eq!(PathRecord { min_rtt: None, ..rated }.transfer_time(1), None);
    }
}
