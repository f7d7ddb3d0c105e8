//! The oracle for the other queues: a binary heap that skips replaced entries.

use crate::queue::Stamp;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap over sources.
#[derive(Debug)]
pub(crate) struct Heap {
    /// The live entry of each source; [`Stamp::NEVER`] if it has none.
    live: Vec<Stamp>,
    entries: BinaryHeap<Reverse<(Stamp, usize)>>,
}

impl Heap {
    pub(crate) fn new(sources: usize) -> Heap {
        let entries = BinaryHeap::with_capacity(4 * sources);
        Heap { live: vec![Stamp::NEVER; sources], entries }
    }

    pub(crate) fn set(&mut self, source: usize, stamp: Stamp) {
        self.live[source] = stamp;
        self.entries.push(Reverse((stamp, source)));
    }

    pub(crate) fn pop(&mut self) -> Option<(Stamp, usize)> {
        loop {
            let Reverse((stamp, source)) = self.entries.pop()?;
            if self.live[source] == stamp {
                self.live[source] = Stamp::NEVER;
                return Some((stamp, source));
            }
        }
    }
}
