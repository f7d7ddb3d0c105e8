//! TODO.

use crate::conn::context::Context;
use crate::data::level::DataLevel;
use crate::paths::Paths;
use crate::tcp::acceptability::Place;
use crate::tcp::clock::before;
use plait_base::{Ssn, SubflowRange};
use plait_wire::Segment;

impl Paths {
    /// Whether the segment is to be read. What was repeated is, for an acknowledgement beside it
    /// may be new; it is answered where that is done with its payload.
    pub(crate) fn is_acceptable(
        &mut self,
        ctx: &mut Context<'_>,
        data: &DataLevel,
        index: usize,
        segment: &Segment,
        seq: Ssn,
        ack: Ssn,
    ) -> bool {
        let place = self.place(data, index, seq, u64::from(segment.seq_len()));
        let subflow = &mut self.subflows[index];
        // RFC 5961 section 5.2: what was never sent, or further behind than a window ever was.
        let credible = ack <= subflow.tx.nxt()
            && ack.saturating_add(data.window.largest().max(0xffff)) >= subflow.tx.una();
        if place == Place::Outside || !credible {
            self.challenge(ctx, index);
            return false;
        }
        let Some(stamp) = segment.options.timestamps.filter(|_| subflow.shake.offer.timestamps)
        else {
            return true;
        };
        // Protection against wrapped sequence numbers (RFC 7323 section 5.3).
        if before(stamp.value, subflow.shake.ts_recent) {
            // An original that its retransmission has overtaken looks like this.
            let len = u64::from(segment.payload.len());
            subflow.rx.note_refused(SubflowRange::with_len(seq, len));
            self.challenge(ctx, index);
            return false;
        }
        if seq <= subflow.rx.nxt() {
            subflow.shake.ts_recent = stamp.value;
        }
        true
    }
}
