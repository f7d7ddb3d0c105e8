//! Data that waits for the cheaper subflows.

use crate::exact;
use crate::state;
use crate::{View, rules};
use plait_base::{Dsn, Time};

/// Returns true if no new data may be sent because a buffer is full: the receive window, or the send buffer
/// although all of its data is sent.
pub(super) fn is_buffer_full(view: &View<'_>) -> bool {
    match rules::next_segment(view) {
        Some(segment) => segment.end > view.connection.wnd_end,
        None => view.connection.app_blocked,
    }
}

/// Data that waits for the cheaper subflows.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Backlog {
    /// End of the data that waits.
    mark: Dsn,
    /// Time since which it waits.
    pub(super) since: Time,
    /// Highest cost of a subflow that need not rest, if above the lowest.
    pub(super) ceiling: u32,
    /// Data waited at the last call, and the application was blocked.
    blocked: bool,
}

impl Backlog {
    /// Notes what waits now. Data that waits for a buffer does not wait for the subflows.
    pub(super) fn note(&mut self, view: &View<'_>) {
        let it = &view.connection;
        let first = view.queue.unsent_at(0, 1).map_or(it.snd_nxt, |range| range.start);
        let end = first.saturating_add(it.unsent).max(it.snd_nxt);
        let full = is_buffer_full(view);
        let blocked = it.app_blocked && !full;
        if full || (first >= self.mark && !(self.blocked && blocked)) {
            *self = Backlog { mark: end, since: view.now, ..Backlog::default() };
        }
        self.blocked = blocked;
        if blocked {
            self.mark = self.mark.max(end);
        }
    }

    pub(super) fn save(&self, write: &mut dyn FnMut(&str, f64)) {
        write("price.mark", self.mark.get() as f64);
        write("price.since", state::millis(self.since));
        write("price.ceiling", f64::from(self.ceiling));
        write("price.blocked", f64::from(u8::from(self.blocked)));
    }

    /// Loads a value. Returns `None` if the name is unknown or the value is out of range.
    pub(super) fn load(&mut self, name: &str, value: f64) -> Option<()> {
        match name {
            "price.mark" => self.mark = Dsn::new(exact::nearest(value)),
            "price.since" => self.since = state::time(value)?,
            "price.ceiling" => {
                self.ceiling = u32::try_from(exact::nearest(value)).unwrap_or(u32::MAX);
            }
            "price.blocked" => self.blocked = value > 0.0,
            _ => return None,
        }
        Some(())
    }
}
