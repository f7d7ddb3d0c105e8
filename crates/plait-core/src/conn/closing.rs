//! The end of the data: DATA_FIN in both directions, then a FIN on every subflow (RFC 8684 section
//! 3.3.3). Plain TCP has the FIN alone.

use super::fastclose::FastClose;
use super::{Connection, Context, Transmit};
use crate::Event;
use crate::endpoint::Remnant;
use crate::planted::{Planted, planted};
use crate::stats::TimedOut;
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::{Address, Subflow};
use crate::tcp::timer::Timer;
use alloc::vec::Vec;
use plait_base::{Dsn, Slim, Span, Time};

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Closing {
    /// The user has no more data.
    pub(crate) asked: bool,
    /// Our DATA_FIN was signalled.
    pub(crate) fin_sent: bool,
    /// An ACK with our keys went ahead of it.
    pub(crate) keys_told: bool,
    /// It must be signalled (again).
    pub(crate) fin_due: bool,
    /// Our DATA_FIN was DATA_ACKed (plain TCP: our FIN acknowledged).
    pub(crate) fin_acked: bool,
    /// The peer's DATA_FIN (plain TCP: FIN) was reached.
    pub(crate) peer_finished: bool,
    /// Every DATA_FIN of ours has gone out beside the DATA_ACK of the peer's.
    answers: bool,
    /// The peer is known to have our DATA_ACK of its DATA_FIN, or is waited for no longer.
    settled: bool,
    /// The user is done with the connection; how much of our data was acknowledged when that was
    /// last looked at.
    pub(super) released: Slim<Dsn>,
    /// The peer was given up.
    pub(super) timed_out: Option<TimedOut>,
    /// The user has aborted the connection, and the peer has not confirmed it.
    pub(crate) fast: Option<FastClose>,
}

impl Closing {
    /// Both directions have ended.
    pub(crate) const fn done(&self) -> bool {
        self.fin_acked && self.peer_finished
    }

    /// Both ends know that both directions have ended. One that has answered the peer's DATA_FIN
    /// with a DATA_ACK alone cannot know whether that arrived (RFC 8684 appendix D: M_TIME_WAIT,
    /// beside M_LAST_ACK, which needs no wait).
    pub(crate) const fn settled(&self) -> bool {
        self.done() && self.settled
    }

    /// Our DATA_FIN is signalled.
    pub(super) fn on_fin_signalled(&mut self) {
        if !self.fin_sent {
            self.fin_sent = true;
            self.answers = self.peer_finished;
        }
    }

    /// Nothing more is to be learnt of the peer: it has all, or does not come for it.
    pub(super) fn settle(&mut self) {
        self.settled |= self.done();
    }
}

/// The longest TIME-WAIT (RFC 9293 section 3.6.1: twice the maximum segment lifetime; as long as
/// Linux has it).
pub(crate) const TIME_WAIT: Span = Span::from_secs(60);

impl Connection {
    /// No more data from this end.
    pub(crate) fn finish(&mut self, now: Time) {
        self.closing.asked = true;
        self.arm_user_timeout(now);
        self.scheduling.app_blocked = false;
        self.scheduling.wake();
    }

    /// Everything written has been sent at least once, and the end is to be told.
    pub(crate) fn at_end(&self) -> bool {
        self.closing.asked && self.queue.is_all_sent()
    }

    /// The DSN after our last byte and DATA_FIN, once the DATA_FIN was sent.
    pub(crate) fn data_fin_edge(&self) -> Option<Dsn> {
        self.closing.fin_sent.then(|| self.queue.written() + 1)
    }

    /// The peer's data has ended and all of it is here.
    pub(crate) fn on_peer_finished(&mut self, now: Time) {
        if !self.closing.peer_finished {
            self.closing.peer_finished = true;
            self.news = true;
            self.arm_fin_wait(now);
        }
    }

    /// Our DATA_FIN (or plain FIN) was acknowledged.
    pub(crate) fn on_fin_acked(&mut self, now: Time) {
        if !self.closing.fin_acked {
            self.closing.fin_acked = true;
            self.closing.settled = self.closing.answers || self.sends_plain();
            self.news = true;
            self.arm_fin_wait(now);
        }
    }

    /// Limits how long subflows in FIN-WAIT-2 wait for the peer's FIN once both directions have ended:
    /// the peer has nothing more to send there, and its FIN may be lost for good.
    pub(super) fn arm_fin_wait(&mut self, now: Time) {
        if !self.closing.done() {
            return;
        }
        let until = now + self.spec.config.fin_timeout;
        for subflow in &mut self.subflows {
            if subflow.state == State::FinWait2 && !subflow.timers.is_set(Timer::TimeWait) {
                subflow.timers.set(Timer::TimeWait, until);
            }
        }
    }

    /// TIME-WAIT is over, or the peer's FIN has not come in time.
    pub(super) fn on_wait_over(&mut self, ctx: &mut Context<'_>, index: usize) {
        self.changed = true;
        if self.subflows[index].state == State::FinWait2 {
            self.closing.settle();
            self.kill_subflow(ctx, index, false);
        } else {
            self.subflows[index].step(Step::WaitOver);
        }
    }

    /// A FIN has come or was acknowledged on the subflow at `index`.
    pub(super) fn on_leave(&mut self, ctx: &mut Context<'_>, index: usize, step: Step) {
        self.changed = true;
        let subflow = &mut self.subflows[index];
        let before = subflow.state;
        subflow.step(step);
        if subflow.state == State::TimeWait {
            subflow.timers.clear_all();
            subflow.timers.set(Timer::TimeWait, ctx.now + TIME_WAIT);
        }
        // Both ends have taken leave on it.
        let gone = |state| matches!(state, State::Closed | State::TimeWait);
        if gone(subflow.state) && !gone(before) && subflow.status.joined {
            ctx.emit(Event::SubflowDown { subflow: subflow.id });
        }
    }

    /// Whether `subflow` is to send its FIN now.
    pub(crate) fn owes_fin(&self, index: usize) -> bool {
        let subflow = &self.subflows[index];
        // A join that is not proven yet has no more than its third ACK to send (RFC 8684 section
        // 3.2); its timer is that of the proof.
        let status = subflow.status;
        if !subflow.state.sends_data() || status.pf || !status.joined {
            return false;
        }
        let early = planted(Planted::FinEarly) && self.closing.fin_sent;
        if self.sends_plain() { self.at_end() } else { early || self.closing.done() }
    }

    /// Whether nothing is left of the connection but subflows in TIME-WAIT or FIN-WAIT-2, and nobody
    /// holds it. A segment other than an acknowledgement must not be waiting to go out.
    pub(crate) fn only_waits(&self) -> bool {
        let waits = |s: &Subflow| match s.state {
            State::Closed | State::TimeWait => true,
            State::FinWait2 => s.timers.is_set(Timer::TimeWait),
            _ => false,
        };
        let all = || self.subflows.iter().all(|s| waits(s) && !s.pending.urgent());
        self.is_released()
            && self.closing.settled()
            && !self.failed
            && !self.awaits_subflow()
            && all()
    }

    /// What has to be kept of the subflows that wait, each with the acknowledgement that it may still
    /// have to send now.
    pub(crate) fn remnants(
        &mut self,
        ctx: &mut Context<'_>,
    ) -> Vec<(Address, Remnant, Option<Transmit>)> {
        let mut remnants = Vec::new();
        for index in 0..self.subflows.len() {
            let Subflow { state, address, clock, .. } = self.subflows[index];
            if state == State::Closed {
                continue;
            }
            let until = self.subflows[index].timers.at(Timer::TimeWait);
            let ack_pending = self.subflows[index].pending.ack;
            let seq = self.subflows[index].tx.nxt();
            let last = self.pure_ack(ctx, index, seq);
            let half_closed = state == State::FinWait2;
            let remnant = Remnant::new(&last.segment, clock, half_closed, until);
            remnants.push((address, remnant, Some(last).filter(|_| ack_pending)));
        }
        remnants
    }

    /// Both ends have taken leave on every subflow; TIME-WAIT needs no answer any more.
    pub(crate) fn is_over(&self) -> bool {
        let gone = |state| matches!(state, State::Closed | State::TimeWait);
        // A last DATA_ACK that may have to be told again is like TIME-WAIT.
        let waits = self.awaits_subflow() && !self.closing.done();
        self.subflows.iter().all(|s| gone(s.state) && !s.pending.has(ControlSegment::Rst)) && !waits
    }
}
