//! The end of the data: DATA_FIN in both directions, then a FIN on every subflow (RFC 8684 section
//! 3.3.3). Plain TCP has the FIN alone.

use crate::data::fastclose::FastClose;
use crate::data::level::DataLevel;
use crate::error::Error;
use crate::notices::Notices;
use crate::stats::TimedOut;
use plait_base::{Dsn, Slim, Span};
use plait_wire::Dss;

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Closing {
    /// Reset, or timed out.
    pub(in crate::data) failed: bool,
    /// The user has no more data.
    pub(in crate::data) asked: bool,
    /// Our DATA_FIN was signalled.
    pub(in crate::data) fin_sent: bool,
    /// An ACK with our keys preceded it.
    pub(in crate::data) keys_told: bool,
    /// It must be sent (again).
    pub(in crate::data) fin_due: bool,
    /// Our DATA_FIN was DATA_ACKed (plain TCP: our FIN acknowledged).
    pub(in crate::data) fin_acked: bool,
    /// The peer's DATA_FIN (plain TCP: FIN) was reached.
    pub(in crate::data) peer_finished: bool,
    /// Every DATA_FIN of ours was sent together with a DATA_ACK of the peer's.
    pub(in crate::data) answers: bool,
    /// The peer has our DATA_ACK of its DATA_FIN, or this end no longer waits for it.
    pub(in crate::data) settled: bool,
    /// Set when the user has released the connection: the acknowledged data at the last check.
    pub(in crate::data) released: Slim<Dsn>,
    /// Why the peer was given up.
    pub(in crate::data) timed_out: Option<TimedOut>,
    /// The user has aborted the connection, and the peer has not confirmed it.
    pub(in crate::data) fast: Option<FastClose>,
}

impl Closing {
    /// Returns the state for another attempt with a new key. The requests of this end's user stay,
    /// and a DATA_FIN is sent again.
    pub(in crate::data) fn for_new_attempt(&self) -> Closing {
        let Closing { failed, asked, released, timed_out, fast, .. } = *self;
        Closing { failed, asked, released, timed_out, fast, ..Closing::default() }
    }

    pub(crate) const fn failed(&self) -> bool {
        self.failed
    }

    pub(crate) const fn asked(&self) -> bool {
        self.asked
    }

    pub(crate) const fn fin_sent(&self) -> bool {
        self.fin_sent
    }

    pub(crate) const fn fin_acked(&self) -> bool {
        self.fin_acked
    }

    pub(crate) const fn peer_finished(&self) -> bool {
        self.peer_finished
    }

    pub(crate) const fn keys_told(&self) -> bool {
        self.keys_told
    }

    pub(crate) const fn released(&self) -> Slim<Dsn> {
        self.released
    }

    pub(crate) const fn fast(&self) -> Option<FastClose> {
        self.fast
    }

    pub(crate) const fn fast_mut(&mut self) -> Option<&mut FastClose> {
        self.fast.as_mut()
    }

    /// Notes that the connection was reset or timed out.
    pub(crate) const fn fail(&mut self) {
        self.failed = true;
    }

    /// Notes that the peer was given up.
    pub(crate) const fn time_out(&mut self, why: TimedOut) {
        self.timed_out = Some(why);
    }

    /// Notes that the user has no more data.
    pub(crate) const fn finish(&mut self) {
        self.asked = true;
    }

    /// Notes that the user has released the connection, or that data was acknowledged since then.
    pub(crate) fn release(&mut self, una: Dsn) {
        self.released = Slim::some(una);
    }

    /// Notes that the user has aborted the connection and MP_FASTCLOSE is on its way.
    pub(crate) const fn begin_fast_close(&mut self, fast: FastClose) {
        self.fast = Some(fast);
    }

    /// Notes that the connection ends at once. An abort no longer waits for the peer.
    pub(crate) const fn cut_off(&mut self) {
        (self.failed, self.fast) = (true, None);
    }

    /// Notes that an ACK with our keys was sent before the DATA_FIN.
    pub(crate) const fn on_keys_sent(&mut self) {
        self.keys_told = true;
    }

    /// Checks that data may be written.
    ///
    /// # Errors
    /// If this end has finished or the connection has failed.
    pub(crate) const fn takes_data(&self) -> Result<(), Error> {
        match self {
            Closing { failed: true, .. } => Err(Error::Failed),
            Closing { asked: true, .. } => Err(Error::Finished),
            _ => Ok(()),
        }
    }

    /// Returns true if both directions have ended.
    pub(crate) const fn done(&self) -> bool {
        self.fin_acked && self.peer_finished
    }

    /// Returns true if both ends have confirmed the end of both directions. An end that answered
    /// the peer's DATA_FIN with a DATA_ACK alone does not know whether the answer arrived (RFC 8684
    /// appendix D: M_TIME_WAIT; M_LAST_ACK needs no wait).
    pub(crate) const fn settled(&self) -> bool {
        self.done() && self.settled
    }

    /// Notes that our DATA_FIN was sent.
    pub(crate) fn on_fin_signalled(&mut self) {
        (self.keys_told, self.fin_due) = (false, false);
        if !self.fin_sent {
            self.fin_sent = true;
            self.answers = self.peer_finished;
        }
    }

    /// Retransmits an unacknowledged DATA_FIN on another subflow.
    pub(crate) fn signal_fin_again(&mut self) {
        self.fin_due |= self.fin_sent && !self.fin_acked;
    }

    /// Notes that no further segment of the peer is needed: it has everything, or does not return.
    pub(crate) fn settle(&mut self) {
        self.settled |= self.done();
    }
}

/// The longest TIME-WAIT (RFC 9293 section 3.6.1: twice the maximum segment lifetime; as long as
/// Linux has it).
pub(crate) const TIME_WAIT: Span = Span::from_secs(60);

impl DataLevel {
    /// Ends the connection: it was reset or timed out.
    pub(crate) fn fail(&mut self, notices: &mut Notices) {
        self.closing.fail();
        notices.tell_user();
    }

    /// Notes that our DATA_FIN (or plain FIN) was acknowledged. Returns true if this is new.
    pub(crate) fn on_fin_acked(&mut self, notices: &mut Notices) -> bool {
        let new = !self.closing.fin_acked;
        if new {
            self.closing.fin_acked = true;
            self.closing.settled = self.closing.answers || self.sends_plain();
            notices.tell_user();
        }
        new
    }

    /// Notes that the peer's data has ended and all of it has arrived. Returns true if this is new.
    pub(crate) fn on_peer_finished(&mut self, notices: &mut Notices) -> bool {
        let new = !self.closing.peer_finished;
        if new {
            self.closing.peer_finished = true;
            notices.tell_user();
        }
        new
    }

    /// Processes the peer's DATA_FIN. It takes effect when everything below it has arrived (RFC
    /// 8684 section 3.3.3). Returns true if it has.
    #[cold]
    pub(crate) fn take_data_fin(&mut self, dss: &Dss) -> bool {
        let Some(map) = dss.mapping else { return false };
        let first = self.keys.theirs.read_low(map.dsn as u32, self.recv.nxt());
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
        let due = !self.closing.fin_sent || self.closing.fin_due;
        !self.sends_plain() && self.at_end() && !self.closing.fin_acked && due
    }

    /// Returns true if the user has released the connection.
    pub(crate) fn is_released(&self) -> bool {
        self.closing.released.is_some()
    }

    /// Returns true if all written data was sent at least once and the user has finished.
    pub(crate) fn at_end(&self) -> bool {
        self.closing.asked && self.queue.is_all_sent()
    }

    /// Returns the DSN after our last byte and DATA_FIN, if the DATA_FIN was sent.
    pub(crate) fn data_fin_edge(&self) -> Option<Dsn> {
        self.closing.fin_sent.then(|| self.queue.written() + 1)
    }

    /// Returns true if data or our DATA_FIN is not acknowledged.
    pub(crate) fn has_to_take(&self) -> bool {
        let fin_waits = self.closing.asked && !self.closing.fin_acked;
        (!self.queue.is_drained() || fin_waits) && !self.closing.failed
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
