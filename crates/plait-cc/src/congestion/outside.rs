//! Changes of the window from outside the formula.

use super::{Congestion, Owner};
use crate::Phase;
use plait_base::Slim;

impl Congestion {
    /// Sets the segment size to `mss` bytes (zero counts as one), after an MSS of the peer or a
    /// fallback to plain TCP. An initial window keeps its number of segments. Any other window
    /// keeps its bytes, but at least one segment.
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
    /// does not change.
    pub fn set_cwnd(&mut self, bytes: u64) {
        if !self.is_fixed() {
            self.forget();
            self.put(bytes);
        }
    }

    /// Sets window and threshold, at least one segment each, for a penalty of a scheduler. A fixed
    /// window does not change.
    pub fn penalise(&mut self, cwnd: u64, ssthresh: Option<u64>) {
        if !self.is_fixed() {
            self.forget();
            self.ssthresh = ssthresh.map(|bytes| bytes.max(self.sizes.segment())).into();
            self.put(cwnd);
        }
    }

    /// Begins with the threshold of an earlier connection, in whole segments, unless there is a threshold.
    pub fn recall(&mut self, ssthresh: u64) {
        if self.has_formulas() && self.ssthresh().is_none() {
            let segment = self.sizes.segment();
            self.ssthresh = Slim::some((ssthresh / segment * segment).max(segment));
            self.owner = Owner::Recalled;
        }
    }

    /// Returns true if the threshold is that of an earlier connection. The transport then calls
    /// [`doubt_recalled`](Congestion::doubt_recalled) at the start of each round trip.
    #[must_use]
    pub fn is_recalled(&self) -> bool {
        self.owner == Owner::Recalled
    }

    /// Notes that the threshold is no longer that of an earlier connection.
    pub(super) fn forget_recalled(&mut self) {
        if self.is_recalled() {
            self.owner = Owner::Formulas;
        }
    }

    /// Judges the threshold of an earlier connection once the window has reached it. If no `queue`
    /// has grown, the path has room for more: the threshold is removed, and slow start continues.
    pub fn doubt_recalled(&mut self, queue: bool) {
        if self.is_recalled() && !self.below_threshold() {
            self.forget_recalled();
            if !queue && self.phase != Phase::Recovery {
                self.ssthresh = Slim::NONE;
            }
        }
    }

    /// Sets the window from outside the formula.
    pub(super) fn put(&mut self, bytes: u64) {
        self.cwnd = bytes.max(self.sizes.segment());
        self.fraction = 0.0;
        self.algorithm.on_window_set(&self.flow(None, true));
    }
}
