//! Limits for the data of a connection when memory is short.

/// Bytes of data that a connection may hold when memory is short.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryLimit {
    /// Received data that the application has not read.
    pub unread: u64,
    /// Data to send, if the peer acknowledges nothing.
    pub unsent: u64,
    /// Data to send, if the peer acknowledges it.
    pub max_unsent: u64,
}
