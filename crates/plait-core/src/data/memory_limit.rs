//! What a connection keeps of data, and what it may keep where memory is short.

/// What a connection may hold where memory is short, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryLimit {
    /// Received data that was not read.
    pub unread: u64,
    /// Data to be sent, if its peer takes nothing.
    pub unsent: u64,
    /// To be sent, where its peer takes it.
    pub max_unsent: u64,
}
