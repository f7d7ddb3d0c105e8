use plait_base::{Chance, RandomStream, Span};

use crate::LinkConfig;

/// Packets that are held back while later ones overtake them.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reorder {
    /// Chance of each packet.
    pub chance: Chance,
    /// How much later than otherwise it arrives.
    pub by: Span,
}

/// What goes wrong with packets on their way. Each kind draws from a stream of its own, so none
/// shifts the numbers of another.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    reorder: Reorder,
    duplicate: Chance,
    corrupt: Chance,
    reorder_stream: RandomStream,
    duplicate_stream: RandomStream,
    corrupt_stream: RandomStream,
}

/// What goes wrong with one packet.
#[derive(Clone, Copy)]
pub(crate) struct Mishap {
    pub(crate) held_back: bool,
    pub(crate) twin: bool,
    pub(crate) corrupt: bool,
}

impl Faults {
    /// `None` where nothing can go wrong.
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
