//! Floor 1: congestion control. [`Congestion`] keeps the books of one subflow (window, threshold,
//! slow start, idle restart, loss intervals); an [`Algorithm`] does the arithmetic of congestion
//! avoidance. Coupled algorithms read their siblings, and write none.
#![no_std]

extern crate alloc;

use alloc::boxed::Box;
use plait_base::{Span, Time};

/// What an algorithm sees of one subflow of its connection, its own included.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flow {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold; `None` is infinite.
    pub ssthresh: Option<u64>,
    /// Smoothed RTT; a flow without a sample is not coupled.
    pub srtt: Option<Span>,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// In fast recovery: coupled formulas take `ssthresh` for its window.
    pub in_recovery: bool,
    /// Live; a dead flow is not coupled.
    pub live: bool,
    /// The greater of: bytes acknowledged since the last loss, and between the last two losses
    /// (OLIA).
    pub loss_interval: u64,
}

/// The flows of a connection and which of them is speaking.
#[derive(Clone, Copy, Debug)]
pub struct Flows<'a> {
    /// All flows.
    pub all: &'a [Flow],
    /// Index of the speaker.
    pub own: usize,
}

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
}

/// How the window restarts after an idle time (`spec`: RFC 5681 section 4.1, RFC 2861).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum IdleRestart {
    /// Halved once for each RTO of idling begun after the first, not below the initial window.
    #[default]
    Linux,
    /// Back to the initial window after one RTO.
    Rfc5681,
    /// Never.
    Off,
}

/// Settings that every algorithm shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Initial window in segments (RFC 6928).
    pub initial_window: u32,
    /// Initial slow start threshold in bytes; `None` is infinite. Rounded down to whole segments.
    pub ssthresh: Option<u64>,
    /// L of RFC 3465: slow start grows by at most this many segments per ACK.
    pub slow_start_limit: u32,
}

/// Arithmetic of congestion avoidance. The owner keeps window and threshold.
pub trait Algorithm: core::fmt::Debug + Send {
    /// How many bytes (with fraction; it may be negative) the window grows for this ACK in
    /// congestion avoidance.
    fn increase(&mut self, ack: &Ack, bytes: u64, flows: Flows<'_>) -> f64;

    /// The threshold after a loss was detected with `inflight` bytes in flight.
    fn threshold(&mut self, now: Time, inflight: u64, flows: Flows<'_>) -> u64;

    /// Congestion avoidance begins without a loss, or after a timeout.
    fn on_avoidance(&mut self, now: Time, cwnd: u64) {
        let _ = (now, cwnd);
    }

    /// The subflow was idle for `idle` and is about to send.
    fn on_idle(&mut self, now: Time, idle: Span) {
        let _ = (now, idle);
    }

    /// A window that never moves, in bytes, where the algorithm has one.
    fn fixed_window(&self) -> Option<u64> {
        None
    }
}

/// To be replaced.
pub type BoxedAlgorithm = Box<dyn Algorithm>;
