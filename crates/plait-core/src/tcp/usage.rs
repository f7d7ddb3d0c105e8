//! Whether the congestion window was what limited the sender (the increase of section 4 of the
//! scheduler notes applies only then; the rule is Linux's cwnd validation).

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowUsage {
    limited: bool,
    /// Most bytes in flight since `round_end` was set.
    peak: u64,
    /// The round ends when this sequence number is acknowledged.
    round_end: u64,
}

impl WindowUsage {
    /// A segment was sent; `room` tells whether another full one would fit.
    pub(crate) fn on_sent(&mut self, una: u64, nxt: u64, inflight: u64, room: bool) {
        let new_round = una >= self.round_end;
        if new_round || !room || (!self.limited && inflight > self.peak) {
            self.limited = !room;
            self.peak = inflight;
            self.round_end = nxt;
        }
    }

    /// In slow start half a window in use is enough, so that growth is not held back by one RTT.
    pub(crate) fn limited(&self, in_slow_start: bool, cwnd: u64) -> bool {
        self.limited || (in_slow_start && cwnd < 2 * self.peak)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_uses_less_than_half_its_window_is_not_limited() {
        let mut usage = WindowUsage::default();
        usage.on_sent(1, 1_001, 1_000, true);
        assert!(!usage.limited(true, 10_000));
        assert!(usage.limited(true, 1_999));
        assert!(!usage.limited(false, 1_999));
        usage.on_sent(1, 10_001, 10_000, false);
        assert!(usage.limited(false, 10_000));
        // The limit is remembered for the rest of the round only.
        usage.on_sent(5_001, 11_001, 6_000, true);
        assert!(usage.limited(false, 10_000));
        usage.on_sent(10_001, 12_001, 2_000, true);
        assert!(!usage.limited(false, 10_000));
    }
}
