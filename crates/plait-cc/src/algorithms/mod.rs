//! The controllers, one file each. A new one adds its file and its line in the list: help, validation,
//! documentation, contract tests and benchmarks read the list.

use crate::Entry;
use plait_base::Span;

/// Declares a module for each name, and the list of what their `ENTRY` says.
macro_rules! controllers {
    ($($name:ident,)*) => {
        $(
            #[allow(unreachable_pub, reason = "the crate lends some of them by name")]
            pub mod $name;
        )*

        /// Every congestion controller, the default first.
        pub const CONTROLLERS: &[Entry] = &[$($name::ENTRY),*];
    };
}

/// A time of a saved state; what is no time is none at all.
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
}
