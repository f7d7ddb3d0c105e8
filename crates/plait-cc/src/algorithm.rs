//! The contract between the owner of the window and the algorithm.

use crate::{Flow, RateControl, View};
use plait_base::{Span, Time};

/// An acknowledgement of new data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// The current time.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub bytes: u64,
    /// The RTT sample of this acknowledgement, if it gave one.
    pub rtt: Option<Span>,
    /// Smoothed RTT.
    pub srtt: Span,
    /// Lowest RTT.
    pub min_rtt: Span,
    /// True if the congestion window limited the sender during the last RTT.
    pub cwnd_limited: bool,
    /// True for the first acknowledgement of a round trip, which covers data sent after the last
    /// round trip began.
    pub round: bool,
    /// Bytes acknowledged in order since the subflow began, this acknowledgement included.
    pub acked: u64,
    /// Bytes sent since the subflow began, without repetitions, when this acknowledgement arrived.
    pub sent: u64,
}

/// The computation of congestion avoidance. Its owner, [`Congestion`](crate::Congestion), keeps
/// window and threshold, applies the results within their bounds, and reports events.
pub trait Algorithm: core::fmt::Debug + Send {
    /// Returns the growth of the window in congestion avoidance, in bytes with a fraction, for `bytes`
    /// acknowledged bytes. It may be negative. If slow start used a part of the same ACK, `bytes` is less
    /// than `ack.bytes`.
    fn increase(&mut self, ack: &Ack, bytes: u64, view: &View<'_>) -> f64;

    /// Returns the threshold in bytes after a detected loss or an expired timer, with `inflight`
    /// bytes in flight.
    fn threshold(&mut self, now: Time, inflight: u64, view: &View<'_>) -> u64;

    /// Returns true if the results depend on the siblings. If not, the connection need not describe them, and
    /// the view has only the algorithm's own flow.
    fn couples(&self) -> bool {
        true
    }

    /// Returns the controller if it sets the pacing rate and the window by itself. Its owner then calls
    /// nothing else that changes the window.
    fn rate_control(&mut self) -> Option<&mut dyn RateControl> {
        None
    }

    /// Returns true if the owner must call [`watch`](Algorithm::watch).
    fn watches(&self) -> bool {
        false
    }

    /// Takes in an acknowledgement, in every phase, before it has any other effect. A returned
    /// change of the window in bytes applies at once and ends slow start. Growth applies only if
    /// the window limits the sender. In recovery the window does not change.
    fn watch(&mut self, ack: &Ack, view: &View<'_>) -> Option<f64> {
        let _ = (ack, view);
        None
    }

    /// Begins congestion avoidance because slow start has reached the threshold, without a loss or
    /// after a timeout.
    fn on_avoidance(&mut self, now: Time, own: &Flow) {
        let _ = (now, own);
    }

    /// Ends fast recovery. Congestion avoidance begins at the threshold.
    fn on_recovered(&mut self, now: Time, own: &Flow) {
        let _ = (now, own);
    }

    /// Adds `idle` to the idle period that lasts until `now`.
    fn on_idle(&mut self, now: Time, idle: Span) {
        let _ = (now, idle);
    }

    /// Records that the window was set from outside the formula: by a timeout, idle restart, penalty or
    /// warm-up.
    fn on_window_set(&mut self, own: &Flow) {
        let _ = own;
    }

    /// Drops the state kept for an undo: no earlier reduction can be undone.
    fn on_lasting(&mut self) {}

    /// Undoes the last call of [`threshold`](Algorithm::threshold): there was no loss. The owner
    /// has restored window and threshold; the algorithm restores its own state.
    fn on_undo(&mut self, now: Time) {
        let _ = now;
    }

    /// Writes the state that later results depend on, with one call for each named value.
    fn save_state(&self, write: &mut dyn FnMut(&'static str, f64)) {
        let _ = write;
    }

    /// Restores one value of a saved state. Returns false if the name is unknown.
    fn load_state(&mut self, name: &str, value: f64) -> bool {
        let _ = (name, value);
        false
    }

    /// Writes the numbers of the formula at `now`, one call for each, under the names of its page.
    fn numbers(&self, now: Time, view: &View<'_>, write: &mut dyn FnMut(&'static str, f64)) {
        let _ = (now, view, write);
    }

    /// Returns the window in bytes if the algorithm has one that never changes.
    fn fixed_window(&self, mss: u32) -> Option<u64> {
        let _ = mss;
        None
    }
}
