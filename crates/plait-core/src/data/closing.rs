//! The end of the data: DATA_FIN in both directions, then a FIN on every subflow (RFC 8684 section
//! 3.3.3). Plain TCP has the FIN alone.

use crate::conn::notices::Notices;
use crate::data::fastclose::FastClose;
use crate::data::level::DataLevel;
use crate::error::Error;
use crate::stats::TimedOut;
use plait_base::{Dsn, Slim, Span};
use plait_wire::Dss;

#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Closing {
    /// Reset, or given up.
    pub(crate) failed: bool,
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
    pub(crate) answers: bool,
    /// The peer is known to have our DATA_ACK of its DATA_FIN, or is waited for no longer.
    pub(crate) settled: bool,
    /// The user is done with the connection; how much of our data was acknowledged when that was
    /// last looked at.
    pub(crate) released: Slim<Dsn>,
    /// The peer was given up.
    pub(crate) timed_out: Option<TimedOut>,
    /// The user has aborted the connection, and the peer has not confirmed it.
    pub(crate) fast: Option<FastClose>,
}

impl Closing {
    /// Whether data may be written.
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
    pub(crate) fn on_fin_signalled(&mut self) {
        (self.keys_told, self.fin_due) = (false, false);
        if !self.fin_sent {
            self.fin_sent = true;
            self.answers = self.peer_finished;
        }
    }

    /// Sends an unacknowledged DATA_FIN again, on another subflow.
    pub(crate) fn signal_fin_again(&mut self) {
        self.fin_due |= self.fin_sent && !self.fin_acked;
    }

    /// Nothing more is to be learnt of the peer: it has all, or does not come for it.
    pub(crate) fn settle(&mut self) {
        self.settled |= self.done();
    }
}

/// The longest TIME-WAIT (RFC 9293 section 3.6.1: twice the maximum segment lifetime; as long as
/// Linux has it).
pub(crate) const TIME_WAIT: Span = Span::from_secs(60);

impl DataLevel {
    /// Our DATA_FIN (or plain FIN) was acknowledged. Returns whether that is new.
    pub(crate) fn on_fin_acked(&mut self, notices: &mut Notices) -> bool {
        let new = !self.closing.fin_acked;
        if new {
            self.closing.fin_acked = true;
            self.closing.settled = self.closing.answers || self.sends_plain();
            notices.news = true;
        }
        new
    }

    /// The peer's data has ended and all of it is here. Returns whether that is new.
    pub(crate) fn on_peer_finished(&mut self, notices: &mut Notices) -> bool {
        let new = !self.closing.peer_finished;
        if new {
            self.closing.peer_finished = true;
            notices.news = true;
        }
        new
    }

    /// Takes in the peer's DATA_FIN; acted upon when everything below is here (RFC 8684 section 3.3.3).
    /// Returns whether it is.
    #[cold]
    pub(crate) fn take_data_fin(&mut self, dss: &Dss) -> bool {
        let Some(map) = dss.mapping else { return false };
        let first = self.keys.theirs.read_low(map.dsn as u32, self.recv.nxt());
        // An end before what is here or beyond the window is none, and must not keep the true one
        // out (numbers before the first byte wrap to the end of the space).
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

    /// Whether our DATA_FIN is to be signalled now.
    pub(crate) fn owes_data_fin(&self) -> bool {
        let due = !self.closing.fin_sent || self.closing.fin_due;
        !self.sends_plain() && self.at_end() && !self.closing.fin_acked && due
    }

    /// Whether the user is done with the connection.
    pub(crate) fn is_released(&self) -> bool {
        self.closing.released.is_some()
    }

    /// Whether the connection was reset or given up.
    pub(crate) fn has_failed(&self) -> bool {
        self.closing.failed
    }

    /// Everything written has been sent at least once, and the user has finished.
    pub(crate) fn at_end(&self) -> bool {
        self.closing.asked && self.queue.is_all_sent()
    }

    /// The DSN after our last byte and DATA_FIN, once the DATA_FIN was sent.
    pub(crate) fn data_fin_edge(&self) -> Option<Dsn> {
        self.closing.fin_sent.then(|| self.queue.written() + 1)
    }

    /// Whether the peer has something to take: data, or our end of it.
    pub(crate) fn has_to_take(&self) -> bool {
        let fin_waits = self.closing.asked && !self.closing.fin_acked;
        (!self.queue.is_drained() || fin_waits) && !self.closing.failed
    }

    /// Why, if that is how it ended.
    pub(crate) const fn timed_out(&self) -> Option<TimedOut> {
        self.closing.timed_out
    }

    /// Takes in the acknowledgement of the data below `edge`, and the window beside it. `None` if nothing was
    /// sent there.
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

/// What a DATA_ACK has changed.
pub(crate) struct DataAcked {
    /// Our DATA_FIN is acknowledged.
    pub(crate) fin: bool,
    /// Data is.
    pub(crate) freed: bool,
    /// The window has opened.
    pub(crate) opened: bool,
}
