//! The size of the send buffer: fixed, growing, or counted in memory.

use super::{Repeats, SendQueue};
use crate::config::BufferSizes;
use crate::data::send_memory::SendMemory;
use alloc::boxed::Box;
use plait_base::{SendSsn, Span, SubflowId};

impl SendQueue {
    /// Returns an empty queue.
    pub(crate) fn new(buffers: &BufferSizes) -> SendQueue {
        let memory = buffers.kernel.map(|it| Box::new(SendMemory::new(it.most_sndbuf)));
        let repeats = memory.map(|memory| Repeats { memory: Some(memory), ..Repeats::default() });
        let size = buffers.initial_sndbuf();
        SendQueue { repeats: repeats.map(Box::new), size, ..SendQueue::default() }
    }

    /// Returns the size of the send buffer in bytes, unless it is counted in memory.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Grows the send buffer to twice the bytes `carried` in the longest RTT, at most to `most`. It never shrinks.
    pub(crate) fn expand(&mut self, carried: u64, most: u64) {
        self.size = self.size.max(carried.saturating_mul(2).min(most));
    }

    /// Returns the sizes of the send buffers, if they are counted in memory.
    pub(crate) fn memory(&mut self) -> Option<&mut SendMemory> {
        self.repeats.as_deref_mut()?.memory.as_deref_mut()
    }

    pub(super) fn sizes(&self) -> Option<&SendMemory> {
        self.repeats.as_deref()?.memory.as_deref()
    }

    /// Drops the state of repeated data.
    pub(super) fn forget_repeats(&mut self) {
        let memory = self.repeats.take().and_then(|it| it.memory);
        let kept = memory.map(|memory| Repeats { memory: Some(memory), ..Repeats::default() });
        self.repeats = kept.map(Box::new);
    }

    /// Returns the time to wait for a DATA_ACK before data is retransmitted, if the send buffers
    /// are counted in memory.
    pub(crate) fn data_timeout(&self) -> Option<Span> {
        self.sizes().map(SendMemory::timeout)
    }

    /// Returns the sequence number after the last short segment of `subflow`. Zero before the first
    /// one, or if the send buffers are not counted in memory.
    pub(crate) fn short_end(&self, subflow: SubflowId) -> SendSsn {
        self.sizes().map_or(SendSsn::ZERO, |memory| memory.short_end(subflow))
    }

    /// Returns true if `subflow` had made no progress when the data timer last expired.
    pub(crate) fn stands_still(&self, subflow: SubflowId) -> bool {
        self.sizes().is_some_and(|memory| memory.stands_still(subflow))
    }

    /// Returns true if the send buffers are counted in memory.
    pub(crate) fn counts_memory(&self) -> bool {
        self.sizes().is_some()
    }
}
