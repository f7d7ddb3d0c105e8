//! Control of the sending rate by a model of the path, which needs a sample of the delivery rate for each
//! acknowledgement.

use plait_base::{Span, Time};

/// The window of a subflow under [`RateControl`], and its sizes. All are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateWindow {
    /// Congestion window. The owner keeps at least one segment.
    pub cwnd: u64,
    /// Payload of a full segment.
    pub mss: u64,
    /// Initial window.
    pub initial: u64,
}

/// An acknowledgement with a sample of the delivery rate. The sampled segment is the last one sent of those
/// that the acknowledgement delivers (draft-ietf-ccwg-bbr section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateSample {
    /// The current time.
    pub now: Time,
    /// Bytes newly acknowledged, cumulatively or selectively.
    pub acked: u64,
    /// Bytes delivered since the subflow began, these included.
    pub total: u64,
    /// The same total when the sampled segment was sent.
    pub prior_total: u64,
    /// Delivery rate in bytes per second; 0 if it cannot be known.
    pub rate: u64,
    /// True if the sender had too little to send, so that the rate is a lower bound.
    pub app_limited: bool,
    /// Bytes in flight when the sampled segment had been sent, itself included.
    pub sent_inflight: u64,
    /// Bytes that were marked as lost since.
    pub lost: u64,
    /// Bytes in flight now, after losses were detected.
    pub inflight: u64,
    /// The RTT sample of this acknowledgement, if it gave one.
    pub rtt: Option<Span>,
    /// Smoothed RTT; `None` before the first sample.
    pub srtt: Option<Span>,
    /// True if the congestion window limited the sender during the last RTT.
    pub cwnd_limited: bool,
    /// True if the peer sends selective acknowledgements.
    pub sack: bool,
}

impl RateSample {
    /// Returns the bytes that were delivered since the sampled segment was sent.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.total.saturating_sub(self.prior_total)
    }
}

/// A segment that was marked as lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostSegment {
    /// The current time.
    pub now: Time,
    /// Its bytes.
    pub len: u64,
    /// Bytes in flight when it had been sent, itself included.
    pub sent_inflight: u64,
    /// Bytes that were marked as lost since, itself included.
    pub lost: u64,
    /// Bytes delivered since the subflow began.
    pub total: u64,
    /// True if the sender had too little to send then.
    pub app_limited: bool,
    /// True if it does not follow the segment that was marked before it.
    pub apart: bool,
    /// True if the peer sends selective acknowledgements.
    pub sack: bool,
}

/// A controller that sets both the pacing rate and the window. The transport paces its subflow in any
/// case, and does not reduce the window by itself.
pub trait RateControl {
    /// Sets the seed of its random numbers, once, before any other call.
    fn seed(&mut self, seed: u64);

    /// Prepares the sending of data at `now` with nothing in flight. `app_limited` is true if the subflow
    /// had nothing to send before.
    fn on_start(
        &mut self,
        now: Time,
        app_limited: bool,
        srtt: Option<Span>,
        window: &mut RateWindow,
    );

    /// Takes in a sample. Returns true if the data in flight counts as sent by a sender with too little to
    /// send.
    fn on_sample(&mut self, sample: &RateSample, window: &mut RateWindow) -> bool;

    /// Takes in a segment that was marked as lost.
    fn on_lost(&mut self, lost: &LostSegment, window: &mut RateWindow);

    /// Begins fast recovery. The lost segments follow.
    fn on_recovery(&mut self, window: &mut RateWindow);

    /// Takes in an expired retransmission timer. The lost segments follow, which are all in flight.
    fn on_timeout(&mut self, window: &mut RateWindow);

    /// Ends a recovery: all lost data is repaired.
    fn on_recovered(&mut self, window: &mut RateWindow);

    /// Handles a recovery that proved spurious, and ends it.
    fn on_spurious(&mut self, now: Time, window: &mut RateWindow);

    /// Returns true until the controller has found the bandwidth for the first time.
    fn is_starting(&self) -> bool;

    /// Returns the pacing rate in bytes per second, at least 1.
    fn pacing_rate(&self) -> u64;

    /// Returns the bandwidth that the controller has found, in bytes per second; 0 as long as it
    /// [starts](RateControl::is_starting).
    fn bandwidth(&self) -> u64;

    /// Returns the bytes that may leave at once.
    fn quantum(&self) -> u64;
}
