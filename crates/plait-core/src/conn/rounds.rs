//! The kinds of segments that the next round of sending looks for.

use crate::paths::Paths;

/// Cached summary of the kinds of segments that subflows have to send. Any input invalidates it;
/// sending only clears a kind.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Rounds {
    /// The summary is up to date.
    known: bool,
    round: Round,
    /// The last pending acknowledgement has just been sent, and nothing else was pending.
    spent: bool,
    /// A subflow that has sent before has nothing in flight.
    idle: bool,
}

/// The kinds of segments that may be pending.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Round {
    pub(super) control: bool,
    pub(super) lost: bool,
    pub(super) acks: bool,
}

impl Rounds {
    /// Returns the kinds for the next round.
    #[inline(always)]
    pub(super) fn next(&mut self, paths: &Paths) -> Round {
        if !self.known {
            *self = Rounds::of(paths);
        }
        self.round
    }

    /// Summarizes all subflows.
    #[inline(always)]
    fn of(paths: &Paths) -> Rounds {
        let (mut control, mut lost, mut acks, mut idle) = (0, 0, false, false);
        for subflow in paths.subflows().iter() {
            control |= subflow.pending().control_bits();
            lost |= subflow.sender().tx.lost_segments();
            acks |= subflow.pending().ack();
            idle |= subflow.is_quiet();
        }
        let round = Round { control: control != 0, lost: lost != 0, acks };
        Rounds { known: true, round, spent: false, idle }
    }

    /// Notes that any kind may be pending again.
    pub(super) const fn on_input(&mut self) {
        self.known = false;
    }

    /// Notes that no SYN, reset or probe is pending.
    pub(super) const fn on_no_control(&mut self) {
        self.round.control = false;
    }

    /// Notes that no lost segment may be retransmitted now.
    pub(super) const fn on_no_loss(&mut self) {
        self.round.lost = false;
    }

    /// Notes that an acknowledgement was sent. If it was the last pending one, nothing else was
    /// pending before it.
    pub(super) const fn on_ack_sent(&mut self, last: bool) {
        self.spent = last;
    }

    /// Notes that other segments may be pending.
    pub(super) const fn on_more_pending(&mut self) {
        self.spent = false;
    }

    /// Returns true if the last segment is known to be the last one for now.
    pub(super) const fn is_spent(&self) -> bool {
        self.spent
    }

    /// Returns true if a subflow that has sent before has nothing in flight.
    pub(super) const fn has_idle(&self) -> bool {
        self.idle
    }
}
