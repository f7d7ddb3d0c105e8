//! One file for each controller; `registry` lists them.

pub mod balia;
pub mod cubic;
pub(crate) mod fixed;
pub mod lia;
pub mod olia;
pub mod reno;
pub mod wvegas;

use plait_base::Span;

/// A time of a saved state; what is no time is none at all.
fn millis(value: f64) -> Span {
    Span::from_nanos(libm::round(value * 1e6) as u64)
}
