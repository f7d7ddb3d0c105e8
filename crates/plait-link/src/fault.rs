use plait_base::{Chance, RandomStream, Span};

use crate::LinkConfig;

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
    reorder_stream: RandomStream,
    duplicate_stream: RandomStream,
    corrupt_stream: RandomStream,
}

/// Faults of one packet.
#[derive(Clone, Copy)]
pub(crate) struct Mishap {
    pub(crate) held_back: bool,
    pub(crate) twin: bool,
    pub(crate) corrupt: bool,
}

impl Faults {
    /// Returns `None` if the configuration has no faults.
    pub(crate) fn new(
        config: &LinkConfig,
        stream: impl Fn(&str) -> RandomStream,
    ) -> Option<Faults> {
        let LinkConfig { reorder, duplicate, corrupt, .. } = *config;
        let reorders = reorder.chance != Chance::NEVER && reorder.by > Span::ZERO;
        if !reorders && duplicate == Chance::NEVER && corrupt == Chance::NEVER {
            return None;
        }
        Some(Faults {
            reorder: if reorders { reorder } else { Reorder::default() },
            duplicate,
            corrupt,
            reorder_stream: stream("reorder"),
            duplicate_stream: stream("duplicate"),
            corrupt_stream: stream("corrupt"),
        })
    }

    pub(crate) fn draw(&mut self) -> Mishap {
        Mishap {
            held_back: self.reorder.chance.happens(&mut self.reorder_stream),
            twin: self.duplicate.happens(&mut self.duplicate_stream),
            corrupt: self.corrupt.happens(&mut self.corrupt_stream),
        }
    }

    pub(crate) fn held_back_by(&self) -> Span {
        self.reorder.by
    }
}
