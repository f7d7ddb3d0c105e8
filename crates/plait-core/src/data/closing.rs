//! The end of the data: DATA_FIN in both directions, then a FIN on every subflow (RFC 8684 section
//! 3.3.3). Plain TCP has the FIN alone.

use crate::data::level::DataLevel;
use crate::data::state::{DataState, DataStep};
use crate::error::Error;
use crate::notices::Notices;
use crate::stats::TimedOut;
use plait_base::{Dsn, Span};
use plait_wire::Dss;

/// How far the user has closed the connection.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum UserCall {
    #[default]
    None,
    /// The user has no more data (RFC 9293 section 3.9.1: CLOSE).
    Finish,
    /// The user also reads no more.
    Release,
}

/// The next signal of our DATA_FIN.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum DataFinSignal {
    /// It must be sent, perhaps again.
    #[default]
    Due,
    /// As `Due`; an ACK with our keys has preceded it.
    KeysSent,
    /// It was sent.
    Sent,
}

/// The end of the data in both directions.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Closing {
    state: DataState,
    call: UserCall,
    signal: DataFinSignal,
    /// Why the peer was given up.
    timed_out: Option<TimedOut>,
}

impl Closing {
    /// Applies a step of the state machine. A step that is not possible changes nothing. Returns
    /// true if it was possible.
    fn step(&mut self, step: DataStep) -> bool {
        let next = self.state.after(step);
        self.state = next.unwrap_or(self.state);
        next.is_some()
    }

    /// Begins another attempt with a new key. The requests of this end's user stay, and a DATA_FIN
    /// is sent again.
    pub(in crate::data) fn restart(&mut self) {
        self.step(DataStep::Restarted);
        self.signal = DataFinSignal::Due;
    }

    pub(crate) fn failed(&self) -> bool {
        self.state == DataState::Failed
    }

    /// Returns true if the user has no more data.
    pub(crate) fn asked(&self) -> bool {
        self.call != UserCall::None
    }

    pub(crate) const fn fin_acked(&self) -> bool {
        self.state.is_fin_acked()
    }

    /// Returns true if our DATA_FIN was sent and is not acknowledged.
    pub(crate) const fn fin_pending(&self) -> bool {
        self.state.has_fin_pending()
    }

    /// Returns true if our DATA_FIN was sent.
    pub(crate) const fn fin_sent(&self) -> bool {
        self.state.is_fin_sent()
    }

    pub(crate) const fn peer_finished(&self) -> bool {
        self.state.is_peer_finished()
    }

    /// Returns true if an ACK with our keys has preceded the next DATA_FIN.
    pub(crate) fn keys_sent(&self) -> bool {
        self.signal == DataFinSignal::KeysSent
    }

    /// Returns true if the user has no more data, or the peer's data has ended.
    pub(crate) fn is_ending(&self) -> bool {
        self.asked() || self.state != DataState::Established
    }

    /// Checks that data may be written.
    ///
    /// # Errors
    /// If this end has finished or the connection has failed.
    pub(crate) fn takes_data(&self) -> Result<(), Error> {
        match self.failed() {
            true => Err(Error::Failed),
            false if self.asked() => Err(Error::Finished),
            false => Ok(()),
        }
    }

    /// Returns true if both directions have ended.
    pub(crate) const fn done(&self) -> bool {
        self.state.is_done()
    }

    /// Returns true if both ends have confirmed the end of both directions. An end that answered
    /// the peer's DATA_FIN with a DATA_ACK alone does not know whether the answer arrived (RFC 8684
    /// appendix D: M_TIME_WAIT; M_LAST_ACK needs no wait).
    pub(crate) fn settled(&self) -> bool {
        self.state == DataState::Closed
    }
}

/// The longest TIME-WAIT (RFC 9293 section 3.6.1: twice the maximum segment lifetime; as long as
/// Linux has it).
pub(crate) const TIME_WAIT: Span = Span::from_secs(60);

impl DataLevel {
    /// Returns the state of the end of the data.
    #[inline(always)]
    pub(crate) const fn closing(&self) -> &Closing {
        &self.closing
    }

    /// Notes that this end ends the connection at once.
    pub(crate) fn on_abort(&mut self) {
        self.closing.step(DataStep::Aborted);
    }

    /// Notes that the peer was given up.
    pub(crate) const fn on_timed_out(&mut self, why: TimedOut) {
        self.closing.timed_out = Some(why);
    }

    /// Notes that the user has no more data.
    pub(crate) fn on_finish(&mut self) {
        self.closing.call = self.closing.call.max(UserCall::Finish);
    }

    /// Notes that the user has released the connection.
    pub(crate) fn on_release(&mut self) {
        self.closing.call = UserCall::Release;
    }

    /// Notes that an ACK with our keys was sent before the DATA_FIN.
    pub(crate) const fn on_keys_sent(&mut self) {
        self.closing.signal = DataFinSignal::KeysSent;
    }

    /// Notes that our DATA_FIN was sent.
    pub(crate) fn on_fin_signalled(&mut self) {
        self.closing.signal = DataFinSignal::Sent;
        self.closing.step(DataStep::FinSent);
    }

    /// Retransmits an unacknowledged DATA_FIN on another subflow.
    pub(crate) fn signal_fin_again(&mut self) {
        if self.closing.fin_pending() && self.closing.signal == DataFinSignal::Sent {
            self.closing.signal = DataFinSignal::Due;
        }
    }

    /// Notes that no further segment of the peer is needed: it has everything, or does not return.
    pub(crate) fn settle(&mut self) {
        self.closing.step(DataStep::Settled);
    }

    /// Ends the connection without a subflow. If all data was received and acknowledged, it has not failed:
    /// the peer has closed, or does without the last DATA_ACK.
    pub(crate) fn end_alone(&mut self, notices: &mut Notices) {
        match self.closing.done() {
            true => self.settle(),
            false => self.fail(notices),
        }
    }

    /// Ends the connection: it was reset or timed out.
    pub(crate) fn fail(&mut self, notices: &mut Notices) {
        self.on_abort();
        notices.tell_user();
    }

    /// Notes that our DATA_FIN (or plain FIN) was acknowledged. Returns true if this is new.
    pub(crate) fn on_fin_acked(&mut self, notices: &mut Notices) -> bool {
        let plain = self.sends_plain();
        let new = self.closing.step(match plain {
            true => DataStep::PlainFinAcked,
            false => DataStep::FinAcked,
        });
        if new {
            notices.tell_user();
        }
        new
    }

    /// Notes that the peer's data has ended and all of it has arrived. Returns true if this is new.
    pub(crate) fn on_peer_finished(&mut self, notices: &mut Notices) -> bool {
        let new = self.closing.step(DataStep::FinReceived);
        if new {
            notices.tell_user();
        }
        new
    }

    /// Processes the peer's DATA_FIN. It takes effect when everything below it has arrived (RFC
    /// 8684 section 3.3.3). Returns true if it has.
    #[cold]
    pub(crate) fn take_data_fin(&mut self, dss: &Dss) -> bool {
        let Some(map) = dss.mapping else { return false };
        let first = self.keys.theirs.read_low(map.dsn, self.recv.nxt());
        // An end before received data or beyond the window is invalid, and must not keep out the
        // true end. Numbers before the first byte wrap to the end of the space.
        let Some(end) = first.checked_add(u64::from(map.len).saturating_sub(1)) else {
            return false;
        };
        let right = self.fin_is_right(first, &map);
        if !right || end < self.recv.nxt() || end > self.recv.right_edge() {
            return false;
        }
        self.recv.set_fin(end);
        self.recv.finished()
    }

    /// Returns true if our DATA_FIN must be sent now.
    pub(crate) fn owes_data_fin(&self) -> bool {
        let due = self.closing.signal != DataFinSignal::Sent;
        !self.sends_plain() && self.at_end() && !self.closing.fin_acked() && due
    }

    /// Returns true if the user has released the connection.
    pub(crate) fn is_released(&self) -> bool {
        self.closing.call == UserCall::Release
    }

    /// Returns true if all written data was sent at least once and the user has finished.
    pub(crate) fn at_end(&self) -> bool {
        self.closing.asked() && self.queue.is_all_sent()
    }

    /// Returns the DSN after our last byte and DATA_FIN, if the DATA_FIN was sent.
    pub(crate) fn data_fin_edge(&self) -> Option<Dsn> {
        self.closing.fin_sent().then(|| self.queue.written() + 1)
    }

    /// Returns true if data or our DATA_FIN is not acknowledged.
    pub(crate) fn has_to_take(&self) -> bool {
        let fin_waits = self.closing.asked() && !self.closing.fin_acked();
        (!self.queue.is_drained() || fin_waits) && !self.closing.failed()
    }

    /// Returns the timeout that ended the connection, if any.
    pub(crate) const fn timed_out(&self) -> Option<TimedOut> {
        self.closing.timed_out
    }

    /// Processes the acknowledgement of the data below `edge`, and its window. Returns `None` if
    /// `edge` was never sent.
    #[inline(always)]
    pub(crate) fn take_data_ack(
        &mut self,
        notices: &mut Notices,
        edge: Dsn,
        window: u64,
    ) -> Option<DataAcked> {
        let fin = self.data_fin_edge();
        if edge > fin.unwrap_or(self.queue.nxt()) {
            return None;
        }
        let fin = fin == Some(edge) && !self.sends_plain() && self.on_fin_acked(notices);
        let freed = self.queue.on_data_ack(edge) > 0;
        Some(DataAcked { fin, freed, opened: self.window.update(edge, window) })
    }
}

/// Changes by a DATA_ACK.
pub(crate) struct DataAcked {
    /// Our DATA_FIN is acknowledged.
    pub(crate) fin: bool,
    /// Data was acknowledged.
    pub(crate) freed: bool,
    /// The window has opened.
    pub(crate) opened: bool,
}
