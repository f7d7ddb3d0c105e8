//! Sizes of buffers and of the gap between paths, computed from rates and propagation delays. Each
//! direction takes half of the round trip.

use plait_base::{Rate, Span};

/// A path in this arithmetic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathProperties {
    /// Rate of the path.
    pub rate: Rate,
    /// Round trip time without queues.
    pub rtt: Span,
}

impl PathProperties {
    /// Returns bandwidth times round trip in bytes: the window that fills the path.
    #[must_use]
    pub const fn bdp(&self) -> u64 {
        self.rate.bytes_in(self.rtt)
    }
}

/// Returns the bytes that all paths can send in `time`.
fn all_in(paths: &[PathProperties], time: Span) -> u64 {
    paths.iter().map(|path| path.rate.bytes_in(time)).fold(0, u64::saturating_add)
}

fn longest(paths: &[PathProperties]) -> Span {
    paths.iter().map(|path| path.rtt).max().unwrap_or_default()
}

/// Returns the least buffer in bytes that keeps all paths busy if data is sent in order. All paths
/// together carry it in the longest round trip (STMS, ATC 2018, equation 1).
#[must_use]
pub fn in_order(paths: &[PathProperties]) -> u64 {
    all_in(paths, longest(paths))
}

/// Returns the recommended buffer of a host: twice [`in_order`], so that it suffices for a
/// retransmission as well (RFC 8684 section 3.3.1 by way of CSWS 2014).
#[must_use]
pub fn recommended(paths: &[PathProperties]) -> u64 {
    in_order(paths).saturating_mul(2)
}

/// Returns how many bytes ahead the slow path must take its data so that it arrives in order. The
/// fast path carries them in the difference of the one-way delays (STMS, equation 2).
#[must_use]
pub fn gap(fast: PathProperties, slow: PathProperties) -> u64 {
    fast.rate.bytes_in(slow.rtt.minus(fast.rtt)) / 2
}

/// Returns the buffer that suffices if data arrives in order and is acknowledged on the fast path.
/// Both paths carry it in the slow way there plus the fast way back (STMS, equation 3).
#[must_use]
pub fn out_of_order(fast: PathProperties, slow: PathProperties) -> u64 {
    all_in(&[fast, slow], fast.rtt + slow.rtt) / 2
}

/// Returns the buffer below which only the fast path is worth using: the fast path's part of
/// [`out_of_order`] (STMS, equation 4).
#[must_use]
pub fn fallback(fast: PathProperties, slow: PathProperties) -> u64 {
    fast.rate.bytes_in(fast.rtt + slow.rtt) / 2
}
