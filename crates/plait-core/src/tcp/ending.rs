//! The end of a subflow: FINs in both directions, and MP_FASTCLOSE.

use crate::context::Context;
use crate::data::closing::TIME_WAIT;
use crate::data::level::DataLevel;
use crate::event::Event;
use crate::tcp::pending::{ControlSegment, Pending};
use crate::tcp::remembered::Remembered;
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::Subflow;
use crate::tcp::timer::Timer;
use plait_base::{RecvSsn, Time};

impl Subflow {
    /// Takes the peer's FIN at `seq`, which must be acknowledged. Returns true if it is new and in
    /// order.
    pub(crate) fn take_fin(&mut self, seq: RecvSsn) -> bool {
        self.pending.add_ack();
        self.rx.take_fin(seq)
    }

    /// Returns the sequence number of an earlier FIN of the peer that is now in order.
    pub(crate) fn fin_due(&self) -> Option<RecvSsn> {
        self.rx.fin_due()
    }

    /// Handles a received or acknowledged FIN.
    pub(crate) fn on_leave(&mut self, ctx: &mut Context<'_>, step: Step) {
        let before = self.state();
        self.step(step);
        if self.state() == State::TimeWait {
            self.timers.clear_all();
            self.timers.set(Timer::TimeWait, ctx.now + TIME_WAIT);
        }
        // Both ends have closed it.
        let gone = |state| matches!(state, State::Closed | State::TimeWait);
        if gone(self.state()) && !gone(before) && self.status.joined() {
            ctx.emit(Event::SubflowDown { subflow: self.id() });
            Remembered(self).leave(ctx, true);
        }
    }

    /// Returns true if it must send its FIN now.
    pub(crate) fn owes_fin(&self, data: &DataLevel) -> bool {
        // The timer of an unproven join belongs to its third ACK (RFC 8684 section 3.2).
        let status = self.status;
        if !self.state().sends_data() || status.pf() || !status.proven() {
            return false;
        }
        if data.sends_plain() { data.at_end() } else { data.closing().done() }
    }

    /// Limits the time in FIN-WAIT-2.
    pub(crate) fn arm_fin_wait(&mut self, until: Time) {
        if self.state == State::FinWait2 && !self.timers.is_set(Timer::TimeWait) {
            self.timers.set(Timer::TimeWait, until);
        }
    }

    /// Sends MP_FASTCLOSE, and nothing else.
    pub(crate) fn begin_fast_close(&mut self, now: Time) {
        self.sender.tx.abandon();
        self.timers.clear_all();
        self.pending = Pending::only(ControlSegment::FastClose);
        // The timeout of unacknowledged data may have grown to two minutes. Retransmissions with it
        // would hold the connection for eight.
        self.sender.rtt.clear_backoff();
        self.arm_rto(now);
    }

    /// Retransmits MP_FASTCLOSE when no RST has arrived within a timeout.
    pub(crate) fn repeat_fast_close(&mut self, now: Time) {
        self.sender.rtt.back_off();
        self.arm_rto(now);
        self.pending.add(ControlSegment::FastClose);
    }
}
