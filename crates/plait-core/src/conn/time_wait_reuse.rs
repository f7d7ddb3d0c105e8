//! An address that is used again while its last conversation is in TIME-WAIT (RFC 6191).

use super::Connection;
use crate::tcp::clock::before;
use crate::tcp::state::{State, Step};
use crate::tcp::subflow::{Address, Subflow};
use plait_wire::Segment;

impl Connection {
    /// A SYN comes for a subflow in TIME-WAIT. Where it cannot belong to the old conversation, for
    /// its timestamp or else its sequence number is newer, the address is free (RFC 6191 section
    /// 2): tells the sequence number after the last one that was used.
    pub(crate) fn reuse_time_wait(&mut self, address: Address, syn: &Segment) -> Option<u32> {
        let at_rest = |s: &&mut Subflow| s.address == address && s.state == State::TimeWait;
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
