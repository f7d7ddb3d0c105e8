//! Formulas of the papers for buffers and gaps, for reports and for sizing buffers. Rates are in
//! bytes per second. Results are in bytes, rounded down.

use plait_base::Span;

/// Returns the send or receive buffer that keeps every path full while the slowest one recovers
/// from a loss. It is the sum of the rates times twice the longest RTT (CSWS 2014, section 4; RFC
/// 6182, section 5.3).
#[must_use]
pub fn recommended_buffer(rates: &[u64], longest_rtt: Span) -> u64 {
    let sum = rates.iter().fold(0, |sum: u64, rate| sum.saturating_add(*rate));
    in_time(sum, longest_rtt.times(2))
}

/// Returns the buffer that keeps both paths full if the scheduler prefers the lowest RTT (STMS,
/// equation 1).
#[must_use]
pub fn default_buffer(fast_rate: u64, slow_rate: u64, slow_rtt: Span) -> u64 {
    in_time(fast_rate.saturating_add(slow_rate), slow_rtt)
}

/// Returns the true gap: the distance between data that both paths send at the same time, so that
/// it arrives in order (STMS, equation 2).
#[must_use]
pub fn true_gap(fast_rate: u64, fast_delay: Span, slow_delay: Span) -> u64 {
    in_time(fast_rate, slow_delay.minus(fast_delay))
}

/// Returns the buffer that keeps both paths full with STMS (STMS, equation 3).
#[must_use]
pub fn stms_buffer(fast_rate: u64, slow_rate: u64, fast_delay: Span, slow_delay: Span) -> u64 {
    in_time(fast_rate.saturating_add(slow_rate), fast_delay + slow_delay)
}

/// Returns the buffer below which STMS uses the fast path alone: the data in flight on that path
/// plus the gap (STMS, equation 4).
#[must_use]
pub fn fallback_buffer(fast_rate: u64, fast_rtt: Span, fast_delay: Span, slow_delay: Span) -> u64 {
    in_time(fast_rate, fast_rtt).saturating_add(true_gap(fast_rate, fast_delay, slow_delay))
}

/// Returns the bytes that a rate carries in a time.
fn in_time(rate: u64, time: Span) -> u64 {
    let bytes = u128::from(rate) * u128::from(time.as_nanos()) / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
