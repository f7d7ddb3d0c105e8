//! What a connection keeps of data, and what it may keep where memory is short.

use super::Connection;
use crate::data::MemoryUsage;
use plait_base::{DataRange, Ssn};

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

impl Connection {
    /// A connection without data, its addresses and its place in the books included.
    const BASE: u64 = 4_096;

    /// Bytes of memory that it takes, about: data of both directions, and what it lies in.
    pub(crate) fn memory_bytes(&self) -> u64 {
        Connection::BASE + (self.queue.memory_usage() + self.received()).with_room()
    }

    /// Memory of what has arrived and was not read.
    fn received(&self) -> MemoryUsage {
        self.subflows.iter().fold(self.recv.memory_usage(), |sum, it| sum + it.rx.memory_usage())
    }

    /// How large the send buffer may be: what everybody may hold, or twice what the peer has room for
    /// and the subflows carry in a round trip. A peer that does not read has no room, and windows of
    /// subflows to one that does not acknowledge are small.
    pub(super) fn sendable(&self, limit: MemoryLimit) -> u64 {
        let room = self.window.end().saturating_sub(self.queue.una());
        let windows = self.subflows.iter().filter(|it| it.state.synchronised()).map(|it| it.cwnd());
        let taken = windows.sum::<u64>().min(room).saturating_mul(2);
        limit.unsent.max(taken.min(limit.max_unsent))
    }

    /// The receive window to tell: where memory is short, of no more than the share.
    #[inline]
    pub(super) fn window_to_tell(&self, limit: Option<MemoryLimit>) -> u64 {
        match limit {
            None => self.recv.window(),
            Some(limit) => self.recv.window_within(limit.unread),
        }
    }

    /// Whether data that has arrived at `seq` of a subflow is too much for a connection that may keep
    /// `most`. What others may wait for is taken as long as the reader keeps up: what can be read, and
    /// what fills a hole of its subflow, behind which that may be. Everything else is while all that is
    /// here, with what it lies in, is below twice as much.
    pub(super) fn exceeds(&self, most: u64, index: usize, seq: Ssn, data: DataRange) -> bool {
        let rx = &self.subflows[index].rx;
        let next = seq <= rx.nxt() && (data.start <= self.recv.nxt() || rx.has_hole());
        let full = self.received().taken() >= most.saturating_mul(2);
        self.recv.is_far(data, most) || full && (!next || self.recv.readable() > 0)
    }
}
