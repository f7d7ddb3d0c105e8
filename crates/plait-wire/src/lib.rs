//! TCP segments in the form of the protocol core: header fields, options, payload (floor 1 of plait).
//!
//! Numbers have the width of the wire: 32-bit sequence numbers, 4- or 8-byte DSNs. Sizes are the
//! lengths of the encoded bytes, so a simulated segment costs as much as a real one. [`codec`]
//! converts segments to bytes and bytes to segments.
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod budget;
mod checksum;
pub mod codec;
mod header;
mod key;
mod options;
mod payload;
#[cfg(feature = "planted-bugs")]
#[allow(dead_code, reason = "only the tree with the patch has the bugs")]
pub mod planted;
mod segment;

pub use budget::GaveWay;
pub use checksum::Sum;
pub use key::{
    JoinHmac, Key, Secret, WireDsn, WireSeq, add_addr_hmac, add_addr_hmac_matches, join_hmac,
};
pub use options::{
    AddAddr, DataAck, Dss, JoinAck, JoinSyn, JoinSynAck, MAX_OPTION_BYTES, Mapping, MpCapable,
    Mptcp, Options, ResetReason, SackBlocks, Timestamps, payload_per_segment,
};
pub use payload::Payload;
pub use segment::{Flags, Segment};
