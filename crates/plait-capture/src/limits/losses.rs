//! The losses of a path.

/// The losses of the first recovery and of those that continue it, in segments.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct FirstLosses {
    /// Losses of the first recovery alone.
    pub(crate) at_once: u64,
    /// Losses of all these recoveries.
    pub(crate) in_all: u64,
    /// The window at the begin of the first recovery.
    pub(super) window: u64,
    /// Sum of the windows at the begin of each recovery.
    pub(crate) windows: u64,
}

/// The losses of a path.
#[derive(Clone, Default, Debug)]
pub(super) struct Losses {
    /// Position up to which the present recovery goes.
    pub(super) recovery: Option<i64>,
    pub(super) recoveries: u64,
    /// Begin and end of the latest recovery.
    pub(super) latest: Option<(i64, i64)>,
    /// True if the present recovery follows the one before at once.
    pub(super) is_continued: bool,
    pub(super) first: FirstLosses,
    /// Lost segments while the queue was at least half as full as ever, and the others, without those of silences.
    pub(super) with_queue: u64,
    pub(super) without_queue: u64,
    /// Position up to which losses are those of a silence.
    pub(super) silent_up_to: i64,
}
