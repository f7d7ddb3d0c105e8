//! Simultaneous open: two ends that dial each other at once (RFC 9293 section 3.5).

use crate::conn::Connection;
use crate::conn::context::Context;
use crate::tcp::state::Step;
use plait_wire::Segment;

impl Connection {
    /// SYN-RECEIVED after that, and the peer's SYN/ACK comes: both SYNs have arrived.
    pub(super) fn on_simultaneous_syn_ack(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
    ) {
        let subflow = &mut self.paths.subflows[index];
        let expected = subflow.shake.iss.wrapping_add(1);
        if segment.ack != expected {
            subflow.pending.add_unacceptable_ack(segment.ack);
            return;
        }
        if segment.seq != subflow.shake.irs {
            return;
        }
        subflow.step(Step::Established);
        // The peer's own SYN/ACK may have to be answered, for ours may be lost.
        subflow.pending.ack = true;
        self.handshake_answered(ctx.now, index);
        self.subflow_up(ctx, index);
    }
}
