//! The event queue, ordered by time and then by cause. Each source has at most one live entry, so
//! the queue stays small however many packets are in flight.

mod calendar;
mod few;
#[cfg(test)]
pub(crate) mod heap;
#[cfg(test)]
mod tests;

pub(crate) use calendar::Calendar;
pub(crate) use few::Few;
use plait_base::Time;

/// Time of an event. Events of the same time are ordered by their cause.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Stamp {
    pub(crate) at: Time,
    pub(crate) order: u64,
}

impl Stamp {
    /// Means that a source has no entry.
    pub(crate) const NEVER: Stamp = Stamp { at: Time::NEVER, order: u64::MAX };
}

/// A queue over sources numbered from zero.
#[derive(Debug)]
pub(crate) struct EventQueue {
    entries: Entries,
    next_order: u64,
}

#[derive(Debug)]
enum Entries {
    Few(Few),
    Many(Calendar),
}

impl EventQueue {
    pub(crate) fn new(sources: usize) -> EventQueue {
        let entries = if sources > Few::MAX_SOURCES {
            Entries::Many(Calendar::new(sources))
        } else {
            Entries::Few(Few::new(sources))
        };
        EventQueue { entries, next_order: 0 }
    }

    /// Returns a sequence number for an event that is caused now.
    #[inline]
    pub(crate) fn order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order
    }

    /// Sets the source's next event to `stamp` and replaces its previous entry. Has no effect if
    /// the time is [`Time::NEVER`].
    #[inline]
    pub(crate) fn set(&mut self, source: usize, stamp: Stamp) {
        if stamp.at == Time::NEVER {
            return;
        }
        match &mut self.entries {
            Entries::Few(few) => few.set(source, stamp),
            Entries::Many(calendar) => calendar.set(source, stamp),
        }
    }

    /// Returns the time of the source's next event.
    #[inline]
    pub(crate) fn at(&self, source: usize) -> Time {
        match &self.entries {
            Entries::Few(few) => few.at(source),
            Entries::Many(calendar) => calendar.stamp(source).at,
        }
    }

    /// Takes the first event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Time, usize)> {
        let first = match &mut self.entries {
            Entries::Few(few) => few.pop(),
            Entries::Many(calendar) => calendar.pop(),
        };
        first.map(|(stamp, source)| (stamp.at, source))
    }
}
