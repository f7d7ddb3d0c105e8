//! Congestion window validation as in Linux (RFC 2861, RFC 7661): whether the window limited the
//! sender. The window grows only if it did.

use plait_base::{Span, Ssn, Time};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CwndValidation {
    limited: bool,
    /// Largest number of bytes in flight since `round_end` was set.
    peak: u64,
    /// The round ends when this sequence number is acknowledged.
    round_end: Ssn,
}

/// The used part of a window that does not limit its sender.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnusedCwnd {
    /// Largest number of bytes outstanding since `full_at`.
    used: u64,
    /// When the window last limited the sender, or was last reduced because it did not.
    full_at: Time,
}

impl CwndValidation {
    /// Notes a sent segment; `room` is true if another full one would fit.
    pub(crate) fn on_sent(&mut self, una: Ssn, nxt: Ssn, inflight: u64, room: bool) {
        let new_round = una >= self.round_end;
        if new_round || !room || (!self.limited && inflight > self.peak) {
            self.limited = !room;
            self.peak = inflight;
            self.round_end = nxt;
        }
    }

    /// Returns true if the window limits the sender. In slow start, half a window in use is enough,
    /// so that growth is not delayed by one RTT.
    pub(crate) fn limited(&self, in_slow_start: bool, cwnd: u64) -> bool {
        self.limited || (in_slow_start && cwnd < 2 * self.peak)
    }
}

impl UnusedCwnd {
    /// Restarts the measurement after a reduction or at the start: earlier use does not count.
    pub(crate) fn restart(&mut self, now: Time) {
        (self.used, self.full_at) = (0, now);
    }

    /// Notes a sent segment. Returns the used bytes of a window that has not limited the sender for
    /// `rto`.
    pub(crate) fn on_sent(
        &mut self,
        now: Time,
        outstanding: u64,
        limited: bool,
        rto: Span,
    ) -> Option<u64> {
        if limited {
            self.restart(now);
            return None;
        }
        self.used = self.used.max(outstanding);
        if now.since(self.full_at) < rto {
            return None;
        }
        let used = self.used;
        self.restart(now);
        Some(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_stays_unused_for_a_timeout_is_told_with_its_peak() {
        let mut cwnd = UnusedCwnd::default();
        let (at, rto) = (|ms| Time::ZERO + Span::from_millis(ms), Span::from_millis(200));
        assert_eq!(cwnd.on_sent(at(100), 9_000, true, rto), None);
        assert_eq!(cwnd.on_sent(at(200), 5_000, false, rto), None);
        assert_eq!(cwnd.on_sent(at(299), 3_000, false, rto), None);
        assert_eq!(cwnd.on_sent(at(300), 2_000, false, rto), Some(5_000));
        // The measurement restarts.
        assert_eq!(cwnd.on_sent(at(400), 1_000, false, rto), None);
        assert_eq!(cwnd.on_sent(at(500), 1_000, false, rto), Some(1_000));
    }

    #[test]
    fn a_sender_that_uses_less_than_half_its_window_is_not_limited() {
        let mut cwnd = CwndValidation::default();
        cwnd.on_sent(Ssn::new(1), Ssn::new(1_001), 1_000, true);
        assert!(!cwnd.limited(true, 10_000));
        assert!(cwnd.limited(true, 1_999));
        assert!(!cwnd.limited(false, 1_999));
        cwnd.on_sent(Ssn::new(1), Ssn::new(10_001), 10_000, false);
        assert!(cwnd.limited(false, 10_000));
        // The limit holds for the rest of the round only.
        cwnd.on_sent(Ssn::new(5_001), Ssn::new(11_001), 6_000, true);
        assert!(cwnd.limited(false, 10_000));
        cwnd.on_sent(Ssn::new(10_001), Ssn::new(12_001), 2_000, true);
        assert!(!cwnd.limited(false, 10_000));
    }
}
