//! A propagation delay that changes in steps.

use alloc::vec::Vec;

use plait_base::{Span, Time};

/// The steps that are still to come.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    /// The last comes first.
    steps: Vec<(Time, Span)>,
}

impl Delays {
    /// The steps in the order of time, of several at one time the last; `None` where there is none.
    pub(crate) fn new(steps: &[(Time, Span)]) -> Option<Delays> {
        let mut steps = steps.to_vec();
        steps.sort_by_key(|step| step.0);
        steps.reverse();
        (!steps.is_empty()).then_some(Delays { steps })
    }

    /// The delay that has come to hold by `departs`, which never goes back, if it is a new one.
    pub(crate) fn turn(&mut self, departs: Time) -> Option<Span> {
        let mut found = None;
        while let Some((_, delay)) = self.steps.pop_if(|(from, _)| *from <= departs) {
            found = Some(delay);
        }
        found
    }
}
