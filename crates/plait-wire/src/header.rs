//! Lengths of headers without options, in bytes.

pub(crate) const IPV4_HEADER: u32 = 20;
pub(crate) const TCP_HEADER: u32 = 20;
