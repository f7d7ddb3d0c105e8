//! A peer that takes nothing although data waits for it: the user timeout (RFC 9293 section 3.8.3).

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::stats::TimedOut;

impl Connection {
    /// The connection ends at once, and its user is told.
    pub(super) fn give_up_on_peer(&mut self, ctx: &mut Context<'_>, why: TimedOut) {
        self.data.closing.timed_out = Some(why);
        self.notices.changed = true;
        self.notices.news = true;
        self.abort(ctx);
    }
}
