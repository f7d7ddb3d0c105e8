//! The schedulers, one file each. A new one adds its file and its line in the list: help,
//! validation, `plait list`, the documentation and the contract tests read the list.

use crate::Entry;

pub use ecf::{WindowChange, rec_cwnd_after};

/// Declares a module for each name, and the list of what their `ENTRY` says.
macro_rules! schedulers {
    ($($name:ident,)*) => {
        $(mod $name;)*

        /// Every scheduler.
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
}
