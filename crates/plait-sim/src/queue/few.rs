//! The queue for few sources: their entries side by side, all looked through.

use super::Stamp;

/// The entry of each source.
#[derive(Debug)]
pub(crate) struct Few {
    /// [`Stamp::NEVER`] where there is none.
    live: Vec<Stamp>,
}

impl Few {
    pub(crate) fn new(sources: usize) -> Few {
        Few { live: vec![Stamp::NEVER; sources] }
    }

    #[inline]
    pub(crate) fn set(&mut self, source: usize, stamp: Stamp) {
        self.live[source] = stamp;
    }

    #[inline]
    pub(crate) fn stamp(&self, source: usize) -> Stamp {
        self.live[source]
    }

    /// Takes the first entry. A plain loop over wide keys: this is done for every event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Stamp, usize)> {
        let (mut first, mut from) = (Stamp::NEVER, 0);
        for (source, stamp) in self.live.iter().enumerate() {
            if stamp.at < first.at || stamp.at == first.at && stamp.order < first.order {
                (first, from) = (*stamp, source);
            }
        }
        *self.live.get_mut(from)? = Stamp::NEVER;
        (first != Stamp::NEVER).then_some((first, from))
    }
}
