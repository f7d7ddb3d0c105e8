//! What sets a window from outside its formula.

use super::Congestion;

impl Congestion {
    /// A full segment now holds `mss` bytes (zero counts as one), as the peer asked or plain TCP has
    /// it. An initial window is as many segments as before; any other keeps its bytes, at least one
    /// segment.
    pub fn resize(&mut self, mss: u32) {
        if mss == self.sizes.mss {
            return;
        }
        let initial = self.cwnd == self.sizes.initial_bytes();
        self.sizes.mss = mss;
        if self.fix() {
            return;
        }
        let window = if initial { self.sizes.initial_bytes() } else { self.cwnd };
        if initial || window < self.sizes.segment() {
            self.put(window);
        }
    }

    /// Sets the window to `bytes`, at least one segment, and keeps the threshold. A fixed window
    /// stays.
    pub fn set_cwnd(&mut self, bytes: u64) {
        if !self.is_fixed() {
            self.forget();
            self.put(bytes);
        }
    }

    /// Sets window and threshold, at least one segment each, as a scheduler's penalty asks. A fixed
    /// window stays.
    pub fn penalise(&mut self, cwnd: u64, ssthresh: Option<u64>) {
        if !self.is_fixed() {
            self.forget();
            self.ssthresh = ssthresh.map(|bytes| bytes.max(self.sizes.segment())).into();
            self.put(cwnd);
        }
    }

    /// Sets the window from outside the formula.
    pub(super) fn put(&mut self, bytes: u64) {
        self.cwnd = bytes.max(self.sizes.segment());
        self.fraction = 0.0;
        self.algorithm.on_window_set(&self.flow(None, true));
    }
}
