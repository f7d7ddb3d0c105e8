//! One TCP subflow: RFC 9293 and its companions. It carries data sequence numbers, but does not
//! interpret them.

pub(crate) mod acceptability;
pub(crate) mod ack_processing;
pub(crate) mod address;
pub(crate) mod arrival;
pub(crate) mod clock;
mod control;
pub(crate) mod cwnd_validation;
pub(crate) mod delivery;
mod ending;
pub(crate) mod fast_path;
pub(crate) mod handshake;
pub(crate) mod host_queue;
pub(crate) mod loss;
pub(crate) mod mappings;
pub(crate) mod mptcp_handshake;
mod outstanding;
pub(crate) mod pace;
pub(crate) mod pending;
pub(crate) mod pmtu_black_hole;
pub(crate) mod probing;
pub(crate) mod recv;
pub(crate) mod remembered;
pub(crate) mod reports;
pub(crate) mod rtt;
mod segment_size;
pub(crate) mod send;
pub(crate) mod sender;
pub(crate) mod spurious_recovery;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod subflow;
pub(crate) mod tail;
mod timeouts;
pub(crate) mod timer;
mod windows;
