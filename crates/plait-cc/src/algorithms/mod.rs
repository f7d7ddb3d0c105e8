//! The controllers, one file each. A new controller adds a file and a line in the list below. Help,
//! validation, documentation, contract tests and benchmarks read the list.

use crate::Entry;
use plait_base::Span;

/// Declares a module for each name, and the list of their `ENTRY` constants.
macro_rules! controllers {
    ($($name:ident,)*) => {
        $(
            #[allow(unreachable_pub, reason = "the crate lends some of them by name")]
            pub mod $name;
        )*

        /// All congestion controllers, the default first.
        pub const CONTROLLERS: &[Entry] = &[$($name::ENTRY),*];
    };
}

/// Converts milliseconds of a saved state to a span. Negative values and NaN give zero.
fn millis(value: f64) -> Span {
    Span::from_nanos(libm::round(value * 1e6) as u64)
}

controllers! {
    cubic,
    reno,
    lia,
    olia,
    balia,
    wvegas,
    fixed,
    bbr,
}
