//! How much a connection has to hold: the arithmetic of buffers and of the gap between paths, from
//! the rates and the propagation delays. Delays are half of the round trip each way.

use plait_base::{Rate, Span};

/// A path as this arithmetic sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    /// What it carries.
    pub rate: Rate,
    /// Round trip without queues.
    pub rtt: Span,
}

impl Way {
    /// Bandwidth times round trip, in bytes: the window that fills the path.
    #[must_use]
    pub const fn bdp(&self) -> u64 {
        self.rate.bytes_in(self.rtt)
    }
}

/// Bytes that every path can send in `time`.
fn all_in(ways: &[Way], time: Span) -> u64 {
    ways.iter().map(|way| way.rate.bytes_in(time)).fold(0, u64::saturating_add)
}

fn longest(ways: &[Way]) -> Span {
    ways.iter().map(|way| way.rtt).max().unwrap_or_default()
}

/// The least buffer that keeps all paths busy where data is sent in order: what all of them carry in
/// the longest round trip (STMS, ATC 2018, equation 1).
#[must_use]
pub fn in_order(ways: &[Way]) -> u64 {
    all_in(ways, longest(ways))
}

/// The buffer that is recommended for a host: twice [`in_order`], so that it suffices for a
/// retransmission as well (RFC 8684 section 3.3.1 by way of CSWS 2014).
#[must_use]
pub fn recommended(ways: &[Way]) -> u64 {
    in_order(ways).saturating_mul(2)
}

/// How far ahead the slow path has to take its data for it to arrive in order: what the fast path
/// carries in the difference of the one-way delays (STMS, equation 2).
#[must_use]
pub fn gap(fast: Way, slow: Way) -> u64 {
    fast.rate.bytes_in(slow.rtt.minus(fast.rtt)) / 2
}

/// The buffer that suffices where data arrives in order and is acknowledged over the fast path: what
/// both carry in the slow way there and the fast way back (STMS, equation 3).
#[must_use]
pub fn out_of_order(fast: Way, slow: Way) -> u64 {
    all_in(&[fast, slow], fast.rtt + slow.rtt) / 2
}

/// The buffer below which only the fast path is worth using: the part of [`out_of_order`] that is
/// the fast path's (STMS, equation 4).
#[must_use]
pub fn fallback(fast: Way, slow: Way) -> u64 {
    fast.rate.bytes_in(fast.rtt + slow.rtt) / 2
}
