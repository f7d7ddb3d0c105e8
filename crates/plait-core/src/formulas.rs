//! The arithmetic of timers and loss detection, as the transport uses it. Tests compare it with
//! published numbers, and explanations of a run use it.

use crate::RtoMode;
use crate::tcp::rtt::Rtt;
use plait_base::{Span, Time};

pub use crate::tcp::host_queue::{
    TSQ_CAP_BYTES as TSQ_CAP, limit as tsq_limit, pacing_rate, truesize,
};
pub use crate::tcp::loss::{lost_at, probe_timeout, reorder_window};

/// The RTT estimate of a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrip {
    /// Smoothed RTT.
    pub srtt: Span,
    /// Mean deviation of the RTT.
    pub rttvar: Span,
    /// Retransmission timeout without backoff.
    pub rto: Span,
}

/// Returns the estimate after each of the RTT `samples` of a subflow (RFC 6298 section 2, with the
/// floor of `mode`).
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
