//! Whether a peer may add a subflow: the denial of the first address (flag C of RFC 8684 section
//! 3.1), and limits.

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::paths::admission::MAX_HALF_OPEN_JOINS;
use crate::tcp::state::State;
use plait_base::SubflowId;
use plait_wire::{MpCapable, Mptcp, Segment};

impl Connection {
    /// Returns a slot for a join of the peer. If the slots for half-open joins are used up, the oldest
    /// of these gives way: anybody who has seen the token can begin a join, and only the peer can
    /// prove one.
    pub(super) fn slot_for_join(&mut self, ctx: &mut Context<'_>) -> Option<SubflowId> {
        let full =
            self.paths.half_open_joins().count() >= MAX_HALF_OPEN_JOINS || !self.paths.has_room();
        let oldest = self.paths.half_open_joins().min_by_key(|s| s.shake.sent_at).filter(|_| full);
        if let Some(index) = oldest.map(|s| s.id.index()) {
            ctx.overflows.joins_replaced += 1;
            self.kill_subflow(ctx, index, false);
        }
        self.take_slot()
    }

    /// The peer's MP_CAPABLE tells whether the address that it comes from may be joined.
    pub(super) fn note_denial(&mut self, ctx: &mut Context<'_>, syn: &Segment) {
        let denied = matches!(
            syn.options.mptcp.as_deref(),
            Some(Mptcp::Capable(MpCapable { joins_denied: true, .. }))
        );
        if !denied {
            return;
        }
        self.paths.addresses.first_denied = true;
        let server = self.paths.addresses.first.server();
        self.paths.joins.waiting.retain(|target| target.server != server);
        // Those that were begun together with the first subflow.
        for index in 0..self.paths.subflows.len() {
            let subflow = &self.paths.subflows[index];
            if subflow.shake.join && subflow.state == State::SynSent {
                self.kill_subflow(ctx, index, false);
            }
        }
    }
}
