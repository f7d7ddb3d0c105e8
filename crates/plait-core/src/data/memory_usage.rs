//! Memory of buffered data.

use alloc::collections::VecDeque;
use core::ops::Add;

/// Memory used by data.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct MemoryUsage {
    /// Bytes of data and of the buffers that hold it.
    taken: u64,
    /// Unused capacity of ring buffers.
    room: u64,
}

impl MemoryUsage {
    /// Overhead of a shared piece: its reference counters, and the allocator's header.
    const AROUND: u64 = 32;

    pub(crate) const fn bytes(count: u64) -> MemoryUsage {
        MemoryUsage { taken: count, room: 0 }
    }

    /// Returns the memory of the pieces' ring buffer.
    pub(crate) fn pieces<T>(ring: &VecDeque<T>) -> MemoryUsage {
        let (slot, len) = (size_of::<T>() as u64, ring.len() as u64);
        let room = slot * (ring.capacity() as u64 - len);
        MemoryUsage { taken: len * (slot + MemoryUsage::AROUND), room }
    }

    pub(crate) const fn taken(self) -> u64 {
        self.taken
    }

    pub(crate) const fn with_room(self) -> u64 {
        self.taken + self.room
    }
}

impl Add for MemoryUsage {
    type Output = MemoryUsage;

    fn add(self, other: MemoryUsage) -> MemoryUsage {
        MemoryUsage { taken: self.taken + other.taken, room: self.room + other.room }
    }
}
