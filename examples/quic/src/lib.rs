//! plait's schedulers in noq, a multipath QUIC stack, over emulated paths in virtual time.
#![allow(
    clippy::disallowed_types,
    reason = "noq takes instants, which count virtual time from the first"
)]

pub mod adapter;
pub mod gate;
mod host;
pub mod world;

/// `slot` without copies, which noq cannot send.
pub const SLOT: &str = "slot:copies=off,lost=off,hedge=off,probe=off";

/// The same without its limits of the data in flight.
pub const SLOT_WITHOUT_CAPS: &str = "slot:copies=off,lost=off,hedge=off,probe=off,cap=off";
