//! The contract between the owner of the window and the arithmetic.

use crate::{Flow, View};
use plait_base::{Span, Time};

/// An acknowledgement of new data, as congestion control sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ack {
    /// Now.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub bytes: u64,
    /// The RTT sample of this acknowledgement, if it gave one.
    pub rtt: Option<Span>,
    /// Smoothed RTT.
    pub srtt: Span,
    /// Least RTT.
    pub min_rtt: Span,
    /// The sender was limited by the congestion window during the last RTT.
    pub cwnd_limited: bool,
    /// The first acknowledgement of a round trip: of data sent after the last one began.
    pub round: bool,
}

/// Arithmetic of congestion avoidance. The owner, [`Congestion`](crate::Congestion), keeps window
/// and threshold, applies the answers and their bounds, and tells what happened.
pub trait Algorithm: core::fmt::Debug + Send {
    /// How many bytes (with fraction; it may be negative) the window grows in congestion avoidance
    /// for `bytes` acknowledged ones. `bytes` is less than `ack.bytes` where slow start took the
    /// rest of the same ACK.
    fn increase(&mut self, ack: &Ack, bytes: u64, view: &View<'_>) -> f64;

    /// The threshold in bytes after a loss was detected, or a timer expired, with `inflight` bytes
    /// in flight.
    fn threshold(&mut self, now: Time, inflight: u64, view: &View<'_>) -> u64;

    /// Whether the answers depend on the siblings. Where they do not, the connection need not
    /// describe them: the view then holds the speaker alone.
    fn couples(&self) -> bool {
        true
    }

    /// Whether [`watch`](Algorithm::watch) is to be called at all.
    fn watches(&self) -> bool {
        false
    }

    /// An acknowledgement, in every phase and before anything else is made of it. The answer is
    /// what the window changes by at once, in bytes, and ends slow start; growth counts only where
    /// the window limits the sender. Nothing changes in recovery.
    fn watch(&mut self, ack: &Ack, view: &View<'_>) -> Option<f64> {
        let _ = (ack, view);
        None
    }

    /// Congestion avoidance begins because slow start reached the threshold: without a loss, or
    /// after a timeout.
    fn on_avoidance(&mut self, now: Time, own: &Flow) {
        let _ = (now, own);
    }

    /// Fast recovery is over; congestion avoidance begins from the threshold.
    fn on_recovered(&mut self, now: Time, own: &Flow) {
        let _ = (now, own);
    }

    /// The subflow has been idle for another `idle` until `now`. Calls of one idle period add up.
    fn on_idle(&mut self, now: Time, idle: Span) {
        let _ = (now, idle);
    }

    /// The window was set from outside the formula: timeout, idle restart, penalty, warm-up.
    fn on_window_set(&mut self, own: &Flow) {
        let _ = own;
    }

    /// No reduction before this will be taken back.
    fn on_lasting(&mut self) {}

    /// The last [`threshold`](Algorithm::threshold) was asked for by mistake: no loss had happened.
    /// The owner has put back window and threshold; what the algorithm noted of the reduction is
    /// to be forgotten.
    fn on_undo(&mut self, now: Time) {
        let _ = now;
    }

    /// Writes the state that later answers depend on, one call for each named value.
    fn save_state(&self, write: &mut dyn FnMut(&'static str, f64)) {
        let _ = write;
    }

    /// Takes over one value of a saved state; false where the name is unknown.
    fn load_state(&mut self, name: &str, value: f64) -> bool {
        let _ = (name, value);
        false
    }

    /// The numbers of the formula at `now`, one call for each, under the names of its page.
    fn numbers(&self, now: Time, view: &View<'_>, write: &mut dyn FnMut(&'static str, f64)) {
        let _ = (now, view, write);
    }

    /// A window that never moves, in bytes, where the algorithm has one.
    fn fixed_window(&self, mss: u32) -> Option<u64> {
        let _ = mss;
        None
    }
}
