//! Simultaneous open: two ends that dial each other at once (RFC 9293 section 3.5).

use super::handshake::take_syn;
use super::{Connection, Context, Mode};
use crate::tcp::pending::ControlSegment;
use crate::tcp::state::Step;
use plait_base::Dsn;
use plait_wire::Segment;

impl Connection {
    /// SYN-SENT, and the peer's SYN comes without an acknowledgement: it is dialling too. RFC 8684
    /// has no key exchange for it, so the connection is plain TCP; a join is not made this way.
    pub(super) fn on_simultaneous_syn(&mut self, index: usize, syn: &Segment) {
        let subflow = &mut self.subflows[index];
        if subflow.shake.join {
            return;
        }
        self.mode = Mode::Plain;
        take_syn(&mut subflow.shake, syn, self.spec.config.unsaid_mss);
        subflow.step(Step::SynCrossed);
        subflow.pending.add(ControlSegment::Syn);
        self.window.update(Dsn::ZERO, u64::from(syn.window));
    }

    /// SYN-RECEIVED after that, and the peer's SYN/ACK comes: both SYNs have arrived.
    pub(super) fn on_simultaneous_syn_ack(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
    ) {
        let subflow = &mut self.subflows[index];
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
