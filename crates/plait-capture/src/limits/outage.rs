//! Times in which a path carries nothing, and the rest of a backup.

use super::period::Label;

/// Why a path carries nothing.
#[derive(Clone, Default, Debug)]
pub(super) struct Outage {
    /// The latest silence.
    pub(super) silence: Option<(i64, i64)>,
    /// When the path was reset, and whether another path has replaced it.
    pub(super) reset: Option<(i64, bool)>,
    /// It is a backup: it rests while a regular path works.
    pub(super) is_backup: bool,
}

impl Outage {
    /// Returns the limit of a path that was reset.
    pub(super) fn after_reset(&self) -> Option<Label> {
        self.reset.map(|(_, is_replaced)| if is_replaced { Label::Link } else { Label::Reset })
    }

    /// Another path has replaced it, if it was reset.
    pub(super) fn replace(&mut self) {
        self.reset = self.reset.map(|(at, _)| (at, true));
    }
}
