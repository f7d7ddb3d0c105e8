//! The connection level: data by DSN, independent of subflows. DSNs count from 0 at the first byte.
//! They are converted to the wire's numbers (IDSN + 1 + DSN) when segments are written and read.

pub(crate) mod agreement;
pub(crate) mod closing;
pub(crate) mod dss;
pub(crate) mod fallback;
pub(crate) mod fastclose;
pub(crate) mod keys;
pub(crate) mod level;
pub(crate) mod memory_usage;
pub(crate) mod reassembly;
pub(crate) mod receiving;
pub(crate) mod send_memory;
pub(crate) mod send_queue;
pub(crate) mod sending;
pub(crate) mod state;
pub(crate) mod tuning;
pub(crate) mod verifier;
pub(crate) mod window;
