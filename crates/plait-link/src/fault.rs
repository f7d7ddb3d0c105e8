use plait_base::{Chance, RandomStream, Span, Time};

use crate::Loss;
use crate::loss::has_dice;

/// Random impairments of the packets of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Impairments {
    /// Loss of packets before they reach the queue.
    pub loss: Loss,
    /// Random extra delay, uniform in `[0, jitter]`. It never reorders packets.
    pub jitter: Span,
    /// Packets that are held back, so that later ones overtake them.
    pub reorder: Reorder,
    /// Probability that a packet arrives twice.
    pub duplicate: Chance,
    /// Probability that a packet arrives damaged.
    pub corrupt: Chance,
    /// From this time on, packets are no longer lost at random, held back, duplicated or damaged. With
    /// [`Time::NEVER`] the faults never end.
    pub heals: Time,
}

impl Impairments {
    /// No impairments.
    pub const NONE: Impairments = Impairments {
        loss: Loss::NEVER,
        jitter: Span::ZERO,
        reorder: Reorder { chance: Chance::NEVER, by: Span::ZERO },
        duplicate: Chance::NEVER,
        corrupt: Chance::NEVER,
        heals: Time::NEVER,
    };

    /// Returns true if they depend on random numbers. A loss of 100 % does not.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.loss.is_random()
            || (has_dice(self.reorder.chance) && self.reorder.by != Span::ZERO)
            || has_dice(self.duplicate)
            || has_dice(self.corrupt)
            || self.jitter != Span::ZERO
    }
}

impl Default for Impairments {
    fn default() -> Impairments {
        Impairments::NONE
    }
}

/// Packets that are held back, so that later ones overtake them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reorder {
    /// Probability for each packet.
    pub chance: Chance,
    /// Extra delay of a packet that is held back.
    pub by: Span,
}

/// Random faults in propagation. Each kind draws from its own stream, so kinds do not change each other's
/// numbers.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    reorder: Reorder,
    duplicate: Chance,
    corrupt: Chance,
    /// Time from which on there are no faults.
    heals: Time,
    reorder_stream: RandomStream,
    duplicate_stream: RandomStream,
    corrupt_stream: RandomStream,
}

/// Faults of one packet.
#[derive(Clone, Copy)]
pub(crate) struct Mishap {
    pub(crate) held_back: bool,
    /// Extra delay of the packet.
    pub(crate) late: Span,
    pub(crate) twin: bool,
    pub(crate) corrupt: bool,
}

impl Faults {
    /// Returns `None` if there are no faults.
    pub(crate) fn new(
        impairments: &Impairments,
        stream: impl Fn(&str) -> RandomStream,
    ) -> Option<Faults> {
        let Impairments { reorder, duplicate, corrupt, heals, .. } = *impairments;
        let reorders = reorder.chance != Chance::NEVER && reorder.by > Span::ZERO;
        if !reorders && duplicate == Chance::NEVER && corrupt == Chance::NEVER {
            return None;
        }
        Some(Faults {
            reorder: if reorders { reorder } else { Reorder::default() },
            duplicate,
            corrupt,
            heals,
            reorder_stream: stream("reorder"),
            duplicate_stream: stream("duplicate"),
            corrupt_stream: stream("corrupt"),
        })
    }

    /// Draws the faults of a packet that departs at `departs`. Returns `None` if the faults have ended.
    pub(crate) fn draw(&mut self, departs: Time) -> Option<Mishap> {
        if departs >= self.heals {
            return None;
        }
        let held_back = self.reorder.chance.happens(&mut self.reorder_stream);
        Some(Mishap {
            held_back,
            late: if held_back { self.reorder.by } else { Span::ZERO },
            twin: self.duplicate.happens(&mut self.duplicate_stream),
            corrupt: self.corrupt.happens(&mut self.corrupt_stream),
        })
    }
}
