//! The kinds of segments that the next round of sending looks for.

use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::sched::Scheduling;

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
    /// Looks for the kinds of the next round.
    #[inline(always)]
    pub(super) fn begin(&mut self, paths: &Paths) {
        if !self.known {
            self.look(paths);
        }
    }

    /// Returns the kinds of this round.
    pub(super) const fn round(&self) -> &Round {
        &self.round
    }

    /// Summarizes all subflows.
    #[inline(always)]
    fn look(&mut self, paths: &Paths) {
        let (mut control, mut lost, mut acks, mut idle) = (0, 0, false, false);
        for subflow in paths.subflows().iter() {
            control |= subflow.pending().control_bits();
            lost |= subflow.sender().tx.lost_segments();
            acks |= subflow.pending().ack();
            idle |= subflow.is_quiet();
        }
        // Each is stored by itself: a value of all of them would be packed first.
        self.round.control = control != 0;
        self.round.lost = lost != 0;
        self.round.acks = acks;
        self.idle = idle;
        self.stage = Stage::Usual;
        self.known = true;
    }

    /// Notes an input. Any kind may be pending again, unless the input was quiet and nothing else is due.
    /// Returns false if it has certainly caused nothing to send.
    #[inline(always)]
    pub(super) fn on_input(
        &mut self,
        data: &DataLevel,
        paths: &Paths,
        scheduling: &Scheduling,
    ) -> bool {
        let quiet = self.take_quiet()
            && !scheduling.is_due()
            && !data.queue().has_plan()
            && !data.closing().is_ending()
            && !paths.has_signals();
        if !quiet {
            self.known = false;
            return true;
        }
        let acks = paths.subflows().iter().any(|it| it.pending().ack());
        self.round.acks |= acks;
        acks
    }

    /// Notes that any kind may be pending again.
    pub(super) const fn forget(&mut self) {
        self.known = false;
    }

    /// Notes whether the present input can cause nothing to send but acknowledgements.
    pub(super) const fn set_quiet(&mut self, quiet: bool) {
        self.stage = if quiet { Stage::Quiet } else { Stage::Usual };
    }

    /// Returns true if the present input can cause nothing to send but acknowledgements, and if the
    /// summary before it was up to date. The next input is not quiet by itself.
    const fn take_quiet(&mut self) -> bool {
        let stage = core::mem::replace(&mut self.stage, Stage::Usual);
        matches!(stage, Stage::Quiet) && self.known
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
