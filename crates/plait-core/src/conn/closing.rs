//! The end of the data: DATA_FIN in both directions, then a FIN on every subflow (RFC 8684 section
//! 3.3.3). Plain TCP has the FIN alone.

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use plait_base::Time;

impl Connection {
    /// The peer's data has ended and all of it is here.
    pub(super) fn on_peer_finished(&mut self, now: Time) {
        if self.data.on_peer_finished(&mut self.notices) {
            self.paths.arm_fin_wait(&self.spec.config, &self.data, now);
        }
    }

    /// No more data from this end.
    pub(crate) fn finish(&mut self, now: Time) {
        self.data.closing.asked = true;
        self.timers.arm_user_timeout(&self.spec.config, &self.data, now);
        self.scheduling.app_blocked = false;
        self.scheduling.wake();
    }

    /// TIME-WAIT is over, or the peer's FIN has not come in time.
    pub(super) fn on_wait_over(&mut self, ctx: &mut Context<'_>, index: usize) {
        self.notices.changed = true;
        if self.paths.subflows[index].state == State::FinWait2 {
            self.data.closing.settle();
            self.kill_subflow(ctx, index, false);
        } else {
            self.paths.subflows[index].step(Step::WaitOver);
        }
    }

    /// Whether nothing is left of the connection but subflows in TIME-WAIT or FIN-WAIT-2, and nobody
    /// holds it. A segment other than an acknowledgement must not be waiting to go out.
    pub(crate) fn only_waits(&self) -> bool {
        let waits = |s: &Subflow| match s.state {
            State::Closed | State::TimeWait => true,
            State::FinWait2 => s.timers.is_set(Timer::TimeWait),
            _ => false,
        };
        let all = || self.paths.subflows.iter().all(|s| waits(s) && !s.pending.urgent());
        self.data.is_released()
            && self.data.closing.settled()
            && !self.data.closing.failed
            && !self.timers.awaits_subflow()
            && all()
    }

    /// Both ends have taken leave on every subflow; TIME-WAIT needs no answer any more.
    pub(crate) fn is_over(&self) -> bool {
        let gone = |state| matches!(state, State::Closed | State::TimeWait);
        // A last DATA_ACK that may have to be told again is like TIME-WAIT.
        let waits = self.timers.awaits_subflow() && !self.data.closing.done();
        self.paths.subflows.iter().all(|s| gone(s.state) && !s.pending.has(ControlSegment::Rst))
            && !waits
    }
}
