//! The pure arithmetic of timers and loss detection, as the transport itself uses it: for tests
//! against published numbers, and for those who explain a run.

use crate::RtoMode;
use crate::tcp::rtt::Rtt;
use plait_base::{Span, Time};

pub use crate::tcp::host_queue::{
    TSQ_CAP_BYTES as TSQ_CAP, limit as tsq_limit, pacing_rate, truesize,
};
pub use crate::tcp::loss::{probe_timeout, reorder_window};

/// What a subflow knows of its round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrip {
    /// Smoothed RTT.
    pub srtt: Span,
    /// Its mean deviation.
    pub rttvar: Span,
    /// The retransmission timeout without backoff.
    pub rto: Span,
}

/// The estimate after each of the RTT `samples` of a subflow (RFC 6298 section 2; the floor is the
/// one of `mode`).
pub fn round_trips(mode: RtoMode, samples: &[Span]) -> impl Iterator<Item = RoundTrip> {
    let mut estimator = Rtt::new(mode);
    samples.iter().map(move |sample| {
        estimator.sample(Time::ZERO, *sample);
        RoundTrip {
            srtt: estimator.srtt().unwrap_or_default(),
            rttvar: estimator.rttvar(),
            rto: estimator.base_rto(),
        }
    })
}

/// When a segment sent at `sent_at` counts as lost, once one that was sent later is delivered (RFC
/// 8985 section 6.2 step 5): `rtt` is that one's RTT, `window` the reordering window.
#[must_use]
pub fn lost_at(sent_at: Time, rtt: Span, window: Span) -> Time {
    sent_at + rtt + window
}
