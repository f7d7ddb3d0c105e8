//! Taking a reduction back that was none of the network's.

use super::Congestion;
use crate::{LossIntervals, Phase};
use plait_base::{Slim, Time};

/// What a reduction changed, kept until it can no longer be taken back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    cwnd: u64,
    fraction: f64,
    ssthresh: Slim<u64>,
    intervals: LossIntervals,
}

impl Congestion {
    /// The last loss or timeout was none: window and threshold are what they were before it, or more
    /// where the window has grown beyond that meanwhile (RFC 4015 section 3.2 restores less; Linux
    /// the same). Of several timeouts in a row all are taken back. False where nothing can be: it
    /// was done before, or the window has been set from outside since.
    pub fn undo(&mut self, now: Time) -> bool {
        let before = self.before.as_mut().and_then(|before| before.take());
        let Some(before) = before else { return false };
        self.intervals = LossIntervals {
            since_last: before.intervals.since_last.saturating_add(self.intervals.since_last),
            between_last_two: before.intervals.between_last_two,
        };
        if self.is_fixed() {
            return true;
        }
        if self.cwnd <= before.cwnd {
            (self.cwnd, self.fraction) = (before.cwnd, before.fraction);
        }
        self.ssthresh = before.ssthresh;
        self.algorithm.on_undo(now);
        self.phase = if self.below_threshold() {
            Phase::SlowStart { after_timeout: false }
        } else {
            Phase::Avoidance
        };
        true
    }

    pub(super) fn remember(&mut self) {
        let Congestion { cwnd, fraction, ssthresh, intervals, .. } = *self;
        let before = Some(Before { cwnd, fraction, ssthresh, intervals });
        **self.before.get_or_insert_default() = before;
    }

    /// No reduction before this will be taken back; what is kept for that is let go.
    pub fn give_back(&mut self) {
        self.before = None;
        self.algorithm.on_lasting();
    }

    /// What was reduced cannot be taken back any more.
    pub(super) fn forget(&mut self) {
        if let Some(before) = &mut self.before {
            **before = None;
        }
    }
}
