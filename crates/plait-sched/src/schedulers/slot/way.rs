//! How far one subflow has come. A receiver passes the data of a subflow on in the order in which it was sent
//! there (RFC 8684 section 3.3), so all data behind a loss waits for the repair.

use plait_base::{Span, Time};

/// What is known of the segments of one subflow. Segments count in the order in which they were noted.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Way {
    /// All segments before this one were passed on.
    pub(super) passed: u64,
    /// The first segment that waits for a repair.
    pub(super) waits: u64,
    /// When the repair should arrive.
    pub(super) repair: Time,
}

/// The time that a retransmission takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retransmission {
    /// Until it arrives, if it leaves now.
    pub(super) arrival: Span,
    /// Between its first and its last byte.
    pub(super) duration: Span,
}

impl Way {
    /// Notes that the segment `order` counts as lost. A `new` loss is repaired after those before it.
    pub(super) fn on_lost(&mut self, now: Time, order: u64, new: bool, repair: Retransmission) {
        let alone = now + repair.arrival;
        if self.repair <= now {
            (self.waits, self.repair) = (order, alone);
        } else {
            let next = if new { repair.duration } else { Span::ZERO };
            (self.waits, self.repair) = (self.waits.min(order), alone.max(self.repair + next));
        }
    }

    /// Returns when the segment `order` is passed on, if it should arrive at `arrives`; `None` if it was passed on.
    #[inline]
    pub(super) fn passes_on(&self, order: u64, arrives: Time) -> Option<Time> {
        let repair = if order >= self.waits { self.repair } else { Time::ZERO };
        (order >= self.passed).then_some(arrives.max(repair))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPAIR: Retransmission =
        Retransmission { arrival: Span::from_millis(50), duration: Span::from_millis(4) };

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn data_behind_a_loss_waits_for_the_repair() {
        let mut way = Way { passed: 3, ..Way::default() };
        way.on_lost(at(100), 5, true, REPAIR);
        assert_eq!(way.passes_on(2, at(90)), None);
        assert_eq!(way.passes_on(4, at(90)), Some(at(90)));
        assert_eq!(way.passes_on(5, at(90)), Some(at(150)));
        assert_eq!(way.passes_on(6, at(90)), Some(at(150)));
        assert_eq!(way.passes_on(7, at(160)), Some(at(160)));
    }

    #[test]
    fn losses_are_repaired_one_after_the_other() {
        let mut way = Way::default();
        way.on_lost(at(100), 6, true, REPAIR);
        way.on_lost(at(100), 5, true, REPAIR);
        assert_eq!((way.waits, way.repair), (5, at(154)));
        // The core reports each loss until its retransmission.
        way.on_lost(at(101), 5, false, REPAIR);
        assert_eq!((way.waits, way.repair), (5, at(154)));
        way.on_lost(at(120), 5, false, REPAIR);
        assert_eq!((way.waits, way.repair), (5, at(170)));
    }

    #[test]
    fn a_loss_after_a_repair_begins_anew() {
        let mut way = Way::default();
        way.on_lost(at(100), 5, true, REPAIR);
        way.on_lost(at(200), 9, true, REPAIR);
        assert_eq!((way.waits, way.repair), (9, at(250)));
    }
}
