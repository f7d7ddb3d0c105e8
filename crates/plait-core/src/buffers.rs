//! Sizes of buffers and of the gap between paths, computed from rates and propagation delays. Each
//! direction takes half of the round trip.

use plait_base::{Rate, Span};

/// A path in this arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// Rate of the path.
    pub rate: Rate,
    /// Round trip time without queues.
    pub rtt: Span,
}

impl Way {
    /// Returns bandwidth times round trip in bytes: the window that fills the path.
    #[must_use]
    pub const fn bdp(&self) -> u64 {
        self.rate.bytes_in(self.rtt)
    }
}

/// Returns the bytes that all paths can send in `time`.
fn all_in(ways: &[Way], time: Span) -> u64 {
    ways.iter().map(|way| way.rate.bytes_in(time)).fold(0, u64::saturating_add)
}

fn longest(ways: &[Way]) -> Span {
    ways.iter().map(|way| way.rtt).max().unwrap_or_default()
}

/// Returns the least buffer in bytes that keeps all paths busy if data is sent in order. All paths
/// together carry it in the longest round trip (STMS, ATC 2018, equation 1).
#[must_use]
pub fn in_order(ways: &[Way]) -> u64 {
    all_in(ways, longest(ways))
}

/// Returns the recommended buffer of a host: twice [`in_order`], so that it suffices for a
/// retransmission as well (RFC 8684 section 3.3.1 by way of CSWS 2014).
#[must_use]
pub fn recommended(ways: &[Way]) -> u64 {
    in_order(ways).saturating_mul(2)
}

/// Returns how many bytes ahead the slow path must take its data so that it arrives in order. The
/// fast path carries them in the difference of the one-way delays (STMS, equation 2).
#[must_use]
pub fn gap(fast: Way, slow: Way) -> u64 {
    fast.rate.bytes_in(slow.rtt.minus(fast.rtt)) / 2
}

/// Returns the buffer that suffices if data arrives in order and is acknowledged on the fast path.
/// Both paths carry it in the slow way there plus the fast way back (STMS, equation 3).
#[must_use]
pub fn out_of_order(fast: Way, slow: Way) -> u64 {
    all_in(&[fast, slow], fast.rtt + slow.rtt) / 2
}

/// Returns the buffer below which only the fast path is worth using: the fast path's part of
/// [`out_of_order`] (STMS, equation 4).
#[must_use]
pub fn fallback(fast: Way, slow: Way) -> u64 {
    fast.rate.bytes_in(fast.rtt + slow.rtt) / 2
}
