//! The queue for few sources: their entries in order, each put where it belongs.

use super::Stamp;

/// The entry of each source.
#[derive(Debug)]
pub(crate) struct Few {
    /// [`Stamp::NEVER`] where there is none.
    live: Vec<Stamp>,
    /// The same and their sources, the first one last.
    waiting: Vec<(Stamp, usize)>,
}

impl Few {
    pub(crate) fn new(sources: usize) -> Few {
        Few { live: vec![Stamp::NEVER; sources], waiting: Vec::with_capacity(sources) }
    }

    /// Most entries are set for a time soon after the first event: few stand before them.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, stamp: Stamp) {
        if self.live[source] != Stamp::NEVER {
            self.forget(source);
        }
        self.live[source] = stamp;
        let entry = (stamp, source);
        let mut place = self.waiting.len();
        self.waiting.push(entry);
        while place > 0 && self.waiting[place - 1] < entry {
            self.waiting[place] = self.waiting[place - 1];
            place -= 1;
        }
        self.waiting[place] = entry;
    }

    #[inline(never)]
    fn forget(&mut self, source: usize) {
        self.waiting.retain(|entry| entry.1 != source);
    }

    #[inline]
    pub(crate) fn stamp(&self, source: usize) -> Stamp {
        self.live[source]
    }

    /// Takes the first entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Stamp, usize)> {
        let first = self.waiting.pop()?;
        self.live[first.1] = Stamp::NEVER;
        Some(first)
    }
}
