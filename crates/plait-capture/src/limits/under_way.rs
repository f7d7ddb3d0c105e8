//! Acknowledgements that the capture has, and the sender not yet.

use super::AckEvent;
use std::collections::VecDeque;

/// Largest number of them. Beyond it, the first one arrives.
const MAX: usize = 65_536;

/// The acknowledgements on their way to the sender, in the order of time.
#[derive(Clone, Default, Debug)]
pub(crate) struct UnderWay(VecDeque<AckEvent>);

impl UnderWay {
    pub(crate) fn add(&mut self, event: AckEvent) {
        let at = self.0.partition_point(|other| other.at_ns <= event.at_ns);
        self.0.insert(at, event);
    }

    /// Removes the next one that the sender has at `now`.
    pub(crate) fn arrived(&mut self, now: i64) -> Option<AckEvent> {
        let is_due = self.0.front().is_some_and(|first| first.at_ns <= now) || self.0.len() > MAX;
        is_due.then(|| self.0.pop_front()).flatten()
    }

    /// Returns the number of them.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns unused memory.
    pub(crate) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }

    /// Returns the last one.
    pub(crate) fn last(&self) -> Option<&AckEvent> {
        self.0.back()
    }
}
