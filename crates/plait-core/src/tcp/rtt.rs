//! Round-trip time and retransmission timeout (RFC 6298).

use crate::RtoMode;
use plait_base::{Slim, Span, Time, WindowedMin};

/// Timeout before the first sample (RFC 6298 section 2.1).
const INITIAL_RTO_MS: u16 = 1_000;
/// Timeout at the start of data if the SYN had timed out (RFC 6298 section 5.7).
const AFTER_SYN_TIMEOUT_MS: u16 = 3_000;
/// Upper bound (RFC 6298 section 2.5 requires at least 60 s; Linux has 120 s).
const MAX_RTO: Span = Span::from_secs(120);
/// Lifetime of a minimum RTT for loss detection (RFC 8985 section 6.2 leaves it open; Linux uses
/// five minutes).
const MIN_RTT_WINDOW: Span = Span::from_secs(300);

/// Estimator of one subflow. All values at nanosecond precision, RTTVAR unscaled.
#[derive(Clone, Debug)]
pub(crate) struct Rtt {
    srtt: Slim<Span>,
    rttvar: Span,
    latest: Slim<Span>,
    min: WindowedMin,
    sampled_at: Time,
    backoff: u8,
    mode: RtoMode,
    /// Timeout before the first sample, in ms.
    first_rto_ms: u16,
}

impl Rtt {
    pub(crate) fn new(mode: RtoMode) -> Rtt {
        Rtt {
            srtt: Slim::NONE,
            rttvar: Span::ZERO,
            latest: Slim::NONE,
            min: WindowedMin::new(),
            sampled_at: Time::ZERO,
            backoff: 0,
            mode,
            first_rto_ms: INITIAL_RTO_MS,
        }
    }

    /// Adds a sample (RFC 6298 sections 2.2 and 2.3).
    pub(crate) fn sample(&mut self, now: Time, rtt: Span) {
        self.latest = Slim::some(rtt);
        self.sampled_at = now;
        self.min.update(now, rtt, MIN_RTT_WINDOW);
        match self.srtt.value() {
            None => {
                self.srtt = Slim::some(rtt);
                self.rttvar = rtt.over(2);
            }
            Some(srtt) => {
                self.rttvar = (self.rttvar.times(3) + srtt.abs_diff(rtt)).over(4);
                self.srtt = Slim::some((srtt.times(7) + rtt).over(8));
            }
        }
    }

    pub(crate) fn srtt(&self) -> Option<Span> {
        self.srtt.value()
    }

    pub(crate) const fn rttvar(&self) -> Span {
        self.rttvar
    }

    pub(crate) fn latest(&self) -> Option<Span> {
        self.latest.value()
    }

    /// Returns the time of the latest sample.
    pub(crate) const fn sampled_at(&self) -> Time {
        self.sampled_at
    }

    pub(crate) fn min(&self) -> Option<Span> {
        self.min.value()
    }

    /// Returns the timeout without backoff.
    pub(crate) fn base_rto(&self) -> Span {
        let Some(srtt) = self.srtt() else {
            return Span::from_millis(self.first_rto_ms.into());
        };
        self.timeout(srtt, self.rttvar)
    }

    /// Returns the timeout for an RTT and its variation.
    fn timeout(&self, srtt: Span, rttvar: Span) -> Span {
        let var = rttvar.times(4);
        let rto = match self.mode {
            RtoMode::Linux => srtt + var.max(Span::from_millis(200)),
            RtoMode::Rfc => (srtt + var).max(Span::from_secs(1)),
            RtoMode::Rfc200 => (srtt + var).max(Span::from_millis(200)),
        };
        rto.min(MAX_RTO)
    }

    /// Lengthens the timeout before the first sample to that of an earlier connection, but not beyond the one after a
    /// SYN that timed out: the earlier RTT may have had an outage in it. It is never shortened: RFC 6298 section 2.1
    /// has one second without a measurement of this connection.
    pub(crate) fn expect(&mut self, srtt: Span, rttvar: Span) {
        let millis = self.timeout(srtt, rttvar).as_nanos() / 1_000_000;
        let millis = u16::try_from(millis).unwrap_or(u16::MAX).min(AFTER_SYN_TIMEOUT_MS);
        self.first_rto_ms = self.first_rto_ms.max(millis);
    }

    /// Returns the current timeout.
    pub(crate) fn rto(&self) -> Span {
        match self.backoff {
            0 => self.base_rto(),
            doubled => self.base_rto().times(1 << doubled.min(16)).min(MAX_RTO),
        }
    }

    /// Doubles the next timeout after an expiry (RFC 6298 section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Returns the time from the first retransmission to the latest timeout: the sum of the
    /// timeouts between them. Zero before the second timeout.
    pub(crate) fn retransmitted_for(&self) -> Span {
        let base = self.base_rto();
        let timeout = |doubled: u8| base.times(1 << doubled).min(MAX_RTO);
        (1..self.backoff).map(timeout).fold(Span::ZERO, |sum, timeout| sum + timeout)
    }

    /// Clears the backoff when new data is acknowledged.
    pub(crate) fn clear_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Returns how often the timeout was doubled.
    pub(crate) const fn backoff(&self) -> u32 {
        self.backoff as u32
    }

    /// Starts data; `syn_timed_out` is true if the handshake was retransmitted.
    pub(crate) fn start_data(&mut self, syn_timed_out: bool) {
        self.backoff = 0;
        if syn_timed_out && self.srtt.is_none() {
            self.first_rto_ms = AFTER_SYN_TIMEOUT_MS;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the timeouts until a segment has been retransmitted for 102 s, and that time.
    fn given_up(rtt_ms: u64) -> (u32, Span) {
        let mut rtt = Rtt::new(RtoMode::Linux);
        // The variance of equal samples falls until the floor of 200 ms holds.
        for sample in 1..50 {
            rtt.sample(Time::ZERO + Span::from_secs(sample), Span::from_millis(rtt_ms));
        }
        while rtt.retransmitted_for() < Span::from_secs(102) {
            rtt.back_off();
        }
        (rtt.backoff(), rtt.retransmitted_for())
    }

    #[test]
    fn an_earlier_rtt_only_lengthens_the_first_timeout() {
        let ms = Span::from_millis;
        let mut rtt = Rtt::new(RtoMode::Linux);
        rtt.expect(ms(40), ms(10));
        assert_eq!(rtt.rto(), ms(1_000));
        rtt.expect(ms(900), ms(100));
        assert_eq!(rtt.rto(), ms(1_300));
        rtt.expect(ms(2_000), ms(500));
        assert_eq!(rtt.rto(), ms(3_000));
        rtt.expect(Span::MAX, ms(500));
        assert_eq!(rtt.rto(), ms(3_000));
        rtt.start_data(true);
        assert_eq!(rtt.rto(), ms(3_000));
        rtt.sample(Time::ZERO, ms(40));
        assert_eq!(rtt.rto(), ms(240));
    }

    /// Linux compares the time as well: a long path has fewer retransmissions, not a longer time.
    #[test]
    fn a_long_round_trip_means_fewer_retransmissions() {
        assert_eq!(given_up(0), (9, Span::from_secs(102)));
        for (rtt_ms, timeouts) in [(10, 9), (205, 8), (400, 8), (700, 7)] {
            let (count, time) = given_up(rtt_ms);
            assert_eq!(count, timeouts, "{rtt_ms} ms: {time:?}");
            assert!(time < Span::from_secs(204), "{rtt_ms} ms: {time:?}");
        }
        let first = Rtt::new(RtoMode::Linux);
        assert_eq!(first.retransmitted_for(), Span::ZERO);
    }
}
