//! Undoing a reduction that was not caused by congestion.

use super::{Congestion, Owner};
use crate::{LossIntervals, Phase};
use plait_base::{Slim, Time};

/// The state before a reduction, kept until the reduction can no longer be undone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    cwnd: u64,
    fraction: f64,
    ssthresh: Slim<u64>,
    intervals: LossIntervals,
}

impl Congestion {
    /// Undoes the last loss or timeout because it was spurious. Restores the threshold, and the
    /// window unless it has grown larger since. RFC 4015 section 3.2 restores less; Linux restores
    /// the same. Consecutive timeouts are undone together. Returns false if there is nothing to
    /// undo: it was done before, or the window was set from outside since.
    pub fn undo(&mut self, now: Time) -> bool {
        let before = self.before.as_mut().and_then(|before| before.take());
        let Some(before) = before else { return false };
        self.intervals = LossIntervals {
            since_last: before.intervals.since_last.saturating_add(self.intervals.since_last),
            between_last_two: before.intervals.between_last_two,
        };
        match self.owner {
            Owner::Fixed => return true,
            Owner::Rate => {
                self.phase = Phase::Avoidance;
                self.rated(|control, window| control.on_spurious(now, window));
                return true;
            }
            Owner::Formulas | Owner::Recalled => {}
        }
        if self.cwnd <= before.cwnd {
            (self.cwnd, self.fraction) = (before.cwnd, before.fraction);
        }
        self.ssthresh = before.ssthresh;
        self.algorithm.on_undo(now);
        self.phase = self.phase_by_threshold();
        true
    }

    pub(super) fn remember(&mut self) {
        let Congestion { cwnd, fraction, ssthresh, intervals, .. } = *self;
        let before = Some(Before { cwnd, fraction, ssthresh, intervals });
        **self.before.get_or_insert_default() = before;
    }

    /// Drops the state kept for an undo: no earlier reduction can be undone.
    pub fn give_back(&mut self) {
        self.before = None;
        self.algorithm.on_lasting();
    }

    /// Drops the state of the last reduction, which can no longer be undone.
    pub(super) fn forget(&mut self) {
        if let Some(before) = &mut self.before {
            **before = None;
        }
    }
}
