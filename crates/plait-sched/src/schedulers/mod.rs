//! The schedulers, one file each. A new scheduler adds a file and a line in the list below. Help,
//! validation, `plait list`, the documentation and the contract tests read the list.

use crate::Entry;

pub use ecf::{WindowChange, rec_cwnd_after};

/// Declares a module for each name, and the list of their `ENTRY` constants.
macro_rules! schedulers {
    ($($name:ident,)*) => {
        $(mod $name;)*

        /// All schedulers.
        pub static SCHEDULERS: &[Entry] = &[$($name::ENTRY),*];
    };
}

schedulers! {
    minrtt,
    roundrobin,
    redundant,
    daps,
    otias,
    blest,
    ecf,
    sttf,
    stms_c,
    stms_a,
    linux,
    strict,
    rtt_threshold,
    slot,
}
