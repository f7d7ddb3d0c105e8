//! Memory of data that waits.

use alloc::collections::VecDeque;
use core::ops::Add;

/// What data takes of memory.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct MemoryUsage {
    /// Its bytes and what it lies in.
    taken: u64,
    /// Room of rings that is not used.
    room: u64,
}

impl MemoryUsage {
    /// What the bytes of a piece have about them: the counters of who shares them, and the allocator's
    /// own words.
    const AROUND: u64 = 32;

    pub(crate) const fn bytes(count: u64) -> MemoryUsage {
        MemoryUsage { taken: count, room: 0 }
    }

    /// What the bytes of so many pieces lie in.
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
