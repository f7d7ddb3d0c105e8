//! The schedulers, one file each. A new one adds its file, its `mod` line and its line in the
//! list: help, validation, `plait list`, the documentation and the contract tests read the list.

mod blest;
mod daps;
mod ecf;
mod linux;
mod minrtt;
mod otias;
mod redundant;
mod roundrobin;
mod rtt_threshold;
mod stms_a;
mod stms_c;
mod strict;
mod sttf;

use crate::Entry;

pub use ecf::{WindowChange, rec_cwnd_after};

/// Every scheduler.
pub static SCHEDULERS: &[Entry] = &[
    minrtt::ENTRY,
    roundrobin::ENTRY,
    redundant::ENTRY,
    daps::ENTRY,
    otias::ENTRY,
    blest::ENTRY,
    ecf::ENTRY,
    sttf::ENTRY,
    stms_c::ENTRY,
    stms_a::ENTRY,
    linux::ENTRY,
    strict::ENTRY,
    rtt_threshold::ENTRY,
];
