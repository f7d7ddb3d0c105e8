//! Congestion window validation as in Linux (RFC 2861, RFC 7661): whether the window limited the
//! sender. The window grows only if it did.

use plait_base::SendSsn;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CwndValidation {
    limited: bool,
    /// Largest number of bytes in flight since `round_end` was set.
    peak: u64,
    /// The round ends when this sequence number is acknowledged.
    round_end: SendSsn,
}

impl CwndValidation {
    /// Notes a sent segment; `room` is true if another full one would fit.
    pub(crate) fn on_sent(&mut self, una: SendSsn, nxt: SendSsn, inflight: u64, room: bool) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_uses_less_than_half_its_window_is_not_limited() {
        let mut cwnd = CwndValidation::default();
        cwnd.on_sent(SendSsn::new(1), SendSsn::new(1_001), 1_000, true);
        assert!(!cwnd.limited(true, 10_000));
        assert!(cwnd.limited(true, 1_999));
        assert!(!cwnd.limited(false, 1_999));
        cwnd.on_sent(SendSsn::new(1), SendSsn::new(10_001), 10_000, false);
        assert!(cwnd.limited(false, 10_000));
        // The limit holds for the rest of the round only.
        cwnd.on_sent(SendSsn::new(5_001), SendSsn::new(11_001), 6_000, true);
        assert!(cwnd.limited(false, 10_000));
        cwnd.on_sent(SendSsn::new(10_001), SendSsn::new(12_001), 2_000, true);
        assert!(!cwnd.limited(false, 10_000));
    }
}
