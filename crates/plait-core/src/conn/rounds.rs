//! The kinds of segments that the next round of sending looks for.

use crate::paths::Paths;

/// Cached summary of the kinds of segments that subflows have to send. Any input invalidates it;
/// sending only clears a kind.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Rounds {
    /// The summary is up to date.
    known: bool,
    round: Round,
    stage: Stage,
    /// A subflow that has sent before has nothing in flight.
    idle: bool,
}

/// A step after which less than usual is pending.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Stage {
    #[default]
    Usual,
    /// The last pending acknowledgement has just been sent, and nothing else was pending.
    Spent,
    /// The present input can cause nothing to send but acknowledgements.
    Quiet,
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
        Rounds { known: true, round, stage: Stage::Usual, idle }
    }

    /// Notes that any kind may be pending again.
    pub(super) const fn on_input(&mut self) {
        self.known = false;
    }

    /// Notes whether the present input can cause nothing to send but acknowledgements.
    pub(super) const fn set_quiet(&mut self, quiet: bool) {
        self.stage = if quiet { Stage::Quiet } else { Stage::Usual };
    }

    /// Returns true if the present input can cause nothing to send but acknowledgements, and if the
    /// summary before it was up to date. The next input is not quiet by itself.
    pub(super) const fn take_quiet(&mut self) -> bool {
        let stage = core::mem::replace(&mut self.stage, Stage::Usual);
        matches!(stage, Stage::Quiet) && self.known
    }

    /// Notes that only acknowledgements may be pending in addition.
    pub(super) const fn on_quiet_input(&mut self, acks: bool) {
        self.round.acks |= acks;
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
        self.stage = if last { Stage::Spent } else { Stage::Usual };
    }

    /// Notes that other segments may be pending.
    pub(super) const fn on_more_pending(&mut self) {
        self.stage = Stage::Usual;
    }

    /// Returns true if the last segment is known to be the last one for now.
    pub(super) const fn is_spent(&self) -> bool {
        matches!(self.stage, Stage::Spent)
    }

    /// Returns true if a subflow that has sent before has nothing in flight.
    pub(super) const fn has_idle(&self) -> bool {
        self.idle
    }
}
