//! Two ends that dial each other at once (RFC 9293 section 3.5), and an address that is used again
//! while its last conversation is still remembered.

use super::handshake::take_syn;
use super::{Connection, Context, Mode};
use crate::tcp::clock::before;
use crate::tcp::owes::Debt;
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::Address;
use plait_base::Dsn;
use plait_wire::Segment;

impl Connection {
    /// SYN-SENT, and the peer's SYN comes without an acknowledgement: it is dialling too. RFC 8684
    /// has no key exchange for it, so the connection is plain TCP; a join is not made this way.
    pub(super) fn on_crossed_syn(&mut self, index: usize, syn: &Segment) {
        let subflow = &mut self.subflows[index];
        if subflow.shake.join {
            return;
        }
        self.mode = Mode::Plain;
        take_syn(&mut subflow.shake, syn, self.spec.config.unsaid_mss);
        subflow.step(Step::SynCrossed);
        subflow.owes.add(Debt::Syn);
        self.window.update(Dsn::ZERO, u64::from(syn.window));
    }

    /// SYN-RECEIVED after that, and the peer's SYN/ACK comes: both SYNs have arrived.
    pub(super) fn on_crossed_answer(
        &mut self,
        ctx: &mut Context<'_>,
        index: usize,
        segment: &Segment,
    ) {
        let subflow = &mut self.subflows[index];
        let expected = subflow.shake.iss.wrapping_add(1);
        if segment.ack != expected {
            subflow.owes.add_stray(segment.ack);
            return;
        }
        if segment.seq != subflow.shake.irs {
            return;
        }
        subflow.step(Step::Established);
        // The peer's own SYN/ACK may have to be answered, for ours may be lost.
        subflow.owes.ack = true;
        self.handshake_answered(ctx.now, index);
        self.subflow_up(ctx, index);
    }

    /// A SYN comes for a subflow in TIME-WAIT. Where it cannot belong to the old conversation, for
    /// its timestamp or else its sequence number is newer, the address is free (RFC 6191 section
    /// 2): tells the sequence number after the last one that was used.
    pub(crate) fn leave_time_wait(&mut self, address: Address, syn: &Segment) -> Option<u32> {
        let at_rest = |s: &&mut crate::tcp::subflow::Subflow| {
            s.address == address && s.state == State::TimeWait
        };
        let subflow = self.subflows.iter_mut().find(at_rest)?;
        let expected = subflow.shake.peer_wire(subflow.rx.nxt());
        let beyond = syn.seq != expected && before(expected, syn.seq);
        let stamps = syn.options.timestamps.filter(|_| subflow.shake.offer.timestamps);
        let newer = stamps.map_or(beyond, |stamps| {
            let known = subflow.shake.ts_recent;
            before(known, stamps.value) || known == stamps.value && beyond
        });
        if !newer {
            return None;
        }
        subflow.step(Step::WaitOver);
        self.changed = true;
        Some(subflow.shake.wire(subflow.tx.nxt()))
    }
}
