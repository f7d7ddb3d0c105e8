//! A window that a [`RateControl`] sets.

use super::{Congestion, Owner};
use crate::{Phase, RateControl, RateWindow};
use plait_base::Slim;

impl Congestion {
    /// Returns true if the algorithm sets the pacing rate and the window by itself.
    #[must_use]
    pub fn is_rated(&self) -> bool {
        self.owner == Owner::Rate
    }

    /// Calls `f` with the [`RateControl`] and its window, and applies the window. Returns `None` if the
    /// algorithm has none.
    pub fn rated<R>(
        &mut self,
        f: impl FnOnce(&mut dyn RateControl, &mut RateWindow) -> R,
    ) -> Option<R> {
        let segment = self.sizes.segment();
        let mut window =
            RateWindow { cwnd: self.cwnd, mss: segment, initial: self.sizes.initial_bytes() };
        let control = self.algorithm.rate_control()?;
        let result = f(control, &mut window);
        let starting = control.is_starting();
        (self.cwnd, self.fraction) = (window.cwnd.max(segment), 0.0);
        // Only Startup is a slow start.
        self.ssthresh = if starting { Slim::NONE } else { Slim::some(self.cwnd) };
        if self.phase != Phase::Recovery {
            self.phase = self.phase_by_threshold();
        }
        Some(result)
    }

    /// Returns the phase outside recovery.
    pub(super) fn phase_by_threshold(&self) -> Phase {
        match self.below_threshold() {
            true => Phase::SlowStart { after_timeout: false },
            false => Phase::Avoidance,
        }
    }

    /// Begins fast recovery.
    pub(super) fn begin_rated_recovery(&mut self) {
        self.phase = Phase::Recovery;
        self.rated(|control, window| control.on_recovery(window));
    }

    /// Ends fast recovery, or that of a timeout.
    pub(super) fn end_rated_recovery(&mut self) {
        self.phase = Phase::Avoidance;
        self.rated(|control, window| control.on_recovered(window));
    }

    /// Handles an expired retransmission timer.
    pub(super) fn time_out_rated(&mut self) {
        self.phase = Phase::Avoidance;
        self.rated(|control, window| control.on_timeout(window));
    }
}
